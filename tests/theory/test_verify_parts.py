"""Branch and bound part by part: faces, halves, volumes, counts of boxes, words."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb
from jax import lax

from headcount.core import BadArgument
from headcount.theory import Ball, Box, Integers, Signs, Size, _cells, _verify, given, lemma, verify
from headcount.theory._verification import Answer, Verification
from headcount.theory.balls import hull

UP, DOWN, EITHER, FLAT = arb(1), arb(-1), hull(arb(-1), arb(2)), arb(0)


def test_the_face_where_a_function_is_smallest() -> None:
    cell = ((0.0, 1.0), (2.0, 5.0), (-1.0, 1.0))
    assert _cells.lowest_face(cell, [UP, DOWN, EITHER]) == ((0, 0), (5, 5), (-1, 1))
    assert _cells.lowest_face(cell, [FLAT, EITHER, UP]) == ((0, 0), (2, 5), (-1, -1))
    point = ((3.0, 3.0),)
    assert _cells.lowest_face(point, [UP]) == point
    at_least_zero, at_most_zero = hull(arb(0), arb(1)), hull(arb(-1), arb(0))
    assert _cells.lowest_face(((0.0, 1.0),), [at_least_zero.nonnegative_part()]) == ((0, 0),)
    assert _cells.lowest_face(((0.0, 1.0),), [-((-at_most_zero).nonnegative_part())]) == ((1, 1),)


def test_a_box_is_halved_where_the_function_varies_most() -> None:
    cell = ((0.0, 2.0), (0.0, 3.0))
    assert _cells.halves(cell, None) == [((0, 2), (0, 1.5)), ((0, 2), (1.5, 3))]
    assert _cells.halves(cell, [arb(5), arb(1)]) == [((0, 1), (0, 3)), ((1, 2), (0, 3))]
    assert _cells.halves(cell, [arb(-5), arb(1)])[0] == ((0, 1), (0, 3))
    assert _cells.halves(cell, [hull(arb(-5), arb(0)), arb(1)])[0] == ((0, 1), (0, 3))
    # Where nothing varies the widest entry is cut.
    assert _cells.halves(cell, [arb(0), arb(0)])[0] == ((0, 2), (0, 1.5))


def test_volumes_leave_out_single_numbers() -> None:
    assert _cells.volume(((0.0, 2.0), (1.0, 1.0), (-1.0, 2.0))) == 6.0
    assert _cells.volume(((1.0, 1.0),)) == 1.0


def search(own: Any, **sizes: int) -> _verify._Search:
    return _verify._Search(own, next(iter(own.variants)), sizes, 1e-9)


@lemma(x=Box(low=0, high=1), y=Box(low=-2, high=2))
def bowl(x, y):
    """0 <= (x - 1/4)^2 + y^2 + 1/8."""
    return 0.0 * x, (x - 0.25) ** 2 + y**2 + 0.125


def test_enclosures_of_a_cell() -> None:
    own = search(bowl)
    gap, room, outside, may_jump = own._enclosed(((0.0, 1.0), (0.0, 0.0)))  # type: ignore[misc]
    assert not may_jump
    assert float(gap.lower()) <= 0.125
    assert float(gap.upper()) == pytest.approx(0.5625 + 0.125, abs=0.2)
    assert not outside
    assert float(room) == pytest.approx(1e-9 * 0.125, rel=0.6)
    at, room, *_ = own._enclosed(((0.5, 0.5), (1.0, 1.0)))  # type: ignore[misc]
    assert float(at) == pytest.approx(0.0625 + 1 + 0.125)
    assert float(room) == pytest.approx(1e-9 * 1.1875)
    slopes = own._slopes_on(((0.5, 0.5), (-1.0, -1.0)))
    assert [float(s) for s in slopes or []] == pytest.approx([0.5, -2])
    assert own._convex_face(((0.5, 1.0), (-1.0, 2.0))) == ((0.5, 0.5), (-1.0, 2.0))
    assert own._convex_face(((0.0, 0.1), (-1.0, 2.0))) == ((0.1, 0.1), (-1.0, 2.0))
    assert own._convex_face(((0.0, 1.0), (-2.0, -1.0))) == ((0.0, 1.0), (-1.0, -1.0))
    nowhere = ((0.0, 1.0), (-1.0, 2.0))
    assert own._convex_face(nowhere) == nowhere
    assert own._look(((0.5, 1.0), (0.5, 1.0)))[0] == _verify._CLOSED


def test_points_that_violate() -> None:
    @lemma(given("half", lambda x: x, 0.5), x=Box(low=0, high=1))
    def small(x):
        return x, 0.25

    own = search(small)
    for x, expected in ((0.25, False), (0.26, True), (0.5, True), (0.51, False)):
        assert own._violates((x,)) is expected
    assert own._enclosed(((0.6, 0.9),))[2] is True  # type: ignore[index]
    assert own._enclosed(((0.4, 0.9),))[2] is False  # type: ignore[index]
    assert own._enclosed(((0.5, 0.5),))[2] is False  # type: ignore[index]
    expected = {"instance": {"x": 0.375}, "sizes": {}, "sides": (0.375, 0.25), "excess": "0.125"}
    assert own.shown((0.375,)) == expected
    found = verify(small)
    assert found.answer == "false"
    assert 0.25 < found.instance["x"] <= 0.5


def test_a_face_outside_the_hypotheses_proves_nothing_of_its_box() -> None:
    """g is smallest at x = 1, where the hypothesis fails: the box is not closed by that."""

    @lemma(given("half", lambda x: x, 0.5), x=Box(low=0, high=1))
    def straight(x):
        return x, 0.45

    @lemma(given("half", lambda x: x, 0.5), x=Box(low=0, high=1))
    def bent(x):
        return x * (1 + jnp.sin(30 * x) / 4), 0.51

    for own in (straight, bent):
        found = verify(own)
        assert found.answer == "false"
        assert own(found.instance["x"])[0] > own(found.instance["x"])[1]
        assert found.instance["x"] <= 0.5


def test_sides_are_close_on_all_of_a_box_or_not_at_all() -> None:
    """lhs - rhs = 1/2 + x/8: next to nothing of 2^30 at x = 1, and four times rhs at x = 0."""

    @lemma(x=Box(low=0, high=1))
    def far(x):
        rhs = 0.125 + 2.0**30 * x
        return rhs + 0.5 + 0.125 * x, rhs

    assert verify(far).answer == "false"
    assert search(far)._look(((0.0, 1.0),))[0] == _verify._OPEN


STEPS: dict[str, Any] = {
    "floor": lambda x: jnp.floor(x + 0.3),
    "ceil": lambda x: jnp.ceil(x - 0.7),
    "round": lambda x: jnp.round(x - 0.2),
    "sign": lambda x: 0.5 + jnp.sign(x - 0.7) / 2,
    "where": lambda x: jnp.where(x > 0.7, 1.0, 0.0),
    "truth": lambda x: (x > 0.7).astype(float),
    "whole": lambda x: (x + 0.3).astype(int).astype(float),
    "cond": lambda x: lax.cond(x > 0.7, lambda: 1.0, lambda: 0.0),
    "switch": lambda x: lax.switch((x + 0.3).astype(int), [lambda: 0.0, lambda: 1.0]),
    "place": lambda x: jnp.argmax(jnp.stack([0.7 + 0 * x, x])).astype(float),
    "remainder": lambda x: 1 - lax.rem(x + 0.3, 1.0) / (x + 0.3) + 0 * x,
    "stopped": lambda x: lax.stop_gradient(x),
    "angle": lambda x: jnp.arctan2(x - 0.7, -1.0) + 2,
}


@pytest.mark.parametrize("name", STEPS)
def test_a_slope_says_nothing_where_a_side_may_jump(name: str) -> None:
    """Almost everywhere the slope is zero (or has the wrong sign), and the bound is passed."""
    own = lemma(x=Box(low=0, high=1))(lambda x: (STEPS[name](x), 0.6))
    found = verify(own, boxes=200)
    assert found.answer == "false"
    x = jnp.asarray(found.instance["x"])
    assert float(STEPS[name](x)) > 0.6


@pytest.mark.parametrize("corner", [jnp.abs, lambda x: jnp.maximum(x, -x)])
def test_a_kink_is_not_taken_for_convex(corner: Any) -> None:
    """1 - |x + 1/2| rises from the left end of [-1, 1], and is negative at the right one."""
    own = lemma(x=Box(low=-1, high=1))(lambda x: (corner(x + 0.5), 1.0))
    assert verify(own).answer == "false"
    fine = lemma(x=Box(low=-1, high=1))(lambda x: (corner(x + 0.5), 1.6))
    assert verify(fine).answer == "proved"
    whole = ((-1.0, 1.0),)
    assert search(own)._convex_face(whole) == whole


def test_steps_that_are_decided_are_no_jumps() -> None:
    """On a box where the outcome is known the slopes are used: one box is enough."""
    own = lemma(x=Box(low=2.25, high=2.75))(
        lambda x: (jnp.floor(x) + jnp.where(x > 1, x, 0.0) - x, x * x * x - x * x)
    )
    assert not search(own)._enclosed(((2.25, 2.75),))[3]  # type: ignore[index]
    assert verify(own).boxes == 1
    relu = lemma(x=Box(low=0.5, high=1))(lambda x: (jax.nn.relu(x), 2 * x))
    assert not search(relu)._enclosed(((0.5, 1.0),))[3]  # type: ignore[index]
    assert verify(relu).boxes == 1
    # Shifted by a maximum whose slope is hidden: by its enclosure alone.
    softmax = lemma(x=Box(low=0, high=1))(lambda x: (jax.nn.softmax(jnp.stack([x, 2 * x]))[1], 0.8))
    assert verify(softmax).answer == "proved"


def test_boxes_too_small_for_a_volume_stay_open() -> None:
    @lemma(x=Box(3, low=0, high=1e-120))
    def tiny(x):
        return jnp.sin(2 * x[0]) + x[1] - x[1] + x[2] - x[2], 2 * jnp.sin(x[0]) * jnp.cos(x[0])

    found = verify(tiny, boxes=20, tolerance=0.0)
    assert (found.answer, found.open_share) == ("open", 1.0)


def test_domains_of_the_spaces() -> None:
    @lemma(x=Box(2, low=0, high=1), r=Ball(radius=3.0), s=Signs(2), k=Integers(low=1, high=3))
    def mixed(x, r, s, k):
        return 0.0 * (jnp.sum(x) + r + jnp.sum(s) + k), 1.0

    own = search(mixed)
    assert own.real == [0, 1, 2]
    assert own.domains[2] == ((-3.0, 3.0), ())
    assert own.domains[3:] == [(None, (-1.0, 1.0))] * 2 + [(None, (1.0, 2.0, 3.0))]
    cells = list(own.cells())
    assert len(cells) == 2 * 2 * 3
    assert cells[0] == ((0, 1), (0, 1), (-3, 3), (-1, -1), (-1, -1), (1, 1))
    points = own._points(np.array([0.5, 0.25, -2.0, -1.0, 1.0, 2.0]))
    assert points["x"].tolist() == [0.5, 0.25]
    assert float(points["r"]) == -2
    assert points["s"].tolist() == [-1, 1]
    assert float(points["k"]) == 2
    whole = verify(mixed)
    assert (whole.answer, whole.boxes) == (Answer.PROVED, 12)


def test_limits_of_what_is_gone_through() -> None:
    def sized(high: int) -> Any:
        return lemma(x=Box(), s=Signs(Size("n", 1, high)))(lambda x, s: (x, 2.0 + 0 * jnp.sum(s)))

    assert [sizes["n"] for sizes in _verify._all_sizes(sized(_verify.MOST_CASES))][-1] == 1024
    with pytest.raises(BadArgument, match="too many sizes"):
        list(_verify._all_sizes(sized(_verify.MOST_CASES + 1)))
    for count, fine in ((10, True), (11, False)):
        own = lemma(x=Box(), s=Signs(count))(lambda x, s: (x, 2.0 + 0 * jnp.sum(s)))
        cells = search(own).cells()
        if fine:
            assert len(next(cells)) == 11
            continue
        with pytest.raises(BadArgument, match="combinations"):
            next(cells)
    for count, fine in ((0, False), (1, True), (6, True), (7, False)):
        more = {"x": Box(count)} if count else {}
        own = lemma(s=Signs(), **more)(
            (lambda s, x: (0.0 * s, 1.0 + 0 * jnp.sum(x))) if count else (lambda s: (0.0 * s, 1.0))
        )
        if fine:
            assert len(search(own).real) == count
            continue
        with pytest.raises(BadArgument, match=f"has {count} real variables"):
            search(own)


def test_how_many_boxes_it_takes() -> None:
    """What closes at once, on a face, after halving; and what is left open within a limit."""

    def boxes(own: Any, **limits: Any) -> tuple[int, float, bool]:
        found = verify(own, **limits)
        return found.boxes, found.open_share, found.touching

    assert boxes(lemma(x=Box())(lambda x: (x, 2.0))) == (1, 0.0, False)
    rising = lemma(x=Box(low=0, high=4))(lambda x: (x - 1 + 0 * x, x + jnp.sin(x) / 4))
    assert boxes(rising) == (1, 0.0, False)
    assert boxes(bowl)[0] <= 12
    touching = lemma(x=Box(low=-1, high=2))(lambda x: (x * (2 / 3 - x), 1 / 9))
    count, share, touches = boxes(touching)
    assert (share, touches) == (0.0, True)
    assert count < 80
    wiggly = lemma(x=Box(low=0, high=1))(lambda x: (jnp.sin(40 * x) * jnp.cos(31 * x), 1.0))
    assert boxes(wiggly, boxes=5)[0] == 5
    assert 0 < boxes(wiggly, boxes=5)[1] < 1
    assert boxes(wiggly)[1] == 0
    first = boxes(wiggly, boxes=1)
    assert first == (1, 1.0, False)


def test_the_share_that_stays_open_is_of_the_whole_domain() -> None:
    @lemma(x=Box(low=0, high=1), s=Signs())
    def half_open(x, s):
        """Decided for s = -1; an equality that nobody sees for s = 1."""
        return jnp.where(s > 0, jnp.sin(2 * x), -1.0), jnp.where(
            s > 0, 2 * jnp.sin(x) * jnp.cos(x), 1.0
        )

    found = verify(half_open, boxes=9, tolerance=0.0)
    assert found.answer == "open"
    assert found.open_share == pytest.approx(0.5, abs=0.2)
    assert found.boxes == 9


def made(answer: Answer, **more: Any) -> Verification:
    values = {"boxes": 3, "open_share": 0.125, "touching": False, "tolerance": 1e-9, "seconds": 0.5}
    return Verification("a.py:f", "stated", answer, **{**values, **more})


def test_words() -> None:
    assert made(Answer.PROVED).message == "proved on the whole domain"
    assert made(Answer.PROVED, touching=True).message.startswith("proved up to a factor 1 + 1e-09")
    assert made(Answer.PROVED, admissible=None).message.endswith("that meets the hypotheses")
    assert made(Answer.EMPTY, admissible=False).message.startswith("empty: no point of the domain")
    assert made(Answer.OPEN).message == "open: 0.125 of the domain is not decided"
    false = made(Answer.FALSE, instance={"x": 0.5}, sides=(2.0, 1.0))
    assert false.message == "false: 2 > 1 at x=0.5"
    assert false.to_json() == {
        "claim": "a.py:f",
        "variant": "stated",
        "answer": "false",
        "boxes": 3,
        "open_share": 0.125,
        "touching": False,
        "tolerance": 1e-9,
        "instance": {"x": 0.5},
        "admissible": True,
        "message": "false: 2 > 1 at x=0.5",
    }


def test_bad_limits() -> None:
    for bad in ({"boxes": 0}, {"tolerance": -1e-9}):
        with pytest.raises(BadArgument):
            verify(bowl, **bad)


def on_a_box(threshold: float, slack: float = 0.0) -> Any:
    """2x <= 1 on [0, 1] where x^2 + x <= threshold and x >= slack: x^2 grows, so does 2x."""

    @lemma(
        given("small", lambda x: x**2 + x, threshold),
        given("large", lambda x: slack - x, 0.0),
        x=Box(low=0, high=1),
    )
    def own(x):
        """2x <= 1."""
        return 2 * x, 1.0

    return own


def test_hypotheses_that_no_point_meets_prove_nothing() -> None:
    fine, empty = verify(on_a_box(0.5)), verify(on_a_box(-0.1))
    assert (fine.answer, fine.admissible) == (Answer.PROVED, True)
    assert (empty.answer, empty.admissible) == (Answer.EMPTY, False)
    # Each hypothesis can be met, both together cannot: x <= .207 and x >= .3.
    assert verify(on_a_box(0.25, 0.3)).answer is Answer.EMPTY
    # One end of the box alone.
    assert verify(on_a_box(0.0)).admissible is True
    assert verify(on_a_box(0.5, 0.7)).answer is Answer.EMPTY


def test_a_single_point_that_is_not_hit_is_told() -> None:
    @lemma(given("there", lambda x: jnp.abs(x - 0.3), 0.0), x=Box(low=0, high=1))
    def own(x):
        """x <= 2."""
        return x, 2.0

    found = verify(own)
    assert (found.answer, found.admissible) == (Answer.PROVED, None)
    assert "no point was found" in found.message


def test_the_points_of_a_cell() -> None:
    points = list(_cells.probes(((0.0, 2.0), (1.0, 1.0), (-1.0, 3.0))))
    assert points[0] == (1.0, 1.0, 1.0)
    assert set(points[1:]) == {(a, 1.0, b) for a in (0.0, 2.0) for b in (-1.0, 3.0)}
    assert len(points) == 5
