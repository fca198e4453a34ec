"""The first phase of deora2024 in closed form, and its mean (Lemmas 16 and 17)."""

from __future__ import annotations

import jax.numpy as jnp

from ....theory import false
from ..constants import state
from ..mixture import Mixture
from ..quantities import loss_gradient
from ..records import Model


@state.identity(
    "lemma-17-mean",
    "The mean of y mu_y",
    where="App. D.3, proof of Lemma 17",
    on=Mixture,
    says=r"\mathbb E\,y\mu_y=\tfrac12(\mu_+-\mu_-)",
    forms={
        "printed": false("u_*, for u_*/2", "E1"),
        "corrected": ("u_*/2", "E1"),
    },
    notes=("E27", "E29"),
)
def lemma_17_mean(i, form):
    """Over fair labels, y mu_y has the mean u_*/2; the first phase, with its own 1/2 and zeta T
    relevant tokens of T, then ends around (zeta/4) u_*."""
    both = (i.changed(y=jnp.full((), y)) for y in (1.0, -1.0))
    mean = sum(one.y * one.X[0] for one in both) / 2
    return mean, i.u_star / (1 if form == "printed" else 2)


@state.identity(
    "lemma-16",
    "The first phase in closed form",
    where="Lemma 16",
    proved="App. D.3",
    on=Model,
    says=r"\theta_h^{(1)}=\alpha_h\bigl(\tfrac12\mathbf 1_T(\tfrac1{n_1}\textstyle"
    r"\sum_iy_i\bar x_i)^\top,0\bigr)",
    notes=("E27",),
)
def lemma_16(model):
    """-sqrt(H) grad_h L(0) has no W part, and every row of its U part is (1/2) mean_i y_i
    xbar_i."""
    zeros = jnp.zeros_like(model.rows)
    row = 0.5 * jnp.mean(model.y[:, None] * jnp.mean(model.X, axis=1), axis=0)
    factor = {"full": 1.0, "pooling": float(model.T), "last": 1.0}[model.readout]
    U = jnp.broadcast_to(factor * row, (len(model.k), model.U.shape[-2], model.d))
    closed = jnp.concatenate([U.reshape(len(U), -1), zeros[:, U[0].size :]], axis=1)
    return -jnp.sqrt(model.H) * loss_gradient(model, zeros), closed
