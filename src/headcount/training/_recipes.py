"""Recipes: how a configuration builds a model, and what the model's paper does by default."""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core import papers
from ._projections import Projection


@dataclass(frozen=True)
class Recipe:
    """One model of a paper.

    `build(T, d, width, *, init, ...)` makes it; its keyword arguments are the model's options.
    """

    build: Callable[..., Any]
    init: str
    loss: str
    projection: Callable[[float, float, float], Projection] | None = None


def recipe_of(model: str) -> Recipe:
    """The recipe of a model, from the manifest of its paper."""
    recipe: Recipe = pkgutil.resolve_name(papers.of_model(model).models[model])
    return recipe
