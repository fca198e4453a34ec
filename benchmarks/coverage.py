"""How often intervals hold the truth and verdicts err: every kind, 3, 5 and 10 seeds.

The truth is known and lies exactly at the edge of what is expected, where errors are likeliest.
The noise is normal, log-normal (skewed: sigma = 1) or Student's with 3 degrees of freedom (heavy
tails). `python -m benchmarks.coverage [REPETITIONS]` prints the table of docs/lab.md and, as its
last line, the rows as JSON.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from benchmarks._timing import target
from headcount import lab

SEEDS = (3, 5, 10)
REPETITIONS = 2000
SKEWED = math.exp(0.5)
"""The mean of a log-normal number with sigma = 1."""
X = np.array([8.0, 16.0, 32.0, 64.0])

Rng: TypeAlias = np.random.Generator
Draw: TypeAlias = Callable[[Rng, tuple[int, ...]], Any]

NOISES: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "skewed": lambda rng, shape: rng.lognormal(size=shape) - SKEWED,
    "heavy tails": lambda rng, shape: rng.standard_t(3, size=shape),
}


def _threshold(rng: Rng, n: int, draw: Draw) -> lab.Finding:
    """A mean of positive numbers, at the edge: 5 + noise, or a log-normal number itself."""
    values, truth = draw(rng, (n,)), 5.0
    if draw is NOISES["skewed"]:
        truth = SKEWED
    return lab.threshold("at the edge", truth + values, above=truth)


def _threshold_on_logs(rng: Rng, n: int, draw: Draw) -> lab.Finding:
    return lab.threshold("at the edge", np.exp(0.3 * draw(rng, (n,))), above=1.0, scale="log")


def _difference(rng: Rng, n: int, draw: Draw) -> lab.Finding:
    return lab.difference("at the edge", draw(rng, (n,)), draw(rng, (n,)))


def _separation(rng: Rng, n: int, draw: Draw) -> lab.Finding:
    a, b = np.exp(0.3 * draw(rng, (2, n)))
    return lab.separation("at the edge", 2 * a, b, factor=2.0)


def _reference(rng: Rng, n: int, draw: Draw) -> lab.Finding:
    """Against the mean of two other runs of which the standard error is known."""
    other = draw(rng, (2,))
    apart = lab.difference_from(draw(rng, (n,)), other.mean(), other.std(ddof=1) / math.sqrt(2), 2)
    return lab.inside("at the edge", apart, (0.0, math.inf))


def _exponent(rng: Rng, n: int, draw: Draw) -> lab.Finding:
    rows = X**-0.5 * np.exp(0.3 * draw(rng, (n, len(X))))
    return lab.exponent("at the edge", X, rows, (-0.5, 0.0))


def _slope(rng: Rng, n: int, draw: Draw) -> lab.Finding:
    """The interval alone: an exponent that fails shows the half that decided."""
    rows = X**-0.5 * np.exp(0.3 * draw(rng, (n, len(X))))
    return lab.inside("at the edge", lab.loglog_slope(X, rows).slope, (-0.5, 0.0))


def _monotone(rng: Rng, n: int, draw: Draw) -> lab.Finding:
    return lab.monotone("nothing but noise", X, draw(rng, (n, len(X))), "increasing")


def _two_points(rng: Rng, n: int, draw: Draw) -> lab.Finding:
    return lab.monotone("nothing but noise", X[:2], draw(rng, (n, 2)), "increasing")


def _everywhere(rng: Rng, n: int, draw: Draw) -> lab.Finding:
    a, b = np.exp(0.3 * draw(rng, (2, n, 3)))
    return lab.everywhere("at the edge", a, b, "abc")


def _share(rng: Rng, n: int, draw: Draw) -> lab.Finding:
    """Half of all runs do it, by their median."""
    middle = 1.0 - SKEWED if draw is NOISES["skewed"] else 0.0
    return lab.share("at the edge", draw(rng, (n,)), above=middle)


KINDS: dict[str, tuple[Callable[[Rng, int, Draw], lab.Finding], float | None]] = {
    "threshold": (_threshold, math.nan),
    "threshold on logs": (_threshold_on_logs, 1.0),
    "difference": (_difference, 0.0),
    "separation": (_separation, 2.0),
    "difference_from 2 seeds": (_reference, 0.0),
    "slope": (_slope, -0.5),
    "exponent": (_exponent, None),
    "monotone, 4 points": (_monotone, None),
    "monotone, 2 points": (_two_points, None),
    "everywhere, 3 points": (_everywhere, None),
    "share": (_share, 0.5),
}
"""The verdict, and the true value; none where the finding shows the worst of several."""
_ON_LOGS = ("threshold on logs", "separation", "slope", "exponent", "everywhere, 3 points")


def row(kind: str, noise: str, n: int, repetitions: int) -> dict[str, Any]:
    """Coverage of the interval, and how often the verdict is confirmed or refuted by chance."""
    verdict, truth = KINDS[kind]
    rng, draw = np.random.default_rng([n, len(kind), len(noise)]), NOISES[noise]
    if noise == "skewed" and kind in _ON_LOGS:  # of which exp() is log-normal to begin with

        def draw(rng: Rng, shape: tuple[int, ...]) -> Any:
            return rng.normal(size=shape) / 0.3

    found = [verdict(rng, n, draw) for _ in range(repetitions)]
    if truth is not None and math.isnan(truth):
        truth = SKEWED if noise == "skewed" else 5.0
    held = [truth is not None and f.interval[0] <= truth <= f.interval[1] for f in found]
    outcomes = [f.outcome for f in found]
    return {
        "kind": kind,
        "noise": noise,
        "seeds": n,
        "coverage": None if truth is None else float(np.mean(held)),
        "confirmed": outcomes.count(lab.CONFIRMED) / repetitions,
        "refuted": outcomes.count(lab.NOT_CONFIRMED) / repetitions,
    }


def survivors(n: int, repetitions: int) -> dict[str, Any]:
    """Truth 1.65, runs above 2 die, and the claim is that the mean is below 1.3."""
    rng, found = np.random.default_rng(n), []
    for _ in range(repetitions):
        values = rng.lognormal(size=n)
        found.append(lab.threshold("below", np.where(values > 2, np.nan, values), below=1.3))
    wrong = [f.outcome for f in found]
    return {
        "kind": "runs that die",
        "noise": "skewed",
        "seeds": n,
        "coverage": None,
        "confirmed": wrong.count(lab.CONFIRMED) / repetitions,
        "refuted": wrong.count(lab.NOT_CONFIRMED) / repetitions,
    }


def rows(repetitions: int, seeds: Sequence[int] = SEEDS) -> list[dict[str, Any]]:
    """Every kind, noise and number of seeds."""
    return [
        *(row(k, noise, n, repetitions) for k in KINDS for noise in NOISES for n in seeds),
        *(survivors(n, repetitions) for n in seeds),
    ]


def worst(found: Sequence[dict[str, Any]], noise: str) -> tuple[float, float]:
    """The least coverage, and the largest chance of a wrong verdict."""
    own = [one for one in found if one["noise"] == noise]
    covered = [one["coverage"] for one in own if one["coverage"] is not None]
    return min(covered), max(one["confirmed"] + one["refuted"] for one in own)


GOALS = {"normal": (0.94, 0.06), "skewed": (0.92, 0.08), "heavy tails": (0.93, 0.07)}
"""Least coverage and most wrong verdicts; 2,000 repetitions have a standard error of .005."""


def run(repetitions: int = REPETITIONS) -> dict[str, Any]:
    """All rows and the targets."""
    found = rows(repetitions)
    targets = []
    for noise, (covered, wrong) in GOALS.items():
        coverage, errors = worst(found, noise)
        targets.append(target(f"coverage, {noise}", coverage, at_least=covered))
        targets.append(target(f"wrong verdicts at the edge, {noise}", errors, at_most=wrong))
    return {"name": "coverage", "rows": found, "targets": targets}


def table(found: Sequence[dict[str, Any]]) -> str:
    """Markdown: a line for each kind and noise, the seeds side by side."""
    lines = ["| verdict | noise | coverage at 3, 5, 10 seeds | wrong verdicts at the edge |",
             "|---|---|---|---|"]  # fmt: skip
    pairs = dict.fromkeys((one["kind"], one["noise"]) for one in found)
    for kind, noise in pairs:
        own = [one for one in found if (one["kind"], one["noise"]) == (kind, noise)]
        covered = ", ".join("-" if r["coverage"] is None else f"{r['coverage']:.2f}" for r in own)
        wrong = ", ".join(f"{r['confirmed'] + r['refuted']:.1%}" for r in own)
        lines.append(f"| {kind} | {noise} | {covered} | {wrong} |")
    return "\n".join(lines)


if __name__ == "__main__":
    measured = rows(int(sys.argv[1]) if sys.argv[1:] else REPETITIONS)
    print(table(measured))
    print(json.dumps(measured))
