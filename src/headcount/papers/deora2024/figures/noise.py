"""Beyond deora2024: P1-P3 and the margins as the noise goes from bounded to Gaussian."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    Context,
    Figure,
    Finding,
    Measurement,
    Trial,
    draw_interval,
    monotone,
    over_seeds,
    register,
    share,
    threshold,
)
from ....lab._drawing import NOT_NEGATIVE
from .curves import DM1_DEFAULTS, reference_line
from .fig2 import GAMMA_ATTN
from .training_run import problem_of, run_config

if TYPE_CHECKING:
    import xarray as xr
    from jaxtyping import Float

    from ....core import Array
    from ..dm1 import DM1
    from ..model import MultiHeadParams

DELTA = 0.05
"""P2 holds with probability 1 - delta over the signs alpha_h."""


def measure_noise(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """P1-P3, every margin, and the margin that training reaches, for one law of the noise."""
    from ....kernels import direction_margins, linear_margin
    from ....training import train
    from ..definition_1 import good_start

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


KINDS = {"bounded": "bounded noise", "gaussian": "Gaussian noise"}
MARGINS = {
    "ntk_margin": "tangent features, best",
    "star_margin": "tangent features, theta_*",
    "gamma_star": "gamma_* of (7)",
    "linear_margin": "linear model, best",
    "gamma_lin": "gamma_lin of (132)",
}
PAPER_SIGMA = 0.1
"""The noise of App. G."""


def law_of(kind: str, sigma: float, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Noise of standard deviation sigma in every direction: uniform in a box, or Gaussian."""
    base = {name: value for name, value in DM1_DEFAULTS.items() if name != "noise_sd"}
    if kind == "gaussian":
        return {**base, "noise": "gaussian", "noise_sd": sigma}
    half = math.sqrt(3) * sigma  # a uniform variable on [-h, h] has deviation h/sqrt(3)
    S, M = base["S"], base["M"]
    return {**base, "noise": "bounded", "Z_mu": half * S, "Z_nu": half * S * M}


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[Trial]:
    """The two-phase start, then GD with eta = 1, for every law of the noise."""
    return [
        Trial(
            noise,
            run_config(
                {**settings, "n_test": 0, "record_every": settings["steps"]},
                width=settings["H"],
                seeds=[seed],
                optimiser="gd",
                eta=settings["step_constant"],
                init="two-phase",
                init_options={"n_init": settings["n_init"]},
                data="dm1",
                data_options=law_of(kind, sigma, settings),
            ),
            {"kind": kind, "sigma": sigma, "seed": seed},
            f"n={settings['n']}",
        )
        for kind in KINDS
        for sigma in settings["sigmas"]
        for seed in seeds
    ]


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Means with intervals of everything."""
    import xarray as xr

    shown = (
        *MARGINS,
        "trained_margin",
        "Z_mu",
        "Z_nu",
        "P",
        "start_size",
        "size_bound",
        "start_output",
    )
    return xr.merge([over_seeds(data[name]) for name in shown])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """What of Proposition 2 survives at the paper's own noise, and what training does."""
    S, sigma = DM1_DEFAULTS["S"], data["sigma"].values
    at = data.sel(sigma=PAPER_SIGMA)
    found = []
    for kind, title in KINDS.items():
        own, here = data.sel(kind=kind), at.sel(kind=kind)
        found += [
            threshold(
                f"{title}, sigma = {PAPER_SIGMA}: Z_mu and Z_nu stay within S^2/8 of Proposition 3",
                here[["Z_mu", "Z_nu"]].to_array().max("variable").values,
                below=S**2 / 8,
            ),
            share(
                f"{title}: P1 holds in most trials at every sigma, |theta_h| <= B_2",
                own["size_bound"] - own["start_size"],
                above=0,
            ),
            share(
                f"{title}: P2 holds in most trials at every sigma, |Phi~| <= B_Phi, delta {DELTA}",
                own["output_bound"] - own["start_output"],
                above=0,
            ),
            threshold(
                f"{title}, sigma = {PAPER_SIGMA}: gamma_* is positive, so that P3 says something",
                here["gamma_star"].values,
                above=0.0,
            ),
            share(
                f"{title}: P3 holds in most trials at every sigma, the tangent features separate",
                own["ntk_margin"],
                above=0,
            ),
            share(
                f"{title}: in most trials theta_* has at least the margin gamma_* at every sigma",
                own["star_margin"] - own["gamma_star"],
                above=0,
            ),
            monotone(
                f"{title}: the margin that training reaches falls with sigma",
                sigma,
                own["trained_margin"].transpose("seed", "sigma").values,
                "decreasing",
            ),
        ]
    return found


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Per law: margins at the start, realised noise; both laws: margin after training."""
    for row, (kind, title) in enumerate(KINDS.items()):
        own = data.sel(kind=kind)
        margins, sizes, trained = axes[3 * row : 3 * row + 3]
        for index, (name, label) in enumerate(MARGINS.items()):
            draw_interval(margins, own, f"mean_{name}", "sigma", label=label, index=index)
        margins.axhline(0, color="0.45", linewidth=0.8)
        margins.set_yscale("symlog", linthresh=1.0)
        margins.set_ylabel("margin at the start (symlog)")
        for index, (name, label) in enumerate({"Z_mu": "Z_mu", "Z_nu": "Z_nu", "P": "|p|"}.items()):
            draw_interval(
                sizes, own, f"mean_{name}", "sigma", label=label, index=index, within=NOT_NEGATIVE
            )
        allowed = DM1_DEFAULTS["S"] ** 2 / 8
        sizes.axhline(allowed, color="0.4", linestyle=":", label="S^2/8 of Prop. 3")
        sizes.set_ylabel("realised noise")
        sizes.legend(loc="upper left", bbox_to_anchor=(0.0, 0.85), frameon=False)
        draw_interval(trained, own, "mean_trained_margin", "sigma", index=0)
        reference_line(trained, GAMMA_ATTN, "gamma_attn", below=True)
        trained.set_ylim(0, 1.05 * GAMMA_ATTN)
        trained.set_ylabel("margin / |U~| after training")
        for ax in (margins, sizes, trained):
            ax.set_xlabel("noise sigma")
            ax.set_title(title)
    handles, labels = axes[0].get_legend_handles_labels()
    where = {"loc": "outside upper center", "ncols": 3, "frameon": False}
    axes[0].figure.legend(
        handles, labels, title="margins in (a) and (d)", title_fontsize=7, **where
    )


_COMMON = {"optimiser_options": {}, "H": 16, "step_constant": 1.0}

figure = register(
    Figure(
        id="deora2024/noise",
        title="P1-P3 and margins as the noise goes from bounded to Gaussian",
        reference="[deora2024, Propositions 2 and 3, Assumption 3, App. G; not in the paper]",
        scales={
            "smoke": {
                **_COMMON, "seeds": 2, "n": 30, "n_init": 100, "steps": 20, "sigmas": [0.0, 0.1],
            },
            "quick": {
                **_COMMON, "seeds": 5, "n": 100, "n_init": 100000, "steps": 300,
                "sigmas": [0.0, 0.01, 0.02, 0.05, 0.1, 0.2],
            },
            "paper": {
                **_COMMON, "seeds": 10, "n": 100, "n_init": 100000, "steps": 1500,
                "sigmas": [0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2],
            },
        },
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        layout=(2, 3),
        notes="Both laws have the standard deviation sigma along every pattern.",
    )
)  # fmt: skip
