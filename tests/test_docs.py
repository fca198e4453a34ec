"""The code of the documentation runs, block after block, as a reader would run it."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

import pytest

from docs_blocks import is_among, run_page
from headcount.core import losses, papers
from headcount.data import data_models
from headcount.models import initialisations
from headcount.training import TrainConfig, optimisers, recipe_of

DOCS = Path(__file__).parents[1] / "docs"
ALL = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
PAGES = [page for page in ALL if "```python" in (DOCS / page).read_text(encoding="utf-8")]
GENERATED = ("reference/", "gallery.md", "notebooks/")
FENCE = re.compile(r"^```(.*)$\n(?:.*\n)*?^```$", flags=re.MULTILINE)


def test_the_guides_have_code():
    assert {"kernels.md", "training.md", "index.md", "how-to.md"} <= set(PAGES)
    assert sum(page.startswith("tutorials/") for page in PAGES) == 3


@pytest.mark.parametrize("page", ALL)
def test_a_page_runs(page, monkeypatch, tmp_path):
    """Block after block in a fresh folder, as docs_blocks says; outputs are those shown."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert not re.search(r"^    (headcount|make) ", text, flags=re.MULTILINE)
    assert set(FENCE.findall(text)) <= {"python", "py", "{ .py }", "console", "text", "sh", "toml"}
    monkeypatch.chdir(tmp_path)
    if page == "how-to.md":  # test_stranger.py follows the first half of that one
        text = "\n## A model alone" + text.split("\n## A model alone")[1]
    run_page(text, DOCS / page)


def test_numbers_of_outputs_are_compared_and_times_are_not():
    said = "proved: ratio 1.12838 (T=1), 5250 instances, 5.6 s"
    assert is_among("ratio 1.128 (T=1), 5250 instances, 99 s", said)
    assert not is_among("ratio 1.2 (T=1)", said)
    assert not is_among("proved: ratio 1.12838 (T=2)", said)


@pytest.mark.parametrize("page", ["architecture.md", "theory.md"])
def test_what_everybody_reads_first_fits_three_screens(page):
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 110
    assert max(map(len, lines)) <= 120
    assert sum(line.startswith("![") for line in lines) == 1


def test_the_files_of_a_room_are_called_as_the_design_says():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    table = text.split("| what | where |")[1].split("\n\n")[0]
    places = [re.findall(r"`([^`]+)`", row.split("|")[2]) for row in table.splitlines()[2:]]
    rooms = DOCS.parent / "src" / "headcount" / "papers"
    for name in (name.replace("<id>", "fig1") for row in places for name in row):
        assert list(rooms.glob(f"*/{name}")), name


@pytest.mark.parametrize("page", ALL)
def test_fragments_are_python(page):
    """Blocks marked py are parts of something: they are not run, but they parse."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for block in re.findall(r"```(?:py|\{ \.py \})\n(.*?)```", text, flags=re.DOTALL):
        included = re.fullmatch(r'--8<-- "(.*)"\n', block)
        # Formatted as Python (--8 < --"file") it would compile, and the site show the line itself.
        assert included or "8 <" not in block.replace("8<", "8 <"), block
        code = (DOCS.parent / included[1]).read_text() if included else block
        compile(code.replace("$name", "name"), page, "exec")


@pytest.mark.parametrize("page", ALL)
def test_links_lead_somewhere(page):
    place = DOCS / page
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", place.read_text(encoding="utf-8")):
        assert (place.parent / link).exists() or link.startswith(GENERATED), link


@pytest.mark.parametrize("key", [key for key, paper in papers.items() if paper.readings])
def test_the_table_of_choices_is_that_of_the_manifest(key):
    section = (DOCS / "choices.md").read_text(encoding="utf-8").split(f"\n## {key}\n")[1]
    rows = re.findall(r"^\| (.*) \|$", section.split("\n## ")[0], flags=re.MULTILINE)[1:]
    expected = [
        " | ".join((c.what, c.ours, c.others, f"`{c.option}`" if c.option else "-"))
        for c in papers[key].readings
    ]
    assert [row.replace("\\|", "|") for row in rows] == expected


def functions_named(name):
    """What is built under this name: models, their own initialisations, data models."""
    recipes = [(model, recipe_of(model)) for _, paper in papers.items() for model in paper.models]
    found = [recipe.build for model, recipe in recipes if model == name]
    found += [recipe.starts[name] for _, recipe in recipes if name in recipe.starts]
    return found + ([data_models[name]] if name in data_models else [])


@pytest.mark.parametrize("key", list(papers))
def test_choices_name_what_exists_and_ours_is_the_default(key):
    for choice in papers[key].readings:
        makers = [make for name in choice.concerns for make in functions_named(name)]
        known = {*initialisations, *losses, *optimisers}
        assert all(name in known or functions_named(name) for name in choice.concerns), choice
        if not choice.option or choice.option in TrainConfig.model_fields:
            continue
        for make in makers:
            default = str(inspect.signature(make).parameters[choice.option].default)
            assert choice.ours.split()[0].rstrip(",:;") in (default, default.lower()), choice


def names_that_install() -> set[str]:
    """Packages that our own project asks for, and what a checkout offers."""
    root = DOCS.parent
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(one for extra in extras.values() for one in extra)]
    pinned = (root / "models.txt").read_text(encoding="utf-8").splitlines()
    packages = {re.split(r"[>=\[]", one)[0] for one in (*asked, *pinned) if one[0] != "#"}
    return {*packages, ".", *(f".[{extra}]" for extra in extras)} - {"headcount"}


def test_what_we_advise_to_install_can_be_installed():
    """Headcount is on no index: advice names a checkout, or packages that are on one."""
    root = DOCS.parent
    advice = []
    for place in [*root.glob("*.md"), *DOCS.rglob("*.md"), *(root / "src").rglob("*.py")]:
        text = place.read_text(encoding="utf-8").replace("{MINILM_PACKAGE}=={MINILM_VERSION}", "")
        advice += re.findall(r"pip install ([^\n`\"#,]+)", text)
    assert len(advice) > 10
    known = names_that_install() | {"pre-commit", "smith2030", "{name}"}
    for words in advice:
        names = re.sub(r"-c constraints.txt|--no-deps|-e ", "", words).replace("'", "").split()
        assert {name.split("==")[0] for name in names} <= known, words
