"""Findings: a claim, the numbers that decide it, and one of four outcomes.

confirmed      the confidence interval lies inside the expected range
not confirmed  the interval lies outside
inconclusive   the interval straddles the edge, or there are too few seeds for an interval
not judged     the figure says that sizes or seeds like these cannot decide the claim
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Num

from ..core import Array, BadArgument, check_choice, check_positive
from ._statistics import (
    CONFIDENCE,
    Estimate,
    fitted_slope,
    loglog_slope,
    mean,
    paired_difference,
    trend,
)

if TYPE_CHECKING:
    import xarray as xr

CONFIRMED = "confirmed"
"""The interval lies inside the expected range."""
NOT_CONFIRMED = "not confirmed"
"""The interval lies outside the expected range."""
INCONCLUSIVE = "inconclusive"
"""The interval straddles the edge of the expected range, or there is none."""
NOT_JUDGED = "not judged"
"""The run is too small for the claim: fewer seeds or smaller sizes than it needs."""
OUTCOMES = (CONFIRMED, NOT_CONFIRMED, INCONCLUSIVE, NOT_JUDGED)
"""Every outcome of a finding."""


@dataclass(frozen=True)
class Finding:
    """What the data say about a claim; `sentence` holds the numbers that decided.

    `expected` is the range (low, high) in which the claim holds, infinite where it is open.
    """

    claim: str
    outcome: str
    value: float
    interval: tuple[float, float]
    expected: tuple[float, float]
    sentence: str

    def withheld(self, reason: str) -> Finding:
        """The same numbers without a judgement on them, which these sizes do not allow."""
        numbers = self.sentence.split(", lies ")[0]
        return replace(self, outcome=NOT_JUDGED, sentence=f"{reason}; {numbers}")

    def to_json(self) -> dict[str, Any]:
        """The five fields of the command line's JSON; `core.json_text` writes NaN as null."""
        return {
            "claim": self.claim,
            "outcome": self.outcome,
            "value": self.value,
            "interval": list(self.interval),
            "expected": list(self.expected),
        }


def inside(
    claim: str, estimate: Estimate, expected: tuple[float, float], quantity: str = "value"
) -> Finding:
    """The rule behind every verdict: where does the interval lie relative to the range?

    With a range around zero this is an equivalence test (two one-sided tests).
    """
    low, high = expected
    if not low <= high:
        raise BadArgument("expected", expected, "must be (low, high)", fix="swap the two numbers")
    outcome = _place(estimate, low, high)
    return Finding(
        claim=claim,
        outcome=outcome,
        value=estimate.value,
        interval=(estimate.low, estimate.high),
        expected=(low, high),
        sentence=_sentence(quantity, estimate, low, high, outcome),
    )


def exponent(
    claim: str,
    x: Num[Array, "point"],
    y: Num[Array, "seed point"],
    expected: tuple[float, float],
    confidence: float = CONFIDENCE,
) -> Finding:
    """The log-log slope of the mean of y against x lies in `expected`."""
    fit = loglog_slope(x, y, confidence)
    return inside(claim, fit.slope, expected, "slope")


def fitted_exponent(
    claim: str, data: xr.Dataset, name: str, expected: tuple[float, float]
) -> Finding:
    """The slope that `power_law` fitted for `name`, which the plot shows, lies in `expected`."""
    return inside(claim, fitted_slope(data, name), expected, "slope")


def threshold(
    claim: str,
    values: Num[Array, "seed"],
    *,
    above: float = -math.inf,
    below: float = math.inf,
    confidence: float = CONFIDENCE,
) -> Finding:
    """The mean over seeds lies above and below the given numbers."""
    return inside(claim, mean(values, confidence), (above, below), "mean")


def separation(
    claim: str,
    larger: Num[Array, "seed"],
    smaller: Num[Array, "seed"],
    *,
    factor: float = 1.0,
    confidence: float = CONFIDENCE,
) -> Finding:
    """`larger` exceeds `factor` times `smaller`, as the geometric mean of the paired ratios."""
    check_positive("factor", factor)
    a, b = np.asarray(larger, dtype=float), np.asarray(smaller, dtype=float)
    finite = np.isfinite(a) & np.isfinite(b)
    if (a[finite] <= 0).any() or (b[finite] <= 0).any():
        raise BadArgument(
            "larger", a.tolist(), "ratios need positive values", fix="use difference(...) instead"
        )
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = paired_difference(np.log(a), np.log(b), confidence).exp()
    return inside(claim, ratio, (factor, math.inf), "ratio")


def difference(
    claim: str,
    a: Num[Array, "seed"],
    b: Num[Array, "seed"],
    expected: tuple[float, float] = (0.0, math.inf),
    confidence: float = CONFIDENCE,
) -> Finding:
    """The mean paired difference a - b lies in `expected`; by default a exceeds b."""
    return inside(claim, paired_difference(a, b, confidence), expected, "difference")


def ordering(
    claim: str, quantities: Mapping[str, Num[Array, "seed"]], confidence: float = CONFIDENCE
) -> Finding:
    """The named quantities increase in the order given, each step beyond doubt.

    Each neighbouring difference is tested at level (1 - confidence)/(number of steps), so that
    the whole order holds with `confidence`. The verdict shows the step with the weakest evidence.
    """
    names = list(quantities)
    if len(names) < 2:
        raise BadArgument("quantities", names, "need at least two", fix="name what is compared")
    steps = len(names) - 1
    level = 1 - (1 - confidence) / steps
    differences = [
        paired_difference(quantities[b], quantities[a], level) for a, b in itertools.pairwise(names)
    ]
    weakest = min(range(steps), key=lambda i: _weakness(differences[i]))
    step = f"{names[weakest + 1]} - {names[weakest]}"
    return inside(claim, differences[weakest], (0.0, math.inf), step)


def monotone(
    claim: str,
    x: Num[Array, "point"],
    y: Num[Array, "seed point"],
    direction: str,
    confidence: float = CONFIDENCE,
) -> Finding:
    """y rises (or falls) with x: Kendall's tau over seeds, and no step clearly the wrong way.

    Steps between neighbouring x are tested together at `confidence` (Bonferroni); one that
    clearly goes the other way refutes the claim, whatever the overall trend.
    """
    check_choice("direction", direction, ("increasing", "decreasing"))
    sign = 1.0 if direction == "increasing" else -1.0
    order = np.argsort(np.asarray(x))
    xs, ys = np.asarray(x, dtype=float)[order], np.atleast_2d(np.asarray(y, dtype=float))[:, order]
    expected = (0.0, math.inf) if direction == "increasing" else (-math.inf, 0.0)
    verdict = inside(claim, trend(xs, ys, confidence), expected, "Kendall's tau")
    level = 1 - (1 - confidence) / max(len(xs) - 1, 1)
    for i in range(len(xs) - 1):
        step = paired_difference(sign * ys[:, i + 1], sign * ys[:, i], level)
        if step.known and step.high < 0:
            sentence = (
                f"between {xs[i]:g} and {xs[i + 1]:g} the mean changes by {sign * step.value:.3g}, "
                f"against the claimed direction; {verdict.sentence}"
            )
            return Finding(
                claim, NOT_CONFIRMED, verdict.value, verdict.interval, expected, sentence
            )
    return verdict


def _place(estimate: Estimate, low: float, high: float) -> str:
    if not estimate.known:
        return INCONCLUSIVE
    if low <= estimate.low and estimate.high <= high:
        # All seeds exactly at the edge of a range: the claim is neither met nor missed.
        on_edge = estimate.low == estimate.high and estimate.value in (low, high) and low < high
        return INCONCLUSIVE if on_edge else CONFIRMED
    return NOT_CONFIRMED if estimate.high < low or estimate.low > high else INCONCLUSIVE


def _weakness(estimate: Estimate) -> tuple[bool, float]:
    """Refuted steps first, then the one whose interval reaches furthest down."""
    refuted = estimate.known and estimate.high < 0
    return not refuted, estimate.low if estimate.known else -math.inf


def _sentence(quantity: str, e: Estimate, low: float, high: float, outcome: str) -> str:
    seeds = f"{e.count} seed{'' if e.count == 1 else 's'}"
    if math.isinf(low) and math.isinf(high):
        wanted = "any number"
    elif math.isinf(high):
        wanted = f"above {low:.4g}"
    elif math.isinf(low):
        wanted = f"below {high:.4g}"
    else:
        wanted = f"in [{low:.4g}, {high:.4g}]"
    if not math.isfinite(e.value):
        return f"no {quantity} could be computed from {seeds}; expected {wanted}"
    if not e.known:
        return f"{quantity} {e.value:.4g}, no interval from {seeds}; expected {wanted}"
    where = {CONFIRMED: "inside", NOT_CONFIRMED: "outside", INCONCLUSIVE: "across the edge of"}
    return (
        f"{quantity} {e.value:.4g}, interval [{e.low:.4g}, {e.high:.4g}] from {seeds}, "
        f"lies {where[outcome]} what was expected: {wanted}"
    )
