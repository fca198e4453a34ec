"""`python -m benchmarks [names...]`: tables on stderr, one JSON object per benchmark on stdout."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import traceback
from typing import Any

from rich.console import Console
from rich.table import Table

import benchmarks
from benchmarks._timing import SINGLE_THREADED


def names() -> list[str]:
    """The benchmarks of this package."""
    found = (module.name for module in pkgutil.iter_modules(benchmarks.__path__))
    return sorted(name for name in found if not name.startswith("_"))


def show(result: dict[str, Any], console: Console) -> None:
    """A table for every list of rows, and one for all single figures."""
    single = Table(title=result["name"], title_justify="left")
    single.add_column("figure")
    single.add_column("value", justify="right")
    for key, value in _flat(result):
        if isinstance(value, list) and value and isinstance(value[0], dict):
            console.print(_rows(f"{result['name']}: {key}", value))
        elif key != "name":
            single.add_row(key, _text(value))
    if single.row_count:
        console.print(single)


def _flat(tree: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in tree.items():
        name = f"{prefix}{key}"
        pairs += _flat(value, f"{name}: ") if isinstance(value, dict) else [(name, value)]
    return pairs


def _rows(title: str, rows: list[dict[str, Any]]) -> Table:
    """One line per quantity and one column per row: names are long, rows are few."""
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column("quantity")
    for _ in rows:
        table.add_column(justify="right")
    for quantity in rows[0]:
        table.add_row(quantity, *(_text(row.get(quantity)) for row in rows))
    return table


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def main(wanted: list[str]) -> int:
    """Run the named benchmarks, or all; 2 for an unknown name, 1 when one of them fails."""
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; known: {', '.join(names())}", file=sys.stderr)
        return 2
    os.environ.update(SINGLE_THREADED)
    console = Console(stderr=True)
    failed = False
    for name in wanted or names():
        try:
            result = importlib.import_module(f"benchmarks.{name}").run()
        except Exception as error:  # One broken benchmark must not hide the others.
            traceback.print_exc()
            result, failed = {"name": name, "error": repr(error)}, True
        show(result, console)
        print(json.dumps(result), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
