"""A write that fails leaves the file that was there: corpus, facts, the plot of a count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headcount.cli import _count
from headcount.theory import _corpus, _facts, claims


def _corpus_file(folder: Path, patch: pytest.MonkeyPatch) -> Callable[[], Any]:
    patch.setattr(_corpus, "corpus_folder", lambda paper: folder)
    return lambda: _corpus.write_corpus(claims["arda2026/fact-1"], [])


def _facts_file(folder: Path, patch: pytest.MonkeyPatch) -> Callable[[], Any]:
    patch.setattr(_facts, "_file", lambda paper: folder / "fact-1.json")
    return lambda: _facts.record("toy", [])


def _plot_file(folder: Path, patch: pytest.MonkeyPatch) -> Callable[[], Any]:
    patch.setattr("headcount.report._count.draw_count", lambda *arguments: None)
    nothing: Any = SimpleNamespace()
    return lambda: _count._save_plot(nothing, [], 0.1, folder / "count.PNG")


@pytest.mark.parametrize(
    ("write", "name"),
    [(_corpus_file, "fact-1.json"), (_facts_file, "fact-1.json"), (_plot_file, "count.PNG")],
)
def test_a_failed_write_leaves_the_old_file(
    write: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, monkeypatch)()
    old = (tmp_path / name).read_bytes()
    assert len(old) > 2
    (tmp_path / name).write_bytes(b"old")

    def full(*paths: Any, **handles: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        with pytest.raises(OSError, match="No space"):
            write(tmp_path, patch)()
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"old"
    write(tmp_path, monkeypatch)()
    assert (tmp_path / name).read_bytes() == old
