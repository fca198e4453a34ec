"""The power of the falsifier: claims made false on purpose, and whether a cold search finds out.

For each claim, r* is the largest ratio left/right over everything on file (constructions and
corpus; a warm search where there is no corpus yet). The bound is scaled to 0.9 of r*, which makes
the claim false, and `falsify(..., cold=True)` searches it without any of what is on file.

    python -m benchmarks.power [claims or papers ...]        measure, write docs/power.md
    python -m benchmarks.power --update-corpus [claims ...]  warm searches, write the corpus
    python -m benchmarks.power --renew --missing             both, where there is no row yet

Claims that were not named keep their rows in docs/power.json, from which the page is made.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks._timing import in_new_process, target
from headcount.core import float64, stream
from headcount.theory import (
    Claim,
    Kind,
    claims,
    falsify,
    judge,
)
from headcount.theory._claim import generator
from headcount.theory._corpus import known_instances, write_corpus
from headcount.theory._falsify import BUDGETS, settle
from headcount.theory._falsify import candidates as searched
from headcount.theory._frequency import clopper_pearson
from headcount.theory._prove import ratio_in_balls
from headcount.theory._shrink import fewer_bits
from headcount.theory._tightest import write_row

SCALE = 0.9
"""The bound is scaled to this share of the best known ratio."""
TIGHT = 0.5
"""A claim whose best known ratio is above this counts."""
GOAL = 0.95
SAME = 1e-6
"""Ratios this close, relatively, are equally bad."""
CASES, REPETITIONS = 400, 4000
"""Cases, and draws of each, from which the tightness of a high-probability claim is estimated."""

ROOT = Path(__file__).resolve().parent.parent
STORE = ROOT / "docs" / "power.json"
PAGE = ROOT / "docs" / "power.md"

Row = dict[str, Any]


class Best(NamedTuple):
    """The worst that is known: left/right there, where it comes from, the bound's sign."""

    ratio: float
    where: str
    negative: bool = False

    @property
    def factor(self) -> float:
        """What the right side is multiplied with, so that `ratio` becomes 1 / SCALE.

        A lower bound is written with both sides negative: it is tightened by growing.
        """
        scaled = SCALE * self.ratio
        return 1 / scaled if self.negative else scaled


def measurable() -> list[str]:
    """The claims that can be scaled: inequalities about instances or about frequencies."""
    searched = ((name, claim) for name, claim in claims.items() if claim.kind is not Kind.IDENTITY)
    return [name for name, claim in searched if claim.families or claim.experiment is not None]


def on_file(claim: Claim) -> list[tuple[str, Any]]:
    """The claim's constructions and its corpus, each with a name."""
    stored = {"construction": claim.targets(), "known": known_instances(claim)}
    return [
        (f"{origin} {index + 1}", instance)
        for origin, instances in stored.items()
        for index, instance in enumerate(instances)
    ]


def ratio_at(claim: Claim, variant: str, where: str, instance: Any) -> Best:
    """left/right on an instance; minus infinity where the claim does not apply.

    By the slow twin in balls where that can tell: in float64 the worst may be all rounding.
    """
    verdict = judge(claim, instance, variant)
    ratio = verdict.ratio
    if math.isfinite(ratio) and claim.kind is Kind.DETERMINISTIC:
        exact = ratio_in_balls(claim, variant, instance)
        ratio = ratio if exact is None else exact
    if not math.isfinite(ratio):
        return Best(-math.inf, where)
    return Best(ratio, where, verdict.rhs < 0)


def best_instance(claim: Claim, variant: str, *, budget: str, seed: int) -> Best:
    """r* of a claim about instances."""
    stored = on_file(claim)
    if not known_instances(claim):
        stored.append(("warm search", falsify(claim, variant, budget=budget, seed=seed).worst))
    found = [ratio_at(claim, variant, *entry) for entry in stored if entry[1] is not None]
    return max(found, key=lambda best: best.ratio, default=Best(0.0, "nothing is known"))


def best_frequency(claim: Claim, variant: str, *, seed: int) -> Best:
    """r* of a claim about probabilities: the largest factor at which a case fails too often.

    In a case with N draws that is the k-th largest ratio left/right, where k failures of N are the
    fewest whose binomial interval lies above delta.
    """
    experiment = claim.experiment
    assert experiment is not None
    rng = generator(stream(seed, "power", claim.id))
    sides = jax.jit(jax.vmap(lambda instance: experiment.sides(instance, variant)[:2]))
    found = []
    for case in experiment.searched(rng, CASES if experiment.vary is not None else 0):
        with float64():
            lhs, rhs = sides(experiment.draw(case, rng, REPETITIONS))
        ratios = np.sort(np.broadcast_to(lhs / rhs, (REPETITIONS,)))[::-1]
        delta = experiment.delta(case)
        enough = next(
            (k for k in range(1, REPETITIONS + 1) if clopper_pearson(k, REPETITIONS).low > delta),
            None,
        )
        if enough is not None:
            found.append(Best(float(ratios[enough - 1]), str(dict(case))))
    return max(
        found, key=lambda best: best.ratio, default=Best(0.0, "no case can fail often enough")
    )


def measure(name: str, budget: str, seed: int, renew: bool = False) -> Row:
    """One row of the table: r*, and whether a cold search finds the scaled claim false.

    With `renew` the corpus is updated first, with another seed than the cold search has: what it
    finds must not be its own yardstick.
    """
    claim = claims[name]
    if renew and claim.families:
        update(name, budget, seed + 1, sizes=0)
    row: Row = {"claim": name, "variant": claim.default}
    if claim.families:
        claim = replace(claim, experiment=None)
        best = best_instance(claim, claim.default, budget=budget, seed=seed + 1)
    else:
        best = best_frequency(claim, claim.default, seed=seed + 1)
        experiment = claim.experiment
        assert experiment is not None
        if experiment.vary is not None:  # the declared cases are constructions
            claim = replace(claim, experiment=replace(experiment, cases=()))
    row |= {"kind": str(claim.kind), "best": best.ratio, "where": best.where}
    row["tight"] = best.ratio > TIGHT
    if not 0 < best.ratio < math.inf:
        return row | {"found": None, "seconds": 0.0}
    scaled = claim.with_bound_scaled(best.factor)
    began = time.process_time()
    found = falsify(scaled, budget=budget, seed=seed, cold=True)
    return row | {
        "found": found.violated,
        "proved": found.proof is not None and found.proof.proved,
        # Of a lower bound, both of whose sides are negative, the factor is no ratio.
        "reached": found.worst_ratio * best.factor
        if claim.families and not best.negative
        else None,
        "instances": found.instances,
        "seconds": time.process_time() - began,
    }


def update(name: str, budget: str, seed: int, sizes: int | None = None) -> Row:
    """Warm searches of every variant not known to fail; the worst of each is put on file."""
    claim = replace(claims[name], experiment=None)  # one object: what is compiled is used again
    plan = BUDGETS[budget]
    plan = plan if sizes is None else replace(plan, sizes=sizes)
    variants = [key for key, form in claim.variants.items() if not form.fails]
    candidates = on_file(claim)
    violated = []
    # One search: it climbs and scores every variant, whichever is asked for.
    everything, _ = searched(claim, claim.default, plan, seed, False, lambda line: None)
    for variant in variants:
        found = settle(claim, variant, everything)
        if found.violated:
            violated.append(f"{variant}: {found.message}")
        elif found.worst is not None:
            candidates.append((f"search of {variant}", found.worst))
    kept, ratios = worst_of_each(claim, variants, candidates)
    write_corpus(claim, kept)
    write_row(claim)
    return {"claim": name, "kept": len(kept), "ratios": ratios, "violated": violated}


def worst_of_each(
    claim: Claim, variants: Sequence[str], candidates: Sequence[tuple[str, Any]]
) -> tuple[list[Any], dict[str, float]]:
    """For each variant an instance as bad as any candidate; one may serve several variants.

    Constructions and instances on file come first among the candidates, so they stay unless a
    search has found something worse.
    """
    kept: list[int] = []
    ratios: dict[str, float] = {}
    for variant in variants:
        found = [ratio_at(claim, variant, *candidate).ratio for candidate in candidates]
        ratios[variant] = max(found, default=-math.inf)
        as_bad = [k for k, r in enumerate(found) if r >= ratios[variant] * (1 - SAME) and r > 0]
        if as_bad and not set(as_bad) & set(kept):
            kept.append(as_bad[0])
    return [shortened(claim, variants, candidates[k][1]) for k in kept], ratios


def shortened(claim: Claim, variants: Sequence[str], instance: Any) -> Any:
    """The instance with as few digits as leave it as bad under every variant."""
    before = [ratio_at(claim, variant, "", instance).ratio for variant in variants]
    for bits in (8, 12, 16, 20, 26, 32, 40):
        shorter = jax.tree.map(fewer_bits(bits), instance)
        after = [ratio_at(claim, variant, "", shorter).ratio for variant in variants]
        if all(new >= old * (1 - SAME) for new, old in zip(after, before, strict=True)):
            return shorter
    return instance


def page(rows: Sequence[Row]) -> str:
    """docs/power.md."""
    lines = [
        "# Power of the falsifier",
        "",
        "Each claim was made false on purpose: its bound is scaled to 0.9 of the best known ratio "
        "left/right, and `headcount falsify` searches it at the default budget from a cold start, "
        "without the claim's constructions and without the instances on file. A search that does "
        "not find the violation would also miss an error of ten percent in the claim.",
        "",
        f"**{summary(rows)}**",
        "",
        *(f"- `{paper}`: {summary(own)}" for paper, own in by_paper(rows).items()),
        "",
        "Seconds are processor time of the cold search and its proof; with "
        "`--renew` its programs are compiled already, which takes 5 to 20 s more. Identities, and "
        "claims about orders of magnitude, have no constant to scale and are not in the table.",
        "",
        "| claim | variant | best known ratio | cold search reaches | found within budget | s |",
        "|---|---|---|---|---|---|",
        *(_line(row) for row in rows),
        "",
        "Written by `make power` (`python -m benchmarks.power`); do not edit it by hand. Claims "
        "judged by frequency have no ratio to reach: their best known ratio is the largest factor "
        "on the bound at which some case fails significantly more often than delta.",
    ]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    found = {True: "yes", False: "**no**", None: "not scaled"}[row["found"]]
    reached = "" if row.get("reached") is None else f"{row['reached']:.4f}"
    cells = (f"`{row['claim']}`", row["variant"], f"{row['best']:.4f}", reached, found)
    return f"| {' | '.join(cells)} | {row['seconds']:.0f} |"


def _counts(rows: Sequence[Row]) -> tuple[int, int]:
    tight = [row for row in rows if row["tight"] and row["found"] is not None]
    return sum(row["found"] for row in tight), len(tight)


def by_paper(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each paper."""
    papers = dict.fromkeys(row["claim"].split("/")[0] for row in rows)
    return {p: [row for row in rows if row["claim"].startswith(f"{p}/")] for p in papers}


def summary(rows: Sequence[Row]) -> str:
    """The one sentence."""
    return "Found {} of {} tight claims (best known ratio above 0.5).".format(*_counts(rows))


def _each(
    function: Callable[..., Row], names: Sequence[str], processes: int, **arguments: Any
) -> Iterator[Row]:
    """The rows of all names as they come, each from a process of its own; with none, from here."""
    if not processes:
        for name in names:
            row = function(name=name, **arguments)
            print(json.dumps(row), file=sys.stderr, flush=True)
            yield row
        return
    with ThreadPoolExecutor(processes) as pool:
        jobs = {pool.submit(in_new_process, function, name=n, **arguments): n for n in names}
        for job in as_completed(jobs):
            try:
                row = job.result()
            except RuntimeError as error:  # its own message is on stderr already
                print(f"{jobs[job]}: {error}", file=sys.stderr)
                continue
            print(json.dumps(row), file=sys.stderr, flush=True)
            yield row


def rows_on_file() -> list[Row]:
    """What docs/power.json holds."""
    return json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else []


def record(row: Row) -> None:
    """Put a row into docs/power.json in place of the claim's last one, and write the page."""
    table = {known["claim"]: known for known in (*rows_on_file(), row)}
    rows = [table[name] for name in measurable() if name in table]
    STORE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(rows), encoding="utf-8")


def run(
    names: Sequence[str] = (),
    *,
    processes: int = 2,
    budget: str = "default",
    seed: int = 0,
    renew: bool = False,
) -> dict[str, Any]:
    """Measure the named claims, or all, and write docs/power.json and docs/power.md."""
    wanted = list(names) or measurable()
    rows = []
    for row in _each(measure, wanted, processes, budget=budget, seed=seed, renew=renew):
        record(row)  # at once: a run of all claims takes hours
        rows.append(row)
    found, tight = _counts(rows)
    share = found / tight if tight else math.nan
    return {
        "name": "power",
        "budget": budget,
        "rows": rows,
        "broken": sorted(set(wanted) - {row["claim"] for row in rows}),
        "targets": [target(f"share of {tight} tight claims found", share, at_least=GOAL)],
    }


def _named(given: Sequence[str]) -> list[str]:
    """Full ids from ids, their last parts, or a paper's key."""
    known = measurable()
    chosen = []
    for name in given:
        own = [full for full in known if name in (full, *full.split("/", 1))]
        if not own:
            raise SystemExit(f"no claim {name} can be measured; known: {', '.join(known)}")
        chosen += own
    return chosen


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 1 when a claim's process broke or a corpus update met a violation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.power", description=__doc__)
    parser.add_argument("claims", nargs="*", help="ids, their last parts, or papers; all if none")
    parser.add_argument("--update-corpus", action="store_true")
    parser.add_argument("--renew", action="store_true", help="update the corpus, then measure")
    parser.add_argument("--missing", action="store_true", help="only claims without a row yet")
    parser.add_argument("--processes", type=int, default=2, help="0: all in this process")
    parser.add_argument("--budget", choices=list(BUDGETS), default="default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", type=int, help="changes of size when the corpus is updated")
    given = parser.parse_args(arguments)
    names = _named(given.claims)
    if given.missing:
        known = {row["claim"] for row in rows_on_file()}
        names = [name for name in names or measurable() if name not in known]
    options = {"processes": given.processes, "budget": given.budget, "seed": given.seed}
    if given.update_corpus:
        wanted = [name for name in names or measurable() if claims[name].families]
        rows = list(_each(update, wanted, **options, sizes=given.sizes))
        print(json.dumps({"name": "corpus", "rows": rows}))
        return int(len(rows) < len(wanted) or any(row["violated"] for row in rows))
    result = run(names, **options, renew=given.renew)
    print(json.dumps(result))
    print(summary(result["rows"]), file=sys.stderr)
    return int(bool(result["broken"]))


if __name__ == "__main__":
    # Its functions are called by name in other processes, which know the module as this.
    from benchmarks import power

    sys.exit(power.main())
