"""Files of others: regular ones of a bounded size, in UTF-8, or one clear line."""

from __future__ import annotations

import gzip
import os

import pytest

from headcount.core import BadArgument
from headcount.core._reading import parse_json, parse_number, read_bytes, read_json, read_text

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
