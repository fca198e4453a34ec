"""Initialisations of wu2023, Table 1. Each returns float64 NumPy arrays in the paper's shapes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from ...core import Array, normal, stream
from ...models import initialisations
from ...models._initialisations import expect_model
from .model import Encoder, EncoderParams, TwoLayerParams, TwoLayerReLU

_VARIANCES: dict[str, Callable[[int, int], tuple[float, float]]] = {
    # wu2023 Table 1: variances (eta_O, eta_V = eta_Q = eta_K) from (d, d_m).
    "lecun": lambda d, d_m: (1 / d_m, 1 / d),
    "he": lambda d, d_m: (2 / d_m, 2 / d),
    "ntk": lambda d, d_m: (1.0, 1.0),
}


def _table_1(name: str, model: Encoder | TwoLayerReLU, seed: int) -> EncoderParams | TwoLayerParams:
    expect_model(model, name, Encoder, TwoLayerReLU)
    d = model.d if isinstance(model, Encoder) else model.D
    eta_O, eta_V = _VARIANCES[name](d, model.d_m)

    def gaussian(block: str, *shape: int, variance: float) -> Float[Array, "..."]:
        return np.sqrt(variance) * normal(stream(seed, "student", block), shape)

    w_O = gaussian("w_O", model.d_m, variance=eta_O)
    W_V = gaussian("W_V", model.d_m, d, variance=eta_V)
    if isinstance(model, TwoLayerReLU):
        return TwoLayerParams(W_V, w_O)
    W_Q = gaussian("W_Q", model.d_m, d, variance=eta_V)
    W_K = gaussian("W_K", model.d_m, d, variance=eta_V)
    return EncoderParams(W_Q, W_K, W_V, w_O)


def lecun(model: Encoder | TwoLayerReLU, seed: int) -> EncoderParams | TwoLayerParams:
    """The lecun initialisation of wu2023 Table 1 (Gaussian)."""
    return _table_1("lecun", model, seed)


def he(model: Encoder | TwoLayerReLU, seed: int) -> EncoderParams | TwoLayerParams:
    """The he initialisation of wu2023 Table 1 (Gaussian)."""
    return _table_1("he", model, seed)


def ntk_normal(model: Encoder | TwoLayerReLU, seed: int) -> EncoderParams | TwoLayerParams:
    """The ntk initialisation of wu2023 Table 1 (Gaussian)."""
    return _table_1("ntk", model, seed)


initialisations.register("lecun", lecun)
initialisations.register("he", he)
initialisations.register("ntk", ntk_normal)
