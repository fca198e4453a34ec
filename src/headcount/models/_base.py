"""What a model is: a frozen, hashable description that is called as f(params, x) on one sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, runtime_checkable

import jax
from jaxtyping import Float

from ..core import Array, Registry


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


models: Registry[Callable[..., Model]] = Registry("model")
"""The models by the name that the command line uses."""


def outputs(model: Model, params: Any, x: Float[Array, "n T d"]) -> Float[Array, "n"]:
    """f(params, x_j) for every sample of a batch, all at once."""
    return jax.vmap(model, in_axes=(None, 0))(params, x)
