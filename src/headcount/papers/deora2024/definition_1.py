"""Definition 1 of deora2024 measured: B_2, B_Phi and the tangent margin of any start and data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from ...core import LOGISTIC, Array, BadArgument, check_samples, float64, total
from ...data import Dataset
from ...kernels import linear_margin, ntk_margin
from ...models import outputs
from . import constants, mixture_constants
from .dm1 import DM1
from .model import HeadGroups, MultiHeadAttention, MultiHeadParams

Heads = HeadGroups | MultiHeadAttention


@dataclass(frozen=True)
class GoodStart:
    """P1-P3 at one start: the largest head, the largest output, the largest tangent margin.

    B_2 and B_Phi are at least 1, as Definition 1 asks. `status` says whether the tangent features
    separate the data; `direction` is theta_*, of norm sqrt(2) over all heads.
    """

    B_2: float
    B_Phi: float
    gamma: float
    status: str
    R: float
    loss: float
    direction: MultiHeadParams | None = field(repr=False, default=None)

    def check_separable(self) -> None:
        """Raise unless P3 holds."""
        if not self.gamma > 0:
            problem = f"{self.status} by the tangent features of this start [deora2024, P3]"
            raise BadArgument("data", "given", problem, fix="try init=two-phase or other data")

    def g_0(self, eps: float, form: str = "corrected") -> float:
        """The realizability distance [deora2024, Prop. 7]."""
        return float(constants.g_0(self.B_Phi, self.gamma, eps, form))

    def g(self, eps: float, form: str = "corrected") -> float:
        """The realizability width: B_2 + g_0."""
        return self.B_2 + self.g_0(eps, form)


def check_model(model: Any) -> None:
    """Raise unless the model is one of the two that the theorems speak about."""
    if not isinstance(model, (HeadGroups, MultiHeadAttention)):
        name = getattr(model, "name", model)
        problem = "is not the model of deora2024's theorems"
        raise BadArgument("model", name, problem, fix="use deora2024 or deora2024-groups")


def good_start(
    model: Heads, params: MultiHeadParams, x: Float[Array, "n T d"], y: Float[Array, "n"]
) -> GoodStart:
    """B_2, B_Phi and gamma of a start on data with labels +-1 [deora2024, Definition 1]."""
    check_samples(x, y)
    check_labels(y)
    X = np.asarray(x, np.float64)
    sizes = [np.sum(np.reshape(leaf, (len(leaf), -1)) ** 2, axis=1) for leaf in params]
    margin = ntk_margin(model, params, X, y)
    with float64():
        f = np.asarray(outputs(model, params, X))
        loss = float(total(LOGISTIC, f, y))
    found = margin.gamma > 0
    return GoodStart(
        B_2=max(1.0, float(np.sqrt(np.max(sizes[0] + sizes[1])))),
        B_Phi=max(1.0, float(np.max(np.abs(f)))),
        gamma=margin.gamma,
        status=margin.status,
        R=max(1.0, float(np.max(np.linalg.norm(X, axis=-1)))),
        loss=loss,
        direction=margin.direction(model, params, X) if found else None,
    )


def check_labels(y: Float[Array, "n"]) -> None:
    """Raise unless every label is -1 or 1."""
    if not np.all(np.abs(np.asarray(y)) == 1):
        values = sorted({float(v) for v in np.unique(y)})[:4]
        problem = "has labels other than -1 and 1 [deora2024, Assumption 1]"
        raise BadArgument("y", values, problem, fix="use the labels -1 and 1")


def mixture_margins(
    data: DM1, dataset: Dataset, *, P: float = 0.0, eps: float = 0.01
) -> dict[str, float]:
    """gamma_*, gamma_lin and gamma_attn beside the true margins of the linear model.

    Noise bounds are those that the samples realise; P is what |p| of the first phase is at most.
    """
    measured = data.measure(dataset)
    Z_mu, Z_nu, Z = (measured[name].value for name in ("Z_mu", "Z_nu", "Z"))
    S, T, M, zeta = data.S, data.T, data.M, data.zeta
    R = max(1.0, measured["R"].value)
    cost = {t: mixture_constants.p_term(P, R, S, Z, T, t) for t in ("printed", "sharp")}
    star = {t: mixture_constants.gamma_star(S, T, M, zeta, Z_mu, Z_nu, cost[t]) for t in cost}
    slope = mixture_constants.head_slope(S, P, R, T)
    heads = mixture_constants.sufficient_heads(star["printed"], slope, len(dataset.y), 0.05)
    return {
        "Z_mu": float(Z_mu),
        "Z_nu": float(Z_nu),
        "S^2/8": S**2 / 8,
        "gamma_* (7)": float(star["printed"]),
        "gamma_*, sharp in p": float(star["sharp"]),
        "H of Lemma 15, delta = 0.05": float(heads) if star["printed"] > 0 else math.inf,
        "gamma_lin (132)": float(mixture_constants.gamma_lin(S, T, zeta, Z_mu)),
        "linear SVM margin": linear_margin(dataset.x, dataset.y).gamma,
        "gamma_attn (11)": float(mixture_constants.gamma_attn(S, T, Z_mu, eps)),
        "gamma_attn limit": S * math.sqrt(T / 2),
    }
