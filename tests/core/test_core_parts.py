"""Files are complete or not there; JSON is plain."""

from __future__ import annotations

import gzip
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headcount.core import BadArgument
from headcount.core import _tree as tree
from headcount.core._attention import HeadFeatures
from headcount.core._files import json_text, replacing, write_atomically
from headcount.core._reading import parse_json, parse_number, read_bytes, read_json, read_text
from headcount.core._rounding import round_down, round_up
from headcount.theory._frequency import clopper_pearson


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


MOST = 1000


BYTES = {
    "too long": (b"a" * (MOST + 1), "holds more than 1000 bytes"),
    "a gzip bomb": (gzip.compress(b"a" * 10**6), "holds more than 1000 bytes"),
    "half a gzip file": (gzip.compress(b"some words")[:15], "is a damaged gzip file"),
    "a damaged gzip file": (gzip.compress(b"some words")[:-1] + b"x", "is a damaged gzip file"),
    "UTF-16": ("date".encode("utf-16"), "is in UTF-16; save it as UTF-8"),
    "UTF-32": ("date".encode("utf-32"), "is in UTF-32; save it as UTF-8"),
    "Latin-1": ("a\nb\nStück".encode("latin-1"), "line 3 is not UTF-8 (perhaps Latin-1"),
}


@pytest.mark.parametrize("case", BYTES)
def test_a_file_that_is_no_such_text_is_told(case, tmp_path):
    content, message = BYTES[case]
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(BadArgument) as caught:
        read_text(tmp_path / "file", MOST, unpack=True)
    assert message in str(caught.value)


def test_what_is_no_regular_file_is_told_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "none", tmp_path / "none" / "x", "a\0b"):
        with pytest.raises(BadArgument, match=r"is not a file|cannot be read"):
            read_bytes(path, MOST)
    with pytest.raises(BadArgument, match="is not a file"):
        read_bytes("/dev/zero", MOST)


def test_text_is_read_as_it_is(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert read_text(path, MOST) == "a\r\nb"
    path.write_bytes(gzip.compress(b"a") + gzip.compress(b"b"))
    assert read_bytes(path, MOST, unpack=True) == b"ab"
    path.write_bytes(b"a" * MOST)
    assert len(read_bytes(path, MOST)) == MOST


BAD_JSON = [
    '{"a": 1, "a": 2}',
    "NaN",
    "-Infinity",
    "1e999",
    "[" * 10**5,
    "1" * 5000,
    "",
    "[1,",
    "'",
]


@pytest.mark.parametrize("text", BAD_JSON, ids=range(len(BAD_JSON)))
def test_json_is_strict(text, tmp_path):
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)
    (tmp_path / "file").write_text(text)
    with pytest.raises(BadArgument, match="is not JSON"):
        read_json(tmp_path / "file", 10**6)


@pytest.mark.parametrize("text", ["1_000", "inf", "nan", "1e999", "0x1", "", " 1", "٣", "1,5", "."])
def test_a_number_is_a_finite_decimal(text):
    with pytest.raises(ValueError, match="not a"):
        parse_number(text)


def test_numbers_are_read():
    assert [parse_number(t) for t in ("-1", "+.5", "2.", "1e3")] == [-1.0, 0.5, 2.0, 1000.0]


def test_blocks_of_every_container():
    point = HeadFeatures(1, 2, 3)
    assert tree.blocks(point) == {"phi_c": 1, "phi_u": 2, "w_left": 3}
    assert tree.with_blocks(point, {"phi_u": 5}).phi_u == 5
    assert tree.blocks({"a": 1}) == {"a": 1}
    assert tree.with_blocks({"a": 1, "b": 2}, {"a": 3}) == {"a": 3, "b": 2}
    assert tree.blocks((4, 5)) == {"0": 4, "1": 5}
    assert tree.with_blocks((4, 5), {"1": 6}) == (4, 6)
    assert tree.blocks(7) == {"params": 7}
    assert tree.with_blocks(7, {"params": 8}) == 8


few = settings(max_examples=25, deadline=None, derandomize=True, database=None)


def numbers(size):
    """Floats of a size; hypothesis likes the ends, zeros and equal ones."""
    return st.floats(-size, size, allow_subnormal=False)


@few
@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_binomial_intervals_hold_the_share_and_mirror(pair):
    k, n = pair
    low, high = clopper_pearson(k, n, 0.95)
    assert 0 <= low <= k / n <= high <= 1
    mirrored = clopper_pearson(n - k, n, 0.95)
    assert mirrored.low == pytest.approx(1 - high, abs=1e-12)
    wider = clopper_pearson(k, n, 0.999)
    assert wider.low <= low
    assert wider.high >= high
    with pytest.raises(BadArgument, match="successes"):
        clopper_pearson(n + 1, n)


@few
@given(st.lists(st.floats(width=64), max_size=6))
def test_json_is_always_valid(values):
    read = json.loads(json_text({"values": values}))["values"]
    for value, back in zip(values, read, strict=True):
        assert back == value if math.isfinite(value) else back is None


@few
@given(numbers(1e6).filter(lambda v: v != 0), st.integers(1, 6))
def test_rounded_numbers_stay_on_their_side(value, digits):
    assert float(round_down(value, digits)) <= value <= float(round_up(value, digits))


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (112.01, "113", "112"),
        (-0.12345, "-0.123", "-0.124"),
        (0.0, "0", "0"),
        (1e-9, "1e-9", "1e-9"),
    ],
)
def test_shown_numbers_are_on_the_safe_side(value: float, up: str, down: str) -> None:
    assert float(round_up(value)) == pytest.approx(float(up), rel=1e-12)
    assert float(round_down(value)) == pytest.approx(float(down), rel=1e-12)
    assert round_up(float("inf")) == "inf"
