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
from jax.sharding import Mesh
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from ..core import Array, BadArgument, Loss, total
from ..core._samples import Samples, take_samples
from ..data import PositionalTokens
from ._devices import SAMPLES
from ._paths import GradientPath, gradient_path
from ._rules import UpdateRule
from ._tracers import Pass, Tracer

Noted = dict[str, Float[Array, ""]]
Traces = dict[str, Float[Array, "room"]]


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
    x: Samples
    y: Any
    key: Any
    validation: tuple[Samples, Any] | None = None


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
    tokens: PositionalTokens | None = None
    tracers: tuple[Tracer, ...] = ()
    by_seed: tuple[bool, bool] = (False, False)
    """Whether every seed has its own samples, and its own validation samples."""
    mesh: Mesh | None = None
    """The devices over which the samples are split; n counts all of them."""

    def path(self, n: int | None = None) -> GradientPath:
        """The gradient path over all samples, or for n of them."""
        return gradient_path(
            self.model,
            self.loss,
            n=self.n_here if n is None else n,
            T=self.T,
            chunk=self.chunk,
            tokens=self.tokens,
        )

    @property
    def n_here(self) -> int:
        """The samples of one device."""
        return self.n if self.mesh is None else self.n // self.mesh.size

    def over_devices(self, parts: Any) -> Any:
        """A loss or gradient over all samples, from each device's over its own."""
        if self.mesh is None:
            return parts
        share = self.loss.weight(self.n) / self.loss.weight(self.n_here)
        return jax.tree.map(lambda part: share * jax.lax.psum(part, SAMPLES), parts)

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
    ) -> tuple[State, dict[str, Float[Array, "room"]]]:
        """`count` <= `room` steps of one seed, and the traces before each (NaN where none was)."""
        gradient = self._gradient(problem)
        names = self.traced(problem, state.params)
        empty = {name: jnp.full((room,), jnp.nan, state.best_loss.dtype) for name in names}

        def unfinished(carry: tuple[Int[Array, ""], State, Traces]) -> Bool[Array, ""]:
            done, now, _ = carry
            return (done < count) & (now.diverged_at < 0)

        def step(carry: tuple[Int[Array, ""], State, Traces]) -> tuple[Array, State, Traces]:
            done, now, traces = carry
            loss, grad, noted = gradient(now.params, now.step)
            after = jax.lax.cond(
                jnp.isfinite(loss),
                lambda: self._step(now, problem.start, loss, grad),
                lambda: now._replace(diverged_at=now.step),
            )
            return done + 1, after, {k: traces[k].at[done].set(v) for k, v in noted.items()}

        _, state, traces = jax.lax.while_loop(unfinished, step, (jnp.int32(0), state, empty))
        return state, traces

    def traced(self, problem: Problem, params: Any) -> tuple[str, ...]:
        """The names of the traces."""
        return tuple(jax.eval_shape(self.observe, problem, params)) if self.tracers else ("loss",)

    def observe(self, problem: Problem, params: Any) -> dict[str, Float[Array, ""]]:
        """What the traces hold, at any parameters."""
        return self._gradient(problem)(params, jnp.int32(0))[2]

    def _gradient(self, problem: Problem) -> Callable[[Any, Array], tuple[Array, Any, Noted]]:
        """(params, step) -> loss, gradient, and what the traces note there."""
        if self.tracers:
            return self._traced(problem)
        path = self.path(self.rule.batch_size)
        if self.rule.batch_size is None:
            whole = path.prepare(problem.x, problem.y)

        def plain(params: Any, step: Array) -> tuple[Array, Any, Noted]:
            if self.rule.batch_size is None:
                loss, grad = self.over_devices(path.loss_and_gradient(params, whole))
            else:
                index = batch_indices(problem.key, step, self.rule.batch_size, self.n)
                data = path.prepare(take_samples(problem.x, index), problem.y[index])
                loss, grad = path.loss_and_gradient(params, data)
            return loss, grad, {"loss": loss}

        return plain

    def _traced(self, problem: Problem) -> Callable[[Any, Array], tuple[Array, Any, Noted]]:
        path = self.path()
        data = path.prepare(problem.x, problem.y)
        if problem.validation is not None:
            held_out, y = path.prepare(*problem.validation), problem.validation[1]

        def traced(params: Any, step: Array) -> tuple[Array, Any, Noted]:
            share = path.with_jacobian or (lambda *at: (*path.loss_and_gradient(*at), None))
            loss, grad, jacobian = share(params, data)
            now = Pass(grad, jacobian, lambda: total(self.loss, path.outputs(params, held_out), y))
            noted = {"loss": loss}
            for tracer in self.tracers:
                noted.update(tracer(now))
            return loss, grad, noted

        return traced

    def _step(self, now: State, start: Any, loss: Array, grad: Any) -> State:
        update = self.rule.transform.update
        try:
            with jax.numpy_dtype_promotion("standard"):  # optax counts its steps in int32
                updates, optimiser = update(grad, now.optimiser, now.params)
        except TypeError as error:  # a line search has further arguments
            if "required keyword-only" not in str(error):
                raise
            fix = "use a step size or a schedule in place of a line search"
            problem = "asks for more than the gradient"
            raise BadArgument("rule", self.rule.name, problem, fix=fix) from error
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
