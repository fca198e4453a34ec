"""`headcount report`: the results folder as a site."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ._output import check_writable, consoles, print_json
from ._reproduce import OUT

SITE = Path("headcount-report")


def report_command(
    *, out: Path = OUT, to: Path = SITE, json: Annotated[bool, Parameter(negative=())] = False
) -> int:
    """Write the results folder as a static site: figures, verdicts, claims, errata, head counts.

    The site needs no network and no server. It computes nothing: run `headcount reproduce` first.

    Parameters
    ----------
    out
        Results folder.
    to
        Folder of the site; one that is no report of ours is left alone.
    json
        Print one JSON object on standard output.
    """
    import time

    from ..core import BadArgument

    started = time.monotonic()
    if not out.is_dir():
        fix = "run first: headcount reproduce --all, or name a folder with --out"
        raise BadArgument("out", str(out), "is no results folder", fix=fix)
    check_writable("to", to)
    from ..report.site import build_site

    site = build_site(out, to)
    index, seconds = site.folder / "index.html", time.monotonic() - started
    pages = sum(name.endswith(".html") for name in site.files)
    if json:
        print_json({"index": str(index), "pages": pages, "seconds": seconds})
        return 0
    console, _ = consoles(json)
    text = f"{pages} pages in {seconds:.1f} s; open {index}"
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    return 0
