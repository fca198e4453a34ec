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
    state.claim,
    on=Head,
    asks=("X", "q"),
    tight=extremes,
    proved="App. A.3",
    no_rival="nothing simpler bounds a derivative of a head",
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
    where="Lemma 2 (b)",
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


def pooled_derivatives(head):
    """Gradient and Hessian of z = U.a in (U, vec W)."""

    def value(theta):
        U, W = jnp.split(theta, [len(head.q)])
        return quantities.pooled_value(head, U, jnp.reshape(W, head.W.shape))

    theta = jnp.concatenate([head.U, jnp.ravel(head.W)])
    return value(theta), jax.grad(value)(theta), jax.hessian(value)(theta)


@on_heads(
    "eq-15",
    "Hessian of a head by the chain rule",
    where="Eq. (15)",
    shapes=SMALL,
    asks=(),
    says=r"\|\nabla^2_{\theta_i}h_i\|_F\le\sigma_2\|\nabla_{\theta_i}z_i\|_2^2"
    r"+\sigma_1\|\nabla^2_{\theta_i}z_i\|_F",
    forms={
        "printed": "with the bounds of sigma'' and sigma'",
        "sharp": "with |sigma''(z)| and |sigma'(z)|: the triangle inequality",
    },
)
def eq_15(head, form):
    """For z = U.a, ||Hess_theta h||_F <= s2 |grad z|^2 + s1 ||Hess z||_F."""
    z, slope, bend = pooled_derivatives(head)
    s1, s2 = head.sigma.sigma1, head.sigma.sigma2
    if form == "sharp":
        s1, s2 = jnp.abs(head.sigma.derivative(z)), jnp.abs(head.sigma.second_derivative(z))
    lhs = safe_norm(jnp.ravel(quantities.head_hessian(head)))
    return lhs, s2 * jnp.sum(slope**2) + s1 * safe_norm(jnp.ravel(bend))


@eq_15.twin
def _(num, head, k, form):
    unit, H = twins.one_head(num, head), twins.value_hessian(num, head)
    slope = unit.a + [row * x for row in times(unit.M, head["U"]) for x in head["q"]]
    _, s1, s2 = (None, abs(unit.slope), abs(unit.curvature)) if form == "sharp" else k.bounds
    rhs = s2 * dot(slope, slope) + s1 * norm(num, flat(H))
    return norm(num, flat(twins.head_hessian(num, head))), rhs


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
    "Hessian of U.a",
    where="Eq. (17)",
    shapes=SMALL,
    says=r"\|\nabla^2_{\theta_i}z_i\|_F^2\le2+64\|U_i\|_2^2",
    tight=lambda: (antipodal(U=0.0), *extremes()),
    forms={
        "printed": "2 + 64 |U|^2: the block of U and W counts twice; attained by antipodal tokens "
        "at U = 0",
        "sharp": ("2 + (32/27)^2 |U|^2", "E9"),
    },
)
def eq_17(head, form):
    """z = U.a has ||Hess_theta z||_F^2 <= 2 ||the U-W block||^2 + ||the W-W block||^2
    <= 2 + 64 |U|^2; its U-U block is 0."""
    constant = (32 / 27) ** 2 if form == "sharp" else 64
    bend = pooled_derivatives(head)[2]
    return jnp.sum(bend**2), 2 + constant * jnp.sum(head.U**2)


@eq_17.twin
def _(num, head, form):
    H, U = flat(twins.value_hessian(num, head)), head["U"]
    constant = (num.number(32) / 27) ** 2 if form == "sharp" else 64
    return dot(H, H), 2 + constant * dot(U, U)


@on_heads(
    "eq-17-block",
    "The W-W block of the Hessian of U.a",
    where="App. A.3, before Eq. (17)",
    shapes=SMALL,
    says=r"\|\nabla^2_{\mathrm{vec}(W_i)}z_i\|_F\le8\|U_i\|_2",
    forms={
        "printed": "constant 8",
        "sharp": ("constant 32/27, proved", "E9"),
        "conjectured": ("constant 4/(3 sqrt 3), the supremum found by search", "E9"),
    },
    tight=skewed,
)
def eq_17_block(head, form):
    """The W-W block of the Hessian of z = U.a has Frobenius norm at most 8 |U|."""
    H = jax.hessian(quantities.pooled_value, argnums=2)(head, head.U, head.W)
    constant = {"printed": 8.0, "sharp": 32 / 27, "conjectured": 4 / (3 * np.sqrt(3))}[form]
    return safe_norm(jnp.ravel(H)), constant * head.B_U


@eq_17_block.twin
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
    where="App. A.3, the step before Eq. (17)",
    proved="App. A.3",
    on=Matrix,
    says=r"\|A\|_F\le\|A\|_{F\to F}",
    forms={
        "implied": false("the same constant: fails for the identity", "E9"),
        "corrected": ("times sqrt(k) in dimension k", "E9"),
    },
    tight=lambda: (Matrix(A=np.eye(2)), Matrix(A=np.eye(3))),
    no_rival="it compares two norms of one matrix",
)
def lemma_2b_step(A, form):
    """A bound on the induced norm of a linear map bounds its Frobenius norm."""
    largest = jnp.sqrt(jnp.max(jnp.linalg.eigvalsh(A.T @ A)))
    return safe_norm(jnp.ravel(A)), largest * (np.sqrt(len(A)) if form == "corrected" else 1)


@lemma_2b_step.twin
def _(num, A, form):
    root = num.sqrt(num.number(len(A))) if form == "corrected" else 1
    return norm(num, flat(A)), operator_norm(num, A) * root
