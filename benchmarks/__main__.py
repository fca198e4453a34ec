"""`python -m benchmarks [--strict] [names...]`: one JSON object per benchmark on stdout.

Tables go to stderr, and at the end one line for each target: met or missed. `--strict` makes a
missed target an error.
"""

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

ON_REQUEST = ("lab_cost", "lab_scale", "lab_workers", "lemmas", "power", "wu2023_widths")
"""Benchmarks that take long, up to hours: run when named."""


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
            if key != "targets":
                console.print(_rows(f"{result['name']}: {key}", value))
        elif key not in ("name", "targets"):
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


def line(benchmark: str, target: dict[str, Any]) -> str:
    """One target as a sentence: met or missed, the measured value, the limits."""
    words = {"at_least": "at least", "at_most": "at most", "aim": "hoped for"}
    limits = ", ".join(f"{word} {target[key]:g}" for key, word in words.items() if key in target)
    outcome = "met" if target["met"] else "missed"
    return f"{outcome:6}  {benchmark}: {target['name']} = {target['value']:.4g} ({limits})"


def run(name: str) -> dict[str, Any]:
    """The result of one benchmark; one that breaks says so and does not hide the others."""
    try:
        return importlib.import_module(f"benchmarks.{name}").run()
    except Exception as error:
        traceback.print_exc()
        return {"name": name, "error": repr(error)}


def main(arguments: list[str]) -> int:
    """Run the named benchmarks, or all but the long ones.

    2 for an unknown name, 1 when one breaks or, with --strict, when a target is missed.
    """
    strict = "--strict" in arguments
    wanted = [argument for argument in arguments if argument != "--strict"]
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; known: {', '.join(names())}", file=sys.stderr)
        return 2
    os.environ.update(SINGLE_THREADED)
    console = Console(stderr=True)
    results = []
    for name in wanted or [name for name in names() if name not in ON_REQUEST]:
        result = run(name)
        results.append(result)
        show(result, console)
        print(json.dumps(result), flush=True)
    judged = [(result["name"], one) for result in results for one in result.get("targets", [])]
    for name, one in judged:
        print(line(name, one), file=sys.stderr)
    broken = any("error" in result for result in results)
    missed = any(not one["met"] for _, one in judged)
    return int(broken or (strict and missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
