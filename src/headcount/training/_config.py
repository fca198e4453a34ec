"""A training run as plain values: what the command line and a TOML file say.

A configuration builds the objects that run; its hash names the run.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .. import models as zoo
from ..core import BadArgument, Loss, activations, losses
from ..data import data_models
from ._projections import Projection
from ._recipes import recipe_of
from ._recorders import recorders
from ._rules import UpdateRule, optimisers
from ._run import Run
from ._train import Checkpoint, Progress, stack_seeds, train

_PROJECTED = ("projgd", "projsgd")


class TrainConfig(BaseModel):
    """One model on one data model. Field names are the flags of `headcount train`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = "arda2026"
    width: int = Field(64, description="m, H or d_m")
    activation: str = "tanh"
    query: str = Field("last", description='"last" or "seeded:K"')
    readout: str = "full"
    scaling: str = Field("realistic", description="tau0 of wu2023: d_m^-1/2 or d_m^-1")
    pooling: str = "mean"
    residual: bool = False
    init: str | None = Field(None, description="default: the paper's own for this model")
    gamma: float = Field(1.0, description="|w| of the IndRNN at the start")
    n_init: int = Field(100, description="fresh samples of the two-phase initialisation")

    data: str = "transport-teacher"
    n: int = 1000
    n_val: int = 0
    data_options: dict[str, Any] = Field(default_factory=dict)

    optimiser: str = "projgd"
    eta: float | None = Field(None, description="default: 1/sqrt(steps), as arda2026 asks")
    rho: tuple[float, float, float] | None = Field(
        None, description="(rho_c, rho_u, rho_w), needed to project"
    )
    batch_size: int | None = None
    loss: str | None = Field(None, description="default: the paper's own for this model")
    steps: int = 400
    seeds: tuple[int, ...] = (0,)
    record: tuple[str, ...] = ()
    record_every: int | None = None
    keep: tuple[str, ...] = ()
    dtype: str = "float32"
    chunk: int | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> TrainConfig:
        """A checked configuration; a wrong field is a `BadArgument` that names it."""
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            fix = f"known fields: {', '.join(cls.model_fields)}"
            if first["type"] != "extra_forbidden":
                fix = f"{field}: {cls.model_fields[field.split('.')[0]].annotation}"
            raise BadArgument(field, first.get("input"), first["msg"], fix=fix) from None

    @property
    def fingerprint(self) -> str:
        """A short hash of every value: equal configurations have equal fingerprints."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def resolved(self) -> dict[str, Any]:
        """The values with every default of the model filled in, for records and tables."""
        return {
            **self.model_dump(mode="json"),
            "init": self.init or recipe_of(self.model).init,
            "loss": self.loss or recipe_of(self.model).loss,
            "eta": self.step_size,
            "fingerprint": self.fingerprint,
        }

    @property
    def step_size(self) -> float:
        """eta, or 1/sqrt(steps) when none is given."""
        return self.eta if self.eta is not None else 1 / math.sqrt(max(self.steps, 1))


@dataclass(frozen=True)
class Built:
    """The objects that a configuration stands for; arrays have the seeds as first axis."""

    model: Any
    start: Any
    x: Any
    y: Any
    validation: tuple[Any, Any] | None
    rule: UpdateRule
    loss: Loss


def build_rule(config: TrainConfig) -> UpdateRule:
    """The update rule, with its projection where it has one."""
    make = optimisers[config.optimiser]
    known = inspect.signature(make).parameters
    options: dict[str, Any] = {"eta": config.step_size}
    if config.batch_size is not None:
        if "batch_size" not in known:
            problem = f"has no meaning for {config.optimiser}"
            raise BadArgument("batch_size", config.batch_size, problem, fix="use sgd or projsgd")
        options["batch_size"] = config.batch_size
    elif config.optimiser == "sgd":
        raise BadArgument("batch_size", None, "is needed by sgd", fix="for example batch_size=32")
    if config.optimiser in _PROJECTED:
        options["projection"] = _projection(config)
    elif config.rho is not None:
        problem = f"has no meaning for {config.optimiser}, which does not project"
        raise BadArgument("rho", config.rho, problem, fix="use projgd or projsgd")
    return make(**options)


def _projection(config: TrainConfig) -> Projection:
    if config.rho is None:
        raise BadArgument("rho", None, "is needed to project", fix="for example rho=3,3,3")
    make = recipe_of(config.model).projection
    if make is None:
        problem = f"has no projection for {config.model}"
        raise BadArgument("optimiser", config.optimiser, problem, fix="use gd, momentum or adam")
    return make(*config.rho)


def build_data(config: TrainConfig) -> Any:
    """The data model of a configuration."""
    make = data_models[config.data]
    known = list(inspect.signature(make).parameters)
    for option in config.data_options:
        if option not in known:
            fix = f"options of {config.data}: {', '.join(known)}"
            raise BadArgument("data_options", option, "is not known", fix=fix)
    values = dict(config.data_options)
    if isinstance(values.get("activation"), str):
        values["activation"] = activations[values["activation"]]
    return make(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


def _start(config: TrainConfig, name: str, data: Any, T: int, d: int, seed: int) -> tuple[Any, Any]:
    build = recipe_of(config.model).build
    known = set(inspect.signature(build).parameters) & set(TrainConfig.model_fields)
    options = {option: getattr(config, option) for option in known - {"width", "init"}}
    model = build(T, d, config.width, init=name, **options)
    if name == "two-phase":
        # The validation stream under its own seed: samples that training never sees.
        fresh = data.sample_split(config.n, config.n_val + config.n_init, seed)[1]
        x, y = fresh.x[-config.n_init :], fresh.y[-config.n_init :]
        if isinstance(model, zoo.HeadGroups):
            return zoo.two_phase_groups(T, d, config.width, seed, x=x, y=y, readout=config.readout)
        return model, zoo.two_phase(model, seed, x=x, y=y)
    options = {"gamma": config.gamma} if name == "paired-indrnn" else {}
    return model, zoo.initialisations[name](model, seed, **options)


def build(config: TrainConfig) -> Built:
    """Everything that a configuration stands for, checked; nothing is compiled yet."""
    paper = recipe_of(config.model)
    name = config.init or paper.init
    zoo.initialisations[name]
    loss = losses[config.loss or paper.loss]
    rule = build_rule(config)
    for recorder in config.record:
        recorders[recorder]
    data = build_data(config)
    if not config.seeds:
        raise BadArgument("seeds", config.seeds, "is empty", fix="for example 0:5")
    probe = data.sample(1, config.seeds[0]) if config.data != "transport-teacher" else None
    T, d = probe.x.shape[1:] if probe is not None else (data.T, data.d)
    _start(config, name, data, T, d, config.seeds[0])  # a wrong width shows before any data is made
    samples, held_out, starts, model = [], [], [], None
    for seed in config.seeds:
        if config.n_val:
            train_set, validation = data.sample_split(config.n, config.n_val, seed)
            held_out.append(validation)
        else:
            train_set = data.sample(config.n, seed)
        samples.append(train_set)
        own, start = _start(config, name, data, T, d, seed)
        if model is not None and own != model:
            problem = "gives every seed groups of another size"
            raise BadArgument("init", name, problem, fix="train one seed at a time")
        model = own
        starts.append(start)
    joined = stack_seeds(samples)
    validation = tuple(stack_seeds(held_out)) if held_out else None
    return Built(model, stack_seeds(starts), joined.x, joined.y, validation, rule, loss)


def run_config(
    config: TrainConfig,
    *,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
) -> Run:
    """Build and train; the run's settings hold the whole configuration."""
    built = build(config)
    run = train(
        built.model,
        built.start,
        built.x,
        built.y,
        rule=built.rule,
        steps=config.steps,
        loss=built.loss,
        seeds=config.seeds,
        validation=built.validation,
        record=config.record,
        record_every=config.record_every,
        keep=config.keep,
        dtype=config.dtype,
        chunk=config.chunk,
        progress=progress,
        checkpoint=checkpoint,
    )
    run.settings.update({f"config_{k}": v for k, v in config.resolved().items()})
    run.settings["config"] = json.dumps(config.model_dump(mode="json"))
    return run


def config_of_run(path: str | Path) -> TrainConfig:
    """The configuration that a run file was trained with, read from its attributes."""
    try:
        with xr.open_dataset(path, engine="h5netcdf") as stored:
            text = stored.attrs["config"]
    except (OSError, KeyError, ValueError) as error:
        problem = f"is not a run of headcount train: {error}"
        raise BadArgument("run", str(path), problem, fix="give a file it wrote") from None
    return TrainConfig.of(json.loads(text))
