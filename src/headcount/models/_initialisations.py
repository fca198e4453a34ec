"""Initialisations, named after the papers. Each returns float64 NumPy arrays in paper shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, PRNGKeyArray

from ..core import (
    Array,
    BadArgument,
    Registry,
    check_even,
    check_positive,
    check_samples,
    normal,
    rademacher,
    stream,
    substream,
)
from ._arda2026 import PooledAttention, PooledAttentionParams
from ._deora2024 import HeadGroups, LinearModel, LinearParams, MultiHeadAttention, MultiHeadParams
from ._indrnn import IndRNN, IndRNNParams
from ._wu2023 import Encoder, EncoderParams, TwoLayerParams, TwoLayerReLU

initialisations: Registry[Callable[..., Any]] = Registry("initialisation")
"""Functions (model, seed, **options) -> params, by name."""

_VARIANCES: dict[str, Callable[[int, int], tuple[float, float]]] = {
    # wu2023 Table 1: variances (eta_O, eta_V = eta_Q = eta_K) from (d, d_m).
    "lecun": lambda d, d_m: (1 / d_m, 1 / d),
    "he": lambda d, d_m: (2 / d_m, 2 / d),
    "ntk": lambda d, d_m: (1.0, 1.0),
}


def _mirror(half: Float[Array, "k ..."], sign: int = 1) -> Float[Array, "m ..."]:
    return np.concatenate([half, sign * half])


def _expect(model: Any, name: str, *kinds: type) -> None:
    if not isinstance(model, kinds):
        wanted = ", ".join(kind.__name__ for kind in kinds)
        raise BadArgument(
            "model", type(model).__name__, f"has no {name!r} initialisation", fix=f"use {wanted}"
        )


def paired(model: PooledAttention, seed: int) -> PooledAttentionParams:
    """Symmetric initialisation: W, U standard normal, c = +-1, mirrored with c flipped.

    f(.; varphi0) = 0 exactly [arda2026, Sec. 5.2].
    """
    _expect(model, "paired", PooledAttention)
    half, d = check_even("m", model.m) // 2, model.d
    c = rademacher(stream(seed, "student", "c"), (half,))
    U = normal(stream(seed, "student", "U"), (half, d))
    W = normal(stream(seed, "student", "W"), (half, d, d))
    return PooledAttentionParams(_mirror(c, -1), _mirror(U), _mirror(W))


def unpaired(model: PooledAttention, seed: int) -> PooledAttentionParams:
    """m independent heads, as the released code of arda2026 draws its approximation error."""
    _expect(model, "unpaired", PooledAttention)
    m, d = model.m, model.d
    return PooledAttentionParams(
        rademacher(stream(seed, "student", "c"), (m,)),
        normal(stream(seed, "student", "U"), (m, d)),
        normal(stream(seed, "student", "W"), (m, d, d)),
    )


def paired_indrnn(model: IndRNN, seed: int, *, gamma: float) -> IndRNNParams:
    """U standard normal, w = +-gamma, c = +-1, mirrored with c flipped [arda2026, App. B]."""
    _expect(model, "paired-indrnn", IndRNN)
    half = check_even("m", model.m) // 2
    check_positive("gamma", gamma)
    c = rademacher(stream(seed, "student", "c"), (half,))
    U = normal(stream(seed, "student", "U"), (half, model.d))
    w = gamma * rademacher(stream(seed, "student", "w"), (half,))
    return IndRNNParams(_mirror(c, -1), _mirror(U), _mirror(w))


def zero(model: MultiHeadAttention | HeadGroups | LinearModel, seed: int = 0) -> Any:
    """theta = 0, the start of every experiment of deora2024; the seed is not used."""
    _expect(model, "zero", MultiHeadAttention, HeadGroups, LinearModel)
    if isinstance(model, LinearModel):
        return LinearParams(np.zeros((model.T, model.d)))
    shapes = model.shapes()
    return MultiHeadParams(np.zeros(shapes.U), np.zeros(shapes.W))


def first_step_row(x: Float[Array, "n1 T d"], y: Float[Array, "n1"]) -> Float[Array, "d"]:
    """(1/2) mean_i y_i xbar_i, xbar_i the mean token: every row of U_h^(1) up to its sign.

    Closed form of the first step from zero [deora2024, Sec. 5.1, Lemma 16].
    """
    check_samples(x, y)
    return 0.5 * np.mean(np.asarray(y)[:, None] * np.mean(np.asarray(x), axis=1), axis=0)


def _two_phase_readout(row: Float[Array, "d"], T: int, readout: str) -> Float[Array, "..."]:
    if readout == "full":
        return np.broadcast_to(row, (T, len(row)))
    return T * row if readout == "pooling" else row


def two_phase(
    model: MultiHeadAttention,
    seed: int,
    *,
    x: Float[Array, "n1 T d"],
    y: Float[Array, "n1"],
) -> MultiHeadParams:
    """theta_h = -alpha_h sqrt(H) grad_h L(0) on n1 samples, alpha_h = +-1 [deora2024, Sec. 5.1].

    W_h = 0 and every row of U_h is alpha_h times `first_step_row`.
    """
    _expect(model, "two-phase", MultiHeadAttention)
    alpha = rademacher(stream(seed, "two-phase", "alpha"), (model.H,))
    U = _two_phase_readout(first_step_row(x, y), model.T, model.readout)
    return MultiHeadParams(np.multiply.outer(alpha, U), np.zeros(model.shapes().W))


def two_phase_groups(
    T: int,
    d: int,
    H: int,
    seed: int,
    *,
    x: Float[Array, "n1 T d"],
    y: Float[Array, "n1"],
    readout: str = "full",
) -> tuple[HeadGroups, MultiHeadParams]:
    """The two-phase start as its two sign classes, for any H: the model and its parameters.

    The number of positive signs is drawn as Binomial(H, 1/2); beyond 2^20 heads by its normal
    limit, whose error is far below one part in a thousand there.
    """
    positives = _positive_signs(stream(seed, "two-phase", "alpha"), H)
    signs = [(+1.0, positives), (-1.0, H - positives)]
    present = [(sign, k) for sign, k in signs if k]
    model = HeadGroups(T, d, tuple(k for _, k in present), readout)
    U = _two_phase_readout(first_step_row(x, y), T, readout)
    alpha = np.array([sign for sign, _ in present])
    return model, MultiHeadParams(np.multiply.outer(alpha, U), np.zeros(model.shapes().W))


def _positive_signs(key: PRNGKeyArray, H: int) -> int:
    if H <= 2**20:
        return int(np.count_nonzero(rademacher(key, (H,)) > 0))
    drawn = H / 2 + 0.5 * np.sqrt(H) * float(normal(substream(key, "normal-limit"), ()))
    return min(max(round(drawn), 0), H)


def _table_1(name: str, model: Encoder | TwoLayerReLU, seed: int) -> EncoderParams | TwoLayerParams:
    _expect(model, name, Encoder, TwoLayerReLU)
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


initialisations.register("paired", paired)
initialisations.register("unpaired", unpaired)
initialisations.register("paired-indrnn", paired_indrnn)
initialisations.register("zero", zero)
initialisations.register("two-phase", two_phase)
initialisations.register("lecun", lecun)
initialisations.register("he", he)
initialisations.register("ntk", ntk_normal)
