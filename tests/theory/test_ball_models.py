"""A model, its gradient and its Hessian enclosed on balls, against loops in long arithmetic."""

from __future__ import annotations

from typing import Any

import jax
import mpmath
import numpy as np
from dual_numbers import Dual, duals
from mpmath_numbers import as_ball

from headcount.papers.arda2026 import PooledAttention, PooledAttentionParams
from headcount.theory.balls import at_precision, enclose
from headcount.theory.slow import activation, dot, precise, softmax, times

BITS = 200
MODEL = PooledAttention(d=8, m=16)


def parameters(m: int, d: int, seed: int) -> tuple[PooledAttentionParams, Any]:
    rng = np.random.default_rng(seed)
    shapes = PooledAttention(d=d, m=m).shapes()
    blocks = [rng.normal(size=shape) for shape in shapes]
    return PooledAttentionParams(*blocks), rng.normal(size=(16, d))


def pooled(num: Any, c: Any, U: Any, W: Any, X: Any) -> Any:
    """f(X) in plain loops, with the last token as the query."""
    sigma = activation(num, "tanh")
    total = num.number(0)
    for i in range(len(c)):
        weights = softmax(num, [dot(row, times(W[i], X[-1])) for row in X])
        a = [dot(weights, [row[k] for row in X]) for k in range(len(X[0]))]
        total = total + c[i] * sigma.value(dot(U[i], a))
    return total / num.sqrt(num.number(len(c)))


def lifted(num: Any, array: Any) -> Any:
    if isinstance(array, list):
        return [lifted(num, entry) for entry in array]
    return num.number(array)


def blocks_of(num: Any, params: PooledAttentionParams, X: Any) -> list[Any]:
    return [lifted(num, block.tolist()) for block in (*params, X)]


def test_the_model_is_enclosed() -> None:
    params, X = parameters(16, 8, 0)
    num = precise(130)
    value = pooled(num, *blocks_of(num, params, X))
    ball = enclose(MODEL, params, X, bits=BITS)
    assert ball.rel_accuracy_bits() > BITS - 30
    with at_precision(600):
        assert ball.overlaps(as_ball(value))


def test_the_gradient_of_the_model_is_enclosed() -> None:
    params, X = parameters(16, 8, 1)
    found = enclose(jax.grad(MODEL), params, X, bits=BITS)
    num = precise(130)
    along = duals(num)
    for block, place in ((0, (3,)), (1, (5, 2)), (2, (7, 1, 6)), (2, (0, 0, 0))):
        blocks = blocks_of(num, params, X)
        inner = blocks[block]
        for k in place[:-1]:
            inner = inner[k]
        inner[place[-1]] = Dual(inner[place[-1]], num.number(1))
        slope = pooled(along, *blocks).slope
        ball = found[block][place]
        assert ball.rel_accuracy_bits() > BITS - 40
        with at_precision(600):
            assert ball.overlaps(as_ball(slope)), (block, place)


def test_the_hessian_of_one_head_is_enclosed() -> None:
    params, X = parameters(1, 4, 2)
    found = enclose(jax.hessian(PooledAttention(d=4, m=1)), params, X, bits=BITS)
    num = precise(300)
    along, h = duals(num), num.number("1e-60")

    def slope(shift: mpmath.mpf) -> mpmath.mpf:
        c, U, W, tokens = blocks_of(num, params, X)
        W[0][1][2] = W[0][1][2] + shift
        U[0][3] = Dual(U[0][3], num.number(1))
        return pooled(along, c, U, W, tokens).slope

    mixed = (slope(h) - slope(-h)) / (2 * h)
    ball = found.U.W[0, 3, 0, 1, 2]
    assert ball.rel_accuracy_bits() > BITS - 40
    assert found.W.U[0, 1, 2, 0, 3].overlaps(ball)
    with at_precision(600):
        assert ball.overlaps(as_ball(mixed))
