"""The 30 lemma files of examples/lemmas: 15 true and tight, 15 false by a factor of 1.02 to 1.5.

    python -m benchmarks.lemmas [names ...]     measure, write docs/lemmas.json and the table

The names of the files say which is which; the score counts false lemmas whose violation was found
and proved, and true ones for which one was claimed. Seconds are those of the process (one core);
the first lemma also pays for starting JAX. Files that were not named keep their rows.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._timing import target
from headcount.theory import falsify
from headcount.theory.lemma_files import lemmas_of

ROOT = Path(__file__).resolve().parent.parent
FILES = ROOT / "examples" / "lemmas"
STORE = ROOT / "docs" / "lemmas.json"
PAGE = ROOT / "docs" / "lemmas.md"
START, END = "<!-- score: written by benchmarks/lemmas.py -->", "<!-- end of the score -->"

Row = dict[str, Any]


def measure(file: Path, seed: int) -> Row:
    """One lemma with the default budget."""
    (lemma,) = lemmas_of(str(file))
    started = time.process_time()
    found = falsify(lemma, seed=seed)
    return {
        "lemma": file.stem,
        "worst_ratio": found.worst_ratio,
        "violated": found.violated,
        "proved": found.proved,
        "sizes": dict(found.sizes),
        "instance": found.shown.text if found.shown is not None else "",
        "seconds": time.process_time() - started,
    }


def score(rows: list[Row]) -> dict[str, Any]:
    """How many of the false ones were found, how many of the true ones were accused."""
    false = [row for row in rows if row["lemma"].startswith("false_")]
    true = [row for row in rows if row["lemma"].startswith("true_")]
    return {
        "false": len(false),
        "found": sum(row["violated"] and row["proved"] for row in false),
        "true": len(true),
        "accused": sum(row["violated"] for row in true),
        "median_seconds": statistics.median(row["seconds"] for row in rows),
    }


def table(rows: list[Row]) -> str:
    """The score and one line for each lemma, as Markdown."""
    total = score(rows)
    lines = [
        f"Found and proved: {total['found']} of {total['false']} false lemmas; accused: "
        f"{total['accused']} of {total['true']} true ones; median "
        f"{total['median_seconds']:.1f} s of one core.",
        "",
        "| lemma | worst ratio | answer | smallest counterexample | s |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        words = {(True, True): "false, proved", (True, False): "false"}
        answer = words.get((row["violated"], row["proved"]), "survived")
        example = row["instance"].split(": left side")[0]
        shown = f"`{example[:90]}{'...' if len(example) > 90 else ''}`" if example else "-"
        lines.append(
            f"| `{row['lemma']}` | {row['worst_ratio']:.5f} | {answer} | {shown} "
            f"| {row['seconds']:.1f} |"
        )
    return "\n".join(lines)


def run(names: Sequence[str] = (), *, seed: int = 0) -> dict[str, Any]:
    """Measure the named files, or all, and write docs/lemmas.json and the table of the page."""
    known = {row["lemma"]: row for row in json.loads(STORE.read_text())} if STORE.exists() else {}
    files = sorted(FILES.glob("*_*.py"))
    for file in files:
        if names and file.stem not in names:
            continue
        row = known[file.stem] = measure(file, seed)
        print(row, file=sys.stderr, flush=True)
    rows = [known[file.stem] for file in files if file.stem in known]
    STORE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    text = f"{before}{START}\n{table(rows)}\n{END}{rest.split(END)[1]}"
    PAGE.write_text(text, encoding="utf-8")
    total = score(rows)
    return {
        "name": "lemmas",
        "rows": rows,
        "targets": [
            target("false lemmas found and proved", total["found"], at_least=14),
            target("true lemmas accused", total["accused"], at_most=0),
            target("median seconds", total["median_seconds"], at_most=20),
        ],
    }


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1:])["targets"], indent=1))
