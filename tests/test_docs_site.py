"""The documentation site: builds strictly, has a page for everything, and documents every name."""

from __future__ import annotations

import importlib
import json
import re
import shlex
from pathlib import Path

import pytest
from tools import docs_site

from headcount.cli._app import app
from headcount.lab import figures
from headcount.theory import claims

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return docs_site.generated()


@pytest.mark.parametrize("layer", docs_site.LAYERS)
def test_every_public_name_is_documented(layer: str) -> None:
    package = importlib.import_module(f"headcount.{layer}")
    names = docs_site.public_names(package)
    assert names
    assert [name for name in names if not docs_site.documentation(package, name)] == []


def test_there_is_a_page_for_everything(pages: dict[str, str]) -> None:
    ours = [
        name for name, claim in claims.items() if claim.sides.__module__.startswith("headcount")
    ]
    assert {f"reference/claims/{name}.md" for name in ours} <= set(pages)
    assert all(f"reference/figures/{name}.md" in pages for name in figures)
    for name in ours:
        assert f"[{name}]({name}.md)" in pages["reference/claims/index.md"]


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
    shown = markdown.markdown(docs_site.escape(text), extensions=["tables"])
    plain = re.sub(r"</?(p|code)>", "", shown).replace("&lt;", "<").replace("&gt;", ">")
    assert plain == text.replace("`", "")


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
