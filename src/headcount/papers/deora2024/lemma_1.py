"""Lemma 1 of deora2024 (= Lemma 4): first and second derivatives of one head."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...theory import Sides
from ...theory.duals import Dual, duals
from ...theory.families import safe_norm
from ...theory.slow import Arithmetic, dot, flat, times
from . import naive
from . import quantities as model
from .declare import identity
from .instances import HEADS, HeadInstance
from .model import MultiHeadAttention
from .naive import Data


def _attention(i: HeadInstance) -> Any:
    """(P, D): rows phi(X W^T x_t), and their derivatives phi'."""
    P = jax.nn.softmax(i.X @ i.W @ i.X.T, axis=-1)
    return P, jax.vmap(lambda p: jnp.diag(p) - jnp.outer(p, p))(P)


def _by_autodiff(i: HeadInstance) -> list[Any]:
    phi = MultiHeadAttention(i.X.shape[0], i.X.shape[1], 1).head
    grad_U, grad_W = model.head_gradient(i)
    mixed = jax.grad(lambda W: i.a @ jax.grad(phi)(i.U, W, i.X) @ i.b)(i.W)
    second = jax.grad(lambda W: i.c @ jax.grad(phi, argnums=1)(i.U, W, i.X) @ i.b)(i.W)
    return [grad_U, grad_W, mixed, second]


def _by_formula(i: HeadInstance) -> list[Any]:
    P, D = _attention(i)
    X, Xu, Xb = i.X, i.X @ i.U.T, i.X @ i.b
    grad_W = jnp.einsum("ti,st,tsr,rj->ij", X, Xu, D, X)
    mixed = jnp.einsum("t,ti,s,tsr,rj->ij", i.a, X, Xb, D, X)
    # v_t = (Xb).(Xu_t) - (Xu_t)(b^T X^T P_t) - (Xb)(u_t^T X^T P_t)
    v = Xb[:, None] * (Xu - jnp.sum(P.T * Xu, axis=0)[None]) - Xu * (P @ Xb)[None]
    second = jnp.einsum("t,ti,st,tsr,rj->ij", X @ i.c, X, v, D, X)
    return [P @ X, grad_W, mixed, second]


def _lemma_1(i: HeadInstance, variant: str) -> Sides:
    lhs, rhs = (jnp.concatenate([b.ravel() for b in f(i)]) for f in (_by_autodiff, _by_formula))
    return Sides(lhs, rhs, scale=_before_cancelling(i))


def _before_cancelling(i: HeadInstance) -> Any:
    """The size of the products that the formulas add up."""
    R, b = jnp.max(safe_norm(i.X)), safe_norm(i.b)
    on_U, on_W = 1 + R**2 * safe_norm(i.a) * b, 1 + R**2 * safe_norm(i.c) * b
    return len(i.X) * R * (on_U + R**2 * safe_norm(i.U, axis=(-2, -1)) * on_W)


def _lemma_1_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    """Dual numbers, once through the value and once through the gradient; and the formulas."""
    return _slopes(num, data), _formulas_naively(num, data)


def _slopes(num: Arithmetic, data: Data) -> list[Any]:
    X, U, W = data["X"], data["U"], data["W"]
    T, d = len(X), len(X[0])
    ring = duals(num)
    zero, one = num.number(0), num.number(1)

    def moved(table: Any, r: int, s: int) -> Any:
        return [
            [Dual(x, one if (k, l) == (r, s) else zero) for l, x in enumerate(row)]
            for k, row in enumerate(table)
        ]

    along_U = [naive.head(ring, X, moved(U, t, k), W) for t in range(T) for k in range(d)]
    along_W = [naive.head(ring, X, U, moved(W, k, l)) for k in range(d) for l in range(d)]
    first = [unit.value.slope for unit in (*along_U, *along_W)]

    def contracted(unit: naive.Head, left: Any, start: int) -> Any:
        rows = [unit.gradient[start + r * d : start + r * d + d] for r in range(len(left))]
        return dot(left, [dot(data["b"], row) for row in rows])

    mixed = [contracted(unit, data["a"], 0).slope for unit in along_W]
    return [*first, *mixed, *(contracted(unit, data["c"], T * d).slope for unit in along_W)]


def _formulas_naively(num: Arithmetic, data: Data) -> list[Any]:
    X, U, W, a, b, c = (data[name] for name in "XUWabc")
    T, d = len(X), len(X[0])
    unit = naive.head(num, X, U, W)
    blocks = [[[num.number(0) for _ in range(d)] for _ in range(d)] for _ in range(3)]
    for t in range(T):
        P, Xb, Xu = unit.attention[t], times(X, b), times(X, U[t])
        mean_b, mean_u = dot(P, Xb), dot(P, Xu)
        v = [xb * xu - xu * mean_b - xb * mean_u for xb, xu in zip(Xb, Xu, strict=True)]
        for block, left, weight in zip(blocks, (Xu, Xb, v), (1, a[t], dot(c, X[t])), strict=True):
            centre = dot(P, left)
            pulled = [p * (x - centre) for p, x in zip(P, left, strict=True)]
            for k in range(d):
                for l in range(d):
                    column = [X[s][l] for s in range(T)]
                    block[k][l] = block[k][l] + weight * X[t][k] * dot(pulled, column)
    return unit.gradient[: T * d] + [entry for block in blocks for entry in flat(block)]


identity(
    "lemma-1",
    "First and second derivatives of a head",
    "Lemma 1 = Lemma 4",
    "grad_U, grad_W and the two kinds of second derivatives of <U, phi(X W X^T) X> are the stated "
    "products of tokens and softmax derivatives. Left: autodiff; right: the formulas.",
    r"\nabla_W\Phi=\sum_t x_tu_t^\top X^\top\varphi'(XW^\top x_t)X,\quad\nabla^2_{UU}\Phi=0",
    sides=_lemma_1,
    naive=_lemma_1_naive,
    families=HEADS,
    where="Sec. 3, App. A.1",
)
