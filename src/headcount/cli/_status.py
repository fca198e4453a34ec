"""`headcount status`: what a results folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ._output import consoles, print_json
from ._reproduce import OUT


def status_command(
    *, out: Path = OUT, json: Annotated[bool, Parameter(negative=())] = False
) -> int:
    """Show every figure asked for in a results folder, how far it is, and what runs now.

    Parameters
    ----------
    out
        Results folder.
    json
        Print one JSON object.
    """
    from ..lab import Store
    from ..report._tables import status_rows, status_table

    console, notes = consoles(json)
    store = Store(out, notes.print)
    rows = status_rows(store, notes.print)
    if json:
        running = [{"address": address, **note} for address, note in store.running()]
        print_json({"out": str(out), "figures": rows, "running": running})
    else:
        console.print(status_table(store, rows))
    return 0
