"""Eqs. (40)-(42) of arda2026: sizes of the gradients of the model and of the loss."""

import jax
import jax.numpy as jnp
import optax

from ....theory.slow import dot, norm
from .. import quantities, twins
from .lemma_3 import DISPLACED, SAMPLE, START, near_start

FORMS = {
    "printed": "A = s0 + (1 + rho_c/sqrt m) L1",
    "sharp": "A* = root of the sum of squares, with L1*",
}


def squares(i):
    """|grad_i f|^2 of every sample and head."""
    c, theta = quantities.per_head_norms(quantities.gradients(i, i.params))
    return c**2 + theta**2


def rows_slowly(num, i):
    """Per sample and head the vector grad_i f at phi."""
    phi = twins.current(num, i)
    return [twins.gradients(num, i, j, phi) for j in twins.samples(i)]


@near_start(
    "eq-40",
    "Size of the gradient, one head",
    where="Eq. (40)",
    says=r"\|\nabla_{\varphi_i}f\|_2\le A/\sqrt m",
    forms=FORMS,
    right=lambda k: k.A,
    no_rival="nothing simpler bounds the gradient of the model",
    bound=None,
)
def eq_40(i):
    """sqrt(m) |grad_i f(X; phi)| <= A for phi in Omega_rho."""
    return jnp.sqrt(i.m * jnp.max(squares(i)))


@eq_40.twin
def _(num, i):
    largest = num.largest(norm(num, row) for rows in rows_slowly(num, i) for row in rows)
    return num.sqrt(num.number(len(i["c0"]))) * largest


@near_start(
    "eq-41",
    "Size of the gradient, all heads",
    where="Eq. (41)",
    says=r"\|\nabla_\varphi f\|_2\le A=\sigma_0+(1+\rho_c/\sqrt m)L_1",
    forms=FORMS,
    right=lambda k: k.A,
    no_rival="nothing simpler bounds the gradient of the model",
)
def eq_41(i):
    """|grad f(X; phi)| <= A for phi in Omega_rho."""
    return jnp.max(jnp.sqrt(jnp.sum(squares(i), axis=-1)))


@eq_41.twin
def _(num, i):
    return num.largest(norm(num, [norm(num, row) for row in rows]) for rows in rows_slowly(num, i))


@near_start(
    "eq-42",
    "Size of the loss gradient",
    where="Eq. (42)",
    asks=(*SAMPLE, *START, *DISPLACED, "labels"),
    says=r"\|\nabla\hat L\|_2^2\le B_{\rm grad}=4(f^{\max}+y^{\max})^2A^2",
    forms={
        "printed": "with y_max",
        "sharp": ("with L1*, y_max* (no sqrt d) and A*", "E19"),
    },
    right=lambda k: k.B_grad,
    trivial=lambda k: k.known_gradient,
)
def eq_42(i):
    """|grad L|^2 <= B_grad = 4 (f_max + y_max)^2 A^2 for phi in Omega_rho and labels of a target in
    F_nu (instances: any labels within y_max*)."""
    return optax.tree.norm(jax.grad(quantities.loss, argnums=1)(i, i.params), squared=True)


@eq_42.twin
def _(num, i):
    phi, y, total = twins.current(num, i), twins.labels(num, i), None
    for j, rows in enumerate(rows_slowly(num, i)):
        weight = 2 * (twins.output(num, i, j, phi) - y[j]) / len(y)
        part = [weight * g for row in rows for g in row]
        total = part if total is None else [x + z for x, z in zip(total, part, strict=True)]
    return dot(total, total)
