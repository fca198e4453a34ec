"""Any model linearised at a parameter point: a model again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Float

from ..core import Array, own_precision
from ._module import split_module


@dataclass(frozen=True, eq=False)
class Linearised:
    """f_lin(params, x) = f(initial, x) + <grad f(initial, x), params - initial>, for any f.

    Called like a model: it can be trained, differentiated and given to any function that takes one.
    """

    model: Any
    initial: Any

    def __post_init__(self) -> None:
        if self.initial is None:  # a module brings its own
            model, initial = split_module(self.model)
            object.__setattr__(self, "model", model)
            object.__setattr__(self, "initial", initial)

    @own_precision
    def __call__(self, params: Any, x: Any) -> Float[Array, "*out"]:
        """f_lin(params, x), one forward-mode derivative at initial."""
        # params fixes the precision: initial may still be the stored float64 arrays.
        start = jax.tree.map(
            lambda at, p: jnp.asarray(at, jnp.result_type(p)), self.initial, params
        )
        moved = optax.tree.sub(params, start)
        value, change = jax.jvp(lambda p: self.model(p, x), (start,), (moved,))
        return value + change

    @property
    def multiplicities(self) -> tuple[int, ...] | None:
        """How many equal heads each entry of the parameters stands for, if the model says."""
        return getattr(self.model, "multiplicities", None)

    def split(self, params: Any) -> tuple[Linearised, Any]:
        """One head of every group on its own, as `HeadGroups.split`."""
        model, initial = self.model.split(self.initial)
        return Linearised(model, initial), self.model.split(params)[1]

    @property
    def name(self) -> str:
        """The model's name, marked as linearised."""
        return f"{getattr(self.model, 'name', 'function')}-linearised"

    @property
    def shapes(self) -> Any:
        """The model's, a function that gives shapes in place of arrays; only if it has one."""
        return self.model.shapes
