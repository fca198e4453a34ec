"""A complete small figure, without JAX: the example of docs/lab.md and the engine's guinea pig.

Each trial estimates E[sin^2(Z)] from m draws, one block of draws per step; its error falls like
m^(-1/2). Environment variables make trials slow, failing or deadly for the engine's tests.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headcount import lab

if TYPE_CHECKING:
    import xarray as xr

EXACT = (1 - np.exp(-2)) / 2


def measure(config: dict[str, Any], context: lab.Context) -> dict[str, Any]:
    """The squared error of the running mean after each step, and that at the end."""
    _misbehave(config, context)
    m, steps = config["m"], config["steps"]
    state = context.restore() or {"step": np.int64(0), "sum": 0.0, "errors": np.zeros(steps)}
    step, total, errors = int(state["step"]), float(state["sum"]), np.array(state["errors"])
    for i in range(step, steps):
        draws = np.random.default_rng([config["seed"], m, i]).normal(size=m)
        total += float(np.mean(np.sin(draws) ** 2))
        errors[i] = abs(total / (i + 1) - EXACT)
        time.sleep(float(os.environ.get("TOY_PAUSE", "0")))
        context.checkpoint({"step": i + 1, "sum": total, "errors": errors})
        context.progress(i + 1, steps, error=errors[i])
    if os.environ.get("TOY_SPOIL", "").startswith(f"{m}-{config['seed']}="):
        errors[-1] = float(os.environ["TOY_SPOIL"].partition("=")[2])
    return {"error": errors[-1], "errors": errors, "step": np.arange(1, steps + 1)}


def estimate(config: dict[str, Any]) -> tuple[float, float]:
    """Seconds and bytes of one trial."""
    return 1e-7 * config["m"] * config["steps"], 8.0 * config["m"]


toy = lab.Measurement(
    name="toy-mean",
    version=1,
    function=measure,
    outputs={"error": (), "errors": ("step",), "step": ("step",)},
    estimate=estimate,
    compiling=0.0,
)


def trials(
    settings: Mapping[str, Any], seeds: Sequence[int], options: Mapping[str, str]
) -> list[lab.Trial]:
    """One trial per width and seed."""
    return [
        lab.Trial(
            measurement=toy,
            config={"m": m, "steps": settings["steps"], "seed": seed, "rule": options["rule"]},
            coordinates={"m": m, "seed": seed},
            group=f"m={m}",
        )
        for m in settings["widths"]
        for seed in seeds
    ]


def statistics(data: xr.Dataset) -> xr.Dataset:
    """Mean error with its interval, and the fitted power law."""
    return lab.over_seeds(data["error"]).merge(lab.power_law(data["error"], "m"))


def verdicts(data: xr.Dataset) -> list[lab.Finding]:
    """The slope claim, and one that is false."""
    error = data["error"].transpose("seed", "m").values
    return [
        lab.exponent("the error falls like m^(-1/2)", data["m"].values, error, (-0.8, -0.2)),
        lab.threshold("the error at the largest width exceeds 1", error[:, -1], above=1.0),
    ]


def plot(data: xr.Dataset, axes: Sequence[Any]) -> None:
    """Error against width with its fitted slope."""
    (ax,) = axes
    lab.draw_interval(ax, data, "mean_error", "m", label="mean error")
    lab.draw_power_law(ax, data, "error", "m")
    lab.log_log(ax, "width m", "error")


figure = lab.register(
    lab.Figure(
        id="toy/mean",
        title="Error of a mean against the number of draws",
        reference="[toy, Fig. 1]",
        scales={
            "smoke": {"seeds": 4, "widths": [8, 32, 128], "steps": 5},
            "quick": {"seeds": 20, "widths": [8, 32, 128, 512], "steps": 5},
            "paper": {"seeds": 50, "widths": [8, 32, 128, 512, 2048], "steps": 20},
        },
        trials=trials,
        statistics=statistics,
        verdicts=verdicts,
        plot=plot,
        options={"rule": ("plain", "other")},
        judged=lab.SCALES,
        least_seeds=1,
    )
)


def _misbehave(config: dict[str, Any], context: lab.Context) -> None:
    """What tests ask for: log the call, fail, diverge, hang, or kill the process."""
    place = f"{config['m']}-{config['seed']}"
    if "TOY_LOG" in os.environ:
        with Path(os.environ["TOY_LOG"]).open("a") as log:
            log.write(place + "\n")
    if os.environ.get("TOY_FAIL") == place:
        raise ArithmeticError("asked to fail")
    if os.environ.get("TOY_DIVERGE") == place:
        context.diverged("asked to diverge")
    if os.environ.get("TOY_MEMORY") == place:
        np.empty(2**45)  # more than an address can name
    if os.environ.get("TOY_HANG") == place:
        time.sleep(600)
    if os.environ.get("TOY_KILL") == place:
        os.kill(os.getpid(), signal.SIGKILL)
