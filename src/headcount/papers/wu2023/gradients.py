"""Lemmas 12 and 13 of wu2023: the sizes of the loss gradient and of the network's gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ...theory import Claim, Sides
from ...theory.slow import Arithmetic, flat, norm
from ...theory.slow_spectrum import operator_norm
from . import constants, naive, naive_constants
from . import quantities as model
from .declare import claim
from .instances import MODELS, ModelInstance
from .naive import BLOCKS, Data

APPENDIX = "App. C.1"


def _bound(i: ModelInstance, block: str) -> Any:
    """The factor of |f - y| in Lemma 12."""
    s, lam = model.sizes(i), model.norms(i.theta)
    factors = {
        "W_Q": constants.attention_slope(s, lam.K, lam),
        "W_K": constants.attention_slope(s, lam.Q, lam),
        "W_V": lam.O,
        "w_O": lam.V,
    }
    return constants.rho(s) * factors[block]


def _bound_naively(num: Arithmetic, data: Data, block: str) -> Any:
    lam = naive.theta_of(data).norms(num)
    k = naive_constants.constants(num, data, lam, "printed")
    flow = 2 * data["tau"][0] * k.S * lam[2] * lam[3]
    factors = {"W_Q": flow * lam[1], "W_K": flow * lam[0], "W_V": lam[3], "w_O": lam[2]}
    return k.rho * factors[block]


def _sides(block: str) -> Callable[[ModelInstance, str], Sides]:
    def sides(i: ModelInstance, variant: str) -> Sides:
        slope = getattr(jax.grad(lambda t: model.loss(i, t))(i.theta), block)
        residual = jnp.linalg.norm(model.outputs(i, i.theta) - i.y)
        return Sides(jnp.linalg.norm(jnp.ravel(slope)), _bound(i, block) * residual)

    return sides


def _naive(block: str) -> Callable[[Arithmetic, Data, str], tuple[Any, Any]]:
    def slow(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
        theta = naive.theta_of(data)
        r = naive.residual(num, data, theta)
        slope = getattr(naive.loss_gradient(num, data, theta, r), block)
        entries = slope if block == "w_O" else flat(slope)
        return norm(num, entries), _bound_naively(num, data, block) * norm(num, r)

    return slow


_FACTORS = {
    "W_Q": ("2 rho tau0 S lamK lamV lamO", r"2\rho\tau_0S\bar\lambda_K\bar\lambda_V\bar\lambda_O"),
    "W_K": ("2 rho tau0 S lamQ lamV lamO", r"2\rho\tau_0S\bar\lambda_Q\bar\lambda_V\bar\lambda_O"),
    "W_V": ("rho lamO", r"\rho\bar\lambda_O"),
    "w_O": ("rho lamV", r"\rho\bar\lambda_V"),
}


def _lemma_12(block: str) -> Claim:
    text, latex = _FACTORS[block]
    return claim(
        f"lemma-12-{block[-1]}",
        f"Size of the loss gradient in {block}",
        "Lemma 12, (7)-(10)",
        f"The gradient of (1/2)|f - y|^2 in {block} has norm at most {text} |f - y|.",
        rf"\|\nabla_{{{block}}}\ell\|_F\le{latex}\|f-y\|_2",
        sides=_sides(block),
        naive=_naive(block),
        families=MODELS,
        forms="with relu' (0 or 1) where the proof prints relu",
        errata=("E3",),
        where=APPENDIX,
    )


for _block in BLOCKS:
    _lemma_12(_block)


def _lemma_13(i: ModelInstance, variant: str) -> Sides:
    s, lam = model.sizes(i), model.norms(i.theta)
    c2 = constants.c2(s, lam)
    return Sides(model.spectral(model.jacobian(i, i.theta)), c2, {"c2": c2})


def _lemma_13_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    theta = naive.theta_of(data)
    rows = [slope.flat() for slope in naive.jacobian(num, data, theta)]
    k = naive_constants.constants(num, data, theta.norms(num), "printed")
    return operator_norm(num, rows), k.c2


claim(
    "lemma-13",
    "Size of the network's gradient",
    "Lemma 13, (11)",
    "The N x p Jacobian of f has spectral norm at most c2 = rho sqrt(lamO^2 + lamV^2 "
    "+ (2 tau0 S lamK lamV lamO)^2 + (2 tau0 S lamQ lamV lamO)^2).",
    r"\|\nabla_\theta f\|_2\le c_2",
    sides=_lemma_13,
    naive=_lemma_13_naive,
    families=MODELS,
    forms={"printed": ("tight; the proof lacks squares on three norms", "E25")},
    where=APPENDIX,
)
