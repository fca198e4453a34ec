"""Sizes that one chooses, what the theorems of a paper say about them, and a small run at them.

The parts of a setting that must be measured (margins, labels) are measured once for given data and
kept; width, steps, step size, radii and delta are then changed without measuring anything.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..core import float64, losses, papers
from ..data import data_models
from ..theory import claims
from ..theory._promise import Promised, claims_about, promised
from ..training import Run, TrainConfig, build_problem, recipe_of, run_config

WIDEST_DRAWN = 4096
"""Where a theorem asks about a drawn start, wider ones are not drawn: they take seconds."""

_RUN = {"width": 4096, "steps": 1000}
"""The largest sizes of a run on the page: bounds speak about any, runs must end soon."""
_WORK, _LEAST_WIDTH = 2e10, 256
"""Width times samples, tokens, features and steps of a run; this width may always run."""


@dataclass(frozen=True)
class Sizes:
    """The sliders and switches of the page; `eta` None is the paper's own step size."""

    paper: str
    width: int = 64
    n: int = 40
    T: int = 6
    d: int = 4
    steps: int = 100
    eta: float | None = None
    delta: float = 0.05
    rho: float = 3.0
    nu: float = 3.0
    scaling: str = "realistic"
    init: str = ""

    @property
    def model(self) -> str:
        """The paper's first model."""
        return next(iter(papers[self.paper].models))

    @property
    def data(self) -> Sizes:
        """What decides the data and nothing else: numbers that are changed without measuring."""
        return replace(self, width=2, steps=1, eta=None, delta=0.05, rho=3.0)


def config_of(sizes: Sizes) -> TrainConfig:
    """The configuration of a run; each model gets the options that it has."""
    recipe = recipe_of(sizes.model)
    known = inspect.signature(data_models[recipe.data]).parameters
    # Data with relevant tokens have one of them here: their share must fit any T.
    offered = {"T": sizes.T, "d": sizes.d, "nu": (sizes.nu,) * 3, "zeta": 1 / sizes.T}
    values: dict[str, Any] = {
        "model": sizes.model,
        "width": sizes.width,
        "n": sizes.n,
        "steps": sizes.steps,
        "eta": sizes.eta,
        "dtype": "float64",
        "data_options": {name: value for name, value in offered.items() if name in known},
        "model_options": {"scaling": sizes.scaling} if "scaling" in recipe.options else {},
    }
    if sizes.init:
        values["init"] = sizes.init
    if recipe.rho is not None:
        values["rho"] = (sizes.rho,) * 3
    return TrainConfig.of({name: value for name, value in values.items() if value is not None})


def promises(sizes: Sizes) -> list[Promised]:
    """Every claim of the paper whose right side a setting decides, in each form that may hold."""
    setting = setting_of(sizes)
    rows = [promised(claim, form, setting) for claim, form in claims_about(sizes.paper)]
    return sorted(rows, key=lambda row: claims[row.claim].quantity is None)  # losses first


def setting_of(sizes: Sizes) -> Any:
    """The setting of these sizes, at the widest start that is drawn where one is."""
    setting = _measured_setting(sizes.data)
    setting = setting.resized(
        width=min(sizes.width, widest_drawn(setting)),
        steps=sizes.steps,
        step_size="default" if sizes.eta is None else sizes.eta,
    )
    offered = {"delta": sizes.delta, "delta_prime": sizes.delta, "rho": (sizes.rho,) * 3}
    known = {field.name for field in fields(setting)}
    return replace(setting, **{name: value for name, value in offered.items() if name in known})


def widest_drawn(setting: Any) -> float:
    """The largest width of which the theorems are asked: no limit where no start is drawn."""
    return min(WIDEST_DRAWN, setting.widest) if hasattr(setting, "widest") else np.inf


@functools.lru_cache(maxsize=64)
def _measured_setting(sizes: Sizes) -> Any:
    return papers[sizes.paper].part("setting").of(config_of(sizes), delta=sizes.delta)


@functools.lru_cache(maxsize=64)
def _loss_at_zero(sizes: Sizes) -> float:
    config = config_of(sizes)
    loss, y = losses[config.loss], np.asarray(build_problem(config).y)[0]
    with float64():
        return float(loss.weight(len(y)) * np.sum(loss.pointwise(np.zeros(y.shape), y)))


def loss_at_zero(sizes: Sizes) -> float:
    """The training loss of predicting zero everywhere, on the data of these sizes."""
    return _loss_at_zero(sizes.data)


def has_meaning(paper: str) -> set[str]:
    """The sliders that change the data, the run or a promise of a paper."""
    sizes = Sizes(paper)
    recipe = recipe_of(sizes.model)
    known = {*inspect.signature(data_models[recipe.data]).parameters, *recipe.options}
    found = {"width", "n", "steps", "eta", "init"} | known & {"T", "d", "nu", "scaling"}
    found |= {"rho"} if recipe.rho is not None else set()
    bounds = [[row.bound for row in promises(replace(sizes, delta=delta))] for delta in (0.05, 0.1)]
    return found | ({"delta"} if bounds[0] != bounds[1] else set())


def runnable(sizes: Sizes) -> Sizes:
    """What a run on the page has of these sizes: no wider and no longer than ends soon."""
    steps = min(sizes.steps, _RUN["steps"])
    width = _RUN["width"]
    while width > _LEAST_WIDTH and width * sizes.n * sizes.T * sizes.d * steps > _WORK:
        width //= 2
    return replace(sizes, width=min(sizes.width, width), steps=steps)


def train(sizes: Sizes, progress: Callable[[int, int, float], None] | None = None) -> Run:
    """A run of `runnable(sizes)`."""
    return run_config(config_of(runnable(sizes)), progress=progress)
