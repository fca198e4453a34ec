"""The search part by part: scores, pools, what is counted, other sizes, shrinking."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from toy_points import PLAIN, Point, draw, point, toy

from headcount.core import float64
from headcount.theory import Budget, Family, Form, Kind, Sides
from headcount.theory import _search as search
from headcount.theory import _shrink as shrinking
from headcount.theory import _sizes as sizes
from headcount.theory import _starts as beginnings
from headcount.theory._search import Candidate


def test_scores_of_every_form() -> None:
    assert search.scores_of(toy(), point(3, 2, 0, 0)) == pytest.approx(np.log([1.5, 0.75]))
    assert search.scores_of(toy(), point(3, 2, 1, 0)) == pytest.approx(np.log([1.5, 0.75]))
    assert list(search.scores_of(toy(), point(3, 2, 1.1, 0))) == [-np.inf] * 2
    scaled = toy().with_bound_scaled(0.5)
    assert search.scores_of(scaled, point(3, 2, 0, 0)) == pytest.approx(np.log([3.0, 1.5]))
    objective = search._Objective.of(toy())
    assert not objective.wary
    assert float(objective.excess(point(0, 0, 3, 0), "printed")) == pytest.approx((3 - 1) / (1 + 1))
    assert float(objective.excess(point(0, 0, -3, 0), "printed")) == 0
    assert Budget(random=7, restarts=3, steps=5).evaluations == 22


def test_without_a_twin_negative_sides_and_rounding_do_not_count() -> None:
    wary = toy(naive=None, hypotheses=())
    assert search._Objective.of(wary).wary
    assert search.scores_of(wary, point(3, 2, 0, 0)) == pytest.approx(np.log([1.5, 0.75]), abs=1e-9)
    for bad in ((-1, 2), (3, -2), (-3, -2)):
        assert list(search.scores_of(wary, point(*bad, 0, 0))) == [-np.inf] * 2
    assert search.scores_of(wary, point(0, 2, 0, 0))[0] > -np.inf

    def trembling(p: Point, variant: str) -> Sides:
        return Sides(1 + 1e12 * (p.u[0] - 1) ** 2 + 2.0**40 * abs(p.u[0] - 1), 1.0)

    shaky = toy(naive=None, hypotheses=(), sides=trembling)
    assert search.scores_of(shaky, point(1, 0, 0, 0))[0] <= 0


def pool(scores: Any) -> search._Pool:
    scores = np.asarray(scores, dtype=float)
    batch = Point(np.arange(4.0 * len(scores)).reshape(-1, 4), np.zeros((len(scores), 4, 2)))
    return search._Pool(batch, scores)


def test_the_worst_come_first() -> None:
    own = pool([[1.0, 5.0], [3.0, 0.0], [3.0, 7.0], [2.0, 6.0]])
    assert own.worst(0, 3).tolist() == [1, 2, 3]
    assert own.worst(1, 2).tolist() == [2, 3]
    assert own.take(2).u.tolist() == [8, 9, 10, 11]
    own.add(Point(np.full((1, 4), 9.0), np.zeros((1, 4, 2))), [[9.0, 9.0]])
    assert own.worst(0, 1).tolist() == [4]
    assert own.take(4).u.tolist() == [9.0] * 4
    many = pool([[k, -k] for k in range(40)])
    found = [int(c.scores[0]) for c in many.candidates(PLAIN, "here")]
    assert found == [*range(8), *range(32, 40)]
    assert {c.where for c in many.candidates(PLAIN, "here")} == {"here"}


def _near_three(p: Point, variant: str) -> Sides:
    """A ratio of 1 at u = (3, 3, 3, 3), and less elsewhere."""
    return Sides(jnp.ones(()), 1 + jnp.sum((p.u - 3) ** 2) * (2.0 if variant == "wide" else 1.0))


@pytest.mark.parametrize(
    ("kind", "differentiable", "evaluated"),
    [
        (Kind.IDENTITY, True, 24),
        (Kind.DETERMINISTIC, False, 24 + 3 * 24),
        (Kind.DETERMINISTIC, True, 24 + 2 * 2 * 10 + 3 * 24),
    ],
)
def test_what_a_search_evaluates(kind: Kind, differentiable: bool, evaluated: int) -> None:
    family = Family("points", draw, lambda p: p, differentiable, plain=True)
    claim = toy(kind=kind, hypotheses=(), sides=_near_three)
    budget = Budget(random=24, restarts=2, steps=10)
    with float64():
        found, count = search.search_family(claim, family, budget, np.random.default_rng(0))
        first = search._Pool(*search._scorer(claim, family)(draw(np.random.default_rng(0), 24)))
    assert count == evaluated
    for variant in range(2):
        best, begun = (
            max(v[:, variant]) for v in (np.array([c.scores for c in found]), first.scores)
        )
        assert best > begun if kind is Kind.DETERMINISTIC else best == begun
    long = Budget(random=4, restarts=4, steps=5)
    still = Family("points", draw, lambda p: p, False, plain=True)
    with float64():
        _, count = search.search_family(toy(hypotheses=()), still, long, np.random.default_rng(0))
    assert count == 4 + (4 * 5 // 4) * 4


def test_given_starts_take_the_place_of_draws() -> None:
    seen: list[Any] = []

    def scorer(claim: Any, family: Any) -> Any:
        def score(raw: Point) -> Any:
            seen.append(raw)
            return raw, np.zeros((len(raw.u), 2))

        return score

    also = [point(7, 7, 7, 7), point(8, 8, 8, 8)]
    budget = Budget(random=5, restarts=1, steps=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_scorer", scorer)
        identity = toy(kind=Kind.IDENTITY)
        search.search_family(identity, PLAIN, budget, np.random.default_rng(0), also)
        search.search_family(identity, PLAIN, budget, np.random.default_rng(0), also * 4)
    plain = draw(np.random.default_rng(0), 5)
    assert seen[0].u[:2, 0].tolist() == [7, 8]
    np.testing.assert_array_equal(seen[0].u[2:], plain.u[:3])
    assert seen[1].u[:, 0].tolist() == [7, 8, 7, 8, 7]


def candidate(*scores: float) -> Candidate:
    return Candidate(np.array(scores, dtype=np.float64), point(1, 1, 1, 1), "x", PLAIN)


@pytest.mark.parametrize(
    ("start", "raised", "rounds"),
    [
        (-1.0, [-0.5, -0.2, -0.1], 3),
        (-1.0, [-0.5, -0.4995, 0.0], 2),
        (-1.0, [-0.9985, 5.0], 2),
        (-1.0, [-1.0 + 1e-3, 0.0, 0.0], 1),
        (2e-6, [], 0),
        (1e-6, [0.0], 1),
        (0.0, [2e-6], 1),
    ],
)
def test_sizes_are_changed_while_that_helps(
    start: float, raised: list[float], rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []

    def other(claim: Any, best: Candidate, variant: int, budget: Any, rng: Any) -> Any:
        asked.append(best.scores[variant])
        return [candidate(raised[len(asked) - 1], -9.0)], 10

    monkeypatch.setattr(search, "_other_sizes", other)
    claim = toy(variants={"printed": Form("as printed")})
    budget = Budget(1, 1, 1, sizes=3)
    more, count = search.search_sizes(
        claim, [candidate(start, 0.0)], budget, np.random.default_rng(0)
    )
    assert len(asked) == rounds
    assert (len(more), count) == (rounds, 10 * rounds)
    assert asked == sorted(asked)
    identity = toy(kind=Kind.IDENTITY)
    assert search.search_sizes(identity, [candidate(-1, -1)], budget, np.random.default_rng(0)) == (
        [],
        0,
    )


def test_the_most_promising_size_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    def resized(claim: Any, family: Any, instance: Any, rng: Any) -> Any:
        yield "k=2", Point(np.array([1.0, 2.0]), np.zeros((2, 2)))
        yield "k=3", Point(np.array([6.0, 2.0, 0.0]), np.zeros((3, 2)))

    improved: list[int] = []
    monkeypatch.setattr(search, "resized", resized)
    monkeypatch.setattr(
        search, "_improve", lambda c, f, b, r, p: improved.append(p.instances.u.shape[1]) or 100
    )
    claim = toy(hypotheses=())
    budget = Budget(random=72, restarts=2, steps=1)
    with float64():
        found, count = search._other_sizes(
            claim, candidate(-1, -1), 0, budget, np.random.default_rng(0)
        )
    assert improved == [3]
    assert count == 100 + 2 * 9
    assert {c.where for c in found} == {"points, k=3"}
    monkeypatch.setattr(search, "resized", lambda *args: iter(()))
    assert search._other_sizes(claim, candidate(-1, -1), 0, budget, np.random.default_rng(0)) == (
        [],
        0,
    )


def test_which_entries_are_taken_at_other_sizes() -> None:
    rng = np.random.default_rng(0)
    lists = list(sizes._index_lists(4, rng))
    assert lists[0] == [0, 1, 0, 1, 2, 3, 2, 3]
    assert len(lists[1]) == 3
    assert sorted({*range(4)} - {*lists[2]}) in ([0, 2], [1, 3])
    six = list(sizes._index_lists(6, rng))[2]
    assert sorted({*range(6)} - {*six}) in ([0, 3], [1, 4], [2, 5])
    assert [len(found) for found in sizes._index_lists(1, rng)] == [2]
    assert [len(found) for found in sizes._index_lists(2, rng)] == [4, 1]
    assert [len(found) for found in sizes._index_lists(3, rng)] == [6, 2]
    fields = {"u": np.arange(4.0), "A": np.arange(8.0).reshape(4, 2)}
    assert sizes.letters_of(Point, fields) == {"k": 4, "T": 2}
    some = sizes.taken(Point, "k", [3, 0], fields)
    assert (some["u"].tolist(), some["A"].tolist()) == ([3, 0], [[6, 7], [0, 1]])
    other = sizes.taken(Point, "T", [1], fields)
    assert (other["u"].shape, other["A"].tolist()) == ((4,), [[1], [3], [5], [7]])
    for largest, expected in (
        (12, {"k=3", "k=2", "T=1", "T=4"} - {"T=4"}),
        (24, {"k=8", "k=3", "k=2", "T=1", "T=4"}),
    ):
        family = Family("points", draw, lambda p: p, largest=largest)
        claim = toy(hypotheses=())
        labels = {label for label, _ in sizes.resized(claim, family, point(1, 2, 3, 4), rng)}
        assert labels == expected


def test_neighbours_and_starts_to_the_number() -> None:
    best = Point(np.full((1, 4), 2.0), np.full((1, 4, 2), 3.0))
    near = beginnings.neighbours(best, np.random.default_rng(0), 3000)
    step = np.sqrt(np.mean((near.u[::3] - 2.0) ** 2, axis=1)) / 2
    assert step.min() > 1e-5
    assert np.quantile(step, 0.5) == pytest.approx(math.sqrt(1e-4 * 0.5), rel=0.25)
    assert 0.3 < step.max() < 1.5
    reshaped = near.A[2::3][np.any(near.A[2::3] != 3.0, axis=(1, 2))]
    assert set(np.unique(np.abs(reshaped)).round(6)) <= {0.0, 3.0, 9.0}
    rescaled = beginnings._rescaled(np.ones((4000, 2)), np.random.default_rng(0))
    assert rescaled.min() == pytest.approx(1e-3, rel=0.05)
    assert rescaled.max() == pytest.approx(1e4, rel=0.05)
    np.testing.assert_array_equal(rescaled[:, 0], rescaled[:, 1])
    assert np.median(rescaled) == pytest.approx(math.sqrt(1e-3 * 1e4), rel=0.3)
    plain = beginnings.starts(PLAIN, np.random.default_rng(3), 9)
    np.testing.assert_array_equal(plain.u, draw(np.random.default_rng(3), 9).u)


def test_fewer_bits_and_digits() -> None:
    x = np.array([0.7654321, -765.4321, 0.0])
    assert shrinking.fewer_bits(2)(x).tolist() == [0.75, -512.0, 0.0]
    assert shrinking.fewer_bits(3)(x).tolist() == [0.75, -640.0, 0.0]
    assert shrinking.fewer_digits(2)(x).tolist() == [0.76, -760.0, 0.0]
    assert shrinking._cut(math.inf, 2) == math.inf
    assert shrinking._cut(0.0999, 1) == 0.09
    assert shrinking._of_size(1.0)(np.array([0.5, -4.0])).tolist() == [0.12, -1.0]
    assert shrinking._of_size(10.0)(np.array([0.5, -4.0])).tolist() == [1.2, -10.0]
    assert shrinking._of_size(1.0)(np.zeros(2)).tolist() == [0.0, 0.0]
    rounder = list(shrinking._rounder(2.64))
    assert rounder[:7] == [0.0, 1.0, 3.0, 0.5, 2.6, 2.7, 2.5]
    assert rounder[7:9] == [2.0, 2.6]
    assert len(rounder) == 7 + len(shrinking._SHORTER)
    assert shrinking.to_read(np.array([0.0, 1.0, 0.25])) == 4


def test_a_counterexample_is_made_smaller_and_simpler() -> None:
    bounded = toy(
        sides=lambda p, variant: Sides(p.u[0], 1.0),
        naive=lambda num, data, variant: (data["u"][0], num.number(1)),
    )
    long = Point(np.array([2.7183, 1.4142, 0.3333, -0.7]), np.full((4, 2), 0.1234))
    small = shrinking.shrink(bounded, "printed", long)
    assert small.u.shape == (3,)
    assert small.A.shape == (3, 1)
    assert not small.A.any()
    assert small.u[0] >= 1.5
    assert shrinking.to_read(small.u) == 2
    claim, fine = toy(), point(1, 2, 0, 0)
    assert shrinking.shrink(claim, "printed", fine) is fine
    equal = point(2, 2, 0, 0)
    assert shrinking.shrink(claim, "printed", equal) is equal
    outside = point(3, 2, 1.5, 0)
    assert shrinking.shrink(claim, "printed", outside) is outside


def test_the_ratio_of_a_candidate() -> None:
    claim, fields = toy(), {"u": np.array([3.0, 2.0, 1.0, 0.0]), "A": np.zeros((4, 2))}
    ratio = lambda **more: shrinking._ratio(claim, "printed", Point, {**fields, **more})  # noqa: E731
    assert ratio() == 1.5
    assert ratio(u=np.array([3.0, 2.0, 1.0 + 1e-15, 0.0])) is None
    assert ratio(u=np.array([3.0, 2.0])) is None
    assert ratio(u=np.array([np.nan, 2.0, 0.0, 0.0])) is None
    assert shrinking._ratio(claim, "wide", Point, fields) == 0.75
    judged = SimpleNamespace(hypotheses=(), ratio=math.nan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shrinking, "judge", lambda *args: judged)
        assert shrinking._compiled_ratio(claim, "printed", point(1, 1)) is None
        judged.ratio = 2.0
        assert shrinking._compiled_ratio(claim, "printed", point(1, 1)) == 2.0
        judged.hypotheses = (SimpleNamespace(value=1.0, threshold=1.0),)
        assert shrinking._compiled_ratio(claim, "printed", point(1, 1)) == 2.0
        judged.hypotheses = (SimpleNamespace(value=1.0 + 1e-15, threshold=1.0),)
        assert shrinking._compiled_ratio(claim, "printed", point(1, 1)) is None
