"""What the theorems of a paper say about given sizes, and a small run at them.

The parts of a setting that must be measured (margins, labels) are measured once for given data and
kept; width, steps, step size, radii and delta are then changed without measuring anything.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from html import escape
from typing import Any

from ..core import HeadcountError, papers
from ..core._rounding import round_up
from ..data import data_models
from ..theory import claims
from ..theory._promise import Promised, claims_about, known_without, promised
from ..training import Run, TrainConfig, recipe_of, run_config

WIDEST_RUN = 256
"""A run on the page is never wider: bounds speak about any width, runs must end soon."""


WIDEST_DRAWN = 4096
"""Where a theorem asks about a drawn start, wider ones are not drawn: they take seconds."""


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


def config_of(sizes: Sizes, width: int | None = None) -> TrainConfig:
    """The configuration of a run; each model gets the options that it has."""
    recipe = recipe_of(sizes.model)
    known = inspect.signature(data_models[recipe.data]).parameters
    # Data with relevant tokens have one of them here: their share must fit any T.
    offered = {"T": sizes.T, "d": sizes.d, "nu": (sizes.nu,) * 3, "zeta": 1 / sizes.T}
    values: dict[str, Any] = {
        "model": sizes.model,
        "width": sizes.width if width is None else width,
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
    setting = _setting_of(sizes)
    rows = [promised(claim, form, setting) for claim, form in claims_about(sizes.paper)]
    return sorted(rows, key=lambda row: claims[row.claim].quantity is None)  # losses first


def _setting_of(sizes: Sizes) -> Any:
    measured = replace(sizes, width=2, steps=1, eta=None, delta=0.05, rho=3.0)
    step_size = "default" if sizes.eta is None else sizes.eta
    setting = _measured_setting(measured)
    width = min(sizes.width, WIDEST_DRAWN) if hasattr(setting, "widest") else sizes.width
    setting = setting.resized(width=width, steps=sizes.steps, step_size=step_size)
    offered = {"delta": sizes.delta, "delta_prime": sizes.delta, "rho": (sizes.rho,) * 3}
    known = {field.name for field in fields(setting)}
    return replace(setting, **{name: value for name, value in offered.items() if name in known})


@functools.lru_cache(maxsize=64)
def _measured_setting(sizes: Sizes) -> Any:
    return papers[sizes.paper].part("setting").of(config_of(sizes), delta=sizes.delta)


def table(sizes: Sizes) -> str:
    """The promises as HTML; a size that the paper's data cannot have is said in words."""
    try:
        rows = promises(sizes)
    except HeadcountError as error:
        return f"<p>{escape(str(error))}</p>"
    body = "".join(
        "<tr style='border-top:1px solid #8884'>"
        f"<td>{escape(row.claim)} ({escape(row.variant)})<br>"
        f"<small>{escape(claims[row.claim].title)}</small></td>"
        f"<td style='text-align:right;padding:.2rem 1.2rem'>{_bound_text(row)}</td>"
        f"<td>{escape(_requirement(row))}</td></tr>"
        for row in rows
    )
    if sizes.width > WIDEST_DRAWN and hasattr(_setting_of(sizes), "widest"):
        body += f"<tr><td colspan='3'>evaluated at the start of width {WIDEST_DRAWN}</td></tr>"
    head = "<tr><th>claim</th><th>bound</th><th>requirement</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _requirement(row: Promised) -> str:
    """What is missing; else that nothing is, and whether the bound says something."""
    if row.failing:
        return "; ".join(check.failing for check in row.failing)
    known = f"; {known_without(row.trivial)}" if row.vacuous and row.trivial is not None else ""
    return f"every hypothesis holds{known}"


def _bound_text(row: Promised) -> str:
    return "nothing" if row.value == math.inf else round_up(row.bound)


def train(sizes: Sizes, progress: Callable[[int, int, float], None] | None = None) -> Run:
    """A run of these sizes, at most `WIDEST_RUN` wide."""
    return run_config(config_of(sizes, min(sizes.width, WIDEST_RUN)), progress=progress)
