"""How many planted bugs the tests catch.

    python -m tools.mutants [--sample N] [--seed NAME] [--workers N] [--survivors] [files ...]

Each mutant is one small wrong change of one source file (`tools/mutations.py`), made in a copy of
the tree; one of the tests that likely concern it must fail, and pass again without the change.
Which these are is told by the words that they share with the changed function and its file
(`tools/likeness.py`): not all tests run, so the score can be too low, and not too high. Timeouts do
not count, nor do the survivors that are argued to be equivalent (`tools/equivalent.json`). All
mutants are put in a random order by hashing their names with the seed and tried in that order: a
run that was cut short is a random sample too, and changes elsewhere in the sources leave it as it
is. One draw is kept in docs/mutants.json, from which docs/mutants.md is made; another seed begins
another one. The score is that of the first try. Survivors that are tried again, when there are
tests for them, do not change it. Files that are named are looked at and not written down.

A draw works in a folder of its own, on a copy of the tree as it was at the start: the same command
goes on where it was cut short, whatever has changed since. --afresh takes a new copy.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from scipy import stats

from tools.bench import Workshop, measure
from tools.mutations import Mutant, mutants_of

ROOT = Path(__file__).resolve().parent.parent
STORE, PAGE = ROOT / "docs" / "mutants.json", ROOT / "docs" / "mutants.md"
EQUIVALENT = ROOT / "tools" / "equivalent.json"
GOAL = 0.85
PLACES = (
    *("lab", "papers", "theory", "training"),
    *("kernels/_lambda_min.py", "kernels/_margin.py"),
)
CONCERNING = "share most words with the changed function and its file"
"""Which tests are tried."""
DRAWN = ("lab/_drawing.py",)
"""What only draws."""


def sources(root: Path) -> list[str]:
    """The files that are mutated."""
    package = root / "src" / "headcount"
    above = [package / name for name in PLACES if (package / name).exists()]
    found = [p for one in above for p in ([one] if one.is_file() else one.rglob("*.py"))]
    paths = {str(p.relative_to(package)) for p in found if p.name != "__init__.py"}
    return sorted(paths - set(DRAWN))


def chosen(root: Path, paths: Sequence[str], sample: int | None, seed: str) -> list[Mutant]:
    """The mutants of the files in the random order of a seed, or the first so many of them."""
    package = root / "src" / "headcount"
    every = [m for path in paths for m in mutants_of(path, (package / path).read_text())]
    drawn = sorted(every, key=lambda m: hashlib.sha256(f"{seed} {m.name}".encode()).digest())
    return drawn[:sample]


def equivalents() -> dict[str, str]:
    """Survivors that no test can tell from the original, each with the reason."""
    return json.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}


def score(rows: Sequence[dict[str, Any]]) -> tuple[int, int]:
    """Killed, and killed or survived, at the first try; without timeouts and equivalents."""
    same = equivalents()
    counted = [r for r in rows if r["outcome"] != "timeout" and r["mutant"] not in same]
    return sum(row["outcome"] == "killed" for row in counted), len(counted)


def interval(killed: int, counted: int) -> tuple[float, float]:
    """The exact 95 % interval of the share that is killed."""
    low = float(stats.beta.ppf(0.025, killed, counted - killed + 1)) if killed else 0.0
    above = killed < counted
    return low, float(stats.beta.ppf(0.975, killed + 1, counted - killed)) if above else 1.0


def page(draw: dict[str, Any]) -> str:
    """docs/mutants.md."""
    rows = draw["rows"]
    killed, counted = score(rows)
    low, high = interval(killed, counted)
    same = equivalents()
    late = sum(row["outcome"] == "timeout" for row in rows)
    lines = [
        "# Planted bugs",
        "",
        f"One small wrong change at a time is made in {_listed(draw.get('places', PLACES))}: "
        "comparisons, signs, operations, constants, order of arguments; of figures in what they "
        "compute and judge, not in what they draw or how large a scale is. Of the tests that "
        f"{draw.get('concerning', CONCERNING)} one must fail.",
        "",
        f"**Killed {killed} of {counted} mutants ({100 * killed / max(counted, 1):.0f} %; "
        f"95 % interval {100 * low:.0f} to {100 * high:.0f} %).** "
        f"Not counted: {late} that ran out of time, and the equivalent ones below. "
        f"They are the first {len(rows)} of the {draw['of']} mutants in the random order of the "
        f'seed "{draw["seed"]}", measured once each. No test was written with this order in view '
        "before that: the share estimates that of all mutants. Survivors that were tried again "
        "later are marked and still count as survivors.",
        "",
        *_earlier(draw),
        "| folder | killed | survived | equivalent | timeout |",
        "|---|---|---|---|---|",
    ]
    for folder in sorted({_folder(row) for row in rows}):
        own = [row for row in rows if _folder(row) == folder]
        kinds = [
            sum(r["outcome"] == "killed" for r in own),
            sum(r["outcome"] == "survived" and r["mutant"] not in same for r in own),
            sum(r["outcome"] == "survived" and r["mutant"] in same for r in own),
            sum(r["outcome"] == "timeout" for r in own),
        ]
        lines.append(f"| `{folder}` | {' | '.join(map(str, kinds))} |")
    lines += ["", "## Survivors", ""]
    alive = [r for r in rows if r["outcome"] == "survived" and r["mutant"] not in same]
    lines += [f"- `{row['mutant']}` ({row['kind']}){_reason(row)}" for row in alive] or ["None."]
    lines += ["", "## Judged equivalent", ""]
    present = [r["mutant"] for r in rows if r["outcome"] == "survived" and r["mutant"] in same]
    lines += [f"- `{name}`: {same[name]}" for name in present] or ["None."]
    lines += ["", "Written by `make mutants` (`python -m tools.mutants`); do not edit it by hand."]
    return "\n".join(lines) + "\n"


def _listed(places: Sequence[str]) -> str:
    return ", ".join(f"`{place}`" for place in places)


def _folder(row: dict[str, Any]) -> str:
    return row["mutant"].split(":")[0].rpartition("/")[0]


def _reason(row: dict[str, Any]) -> str:
    """Why a mutant survived, as docs/mutants.json says by hand; and whether it still does."""
    later = {"killed": ": killed by a test that was written since"}
    reason = f": {row['reason']}" if "reason" in row else ""
    return reason + later.get(row.get("again", ""), "")


def _earlier(draw: dict[str, Any]) -> list[str]:
    """A line on the draws before, whose survivors tests were written for."""
    before = draw.get("earlier", [])
    shown = [f"{d['killed']} of {d['counted']} (seed {d['seed']})" for d in before]
    return [f"Earlier draws, before tests for their survivors: {', '.join(shown)}.", ""] * bool(
        shown
    )


def draw_on_file() -> dict[str, Any]:
    """What docs/mutants.json holds."""
    return json.loads(STORE.read_text()) if STORE.exists() else {"seed": "", "of": 0, "rows": []}


def record(row: dict[str, Any], seed: str, names: Collection[str]) -> list[dict[str, Any]]:
    """Add a row to the draw; a second try is noted beside the first. Code that is gone leaves."""
    known = draw_on_file()
    table = {r["mutant"]: r for r in known["rows"]} if known["seed"] == seed else {}
    first = table.get(row["mutant"])
    table[row["mutant"]] = row if first is None else {**first, "again": row["outcome"]}
    rows = [table[name] for name in sorted(table) if name in names]
    earlier = known.get("earlier", [])
    if known["seed"] != seed and known["rows"]:
        killed, counted = score(known["rows"])
        earlier = [*earlier, {"seed": known["seed"], "killed": killed, "counted": counted}]
    how = known if known["seed"] == seed else {"places": PLACES, "concerning": CONCERNING}
    kept = {key: how[key] for key in ("places", "concerning") if key in how}
    draw = {"seed": seed, "of": len(names), **kept, "earlier": earlier, "rows": rows}
    half = STORE.with_suffix(".half")  # a draw that is cut short goes on from a whole file
    half.write_text(json.dumps(draw, indent=1) + "\n", encoding="utf-8")
    half.replace(STORE)
    PAGE.write_text(page(draw), encoding="utf-8")
    return rows


def _given(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("files", nargs="*", help="such as theory/_verdict.py; all if none is given")
    parser.add_argument("--sample", type=int, help="so many mutants, drawn at random")
    parser.add_argument("--seed", help="the name of the draw; that on file if none is given")
    parser.add_argument("--workers", type=int, default=1, help="mutants at a time")
    parser.add_argument("--survivors", action="store_true", help="try those of the draw again")
    parser.add_argument("--afresh", action="store_true", help="of the tree as it is now")
    parser.add_argument("--page", action="store_true", help="write docs/mutants.md, and no more")
    parser.add_argument("--folder", type=Path, help="where to work; in the temporary folder")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 when too many survive."""
    given = _given(arguments)
    known = draw_on_file()
    if given.page:
        PAGE.write_text(page(known), encoding="utf-8")
        return 0
    seed = given.seed or known["seed"] or "mutants"
    folder = given.folder or Path(tempfile.gettempdir()) / f"headcount-mutants-{seed}"
    if given.afresh or given.survivors or given.files:
        shutil.rmtree(folder, ignore_errors=True)
    shop = Workshop(folder, ROOT)
    rows = known["rows"] if known["seed"] == seed else []
    outcomes = {row["mutant"]: row["outcome"] for row in rows}
    mutants = chosen(shop.tree, given.files or sources(shop.tree), given.sample, seed)
    if given.survivors:
        alive = {name for name, outcome in outcomes.items() if outcome == "survived"}
        mutants = [m for m in mutants if m.name in alive - set(equivalents())]
    elif not given.files:
        mutants = [m for m in mutants if m.name not in outcomes]
    names = {mutant.name for mutant in chosen(shop.tree, sources(shop.tree), None, seed)}
    seen = []
    for row in measure(shop, mutants, given.workers):
        print(f"{row['outcome']:9s} {row['mutant']} {row['by']}", file=sys.stderr, flush=True)
        seen.append(row)
        rows = seen if given.files else record(row, seed, names)
    killed, counted = score(rows)
    print(f"killed {killed} of {counted}")
    return int(killed < GOAL * counted)


if __name__ == "__main__":
    sys.exit(main())
