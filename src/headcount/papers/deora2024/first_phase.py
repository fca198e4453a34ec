"""The first phase of deora2024 in closed form, and where it concentrates (Lemma 16)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from ...theory import Sides
from ...theory.slow import Arithmetic
from . import naive
from .declare import false, identity
from .instances import MODELS, ModelInstance
from .mixture import MIXTURES, MixtureInstance, NaiveMixture
from .naive import Data
from .quantities import loss_gradient


def _centre(i: MixtureInstance, variant: str) -> Sides:
    """The mean of (1/2) y xbar over y = +-1 and over the noise and its mirror image."""
    rows = [
        y * jnp.mean(replace(i, y=jnp.full((), y), on_mu=s * i.on_mu, on_nu=s * i.on_nu).X, axis=0)
        for y in (1.0, -1.0)
        for s in (1.0, -1.0)
    ]
    share = i.zeta / (2 if variant == "printed" else 4)
    return Sides(sum(rows) / 8, share * i.u_star)


def _centre_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    total = [num.number(0) for _ in range(len(data["p"]))]
    for y in (1, -1):
        for s in (1, -1):
            mirrored = {k: [[s * e for e in row] for row in data[k]] for k in ("on_mu", "on_nu")}
            m = NaiveMixture(num, {**data, **mirrored, "y": num.number(y)})
            sums = [num.total([x[k] for x in m.X]) for k in range(m.d)]
            total = [a + y * b / (8 * m.T) for a, b in zip(total, sums, strict=True)]
    share = m.zeta / (2 if variant == "printed" else 4)
    return total, [share * u for u in m.u_star]


identity(
    "lemma-16-centre",
    "Where the first phase concentrates",
    "Lemmas 2, 16, 17, Eqs. (6), (102), (120)",
    "The mean of (1/2) y xbar over fair labels and symmetric noise is (zeta/4) u_*.",
    r"\mathbb E\,\tfrac12y\bar x=\tfrac\zeta4(\mu_+-\mu_-)",
    sides=_centre,
    naive=_centre_naive,
    families=MIXTURES,
    forms={
        "printed": false("(zeta/2) u_*: E[y mu_y] is u_*/2", "E1"),
        "corrected": ("(zeta/4) u_*", "E1"),
    },
    errata=("E27", "E29"),
    where="Sec. 5.1, App. D.3",
)


def _first_phase(i: ModelInstance, variant: str) -> Sides:
    """-sqrt(H) times each head's gradient at zero, against the closed form."""
    zeros = jnp.zeros_like(i.rows)
    row = 0.5 * jnp.mean(i.y[:, None] * jnp.mean(i.X, axis=1), axis=0)
    factor = {"full": 1.0, "pooling": float(i.T), "last": 1.0}[i.readout]
    U = jnp.broadcast_to(factor * row, (len(i.k), i.U.shape[-2], i.d))
    closed = jnp.concatenate([U.reshape(len(i.k), -1), zeros[:, U[0].size :]], axis=1)
    return Sides(-jnp.sqrt(i.H) * loss_gradient(i, zeros), closed)


def _first_phase_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    zeros = [[num.number(0) for _ in row] for row in naive.parameters(data)]
    T, d = naive.shape(data)
    root, n = num.sqrt(naive.total(num, data)), len(data["y"])
    gradient = naive.loss_gradient(num, data, naive.samples(num, data, zeros))
    lhs = [-root * e for row in gradient for e in row]
    means = [
        num.total(
            [y * num.total([x[k] for x in X]) for X, y in zip(data["X"], data["y"], strict=True)]
        )
        / (2 * n * T)
        for k in range(d)
    ]
    factor = T if data["readout"] == "pooling" else 1
    own = [factor * e for e in means] * len(data["U"][0]) + [num.number(0)] * (d * d)
    return lhs, own * len(data["k"])


identity(
    "lemma-16",
    "The first phase in closed form",
    "Lemma 16",
    "-sqrt(H) grad_h L(0) has no W part, and every row of its U part is (1/2) mean_i y_i xbar_i.",
    r"\theta_h^{(1)}=\alpha_h\bigl(\tfrac12\mathbf 1_T(\tfrac1{n_1}\textstyle"
    r"\sum_iy_i\bar x_i)^\top,0\bigr)",
    sides=_first_phase,
    naive=_first_phase_naive,
    families=MODELS,
    errata=("E27",),
    where="App. D.3",
)
