"""A figure is declared once: trials, measurement, statistics, verdicts, plot."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..core import BadArgument, check_choice, check_count
from ..core._named import Call, Named
from ..core._papers import PaperRegistry
from ..core._shown import Shown
from ._address import address_of, plain
from ._context import Context
from ._findings import Finding
from ._readings import Axis

if TYPE_CHECKING:
    import xarray as xr

SCALES = ("smoke", "quick", "paper")
"""Seconds in CI; minutes on a laptop; the paper's own sizes."""

_LEAST_SEEDS = 5
"""A verdict from fewer seeds would rest on an interval that one odd seed decides."""

Config: TypeAlias = dict[str, Any]
Settings: TypeAlias = Mapping[str, Any]
Coordinate: TypeAlias = str | int | float


def _no_estimate(config: Config) -> tuple[float, float]:
    return 1.0, 1e8


def _as_it_is(trials: Sequence[Trial]) -> None:
    """Nothing has to be fetched before these trials."""


def _the_real_thing(trials: Sequence[Trial]) -> str:
    """Nothing is made up in these trials."""
    return ""


@dataclass(frozen=True)
class Measurement:
    """What one trial computes: `function(config, context)` gives named numbers and arrays.

    `function` lives at the top of an importable module, because workers find it by name.
    `outputs` names the dimensions of every result beyond the trial's own coordinates, e.g.
    `{"minimum_loss": (), "loss": ("step",)}`; an output named like its only dimension is that
    dimension's coordinate. Raise `version` whenever the same configuration would give other
    numbers: old results are then no longer found. `estimate(config)` guesses (seconds, bytes),
    and `compiling` what the first trial of a group takes longer in a process, in seconds.
    A trial that returns infinity or NaN has the outcome "nonfinite"; `may_be_nan` names the
    outputs in which NaN says that there is no such number, which is no problem. Of trials that
    diverged or failed, no single number reaches statistics and verdicts, but for those that
    `endings` names: they say how a run ended.
    `batch(configs, contexts)` computes small trials of one group together; it promises to give
    each, bit for bit, what `function` gives it alone.
    """

    name: str
    version: int
    function: Callable[[Config, Context], Mapping[str, Any]]
    outputs: Mapping[str, tuple[str, ...]]
    estimate: Callable[[Config], tuple[float, float]] = _no_estimate
    compiling: float = 2.0
    may_be_nan: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    batch: Callable[[Sequence[Config], Sequence[Context]], Sequence[Mapping[str, Any]]] | None = (
        None
    )

    def __post_init__(self) -> None:
        check_count("version", self.version)
        if not 0 <= self.compiling < math.inf:
            raise BadArgument(
                "compiling", self.compiling, "must be seconds, zero or more", fix="e.g. 2.0"
            )
        if not self.function.__qualname__.isidentifier():
            raise BadArgument(
                "function",
                self.function.__qualname__,
                "is not at the top of its module",
                fix="define it with def at module level, so that workers can import it",
            )
        for argument in ("may_be_nan", "endings"):
            for name in getattr(self, argument):
                check_choice(argument, name, tuple(self.outputs))

    @property
    def location(self) -> str:
        """Where a worker finds the function: "package.module:name"."""
        return f"{self.function.__module__}:{self.function.__qualname__}"

    @property
    def batch_location(self) -> str:
        """Where a worker finds the function that computes several trials together."""
        return "" if self.batch is None else f"{self.batch.__module__}:{self.batch.__qualname__}"


@dataclass(frozen=True)
class Trial:
    """One configuration to measure, and where its numbers go in the figure's data set.

    `coordinates` gives the place along each named dimension ("seed" among them). Trials of one
    `group` have the same array shapes: they run one after another and share compiled programs.
    """

    measurement: Measurement
    config: Config
    coordinates: Mapping[str, Coordinate]
    group: str = ""
    address: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "config", plain(self.config))
        address = address_of(self.measurement.name, self.measurement.version, self.config)
        object.__setattr__(self, "address", address)

    @property
    def label(self) -> str:
        """A short name for people, such as "m=8 seed=0"."""
        return " ".join(f"{name}={value}" for name, value in self.coordinates.items())


@dataclass(frozen=True, repr=False)
class Figure(Shown, Named):
    """A figure of a paper (or beyond it), from configuration to verdict.

    `trials(settings, seeds, options)` lists the trials of a scale. `statistics(data)` gets the
    raw data set and returns new variables, `X` with `X_low` and `X_high` where it has an
    interval: these are what is plotted and what the CSV file holds. `verdicts(data)` and
    `plot(data, axes)` get both together; `axes` is the flat list of panels. `options` maps the
    name of a choice to its closed list of values, the first being the default; `axes` are the open
    choices among the readings of the paper, which become options, too.

    Claims are judged at the scales `judged`, from at least `least_seeds` seeds (default: five, or
    the paper's own number if that is less). `needs` maps a claim to the least values of settings
    that decide it, e.g. {"the loss falls": {"steps": 4000}}; elsewhere it is not judged.

    Plans never download. `prepare(trials)` is called before the first of the trials that a run
    lacks, and may. `stand_in(trials)` says in words what they have in place of what the claims
    are about, such as made-up data where a machine has no others: no claim is judged then.

    `bands` says what the bands and bars of the plot are; the caption repeats it.
    """

    id: str
    title: str
    reference: str
    scales: Mapping[str, Settings]
    trials: Callable[[Settings, Sequence[int], Mapping[str, str]], Sequence[Trial]]
    statistics: Callable[[xr.Dataset], xr.Dataset]
    verdicts: Callable[[xr.Dataset], Sequence[Finding]]
    plot: Callable[[xr.Dataset, Sequence[Any]], None]
    axes: Mapping[str, Axis] = field(default_factory=dict)
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    layout: tuple[int, int] = (1, 1)
    notes: str = ""
    bands: str = "95 % interval"
    judged: tuple[str, ...] = SCALES[1:]
    least_seeds: int | None = None
    needs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    prepare: Callable[[Sequence[Trial]], None] = _as_it_is
    stand_in: Callable[[Sequence[Trial]], str] = _the_real_thing

    def summary(self) -> dict[str, Any]:
        """Its id, title, place in the paper, and options."""
        shown = {"id": self.id, "title": self.title, "reference": self.reference}
        return {**shown, "options": ", ".join(self.options) or "none"}

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9-]+/[a-z0-9-]+", self.id):
            raise BadArgument(
                "id", self.id, "must look like paper/figure", fix="e.g. smith2030/fig1"
            )
        if tuple(self.scales) != SCALES:
            raise BadArgument(
                "scales", tuple(self.scales), "must be the three scales", fix=f"give {SCALES}"
            )
        chosen = {name: tuple(axis.values) for name, axis in self.axes.items()}
        object.__setattr__(self, "options", {**chosen, **self.options})
        names = set(self.scales["smoke"])
        for scale, settings in self.scales.items():
            if set(settings) != names or "seeds" not in settings:
                raise BadArgument(
                    f"scales[{scale!r}]",
                    sorted(settings),
                    "must list the same numbers at every scale, seeds among them",
                    fix='e.g. {"seeds": 10, "widths": [8, 16]}',
                )
            plain(settings, f"scales[{scale!r}]")
        if self.least_seeds is None:
            least = min(_LEAST_SEEDS, self.scales["paper"]["seeds"])
            object.__setattr__(self, "least_seeds", least)
        for claim in self.needs:
            if self.shortfall(claim, "paper", self.scales["paper"]):
                problem = "needs more than the paper's own sizes"
                raise BadArgument("needs", claim, problem, fix="it could never be judged")

    def found_by(self) -> Call | None:
        """By its id if it is registered."""
        known = self.id in figures and figures[self.id] is self
        return (_figure, (self.id,)) if known else None

    def shortfall(self, claim: str, scale: str, settings: Settings) -> str:
        """Why results of these sizes do not decide a claim; empty where they do."""
        if scale not in self.judged:
            return "too small to judge"
        least = {"seeds": self.least_seeds, **self.needs.get(claim, {})}
        have = {name: np.max(settings[name]) for name in least}
        lacking = [f"{k} >= {least[k]} (here {have[k]})" for k in least if have[k] < least[k]]
        return f"not judged at this size: needs {', '.join(lacking)}" if lacking else ""

    def choose(self, options: Mapping[str, str]) -> dict[str, str]:
        """All options with their values: the given ones checked, the others at their default."""
        for name, value in options.items():
            check_choice("option", name, tuple(self.options) or ("(this figure has none)",))
            check_choice(f"option {name}", value, self.options[name])
        return {name: options.get(name, values[0]) for name, values in self.options.items()}


figures: PaperRegistry[Figure] = PaperRegistry("figure", lambda paper: paper.figures, Figure)
"""Every figure that Headcount knows, by id: those of the papers, and what a user registered."""


def _figure(name: str) -> Figure:
    return figures[name]


def register(figure: Figure) -> Figure:
    """Make a figure known to `headcount reproduce`, `show` and `status`."""
    return figures.register(figure.id, figure)
