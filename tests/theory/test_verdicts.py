"""Verdicts: which number decides, on which side of a boundary, and what a reader is told."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from jaxtyping import Float

from headcount.core import Array, BadArgument
from headcount.theory import (
    Bound,
    Check,
    Claim,
    Family,
    Form,
    Hypothesis,
    Kind,
    Outcome,
    Sides,
    claims,
    instance_class,
    judge,
    judge_frequency,
)
from headcount.theory._frequency import Experiment, Interval, clopper_pearson, frequency_of
from headcount.theory._verdict import admissible, decide, ratio_of, score_of, summarise, worst_entry
from headcount.theory.slow import FLOATS
from headcount.theory.slow_sides import ROUNDING, slow_ratio, slow_sides

EQUAL = pytest.approx


@pytest.mark.parametrize(
    ("lhs", "rhs", "ratio"),
    [
        (1.0, 2.0, 0.5),
        (3.0, 2.0, 1.5),
        (-1.0, 2.0, -0.5),
        (-4.0, -2.0, 0.5),
        (-2.0, -4.0, 2.0),
        (0.0, 0.0, 0.0),
        (1.0, 0.0, math.inf),
        (1.0, -1.0, math.inf),
        (0.0, 1.0, 0.0),
    ],
)
def test_a_ratio_exceeds_one_exactly_where_left_exceeds_right(
    lhs: float, rhs: float, ratio: float
) -> None:
    sides = Sides(np.float64(lhs), np.float64(rhs))
    assert float(ratio_of(Kind.DETERMINISTIC, sides)) == EQUAL(ratio)
    assert (ratio > 1) == (lhs > rhs)
    score = float(score_of(Kind.DETERMINISTIC, sides))
    if 0 < ratio < math.inf:
        assert score == EQUAL(math.log(ratio))
    else:
        assert score > 500 if ratio == math.inf else score < -500


def test_the_worst_entry_decides_and_is_shown() -> None:
    sides = Sides(np.array([1.0, 3.0, 2.0]), np.array([2.0, 4.0, 2.5]))
    assert float(ratio_of(Kind.DETERMINISTIC, sides)) == EQUAL(0.8)
    assert float(score_of(Kind.DETERMINISTIC, sides)) == EQUAL(math.log(0.8))
    assert summarise(Kind.DETERMINISTIC, sides) == (2.0, 2.5)
    assert math.isnan(float(ratio_of(Kind.RATE, Sides(np.array([1.0, math.nan]), 1.0))))
    assert float(score_of(Kind.RATE, Sides(np.array([0.5, math.nan]), 1.0))) == EQUAL(math.log(0.5))


@pytest.mark.parametrize(
    ("lhs", "rhs", "expected"),
    [
        ([3.0, 5.0, 2.0], [2.0, 2.0, 4.0], (5.0, 2.0, 2.5)),
        ([2.0 * (1 - 1e-12), 4.0], [1.0, 2.0], (2.0 * (1 - 1e-12), 1.0, 2.0)),
        ([-4.0, -1.0], [-6.0, -3.0], (-1.0, -3.0, 3.0)),
        ([1.0, 2.0, 9.0], [0.0, 0.0, 1.0], (1.0, 0.0, math.inf)),
        ([-3.0, -2.0], [1.0, 4.0], (-2.0, 4.0, 2.0 / -4.0)),
        (1e-200, [1e200, 1e-201], (1e-200, 1e-201, 10.0)),
    ],
)
def test_the_worst_entry_of_several(lhs: Any, rhs: Any, expected: tuple[float, ...]) -> None:
    """Of two that are as bad up to rounding it is the first: rounding must not choose."""
    assert worst_entry(lhs, rhs) == EQUAL(expected)
    unknown = worst_entry([math.nan, 3.0], [1.0, 2.0])
    assert math.isnan(unknown[0])


def test_the_score_of_an_estimate_is_that_of_its_lower_end() -> None:
    sides = Sides(np.float64(3.0), np.float64(2.0), spread=np.float64(0.5))
    assert float(score_of(Kind.EXPECTATION, sides)) == EQUAL(math.log(2.5 / 2))
    assert float(ratio_of(Kind.EXPECTATION, sides)) == EQUAL(1.5)


def test_an_identity_is_measured_against_its_size() -> None:
    lhs, rhs = np.array([1.0, 2.0]), np.array([1.0, 2.0 + 4e-9])
    sides = Sides(lhs, rhs)
    assert float(ratio_of(Kind.IDENTITY, sides)) == EQUAL(4e-9 / 2 / ROUNDING, rel=1e-6)
    assert float(ratio_of(Kind.IDENTITY, sides._replace(scale=8.0))) == EQUAL(0.5, rel=1e-6)
    assert summarise(Kind.IDENTITY, sides) == EQUAL((math.sqrt(5), math.sqrt(5)), rel=1e-8)
    zero = Sides(np.zeros(2), np.zeros(2))
    assert float(ratio_of(Kind.IDENTITY, zero)) == 0.0
    assert float(score_of(Kind.IDENTITY, sides)) == EQUAL(math.log(2.0), rel=1e-6)


@instance_class
@dataclass(frozen=True)
class Pair:
    """Two numbers."""

    x: Float[Array, ""]
    y: Float[Array, ""]


def _below(**more: Any) -> Claim:
    """x <= y for x below 3."""
    base = Claim(
        id="toy/below",
        title="Below",
        kind=Kind.DETERMINISTIC,
        equations="none",
        statement="x <= y",
        latex="x \\le y",
        sides=lambda i, variant: Sides(i.x, i.y),
        naive=lambda num, data, variant: (data["x"], data["y"]),
        families=(Family("pairs", lambda rng, n: Pair(*rng.normal(size=(2, n))), lambda i: i),),
        variants={"printed": Form("x <= y")},
        default="printed",
        hypotheses=(Hypothesis("x", lambda i: i.x, lambda num, data: data["x"], 3.0),),
    )
    return replace(base, **more)


def pair(x: float, y: float) -> Pair:
    return Pair(np.array(x), np.array(y))


@pytest.mark.parametrize(
    ("x", "y", "outcome"),
    [
        (1.0, 2.0, Outcome.HOLDS),
        (2.0, 2.0, Outcome.HOLDS),
        (2.0 * (1 + ROUNDING / 2), 2.0, Outcome.HOLDS),
        (2.0 * (1 + 2 * ROUNDING), 2.0, Outcome.VIOLATED),
        (3.0, 2.0, Outcome.VIOLATED),
        (3.0 * (1 + 1e-13), 2.0, Outcome.VIOLATED),
        (3.1, 2.0, Outcome.NOT_APPLICABLE),
        (1.0, math.inf, Outcome.INCONCLUSIVE),
        (1.0, math.nan, Outcome.INCONCLUSIVE),
        (-math.inf, 1.0, Outcome.INCONCLUSIVE),
    ],
)
def test_the_outcome_of_a_pair(x: float, y: float, outcome: Outcome) -> None:
    verdict = judge(_below(), pair(x, y))
    assert verdict.outcome is outcome, verdict.message
    if outcome is Outcome.NOT_APPLICABLE:
        assert math.isnan(verdict.rhs)
        assert math.isnan(verdict.ratio)
        assert "is allowed" in verdict.message
    if outcome is Outcome.INCONCLUSIVE:
        assert "left" in verdict.message if not math.isfinite(x) else "right" in verdict.message


def test_a_bound_that_is_not_below_the_trivial_one_is_vacuous() -> None:
    def outcome(trivial: float) -> Outcome:
        sides = Sides(1.0, 2.0, trivial=trivial)
        return decide(_below(), "printed", sides, (), 0.5).outcome

    assert outcome(2.0) is Outcome.VACUOUS
    assert outcome(1.9) is Outcome.VACUOUS
    assert outcome(2.1) is Outcome.HOLDS


@pytest.mark.parametrize(
    ("spread", "outcome"),
    [
        (0.0, Outcome.HOLDS),
        (0.05, Outcome.HOLDS),
        (0.2, Outcome.INCONCLUSIVE),
        (math.inf, Outcome.INCONCLUSIVE),
    ],
)
def test_an_interval_below_the_bound_is_needed(spread: float, outcome: Outcome) -> None:
    sides = Sides(0.9, 1.0, spread=spread)
    assert decide(_below(), "printed", sides, (), 0.9).outcome is outcome


def test_the_hypothesis_that_fails_worst_is_named() -> None:
    checks = (Check("a", 1.5, 1.0), Check("b", 4.0, 1.0), Check("c", 0.0, 1.0))
    verdict = decide(_below(), "printed", Sides(1.0, 2.0), checks, 0.5)
    assert verdict.outcome is Outcome.NOT_APPLICABLE
    assert verdict.message.startswith("b: 4 where at most 1 is allowed")
    unknown = decide(
        _below(), "printed", Sides(1.0, 2.0), (*checks, Check("d", math.nan, 1.0)), 0.5
    )
    assert unknown.message.startswith("d: not a finite number")


def test_a_check_allows_rounding_and_no_more() -> None:
    assert Check("x", 1.0 + 5e-13, 1.0).holds
    assert not Check("x", 1.0 + 5e-12, 1.0).holds
    assert Check("x", 1e6 * (1 + 5e-13), 1e6).holds
    assert not Check("x", 1e6 * (1 + 5e-12), 1e6).holds
    assert not Check("x", math.nan, 1.0).holds
    assert Check("x", 5e-13, 0.0).holds
    assert not Check("x", 5e-12, 0.0).holds
    assert Check("x", 0.25, 1.0).margin == 0.75


@pytest.mark.parametrize("threshold", [1e-20, 4e-35, 1e-300])
def test_a_small_threshold_is_not_missed_by_more_than_its_own_rounding(threshold: float) -> None:
    """Of two points at 1e-13 from each other, that should be at 1e-35, too much was said."""
    assert Check("x", threshold, threshold).holds
    assert not Check("x", 2 * threshold, threshold).holds
    small = Hypothesis("small", lambda p: p, None, threshold)
    assert bool(admissible((small,), np.float64(threshold), "printed"))
    assert not bool(admissible((small,), np.float64(1e-13), "printed"))


def test_a_theorem_about_close_points_is_silent_on_points_that_are_not() -> None:
    """|theta_1 - theta_2|^2 = 8e-14 looks like nothing; tokens of 1e8 make it far away."""
    claim = claims["deora2024/proposition-4"]
    far, slight = 1e8, 1e-7
    instance = claim.instance_class(
        X=np.array([[[far], [-far]]]),
        y=np.ones(1),
        k=np.ones(1),
        U=np.array([[[slight], [0.0]]]),
        W=np.array([[[slight]]]),
        dU=np.array([[[-2 * slight], [0.0]]]),
        dW=np.array([[[-2 * slight]]]),
        eta=np.array(1.0),
        readout="full",
    )
    verdict = judge(claim, instance, "v2")
    assert verdict.outcome is Outcome.NOT_APPLICABLE
    assert verdict.message.startswith("(18)")


def test_a_promise_is_scaled_and_asks_its_hypotheses() -> None:
    claim = _below(
        bound=lambda setting, variant: Bound(setting, {"K": 1.0}, 9.0),
        requires=lambda setting, variant: (Check("setting", setting, 4.0),),
        needs_event=True,
    ).with_bound_scaled(0.5)
    event = Check("event", 0.0, 1.0)
    verdict = judge(claim, pair(1.0, 7.0), setting=3.0, event=event)
    assert (verdict.outcome, verdict.rhs) == (Outcome.HOLDS, 1.5)
    assert verdict.constants == {"K": 1.0}
    outside = judge(claim, pair(1.0, 7.0), setting=5.0, event=event)
    assert outside.outcome is Outcome.NOT_APPLICABLE
    assert "not measured" in judge(claim, pair(1.0, 7.0), setting=3.0).message
    assert judge(claim, pair(1.0, 7.0)).rhs == 3.5


def _coin(probability: float, **more: Any) -> Claim:
    """x <= 1/2 for a coin that shows 1 with some probability."""

    def draw(case: Any, rng: np.random.Generator, count: int) -> Pair:
        return Pair((rng.random(count) < probability).astype(float), np.full(count, 0.5))

    experiment = Experiment(
        cases=({"delta": 0.2},),
        draw=draw,
        sides=lambda i, variant: Sides(i.x, i.y),
        exceeds_naively=lambda case, variant, seed, n: 0,
        case_problem=lambda case: None if case["delta"] < 1 else "delta is no probability",
        **more,
    )
    return _below(experiment=experiment, hypotheses=())


@pytest.mark.parametrize(
    ("probability", "outcome"),
    [(0.1, Outcome.HOLDS), (0.2, Outcome.INCONCLUSIVE), (0.3, Outcome.VIOLATED)],
)
def test_a_frequency_is_compared_with_delta(probability: float, outcome: Outcome) -> None:
    verdict = judge_frequency(_coin(probability), {"delta": 0.2}, repetitions=4000)
    assert verdict.outcome is outcome, verdict.message
    assert verdict.lhs == EQUAL(probability, abs=0.04)
    assert verdict.ratio == EQUAL(verdict.lhs / 0.2)
    # With the bound above 1 nothing exceeds it, with the bound below 0 everything does.
    assert judge_frequency(_coin(probability).with_bound_scaled(3.0), {"delta": 0.2}).lhs == 0
    with pytest.raises(BadArgument, match="no probability"):
        judge_frequency(_coin(0.1), {"delta": 2.0})


@pytest.mark.parametrize(
    ("interval", "outcome"),
    [
        (Interval(0.1, 0.2), Outcome.HOLDS),
        (Interval(0.1, 0.21), Outcome.INCONCLUSIVE),
        (Interval(0.2, 0.21), Outcome.INCONCLUSIVE),
        (Interval(0.201, 0.21), Outcome.VIOLATED),
    ],
)
def test_a_known_probability_is_used_as_it_is(interval: Interval, outcome: Outcome) -> None:
    seen = []

    def exact(case: Any, variant: str, factor: float) -> Interval:
        seen.append((variant, factor))
        return interval

    claim = _coin(0.5, exact=exact).with_bound_scaled(0.7)
    verdict = judge_frequency(claim, {"delta": 0.2})
    assert verdict.outcome is outcome
    assert verdict.ratio == EQUAL(interval.low / 0.2)
    assert seen == [("printed", 0.7)]


def test_the_binomial_interval_has_its_error_on_either_side() -> None:
    from scipy import stats

    for k, n, confidence in ((30, 100, 0.99), (7, 50, 0.95), (1, 10, 0.95)):
        low, high = clopper_pearson(k, n, confidence)
        assert stats.binom.sf(k - 1, n, low) == EQUAL((1 - confidence) / 2)
        assert stats.binom.cdf(k, n, high) == EQUAL((1 - confidence) / 2)
    for n in (1, 10, 50, 400):
        none, every = clopper_pearson(0, n, 0.99), clopper_pearson(n, n, 0.99)
        assert (none.low, every.high) == (0.0, 1.0)
        assert none.high == EQUAL(1 - 0.005 ** (1 / n))
        assert every.low == EQUAL(0.005 ** (1 / n))
    for count, outcome in ((0, "holds"), (50, "inconclusive"), (200, "violated")):
        assert frequency_of(count, 1000, 0.05).outcome == outcome
    assert frequency_of(30, 100, 0.1).rate == 0.3
    assert frequency_of(30, 100, 0.1).outcome == "violated"
    assert frequency_of(30, 100, 0.3).outcome == "inconclusive"
    assert frequency_of(30, 100, 0.9).outcome == "holds"
    assert frequency_of(0, 10, high := clopper_pearson(0, 10).high).outcome == "holds", high


def test_the_slow_ratio_is_the_fast_one() -> None:
    for lhs, rhs in ((1.0, 2.0), (-4.0, -2.0), (-2.0, -4.0), (0.0, 1.0), (1.0, -1.0), (-1.0, 2.0)):
        fields = {"x": np.array(lhs), "y": np.array(rhs)}
        fast = float(ratio_of(Kind.DETERMINISTIC, Sides(np.float64(lhs), np.float64(rhs))))
        assert float(slow_ratio(_below(), FLOATS, fields, "printed")) == EQUAL(fast)
    several = _below(naive=lambda num, data, variant: ([data["x"], data["y"]], data["y"]))
    fields = {"x": np.array(6.0), "y": np.array(2.0)}
    left, right = slow_sides(several.with_bound_scaled(2.0), FLOATS, fields, "printed")
    assert (left, right) == ([6.0, 2.0], [4.0, 4.0])
    assert float(slow_ratio(several, FLOATS, fields, "printed")) == 3.0
    same = replace(several, kind=Kind.IDENTITY)
    assert float(slow_ratio(same, FLOATS, fields, "printed")) == EQUAL(4 / 6 / ROUNDING)
