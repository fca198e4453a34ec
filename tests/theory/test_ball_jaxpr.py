"""The interpreter of jaxprs on balls: the traps. Every rule has its test in test_every_rule."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from flint import arb
from jax import lax
from mpmath_numbers import as_ball

from headcount.core import BadArgument
from headcount.theory.balls import (
    FALSE,
    RULES,
    TRUE,
    UNKNOWN,
    BallProgram,
    Undecided,
    Unsupported,
    Value,
    at_precision,
    enclose,
)

BITS = 200
RNG = np.random.default_rng(3)
V = RNG.normal(size=5)
W = RNG.normal(size=5)
A = RNG.normal(size=(4, 4))
P = A @ A.T + np.eye(4)


def test_unsupported_primitives_are_named() -> None:
    with pytest.raises(Unsupported, match="the primitive cumlogsumexp has no rule"):
        enclose(lax.cumlogsumexp, V)
    with pytest.raises(Unsupported, match="svd: only the singular values"):
        enclose(lambda a: jnp.linalg.svd(a)[0], A)
    for dtype in (jnp.float32, jnp.complex128, jnp.float16):
        told = f"convert_element_type: .*{jnp.dtype(dtype)}: only float64"
        with pytest.raises(Unsupported, match=told):
            enclose(lambda x, t=dtype: x.astype(t), V)
    with pytest.raises(Unsupported, match="iota: numbers of type float32: only float64"):
        enclose(lambda x: x + lax.iota(np.float32, 5).astype(float), V)
    with pytest.raises(Unsupported, match="two updates meet"):
        enclose(lambda x: x.at[jnp.array([1, 1])].set(x[:2]), V)
    with pytest.raises(Unsupported, match="scatter of a function"):
        enclose(lambda x: x.at[jnp.array([1])].apply(jnp.negative), V)
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    with pytest.raises(Unsupported, match="gather: an index beyond 32 bits"):
        enclose(lambda x, k: lax.gather(x, k, numbers, (1,)), V, np.array([[2**32 + 1]]))
    with pytest.raises(Unsupported, match="reduce_max: no entries"):
        enclose(lambda x: lax.reduce_max(x[:0], axes=(0,)), V)
    truths = lambda x: lax.dot_general(x > 0, x > 0, (((0,), (0,)), ((), ())))  # noqa: E731
    with pytest.raises(Unsupported, match="dot_general of booleans"):
        enclose(truths, V)


def test_an_equation_of_another_form_is_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer JAX may call its parameters otherwise: that loses a proof, never a run."""

    def renamed(equation: Any, x: Value) -> Value:
        return Value(x.array[equation.params["renamed"]])

    for rule in (renamed, lambda equation, x: Value(x.array[:1]), lambda equation: []):
        monkeypatch.setitem(RULES, "tanh", rule)
        with pytest.raises(Unsupported, match="the primitive tanh is not understood: "):
            enclose(lambda x: jax.jit(lax.tanh)(x) + 1.0, V)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_arguments_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(BadArgument, match="is not finite"):
        BallProgram(lambda x: x, np.array([1.0, bad]))


def one(x: Any) -> Any:
    """sin^2 + cos^2, which no enclosure of finite precision knows to be 1."""
    return jnp.sin(x) ** 2 + jnp.cos(x) ** 2


def contains(ball: arb, *values: float) -> bool:
    return all(ball.contains(arb(value)) for value in values)


def test_an_open_condition_gives_the_hull_of_its_cases() -> None:
    x = np.float64(0.3)
    assert enclose(lambda x: one(x) > 1, x) == UNKNOWN
    assert contains(enclose(lambda x: jnp.where(one(x) > 1, 3.0, 5.0), x), 3, 5)
    assert contains(enclose(lambda x: lax.cond(one(x) > 1, lambda: 3.0, lambda: 5.0), x), 3, 5)
    assert contains(enclose(lambda x: jnp.where(one(x) > 1, 3, 5), x), 3, 5)
    assert contains(enclose(lambda x: (one(x) > 1).astype(float), x), 0, 1)
    assert enclose(lambda x: jnp.where(one(x) > 1, x > 0, x < 5), x) == TRUE
    assert enclose(lambda x: (one(x) > 1) & (x < 0), x) == FALSE
    assert enclose(lambda x: (one(x) > 1) | (x < 0), x) == UNKNOWN


def test_planted_guess_on_an_open_condition_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def guess(equation: Any, which: Value, *cases: Value) -> Value:
        taken = np.where(np.asarray(which.array) == TRUE, cases[1].array, cases[0].array)
        return Value(taken)

    monkeypatch.setitem(RULES, "select_n", guess)
    ball = enclose(lambda x: jnp.where(one(x) > 1, 3.0, 5.0), np.float64(0.3))
    assert not contains(ball, 3, 5)


def test_open_indices_give_hulls_or_stop() -> None:
    def tied(x: Any) -> Any:
        return jnp.stack([one(x[0]), one(x[1]), x[2]])

    x = np.array([0.3, 0.4, -5.0])
    assert contains(enclose(lambda x: jnp.argmax(tied(x)), x), 0, 1)
    assert not contains(enclose(lambda x: jnp.argmax(tied(x)), x), 2)
    assert contains(enclose(lambda x: jnp.arange(3.0)[jnp.argmax(tied(x))], x), 0, 1)
    assert enclose(lambda x: jnp.argmax(jnp.stack([x[0], x[0], x[2]])), x) == 0
    mixed = enclose(lambda x: jnp.where(np.array([True, False]), jnp.argmax(tied(x)), 7), x)
    assert contains(mixed[0], 0, 1)
    assert contains(mixed[1], 7)
    ends = enclose(lambda x: jnp.sort(tied(x)), x)
    assert all(contains(ball, value) for ball, value in zip(ends, (-5, 1, 1), strict=True))
    for stopped in (
        lambda x: jnp.argsort(tied(x)),
        lambda x: lax.while_loop(lambda c: one(c) > 1, lambda c: c + 1, x[0]),
        lambda x: x[jnp.array([0, 1]) + jnp.argmax(tied(x))],
    ):
        with pytest.raises(Undecided):
            enclose(stopped, x)


def test_a_root_is_cut_at_zero_only_where_the_sign_is_known() -> None:
    def gap(x: Any) -> Any:
        return one(x) - 1

    x = np.float64(0.3)
    for known in (
        lambda x: jnp.sqrt(gap(x) ** 2 + gap(2 * x) ** 2),
        lambda x: jnp.sqrt(jnp.abs(gap(x))),
        lambda x: jnp.sqrt(jnp.sum(jnp.square(jnp.stack([gap(x), gap(2 * x)])))),
        lambda x: jnp.linalg.norm(jnp.stack([gap(x), gap(2 * x)])),
        lambda x: (lambda v: jnp.sqrt(v @ v))(jnp.stack([gap(x), gap(2 * x)])),
        lambda x: jnp.maximum(gap(x), 0.0) ** 0.5,
    ):
        ball = enclose(known, x)
        assert ball.is_finite()
        assert contains(ball, 0)
        assert float(ball.upper()) < 1e-25
    assert not enclose(lambda x: jnp.sqrt(gap(x)), x).is_finite()
    assert not enclose(lambda x: jnp.log(gap(x)), x).is_finite()


def test_cancellation_that_fools_float64_is_undecided_or_right() -> None:
    """Fact 3 at nearly opposite tokens: U^T M U = sum_t alpha_t (U.X_t)^2 - (U.a)^2."""
    X = np.array([[0.7, -0.7 + 1e-9], [-0.7, 0.7 - 1e-9]])

    def sides(X: Any, U: Any) -> Any:
        a = jnp.mean(X, axis=0)
        M = X.T @ X / 2 - jnp.outer(a, a)
        return U @ M @ U, jnp.mean((X @ U) ** 2)

    U = np.ones(2)
    left, right = sides(X, U)
    assert left > right
    left, right = enclose(sides, X, U, bits=BITS)
    assert left.overlaps(right)
    assert left.rel_accuracy_bits() > 100


def test_eigenvalues_hold_the_reference_also_where_they_meet() -> None:
    context = mpmath.mp.clone()
    context.dps = 130
    rng = np.random.default_rng(5)
    Q = rng.integers(-3, 4, size=(5, 5)).astype(float)
    for matrix in (Q + Q.T, Q @ Q.T, np.eye(4), np.diag([1.0, 1.0, 2.0]), np.zeros((2, 2))):
        exact = context.eigsy(context.matrix(matrix.tolist()), eigvals_only=True)
        found = enclose(jnp.linalg.eigvalsh, matrix, bits=BITS)
        with at_precision(600):
            for ball, value in zip(found, sorted(exact), strict=True):
                assert ball.overlaps(as_ball(value))
                assert float(ball.rad()) < 1e-45
    high = enclose(lambda a: jnp.linalg.norm(a, ord=2), Q, bits=800)
    assert high.rel_accuracy_bits() > 700


def test_eigenvectors_are_not_enclosed() -> None:
    """Whoever uses them is told, wherever they come from; the eigenvalues beside them are fine."""
    for uses in (
        lambda a: jnp.linalg.eigh(a)[1],
        lambda a: jnp.abs(jax.jit(lambda b: jnp.linalg.eigh(b)[1])(a)[0, 0]),
        lambda a: jax.lax.fori_loop(0, 1, lambda k, v: v, jnp.linalg.eigh(a)[1]),
    ):
        with pytest.raises(Unsupported, match="eigenvectors cannot be enclosed"):
            enclose(uses, P)
    values = enclose(lambda a: jnp.linalg.eigh(a)[0], P)
    assert all(ball.is_finite() for ball in values)


def test_singular_matrices_have_no_cholesky_factor() -> None:
    singular = np.ones((2, 2))
    assert not all(b.is_finite() for b in enclose(jnp.linalg.cholesky, -singular).ravel())


def test_tracing_happens_once_and_outside_the_caller_s_precision() -> None:
    traces = []

    def function(x: Any) -> Any:
        traces.append(x.dtype)
        return jnp.exp(x)

    with jax.enable_x64(False):
        program = BallProgram(function, np.float64(1.0))
        low, high = program(64), program(512)
    assert traces == [np.dtype("float64")]
    assert high.rad() < low.rad()
    assert low.contains(high)
    assert math.isclose(float(high.mid()), math.e)
