"""The compiled programs of a run, cached: equal settings and shapes are compiled once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
from jaxtyping import Float, Int

from ..core import Array, total
from ._loop import Loop, Problem, State
from ._paths import default_chunk
from ._recorders import Recorder, Snapshot


@dataclass(frozen=True)
class Programs:
    """Jitted functions over all seeds: start, advance, evaluate, snapshot."""

    start: Callable[[Any], State]
    advance: Callable[[Problem, State, Int[Array, ""]], tuple[State, Float[Array, "seeds room"]]]
    evaluate: Callable[[Problem, Any], Float[Array, "seeds"]]
    snapshot: Callable[[Problem, Any, Any], dict[str, Array]]


@lru_cache(maxsize=64)
def programs(loop: Loop, recorders: tuple[Recorder, ...], room: int) -> Programs:
    """The programs of a loop; `room` is the most steps that one call of `advance` may take."""

    def advance(
        problem: Problem, state: State, count: Int[Array, ""]
    ) -> tuple[State, Float[Array, "seeds room"]]:
        return _each_seed(lambda p, s: loop.advance(s, p, count, room), problem, state)

    def evaluate(problem: Problem, params: Any) -> Float[Array, "seeds"]:
        path = loop.path()

        def loss_of(p: Problem, theta: Any) -> Float[Array, ""]:
            return total(loop.loss, path.outputs(theta, path.prepare(p.x, p.y)), p.y)

        return _each_seed(loss_of, problem, params)

    def snapshot(problem: Problem, params: Any, validation: Any) -> dict[str, Array]:
        shared = validation is None or validation[1].ndim == 1

        def values(p: Problem, theta: Any, own: Any = None) -> dict[str, Array]:
            now = Snapshot(
                model=loop.model,
                loss=loop.loss,
                path=loop.path(),
                params=theta,
                initial=p.start,
                x=p.x,
                y=p.y,
                validation=validation if shared else own,
                chunk=min(loop.n, loop.chunk or default_chunk(loop.T)),
            )
            merged: dict[str, Array] = {}
            for recorder in recorders:
                merged.update(recorder(now))
            return merged

        return _each_seed(values, problem, params, *(() if shared else (validation,)))

    return Programs(
        jax.jit(jax.vmap(loop.initial)), jax.jit(advance), jax.jit(evaluate), jax.jit(snapshot)
    )


def _each_seed(one_seed: Callable[..., Any], problem: Problem, *batched: Any) -> Any:
    """one_seed(its problem, *its slices), seed after seed inside the program.

    Data without a seed axis is shared: it is passed as it is, never copied.
    """
    shared = problem.y.ndim == 1

    def call(item: tuple[Any, ...]) -> Any:
        start, key, data, *rest = item
        x, y = (problem.x, problem.y) if shared else data
        return one_seed(Problem(start, x, y, jax.random.wrap_key_data(key)), *rest)

    data = None if shared else (problem.x, problem.y)
    return jax.lax.map(call, (problem.start, problem.key, data, *batched))
