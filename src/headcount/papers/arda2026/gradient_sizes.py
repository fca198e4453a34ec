"""Eqs. (40)-(42) of arda2026: sizes of the gradients of the model and of the loss."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax

from ...theory.slow import Arithmetic, dot, norm
from . import constants, naive
from . import quantities as model
from .declare import near_start
from .hypotheses import LABELS, NEAR_START
from .instances import ModelInstance
from .lemma_3 import tight_models
from .naive import Data

FORMS = {
    "printed": "A = s0 + (1 + rho_c/sqrt m) L1",
    "sharp": "A* = root of the sum of squares, with L1*",
}


def _squares(i: ModelInstance) -> Any:
    c, theta = model.per_head_norms(model.gradients(i, i.params))
    return c**2 + theta**2


def _rows_naively(num: Arithmetic, data: Data) -> list[list[list[Any]]]:
    """Per sample and head the vector grad_i f at phi."""
    phi = naive.current(num, data)
    return [naive.gradients(num, data, j, phi) for j in naive.samples(data)]


near_start(
    "eq-40",
    "Size of the gradient, one head",
    "Eq. (40)",
    "sqrt(m) |grad_i f(X; phi)| <= A for phi in Omega_rho.",
    r"\|\nabla_{\varphi_i}f\|_2\le A/\sqrt m",
    measured=lambda i: jnp.sqrt(i.m * jnp.max(_squares(i))),
    naively=lambda num, data: (
        num.sqrt(num.number(len(data["c0"])))
        * num.largest(norm(num, row) for rows in _rows_naively(num, data) for row in rows)
    ),
    constant="A",
    targets=tight_models,
    forms=FORMS,
    bound=None,
)

near_start(
    "eq-41",
    "Size of the gradient, all heads",
    "Eq. (41)",
    "|grad f(X; phi)| <= A for phi in Omega_rho.",
    r"\|\nabla_\varphi f\|_2\le A=\sigma_0+(1+\rho_c/\sqrt m)L_1",
    measured=lambda i: jnp.max(jnp.sqrt(jnp.sum(_squares(i), axis=-1))),
    naively=lambda num, data: num.largest(
        norm(num, [norm(num, row) for row in rows]) for rows in _rows_naively(num, data)
    ),
    constant="A",
    targets=tight_models,
    forms=FORMS,
)


def _loss_gradient_naively(num: Arithmetic, data: Data) -> Any:
    b = naive.bounds(num, data, "printed")
    y_max = b.s0 * b.nu[0] + b.s1 * (b.nu[1] + b.nu[2])
    phi, n = naive.current(num, data), len(data["X"])
    total: list[Any] = []
    for j, rows in enumerate(_rows_naively(num, data)):
        r = naive.output(num, data, j, phi) - data["labels"][j] * y_max
        flat = [2 * r / n * g for row in rows for g in row]
        total = [x + y for x, y in zip(total, flat, strict=True)] if total else flat
    return dot(total, total)


def _known_gradient(at: Any, k: dict[str, Any]) -> Any:
    """(42) with what is known about |f| and |y| without it."""
    f = constants.known_output(at.sigma, k["B_U"], at.rho, at.m)
    y = constants.label_envelope(at.sigma, at.nu, at.d, "sharp")
    return constants.loss_gradient(f, y, k["A"])


near_start(
    "eq-42",
    "Size of the loss gradient",
    "Eq. (42)",
    "|grad L|^2 <= B_grad = 4 (f_max + y_max)^2 A^2 for phi in Omega_rho and labels of a target "
    "in F_nu (instances: any labels within y_max*).",
    r"\|\nabla\hat L\|_2^2\le B_{\rm grad}=4(f^{\max}+y^{\max})^2A^2",
    measured=lambda i: optax.tree.norm(jax.grad(model.loss, argnums=1)(i, i.params), squared=True),
    naively=_loss_gradient_naively,
    constant="B_grad",
    trivial=_known_gradient,
    targets=tight_models,
    forms={
        "printed": "with y_max",
        "sharp": ("with L1*, y_max* (no sqrt d) and A*", "E19"),
    },
    hypotheses=(*NEAR_START, LABELS),
)
