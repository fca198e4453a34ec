"""Lemma 5, Corollary 1 (= Lemma 6) and Eq. (24) of deora2024: H heads and the logistic loss."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...theory import Sides
from ...theory.slow import Arithmetic
from . import constants, naive, naive_constants
from . import quantities as model
from .declare import HESSIAN_TIERS, claim, false
from .instances import MODELS, ModelInstance, model_family, opposite_model
from .naive import Data

SMALL = (
    model_family(n=1),
    model_family(n=2, G=1, readout="pooling"),
    model_family(n=1, d=2, G=1, readout="last"),
)
"""Hessians of the loss have (G p)^2 entries."""


def _tier(i: ModelInstance, variant: str) -> tuple[str, str]:
    """(Hessian bound, read-out whose power of T is meant)."""
    return variant, "full" if variant == "printed" else i.readout


def _constants(i: ModelInstance, variant: str) -> dict[str, Any]:
    tier, readout = _tier(i, variant)
    N, R = model.longest_readout(i), i.R
    table = {
        "beta_1": constants.beta_1(N, R, i.T, readout),
        "beta_2": constants.beta_2(N, R, i.H, i.T, i.d, tier, readout),
        "beta_3": constants.beta_3(N, R, i.T, i.d, tier, readout),
    }
    return {"H": i.H, "N": N, "R": R, **table}


def _constants_naively(num: Arithmetic, data: Data, variant: str) -> dict[str, Any]:
    T, d = naive.shape(data)
    readout = "full" if variant == "printed" else data["readout"]
    N, R = naive.longest_readout(num, data), naive.token_bound(num, data)
    H = naive.total(num, data)
    return {
        "H": H,
        "beta_1": naive_constants.beta_1(num, N, R, T, readout),
        "beta_2": naive_constants.beta_2(num, N, R, H, T, d, variant, readout),
        "beta_3": naive_constants.beta_3(num, N, R, T, d, variant, readout),
    }


def _targets() -> tuple[ModelInstance, ...]:
    return tuple(opposite_model(r, k) for r in ("full", "pooling", "last") for k in (1.0, 4.0))


def _equal_tokens() -> tuple[ModelInstance, ...]:
    """Equal tokens, U = 0: |grad Phi~| = (power of T) R."""
    return tuple(
        ModelInstance(np.ones((1, 2, 1)), t.y, t.k, t.U, t.W, t.readout) for t in _targets()
    )


on_models = functools.partial(claim, families=MODELS, where="App. A.1, A.2")
on_small = functools.partial(on_models, families=SMALL, targets=_targets)


def _model_gradient(i: ModelInstance, variant: str) -> Sides:
    table = _constants(i, variant)
    # The gradient of Phi~ in one head is H^{-1/2} grad Phi, and a group has k_g of them.
    squares = jnp.sum(model.head_gradients(i, i.rows) ** 2, axis=-1) @ i.k / i.H
    return Sides(jnp.sqrt(jnp.max(squares)), table["beta_1"], table)


def _model_gradient_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    H = naive.total(num, data)
    parts = naive.samples(num, data, naive.parameters(data))
    squares = [naive.squared_length(num, data, part.gradients) / H for part in parts]
    return num.root(num.largest(squares)), _constants_naively(num, data, variant)["beta_1"]


on_models(
    "lemma-5-gradient",
    "Gradient of the multi-head model",
    "Lemma 5 (1)",
    "|grad Phi~(X)| <= beta_1 = sqrt(T) R (2 R^2 max_h |U_h|_F + 1).",
    r"\|\nabla\widetilde\Phi\|\le\sqrt TR(2R^2\max_h\|U_h\|_F+1)",
    sides=_model_gradient,
    naive=_model_gradient_naive,
    targets=_equal_tokens,
    forms={
        "printed": false("sqrt(T) for every read-out: fails for pooling", "E20"),
        "corrected": ("sqrt(T) for a full read-out, T for pooling, 1 for the last token", "E20"),
    },
)


def _model_hessian(i: ModelInstance, variant: str) -> Sides:
    table = _constants(i, variant)
    return Sides(jnp.max(model.model_hessian_norms(i)), table["beta_3"] / jnp.sqrt(i.H), table)


def _model_hessian_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    table = _constants_naively(num, data, variant)
    lhs = num.largest(naive.model_hessian_norms(num, data))
    return lhs, table["beta_3"] / num.sqrt(table["H"])


on_small(
    "lemma-5-hessian",
    "Hessian of the multi-head model",
    "Lemma 5 (2)",
    "|Hess Phi~(X)| <= beta_3/sqrt(H): it is block diagonal over heads.",
    r"\|\nabla^2\widetilde\Phi\|\le\beta_3/\sqrt H",
    sides=_model_hessian,
    naive=_model_hessian_naive,
    forms=HESSIAN_TIERS,
)


def _slopes(i: ModelInstance, variant: str) -> Sides:
    z = i.y * model.outputs(i, i.rows)
    L = model.loss(i, i.rows)
    mean = jnp.mean(-model.slope(z))
    if variant == "printed":
        return Sides(jnp.stack([mean, L]), jnp.stack([L, jnp.ones(())]))
    curved = jnp.mean(model.curvature(z))
    return Sides(jnp.stack([mean, mean, curved]), jnp.stack([L, jnp.ones(()), jnp.full((), 0.25)]))


def _slopes_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    parts = naive.samples(num, data, naive.parameters(data))
    L, n, one = naive.mean_loss(num, parts), len(parts), num.number(1)
    mean = num.total([-part.slope for part in parts]) / n
    if variant == "printed":
        return [mean, L], [L, one]
    curved = num.total([part.curvature for part in parts]) / n
    return [mean, mean, curved], [L, one, one / 4]


on_models(
    "eq-24",
    "Derivatives of the logistic loss",
    "Eq. (24)",
    "mean |l'| <= min(L, 1) and mean |l''| <= 1/4.",
    r"\tfrac1n\sum|\ell'|\le\widehat L\wedge1,\quad\tfrac1n\sum|\ell''|\le\tfrac14",
    sides=_slopes,
    naive=_slopes_naive,
    forms={
        "printed": false("mean |l'| <= L <= 1: the loss is not at most 1", "E6"),
        "corrected": ("the smaller of L and 1", "E6"),
    },
)


def _loss_gradient(i: ModelInstance, variant: str) -> Sides:
    table = _constants(i, "corrected")
    L = model.loss(i, i.rows)
    bound = table["beta_1"] * (jnp.minimum(L, 1.0) if variant == "sharp" else L)
    return Sides(model.length(i, model.loss_gradient(i, i.rows)), bound, {**table, "L": L})


def _loss_gradient_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    parts = naive.samples(num, data, naive.parameters(data))
    L = naive.mean_loss(num, parts)
    factor = num.smallest([L, num.number(1)]) if variant == "sharp" else L
    lhs = naive.length(num, data, naive.loss_gradient(num, data, parts))
    return lhs, _constants_naively(num, data, "corrected")["beta_1"] * factor


on_models(
    "corollary-1-1",
    "The loss bounds its own gradient",
    "Corollary 1 (1) = Lemma 6 (1), Eq. (64)",
    "|grad L| <= beta_1 L.",
    r"\|\nabla\widehat L\|\le\beta_1\widehat L",
    sides=_loss_gradient,
    naive=_loss_gradient_naive,
    forms={"printed": "beta_1 L", "sharp": "beta_1 min(L, 1), since |l'| <= 1"},
)


def _smoothness(i: ModelInstance, variant: str) -> Sides:
    table = _constants(i, variant)
    low, high = model.loss_hessian_ends(i, i.rows)
    return Sides(jnp.maximum(-low, high), table["beta_2"], table)


def _smoothness_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    low, high = naive.loss_hessian_ends(num, data, naive.parameters(data))
    return num.largest([-low, high]), _constants_naively(num, data, variant)["beta_2"]


on_small(
    "corollary-1-2",
    "Smoothness of the loss",
    "Corollary 1 (2) = Lemma 6 (2), Eqs. (65), (66)",
    "|Hess L| <= beta_2 = beta_3/sqrt(H) + beta_1^2/4.",
    r"\|\nabla^2\widehat L\|\le\beta_3/\sqrt H+\beta_1^2/4",
    sides=_smoothness,
    naive=_smoothness_naive,
    forms=HESSIAN_TIERS,
    errata=("E15",),
)


def _weak_convexity(i: ModelInstance, variant: str) -> Sides:
    table = _constants(i, variant)
    L = model.loss(i, i.rows)
    low, _ = model.loss_hessian_ends(i, i.rows)
    return Sides(-low, table["beta_3"] / jnp.sqrt(i.H) * L, {**table, "L": L})


def _weak_convexity_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    rows = naive.parameters(data)
    low, _ = naive.loss_hessian_ends(num, data, rows)
    table = _constants_naively(num, data, variant)
    return -low, table["beta_3"] / num.sqrt(table["H"]) * naive.loss(num, data, rows)


on_small(
    "corollary-1-3",
    "Self-bounded weak convexity",
    "Corollary 1 (3) = Lemma 6 (3)",
    "The smallest eigenvalue of Hess L is at least -(beta_3/sqrt(H)) L.",
    r"\lambda_{\min}(\nabla^2\widehat L)\ge-(\beta_3/\sqrt H)\widehat L",
    sides=_weak_convexity,
    naive=_weak_convexity_naive,
    forms=HESSIAN_TIERS,
)
