"""f(X) = m^{-1/2} sum_i c_i tanh(<u_i, mean of the tokens>)."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np

from headcount.training import Recipe


class Params(NamedTuple):
    """Output weights and directions."""

    c: Any
    U: Any


@dataclass(frozen=True)
class Averager:
    """The model on one sample."""

    d: int
    m: int
    name: ClassVar[str] = "averager"

    def shapes(self) -> Params:
        """Of the parameters."""
        return Params((self.m,), (self.m, self.d))

    def __call__(self, params: Params, x: Any) -> Any:
        """f(X)."""
        heads = jnp.tanh(params.U @ jnp.mean(x, axis=0))
        return jnp.sum(params.c * heads) / self.m**0.5


def _start(model: Averager, seed: int, fresh: Any) -> tuple[Averager, Params]:
    rng = np.random.default_rng(seed)
    return model, Params(np.zeros(model.m), rng.normal(size=(model.m, model.d)))


RECIPE = Recipe(
    lambda T, d, width, *, init: Averager(d, width),
    init="averager-start",
    loss="mean-squared",
    data="gaussian-regression",
    starts={"averager-start": _start},
)
