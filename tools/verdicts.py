"""`python -m tools.verdicts RESULTS...`: the table of verdicts of README and docs/verdicts.json.

Reads results folders, keeps for every figure its best reproduction (paper scale before quick), and
writes how many claims were confirmed. What is on file stays where the folders have nothing at its
scale or above. A test keeps the README equal to the file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "verdicts.json"
README = ROOT / "README.md"
START, END = "<!-- verdicts -->", "<!-- end of verdicts -->"
OUTCOMES = ("confirmed", "not confirmed", "inconclusive", "not judged")


def collect(folders: list[Path]) -> dict[str, Any]:
    """Figure -> scale, number of seeds and outcomes of its best reproduction."""
    from headcount.lab import SCALES, Store
    from headcount.report.site import figure_results

    found = [r for folder in folders for r in figure_results(Store(folder)) if r.scale != "smoke"]
    found.sort(key=lambda r: (-SCALES.index(r.scale), len(r.unusual)))
    best: dict[str, Any] = {}
    for result in found:
        entry = {"scale": result.scale, "seeds": len(result.content["seeds"])}
        best.setdefault(result.id, entry | {"outcomes": dict(result.outcomes)})
    return dict(sorted(best.items()))


def merged(before: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """What is on file, with what was found in its place where that is of its scale or larger."""
    from headcount.lab import SCALES

    def scale(entry: dict[str, Any]) -> int:
        return SCALES.index(entry["scale"])

    kept = {name: e for name, e in before.items() if scale(e) > scale(found.get(name, e))}
    return dict(sorted((before | found | kept).items()))


def table(verdicts: dict[str, Any]) -> str:
    """One row for each figure, in Markdown."""
    from headcount.lab import figures

    rows = [f"| figure | what it shows | scale, seeds | {' | '.join(OUTCOMES)} |"]
    rows.append("|---" * (3 + len(OUTCOMES)) + "|")
    for name, entry in verdicts.items():
        counts = " | ".join(str(entry["outcomes"].get(outcome, 0)) for outcome in OUTCOMES)
        where = f"{entry['scale']}, {entry['seeds']}"
        rows.append(f"| `{name}` | {figures[name].title} | {where} | {counts} |")
    return "\n".join(rows)


def with_table(readme: str, verdicts: dict[str, Any]) -> str:
    """The README with this table between its marks."""
    before, _, rest = readme.partition(START)
    return f"{before}{START}\n{table(verdicts)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    chosen = merged(json.loads(FILE.read_text()), collect([Path(f) for f in sys.argv[1:]]))
    FILE.write_text(json.dumps(chosen, indent=1) + "\n", encoding="utf-8")
    README.write_text(with_table(README.read_text(encoding="utf-8"), chosen), encoding="utf-8")
