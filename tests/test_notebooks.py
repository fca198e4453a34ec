"""Notebooks of examples/ run from top to bottom, and show what is committed in them."""

from __future__ import annotations

import re
import shutil

import jax
import pytest
from tools import notebooks

from docs_blocks import is_among

PATHS = sorted(notebooks.FOLDER.glob("*.ipynb"))
TIMES = re.compile(r", seconds=[\d.]+|, \.\.\.\)|[\d.]+ s\b")


def test_there_are_notebooks_for_the_papers_and_for_a_lemma():
    assert {"arda2026", "deora2024", "wu2023", "your_lemma", "your_model"} <= {
        path.stem for path in PATHS
    }


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
@pytest.mark.usefixtures("as_users_write")
def test_a_notebook_shows_what_it_says(path, monkeypatch, tmp_path):
    """In a fresh namespace, in a folder with the data; what is printed agrees, but for rounding.

    JAX is set as a reader has it.
    """
    stored = notebooks.texts(notebooks.read(path))
    assert any(stored)
    for data in notebooks.FOLDER.glob("*.csv"):
        shutil.copy(data, tmp_path)
    monkeypatch.chdir(tmp_path)
    with jax.enable_x64(False):
        found = notebooks.texts(notebooks.execute(notebooks.read(path), path.stem))
    for before, now in zip(stored, found, strict=True):
        for line in before.splitlines():
            assert is_among(TIMES.sub("", line), TIMES.sub("", now)), (line, now)


def test_a_cell_prints_shows_and_keeps_its_names():
    names: dict[str, object] = {}
    assert notebooks.run_cell("x = 2", names, "here", 1) == []
    printed, shown = notebooks.run_cell("print(x)\nx + 1", names, "here", 2)
    assert printed["text"] == "2\n"
    assert shown["data"] == {"text/plain": "3"}


def test_a_notebook_is_a_page_with_its_outputs():
    class Rich:
        def _repr_html_(self):
            return "<table></table>"

    rich = {"output_type": "execute_result", "data": notebooks.mime(Rich())}
    picture = {"output_type": "execute_result", "data": {"image/png": "AAEC"}}
    printed = {"output_type": "stream", "text": "one\n"}
    cells = [
        {"cell_type": "markdown", "source": "# Title"},
        {"cell_type": "code", "source": "f()", "outputs": [printed, rich, picture]},
    ]
    text, pictures = notebooks.page({"cells": cells}, "mine")
    assert text.startswith("# Title\n\n```python\nf()\n```\n\n```text\none\n```\n")
    assert '<div class="output"><table></table></div>' in text
    assert pictures == {"mine-1.png": b"\x00\x01\x02"}
    assert "(mine-1.png)" in text
