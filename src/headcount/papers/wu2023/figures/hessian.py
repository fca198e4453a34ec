"""Beyond the figures of wu2023: the norm of the Hessian against the width [Theorem 3]."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import (
    OURS,
    Context,
    Figure,
    Finding,
    Measurement,
    Trial,
    draw_interval,
    draw_power_law,
    draw_reference_slope,
    fitted_exponent,
    log_log,
    open_choices,
    over_seeds,
    power_law,
    register,
    tick_at,
)
from ..hessian import BLOCKS
from .curves import SCALINGS
from .sentences import BLOCKS as SIZES
from .sentences import HESSIAN

if TYPE_CHECKING:
    import xarray as xr


RADII = (0.0, 1.0)
"""Distance from the initialisation at which the Hessian is taken, along a random direction."""


def measure_hessian(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """||Hess f(X)|| for d = 1 at every width, at the start and at distance 1 from it, and blocks.

    X has d_s Gaussian tokens with |X|_F = sqrt(d_s), sum pooling as in the theorem.
    """
    from ....core import normal, stream
    from ....models import initialisations
    from ..hessian import scalar_hessian
    from ..model import Encoder, EncoderParams, output_scale, softmax_scale

    seed, widths = config["seed"], config["widths"]
    x = normal(stream(seed, "wu2023", "hessian", "x"), (config["T"], 1)) + config.get("shift", 0.0)
    x = x * (np.sqrt(config["T"]) / np.linalg.norm(x))
    norms, blocks = np.zeros((len(widths), len(RADII))), np.zeros((len(widths), len(BLOCKS)))
    for i, d_m in enumerate(widths):
        tau0, tau1 = softmax_scale(config["scaling"], d_m), output_scale(config["init"], d_m)
        start = initialisations[config["init"]](Encoder(1, d_m, tau0, tau1, "sum"), seed)
        drawn = [normal(stream(seed, "wu2023", "hessian", "to", b), np.shape(getattr(start, b)))
                 for b in EncoderParams._fields]  # fmt: skip
        length = np.sqrt(sum(np.sum(part**2) for part in drawn))
        for j, radius in enumerate(RADII):
            moved = [a + radius / length * b for a, b in zip(start, drawn, strict=True)]
            hessian = scalar_hessian(EncoderParams(*moved), x, tau0=tau0, tau1=tau1)
            norms[i, j] = hessian.norm(seed)
            if radius == 0:
                blocks[i] = [hessian.block_norms()[name] for name in BLOCKS]
        context.progress(i + 1, len(widths))
    return {
        "d_m": np.asarray(widths),
        "hessian_norm": norms[:, 0],
        "hessian_norm_nearby": norms[:, 1],
        "block_norm": blocks,
    }


hessian_widths = Measurement(
    name="wu2023-hessian",
    version=1,
    function=measure_hessian,
    outputs={
        "d_m": ("d_m",),
        "hessian_norm": ("d_m",),
        "hessian_norm_nearby": ("d_m",),
        "block_norm": ("d_m", "block"),
    },
    estimate=lambda config: (2.0 + 1e-4 * sum(config["widths"]), 3e8),
)


INITS = ("lecun", "he", "ntk")
NAMES = {"lecun": "LeCun", "he": "He", "ntk": "NTK"}
HALF = (-0.65, -0.35)
"""A slope whose whole interval lies here counts as -1/2."""
AT_LEAST_HALF = (-math.inf, -0.35)
"""Slopes that O(d_m^(-1/2)) allows."""
AT_LEAST_ONE = (-math.inf, -0.85)
"""Slopes that O(1/d_m) allows."""


def shifted(options: Mapping[str, str]) -> dict[str, Any]:
    """The mean of the tokens, where the reading has one."""
    return {"shift": 1.0} if options["law"] == "shifted" else {}


def width_trials(measurement: Any, chosen: Callable[[Mapping[str, str]], dict[str, Any]]) -> Any:
    """One trial per initialisation, scaling and seed, all widths in it; what a reading changes."""

    def trials(
        settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
    ) -> list[Trial]:
        sizes = {name: value for name, value in settings.items() if name != "seeds"}
        return [
            Trial(
                measurement,
                {**sizes, **chosen(options), "init": init, "scaling": scaling, "seed": seed},
                {"init": init, "scaling": scaling, "seed": seed},
                "all",
            )
            for init in INITS
            for scaling in SCALINGS
            for seed in seeds
        ]

    return trials


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Norms with intervals and fitted slopes, for all initialisations and scalings."""
    import xarray as xr

    named = data.assign_coords(block=list(BLOCKS))
    shown = [named[name] for name in ("hessian_norm", "hessian_norm_nearby", "block_norm")]
    return xr.merge([*map(over_seeds, shown), *(power_law(values, "d_m") for values in shown)])


def verdicts(data: xr.Dataset) -> list[Finding]:
    """The rate where Theorem 3 is proved; for other initialisations, which is a reading; blocks."""
    found, at = [], data.sel(scaling="ntk")
    for init in reversed(INITS):
        said = init == "ntk"
        words = "" if said else ", if the theorem is read for any initialisation"
        claim = f"{init}, tau0 = 1/d_m: ||H|| = O(d_m^(-1/2)){words}"
        source, one = HESSIAN if said else OURS, at.sel(init=init)
        found.append(fitted_exponent(claim, one, "hessian_norm", AT_LEAST_HALF, source=source))
    proved = at.sel(init="ntk")
    claim = "ntk, tau0 = 1/d_m, at distance 1 from the start: ||H|| = O(d_m^(-1/2))"
    nearby = "hessian_norm_nearby"
    found.append(fitted_exponent(claim, proved, nearby, AT_LEAST_HALF, source=HESSIAN))
    for block in ("QV", "QO", "OV"):
        one = proved.sel(block=block)
        claim = f"ntk, tau0 = 1/d_m, block {block}: O(1/d_m), as printed"
        found.append(fitted_exponent(claim, one, "block_norm", AT_LEAST_ONE, source=SIZES))
        claim = f"ntk, tau0 = 1/d_m, block {block}: O(d_m^(-1/2)), as corrected"
        found.append(fitted_exponent(claim, one, "block_norm", AT_LEAST_HALF))
    return found


def draw_schemes(axes: Sequence[Any], data: xr.Dataset, name: str, words: str) -> None:
    """One panel per scaling, one line with its power law per initialisation."""
    for ax, (scaling, title) in zip(axes, SCALINGS.items(), strict=True):
        for index, init in enumerate(INITS):
            one = data.sel(init=init, scaling=scaling)
            # The fit names the line in the legend; an underscore keeps the points out of it.
            look: Any = {"label": f"_{init}", "index": index, "beside": (index, len(INITS))}
            draw_interval(ax, one, f"mean_{name}", "d_m", **look)
            draw_power_law(ax, one, name, "d_m", index=index, label=NAMES[init])
        first = float(data[f"mean_{name}"].sel(init="ntk", scaling=scaling).values[0])
        draw_reference_slope(ax, data["d_m"].values, first, -0.5, "slope -1/2")
        ax.set_title(title)
        log_log(ax, "width $d_m$", words)
        tick_at(ax, data["d_m"].values)


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """The norm for both scalings; the blocks where the theorem is proved."""
    draw_schemes(axes[:2], data, "hessian_norm", "$||H||$ at the initialisation")
    proved = data.sel(init="ntk", scaling="ntk")
    for index, block in enumerate(("QQ", "QK", "QV", "QO", "OV")):
        one = proved.sel(block=block)
        look: Any = {"label": f"_{block}", "index": index, "beside": (index, 5)}
        draw_interval(axes[2], one, "mean_block_norm", "d_m", **look)
        draw_power_law(axes[2], one, "block_norm", "d_m", index=index, label=block)
    axes[2].set_title("blocks, NTK, $\\tau_0 = d_m^{-1}$")
    log_log(axes[2], "width $d_m$", "norm of the block")
    tick_at(axes[2], data["d_m"].values)


figure = register(
    Figure(
        id="wu2023/hessian",
        title="Norm of the Hessian against the width, all initialisations, both softmax scales",
        reference="[wu2023, Theorem 3]",
        scales={
            "smoke": {"seeds": 3, "widths": [32, 128, 512], "T": 4},
            "quick": {"seeds": 10, "widths": [128, 512, 2048, 8192], "T": 10},
            "paper": {"seeds": 20, "widths": [512, 1024, 2048, 4096, 8192, 16384], "T": 10},
        },
        trials=width_trials(hessian_widths, shifted),
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        axes=open_choices("headcount.papers.wu2023:choices.toml", "hessian"),
        layout=(3, 1),
        notes="d = 1 as in the proof; one sample of Gaussian tokens with |X|_F = sqrt(d_s), so "
        "C_x = 1; sum pooling; closed form and Lanczos in float64, away from the kinks of relu.",
    )
)
