"""The two-phase start on DM1: P1, P2, P3, the margins, and the heads that Corollary 5 asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import Context, Measurement
from .runs import problem_of

if TYPE_CHECKING:
    from jaxtyping import Float

    from ....core import Array
    from ..dm1 import DM1
    from ..model import MultiHeadParams
    from ..start import GoodStart

FORMS = {
    "printed": ("v2", "printed"),
    "printed_v1": ("v1", "printed"),
    "corrected": ("v2", "corrected"),
    "sharp": ("sharp", "corrected"),
}
"""The Hessian constant, and whether g_0 has its sqrt(2)."""

DELTA = 0.05
"""P2 holds with probability 1 - delta over the signs alpha_h."""


def required_heads(start: GoodStart, K: int, T: int, d: int, form: str) -> float:
    """The H of Corollary 5 and of (98) for K = n steps, whichever is larger."""
    from ..constants import g_0, good_start_root, realizable_root, spread

    tier, which = FORMS[form]
    G = spread(start.B_Phi, start.gamma, 1 / K)
    g0 = g_0(start.B_Phi, start.gamma, 1 / K, which)
    roots = (
        good_start_root(g0, start.B_2, start.R, T, d, tier),
        realizable_root(G, start.B_2, start.B_Phi, start.R, T, d, tier),
    )
    return float(max(roots)) ** 2


def measure_required_heads(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Definition 1 on n samples, and the heads demanded for every K of `horizons`."""
    from ..start import good_start

    _, built = problem_of(config)
    x, y, start = built.x[0], built.y[0], type(built.initial)(*(v[0] for v in built.initial))
    own = good_start(built.model, start, x, y)
    K = np.asarray(config["horizons"])
    heads = {
        f"heads_{form}": [required_heads(own, int(k), built.data.T, built.data.d, form) for k in K]
        for form in FORMS
    }
    return {
        "B_2": own.B_2,
        "B_Phi": own.B_Phi,
        "gamma": own.gamma,
        "R": own.R,
        **{name: np.array(values) for name, values in heads.items()},
        "K": K,
    }


def measure_noise(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """P1-P3, every margin, and the margin that training reaches, for one law of the noise."""
    from ....kernels import direction_margins, linear_margin
    from ....training import train
    from ..start import good_start

    chosen, built = problem_of(config)
    law: DM1 = built.data
    x, y, model = built.x[0], built.y[0], built.model
    start = type(built.initial)(*(v[0] for v in built.initial))
    own = good_start(model, start, x, y)
    context.progress(1, 3)
    direction = tangent_direction(model, start, law)
    found = {
        "ntk_margin": own.gamma,
        "star_margin": float(np.min(direction_margins(model, start, direction, x, y))),
        "linear_margin": linear_margin(x, y).gamma,
        **mixture_bounds(law, start, x, y),
        "start_size": own.B_2,
        "start_output": own.B_Phi,
    }
    run = train(
        model,
        built.initial,
        built.x,
        built.y,
        rule=built.rule,
        steps=chosen.steps,
        loss=built.loss,
        seeds=chosen.seeds,
        record=("margin",),
        dtype=chosen.dtype,
    )
    return {**found, "trained_margin": run.records["normalised_margin"][0, -1]}


def tangent_direction(model: Any, start: MultiHeadParams, law: DM1) -> MultiHeadParams:
    """theta~_*: (Ubar_*, sign(alpha_h) Wbar_*) in every head, up to its length [Sec. 5.2]."""
    signs = np.sign(np.asarray(start.U)[:, 0, :] @ law.u_star)
    U, W = (part / np.linalg.norm(part) for part in (law.U_star, law.W_star))
    return type(start)(np.tile(U, (len(signs), 1, 1)), np.multiply.outer(signs, W))


def mixture_bounds(
    law: DM1, start: MultiHeadParams, x: Float[Array, "n T d"], y: Float[Array, "n"]
) -> dict[str, float]:
    """Realised noise, and what Proposition 2 and (132) say with it and the realised p."""
    from ....data import Dataset
    from ..mixture_constants import B_2, B_Phi, gamma_lin, gamma_star, p_term

    seen = law.measure(Dataset(x, y))
    Z_mu, Z_nu, Z, R = (seen[name].value for name in ("Z_mu", "Z_nu", "Z", "R"))
    row = np.asarray(start.U)[0, 0]
    P = float(np.linalg.norm(np.sign(row @ law.u_star) * row - law.zeta / 4 * law.u_star))
    cost = p_term(P, R, law.S, Z, law.T, "sharp")
    star = gamma_star(law.S, law.T, law.M, law.zeta, Z_mu, Z_nu, cost)
    return {
        "Z_mu": Z_mu,
        "Z_nu": Z_nu,
        "P": P,
        "gamma_star": float(star),
        "gamma_lin": float(gamma_lin(law.S, law.T, law.zeta, Z_mu)),
        "size_bound": max(1.0, float(B_2(law.S, P, law.T))),
        "output_bound": max(1.0, float(B_Phi(law.S, P, R, law.T, DELTA))),
    }


def _cost(config: Mapping[str, Any]) -> tuple[float, float]:
    return 4.0 + 1e-4 * config["n"] ** 1.5 + 2e-4 * config["steps"], 4e8


required = Measurement(
    name="deora2024-required-heads",
    version=1,
    function=measure_required_heads,
    outputs={
        **dict.fromkeys(("B_2", "B_Phi", "gamma", "R"), ()),
        **dict.fromkeys((f"heads_{form}" for form in FORMS), ("K",)),
        "K": ("K",),
    },
    estimate=_cost,
)

noise = Measurement(
    name="deora2024-noise",
    version=1,
    function=measure_noise,
    outputs=dict.fromkeys(
        (
            "ntk_margin", "star_margin", "linear_margin", "trained_margin", "gamma_star",
            "gamma_lin", "Z_mu", "Z_nu", "P", "start_size", "size_bound", "start_output",
            "output_bound",
        ),
        (),
    ),
    estimate=_cost,
)  # fmt: skip
