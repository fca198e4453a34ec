"""The kinds of verdicts: slopes, levels, ratios, differences, orders and shares."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from jaxtyping import Num

from ..core import Array, BadArgument, check_choice, check_positive
from ..core._checks import check_numbers
from ._estimates import (
    CONFIDENCE,
    Estimate,
    geometric_mean,
    logarithm,
    mean,
    paired_difference,
    proportion,
)
from ._findings import (
    CONFIRMED,
    INCONCLUSIVE,
    NOT_CONFIRMED,
    About,
    Finding,
    inside,
    place,
)
from ._statistics import SlopeFit, loglog_slope, stored_fit

if TYPE_CHECKING:
    import xarray as xr

SCALES_OF_VALUES = ("linear", "log")
VISIBLE = 1e-3
"""A change by less than this part of a curve's range cannot be seen in its drawing."""
UPWARDS, DOWNWARDS = (0.0, math.inf), (-math.inf, 0.0)


def exponent(
    claim: str,
    x: Num[Array, "point"],
    y: Num[Array, "seed point"],
    expected: tuple[float, float],
    **about: Unpack[About],
) -> Finding:
    """The log-log slope of y against x lies in `expected`, and so does that of either half."""
    return _power(claim, loglog_slope(x, y), expected, about)


def fitted_exponent(
    claim: str,
    data: xr.Dataset,
    name: str,
    expected: tuple[float, float],
    **about: Unpack[About],
) -> Finding:
    """The slope that `power_law` fitted for `name`, which the plot shows, lies in `expected`."""
    return _power(claim, stored_fit(data, name), expected, about)


def _power(claim: str, fit: SlopeFit, expected: tuple[float, float], about: About) -> Finding:
    """A power law also has to explain its points: a half that clearly bends away refutes it."""
    found = inside(claim, fit.slope, expected, "slope", "log", **about)
    for words, half in zip(("first", "last"), fit.halves, strict=False):
        both = half.at(1 - (1 - CONFIDENCE) / 2)
        what = f"slope of the {words} half of the points"
        if found.lost == 0 and place(both, *expected) == NOT_CONFIRMED:
            return inside(claim, both, expected, what, "log", **about)
        outside = not expected[0] <= half.value <= expected[1]
        if found.outcome == CONFIRMED and outside:
            sentence = f"{found.sentence}; but the {what} is {half.value:.4g}"
            found = replace(found, outcome=INCONCLUSIVE, sentence=sentence, p=math.nan)
    return found


def threshold(
    claim: str,
    values: Num[Array, "seed"],
    *,
    above: float = -math.inf,
    below: float = math.inf,
    scale: str = "linear",
    **about: Unpack[About],
) -> Finding:
    """The mean over seeds (on logs: the geometric one) lies above and below the given numbers."""
    check_choice("scale", scale, SCALES_OF_VALUES)
    if scale == "log":
        average = geometric_mean(values)
        return inside(claim, average, (above, below), "geometric mean", scale, **about)
    return inside(claim, mean(values), (above, below), "mean", scale, **about)


def share(
    claim: str,
    values: Any,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    at_least: float = 0.5,
    **about: Unpack[About],
) -> Finding:
    """More than `at_least` of the seeds have all their values in [above, below].

    `values` has the seeds first, or is of xarray. They are the sample, however many values each
    has, with the interval of Clopper and Pearson.
    A run that died (NaN) has neither hit nor missed.
    """
    if hasattr(values, "dims"):  # of an xarray, the seeds are the dimension of that name
        values = values.transpose("seed", ...)
    numbers = check_numbers("values", values)
    rows = numbers.reshape(len(numbers), -1)
    hits = ((rows >= above) & (rows <= below)).all(axis=1) * 1.0
    hits[np.isnan(rows).any(axis=1)] = np.nan
    return inside(claim, proportion(hits), (at_least, 1.0), "share of seeds", **about)


def separation(
    claim: str,
    larger: Num[Array, "seed"],
    smaller: Num[Array, "seed"],
    *,
    factor: float = 1.0,
    **about: Unpack[About],
) -> Finding:
    """`larger` exceeds `factor` times `smaller`, as the geometric mean of the paired ratios."""
    check_positive("factor", factor)
    a, b = check_numbers("larger", larger), check_numbers("smaller", smaller)
    if (a <= 0).any() or (b <= 0).any():
        raise BadArgument(
            "larger", a.tolist(), "ratios need positive values", fix="use difference(...) instead"
        )
    ratio = paired_difference(np.log(a), np.log(b)).exp()
    return inside(claim, ratio, (factor, math.inf), "ratio", "log", **about)


def everywhere(
    claim: str,
    larger: Num[Array, "seed point"],
    smaller: Num[Array, "seed point"],
    names: Sequence[Any],
    **about: Unpack[About],
) -> Finding:
    """`larger` exceeds `smaller` at every one of the named points, as ratios over seeds."""
    pairs = zip(logarithm(larger).T, logarithm(smaller).T, strict=True)
    ratios = [paired_difference(a, b).exp() for a, b in pairs]
    words = [f"ratio at {name}" for name in names]
    return _all_of(claim, words, ratios, (1.0, math.inf), "log", about)


def difference(
    claim: str,
    a: Num[Array, "seed"],
    b: Num[Array, "seed"],
    expected: tuple[float, float] = UPWARDS,
    **about: Unpack[About],
) -> Finding:
    """The mean paired difference a - b lies in `expected`; by default a exceeds b."""
    return inside(claim, paired_difference(a, b), expected, "difference", **about)


def monotone(
    claim: str,
    x: Num[Array, "point"],
    y: Num[Array, "seed point"],
    direction: str,
    *,
    scale: str = "linear",
    **about: Unpack[About],
) -> Finding:
    """y rises (or falls) with x at every step; `scale` is that on which y is drawn."""
    check_choice("direction", direction, ("increasing", "decreasing"))
    check_choice("scale", scale, SCALES_OF_VALUES)
    order = np.argsort(np.asarray(x))
    at, rows = np.asarray(x, dtype=float)[order], np.atleast_2d(np.asarray(y, dtype=float))
    if at.size < 2 or rows.shape[1] != at.size:
        problem = f"must be (seeds, points) for at least two points x, here {at.size}"
        raise BadArgument("y", f"array of shape {rows.shape}", problem, fix="match")
    columns = logarithm(rows[:, order]) if scale == "log" else rows[:, order]
    of = " of the logarithms" if scale == "log" else ""
    names = [f"change from {a:g} to {b:g}{of}" for a, b in itertools.pairwise(at)]
    steps = [_as_drawn(paired_difference(b, a), columns) for a, b in itertools.pairwise(columns.T)]
    expected = UPWARDS if direction == "increasing" else DOWNWARDS
    return _all_of(claim, names, steps, expected, scale, about)


def _all_of(
    claim: str,
    names: list[str],
    parts: list[Estimate],
    expected: tuple[float, float],
    scale: str,
    about: About,
) -> Finding:
    """Confirmed where every part is, at 95 %; refuted where one is, all together at 95 %.

    At the edge either error has a chance of at most 2.5 %, however many parts and seeds: to
    confirm, all parts must lie inside, each with its own 95 % interval; to refute, intervals are
    Bonferroni's. The finding shows the part that decided, or the one furthest from the claim.
    """
    together = [part.at(1 - (1 - CONFIDENCE) / len(parts)) for part in parts]
    refuted = [place(part, *expected) == NOT_CONFIRMED for part in together]
    proved = all(place(part, *expected) == CONFIRMED for part in parts)
    shown = parts if proved else together
    worst = max(range(len(parts)), key=lambda i: (refuted[i], _beyond(shown[i], expected)))
    died, never = (max(getattr(part, kind) for part in parts) for kind in ("died", "never"))
    estimate = replace(shown[worst], died=died, never=never)
    found = inside(claim, estimate, expected, names[worst], scale, **about)
    return replace(found, p=min(1.0, found.p * len(parts))) if refuted[worst] else found


def _as_drawn(step: Estimate, columns: Any) -> Estimate:
    """A step's interval, wider by what cannot be seen on the scale of the curve."""
    seen = columns[np.isfinite(columns).all(axis=1)]
    unseen = VISIBLE * float(np.ptp(seen.mean(axis=0))) if len(seen) else 0.0
    return step.mapped(lambda low: low - unseen, lambda high: high + unseen)


def _beyond(part: Estimate, expected: tuple[float, float]) -> float:
    """How far the interval reaches out of the range; all the way where there is none."""
    return max(expected[0] - part.low, part.high - expected[1]) if part.known else math.inf
