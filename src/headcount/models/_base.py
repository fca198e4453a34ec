"""What a model is: a frozen, hashable description that is called as f(params, x) on one sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Float

from ..core import Array, BadArgument, Registry, own_precision
from ..core._papers import bring_rooms


@runtime_checkable
class Model(Protocol):
    """A scalar function of parameters and one sample x: (T, d)."""

    name: ClassVar[str]

    def __call__(self, params: Any, x: Float[Array, "T d"]) -> Float[Array, ""]:
        """f(params, x)."""
        ...

    def shapes(self) -> Any:
        """The parameter pytree with shapes in place of arrays, in the paper's own layout."""
        ...


models: Registry[Callable[..., Model]] = Registry("model", bring_rooms)
"""The models by the name that the command line uses."""


@own_precision
def over_heads(model: Any, tree: Any, *, power: int = 1, axis: int = 0) -> Any:
    """`tree` times k^(power/2) along its axis of groups, k = `model.multiplicities`, if it has any.

    One entry of the parameters may stand for k equal heads; this is what every tool knows of them.
    Power 1: norms and inner products become those over all heads. Power -2: the derivative in a
    group becomes that in each of its heads, whose norm over all heads is that of power -1.
    """
    counts = getattr(model, "multiplicities", None)
    if counts is None or set(counts) == {1}:
        return tree
    factors = [k ** (power / 2) for k in counts]

    def leaf(values: Float[Array, "..."]) -> Float[Array, "..."]:
        shape = [-1 if i == axis else 1 for i in range(values.ndim)]
        return values * np.asarray(factors, values.dtype).reshape(shape)

    return jax.tree.map(leaf, tree)


def check_parameters_of(model: Any, params: Any, argument: str = "params") -> None:
    """Parameters of the kind that a model of this package takes; those of others are theirs."""
    if hasattr(model, "shapes") and type(params) is not (kind := type(model.shapes())):
        problem = f"is not what {getattr(model, 'name', type(model).__name__)} takes"
        raise BadArgument(argument, type(params).__name__, problem, fix=f"give {kind.__name__}")


@own_precision
def outputs(model: Model, params: Any, x: Float[Array, "n T d"]) -> Float[Array, "n"]:
    """f(params, x_j) for every sample of a batch, all at once."""
    check_parameters_of(model, params)
    return jax.vmap(model, in_axes=(None, 0))(params, x)
