"""What a configuration stands for: its objects, checked, and the run."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core import BadArgument, Loss, activation_named, check_choice, check_count, losses
from ..core._precision import DTYPES
from ..data import DataModel, PositionalTokens, data_models
from ._config import PROJECTED, ProblemConfig, TrainConfig
from ._projections import Projection
from ._recorders import Recorder, recorders
from ._rules import UpdateRule, optimisers
from ._run import Run
from ._setup import KEEP, check_seeds
from ._tracers import Tracer
from ._train import Checkpoint, Progress, stack_seeds, train

if TYPE_CHECKING:
    import jax


def check_settings(config: ProblemConfig) -> None:
    """What can be seen to be wrong before data, models and programs are made."""
    for name, least in (("width", 1), ("n", 1), ("n_val", 0)):
        check_count(name, getattr(config, name), least=least)
    check_seeds(config.seeds)
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
    """The objects that a problem stands for.

    Arrays have the seeds as first axis, also where there is one: it is what `train` takes together
    with `seeds`.
    """

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
    if config.optimiser in PROJECTED:
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
    """Model, initial parameters and data of every seed, checked; nothing is compiled yet.

    `data` takes the place of the configuration's data model.
    """
    init = config.init
    data = build_data(config) if data is None else data
    start = _starter(config, data)
    # Models and starts come first: a wrong width shows before any data is made.
    pairs = [start(seed, _fresh(config, data, seed)) for seed in config.seeds]
    model = pairs[0][0]
    if any(own != model for own, _ in pairs):
        problem = "gives every seed groups of another size"
        raise BadArgument("init", init, problem, fix="train one seed at a time")
    initial = stack_seeds([start for _, start in pairs])
    splits = [_samples(config, data, seed) for seed in config.seeds]
    joined, *held_out = (stack_seeds(part) for part in zip(*splits, strict=True))
    validation = tuple(held_out[0]) if held_out else None
    return BuiltProblem(model, data, initial, joined.x, joined.y, validation)


class _SamplesWanted(Exception):
    """A start has come to where it looks at samples."""


def check_problem(config: ProblemConfig) -> None:
    """Refuse what `build_problem` would, before anything that takes long.

    A start that looks at samples is made as far as that; data are drawn where that is quick.
    """

    def none_yet(count: int) -> Any:
        raise _SamplesWanted

    data = build_data(config)
    with contextlib.suppress(_SamplesWanted):
        _starter(config, data)(config.seeds[0], none_yet)
    numbers = (config.n + config.n_val) * data.T * data.d
    if numbers <= _QUICK and not hasattr(data, "operations"):
        _samples(config, data, config.seeds[0])


_QUICK = 2**22
"""So many numbers are drawn in less than a second."""


def _samples(config: ProblemConfig, data: DataModel, seed: int) -> tuple[Any, ...]:
    """The data of a seed: for training, and for validation where there are any."""
    if not config.n_val:
        return (data.sample(config.n, seed),)
    return data.sample_split(config.n, config.n_val, seed)


def _starter(config: ProblemConfig, data: DataModel) -> Callable[..., tuple[Any, Any]]:
    """What gives a model and its start for a seed and a source of fresh samples."""
    recipe, init = config.recipe, config.init
    owner = f"{init} of {config.model}"
    options = check_options("init_options", owner, recipe.start_options(init), config.init_options)
    model = build_model(config, data)
    return lambda seed, fresh: recipe.start(model, init, seed, fresh, **options)


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

    A configuration that names no seeds gives a run of seed 0 without an axis of seeds, as `train`
    does; one that names them, be it one, gives them as first axis.
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
    return run if config.names_seeds else run.without_seeds()
