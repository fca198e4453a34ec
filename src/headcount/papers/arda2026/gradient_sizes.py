"""Eqs. (40)-(42) of arda2026: sizes of the gradients of the model and of the loss."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from ...core import activation_named
from ...theory import Bound, Claim, Kind, Sides, Variant, claims
from ...theory.slow import Arithmetic, dot, norm
from . import constants, model, naive
from .hypotheses import LABELS, NEAR_START
from .instances import MODELS, ModelInstance
from .lemma_3 import start_constants, tight_model
from .naive import Data
from .setting import Setting

REFERENCE = ("arda2026, App. A.7",)


def _bound(name: str) -> Any:
    def bound(setting: Setting, variant: str) -> Bound:
        table = constants.constants(setting, variant).to_dict()
        return Bound(table[name], table)

    return bound


def _gradient_size(i: ModelInstance, variant: str, per_head: bool) -> Sides:
    table = start_constants(i, variant)
    sigma = activation_named(i.activation)
    A = constants.gradient_envelope(sigma, table["L1"], i.rho, i.m, variant)
    c, theta = model.per_head_norms(model.gradients(i, i.params))
    squares = c**2 + theta**2
    if per_head:
        return Sides(jnp.max(jnp.sqrt(squares)), A / math.sqrt(i.m), {**table, "A": A})
    return Sides(jnp.max(jnp.sqrt(jnp.sum(squares, axis=-1))), A, {**table, "A": A})


def _envelope_naive(num: Arithmetic, b: naive.Bounds, variant: str) -> Any:
    theta = (1 + b.rho[0] / b.root_m) * b.L1
    return norm(num, [b.s0, theta]) if variant == "sharp" else b.s0 + theta


def _size_naive(num: Arithmetic, data: Data, variant: str, per_head: bool) -> tuple[Any, Any]:
    b = naive.bounds(num, data, variant)
    phi = naive.current(num, data)
    A = _envelope_naive(num, b, variant)
    rows = [naive.gradients(num, data, j, phi) for j in naive.samples(data)]
    if per_head:
        return num.largest(norm(num, row) for sample in rows for row in sample), A / b.root_m
    return num.largest(norm(num, [norm(num, row) for row in sample]) for sample in rows), A


def _size_claim(number: int, per_head: bool, words: str, latex: str) -> Claim:
    return claims.add(
        Claim(
            id=f"arda2026/eq-{number}",
            title=f"Size of the gradient, {words}",
            kind=Kind.DETERMINISTIC,
            equations=f"Eq. ({number})",
            statement=f"|grad f(X; phi)| ({words}) for phi in Omega_rho.",
            latex=latex,
            sides=lambda i, variant: _gradient_size(i, variant, per_head),
            naive=lambda num, data, variant: _size_naive(num, data, variant, per_head),
            families=MODELS[:1],
            targets=lambda: (tight_model(),),
            variants={
                "printed": Variant("A = s0 + (1 + rho_c/sqrt m) L1"),
                "sharp": Variant("A* = root of the sum of squares, with L1*"),
            },
            default="printed",
            hypotheses=NEAR_START,
            bound=None if per_head else _bound("A"),
            needs_event=True,
            references=REFERENCE,
        )
    )


eq_40 = _size_claim(40, True, "one head", r"\|\nabla_{\varphi_i}f\|_2\le A/\sqrt m")
eq_41 = _size_claim(
    41, False, "all heads", r"\|\nabla_\varphi f\|_2\le A=\sigma_0+(1+\rho_c/\sqrt m)L_1"
)


def _loss_gradient(i: ModelInstance, variant: str) -> Sides:
    table = start_constants(i, variant)
    sigma = activation_named(i.activation)
    f_max = constants.output_envelope(sigma, table["L1"], i.rho)
    y_max = constants.label_envelope(sigma, i.nu, i.d, variant)
    A = constants.gradient_envelope(sigma, table["L1"], i.rho, i.m, variant)

    def loss(phi: Any) -> Any:
        return jnp.mean((model.outputs(i, phi) - i.y) ** 2)

    squares = sum(jnp.sum(leaf**2) for leaf in jax.grad(loss)(i.params))
    B_grad = constants.loss_gradient(f_max, y_max, A)
    named = {"f_max": f_max, "y_max": y_max, "A": A, "B_grad": B_grad}
    return Sides(squares, B_grad, {**table, **named})


def _loss_gradient_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    b = naive.bounds(num, data, variant)
    phi, n = naive.current(num, data), len(data["X"])
    sharp_y = b.s0 * b.nu[0] + b.s1 * (b.nu[1] + b.nu[2])
    root_d = num.number(1) if variant == "sharp" else num.sqrt(num.number(len(data["q"][0])))
    y_max = b.s0 * b.nu[0] + b.s1 * (b.nu[1] + root_d * b.nu[2])
    total: list[Any] = []
    for j in range(n):
        r = naive.output(num, data, j, phi) - data["labels"][j] * sharp_y
        flat = [2 * r / n * g for row in naive.gradients(num, data, j, phi) for g in row]
        total = [x + y for x, y in zip(total, flat, strict=True)] if total else flat
    bound = 2 * (b.L1 * b.k + b.s0 * b.rho[0] + y_max) * _envelope_naive(num, b, variant)
    return dot(total, total), bound * bound


eq_42 = claims.add(
    Claim(
        id="arda2026/eq-42",
        title="Size of the loss gradient",
        kind=Kind.DETERMINISTIC,
        equations="Eq. (42)",
        statement="|grad L|^2 <= B_grad = 4 (f_max + y_max)^2 A^2 for phi in Omega_rho and labels "
        "of a target in F_nu (instances: any labels within y_max*).",
        latex=r"\|\nabla\hat L\|_2^2\le B_{\rm grad}=4(f^{\max}+y^{\max})^2A^2",
        sides=_loss_gradient,
        naive=_loss_gradient_naive,
        families=MODELS,
        targets=lambda: (tight_model(),),
        variants={
            "printed": Variant("with y_max"),
            "sharp": Variant("with L1*, y_max* (no sqrt d) and A*", "E19"),
        },
        default="printed",
        hypotheses=(*NEAR_START, LABELS),
        bound=_bound("B_grad"),
        needs_event=True,
        errata=("E19",),
        references=REFERENCE,
    )
)
