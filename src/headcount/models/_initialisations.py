"""Initialisations by name: functions (model, seed, **options) -> float64 arrays in paper shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import BadArgument, Registry
from ..core._papers import bring_rooms

initialisations: Registry[Callable[..., Any]] = Registry("initialisation", bring_rooms)
"""Functions (model, seed, **options) -> params, by name; the rooms of papers bring theirs."""


def expect_model(model: Any, name: str, *kinds: type) -> None:
    """Raise unless the model is one that the initialisation of this name is for."""
    if not isinstance(model, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        own = getattr(model, "name", type(model).__name__)
        problem = f"is not for {own}, but for {wanted}"
        raise BadArgument("init", name, problem, fix="leave it out for the paper's own start")
