"""The one training loop: a compiled program that advances every seed by any number of steps.

Seeds are mapped one after another inside the program, not vectorised: a seed's arithmetic is then
the same alone and in a batch, and on one thread nothing is lost. How the steps are cut into calls
does not change them either, so a resumed run equals an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from ..core import Array, Loss
from ._paths import GradientPath, gradient_path
from ._rules import UpdateRule


class State(NamedTuple):
    """All that a step needs and changes. Leaves have the seeds as their first axis outside."""

    params: Any
    optimiser: Any
    step: Int[Array, ""]
    diverged_at: Int[Array, ""]
    """The first step whose loss was not finite, or -1. The parameters stay as they were there."""
    average: Any
    """Mean of the iterates 0..step-1, or None."""
    best: Any
    """The iterate of the smallest loss so far, or None."""
    best_loss: Float[Array, ""]


class Problem(NamedTuple):
    """What one seed trains on; leaves have the seeds as their first axis outside."""

    start: Any
    x: Float[Array, "n T d"]
    y: Float[Array, "n"]
    key: Any


@dataclass(frozen=True)
class Loop:
    """A model, a loss and an update rule on data of one shape."""

    model: Any
    loss: Loss
    rule: UpdateRule
    n: int
    T: int
    chunk: int | None
    keep: tuple[str, ...]

    def path(self) -> GradientPath:
        """The gradient path over all samples."""
        return gradient_path(self.model, self.loss, n=self.n, T=self.T, chunk=self.chunk)

    def initial(self, start: Any) -> State:
        """The state of one seed before its first step."""
        leaf = jax.tree.leaves(start)[0]
        return State(
            params=start,
            optimiser=self.rule.transform.init(start),
            step=jnp.int32(0),
            diverged_at=jnp.int32(-1),
            average=start if "average" in self.keep else None,
            best=start if "best" in self.keep else None,
            best_loss=jnp.asarray(jnp.inf, leaf.dtype),
        )

    def advance(
        self, state: State, problem: Problem, count: Int[Array, ""], room: int
    ) -> tuple[State, Float[Array, "room"]]:
        """`count` <= `room` steps of one seed, and the loss before each (NaN where none was)."""
        gradient = self._gradient(problem)
        trace = jnp.full((room,), jnp.nan, state.best_loss.dtype)

        def unfinished(carry: tuple[Int[Array, ""], State, Array]) -> Bool[Array, ""]:
            done, now, _ = carry
            return (done < count) & (now.diverged_at < 0)

        def step(carry: tuple[Int[Array, ""], State, Array]) -> tuple[Array, State, Array]:
            done, now, losses = carry
            loss, grad = gradient(now.params, now.step)
            after = jax.lax.cond(
                jnp.isfinite(loss),
                lambda: self._step(now, problem.start, loss, grad),
                lambda: now._replace(diverged_at=now.step),
            )
            return done + 1, after, losses.at[done].set(loss)

        _, state, trace = jax.lax.while_loop(unfinished, step, (jnp.int32(0), state, trace))
        return state, trace

    def _gradient(self, problem: Problem) -> Callable[[Any, Array], tuple[Array, Any]]:
        if self.rule.batch_size is None:
            path = self.path()
            data = path.prepare(problem.x, problem.y)
            return lambda params, step: path.loss_and_gradient(params, data)

        batch = self.rule.batch_size
        path = gradient_path(self.model, self.loss, n=batch, T=self.T, chunk=self.chunk)

        def on_batch(params: Any, step: Array) -> tuple[Array, Any]:
            index = batch_indices(problem.key, step, batch, self.n)
            return path.loss_and_gradient(params, path.prepare(problem.x[index], problem.y[index]))

        return on_batch

    def _step(self, now: State, start: Any, loss: Array, grad: Any) -> State:
        with jax.numpy_dtype_promotion("standard"):  # optax counts its steps in int32
            updates, optimiser = self.rule.transform.update(grad, now.optimiser, now.params)
        params = self.rule.projection(optax.apply_updates(now.params, updates), start, self.model)
        share = 1 / (now.step + 1).astype(loss.dtype)
        better = loss < now.best_loss
        return now._replace(
            params=params,
            optimiser=optimiser,
            step=now.step + 1,
            average=jax.tree.map(lambda a, p: a + share * (p - a), now.average, now.params)
            if "average" in self.keep
            else None,
            best=jax.tree.map(lambda b, p: jnp.where(better, p, b), now.best, now.params)
            if "best" in self.keep
            else None,
            best_loss=jnp.where(better, loss, now.best_loss),
        )


def batch_indices(
    key: PRNGKeyArray, step: Int[Array, ""] | int, batch: int, n: int
) -> Int[Array, "batch"]:
    """The samples of step `step`: a function of the key and the step alone."""
    return jax.random.randint(jax.random.fold_in(key, step), (batch,), 0, n, dtype=jnp.int32)
