"""The code of the documentation runs, block after block, as a reader would run it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(page.name for page in DOCS.glob("*.md") if "```python" in page.read_text())


def test_the_guides_have_code():
    assert {"kernels.md", "training.md"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_code_runs(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    names: dict[str, object] = {}
    for match in re.finditer(r"```python\n(.*?)```", text, flags=re.DOTALL):
        line = text.count("\n", 0, match.start(1))
        # Blank lines in front make a traceback point at the line of the page.
        exec(compile("\n" * line + match[1], str(DOCS / page), "exec"), names)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (DOCS / link).exists(), link
