"""The documentation site: builds strictly, has a page for everything, and documents every name."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import typing
from pathlib import Path

import pytest
from tools import docs_api, docs_gallery, docs_site, notebooks
from tools.docs_words import escape, typeset

from headcount.cli import app
from headcount.lab import figures
from headcount.theory import claims

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return docs_site.generated()


@pytest.mark.parametrize("layer", docs_api.LAYERS)
def test_every_public_name_is_documented(layer: str) -> None:
    package = importlib.import_module(f"headcount.{layer}")
    names = docs_api.public_names(package)
    assert names
    assert [name for name in names if not docs_api.documentation(package, name)] == []


def test_there_is_a_page_for_everything(pages: dict[str, str]) -> None:
    ours = [
        name for name, claim in claims.items() if claim.sides.__module__.startswith("headcount")
    ]
    assert {f"reference/claims/{name}.md" for name in ours} <= set(pages)
    assert all(f"reference/figures/{name}.md" in pages for name in figures)
    for name in ours:
        key, _, own = name.partition("/")
        assert f"[{name}]({own}.md)" in pages[f"reference/claims/{key}/index.md"]


def test_what_is_refuted_is_marked_in_the_index_and_on_its_page(pages: dict[str, str]) -> None:
    for name, claim in claims.items():
        key, _, own = name.partition("/")
        (row,) = (
            line
            for line in pages[f"reference/claims/{key}/index.md"].splitlines()
            if f"]({own}.md)" in line
        )
        page = pages[f"reference/claims/{name}.md"]
        for form in claim.forms.values():
            if form.fails:
                assert form.briefly in row
                assert f'"{form.briefly}"' in page
        if not any(form.fails for form in claim.forms.values()):
            assert row.endswith("|  |"), row
            assert "!!!" not in page


def test_every_claim_figure_and_layer_has_navigation(pages: dict[str, str]) -> None:
    class Config:
        nav: typing.ClassVar[list] = [
            {
                "Reference": [
                    {"Claims": "reference/claims/index.md"},
                    {"API": "reference/api/index.md"},
                ]
            }
        ]

    found = json.dumps(docs_site.on_config(Config).nav)
    for place in pages:
        if place.startswith(("reference/claims/", "reference/api/")):
            assert f'"{place}"' in found


VERDICT = {
    "claim": "the error falls like m^(-1/2)",
    "outcome": "confirmed",
    "value": -0.5,
    "interval": [-0.6, -0.4],
    "expected": [None, -0.3],
    "scale": "linear",
    "sentence": "slope -0.5",
    "source": {"kind": "paper", "says": "predicted scaling of $m^{-1/2}$", "where": "Sec. 6.1"},
}


def test_a_card_has_picture_sentence_outcome_and_readings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = {"figure": "arda2026/fig1", "scale": "paper", "seeds": [0, 1], "verdicts": [VERDICT]}
    entry["readings"] = [{}, {}]
    monkeypatch.setattr(docs_gallery, "picture_of", lambda *_, **__: "")
    text = "\n".join(docs_gallery.card(figures["arda2026/fig1"], entry))
    assert "<svg" in text
    assert "Sec. 6.1" in text
    assert "the paper's: 1 confirmed (paper scale, 2 seeds, 2 readings)" in text
    assert "Not run" in "\n".join(docs_gallery.card(figures["arda2026/fig1"], None))
    monkeypatch.undo()
    assert "pictures/compare-width." in "\n".join(docs_gallery.card(figures["compare/width"], None))


def test_a_drawing_puts_the_numbers_in_their_order() -> None:
    svg = docs_gallery.drawing([VERDICT])
    band, line = (
        [
            float(n)
            for n in re.search(f'class="{css}" x="([\\d.]+)".* width="([\\d.]+)"', row).groups()
        ]
        for css, row in zip(("band", "confirmed"), re.findall("<rect[^>]*/>", svg)[1:], strict=True)
    )
    mark = float(re.search(r'class="mark confirmed" x="([\d.]+)"', svg)[1])
    assert band[0] == 0  # open below: it begins at the edge
    assert line[0] < mark < line[0] + line[1] < band[1]


def test_negative_numbers_have_a_place_and_stars_stay_stars() -> None:
    slope = {"interval": [-0.6, -0.4], "expected": [-0.65, -0.35], "scale": "log"}
    claim = "every H finds W* and U*"
    svg = docs_gallery.drawing([{**VERDICT, **slope, "claim": claim, "sentence": claim}])
    mark = float(re.search(r'class="mark confirmed" x="([\d.]+)"', svg)[1])
    assert 100 < mark < 220  # in the middle of its row, though compared on logarithms
    import markdown

    assert "<em>" not in markdown.markdown(svg)


def test_every_figure_has_a_card(pages: dict[str, str]) -> None:
    rooms = {room.name for room in (ROOT / "src" / "headcount" / "papers").iterdir()}
    ours = [name for name in figures if name.split("/")[0] in rooms]  # not those of other tests
    assert len(ours) >= 33
    assert all(f"(reference/figures/{name}.md)" in pages["gallery.md"] for name in ours)


def test_commands_of_generated_pages_are_commands(pages: dict[str, str]) -> None:
    commands = {
        c for p in pages.values() for c in re.findall(r"^\$ headcount (.+)$", p, re.MULTILINE)
    }
    assert len(commands) > len(figures)
    for command in commands:
        app.parse_args(shlex.split(command), exit_on_error=False, print_error=False)


def test_words_of_ours_are_not_shown(pages: dict[str, str]) -> None:
    for place, text in pages.items():
        assert not re.search(r"\bledger\b|\bR\d\d of\b", text, flags=re.IGNORECASE), place


def test_prose_shows_the_characters_that_it_has() -> None:
    import markdown

    text = "|x|_2 <= a*b*c with `n_1` and [x](y) #1 {z} ^2"
    shown = markdown.markdown(escape(text), extensions=["tables"])
    plain = re.sub(r"</?(p|code)>", "", shown).replace("&lt;", "<").replace("&gt;", ">")
    assert plain == text.replace("`", "")


def test_mathematics_of_prose_is_typeset_and_no_markdown() -> None:
    import markdown

    text = "a*b*c <= m^(-1/2) with `n_1` and $\\tau_0$ of [x](y) |z|_2"
    shown = markdown.markdown(typeset(text), extensions=["tables"])
    assert "a*b*c ≤ m<sup>-1/2</sup> with <code>n_1</code>" in shown
    assert "of [x](y) |z|<sub>2</sub>" in shown
    assert "<msub><mi>" in shown


def test_a_claims_page_names_the_file_that_it_is_written_in(pages: dict[str, str]) -> None:
    for name in claims:
        assert (
            f"Its code is in `headcount.papers.{name.split('/')[0]}."
            in (pages[f"reference/claims/{name}.md"])
        )


def test_every_notebook_is_a_page_and_can_be_downloaded() -> None:
    found = docs_site.notebook_pages()
    for path in notebooks.FOLDER.glob("*.ipynb"):
        assert f"({path.name})" in found[f"notebooks/{path.stem}.md"]
        assert found[f"notebooks/{path.name}"] == path.read_bytes()
        assert f"({path.stem}.md)" in found["notebooks/index.md"]


def test_a_tutorial_is_an_executed_notebook() -> None:
    text = (ROOT / "docs" / "tutorials" / "arda2026.md").read_text(encoding="utf-8")
    cells = docs_site.notebook(text)["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) == text.count("```python")
    assert all(cell["outputs"] for cell in code)
    assert cells[-1]["cell_type"] == "markdown"
    json.dumps(cells)


def test_it_builds_strictly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken links and anchors are errors; no page asks for another host."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(claims)
    loaded = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(https?:)?//')
    assert [page.name for page in pages if loaded.search(page.read_text())] == []
    assert len(list(tmp_path.glob("tutorials/*.ipynb"))) == 3
    home = (tmp_path / "index.html").read_text()
    assert 'src="iframe-worker.js"' in home  # search from disk is ours, without a network
    assert (tmp_path / "search" / "search_index.js").is_file()
