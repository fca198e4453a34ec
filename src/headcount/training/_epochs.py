"""Mini-batch descent with momentum over shuffled epochs, for models with several outputs.

The one loop of `train` draws batches with replacement and knows scalar outputs; classification of
images is trained in epochs: a permutation of all samples each, cut into batches, the rest dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Float, Int, Num, PRNGKeyArray

from ..core import (
    Array,
    BadArgument,
    cast,
    check_count,
    check_nonnegative,
    check_positive,
    own_precision,
)

SampleLoss = Callable[[Float[Array, "outputs"], Array], Float[Array, ""]]
"""The loss of one sample from its outputs and its label."""

_EVALUATED = 512
"""Samples at a time where nothing is trained."""


@own_precision
def cross_entropy(outputs: Float[Array, "classes"], label: Int[Array, ""]) -> Float[Array, ""]:
    """-log softmax(outputs)[label]."""
    return -jax.nn.log_softmax(outputs)[label]


@own_precision
def sign_regression(outputs: Float[Array, "1"], label: Float[Array, ""]) -> Float[Array, ""]:
    """(f - y)^2 with y = +-1."""
    return (outputs[0] - label) ** 2


class EpochState(NamedTuple):
    """All that the rest of a run depends on, besides the data and the seed."""

    params: Any
    velocity: Any
    epoch: Int[Array, ""]


@dataclass(frozen=True)
class EpochTraining:
    """v <- beta v + grad, theta <- theta - eta v, on batches of shuffled epochs.

    With `falling_over` K epochs, eta of epoch k is eta (1 + cos(pi k/K))/2; 0: eta stays.
    """

    model: Any
    loss: SampleLoss
    eta: float
    beta: float
    batch_size: int
    falling_over: int = 0

    def __post_init__(self) -> None:
        check_positive("eta", self.eta)
        check_count("falling_over", self.falling_over, least=0)
        check_count("batch_size", self.batch_size)
        if check_nonnegative("beta", self.beta) >= 1:
            raise BadArgument("beta", self.beta, "must be below 1", fix="for example beta=0.9")

    def start(self, params: Any, dtype: str) -> EpochState:
        """Before the first epoch."""
        params = cast(params, dtype)
        return EpochState(params, optax.tree.zeros_like(params), jnp.int32(0))

    def advance(
        self, state: EpochState, x: Float[Array, "n ..."], labels: Array, key: PRNGKeyArray
    ) -> tuple[EpochState, Float[Array, ""]]:
        """One epoch, shuffled by `key` and the epoch's number; the mean loss of its batches."""
        n = len(x)
        if n < self.batch_size:
            raise BadArgument(
                "batch_size", self.batch_size, f"is above n = {n}", fix="use smaller batches"
            )
        return self._program(state, x, labels, key)

    def outputs(self, params: Any, x: Float[Array, "n ..."]) -> Float[Array, "n outputs"]:
        """f of every sample."""
        return self._outputs(params, x)

    def losses(
        self, outputs: Float[Array, "n outputs"], labels: Num[Array, "n"]
    ) -> Float[Array, "n"]:
        """The loss of every sample."""
        return jax.vmap(self.loss)(outputs, labels)

    @cached_property
    def _program(self) -> Callable[..., tuple[EpochState, Float[Array, ""]]]:
        batched = jax.vmap(self.model, in_axes=(None, 0))

        def batch_loss(params: Any, x: Array, labels: Array) -> Float[Array, ""]:
            return jnp.mean(self.losses(batched(params, x), labels))

        def epoch(
            state: EpochState, x: Array, labels: Array, key: PRNGKeyArray
        ) -> tuple[EpochState, Float[Array, ""]]:
            count = x.shape[0] // self.batch_size
            order = jax.random.permutation(jax.random.fold_in(key, state.epoch), x.shape[0])
            batches = order[: count * self.batch_size].reshape(count, self.batch_size)
            eta = jnp.asarray(self.eta, x.dtype)
            if self.falling_over:
                angle = jnp.pi * state.epoch.astype(x.dtype) / self.falling_over
                eta = eta * (1 + jnp.cos(angle)) / 2

            def step(carry: tuple[Any, Any], index: Array) -> tuple[tuple[Any, Any], Array]:
                params, velocity = carry
                loss, grad = jax.value_and_grad(batch_loss)(params, x[index], labels[index])
                velocity = jax.tree.map(lambda v, g: self.beta * v + g, velocity, grad)
                return (jax.tree.map(lambda p, v: p - eta * v, params, velocity), velocity), (loss)

            moved, losses = jax.lax.scan(step, (state.params, state.velocity), batches)
            return EpochState(*moved, state.epoch + 1), jnp.mean(losses)

        return jax.jit(epoch)

    @cached_property
    def _outputs(self) -> Callable[[Any, Array], Array]:
        def every(params: Any, x: Array) -> Array:
            size = min(_EVALUATED, x.shape[0])
            return jax.lax.map(lambda sample: self.model(params, sample), x, batch_size=size)

        return jax.jit(every)
