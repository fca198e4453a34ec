"""Beyond the figures of wu2023: distance of the tangent kernel from its limit [Lemma 1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ....core import Array
from ....lab import (
    Context,
    Figure,
    Finding,
    Measurement,
    draw_interval,
    draw_power_law,
    fitted_exponent,
    log_log,
    open_choices,
    over_seeds,
    power_law,
    register,
    threshold,
    tick_at,
)
from .curves import SCALINGS, by_seed
from .hessian import HALF, INITS, draw_schemes, width_trials
from .sentences import LIMIT

if TYPE_CHECKING:
    import xarray as xr


ERRORS = ("limit_error", "shape_error", "printed_error", "attention_share")


def measure_limit(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Relative Frobenius distances of the tangent kernel from Lemma 1's, at every width.

    limit_error: as it is; shape_error: after the best common factor, which is what can be asked
    of LeCun and He, whose kernels grow with d_m; printed_error: from the kernel with the printed
    matrix product, also after the best factor; attention_share: |K_Q + K_K| / |K|.
    """
    from ....kernels import ntk
    from ....models import initialisations
    from ..data import GaussianRegression
    from ..limit import limit_wu2023
    from ..model import Encoder, output_scale, softmax_scale

    seed, widths = config["seed"], config["widths"]
    law = GaussianRegression(config["T"], config["d"], config["tokens"])
    x = law.sample(config["n"], seed).x
    pooling = config.get("pooling", "sum")
    limit = limit_wu2023(x, pooling=pooling).total
    printed = printed_limit(x, pooling)
    rows = []
    for i, d_m in enumerate(widths):
        tau0, tau1 = softmax_scale(config["scaling"], d_m), output_scale(config["init"], d_m)
        model = Encoder(config["d"], d_m, tau0, tau1, pooling)
        found = ntk(model, initialisations[config["init"]](model, seed), x, blocks="each")
        share = np.linalg.norm(found.blocks["W_Q"] + found.blocks["W_K"])
        K = np.asarray(found.total)
        rows.append(
            [
                np.linalg.norm(K - limit) / np.linalg.norm(limit),
                shape_distance(K, limit),
                shape_distance(K, printed),
                share / np.linalg.norm(K),
            ]
        )
        context.progress(i + 1, len(widths))
    columns = dict(zip(ERRORS, np.array(rows).T, strict=True))
    return {"d_m": np.asarray(widths), **columns}


def shape_distance(K: Float[Array, "n n"], target: Float[Array, "n n"]) -> float:
    """min over s of |s K - target| / |target|: the sine of the angle between the two."""
    unit, aim = K / np.linalg.norm(K), target / np.linalg.norm(target)
    return float(np.linalg.norm(np.sum(unit * aim) * unit - aim))


def printed_limit(x: Float[Array, "n T d"], pooling: str = "sum") -> Float[Array, "n n"]:
    """Lemma 1 with its second product as printed, a matrix product."""
    from ..limit import limit_wu2023

    summed = np.sum(x, axis=1)
    blocks = limit_wu2023(x, pooling=pooling).blocks
    gram = summed @ summed.T
    return np.asarray(blocks["w_O"] + (blocks["W_V"] / gram) @ gram)


limit_widths = Measurement(
    name="wu2023-limit",
    version=1,
    function=measure_limit,
    outputs={
        "d_m": ("d_m",),
        **dict.fromkeys(ERRORS, ("d_m",)),
    },
    estimate=lambda config: (
        3.0 + 2e-9 * sum(config["widths"]) * (config["n"] * config["T"]) ** 2,
        4e8 + 24.0 * max(config["widths"]) * config["n"] * config["T"],
    ),
)


def chosen(options: Mapping[str, str]) -> dict[str, Any]:
    """Law of the tokens and pooling of a reading."""
    pooling = {} if options["pooling"] == "sum" else {"pooling": options["pooling"]}
    return {"tokens": options["tokens"], **pooling}


ONE = (-1.15, -0.85)
"""A slope whose whole interval lies here counts as -1."""
AWAY = 0.1
"""A relative error above this at the largest width counts as no convergence."""


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Errors with intervals and fitted slopes."""
    import xarray as xr

    shown = [data[name] for name in ERRORS]
    return xr.merge([*map(over_seeds, shown), *(power_law(values, "d_m") for values in shown)])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """Lemma 1 where it is stated, as printed and corrected; and outside its hypotheses."""
    proved = data.sel(init="ntk", scaling="ntk")
    found = [
        fitted_exponent(
            "ntk, tau0 = 1/d_m: distance to Lemma 1's kernel (entrywise product) like d_m^(-1/2)",
            proved,
            "limit_error",
            HALF,
        ),
        fitted_exponent(
            "ntk, tau0 = 1/d_m: the share of the W_Q and W_K blocks vanishes like 1/d_m",
            proved,
            "attention_share",
            ONE,
        ),
        threshold(
            "as printed: the kernel approaches the one with a matrix product (up to a factor)",
            by_seed(proved["printed_error"], "d_m")[:, -1],
            below=AWAY,
            source=LIMIT,
        ),
    ]
    for init in INITS:
        for scaling in SCALINGS:
            if (init, scaling) == ("ntk", "ntk"):
                continue
            tau0 = "1/d_m" if scaling == "ntk" else "d_m^(-1/2)"
            last = by_seed(data["shape_error"].sel(init=init, scaling=scaling), "d_m")[:, -1]
            claim = f"{init}, tau0 = {tau0}, not claimed: no limit of this shape (error above 0.1)"
            found.append(threshold(claim, last, above=AWAY))
    return found


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Errors up to a factor for all schemes; the readings of Lemma 1 where it is stated."""
    draw_schemes(axes[:2], data, "shape_error", "kernel's distance, up to a factor")
    proved = data.sel(init="ntk", scaling="ntk")
    labels = ("entrywise", "", "as printed", "share of $W_Q, W_K$")
    for index, (name, label) in enumerate(zip(ERRORS, labels, strict=True)):
        if label:
            look: Any = {"label": f"_{label}", "index": index, "beside": (index, len(labels))}
            draw_interval(axes[2], proved, f"mean_{name}", "d_m", **look)
            draw_power_law(axes[2], proved, name, "d_m", index=index, label=label)
    axes[2].set_title("NTK, $\\tau_0 = d_m^{-1}$")
    log_log(axes[2], "width $d_m$", "relative distance")
    tick_at(axes[2], data["d_m"].values)


_SMALL = {"n": 6, "T": 3, "d": 8}
_SIZES = {"n": 20, "T": 5, "d": 20}

figure = register(
    Figure(
        id="wu2023/limit",
        title="Distance of the tangent kernel from Lemma 1's limit against the width",
        reference="[wu2023, Lemma 1]",
        scales={
            "smoke": {"seeds": 3, "widths": [32, 128, 512], **_SMALL},
            "quick": {"seeds": 5, "widths": [32, 128, 512, 2048], **_SIZES},
            "paper": {"seeds": 10, "widths": [32, 128, 512, 2048, 8192, 32768], **_SIZES},
        },
        trials=width_trials(limit_widths, chosen),
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        axes=open_choices("headcount.papers.wu2023:choices.toml", "limit"),
        layout=(3, 1),
        notes="Tokens N(0, 1/d), sum pooling, float64. LeCun and He kernels grow with d_m, and "
        "their distance is taken after the best common factor.",
    )
)
