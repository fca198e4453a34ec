"""Notes and choices of a paper as files: read when asked for, and strictly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headcount.core import BadArgument, Paper

CHOICE = '[[choice]]\nwhat = "a"\nours = "b"\nothers = "c"\nconcerns = ["m"]\n'


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "notes_of_2030"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    sys.modules.pop("notes_of_2030", None)


def paper() -> Paper:
    return Paper("smith2030", "A title", "Smith (2030)", choices="notes_of_2030:choices.toml")


def test_choices_are_read_when_they_are_asked_for(package: Path) -> None:
    listed = paper()
    (package / "choices.toml").write_text(CHOICE + 'option = "o"\n')
    (found,) = listed.readings
    assert found == ("a", "b", "c", ("m",), "o")


@pytest.mark.parametrize(
    "text", ["[[choice]\n", "choice = 3\n", CHOICE + "more = 1\n", CHOICE.replace('"b"', "2")]
)
def test_a_choice_that_is_none_is_one_line(package: Path, text: str) -> None:
    (package / "choices.toml").write_text(text)
    with pytest.raises(BadArgument):
        _ = paper().readings
