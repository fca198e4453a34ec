"""The small parts of the engine, each against what its docstring says, to the last boundary."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jaxtyping import Float

from headcount import check_certificate as checker
from headcount.core import Array, BadArgument, float64
from headcount.core._rounding import ordered
from headcount.theory import (
    Ball,
    Box,
    Certificate,
    Claim,
    Family,
    Form,
    Integers,
    Kind,
    Orthogonal,
    Outcome,
    PositiveSemidefinite,
    Sides,
    Signs,
    Simplex,
    Sphere,
    Tokens,
    _count,
    _falsify,
    _practice,
    _recheck,
    instance_class,
    recheck,
)
from headcount.theory._ball_linalg import eigenvalues
from headcount.theory._certificate import FORMAT
from headcount.theory._exact_points import exactly, rationals
from headcount.theory._frequency import Experiment, Frequency, Interval, clopper_pearson
from headcount.theory._judge_frequency import judge_exactly
from headcount.theory._prove import _seen, ratio_in_balls
from headcount.theory._search import Candidate
from headcount.theory._shrink import _SHORTER, _kept, _smaller
from headcount.theory._starts import STRUCTURES, neighbours, starts
from headcount.theory._verdict import decide
from headcount.theory.balls import at_precision
from headcount.theory.domain import Domain
from headcount.theory.families import safe_norm
from headcount.theory.slow import FLOATS, Arithmetic, _table, activation


@instance_class
@dataclass(frozen=True)
class Two(Domain):
    """A vector and a matrix over it."""

    u: Float[Array, "k"]
    A: Float[Array, "k 3"]


def draw(rng: np.random.Generator, count: int) -> Two:
    return Two(rng.normal(size=(count, 4)), rng.normal(size=(count, 4, 3)))


def _difference(two: Two, variant: str) -> Sides:
    """(1 + u_0) - 1 <= 2 u_0: where u_0 is tiny, float64 sees rounding on the left."""
    return Sides((1 + two.u[0]) - 1, 2 * two.u[0])


def _difference_naive(num: Arithmetic, data: Any, variant: str) -> tuple[Any, Any]:
    one, x = num.number(1), data["u"][0]
    return (one + x) - one, 2 * x


def toy(**changes: Any) -> Claim:
    values = {
        "id": "toy/difference",
        "title": "A difference",
        "kind": Kind.DETERMINISTIC,
        "equations": "none",
        "statement": "(1 + u) - 1 <= 2 u",
        "latex": "u\\le 2u",
        "sides": _difference,
        "naive": _difference_naive,
        "families": (Family("two", draw, lambda i: i),),
        "variants": {"printed": Form("as printed")},
        "default": "printed",
    }
    return Claim(**{**values, **changes})


def tiny(u: float) -> Two:
    return Two(np.full(4, u), np.zeros((4, 3)))


def test_a_ratio_that_is_rounding_is_not_reported() -> None:
    """In float64 (1 + 2^-53 1.2) - 1 is 2^-52 and the ratio 1/1.2; in truth it is 1/2."""
    noisy, plain = tiny(1.2 * 2.0**-53), tiny(0.25)
    assert ratio_in_balls(toy(), "printed", noisy) == pytest.approx(0.5)
    seen = [Candidate(np.log([1 / 1.2]), noisy, "noise"), Candidate(np.log([0.5]), plain, "plain")]
    found = _falsify.settle(toy(), "printed", seen)
    assert (found.violated, found.worst_ratio) == (False, pytest.approx(0.5))
    # Seen above 1 it is refuted, and what it is in truth still counts.
    alone = _falsify.settle(toy(), "printed", [Candidate(np.log([3.0]), noisy, "noise")])
    assert (alone.violated, alone.worst_ratio) == (False, pytest.approx(0.5))
    assert alone.worst is not None
    nothing = _falsify.settle(toy(), "printed", [Candidate(np.array([-np.inf]), noisy, "none")])
    assert (nothing.worst, nothing.worst_ratio) == (None, 0.0)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (0.1, 0.2, "undecided"),
        (0.11, 0.2, "proved"),
        (0.0, 0.1, "refuted"),
        (0.0, 0.11, "undecided"),
    ],
)
def test_an_interval_must_lie_above_delta(low: float, high: float, outcome: str) -> None:
    found = Frequency(15, 100, 0.1, Interval(low, high))
    status, message = _recheck._judge_count(found, found)
    assert status == outcome
    assert message.split(":")[0] in (outcome, "the violation is established")


@pytest.mark.parametrize(("said", "status"), [(290, "proved"), (10, "refuted"), (400, "refuted")])
def test_a_count_is_counted_again(said: int, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = Experiment(
        cases=({"delta": 0.5},),
        draw=lambda case, rng, count: draw(rng, count),
        sides=_difference,
        exceeds_naively=lambda case, variant, seed, repetitions: 300,
    )
    claim = toy(kind=Kind.HIGH_PROBABILITY, families=(), experiment=experiment)
    monkeypatch.setattr(_recheck, "claims", {claim.id: claim})
    own = {"seed": 0.0, "delta": 0.5, "ratio": said / 400 / 0.5}
    low = clopper_pearson(said, 400).low
    counts = {"exceedances": float(said), "repetitions": 400.0, "low": low, **own}
    result = recheck(Certificate(claim.id, "printed", "frequency", counts, case={"delta": 0.5}))
    assert result.status == status, result.message
    assert result.ratio == pytest.approx(300 / 400 / 0.5)
    if status == "proved":
        assert "failed 300 of 400 times" in result.message
    else:
        assert f"the file counts {said} exceedances, the recheck 300" in result.message


@pytest.mark.parametrize(
    ("numbers", "steps", "fine"), [(2000, 200, True), (2001, 1, False), (1, 201, False)]
)
def test_work_is_refused_from_the_first_number_too_many(
    numbers: int, steps: int, fine: bool
) -> None:
    instance = {"x": np.zeros(numbers - 1), "K": steps}
    certificate = Certificate("toy/difference", "printed", FORMAT, {}, instance)
    if fine:
        _recheck._check_work(toy(), certificate)
        return
    with pytest.raises(BadArgument, match="make it smaller"):
        _recheck._check_work(toy(), certificate)


def test_the_entry_shown() -> None:
    """Of an identity the one that differs most, of an inequality the worst that is violated."""
    left, right = [arb(1), arb(2), arb(9)], [arb(1.5), arb(5), arb(10)]
    for claim, below, entry in (
        (toy(kind=Kind.IDENTITY), [True] * 3, (2.0, 5.0)),
        (toy(), [True] * 3, (9.0, 10.0)),
        (toy(), [False, True, None], (1.0, 1.5)),
    ):
        seen = _seen(claim, left, right, below, ())
        assert (seen.lhs, seen.rhs) == entry
        assert seen.ratio == pytest.approx(entry[0] / entry[1])
        assert float(seen.excess) == entry[0] - entry[1]


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(0.1, 0.2, "inconclusive"), (0.11, 0.2, "violated"), (0.0, 0.1, "holds")],
)
def test_a_probability_that_is_enclosed(low: float, high: float, outcome: str) -> None:
    verdict = judge_exactly(toy(), "printed", Interval(low, high), 0.1)
    assert verdict.outcome == outcome
    assert verdict.ratio == pytest.approx(low / 0.1)


def test_an_identity_holds_up_to_rounding() -> None:
    claim, sides = toy(kind=Kind.IDENTITY), Sides(np.ones(2), np.ones(2))
    at, beyond = (decide(claim, "printed", sides, (), ratio) for ratio in (1.0, 1.1))
    assert (at.outcome, beyond.outcome) == (Outcome.HOLDS, Outcome.VIOLATED)
    assert at.message == "both sides agree to 1e-09"


def test_two_numbers_are_shown_in_their_order() -> None:
    assert ordered(0.1713, 0.1714) == ("0.1713", "0.1714")
    assert ordered(0.1714, 0.1713) == ("0.1714", "0.1713")
    assert ordered(0.25, 0.25) == ("0.25", "0.25")
    assert ordered(1.0, 2.0) == ("1", "2")


def test_half_of_the_excess_is_kept() -> None:
    assert _kept(toy(), 1.5) == 1.25
    assert _kept(toy(), 9.0) == 1.5
    assert _kept(toy(), math.inf) == 5e5
    assert _kept(toy(kind=Kind.IDENTITY), 40.0) == 20.0


def test_entries_are_left_out_one_by_one_and_in_pairs() -> None:
    four = {"u": np.arange(4.0), "A": np.zeros((4, 3))}
    left = [tuple(move(four)["u"]) for move in _smaller(Two, four)]  # type: ignore[index]
    assert left[:2] == [(1.0, 3.0), (0.0, 2.0)]
    assert left[2:] == list(itertools.combinations(range(4), 3))[::-1]
    three = {"u": np.arange(3.0), "A": np.zeros((3, 3))}
    assert len(list(_smaller(Two, three))) == 3
    assert list(_smaller(Two, {"u": np.ones(1), "A": np.ones((1, 3))})) == []


def test_shorter_values_begin_with_one_digit_and_one_bit() -> None:
    values = [float(cut(np.array(0.7654321))) for cut in _SHORTER]
    assert values[:5] == [0.7, 0.76, 0.765, 0.7654, 0.5]
    assert values == sorted(values[:4]) + sorted(values[4:])


def test_special_shapes() -> None:
    equal, opposite, one_hot, signs, zero = STRUCTURES
    A = np.array([[[1.0, -2.0], [3.0, 4.0], [0.5, 9.0]]])
    np.testing.assert_array_equal(equal(A), [[[1.0, -2.0]] * 3])
    np.testing.assert_array_equal(opposite(A), [[[1.0, -2.0], [-1.0, 2.0], [1.0, -2.0]]])
    np.testing.assert_array_equal(one_hot(A), [[[0.0, -1.0], [0.0, 1.0], [0.0, 1.0]]])
    u = np.array([[2.0, -3.0, 4.0]])
    np.testing.assert_array_equal(equal(u), [[2.0, 2.0, 2.0]])
    np.testing.assert_array_equal(opposite(u), [[2.0, -2.0, 2.0]])
    np.testing.assert_array_equal(one_hot(u), [[0.0, 0.0, 1.0]])
    for scalar in (np.array([5.0, -7.0]),):
        np.testing.assert_array_equal(equal(scalar), scalar)
        np.testing.assert_array_equal(opposite(scalar), scalar)
        np.testing.assert_array_equal(one_hot(scalar), np.sign(scalar))
    np.testing.assert_array_equal(signs(A), np.sign(A))
    np.testing.assert_array_equal(zero(A), np.zeros_like(A))


def test_a_third_of_the_starts_is_plain_a_third_rescaled_a_third_shaped() -> None:
    family = Family("two", draw, lambda i: i)
    plain = draw(np.random.default_rng(3), 300)
    begun = starts(family, np.random.default_rng(3), 300)
    np.testing.assert_array_equal(begun.A[::3], plain.A[::3])
    factors = begun.A[1::3] / plain.A[1::3]
    np.testing.assert_allclose(factors, np.broadcast_to(factors[:, :1, :1], factors.shape))
    assert np.min(factors) < 0.01
    assert np.max(factors) > 1e3
    kept = np.all(begun.A[2::3] == plain.A[2::3], axis=(1, 2))
    assert 20 < kept.sum() < 80  # half of the shaped ones, and one array of two may stay


def test_neighbours_move_all_arrays_or_one_or_reshape_one() -> None:
    best = draw(np.random.default_rng(0), 1)
    near = neighbours(best, np.random.default_rng(1), 300)
    moved = np.stack([np.any(near.u != best.u, axis=1), np.any(near.A != best.A, axis=(1, 2))])
    assert moved[:, ::3].all()
    np.testing.assert_array_equal(moved[:, 1::3].sum(axis=0), 1)
    assert np.all(moved[:, 2::3].sum(axis=0) <= 1)
    assert moved[:, 2::3].sum() > 60
    step = np.abs(near.u[::3] - best.u).max(axis=1) / np.sqrt(np.mean(best.u**2))
    assert step.min() < 1e-3 < 0.3 < step.max() < 2.5


def test_widths_are_tried_on_a_known_grid() -> None:
    asked: list[float] = []

    def never(value: float) -> bool:
        asked.append(value)
        return False

    assert _practice._search_width(never, 2, 60) == (None, "not reached up to width 54")
    assert asked == [*range(2, 33, 2), 38, 46, 54]
    asked.clear()
    assert _practice._search_width(lambda w: never(w) or w >= 44, 2, 60)[0] == 44.0
    assert asked == [*range(2, 33, 2), 38, 46, 40, 42, 44]


def test_inverted_bounds_are_tried_on_a_known_grid() -> None:
    values = list(itertools.islice(_count.Grid().values(3), 200))
    assert values[:64] == list(range(3, 193, 3))
    ratios = np.divide(values[64:], values[63:-1])
    np.testing.assert_allclose(ratios, 2 ** (1 / 8), rtol=0.02)
    assert values[63 + 8] == 2 * values[63]
    last = max(_count.Grid().values())
    assert 2.0**999 < last <= 2**1000
    assert list(itertools.islice(_count._octaves(3), 3)) == [3, 6, 12]


def test_a_norm_may_be_differentiated_twice_at_zero() -> None:
    assert np.all(np.isfinite(jax.hessian(safe_norm)(jnp.zeros(3))))


@pytest.mark.parametrize("bits", [96, 384])
def test_eigenvalues_are_enclosed_to_the_working_precision(bits: int) -> None:
    """diag(1, 2, 3, 4) in a rational orthogonal basis, so that the answer is known exactly."""
    v = [arb(1), arb(2), arb(-1), arb(3)]
    with at_precision(bits):
        Q = [[arb(int(i == j)) - 2 * v[i] * v[j] / 15 for j in range(4)] for i in range(4)]
        A = [
            [sum((Q[i][k] * (k + 1) * Q[j][k] for k in range(4)), arb(0)) for j in range(4)]
            for i in range(4)
        ]
        found = eigenvalues(np.array(A, dtype=object))
        for value, expected in zip(found, (1, 2, 3, 4), strict=True):
            assert value.contains(expected)
            assert value.rad() < arb(2) ** (30 - bits)


def test_certificates_of_frequencies_are_for_the_claim_as_it_is() -> None:
    experiment = Experiment(
        cases=({"delta": 0.1},),
        draw=lambda case, rng, count: draw(rng, count),
        sides=lambda two, variant: Sides(jnp.ones(()), jnp.full((), 0.5)),
        exceeds_naively=lambda case, variant, seed, repetitions: repetitions,
    )
    claim = toy(kind=Kind.HIGH_PROBABILITY, families=(), experiment=experiment)
    plan = _falsify.Budget(random=50, restarts=1, steps=1)
    found = _falsify.falsify(claim, budget=plan)
    assert found.violated
    assert found.certificate is not None
    assert found.certificate.claimed["exceedances"] == 400
    scaled = _falsify.falsify(claim.with_bound_scaled(1.5), budget=plan)
    assert scaled.violated
    assert scaled.certificate is None
    assert not _falsify.falsify(claim.with_bound_scaled(3.0), budget=plan).violated


@pytest.mark.parametrize("name", [*_table(FLOATS), "3*tanh(0.5*x)"])
def test_slow_activations_against_differences(name: str) -> None:
    """Slope and curvature by central differences; the bounds are attained, and not exceeded."""
    sigma = activation(FLOATS, name)
    x, h = np.linspace(-12, 12, 4801), 1e-4
    value, slope, curvature = (
        np.array([float(f(t)) for t in x]) for f in (sigma.value, sigma.slope, sigma.curvature)
    )
    for f, derivative in ((sigma.value, slope), (sigma.slope, curvature)):
        differences = [float(f(t + h) - f(t - h)) / (2 * h) for t in x]
        np.testing.assert_allclose(derivative, differences, atol=1e-7)
    for bound, seen in zip(sigma.bounds, (value, slope, curvature), strict=True):
        room = 0.06 if name == "arctan" else 1e-4  # arctan comes near pi/2 slowly
        assert np.max(np.abs(seen)) <= float(bound) * (1 + 1e-12)
        assert np.max(np.abs(seen)) >= float(bound) * (1 - room)


SPACES = {
    "box": Box(3, low=-0.1, high=0.7),
    "ball": Ball(3, radius=0.7),
    "sphere": Sphere(3, radius=0.3),
    "tokens": Tokens(2, 3),
    "simplex": Simplex(3),
    "signs": Signs(3),
    "integers": Integers(3),
    "orthogonal": Orthogonal(3),
    "semidefinite": PositiveSemidefinite(3),
}


@pytest.mark.parametrize("name", SPACES)
def test_exact_points_lie_in_their_space_and_near_the_given_one(name: str) -> None:
    space, rng = SPACES[name], np.random.default_rng(3)
    for scale in (0.0, 0.1, 1.0, 30.0):
        for raw in space.draw(rng, 4, {})[""] * scale:
            exact = exactly(space, rationals(raw, decimal=True))
            values = [checker.number(str(v)) for v in exact.values.ravel()]
            assert checker.inside(values, list(raw.shape), exact.where)
            with float64():
                wanted = np.asarray(space.value(jax.numpy.asarray(raw)))
            np.testing.assert_allclose(exact.values.astype(float), wanted, atol=1e-14)
            moved = [values[0] - 10**6, *values[1:]]
            assert not checker.inside(moved, list(raw.shape), exact.where)
