"""The compiled programs of a run, cached: equal settings and shapes are compiled once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
from jaxtyping import Float, Int

from ..core import Array, total
from ._devices import spread
from ._loop import Loop, Problem, State
from ._paths import default_chunk
from ._recorders import Recorder, Snapshot


@dataclass(frozen=True)
class Programs:
    """Jitted functions over all seeds: start, advance, observe, evaluate, snapshot."""

    start: Callable[[Any], State]
    advance: Callable[[Problem, State, Int[Array, ""]], tuple[State, dict[str, Array]]]
    observe: Callable[[Problem, Any], dict[str, Array]]
    evaluate: Callable[[Problem, Any], Float[Array, "seeds"]]
    snapshot: Callable[[Problem, Any], dict[str, Array]]


@lru_cache(maxsize=64)
def programs(loop: Loop, recorders: tuple[Recorder, ...], room: int) -> Programs:
    """The programs of a loop; `room` is the most steps that one call of `advance` may take."""
    each_seed = partial(_each_seed, loop.by_seed)

    def advance(
        problem: Problem, state: State, count: Int[Array, ""]
    ) -> tuple[State, dict[str, Float[Array, "seeds room"]]]:
        return each_seed(lambda p, s: loop.advance(s, p, count, room), problem, state)

    def observe(problem: Problem, params: Any) -> dict[str, Float[Array, "seeds"]]:
        return each_seed(loop.observe, problem, params)

    def evaluate(problem: Problem, params: Any) -> Float[Array, "seeds"]:
        path = loop.path()

        def loss_of(p: Problem, theta: Any) -> Float[Array, ""]:
            outputs = path.outputs(theta, path.prepare(p.x, p.y))
            return loop.over_devices(total(loop.loss, outputs, p.y))

        return each_seed(loss_of, problem, params)

    def snapshot(problem: Problem, params: Any) -> dict[str, Array]:
        def values(p: Problem, theta: Any) -> dict[str, Array]:
            now = Snapshot(
                model=loop.model,
                loss=loop.loss,
                path=loop.path(),
                params=theta,
                initial=p.start,
                x=p.x,
                y=p.y,
                validation=p.validation,
                chunk=min(loop.n, loop.chunk or default_chunk(loop.T)),
            )
            merged: dict[str, Array] = {}
            for recorder in recorders:
                merged.update(recorder(now))
            return merged

        return each_seed(values, problem, params)

    return Programs(
        start=jax.jit(jax.vmap(loop.initial)),
        advance=jax.jit(spread(advance, loop.mesh, int(loop.by_seed[0]))),
        observe=jax.jit(observe),
        evaluate=jax.jit(spread(evaluate, loop.mesh, int(loop.by_seed[0]))),
        snapshot=jax.jit(snapshot),
    )


def _each_seed(
    by_seed: tuple[bool, bool], one_seed: Callable[..., Any], problem: Problem, *batched: Any
) -> Any:
    """one_seed(its problem, *its slices), seed after seed inside the program.

    Data without a seed axis is shared: it is passed as it is, never copied.
    """
    data = (problem.x, problem.y)
    held_out = problem.validation
    own_data, own_held_out = by_seed

    def call(item: tuple[Any, ...]) -> Any:
        start, key, its_data, its_held_out, *rest = item
        x, y = its_data if own_data else data
        validation = its_held_out if own_held_out else held_out
        own = Problem(start, x, y, jax.random.wrap_key_data(key), validation)
        return one_seed(own, *rest)

    sliced = (data if own_data else None, held_out if own_held_out else None)
    return jax.lax.map(call, (problem.start, problem.key, *sliced, *batched))
