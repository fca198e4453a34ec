"""Lemma 2 of arda2026: the head is L1-Lipschitz and L2-smooth; and the steps of its proof."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from ....theory import Reals, Record, false
from ....theory.families import safe_norm
from ....theory.slow import dot, flat, norm, times
from ....theory.slow_spectrum import operator_norm
from .. import quantities, twins
from ..constants import state
from ..records import Head
from .facts_1_to_3 import antipodal


def extremes():
    """Antipodal tokens at rest, all weight on one token, and U.a where tanh'' is largest."""
    U, steepest = 1e4, float(np.arctanh(1 / np.sqrt(3)))
    return antipodal(U=3.0), antipodal(U=0.0, logit=40.0), antipodal(U=U, logit=steepest / U)


SMALL = ({"T": 2, "d": 2}, {"T": 2, "d": 1}, {"T": 3, "d": 1, "activation": "erf"})
"""Hessians have (d + d^2)^2 entries: two features are enough."""
on_heads = functools.partial(
    state.claim, on=Head, asks=("X", "q"), tight=extremes, proved="App. A.3"
)


@on_heads(
    "lemma-2a",
    "Lipschitz constant of a head",
    where="Lemma 2 (a)",
    says=r"\|\nabla_\theta h\|_2\le L_1=\sigma_1\sqrt{1+B_U^2}",
    forms={
        "printed": "L1 = s1 sqrt(1 + B_U^2)",
        "sharp": "L1* = s1 max(1, B_U): |a|^2 + |MU|^2 <= r + (1-r)^2 B_U^2 with r = |a|^2, convex "
        "in r, so the largest value is at an end; both ends are attained",
    },
    right=lambda k: k.L1,
    needs_event=True,
)
def lemma_2a(head):
    """|grad_theta h| <= L1 = s1 sqrt(1 + B_U^2) wherever |U| <= B_U."""
    return safe_norm(quantities.head_gradient(head))


@lemma_2a.twin
def _(num, head):
    return norm(num, twins.one_head(num, head).gradient)


@on_heads(
    "lemma-2b",
    "Smoothness constant of a head",
    where="Lemma 2 (b), Eqs. (15)-(17)",
    shapes=SMALL,
    says=r"\|\nabla^2_\theta h\|_F\le L_2=\sigma_2(1+B_U^2)+8\sigma_1\sqrt{1+B_U^2}",
    forms={
        "printed": "L2 with the factor 8; tight as |U| grows",
        "sharp": (
            "L2* = s2 max(1, B_U^2) + s1 sqrt(2 + (32/27)^2 B_U^2): the W-W block is the third "
            "central moment in direction U times q q^T",
            "E9",
        ),
    },
    right=lambda k: k.L2,
    needs_event=True,
)
def lemma_2b(head):
    """||Hess_theta h||_F <= L2 = s2 (1 + B_U^2) + 8 s1 sqrt(1 + B_U^2) wherever |U| <= B_U."""
    return safe_norm(jnp.ravel(quantities.head_hessian(head)))


@lemma_2b.twin
def _(num, head):
    return norm(num, flat(twins.head_hessian(num, head)))


@on_heads(
    "eq-16",
    "Gradient of U.a",
    where="Eq. (16)",
    says=r"\|\nabla_{\theta_i}z_i\|_2^2\le1+\|U_i\|_2^2",
    forms={"printed": "1 + |U|^2; tight as |U| vanishes or grows", "sharp": "max(1, |U|^2)"},
)
def eq_16(head, form):
    """z = U.a has |grad_U z|^2 + ||grad_W z||_F^2 <= 1 + |U|^2."""
    g_U, g_W = jax.grad(quantities.pooled_value, argnums=(1, 2))(head, head.U, head.W)
    square = jnp.sum(head.U**2)
    bound = jnp.maximum(1.0, square) if form == "sharp" else 1 + square
    return jnp.sum(g_U**2) + jnp.sum(g_W**2), bound


@eq_16.twin
def _(num, head, form):
    unit, U, q, one = twins.one_head(num, head), head["U"], head["q"], num.number(1)
    MU = times(unit.M, U)
    bound = num.largest([one, dot(U, U)]) if form == "sharp" else one + dot(U, U)
    return dot(unit.a, unit.a) + dot(MU, MU) * dot(q, q), bound


def skewed():
    """Two antipodal tokens with weight p = (1 + 1/sqrt 3)/2 on one: 4p(1-p)|2p-1| 2 is largest."""
    p = (1 + 1 / np.sqrt(3)) / 2
    return (antipodal(logit=0.5 * float(np.log(p / (1 - p)))),)


@on_heads(
    "eq-17",
    "The W-W block of the Hessian of U.a",
    where="Eq. (17)",
    shapes=SMALL,
    says=r"\|\nabla^2_{\mathrm{vec}W}z\|_F\le 8\|U\|_2",
    forms={
        "printed": "constant 8",
        "sharp": ("constant 32/27, proved", "E9"),
        "conjectured": ("constant 4/(3 sqrt 3), the supremum found by search", "E9"),
    },
    tight=skewed,
)
def eq_17(head, form):
    """The W-W block of the Hessian of z = U.a has Frobenius norm at most 8 |U|."""
    H = jax.hessian(quantities.pooled_value, argnums=2)(head, head.U, head.W)
    constant = {"printed": 8.0, "sharp": 32 / 27, "conjectured": 4 / (3 * np.sqrt(3))}[form]
    return safe_norm(jnp.ravel(H)), constant * head.B_U


@eq_17.twin
def _(num, head, form):
    d = len(head["q"])
    H = twins.value_hessian(num, head)
    lhs = norm(num, [entry for row in H[d:] for entry in row[d:]])
    constant = {
        "printed": num.number(8),
        "sharp": num.number(32) / 27,
        "conjectured": 4 / (3 * num.sqrt(num.number(3))),
    }[form]
    return lhs, constant * norm(num, head["U"])


class Matrix(Record):
    """A square matrix as a linear map."""

    A = Reals("k", "k")

    shapes = ({"k": 3},)


@state.claim(
    "lemma-2b-step",
    "From the induced norm to the Frobenius norm",
    where="the step before Eq. (17)",
    proved="App. A.3",
    on=Matrix,
    says=r"\|A\|_F\le\|A\|_{F\to F}",
    forms={
        "printed": false("the same constant: fails for the identity", "E9"),
        "corrected": ("times sqrt(k) in dimension k", "E9"),
    },
    tight=lambda: (Matrix(A=np.eye(2)), Matrix(A=np.eye(3))),
)
def lemma_2b_step(A, form):
    """A bound on the induced norm of a linear map bounds its Frobenius norm."""
    largest = jnp.sqrt(jnp.max(jnp.linalg.eigvalsh(A.T @ A)))
    return safe_norm(jnp.ravel(A)), largest * (np.sqrt(len(A)) if form == "corrected" else 1)


@lemma_2b_step.twin
def _(num, A, form):
    root = num.sqrt(num.number(len(A))) if form == "corrected" else 1
    return norm(num, flat(A)), operator_norm(num, A) * root
