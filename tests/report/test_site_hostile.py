"""A results folder from anywhere: pictures that cannot run scripts, damaged files named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headcount import lab
from headcount.core import BadArgument
from headcount.report.site import build_site

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
GOOD = (
    '<style>*{stroke-linejoin: round}</style><defs><clipPath id="p1"><rect/></clipPath></defs>'
    '<g clip-path="url(#p1)"><use xlink:href="#m1" style="stroke: #123456"/>'
    '<image xlink:href="data:image/png;base64,iVBOR" style="image-rendering:crisp-edges"/></g>'
)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results folder with one figure."""
    folder = tmp_path / "results"
    lab.Store(folder).prepare()
    figure = folder / "figures" / "nobody-fig1" / "quick"
    figure.mkdir(parents=True)
    content = {"figure": "nobody/fig1", "scale": "quick", "verdicts": []}
    (figure / "verdicts.json").write_text(json.dumps(content))
    return folder


def figure(results: Path) -> Path:
    return results / "figures" / "nobody-fig1" / "quick"


@pytest.mark.parametrize(
    "bad",
    [
        b"no picture",
        b"\xff\xfe",
        b"<html/>",
        f'<!DOCTYPE svg [<!ENTITY a "a">]>{HEAD}/>'.encode(),
        f'<!DOCTYPE svg [<!ENTITY a "a">]>{HEAD}/>'.encode("utf-16"),
        (HEAD + ">" + "<g>" * 5000 + "</g>" * 5000 + "</svg>").encode(),
    ],
)
def test_what_is_no_picture_is_named(results: Path, tmp_path: Path, bad: bytes) -> None:
    (figure(results) / "figure.svg").write_bytes(bad)
    with pytest.raises(BadArgument, match=r"figure\.svg.*is damaged or none of ours"):
        build_site(results, tmp_path / "site")


def test_only_disarmed_pictures_are_in_the_site(results: Path, tmp_path: Path) -> None:
    (figure(results) / "figure.svg").write_text(f"{HEAD}><script>alert(1)</script>{GOOD}</svg>")
    site = build_site(results, tmp_path / "site").folder
    for page in site.rglob("*"):
        assert page.is_dir() or b"<script>alert" not in page.read_bytes()
    assert b"<use" in (site / "figures" / "nobody-fig1-quick" / "figure.svg").read_bytes()


def test_every_page_says_what_it_may_load(results: Path, tmp_path: Path) -> None:
    pages = list(build_site(results, tmp_path / "site").folder.rglob("*.html"))
    assert len(pages) == 5 + 3  # claims of each paper
    for page in pages:
        text = page.read_text()
        policy = text.partition('http-equiv="Content-Security-Policy" content="')[2]
        assert policy.startswith("default-src 'none'; img-src 'self' data:;")
        assert "script-src 'self';" in policy.partition('"')[0]
        assert text.index("Content-Security-Policy") < text.index("<title>")


@pytest.mark.parametrize("name", ["data.nc", "plotted.csv", "verdicts.json"])
@pytest.mark.parametrize("bad", [b"", b"\xff\xfe\x00", b"[1]"])
def test_a_damaged_file_is_named(results: Path, tmp_path: Path, name: str, bad: bytes) -> None:
    (figure(results) / name).write_bytes(bad)
    if (name, bad) == ("plotted.csv", b"[1]"):
        build_site(results, tmp_path / "site")  # a table with one column and no row
        return
    with pytest.raises(BadArgument) as caught:
        build_site(results, tmp_path / "site")
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file_is_published_through_a_link(results: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("precious")
    (figure(results) / "figure.png").symlink_to(secret)
    with pytest.raises(BadArgument, match=r"figure\.png.*is a link"):
        build_site(results, tmp_path / "site")
