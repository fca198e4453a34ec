"""The first phase of deora2024 in closed form, and where it concentrates (Lemma 16)."""

from __future__ import annotations

import jax.numpy as jnp

from ....theory import false
from ..constants import state
from ..mixture import Mixture
from ..quantities import loss_gradient
from ..records import Model


@state.identity(
    "lemma-16-centre",
    "Where the first phase concentrates",
    where="Lemmas 2, 16, 17, Eqs. (6), (102), (120)",
    proved="Sec. 5.1, App. D.3",
    on=Mixture,
    says=r"\mathbb E\,\tfrac12y\bar x=\tfrac\zeta4(\mu_+-\mu_-)",
    forms={
        "printed": false("(zeta/2) u_*: E[y mu_y] is u_*/2", "E1"),
        "corrected": ("(zeta/4) u_*", "E1"),
    },
    notes=("E27", "E29"),
)
def lemma_16_centre(i, form):
    """The mean of (1/2) y xbar over fair labels and symmetric noise is (zeta/4) u_*."""
    labels = {y: i.changed(y=jnp.full((), y)) for y in (1.0, -1.0)}
    rows = [
        y * jnp.mean(one.changed(on_mu=s * i.on_mu, on_nu=s * i.on_nu).X, axis=0)
        for y, one in labels.items()
        for s in (1.0, -1.0)
    ]
    return sum(rows) / 8, i.zeta / (2 if form == "printed" else 4) * i.u_star


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
