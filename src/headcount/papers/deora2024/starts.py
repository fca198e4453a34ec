"""Initialisations of deora2024. Each returns float64 NumPy arrays in the paper's shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, PRNGKeyArray

from ...core import Array, check_samples, normal, rademacher, stream
from ...core._keys import substream
from ...models import initialisations
from ...models._initialisations import expect_model
from .model import HeadGroups, LinearModel, LinearParams, MultiHeadAttention, MultiHeadParams


def zero(model: MultiHeadAttention | HeadGroups | LinearModel, seed: int = 0) -> Any:
    """theta = 0, the start of every experiment of deora2024; the seed is not used."""
    expect_model(model, "zero", MultiHeadAttention, HeadGroups, LinearModel)
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
    expect_model(model, "two-phase", MultiHeadAttention)
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


initialisations.register("zero", zero)
initialisations.register("two-phase", two_phase)
