"""Initialisations of arda2026. Each returns float64 NumPy arrays in the paper's shapes."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from ...core import Array, check_positive, normal, rademacher, stream
from ...core._checks import check_even
from ...models import initialisations
from ...models._initialisations import expect_model
from .model import IndRNN, IndRNNParams, PooledAttention, PooledAttentionParams


def _mirror(half: Float[Array, "k ..."], sign: int = 1) -> Float[Array, "m ..."]:
    return np.concatenate([half, sign * half])


def paired(model: PooledAttention, seed: int) -> PooledAttentionParams:
    """Symmetric initialisation: W, U standard normal, c = +-1, mirrored with c flipped.

    f(.; varphi0) = 0 exactly [arda2026, Sec. 5.2].
    """
    expect_model(model, "paired", PooledAttention)
    half, d = check_even("m", model.m) // 2, model.d
    c = rademacher(stream(seed, "student", "c"), (half,))
    U = normal(stream(seed, "student", "U"), (half, d))
    W = normal(stream(seed, "student", "W"), (half, d, d))
    return PooledAttentionParams(_mirror(c, -1), _mirror(U), _mirror(W))


def unpaired(model: PooledAttention, seed: int) -> PooledAttentionParams:
    """m independent heads, as the released code of arda2026 draws its approximation error."""
    expect_model(model, "unpaired", PooledAttention)
    m, d = model.m, model.d
    return PooledAttentionParams(
        rademacher(stream(seed, "student", "c"), (m,)),
        normal(stream(seed, "student", "U"), (m, d)),
        normal(stream(seed, "student", "W"), (m, d, d)),
    )


def paired_indrnn(model: IndRNN, seed: int, *, gamma: float) -> IndRNNParams:
    """U standard normal, w = +-gamma, c = +-1, mirrored with c flipped [arda2026, App. B]."""
    expect_model(model, "paired-indrnn", IndRNN)
    half = check_even("m", model.m) // 2
    check_positive("gamma", gamma)
    c = rademacher(stream(seed, "student", "c"), (half,))
    U = normal(stream(seed, "student", "U"), (half, model.d))
    w = gamma * rademacher(stream(seed, "student", "w"), (half,))
    return IndRNNParams(_mirror(c, -1), _mirror(U), _mirror(w))


initialisations.register("paired", paired)
initialisations.register("unpaired", unpaired)
initialisations.register("paired-indrnn", paired_indrnn)
