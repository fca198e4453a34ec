"""The interpreter of jaxprs on balls: every rule, the traps."""

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
from jax.scipy import special
from mpmath_numbers import as_ball

from headcount.core import BadArgument
from headcount.theory import _ball_elementwise
from headcount.theory._ball_jaxpr import RULES, BallProgram, Unsupported, enclose
from headcount.theory._balls import FALSE, TRUE, UNKNOWN, Undecided, at_precision

BITS = 200
RNG = np.random.default_rng(3)
V = RNG.normal(size=5)
W = RNG.normal(size=5)
A = RNG.normal(size=(4, 4))
P = A @ A.T + np.eye(4)
COUNTS = np.array([3, -7, 5, 0, 2])


@jax.custom_vjp
def doubled(x: Any) -> Any:
    """Twice x, with a derivative of its own."""
    return 2 * x


doubled.defvjp(lambda x: (doubled(x), None), lambda _, g: (2 * g,))


def _loop(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.sin(c[1])), (0, x))[1]


def _steps(x: Any) -> Any:
    def body(carry: Any, y: Any) -> Any:
        return carry * jnp.cos(y), (carry + y, y > 0)

    return lax.scan(body, 1.0, x, reverse=True)


CASES: dict[str, tuple[Any, ...]] = {
    "arithmetic": (lambda x, y: (x + y - x * y / (2 + y * y), -x, x**3, x**-2, x * x), V, W),
    "roots": (lambda x: (jnp.sqrt(jnp.abs(x)), lax.rsqrt(x * x), jnp.cbrt(x)), V),
    "exponentials": (
        lambda x: (jnp.exp(x), jnp.expm1(x), lax.exp2(x), lax.logistic(x)),
        V,
    ),
    "logarithms": (lambda x: (jnp.log(jnp.abs(x)), jnp.log1p(x * x)), V),
    "circular": (
        lambda x: (jnp.sin(x), jnp.cos(x), lax.tan(x), jnp.arctan(x), jnp.arctan2(x, 2.0)),
        V,
    ),
    "inverse": (
        lambda x: (jnp.arcsin(jnp.tanh(x)), jnp.arccos(jnp.tanh(x)), jnp.arctanh(x)),
        V / 9,
    ),
    "hyperbolic": (
        lambda x: (jnp.tanh(x), jnp.sinh(x), jnp.cosh(x), jnp.arcsinh(x), jnp.arccosh(1 + x * x)),
        V,
    ),
    "error functions": (
        lambda x: (special.erf(x), special.erfc(x), special.erfinv(jnp.tanh(x))),
        V,
    ),
    "gamma functions": (
        lambda x: (special.gammaln(x), special.digamma(x), special.gammainc(2.5, x * x)),
        V,
    ),
    "upper gamma function": (lambda x: special.gammaincc(x * x, 1.5), V),
    "powers": (lambda x: (jnp.abs(x) ** 1.5, jnp.abs(x) ** 0.3, jnp.abs(x) ** 0.5), V),
    "power of zero": (lambda x: (jnp.abs(x) ** 0.5, jnp.abs(x) ** 1.25), np.zeros(2)),
    "rounding": (lambda x: (jnp.round(x), jnp.floor(x), jnp.ceil(x), jnp.sign(x)), 3 * V),
    "remainder": (lambda x, y: lax.rem(x, y), 5 * V, W),
    "extremes": (lambda x, y: (jnp.maximum(x, y), jnp.minimum(x, y), jnp.clip(x, -0.5, 0.5)), V, W),
    "logic": (
        lambda x, y: jnp.where(
            (x > 0) & ~(y < 0) | (x <= y) ^ (x >= 1), x, y + (x != y).astype(float)
        ),
        V,
        W,
    ),
    "equality": (lambda x: jnp.where(x == 1.0, 5.0, jnp.where(jnp.isfinite(x), x, 0.0)), V),
    "choice by number": (lambda x: lax.select_n(jnp.array([0, 2, 1, 1, 0]), x, 2 * x, 3 * x), V),
    "sums": (lambda x: (jnp.sum(x), jnp.mean(x, axis=0), jnp.prod(x), jnp.var(x)), A),
    "ends": (lambda x: (jnp.max(x, axis=1), jnp.min(x), jnp.all(x > -9), jnp.any(x > 9)), A),
    "running": (
        lambda x: (jnp.cumsum(x), jnp.cumprod(x), lax.cummax(x), lax.cummin(x, reverse=True)),
        V,
    ),
    "places": (lambda x: (jnp.argmax(x, axis=1), jnp.argmin(x)), A),
    "products": (lambda a, x: (a @ x, jnp.einsum("ij,kj->ik", a, a), jnp.vdot(x, x)), A, V[:4]),
    "batched product": (lambda a: jnp.einsum("bij,bjk->bik", a, a), RNG.normal(size=(3, 2, 2))),
    "shapes": (
        lambda a: (a.T, a.reshape(2, 8), a[None], jnp.squeeze(a[:1]), jnp.flip(a, 0), a[::2, 1:3]),
        A,
    ),
    "joints": (
        lambda a: (jnp.concatenate([a, a], 1), jnp.stack([a, 2 * a]), jnp.split(a, 2)),
        A,
    ),
    "padding": (lambda x: lax.pad(x, 7.0, [(2, -1, 1)]), V),
    "counting": (lambda x: x + jnp.arange(5).astype(float) + jnp.arange(5.0), V),
    "counting along rows": (
        lambda a: (a * jnp.eye(4), a + lax.broadcasted_iota(int, (4, 4), 1).astype(float)),
        A,
    ),
    "gather": (lambda a: (a[jnp.array([2, 0, -1])], a[jnp.array([1, 1]), jnp.array([0, 3])]), A),
    "gather outside": (lambda x: x.at[jnp.array([1, 9])].get(mode="fill", fill_value=0.5), V),
    "scatter": (
        lambda x: (
            x.at[jnp.array([1, 1, 3])].add(2.0),
            x.at[2].set(9.0),
            x.at[jnp.array([0, 0])].mul(3.0),
            x.at[jnp.array([4, 4])].subtract(0.5),
        ),
        V,
    ),
    "scatter of rows": (lambda a: a.at[jnp.array([2, 0])].add(a[:2]), A),
    "dynamic": (
        lambda x, k: (lax.dynamic_slice(x, (k,), (2,)), lax.dynamic_update_slice(x, x[:2], (k,))),
        V,
        np.int64(9),
    ),
    "leader": (lambda x: x[jnp.argmax(x)], V),
    "order": (lambda x: (jnp.sort(x), jnp.argsort(x), x[jnp.argsort(jnp.sin(x))]), V),
    "order of rows": (lambda a: (jnp.sort(a, axis=0), jnp.argsort(a, axis=1)), A),
    "loops": (lambda x: (_loop(x), _steps(x)), V),
    "branches": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), V),
    "the other branch": (lambda x: lax.cond(x[0] > 9, jnp.sin, jnp.cos, x), V),
    "many branches": (lambda k, x: lax.switch(k, [jnp.sin, jnp.cos, jnp.exp], x), np.int64(2), V),
    "calls": (
        lambda x: (jax.nn.relu(x), doubled(x), jax.checkpoint(jnp.sin)(x), jnp.copy(x)),
        V,
    ),
    "stopped": (lambda x: lax.stop_gradient(x) * jax.nn.softmax(x), V),
    "integers": (
        lambda k: (k // 2, k % 3, -k, jnp.abs(k), jnp.sign(k), k**2, jnp.max(k), jnp.sum(k), k @ k),
        COUNTS,
    ),
    "more integers": (
        lambda k: (jnp.where(k > 2, k, 0), ~k, k & 1, k | 4, k ^ 3, lax.clamp(0, k, 4), k == 5),
        COUNTS,
    ),
    "conversions": (
        lambda x: ((x > 0).astype(float), (9 * x).astype(int), (x > 0).astype(int), x.astype(bool)),
        V,
    ),
    "eigenvalues": (lambda a: jnp.linalg.eigvalsh(a), P),
    "spectral norm": (lambda a: (jnp.linalg.norm(a, ord=2), jnp.linalg.norm(a[:2], "nuc")), A),
    "Cholesky": (lambda a: jnp.linalg.cholesky(a), P),
    "triangles": (
        lambda a, b: (
            jax.scipy.linalg.solve_triangular(a, b),
            jax.scipy.linalg.solve_triangular(a, b, lower=True, trans=1),
            lax.linalg.triangular_solve(a, b[None], lower=True, unit_diagonal=True),
        ),
        P,
        V[:4],
    ),
    "derivatives": (
        lambda x: (jax.grad(lambda v: jnp.tanh(v @ v))(x), jax.hessian(jax.nn.logsumexp)(x)),
        V,
    ),
}


def primitives(jaxpr: Any) -> set[str]:
    """The names of all primitives of a jaxpr, those of its inner ones included."""
    names = set()
    for equation in jaxpr.eqns:
        names.add(equation.primitive.name)
        for parameter in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda p: hasattr(p, "eqns")
        ):
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                names |= primitives(inner)
    return names


def numbers(enclosure: Any) -> list[float]:
    """Middles of balls, integers and truth values as floats, in order."""
    values = []
    for leaf in jax.tree.leaves(enclosure):
        for entry in np.ravel(leaf).tolist() if isinstance(leaf, np.ndarray) else [leaf]:
            values.append(float(entry.mid()) if isinstance(entry, arb) else float(entry))
    return values


@pytest.mark.parametrize("name", CASES)
def test_an_enclosure_is_narrow_around_what_jax_computes(name: str) -> None:
    function, *arguments = CASES[name]
    found = jax.tree.leaves(enclose(function, *arguments, bits=BITS))
    expected = jax.tree.leaves(jax.jit(function)(*arguments))
    assert len(found) == len(expected)
    for ball, value in zip(found, expected, strict=True):
        here = np.asarray(value)
        if here.dtype == bool:
            here = np.where(here, TRUE, FALSE)
        np.testing.assert_allclose(numbers(ball), here.ravel(), rtol=1e-12, atol=1e-13)
        for entry in np.ravel(ball).tolist() if isinstance(ball, np.ndarray) else [ball]:
            if isinstance(entry, arb):
                assert float(entry.rad()) <= 1e-13 * (1 + abs(float(entry.mid())))


def test_every_rule_is_exercised() -> None:
    used = set()
    for function, *arguments in CASES.values():
        used |= primitives(jax.make_jaxpr(function)(*arguments).jaxpr)
    assert set(RULES) - used <= {"copy_p", "name"}, "other names of the identity"


def test_unsupported_primitives_are_named() -> None:
    with pytest.raises(Unsupported, match="the primitive fft has no rule"):
        enclose(lambda x: jnp.real(jnp.fft.fft(x)), V)
    with pytest.raises(Unsupported, match="svd: only the singular values"):
        enclose(lambda a: jnp.linalg.svd(a)[0], A)
    with pytest.raises(Unsupported, match="convert_element_type to float32"):
        enclose(lambda x: x.astype(jnp.float32), V)
    with pytest.raises(Unsupported, match="two updates meet"):
        enclose(lambda x: x.at[jnp.array([1, 1])].set(x[:2]), V)


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
    def guess(which: Any, cases: Any) -> Any:
        return np.where(np.maximum(which, 0) == 1, cases[1], cases[0])

    monkeypatch.setattr(_ball_elementwise.arrays, "selected", guess)
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
