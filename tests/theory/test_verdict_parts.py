"""Verdicts part by part: scores at their limits, words, batches, what is said of lemmas."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from toy_points import Point, point, toy

from headcount.core import BadArgument, stream
from headcount.theory import (
    Batch,
    Bound,
    Box,
    Budget,
    Check,
    Kind,
    Outcome,
    Parameters,
    Reals,
    Sides,
    Size,
    Verdict,
    claims,
    given,
    judge,
    lemma,
)
from headcount.theory import _candidates as searches
from headcount.theory import _facts as facts
from headcount.theory import _lemma_problems as problems
from headcount.theory import _verdict as verdicts
from headcount.theory._audit import Audit, worst
from headcount.theory._frequency import Interval
from headcount.theory._judge_frequency import judge_exactly
from headcount.theory._lemma import _id_of
from headcount.theory._record import family_at, points_of, record_of, sizes_of
from headcount.theory._verify import at_points


def ratio(lhs: float, rhs: float) -> float:
    return float(verdicts._ratios(np.float64(lhs), np.float64(rhs), np))


def test_ratios_of_any_sign() -> None:
    for lhs, rhs, expected in (
        (3.0, 2.0, 1.5),
        (-3.0, 2.0, -1.5),
        (-2.0, -3.0, 1.5),
        (-3.0, -2.0, 2 / 3),
        (0.0, 0.0, 0.0),
        (1e-200, 0.0, math.inf),
        (1e-295, 0.0, 0.0),
        (2.0, -1.0, math.inf),
        (0.0, -1.0, 0.0),
        (1.0, 1e-295, math.inf),
    ):
        assert ratio(lhs, rhs) == pytest.approx(expected), (lhs, rhs)
    assert math.isnan(ratio(math.nan, 1.0))
    assert math.isnan(ratio(1.0, math.nan))


def score(lhs: float, rhs: float, **more: Any) -> float:
    return float(
        verdicts.score_of(Kind.DETERMINISTIC, Sides(np.float64(lhs), np.float64(rhs), **more))
    )


def test_scores_where_there_is_no_ratio() -> None:
    assert score(3.0, 2.0) == pytest.approx(math.log(1.5))
    assert score(3.0, 2.0, spread=1.0) == pytest.approx(0.0)
    assert score(1.5e250, 1.0) == pytest.approx(601, abs=0.1)
    assert score(0.9e250, 1.0) == pytest.approx(math.log(0.9e250))
    assert score(1.5e-250, 1.0) == pytest.approx(math.log(1.5e-250))
    assert score(0.9e-250, 1.0) == pytest.approx(-601)
    assert score(1.0, -3.0) == pytest.approx(601)
    assert score(-3.0, 1.0) == pytest.approx(-601)
    assert score(0.0, 1.0) == pytest.approx(-601)
    assert score(math.nan, 1.0) == -math.inf
    equal = Sides(np.ones(2), np.ones(2))
    assert float(verdicts.score_of(Kind.IDENTITY, equal)) == pytest.approx(math.log(1e-250))
    apart = Sides(np.array([1.0, 3.0]), np.array([1.0, -2.0]))
    assert float(verdicts.ratio_of(Kind.IDENTITY, apart)) == pytest.approx(5 / (1e-9 * 3))
    scaled = Sides(np.zeros(1), np.full(1, 1e-3), scale=10.0)
    assert float(verdicts.ratio_of(Kind.IDENTITY, scaled)) == pytest.approx(1e-3 / (1e-9 * 10))
    assert verdicts.summarise(Kind.IDENTITY, apart) == pytest.approx((math.sqrt(10), math.sqrt(5)))


def test_the_first_of_entries_that_are_equally_bad_is_shown() -> None:
    assert verdicts.worst_entry([2.0, 2 * (1 + 1e-12)], [1.0, 1.0])[0] == 2.0
    assert verdicts.worst_entry([2.0, 2 * (1 + 1e-8)], [1.0, 1.0])[0] == 2 * (1 + 1e-8)
    assert verdicts.worst_entry([1.0, math.nan], [1.0, 1.0])[1] == 1.0
    assert math.isnan(verdicts.worst_entry([9.0, math.nan], [1.0, 1.0])[2])
    assert verdicts.worst_entry([-4.0, -2.0], [1.0, 1.0])[2] == -2.0


def batch(*rows: tuple[float, ...]) -> Batch:
    return Batch(Point(np.array(rows, dtype=np.float64), np.zeros((len(rows), len(rows[0]), 1))))


def test_the_hardest_of_a_batch_and_how_many_are_left_out() -> None:
    claim = toy()
    every = verdicts.judge_hardest(claim, batch((1, 2, 0), (3, 2, 0), (1, 4, 0)), "printed")
    assert (every.outcome, every.ratio) == (Outcome.VIOLATED, 1.5)
    assert "outside" not in every.message
    some = verdicts.judge_hardest(claim, batch((1, 2, 0), (3, 2, 5), (1, 4, 9)), "printed")
    assert (some.outcome, some.ratio) == (Outcome.HOLDS, 0.5)
    assert some.message.endswith("(2 of 3 instances are outside its hypotheses)")
    none = verdicts.judge_hardest(claim, batch((1, 2, 3), (3, 2, 5)), "printed")
    assert none.outcome is Outcome.NOT_APPLICABLE
    assert "instances" not in none.message
    alone = verdicts.judge_hardest(claim, [point(3, 2, 0)], "printed")
    assert alone.ratio == 1.5


def decided(lhs: float, rhs: float, **more: Any) -> tuple[str, str]:
    sides = Sides(lhs, rhs, **more)
    found = verdicts.decide(toy(), "printed", sides, (), lhs / rhs)
    return str(found.outcome), found.message


def test_outcomes_at_their_limits() -> None:
    assert decided(1.0, 2.0) == ("holds", "left side 1 against 2: ratio 0.5")
    assert decided(3.0, 2.0, spread=0.9)[0] == "violated"
    assert decided(3.0, 2.0, spread=1.0)[0] == "inconclusive"
    assert decided(1.0, 2.0, spread=1.0)[0] == "holds"
    assert decided(1.0, 2.0, spread=1.1)[0] == "inconclusive"
    assert decided(1.0, 2.0, spread=math.inf) == (
        "inconclusive",
        "the estimate of the left side has no interval",
    )
    assert decided(1.0, 2.0, trivial=2.0)[0] == "holds vacuously"
    assert decided(1.0, 2.0, trivial=2.1)[0] == "holds"
    assert decided(math.inf, 2.0) == ("inconclusive", "the left side is inf")
    assert decided(1.0, math.inf) == ("inconclusive", "the right side is inf")
    assert "ratio 1.5" in decided(3.0, 2.0)[1]
    assert "ratio 1 + " in decided(2.0 * (1 + 0.9e-5), 2.0)[1]
    assert "1.00002" in decided(2.0 * (1 + 2.5e-5), 2.0)[1]
    failed = (Check("a", 3.0, 2.0), Check("b", 9.0, 2.0), Check("c", 1.0, 2.0))
    words = verdicts.decide(toy(), "printed", Sides(1.0, 2.0), failed, 0.5)
    assert (words.outcome, words.message) == (
        Outcome.NOT_APPLICABLE,
        "b: 9 where at most 2 is allowed",
    )
    assert math.isnan(words.rhs)
    wild = verdicts.decide(toy(), "p", Sides(1.0, 2.0), (Check("n", math.nan, 2.0), *failed), 0.5)
    assert wild.message == "n: not a finite number (nan)"


def test_an_enclosed_probability() -> None:
    found = judge_exactly(toy(), "printed", Interval(0.2, 0.3), 0.1)
    assert (found.lhs, found.rhs, found.outcome) == (0.2, 0.1, Outcome.VIOLATED)
    assert found.ratio == pytest.approx(2.0)
    assert "[0.2, 0.3] against delta = 0.1" in found.message


def test_the_worst_seed_of_an_audit() -> None:
    def seed(outcome: Outcome, ratio: float) -> Verdict:
        return Verdict("toy/order", "printed", outcome, "", ratio=ratio)

    fine, tight = seed(Outcome.HOLDS, 0.2), seed(Outcome.HOLDS, 0.9)
    assert worst([fine, tight]) is tight
    order = [Outcome.VIOLATED, Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE, Outcome.VACUOUS]
    for place, outcome in enumerate(order):
        bad = seed(outcome, math.nan)
        assert worst([tight, *(seed(o, 5.0) for o in order[place + 1 :]), bad]) is bad
    setting: Any = Budget(1, 1, 1)
    audit = Audit("toy", setting, (0,), (tight,), (), 1.23456)
    assert audit.to_json()["seconds"] == 1.235
    assert not audit.violated
    assert replace(audit, verdicts=(seed(Outcome.VIOLATED, 2.0),)).violated


T = Size("T", 2, 4)


@lemma(given("third", lambda z: z[0], 1.0), z=Reals(T), r=Box(low=0, high=1))
def shifted(z, r):
    """|z_1| r <= |z_1|."""
    return jnp.abs(z[1]) * r, jnp.abs(z[1])


def test_a_lemma_as_a_claim() -> None:
    one = shifted.instance(z=[0.5, -3.0, 2.0], r=0.25)
    assert sizes_of(one) == {"T": 3}
    lhs, rhs, checks = at_points(shifted, points_of(one), "stated")
    assert (float(lhs), float(rhs)) == (0.75, 3.0)
    assert [tuple(map(float, pair)) for pair in checks] == [(0.5, 1.0)]
    assert shifted.title == "shifted"
    assert _id_of(shifted.function) == "test_verdict_parts.py:shifted"
    assert family_at(shifted.on, {"T": 3}).name == "T=3"
    assert family_at(shifted.on, {"T": 3}).guided
    counted = Parameters("arda2026", T, 2, Size("k", 2, 4))
    made = record_of("m", {"z": counted})
    assert {"z_c", "size_T", "size_k"} <= set(made.__dataclass_fields__)


def test_facts_of_a_paper_without_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "verified.json"
    monkeypatch.setattr(facts, "facts", ["a/one", "b/two", "b/three"])
    monkeypatch.setattr(facts, "_file", lambda paper: None if paper == "a" else file)
    assert set(facts.recorded_answers().values()) == {"not verified"}
    file.write_text('{"b/two": {"answer": "proved"}}')
    assert list(facts.recorded_answers().values()) == ["not verified", "proved", "not verified"]


def test_programs_that_do_not_run() -> None:
    fine = {"shape": lambda z: (z, 1.0), "type": lambda z: (jnp.sum(z) > 0, 1.0)}
    for words, function in (("has shape", fine["shape"]), ("of type bool", fine["type"])):
        own = lemma(z=Reals(2))(function)
        with pytest.raises(BadArgument, match=words):
            problems.check_program(own, "stated", {})
    whole = lemma(z=Reals(2))(lambda z: (jnp.sum(jnp.sign(z)).astype(int), 1))
    problems.check_program(whole, "stated", {})
    own = lemma(given("h", lambda z: z, 1.0), z=Reals(2))(lambda z: (jnp.sum(z), 1.0))
    with pytest.raises(BadArgument, match="'h' is an array"):
        problems.check_program(own, "stated", {})
    long = problems._raised(own, ValueError("x" * 900), "here")
    assert len(str(long)) < 450


def test_draws_on_which_a_side_is_wrong() -> None:
    def checked(function: Any, *hypotheses: Any) -> None:
        own = lemma(*hypotheses, z=Reals())(function)
        problems.check_here(own, "stated", family_at(own.on, {}), np.random.default_rng(0), 64)

    checked(lambda z: (jnp.abs(z), jnp.abs(z)))
    checked(lambda z: (-1e-17 + 0 * z, 1.0))
    for function, words in (
        (lambda z: (z, 1e9), "left side is .* below zero"),
        (lambda z: (jnp.abs(z), z), "right side is .* below zero"),
        (lambda z: (jnp.log(z), 1.0), "left side is"),
        (lambda z: (jnp.abs(z), jnp.nan * z), "right side is nan"),
    ):
        with pytest.raises(BadArgument, match=words):
            checked(function)
    checked(lambda z: (z, 1e9), given("positive", lambda z: -z, 0.0))


def test_how_many_draws_are_looked_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    monkeypatch.setattr(searches, "check_here", lambda l, v, f, r, count: counts.append(count))
    monkeypatch.setattr(searches, "search_family", lambda *args: ([], 5))
    for random in (256, 400, 40):
        plan = Budget(random, 1, 1)
        searches.candidates(shifted, "stated", plan, 0, True, lambda line: None)
    sizes = len(searches.size_plan({"T": T}))
    assert counts == [64] * sizes + [100] * sizes + [64] * sizes


def test_a_constant_that_is_too_large_is_inconclusive() -> None:
    """Plain numbers raise where arrays become infinite: no verdict is a traceback."""

    def overflowing(*_: Any) -> Any:
        return 1e200**2

    wide = toy(sides=lambda p, variant: Sides(p.u[0], overflowing()))
    for verdict in (
        judge(wide, point(1, 2, 0, 0)),
        verdicts.judge_hardest(wide, [point(1, 2, 0, 0), point(1, 3, 0, 0)], "printed"),
    ):
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert "too large" in verdict.message
    bound, checks = toy(bound=overflowing).promise(None, "printed")
    assert (bound.rhs, checks) == (math.inf, ())
    unknown = toy(bound=lambda *_: Bound(1.0), requires=overflowing)
    assert not any(check.holds for check in unknown.promise(None, "printed")[1])


def test_an_activation_of_any_scale_is_audited() -> None:
    claim = claims["arda2026/eq-36"]
    sample = claim.families[0].sample(stream(0, "scale"))
    verdict = judge(claim, replace(sample, activation="1e200*tanh(1e-200*x)"))
    assert verdict.outcome is not Outcome.VIOLATED  # no constant with a square of 1e200 enters
    assert verdict.message


@pytest.mark.parametrize("size", [1e-170, 1e170, -1e-170])
def test_nothing_holds_where_squares_vanish_or_overflow(size: float) -> None:
    """1/(1 + u^2) <= 1/(1 + 2 u^2) and u^2 <= u^2/2 are false; float64 sees 0 <= 0 or 1 <= 1."""
    for sides in (
        lambda p, variant: Sides(p.u[0] ** 2, p.u[0] ** 2 / 2),
        lambda p, variant: Sides(1 / (1 + p.u[0] ** 2), 1 / (1 + 2 * p.u[0] ** 2)),
    ):
        false = toy(sides=sides)
        assert judge(false, point(0.5, 0, 0, 0)).outcome is Outcome.VIOLATED
        for verdict in (
            judge(false, point(size, 0, 0, 0)),
            verdicts.judge_hardest(false, [point(size, 0, 0), point(0, 0, 0)], "printed"),
        ):
            assert verdict.outcome is Outcome.INCONCLUSIVE
            assert verdict.message
    assert judge(toy(), point(0, 1e-140, 0, 0)).outcome is Outcome.HOLDS


def test_a_small_probability_is_no_small_number() -> None:
    claim = claims["arda2026/mean-loss"]
    sample = claim.families[0].sample(stream(0, "small"))
    assert judge(claim, replace(sample, delta=np.asarray(1e-200))).outcome is Outcome.HOLDS
