"""A training run as plain values: what the command line, a TOML file and a figure's trial say.

A configuration builds the objects that run; its hash names the run. The problem (a model at its
initialisation, on data) is apart from how it is trained: a kernel needs the problem alone.
"""

from __future__ import annotations

import difflib
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ..core import (
    BadArgument,
    Choice,
    Loss,
    activation_named,
    check_choice,
    check_count,
    check_kind,
    losses,
    papers,
    suggestion,
)
from ..core._precision import DTYPES
from ..data import DataModel, PositionalTokens, data_models
from ._projections import Projection
from ._recipes import Recipe, inverse_root, recipe_of
from ._recorders import Recorder, recorders
from ._rules import UpdateRule, optimisers
from ._run import Run
from ._setup import KEEP
from ._tracers import Tracer
from ._train import Checkpoint, Progress, stack_seeds, train

if TYPE_CHECKING:
    import jax

_PROJECTED = ("projgd", "projsgd")


def _papers_own(meaning: str = "") -> Any:
    """A field whose default is in the model's recipe, taken when the configuration is made."""
    return Field(None, description=f"{meaning}default: the paper's own for this model")


class ProblemConfig(BaseModel):
    """One model at its initialisation, on one data model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = "arda2026"
    width: int = Field(64, description="m, H or d_m")
    model_options: dict[str, Any] = Field(default_factory=dict)
    init: str = _papers_own()
    init_options: dict[str, Any] = Field(default_factory=dict)
    data: str = _papers_own()
    data_options: dict[str, Any] = Field(default_factory=dict)
    n: int = 1000
    n_val: int = 0
    seeds: tuple[int, ...] = (0,)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """A checked configuration; a wrong field is a `BadArgument` that names it."""
        for name in values:
            check_kind("config", name, str, fix="name every value")
        try:
            return cls(**{name: value for name, value in values.items() if value is not None})
        except ValidationError as error:
            first = error.errors()[0]
            reason = first.get("ctx", {}).get("error")
            if isinstance(reason, BadArgument):
                raise reason from None
            field = str(first["loc"][0])
            if first["type"] == "extra_forbidden":
                fix = suggestion(field, list(cls.model_fields))
                raise BadArgument(field, first["input"], "is no setting", fix=fix) from None
            wanted, example = _wanted(cls.model_fields[field].annotation)
            problem = f"must be {wanted}"
            fix = f"for example {field}={example}"
            raise BadArgument(field, values[field], problem, fix=fix) from None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        for name, value in self._defaults().items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        return self

    def _defaults(self) -> dict[str, Any]:
        return {"init": self.recipe.init, "data": self.recipe.data}

    @property
    def recipe(self) -> Recipe:
        """How the model is built, and what its paper does."""
        return recipe_of(self.model)

    def choices(self) -> list[tuple[str, Choice, Any]]:
        """The readings that apply: the paper, the choice, and what was given in its place."""
        given = self.model_dump(exclude_unset=True)
        given |= self.model_options | self.init_options | self.data_options
        named = ("model", "init", "data", "loss", "optimiser")
        about = papers.choices_about(*(str(getattr(self, k)) for k in named if hasattr(self, k)))
        return [(paper, choice, given.get(choice.option)) for paper, choice in about]

    @property
    def fingerprint(self) -> str:
        """A short hash of every value: equal configurations have equal fingerprints."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


class TrainConfig(ProblemConfig):
    """A problem and how it is trained. Field names are the flags of `headcount train`."""

    optimiser: str = _papers_own()
    eta: float | None = Field(
        None, description="default: the paper's own for its optimiser, else 1/sqrt(steps)"
    )
    rho: tuple[float, float, float] | None = _papers_own("(rho_c, rho_u, rho_w), ")
    batch_size: int | None = None
    loss: str = _papers_own()
    steps: int = 400
    record: tuple[str, ...] = ()
    record_every: int | None = None
    keep: tuple[str, ...] = ()
    dtype: str = "float32"
    chunk: int | None = None

    def _defaults(self) -> dict[str, Any]:
        recipe = self.recipe
        optimiser = self.optimiser or recipe.optimiser
        rule = {"optimiser": optimiser, "rho": recipe.rho if optimiser in _PROJECTED else None}
        return {**super()._defaults(), **rule, "loss": recipe.loss}

    @property
    def step_size(self) -> float:
        """eta, or the default for this number of steps."""
        if self.eta is not None:
            return self.eta
        own = self.optimiser == self.recipe.optimiser
        return (self.recipe.step_size if own else inverse_root)(self.steps, self.n, self.loss)

    def resolved(self) -> dict[str, Any]:
        """The values with every default filled in, for records and tables."""
        filled = {"eta": self.step_size, "fingerprint": self.fingerprint}
        return {**self.model_dump(mode="json"), **filled}


def _wanted(annotation: Any) -> tuple[str, str]:
    """What a field takes, in words, and an example."""
    text = str(annotation)
    if "dict" in text:
        return "a table of options", "{d = 8}"
    if "float, float, float" in text:
        return "three numbers", "3,3,3"
    if "tuple[int" in text:
        return "whole numbers", "0,1,2"
    if "tuple[str" in text:
        return "a list of words", "loss,distance"
    if "int" in text:
        return "a whole number", "64"
    return ("a number", "0.1") if "float" in text else ("a word", "arda2026")


def check_settings(config: ProblemConfig) -> None:
    """What can be seen to be wrong before data, models and programs are made."""
    for name, least in (("width", 1), ("n", 1), ("n_val", 0)):
        check_count(name, getattr(config, name), least=least)
    if not config.seeds:
        raise BadArgument("seeds", config.seeds, "is empty", fix="for example seeds=0:5")
    if not isinstance(config, TrainConfig):
        return
    check_count("steps", config.steps)
    for name in ("record_every", "chunk"):
        if getattr(config, name) is not None:
            check_count(name, getattr(config, name))
    check_choice("dtype", config.dtype, DTYPES)
    for kept in config.keep:
        check_choice("keep", kept, KEEP)
    for recorder in config.record:
        recorders[recorder]
    losses[config.loss]
    build_rule(config)


@dataclass(frozen=True)
class BuiltProblem:
    """The objects that a problem stands for; arrays have the seeds as first axis."""

    model: Any
    data: DataModel
    initial: Any
    x: Any
    y: Any
    validation: tuple[Any, Any] | None

    @property
    def token_form(self) -> PositionalTokens | None:
        """The form of the tokens, where the data model knows one."""
        return getattr(self.data, "token_form", None)


@dataclass(frozen=True)
class Built(BuiltProblem):
    """The objects that a training run stands for."""

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
            raise BadArgument(
                "batch_size", config.batch_size, problem, fix="use optimiser=sgd or leave it out"
            )
        if config.batch_size > config.n:
            problem = f"is larger than the {config.n} samples"
            raise BadArgument(
                "batch_size", config.batch_size, problem, fix=f"use at most {config.n}"
            )
        options["batch_size"] = config.batch_size
    elif config.optimiser == "sgd":
        raise BadArgument("batch_size", None, "is needed by sgd", fix="for example batch_size=32")
    if config.optimiser in _PROJECTED:
        options["projection"] = _projection(config)
    elif config.rho is not None:
        problem = f"has no meaning for {config.optimiser}, which does not project"
        raise BadArgument("rho", config.rho, problem, fix="use optimiser=projgd or leave it out")
    return make(**options)


def _projection(config: TrainConfig) -> Projection:
    make = config.recipe.projection
    if make is None:
        problem = f"has no projection for {config.model}"
        raise BadArgument(
            "optimiser", config.optimiser, problem, fix="use optimiser=gd, momentum or adam"
        )
    if config.rho is None:
        raise BadArgument("rho", None, "is needed to project", fix="for example rho=3,3,3")
    return make(*config.rho)


def build_data(config: ProblemConfig) -> DataModel:
    """The data model of a configuration."""
    make = data_models[config.data]
    known = tuple(inspect.signature(make).parameters)
    values = dict(check_options("data_options", config.data, known, config.data_options))
    if isinstance(values.get("activation"), str):
        values["activation"] = activation_named(values["activation"])
    return make(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})


def check_options(
    field: str, owner: str, known: tuple[str, ...], given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """`given`, if `owner` has all of these options."""
    for option in given:
        if option not in known:
            near = difflib.get_close_matches(option, known, n=1)
            fix = f"did you mean {near[0]}? " if near else ""
            fix += f"its options are {', '.join(known)}" if known else "it has no options"
            raise BadArgument(field, option, f"is not known to {owner}", fix=fix)
    return given


def build_model(config: ProblemConfig, data: DataModel) -> Any:
    """The model of a configuration for samples of this data model."""
    known = config.recipe.options
    options = check_options("model_options", config.model, known, config.model_options)
    return config.recipe.build(data.T, data.d, config.width, init=config.init, **options)


def build_problem(config: ProblemConfig, data: DataModel | None = None) -> BuiltProblem:
    """Model, initial parameters and data, checked; nothing is compiled yet.

    `data` takes the place of the configuration's data model.
    """
    recipe, init = config.recipe, config.init
    owner = f"{init} of {config.model}"
    options = check_options("init_options", owner, recipe.start_options(init), config.init_options)
    data = build_data(config) if data is None else data
    built = build_model(config, data)
    # Models and starts come first: a wrong width shows before any data is made.
    pairs = [recipe.start(built, init, s, _fresh(config, data, s), **options) for s in config.seeds]
    model = pairs[0][0]
    if any(own != model for own, _ in pairs):
        problem = "gives every seed groups of another size"
        raise BadArgument("init", init, problem, fix="train one seed at a time")
    initial = stack_seeds([start for _, start in pairs])
    if not config.n_val:
        joined = stack_seeds([data.sample(config.n, seed) for seed in config.seeds])
        return BuiltProblem(model, data, initial, joined.x, joined.y, None)
    splits = [data.sample_split(config.n, config.n_val, seed) for seed in config.seeds]
    joined, held_out = (stack_seeds(part) for part in zip(*splits, strict=True))
    return BuiltProblem(model, data, initial, joined.x, joined.y, tuple(held_out))


def _fresh(config: ProblemConfig, data: DataModel, seed: int) -> Any:
    """Samples that training never sees: from the validation stream, beyond its own."""

    def sample(count: int) -> Any:
        drawn = data.sample_split(config.n, config.n_val + count, seed)[1]
        return type(drawn)(drawn.x[-count:], drawn.y[-count:])

    return sample


def build(config: TrainConfig, data: DataModel | None = None) -> Built:
    """Everything that a configuration stands for, checked; nothing is compiled yet.

    `data` takes the place of the configuration's data model.
    """
    check_settings(config)
    problem = build_problem(config, data)
    return Built(**vars(problem), rule=build_rule(config), loss=losses[config.loss])


def run_config(
    config: TrainConfig,
    *,
    built: Built | None = None,
    trace: str | Tracer | Sequence[str | Tracer] = (),
    record: Sequence[Recorder] = (),
    devices: int | Sequence[jax.Device] | None = None,
    progress: Progress | None = None,
    checkpoint: Checkpoint | None = None,
    stop: Callable[[], bool] | None = None,
) -> Run:
    """Build, unless that is done, and train; the run's settings hold the whole configuration.

    `trace` is no part of it: tracing changes nothing that a configuration describes.
    `record` are recorders beside those that the configuration names; `devices` are those over
    which the samples are split. A run that `stop` ended is the run of a configuration with fewer
    steps, and says so.
    """
    built = built or build(config)
    run = train(
        built.model,
        built.initial,
        built.x,
        built.y,
        rule=built.rule,
        steps=config.steps,
        loss=built.loss,
        seeds=config.seeds,
        validation=built.validation,
        record=(*config.record, *record),
        record_every=config.record_every,
        trace=trace,
        keep=config.keep,
        dtype=config.dtype,
        chunk=config.chunk,
        tokens=built.token_form,
        devices=devices,
        progress=progress,
        checkpoint=checkpoint,
        stop=stop,
    )
    if run.settings["steps"] < config.steps:
        ran = {"steps": run.settings["steps"], "eta": config.step_size}
        config = config.model_copy(update=ran)
    run.settings.update({f"config_{k}": v for k, v in config.resolved().items()})
    run.settings["config"] = json.dumps(config.model_dump(mode="json"))
    return run


def config_of_run(path: str | Path) -> TrainConfig:
    """The configuration that a run file was trained with, read from its attributes."""
    import xarray as xr

    try:
        with xr.open_dataset(path, engine="h5netcdf") as stored:
            values = json.loads(stored.attrs["config"])
    except (OSError, KeyError, ValueError) as error:
        fix = "give a file of headcount train, or of run.save(path, config=TrainConfig(...))"
        problem = "cannot be read" if isinstance(error, OSError) else "holds no configuration"
        if isinstance(error, FileNotFoundError):
            problem = "does not exist"
        raise BadArgument("run", str(path), f"is not a run: it {problem}", fix=fix) from None
    unknown = sorted(set(values) - set(TrainConfig.model_fields))
    if unknown:
        problem = f"was written by another version, with the fields {', '.join(unknown)}"
        raise BadArgument("run", str(path), problem, fix="train it again")
    return TrainConfig.of(values)
