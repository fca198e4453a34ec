"""Mehler's series for the moments over U: every bound covers the true error, long tokens too."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import FixedQuery, activations, stream
from headcount.papers.arda2026 import PooledAttention
from headcount.papers.arda2026.gaussian_moments import Pair
from headcount.papers.arda2026.hermite_series import hermite_rule, series_moments
from headcount.papers.arda2026.limit import draw_heads, limit_arda2026

BLOCKS = ("c", "U", "W")
TANH = (np.tanh, lambda s: 1 / np.cosh(s) ** 2)
LOGISTIC = (lambda s: 1 / (1 + np.exp(-s)), lambda s: 1 / (4 * np.cosh(s / 2) ** 2))


def dense_grid(d: int, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of N(0, I_d), d = 1 or 2: trapezoidal, out to 9."""
    g = np.arange(-round(9 / step), round(9 / step) + 1) * step
    w = np.exp(-g * g / 2) / np.sqrt(2 * np.pi) * step
    if d == 1:
        return g[:, None], w
    return np.stack(np.meshgrid(g, g, indexing="ij"), -1).reshape(-1, 2), np.outer(w, w).ravel()


def dense_blocks(x: np.ndarray, q: np.ndarray, W: np.ndarray, step: float) -> dict[str, np.ndarray]:
    """The tanh kernels averaged over these heads' W, with U integrated out on a dense grid."""
    U, weight = dense_grid(x.shape[2], step)
    total = {b: np.zeros((len(x), len(x))) for b in BLOCKS}
    for W_head in W:
        features = []
        for sample in x:
            logits = sample @ W_head @ q
            alpha = np.exp(logits - logits.max())
            alpha /= alpha.sum()
            a = alpha @ sample
            M = (sample - a).T @ (alpha[:, None] * (sample - a))
            s = U @ a
            features.append(
                (TANH[0](s)[:, None], TANH[1](s)[:, None] * a, TANH[1](s)[:, None] * (U @ M))
            )
        for i, one in enumerate(features):
            for j, two in enumerate(features):
                for b, left, right in zip(BLOCKS, one, two, strict=True):
                    total[b][i, j] += weight @ np.sum(left * right, axis=1) / len(W)
    total["W"] *= q @ q
    return total


LONG = {
    "d=1": [[[7.0], [8.0]], [[6.5], [8.0]]],
    "d=2, one line": [[[7.0, 0.0], [8.0, 0.0]], [[6.5, 0.0], [8.0, 0.0]]],
    "d=2": [[[7.0, 0.0], [8.0, 0.5]], [[6.5, 0.0], [8.0, 0.0]]],
    "d=2, opposite": [[[7.0, 0.0], [8.0, 0.5]], [[-6.5, 0.1], [-7.9, 0.0]]],
}


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
@pytest.mark.parametrize("name", LONG)
def test_long_nearly_parallel_tokens(name: str, tolerance: float) -> None:
    """At radius 8 the W block is 1/r^4 of the terms that a naive expansion of it adds up."""
    x = np.array(LONG[name])
    d = x.shape[2]
    q = np.full(d, 0.1)
    model = PooledAttention(d, 4, query=FixedQuery(tuple(q)))
    found = limit_arda2026(
        model, x, heads=2, method="rao-blackwell", quadrature_tolerance=tolerance
    )
    _, W = draw_heads(stream(0, "limit", "heads"), 0, count=2, d=d)
    truth = dense_blocks(x, q, np.asarray(W), 2e-3 if d == 1 else 3e-2)
    worst = 0.0
    for block in BLOCKS:
        gap = np.abs(found.blocks[block] - truth[block])
        assert np.all(gap <= found.quadrature_errors[block]), block
        worst = max(worst, gap.max() / np.abs(truth[block]).max())
    assert worst <= found.quadrature_error <= tolerance
    assert found.quadrature_error <= 30 * worst
    total = found.quadrature_errors["total"]
    np.testing.assert_allclose(total, sum(found.quadrature_errors[b] for b in BLOCKS), rtol=1e-12)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("radius", [0.3, 2.5])
def test_errors_cover_the_truth_where_the_tolerance_is_met(radius: float, tolerance: float) -> None:
    x = radius * np.array([[[0.9], [1.0]], [[0.7], [-1.0]]])
    model = PooledAttention(1, 4, query=FixedQuery((0.3,)))
    found = limit_arda2026(
        model, x, heads=3, method="rao-blackwell", quadrature_tolerance=tolerance
    )
    _, W = draw_heads(stream(0, "limit", "heads"), 0, count=3, d=1)
    truth = dense_blocks(x, np.array([0.3]), np.asarray(W), 2e-3)
    for block in BLOCKS:
        gap = np.abs(found.blocks[block] - truth[block])
        assert np.all(gap <= found.quadrature_errors[block] + 1e-15), block
    assert found.quadrature_error <= 2 * tolerance


def pair_of(a: np.ndarray, b: np.ndarray, P: np.ndarray) -> Pair:
    forms = (a @ a, b @ b, a @ b, np.trace(P), a @ P @ a, a @ P @ b + b @ P @ a, b @ P @ b)
    return Pair(*(jnp.full((1, 1), form) for form in forms))


def dense_moments(functions, a: np.ndarray, b: np.ndarray, P: np.ndarray) -> np.ndarray:
    U, weight = dense_grid(2, 3e-2)
    value, slope = functions
    s, t = U @ a, U @ b
    slopes = slope(s) * slope(t)
    columns = (value(s) * value(t), slopes, slopes * np.einsum("zi,ij,zj->z", U, P, U))
    return np.array([weight @ column for column in columns])


def at_angle(r: float, angle: float) -> np.ndarray:
    return r * np.array([np.cos(angle), np.sin(angle)])


SHAPES = {
    "equal": (at_angle(7.5, 0.4), at_angle(7.5, 0.4)),
    "almost equal": (at_angle(7.5, 0.4), at_angle(7.2, 0.42)),
    "close": (at_angle(7.5, 0.4), at_angle(6.0, 0.6)),
    "right angle": (at_angle(7.5, 0.4), at_angle(6.0, 0.4 + np.pi / 2)),
    "opposite": (at_angle(7.5, 0.4), at_angle(5.0, 0.41 + np.pi)),
    "long and short": (at_angle(7.5, 0.4), at_angle(1e-3, 0.7)),
    "short": (at_angle(1e-3, 0.4), at_angle(1e-2, 0.9)),
    "zero": (at_angle(7.5, 0.4), np.zeros(2)),
}


@pytest.mark.parametrize("name", ["tanh", "logistic"])
def test_each_moment_is_within_its_own_bound(name: str) -> None:
    functions = {"tanh": TANH, "logistic": LOGISTIC}[name]
    P = np.array([[0.4, -0.3], [0.9, 0.2]])  # not symmetric: only its symmetric part counts
    for tolerance in (1e-2, 1e-6):
        rule = hermite_rule(activations[name], 7.5, tolerance)
        moments = jax.jit(series_moments(activations[name], rule.nodes, rule.table, rule.slip))
        for shape, (a, b) in SHAPES.items():
            found, bound = (np.array(m).ravel() for m in moments(pair_of(a, b, P)))
            truth = dense_moments(functions, a, b, P)
            assert np.all(np.abs(found - truth) <= bound), (shape, found - truth, bound)
            # The bounds are worth having: small beside the moments of vectors that long.
            assert np.all(bound <= 20 * tolerance * np.array([1.0, 1.0, 2.0])), (shape, bound)


def test_an_even_activation_has_the_moments_of_its_definition() -> None:
    even = activations["gaussian"]
    functions = (lambda s: np.exp(-s * s / 2), lambda s: -s * np.exp(-s * s / 2))
    rule = hermite_rule(even, 3.0, 1e-7)
    moments = jax.jit(series_moments(even, rule.nodes, rule.table, rule.slip))
    P = np.array([[0.4, -0.3], [0.9, 0.2]])
    for a, b in ((at_angle(3.0, 0.4), at_angle(2.0, 0.7)), (at_angle(3.0, 1.0),) * 2):
        found, bound = (np.array(m).ravel() for m in moments(pair_of(a, b, P)))
        assert np.all(np.abs(found - dense_moments(functions, a, b, P)) <= bound)
        assert np.all(bound <= 1e-5)


def test_shorter_series_for_larger_tolerances_and_an_honest_failure() -> None:
    sizes = []
    for tolerance in (1e-2, 1e-4, 1e-7):
        rule = hermite_rule(activations["tanh"], 1.0, tolerance)
        assert rule.error <= tolerance
        sizes.append(rule.table.shape[1])
    assert sizes == sorted(set(sizes))
    assert hermite_rule(activations["algebraic"], 6.0, 1e-12).error > 1e-12
    assert hermite_rule(activations["tanh"], 16.0, 1e-6).error > 1e-6


def test_the_rule_does_not_depend_on_the_switch() -> None:
    rule = hermite_rule(activations["tanh"], 2.0, 1e-6)
    with jax.enable_x64(False):
        again = hermite_rule(activations["tanh"], 2.0, 1e-6)
    for one, two in zip(rule, again, strict=True):
        np.testing.assert_array_equal(one, two)
