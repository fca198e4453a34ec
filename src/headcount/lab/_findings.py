"""Findings: whose sentence it is, the numbers that decide it, and one of four outcomes.

confirmed      the confidence interval lies inside the expected range
not confirmed  the interval lies outside
inconclusive   the interval straddles the edge, there is none, or runs have no number
not judged     the figure says that sizes or seeds like these cannot decide the claim
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np

from ..core import BadArgument
from ..core._shown import Shown, brief_nested, html_words
from ._estimates import Estimate, proportion

CONFIRMED = "confirmed"
"""The interval lies inside the expected range."""
NOT_CONFIRMED = "not confirmed"
"""The interval lies outside the expected range."""
INCONCLUSIVE = "inconclusive"
"""The interval straddles the edge, there is none, or runs without a number could decide."""
NOT_JUDGED = "not judged"
"""The run is too small for the claim: fewer seeds or smaller sizes than it needs."""
OUTCOMES = (CONFIRMED, NOT_CONFIRMED, INCONCLUSIVE, NOT_JUDGED)
"""Every outcome of a finding."""
FALSE_DISCOVERIES = 0.05
"""The share of wrong verdicts that is allowed among those marked as surviving."""
_LEAST_ALPHA = 1e-12
_HALVINGS = 16
"""Of twelve decades: a p-value is right within one part in two thousand."""


@dataclass(frozen=True)
class Source:
    """Whose sentence a finding judges: the paper's words and their place, or nobody's but ours.

    `Source("says", "where")` quotes the paper; `OURS` is our own expectation; `SANITY` is a check
    of the run (such as that it stays finite), which counts for neither.
    """

    says: str = ""
    where: str = ""
    kind: str = field(default="ours", init=False)

    def __post_init__(self) -> None:
        if bool(self.says) != bool(self.where):
            fix = 'e.g. Source("more heads are faster", "App. G, Fig. 3")'
            raise BadArgument("where", self.where, "a quotation has a place", fix=fix)
        if self.says:
            object.__setattr__(self, "kind", "paper")

    def to_json(self) -> dict[str, str]:
        """Kind, words and place."""
        return {"kind": self.kind, "says": self.says, "where": self.where}


OURS = Source()
"""An expectation that the paper does not state."""
SANITY = Source()
"""A check of the run itself: it counts neither for the paper nor for us."""
object.__setattr__(SANITY, "kind", "sanity")
KINDS = ("paper", "ours", "sanity")
"""Of sources, in the order in which they are counted."""


class About(TypedDict, total=False):
    """What every verdict takes: whose sentence it is, and of which runs alone it speaks.

    `among` names the runs that the sentence is about ("trials in which every H finds W*"): those
    without a number are then left out and decide nothing. Without it they make the verdict
    inconclusive.
    """

    source: Source
    among: str


@dataclass(frozen=True, repr=False)
class Finding(Shown):
    """What the data say about a claim; `sentence` holds the numbers that decided.

    `expected` is the range (low, high) in which the claim holds, infinite where it is open. `p` is
    the least alpha at which the interval of confidence 1 - alpha decides. `seeds` runs were used
    (none for an exact number), `lost` have no number; `scale` is where the comparison was made.
    """

    claim: str
    outcome: str
    value: float
    interval: tuple[float, float]
    expected: tuple[float, float]
    sentence: str
    source: Source = OURS
    p: float = math.nan
    seeds: int = 0
    lost: int = 0
    scale: str = "linear"

    def summary(self) -> dict[str, Any]:
        """Outcome, number, interval, what was expected, and the claim."""
        numbers = {"value": self.value, "interval": list(self.interval)}
        shown = {"outcome": self.outcome, **numbers, "expected": list(self.expected)}
        return {name: brief_nested(value) for name, value in shown.items()} | {"claim": self.claim}

    def pictures(self) -> str:
        """The sentence with the numbers that decided, and the paper's words."""
        says = f"“{self.source.says}” ({self.source.where})" if self.source.says else ""
        return html_words(self.sentence, says)

    def withheld(self, reason: str) -> Finding:
        """The same numbers without a judgement on them, which these sizes do not allow."""
        numbers = self.sentence.split(", lies ")[0]
        return replace(self, outcome=NOT_JUDGED, sentence=f"{reason}; {numbers}", p=math.nan)

    def to_json(self) -> dict[str, Any]:
        """The fields of the command line's JSON; `core.json_text` writes NaN as null."""
        return {
            "claim": self.claim,
            "outcome": self.outcome,
            "value": self.value,
            "interval": list(self.interval),
            "expected": list(self.expected),
            "source": self.source.to_json(),
            "p": self.p,
            "seeds": self.seeds,
            "lost": self.lost,
            "scale": self.scale,
        }


def inside(
    claim: str,
    estimate: Estimate,
    expected: tuple[float, float],
    quantity: str = "value",
    scale: str = "linear",
    *,
    source: Source = OURS,
    among: str = "",
) -> Finding:
    """The rule behind every verdict: where does the interval lie relative to the range?

    With a range around zero this is an equivalence test (two one-sided tests). Runs that have no
    number make it inconclusive, unless the sentence speaks `among` the others alone.
    """
    low, high = expected
    if not low <= high:
        raise BadArgument("expected", expected, "must be (low, high)", fix="swap the two numbers")
    outcome = place(estimate, low, high)
    sentence = _sentence(quantity, estimate, low, high, outcome, among)
    lost = 0 if among else estimate.died + estimate.never
    if lost:
        sentence += f"; {_lost(estimate)}"
        outcome = INCONCLUSIVE
    return Finding(
        claim=claim,
        outcome=outcome,
        value=estimate.value,
        interval=(estimate.low, estimate.high),
        expected=(low, high),
        sentence=sentence,
        source=source,
        p=math.nan if lost else p_value(estimate, low, high),
        seeds=estimate.count,
        lost=estimate.died + estimate.never,
        scale=scale,
    )


def place(estimate: Estimate, low: float, high: float) -> str:
    """The outcome that an interval gives, whatever runs stand behind it."""
    if not estimate.known:
        return INCONCLUSIVE
    if low <= estimate.low and estimate.high <= high:
        # All seeds exactly at the edge of a range: the claim is neither met nor missed.
        on_edge = estimate.low == estimate.high and estimate.value in (low, high) and low < high
        return INCONCLUSIVE if on_edge else CONFIRMED
    return NOT_CONFIRMED if estimate.high < low or estimate.low > high else INCONCLUSIVE


def p_value(estimate: Estimate, low: float, high: float) -> float:
    """The least alpha at which the interval of confidence 1 - alpha decides; NaN without one."""
    if estimate.exact or not estimate.known:
        return math.nan

    def open_at(power: float) -> bool:
        return place(estimate.at(1 - 10**power), low, high) == INCONCLUSIVE

    least, most = math.log10(_LEAST_ALPHA), -1e-3
    if not open_at(least):
        return _LEAST_ALPHA
    if open_at(most):
        return 1.0
    for _ in range(_HALVINGS):
        middle = (least + most) / 2
        least, most = (middle, most) if open_at(middle) else (least, middle)
    return float(10**most)


def surviving(p_values: Sequence[float | None]) -> list[bool]:
    """Which verdicts survive a false-discovery rate of 5 % (Benjamini and Hochberg).

    Exact and undecided ones have no p-value: they are not among the tests.
    """
    from scipy import stats

    p = np.array([math.nan if one is None else one for one in p_values])
    tested = np.isfinite(p)
    kept = np.zeros(p.size, dtype=bool)
    if tested.any():
        kept[tested] = stats.false_discovery_control(p[tested]) <= FALSE_DISCOVERIES
    return [bool(one) for one in kept]


def _lost(e: Estimate) -> str:
    """How many runs have no number, and how far those that remain can be trusted."""
    runs = e.count + e.died + e.never
    parts = [f"{e.died} died or have no number"] * bool(e.died) + [
        f"{e.never} did not get there"
    ] * bool(e.never)
    share = proportion(np.repeat([1.0, 0.0], [e.died + e.never, e.count]))
    return (
        f"but of {runs} runs {' and '.join(parts)} ({share.low:.0%} to {share.high:.0%} of all "
        "would): which runs are left may decide, so that nothing is judged"
    )


def _sentence(quantity: str, e: Estimate, low: float, high: float, outcome: str, among: str) -> str:
    seeds = f"{e.count} seed{'' if e.count == 1 else 's'}" + (f" among {among}" if among else "")
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
    sample = "exact" if e.exact else f"interval [{e.low:.4g}, {e.high:.4g}] from {seeds}"
    return f"{quantity} {e.value:.4g}, {sample}, lies {where[outcome]} what was expected: {wanted}"
