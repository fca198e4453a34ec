"""Recipes: how a configuration builds a model, and what the model's paper does by default."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..core import BadArgument, papers
from ..core._checks import check_kind
from ..core._outside import left_out_if_broken, load_object
from ..data import Dataset
from ..models import initialisations
from ._projections import Projection

Start = Callable[..., tuple[Any, Any]]
"""start(model, seed, fresh, *, ...) -> (model, initial parameters); fresh(k) gives k samples."""


def inverse_root(steps: int, n: int, loss: str) -> float:
    """eta = 1/sqrt(steps)."""
    return 1 / math.sqrt(max(steps, 1))


@dataclass(frozen=True)
class Recipe:
    """One model of a paper: how it is built and started, and how the paper trains it.

    `build(T, d, width, *, init, ...)` makes the model. `starts` holds initialisations of its own,
    beside those of `models.initialisations`: for one that has options with a default, looks at
    fresh samples (which training never sees), or changes the model. Their keyword arguments are
    the options of the model and of the initialisation. All else is what a configuration takes
    where it says nothing: `step_size(steps, n, loss)` is eta for `optimiser`.
    """

    build: Callable[..., Any]
    init: str
    loss: str
    data: str
    optimiser: str = "gd"
    step_size: Callable[[int, int, str], float] = inverse_root
    rho: tuple[float, float, float] | None = None
    projection: Callable[[float, float, float], Projection] | None = None
    starts: Mapping[str, Start] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("init", "loss", "data", "optimiser"):
            check_kind(name, getattr(self, name), str, fix="use a name of `headcount list`")
        check_kind("build", self.build, Callable, fix="use build(T, d, width, *, init)")
        check_kind("starts", self.starts, Mapping, fix='use {"name": start}')
        for start in self.starts.values():
            check_kind("starts", start, Callable, fix="use start(model, seed, fresh)")

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the model's options."""
        return tuple(name for name in keywords(self.build) if name != "init")

    def start_options(self, init: str) -> tuple[str, ...]:
        """The names of the options of an initialisation of this model."""
        return tuple(keywords(self.starts[init])) if init in self.starts else ()

    def start(
        self, model: Any, init: str, seed: int, fresh: Callable[[int], Dataset], **options: Any
    ) -> tuple[Any, Any]:
        """The model, with the group sizes of this seed where it has any, and its parameters."""
        if init in self.starts:
            return self.starts[init](model, seed, fresh, **options)
        plain = initialisations[init]
        if keywords(plain):
            problem = f"is no initialisation of {model.name}"
            raise BadArgument("init", init, problem, fix=f"use init={self.init}")
        return model, plain(model, seed)


def keywords(function: Callable[..., Any]) -> list[str]:
    """The keyword-only arguments of a function."""
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def recipe_of(model: str) -> Recipe:
    """The recipe of a model, from the manifest of its paper."""
    reference = papers.of_model(model).models[model]
    recipe = load_object(reference)
    if not isinstance(recipe, Recipe):
        problem = f"is {reference}, a {type(recipe).__name__}"
        raise BadArgument("model", model, problem, fix="name a headcount.training.Recipe")
    return recipe


def all_recipes() -> dict[str, Recipe]:
    """Every model's recipe by its name; those from outside that do not load are left out."""
    found = {}
    for key, paper in papers.items():
        for model in paper.models:
            with left_out_if_broken(f"model {model!r} of paper {key!r}", ours=key in papers.ours):
                found[model] = recipe_of(model)
    return found
