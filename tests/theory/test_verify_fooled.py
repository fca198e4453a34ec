"""False lemmas made to fool `verify`: none is proved, neither by intervals nor in balls.

Each fails only at a point, a corner, a kink, on a set of measure zero, where it is not defined, or
by less than float64 sees. Some stay open; that is right, too.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from headcount.core import float64
from headcount.theory import (
    Ball,
    Box,
    Integers,
    Orthogonal,
    Signs,
    Simplex,
    Size,
    Sphere,
    _verify,
    given,
    lemma,
    verify,
)
from headcount.theory._sieve import CLOSED

UNIT: dict[str, Any] = {"x": Box(low=0, high=1)}
BOTH: dict[str, Any] = {"x": Box(low=-1, high=1)}
BELOW = 1 - 1e-9
SPECIAL = (0.0, 1 / 3, 0.3, 1.0, -1.0)


@jax.custom_jvp
def liar(x: Any) -> Any:
    """x^2, with a rule that says it does not grow."""
    return x * x


liar.defjvp(lambda point, move: (liar(point[0]), 0 * move[0]))


def first_of_given(x: Any) -> Any:
    return jnp.where(x == 1.0, 0.0, 1.0)


FALSE: dict[str, Any] = {
    "inside": lemma(**UNIT)(lambda x: (1 - (x - 1 / 3) ** 2, 1 - 1e-14)),
    "in a corner": lemma(x=Box(3))(lambda x: (jnp.sum(jnp.tanh(x)), 3 * jnp.tanh(1.0) - 1e-9)),
    "at |.|": lemma(**UNIT)(lambda x: (1 - jnp.abs(x - 1 / 3), BELOW)),
    "at max": lemma(**UNIT)(lambda x: (1 - jnp.maximum(x - 1 / 3, 1 / 3 - x), BELOW)),
    "at relu": lemma(**BOTH)(lambda x: (1 - jax.nn.relu(x) - jax.nn.relu(-x), BELOW)),
    "at a root": lemma(**UNIT)(lambda x: (1 - jnp.sqrt((x - 1 / 3) ** 2), BELOW)),
    "at a norm": lemma(x=Ball(2))(lambda x: (1 - jnp.linalg.norm(x), BELOW)),
    "at a cube root": lemma(**BOTH)(lambda x: (1 - jnp.abs(jnp.cbrt(x)), 1 - 1e-6)),
    "at one float": lemma(**UNIT)(lambda x: (jnp.where(x == 0.3, 2.0, 0.0), 1.0)),
    "at a third": lemma(**UNIT)(lambda x: (jnp.where(3 * x == 1, 2.0, 0.0), 1.0)),
    "on a diagonal": lemma(x=Box(2))(lambda x: (jnp.where(x[0] == x[1] / 3, 2.0, 0.0), 1.0)),
    "sign of zero": lemma(**BOTH)(lambda x: (1 - jnp.abs(jnp.sign(x)), 0.5)),
    "x/|x| at zero": lemma(**BOTH)(lambda x: (jnp.where(x == 0, 5.0, x / jnp.abs(x)), 1.5)),
    "x/|x|": lemma(**BOTH)(lambda x: (x / jnp.abs(x), 1.5)),
    "no root": lemma(**BOTH)(lambda x: (jnp.sqrt(x), 2.0)),
    "no logarithm": lemma(**BOTH)(lambda x: (jnp.log(x), 2.0)),
    "no right side": lemma(x=Box(low=-1, high=0.5))(lambda x: (0 * x - 1, -jnp.sqrt(x))),
    "a branch of nan": lemma(**BOTH)(lambda x: (jnp.where(jnp.sqrt(x) < 5, 0.0, 9.0), 1.0)),
    "the least of nan": lemma(**BOTH)(lambda x: (jnp.minimum(jnp.sqrt(x), 0.5), 2.0)),
    "is finite": lemma(**BOTH)(lambda x: (jnp.where(jnp.isfinite(1 / x), 0.0, 2.0), 1.0)),
    "a lying slope": lemma(**UNIT)(lambda x: (liar(x), 0.9)),
    "no slope": lemma(**UNIT)(lambda x: (2 * lax.stop_gradient(x) - x, BELOW)),
    "overflow": lemma(x=Box(low=0.99, high=1))(
        lambda x: ((1 / (2 * (1.5e308 * x))) * 1e308, 0.3 + 0 * x)
    ),
    "underflow": lemma(x=Box(low=0.5, high=1))(
        lambda x: ((x * 2.0**-1000) * 2.0**-100, 0 * x)
    ),
    "underflow of exp": lemma(x=Box(low=0.95, high=1))(lambda x: (jnp.exp(-800 * x), 0 * x)),
    "tanh is not one": lemma(x=Box(low=0.5, high=1))(lambda x: (1 - jnp.tanh(400 * x), 0 * x)),
    "cancellation": lemma(x=Box(low=1, high=1.5))(
        lambda x: (jnp.array([2.0**60, 1.0, -(2.0**60)]) @ jnp.stack([x, x, x]), 0.5 * x)
    ),
    "float32": lemma(**UNIT)(lambda x: (x.astype(jnp.float32).astype(float) - x, 1e-12)),
    "negative powers": lemma(**BOTH)(lambda x: (x**-2.0, 1e6)),
    "a wave": lemma(**UNIT)(lambda x: (jnp.cos(20000 * x), BELOW)),
    "a step": lemma(**UNIT)(lambda x: (jnp.floor(x), 0.5)),
    "a sum of truths": lemma(x=Box(3))(lambda x: (jnp.where(jnp.all(x > 0.99), 2.0, 0.0), 1.0)),
    "not this or that": lemma(**UNIT)(
        lambda x: (jnp.where(~((x < 0.2) | (x > 0.2001)) & (x > 0), 2.0, 0.0), 1.0)
    ),
    "the pole": lemma(x=Sphere(3))(lambda x: (-x[0], BELOW)),
    "the last turn": lemma(x=Sphere(3))(lambda x: (-x[2], BELOW)),
    "the last share": lemma(x=Simplex(3))(lambda x: (x[2], BELOW)),
    "a reflection": lemma(x=Orthogonal(2))(
        lambda x: (x[0, 1] * x[1, 0] - x[0, 0] * x[1, 1], BELOW)
    ),
    "one choice of signs": lemma(s=Signs(3), x=Box())(lambda s, x: (s @ s[::-1] + 0 * x, 2.5)),
    "the last integer": lemma(k=Integers(low=-3, high=7), x=Box())(
        lambda k, x: (jnp.where(k == 7, 2.0, 0.0) * x, 1.0)
    ),
    "the largest size": lemma(x=Box(Size("n", 1, 3)))(
        lambda x: (jnp.where(x.size == 3, 2.0, 0.0) + 0 * jnp.sum(x), 1.0)
    ),
    "a face of a hypothesis": lemma(given("a", lambda x, y: x + y, 1.0), x=Box(), y=Box())(
        lambda x, y: (x + y, BELOW)
    ),
    "a hypothesis at one point": lemma(given("a", first_of_given, 0.5), **UNIT)(lambda x: (x, 0.5)),
    "a hypothesis of nan": lemma(given("a", lambda x: jnp.minimum(jnp.sqrt(x), -x), 0.0), **BOTH)(
        lambda x: (x, 0.5)
    ),
}  # fmt: skip


@pytest.mark.parametrize("few", [0, 64], ids=["intervals", "balls"])
@pytest.mark.parametrize("name", FALSE)
def test_no_false_lemma_is_proved(name: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_verify, "_FEW", few)
    found = verify(FALSE[name], boxes=150, tolerance=0.0)
    assert found.answer in ("false", "open")
    assert (found.answer == "false") == bool(found.instance)


@pytest.mark.parametrize("name", FALSE)
def test_intervals_close_no_box_that_holds_a_violation(name: str) -> None:
    """Boxes of several widths around points at which balls prove the violation."""
    own = FALSE[name]
    sizes = {"n": 3} if name == "the largest size" else {}
    search = _verify._Search(own, next(iter(own.variants)), sizes, 0.0)
    if search._sieve is None:
        return
    choices = [interval or (min(values), max(values)) for interval, values in search.domains]
    least, most = np.array(choices).T
    points = np.random.default_rng(0).uniform(least, most, (4000, len(least)))
    points = np.concatenate(
        [points, *(np.full((1, len(least)), v) for v in SPECIAL), [least, most]]
    )
    real = np.array([interval is not None for interval, _ in search.domains])
    points = np.where(real, np.clip(points, least, most), np.where(points > 0, most, least))
    found = violating(search, points)
    for width in (0.0, 1e-9, 1e-3, 0.1) if len(found) else ():
        step = width * (most - least) * real
        boxes = np.maximum(found - step, least), np.minimum(found + step, most)
        assert not np.any(search._sieve.look(*boxes).verdict == CLOSED), width


def violating(search: Any, points: Any) -> Any:
    """Those that float64 takes for violating and balls confirm; at most twenty."""
    with float64():
        left, right = jax.jit(jax.vmap(lambda x: search._sides(x)[:2]))(jnp.asarray(points))
    nearly = np.flatnonzero(~(np.asarray(left) <= np.asarray(right)))[-60:]
    sure = [k for k in nearly.tolist() if search._violates(tuple(points[k].tolist()))]
    return points[sure[-20:]]
