"""Samples of DM1 in the coordinates of `Mixture`: what an audit asks the claims on DM1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...data import Dataset
from ...theory import Batch
from .dm1 import DM1
from .mixture import Mixture, SureMixture, surely

EPS = 0.01
"""The leak of Proposition 3 at which it is asked."""


def first_phase_row(dataset: Dataset) -> Float[Array, "d"]:
    """(1/2) mean_i y_i xbar_i, a row of U after a first phase on these samples [Lemma 16]."""
    return np.mean(dataset.y[:, None] * np.mean(dataset.x, axis=1), axis=0) / 2


Offers = dict[type, Sequence[Any]]


def offered_mixtures(data: DM1, dataset: Dataset, most: int) -> tuple[Offers, str]:
    """Up to `most` samples as instances, each with its own and with equal noise bounds; and a note.

    p is that of a first phase on all the samples. Bounds are those of the data model where its
    noise has sure ones, else the largest that these samples show. Nothing where the claims do not
    speak about the samples: no irrelevant tokens, or noise that leaves the patterns' span.
    """
    L, T, k = data.relevant_tokens, data.T, data.M + 2
    if L == T:
        return {}, "claims about DM1 are not asked: every token is relevant"
    if data.d > k:
        return {}, f"claims about DM1 are not asked: they are stated for d = M + 2 = {k}"
    basis = np.stack([data.mu_plus, data.mu_minus, *data.nu]) / data.S
    some = np.unique(np.linspace(0, len(dataset.y) - 1, min(len(dataset.y), most)).astype(int))
    chosen = Dataset(dataset.x[some], dataset.y[some])
    tokens = chosen.x[~data.relevant_mask(chosen)].reshape(len(some), T - L, data.d) @ basis.T
    kind = np.eye(data.M)[np.argmax(tokens[..., 2:], axis=-1)]
    z = data.S * np.concatenate([tokens[..., :2], tokens[..., 2:] - data.S * kind], axis=-1)
    bounded = data.noise == "bounded"
    shown = data.measure(dataset)
    Z_mu, Z_nu = (data.Z_mu, data.Z_nu) if bounded else (shown["Z_mu"].value, shown["Z_nu"].value)
    p = basis @ first_phase_row(dataset) - data.zeta / 4 * (basis @ data.u_star)
    parts = [
        _instances(data, chosen.y, z, kind, p, bounds)
        for bounds in ((Z_mu, Z_nu), (max(Z_mu, Z_nu),) * 2)
    ]
    both = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    note = (
        "Assumption 3 fails, Gaussian noise is unbounded: claims about DM1 take the largest noise "
        "of these samples for its bounds"
    )
    if bounded or data.noise_sd == 0:
        return {Mixture: Batch(both), SureMixture: Batch(surely(both))}, ""
    return {Mixture: Batch(both)}, note


def _instances(
    data: DM1, y: Any, z: Any, kind: Any, p: Any, bounds: tuple[float, float]
) -> Mixture:
    """A batch; z holds the noise's inner products with the patterns."""
    n, (Z_mu, Z_nu) = len(y), bounds
    tiny = 1e-300  # without noise every ratio is zero

    def everywhere(value: Any) -> Any:
        return np.broadcast_to(np.asarray(value, float), (n, *np.shape(value))).copy()

    return Mixture(
        S=everywhere(data.S),
        Z_mu=everywhere(Z_mu),
        Z_nu=everywhere(Z_nu),
        y=np.asarray(y, float),
        on_mu=np.clip(z[..., :2] / max(Z_mu, tiny), -1.0, 1.0),
        on_nu=np.clip(z[..., 2:] * data.M / max(Z_nu, tiny), -1.0, 1.0),
        kind=kind,
        p=everywhere(p),
        eps=everywhere(EPS),
        L=data.relevant_tokens,
    )
