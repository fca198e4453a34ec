"""Files are complete or not there; JSON is plain."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headcount.core._files import json_text, replacing, write_atomically


def test_a_file_appears_whole_with_its_folder(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b.bin"
    write_atomically(target, b"one")
    write_atomically(target, b"two", sync=False)
    assert target.read_bytes() == b"two"
    assert list(target.parent.iterdir()) == [target]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "b.bin"
    write_atomically(target, b"old")

    def half() -> None:
        with replacing(target) as draft:
            assert draft.parent == target.parent
            draft.write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_an_error_within_hdf5_is_told_in_plain_words(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    target = tmp_path / "run.nc"

    def lost() -> None:
        with replacing(target, make_folder=False) as draft:
            h5py.File(draft / "nowhere", "w")

    with pytest.raises(OSError, match=r"(No such file or|Not a) directory: '.*run\.nc'$") as caught:
        lost()
    assert "synchronously" not in str(caught.value)


def test_json_has_null_for_what_is_not_finite_and_takes_numpy() -> None:
    content = {
        "a": [1.5, float("nan"), float("inf"), np.float32(0.5), np.float64("-inf")],
        "b": np.array([[1.0, np.nan]]),
        "c": (np.int64(3), True, None, "text"),
    }
    read = json.loads(json_text(content), parse_constant=pytest.fail)
    assert read == {
        "a": [1.5, None, None, 0.5, None],
        "b": [[1.0, None]],
        "c": [3, True, None, "text"],
    }
