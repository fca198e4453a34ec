"""Random programs around primitives that move, combine and reduce entries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import ad_checkpoint, lax
from programs import INTEGERS, Generator, Program, edges, seen_as

KINDS = ("float64", "bool", "int32", "uint8")


def of_all_kinds(
    rng: np.random.Generator, function: Callable[..., Any], *shapes: tuple[int, ...]
) -> Iterator[Program]:
    """The function on floats that vary, and on integers and truths, open ones and known ones."""
    for kind in KINDS:
        seen = lambda *xs, t=kind: function(*(seen_as(t, x) for x in xs))  # noqa: E731
        low, high = (-2, 2) if kind == "bool" else (1, 9)
        yield Program(seen, tuple(rng.uniform(low, high, s) for s in shapes), radius=1.0)
    for kind in ("bool", "int8", "uint64"):
        known = [edges(rng, kind, int(np.prod(shape))).reshape(shape) for shape in shapes]
        yield Program(function, tuple(known))


def _broadcast(rng: np.random.Generator) -> Iterator[Program]:
    for shape, into, axes in (((2,), (3, 2), (1,)), ((2, 1), (2, 2, 3), (0, 2)), ((), (2, 2), ())):
        move = functools.partial(lax.broadcast_in_dim, shape=into, broadcast_dimensions=axes)
        yield from of_all_kinds(rng, move, shape)


def _moves(name: str, rng: np.random.Generator) -> Iterator[Program]:
    for function, shape in MOVES[name]:
        yield from of_all_kinds(rng, function, shape)


MOVES: dict[str, list[tuple[Callable[..., Any], tuple[int, ...]]]] = {
    "reshape": [
        (lambda x: lax.reshape(x, (3, 4)), (2, 6)),
        (lambda x: lax.reshape(x, (6,), dimensions=(1, 0)), (2, 3)),
        (lambda x: lax.reshape(x, (1, 1)), ()),
        (lambda x: lax.reshape(x, (3, 0)), (0,)),
    ],
    "squeeze": [(lambda x: lax.squeeze(x, (0, 2)), (1, 3, 1))],
    "transpose": [
        (lambda x: lax.transpose(x, (2, 0, 1)), (2, 3, 2)),
        (lambda x: lax.transpose(x, (1, 0)), (2, 3)),
    ],
    "slice": [
        (lambda x: lax.slice(x, (1, 0), (3, 4), (1, 2)), (3, 5)),
        (lambda x: lax.slice(x, (1,), (3,)), (4,)),
    ],
    "rev": [(lambda x: lax.rev(x, (0, 2)), (2, 2, 3))],
    "split": [(lambda x: lax.split(x, (1, 3, 0, 2), axis=1), (2, 6))],
    "unstack": [
        (lambda x: jnp.unstack(x, axis=1), (2, 3)),
        (lambda x: tuple(jnp.unstack(x)), (2,)),
    ],
    "stop_gradient": [(lambda x: lax.stop_gradient(x), (3,))],
    "copy": [(jnp.copy, (3,))],
    "name": [(lambda x: ad_checkpoint.checkpoint_name(x, "here"), (3,))],
}


def _joins(rng: np.random.Generator) -> Iterator[Program]:
    join = lambda *xs: lax.concatenate(xs, 1)  # noqa: E731
    yield from of_all_kinds(rng, join, (2, 1), (2, 3), (2, 0))
    beside = lambda x, y: lax.concatenate([seen_as("int8", x), y], 0)  # noqa: E731
    yield Program(beside, (rng.uniform(1, 9, 2), edges(rng, "int8", 3)), radius=1.0)


def _stack(rng: np.random.Generator) -> Iterator[Program]:
    for axis in (0, 1):
        yield from of_all_kinds(rng, lambda x, y, k=axis: jnp.stack([x, y], k), (2, 3), (2, 3))


def _pad(rng: np.random.Generator) -> Iterator[Program]:
    for config in ((2, 1, 0), (0, 0, 2), (-1, 0, 0), (0, -1, 1), (-2, -2, 0)):
        pad = lambda x, y, c=config: lax.pad(x, y, [c, (0, 1, 0)])  # noqa: E731
        yield from of_all_kinds(rng, pad, (4, 2), ())


def _iota(rng: np.random.Generator) -> Iterator[Program]:
    for dtype in ("float64", *INTEGERS):
        for shape, axis in (((2, 3), 1), ((3, 2), 0), ((0,), 0), ((300,), 0)):
            yield Program(
                lambda t=dtype, s=shape, k=axis: lax.broadcasted_iota(np.dtype(t), s, k), ()
            )


REDUCTIONS: dict[str, tuple[str, Any]] = {
    "reduce_sum": ("sum", np.add),
    "reduce_prod": ("prod", np.multiply),
    "reduce_max": ("max", None),
    "reduce_min": ("min", None),
}
_INTO = {"reduce_sum": lax.reduce_sum, "reduce_prod": lax.reduce_prod}
_INTO |= {"reduce_max": lax.reduce_max, "reduce_min": lax.reduce_min}


def _reduce(name: str, rng: np.random.Generator) -> Iterator[Program]:
    number = REDUCTIONS[name][1]
    for axes in ((0,), (1,), (0, 2), (0, 1, 2)):
        reduce = functools.partial(_INTO[name], axes=axes)
        exact = number and functools.partial(_reduced, number, axes)
        yield Program(reduce, (rng.uniform(-2, 2, (2, 3, 2)),), exact, radius=0.2)
        for dtype in INTEGERS:
            yield Program(reduce, (edges(rng, dtype, 12).reshape(2, 3, 2),))
            open_one = lambda x, f=reduce, t=dtype: f(seen_as(t, x))  # noqa: E731
            yield Program(open_one, (rng.uniform(2, 40, (2, 1, 2)),), radius=1.0)
    if number:
        nothing = functools.partial(_INTO[name], axes=(1,))
        yield Program(nothing, (np.empty((2, 0)),))


def _reduced(number: Any, axes: tuple[int, ...], x: Any) -> Any:
    return number.reduce(x, axis=axes) if len(axes) == 1 else _reduced_one_by_one(number, axes, x)


def _reduced_one_by_one(number: Any, axes: tuple[int, ...], x: Any) -> Any:
    for axis in sorted(axes, reverse=True):
        x = number.reduce(x, axis=axis)
    return x


def _truth_reduce(name: str, rng: np.random.Generator) -> Iterator[Program]:
    reduce = lax.reduce_and if name == "reduce_and" else lax.reduce_or
    for axes in ((0,), (1,), (0, 1)):
        here = functools.partial(reduce, axes=axes)
        yield Program(here, (rng.integers(0, 2, (3, 2)).astype(bool),))
        yield Program(lambda x, f=here: f(lax.gt(x, 0.0)), (rng.normal(size=(3, 2)),), radius=0.3)
    yield Program(functools.partial(reduce, axes=(1,)), (np.empty((2, 0), dtype=bool),))


_RUNNING: dict[str, tuple[Any, Any]] = {
    "cumsum": (lax.cumsum, np.add),
    "cumprod": (lax.cumprod, np.multiply),
    "cummax": (lax.cummax, None),
    "cummin": (lax.cummin, None),
}


def _running(name: str, rng: np.random.Generator) -> Iterator[Program]:
    function, number = _RUNNING[name]
    for axis in (0, 1):
        for reverse in (False, True):
            run = functools.partial(function, axis=axis, reverse=reverse)
            exact = number and functools.partial(_accumulated, number, axis, reverse)
            yield Program(run, (rng.uniform(-2, 2, (3, 3)),), exact, radius=0.2)
            for dtype in INTEGERS:
                yield Program(run, (edges(rng, dtype, 12).reshape(4, 3),))
                open_one = lambda x, f=run, t=dtype: f(seen_as(t, x))  # noqa: E731
                yield Program(open_one, (rng.uniform(2, 60, (2, 2)),), radius=1.0)


def _accumulated(number: Any, axis: int, reverse: bool, x: Any) -> Any:
    ordered = np.flip(x, axis) if reverse else x
    found = number.accumulate(ordered, axis=axis)
    return np.flip(found, axis) if reverse else found


def _leading(name: str, rng: np.random.Generator) -> Iterator[Program]:
    function = lax.argmax if name == "argmax" else lax.argmin
    for axis, dtype in ((0, np.int32), (1, np.int64), (1, np.uint8)):
        lead = functools.partial(function, axis=axis, index_dtype=dtype)
        yield from of_all_kinds(rng, lead, (3, 4))
        yield Program(lead, (rng.integers(0, 3, (3, 4)).astype(float),), radius=0.0)


DIMENSIONS = (
    ((2, 3), (3, 2), (((1,), (0,)), ((), ())), "ij,jk->ik"),
    ((3,), (3,), (((0,), (0,)), ((), ())), "i,i->"),
    ((2,), (3,), (((), ()), ((), ())), "i,j->ij"),
    ((2, 3, 2), (3, 2, 2), (((2, 1), (1, 0)), ((), ())), "ikj,kjl->il"),
    ((2, 3, 2), (2, 2, 2), (((2,), (0,)), ((0,), (1,))), "bij,jbk->bik"),
    ((2, 1), (1, 3), (((1,), (0,)), ((), ())), "ij,jk->ik"),
    ((2, 0), (0, 3), (((1,), (0,)), ((), ())), None),
)


def _dot_general(rng: np.random.Generator) -> Iterator[Program]:
    for left, right, numbers, letters in DIMENSIONS:
        dot = functools.partial(lax.dot_general, dimension_numbers=numbers)
        exact = letters and functools.partial(np.einsum, letters)
        arguments = rng.uniform(-2, 2, left), rng.uniform(-2, 2, right)
        yield Program(dot, arguments, exact, radius=0.2)
        if numbers[1][0]:
            continue
        for dtype in INTEGERS:
            known = [edges(rng, dtype, int(np.prod(s))).reshape(s) for s in (left, right)]
            wider = np.dtype("int64" if dtype[0] == "i" else "uint64")
            for into in (None, wider):
                yield Program(functools.partial(dot, preferred_element_type=into), tuple(known))
    twice = lambda x: lax.dot_general(x, x, (((0, 1), (0, 1)), ((), ())))  # noqa: E731
    squares = lambda x: np.einsum("ij,ij->", x, x)  # noqa: E731
    yield Program(twice, (rng.uniform(-1, 1, (2, 2)),), squares, radius=1.5)
    crossed = lambda x: lax.dot_general(x, x, (((0, 1), (1, 0)), ((), ())))  # noqa: E731
    product = lambda x: np.einsum("ij,ji->", x, x)  # noqa: E731
    yield Program(crossed, (np.array([[0.1, 1.0], [-1.0, 0.1]]),), product, radius=0.5)


GENERATORS: dict[str, Generator] = {
    **{name: functools.partial(_moves, name) for name in MOVES},
    **{name: functools.partial(_reduce, name) for name in REDUCTIONS},
    **{name: functools.partial(_truth_reduce, name) for name in ("reduce_and", "reduce_or")},
    **{name: functools.partial(_running, name) for name in _RUNNING},
    **{name: functools.partial(_leading, name) for name in ("argmax", "argmin")},
    "broadcast_in_dim": _broadcast,
    "concatenate": _joins,
    "stack": _stack,
    "pad": _pad,
    "iota": _iota,
    "dot_general": _dot_general,
}
