"""Lemma 1 of deora2024 (= Lemma 4): first and second derivatives of one head."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ....theory import Sides
from ....theory.families import safe_norm
from .. import quantities
from ..constants import state
from ..model import MultiHeadAttention
from ..records import Head


@state.identity(
    "lemma-1",
    "First and second derivatives of a head",
    where="Lemma 1 = Lemma 4",
    proved="Sec. 3, App. A.1",
    on=Head,
    says=r"\nabla_W\Phi=\sum_t x_tu_t^\top X^\top\varphi'(XW^\top x_t)X,\quad\nabla^2_{UU}\Phi=0",
)
def lemma_1(head):
    """grad_U, grad_W and the two kinds of second derivatives of <U, phi(X W X^T) X> are the stated
    products of tokens and softmax derivatives. Left: autodiff; right: the formulas."""
    lhs, rhs = (jnp.concatenate([b.ravel() for b in f(head)]) for f in (_by_autodiff, _by_formula))
    return Sides(lhs, rhs, scale=_before_cancelling(head))


def _by_autodiff(i: Head) -> list[Any]:
    phi = MultiHeadAttention(i.T, i.d, 1).head
    grad_U, grad_W = quantities.head_gradient(i)
    mixed = jax.grad(lambda W: i.a @ jax.grad(phi)(i.U, W, i.X) @ i.b)(i.W)
    second = jax.grad(lambda W: i.c @ jax.grad(phi, argnums=1)(i.U, W, i.X) @ i.b)(i.W)
    return [grad_U, grad_W, mixed, second]


def _by_formula(i: Head) -> list[Any]:
    P = jax.nn.softmax(i.X @ i.W @ i.X.T, axis=-1)
    D = jax.vmap(lambda p: jnp.diag(p) - jnp.outer(p, p))(P)
    X, Xu, Xb = i.X, i.X @ i.U.T, i.X @ i.b
    grad_W = jnp.einsum("ti,st,tsr,rj->ij", X, Xu, D, X)
    mixed = jnp.einsum("t,ti,s,tsr,rj->ij", i.a, X, Xb, D, X)
    # v_t = (Xb).(Xu_t) - (Xu_t)(b^T X^T P_t) - (Xb)(u_t^T X^T P_t)
    v = Xb[:, None] * (Xu - jnp.sum(P.T * Xu, axis=0)[None]) - Xu * (P @ Xb)[None]
    second = jnp.einsum("t,ti,st,tsr,rj->ij", X @ i.c, X, v, D, X)
    return [P @ X, grad_W, mixed, second]


def _before_cancelling(i: Head) -> Any:
    """The size of the products that the formulas add up."""
    R, b = jnp.max(safe_norm(i.X)), safe_norm(i.b)
    on_U, on_W = 1 + R**2 * safe_norm(i.a) * b, 1 + R**2 * safe_norm(i.c) * b
    return i.T * R * (on_U + R**2 * i.N * on_W)
