"""The search looks at every size, every scale and every form of a claim; what it found is kept."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Float

from headcount.core import Array, BadArgument, stream
from headcount.theory import (
    Budget,
    Claim,
    Family,
    Form,
    Kind,
    Outcome,
    Sides,
    claims,
    falsify,
    instance_class,
    judge,
    judge_frequency,
)
from headcount.theory.domain import Domain
from headcount.theory.slow import Arithmetic


@instance_class
@dataclass(frozen=True)
class Vector(Domain):
    """A vector with entries in [-1, 1]."""

    x: Float[Array, "k"]


def _norms(i: Vector, variant: str) -> Sides:
    bound = 2.0 if variant == "printed" else 1.9
    return Sides(jnp.sum(jnp.abs(i.x)), bound * jnp.sqrt(jnp.sum(i.x**2) + 1e-12))


def _norms_naive(num: Arithmetic, data: Any, variant: str) -> tuple[Any, Any]:
    total = num.total([num.absolute(x) for x in data["x"]])
    squares = num.total([x * x for x in data["x"]]) + num.number(1e-12)
    return total, num.number(2.0 if variant == "printed" else 1.9) * num.sqrt(squares)


@functools.cache
def few_entries(**more: Any) -> Claim:
    """|x|_1 <= 2 |x|_2: true up to four entries, false from five on; the family has two."""
    family = Family(
        "two entries",
        lambda rng, count: Vector(rng.uniform(-1, 1, (count, 2))),
        lambda i: Vector(jnp.clip(i.x, -1.0, 1.0)),
        **more,
    )
    return Claim(
        id="toy/few-entries",
        title="A matter of size",
        kind=Kind.DETERMINISTIC,
        equations="none",
        statement="|x|_1 <= 2 |x|_2",
        latex="|x|_1 \\le 2|x|_2",
        sides=_norms,
        naive=_norms_naive,
        families=(family,),
        variants={"printed": Form("constant 2"), "sharp": Form("constant 1.9")},
        default="printed",
    )


SHORT = Budget(random=64, restarts=2, steps=40)


def test_a_claim_that_is_false_at_another_size_only_is_found() -> None:
    small = falsify(few_entries(), budget=SHORT)
    assert not small.violated
    assert small.worst_ratio == pytest.approx(np.sqrt(2) / 2, rel=1e-6)
    found = falsify(few_entries(), budget=replace(SHORT, sizes=3))
    assert found.violated
    assert found.proof is not None
    assert found.proof.proved
    assert "k=8" in found.where
    assert isinstance(found.worst, Vector)
    # From sqrt(8)/2 down to the fewest entries with half of its excess.
    assert found.worst.x.shape == (6,)


def test_the_worst_of_all_candidates_is_reported() -> None:
    places = (np.array([1.0, 0.0]), np.ones(4), np.array([1.0, 0.5]))
    claim = replace(few_entries(), families=(), targets=lambda: tuple(map(Vector, places)))
    found = falsify(claim, budget=SHORT)
    assert found.where == "construction 2"
    assert found.worst_ratio == pytest.approx(1.0)
    assert found.instances == 3
    with pytest.raises(BadArgument, match="nothing to search"):
        falsify(claim, budget=SHORT, cold=True)


def test_a_family_may_limit_its_sizes() -> None:
    found = falsify(few_entries(largest=4), budget=replace(SHORT, sizes=3))
    assert not found.violated
    assert found.worst_ratio == pytest.approx(1.0, rel=1e-6)


def test_sizes_are_let_be_once_a_violation_is_known() -> None:
    broken = few_entries().with_bound_scaled(0.5)
    found = falsify(broken, budget=replace(SHORT, sizes=3))
    assert found.violated
    assert found.instances == falsify(broken, budget=SHORT).instances


def test_large_values_of_U_are_reached() -> None:
    """Lemma 2b is tight only as |U| grows: a search at one scale stops at 0.87."""
    claim = claims["arda2026/lemma-2b"]
    claim = replace(claim, families=claim.families[1:2], variants={"printed": Form("alone")})
    found = falsify(claim, budget=Budget(random=2000, restarts=12, steps=400), cold=True)
    assert 0.995 < found.worst_ratio <= 1, found.message
    assert isinstance(found.worst, type(claim.families[0].sample(stream(0, "x"))))
    assert np.linalg.norm(found.worst.U) > 10  # type: ignore[attr-defined]


def _uncertain(width: float) -> Claim:
    """An estimate of 1.1 |x| with an interval, against |x|."""

    def sides(i: Vector, variant: str) -> Sides:
        size = jnp.sqrt(jnp.sum(i.x**2) + 1.0)
        return Sides(1.1 * size, size, spread=width * size)

    def naive(num: Arithmetic, data: Any, variant: str) -> tuple[Any, Any]:
        size = num.sqrt(num.total([x * x for x in data["x"]]) + 1)
        return num.number(1.1) * size, size

    return replace(few_entries(), kind=Kind.EXPECTATION, sides=sides, naive=naive)


def test_an_estimate_whose_interval_straddles_the_bound_violates_nothing() -> None:
    vector = Vector(np.array([0.5, -0.25]))
    wide, narrow = _uncertain(0.2), _uncertain(0.05)
    assert judge(wide, vector).outcome is Outcome.INCONCLUSIVE
    assert judge(narrow, vector).outcome is Outcome.VIOLATED
    assert not falsify(wide, budget=SHORT).violated
    assert falsify(wide, budget=SHORT).worst_ratio == pytest.approx(0.9)
    assert falsify(narrow, budget=SHORT).violated


def test_an_equality_is_no_violation_however_float64_rounds() -> None:
    """Both sides are |x|^2 + 1, one of them with a rounding error of 1e-8."""

    def sides(i: Vector, variant: str) -> Sides:
        square = jnp.sum(i.x**2) + 1.0
        return Sides((square + 1e9) - 1e9 + 3e-7, square + 3e-7)

    def naive(num: Arithmetic, data: Any, variant: str) -> tuple[Any, Any]:
        square = num.total([x * x for x in data["x"]]) + 1
        return square, square

    claim = replace(few_entries(), sides=sides, naive=naive)
    found = falsify(claim, budget=SHORT)
    assert not found.violated
    assert found.certificate is None


def test_half_of_lemma_5_is_found_false_by_exact_probabilities() -> None:
    claim = claims["arda2026/lemma-5"].with_bound_scaled(0.5)
    found = falsify(claim, budget="small")
    assert found.violated, found.message
    assert "m=2" in found.where
    whole = falsify(claims["arda2026/lemma-5"], budget="small")
    assert not whole.violated


EXACT = {
    "data": "antipodal",
    "n": 1,
    "T": 2,
    "d": 1,
    "policy": "aligned",
    "activation": "50*tanh(0.02*x)",
    "nu_c": 1e-4,
    "nu_u": 1e-4,
    "nu_w": 1.0,
    "m": 2,
    "delta": 0.01,
}
"""One head whose worst term is |U| / cosh(W)^2, almost: s is nearly linear."""


@pytest.mark.parametrize("activation", ["tanh", "erf", "50*tanh(0.02*x)"])
@pytest.mark.parametrize("nu_u", [1e-4, 1.0])
def test_the_exact_probability_agrees_with_draws(activation: str, nu_u: float) -> None:
    claim = claims["arda2026/lemma-5"]
    assert claim.experiment is not None
    assert claim.experiment.exact is not None
    case = {**EXACT, "activation": activation, "nu_u": nu_u}
    for factor in (0.1, 0.3):
        low, high = claim.experiment.exact(case, "corrected", factor)
        assert 0 <= low <= high <= min(1.0, 1.2 * low + 1e-4)
        drawn = replace(claim, experiment=replace(claim.experiment, exact=None))
        estimate = judge_frequency(drawn.with_bound_scaled(factor), case, repetitions=20_000)
        assert estimate.frequency is not None
        assert estimate.frequency.interval.low <= high
        assert estimate.frequency.interval.high >= low


def test_the_exact_probability_of_one_gaussian_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """P(|U| > x cosh(W)^2) by a fine one-dimensional sum."""
    from scipy import stats

    from headcount.papers.arda2026 import lemma_5_exact

    claim = claims["arda2026/lemma-5"]
    assert claim.experiment is not None
    assert claim.experiment.exact is not None
    case = {**EXACT, "nu_c": 1e-9, "nu_u": 1e-9}
    W = (np.arange(200_000) + 0.5) * 1e-4 - 10
    x = np.sqrt(np.log(200)) * np.cosh(W) ** 2
    truth = float(np.sum(2 * stats.norm.sf(x) * stats.norm.pdf(W)) * 1e-4)
    for cells in (40, 720):  # coarse cells show an enclosure that is not one
        monkeypatch.setattr(lemma_5_exact, "CELLS", cells)
        low, high = claim.experiment.exact(case, "corrected", 0.5)
        assert low <= truth * (1 + 1e-3)
        assert high >= truth * (1 - 1e-3)
    verdict = judge_frequency(claim.with_bound_scaled(0.5), {**case, "delta": 1e-4})
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.frequency is None
    assert judge_frequency(claim, case).outcome is Outcome.HOLDS
