"""Random programs around primitives that pick entries by index, and around sorting."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from jax import lax
from programs import Generator, Program, edges, seen_as
from programs_structure import of_all_kinds

MODES = (lax.GatherScatterMode.CLIP, lax.GatherScatterMode.FILL_OR_DROP)
INDEX_TYPES = ("int32", "int64", "uint8", "uint64")


def _slices(rng: np.random.Generator) -> Iterator[Program]:
    for start in (-7, 0, 2, 99):
        cut = lambda x, k=start: lax.dynamic_slice(x, (np.int64(k), np.int64(1)), (2, 1))  # noqa: E731
        yield from of_all_kinds(rng, cut, (4, 2))
    for dtype in INDEX_TYPES:
        at = lambda x, k, t=dtype: lax.dynamic_slice(x, (seen_as(t, k),), (2,))  # noqa: E731
        yield Program(at, (rng.uniform(-3, 3, 5), rng.uniform(2, 5, ())), radius=1.5)
        known = lambda x, k: lax.dynamic_slice(x, (k,), (2,))  # noqa: E731
        yield Program(known, (edges(rng, "int8", 5), edges(rng, dtype, 1)[0]))


def _updates(rng: np.random.Generator) -> Iterator[Program]:
    for start in (-7, 0, 2, 99):
        put = lambda x, y, k=start: lax.dynamic_update_slice(x, y, (np.int64(k),))  # noqa: E731
        yield from of_all_kinds(rng, put, (4,), (2,))
    for dtype in INDEX_TYPES:
        at = lambda x, y, k, t=dtype: lax.dynamic_update_slice(x, y, (seen_as(t, k),))  # noqa: E731
        arguments = (rng.uniform(-3, 3, 5), rng.uniform(-3, 3, 2), rng.uniform(2, 5, ()))
        yield Program(at, arguments, radius=1.5)
    into_known = lambda x, y: lax.dynamic_update_slice(x, seen_as("int8", y), (1,))  # noqa: E731
    yield Program(into_known, (edges(rng, "int8", 4), rng.uniform(0, 9, 2)), radius=1.0)


ALONG_ROWS = lax.GatherDimensionNumbers(
    offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,)
)
ENTRIES = lax.GatherDimensionNumbers(
    offset_dims=(), collapsed_slice_dims=(0, 1), start_index_map=(0, 1)
)


def _gather(rng: np.random.Generator) -> Iterator[Program]:
    beyond = [2**31 - 1, -1, 5]
    for numbers, sizes, width in ((ALONG_ROWS, (1, 2), 1), (ENTRIES, (1, 1), 2)):
        for mode in MODES:
            pick = functools.partial(
                lax.gather, dimension_numbers=numbers, slice_sizes=sizes, mode=mode
            )
            inside = rng.integers(0, 2, (3, width))
            yield from of_all_kinds(rng, lambda x, f=pick, k=inside: f(x, k), (3, 2))
            outside = np.array([beyond] * width).T
            filled = functools.partial(pick, fill_value=0.5)
            yield Program(filled, (rng.uniform(-3, 3, (3, 2)), outside), radius=0.3)
    clipped = functools.partial(
        *(lax.gather, np.arange(9.0).reshape(3, 3)),
        **{"dimension_numbers": ALONG_ROWS, "slice_sizes": (1, 3), "mode": MODES[0]},
    )
    for dtype in ("int8", "uint16", "int32"):
        yield Program(clipped, (edges(rng, dtype, 4)[:, None],))
    lost = functools.partial(pick, mode=MODES[1])
    yield Program(lost, (rng.uniform(-3, 3, (3, 2)), np.array([[0, 9]])))


_SCATTERS: dict[str, Any] = {
    "scatter": lax.scatter,
    "scatter-add": lax.scatter_add,
    "scatter-sub": lax.scatter_sub,
    "scatter-mul": lax.scatter_mul,
}
_COMBINE: dict[str, Any] = {
    "scatter-add": lambda x, y: x + y,
    "scatter-sub": lambda x, y: x - y,
    "scatter-mul": lambda x, y: x * y,
}


def _scatter(name: str, rng: np.random.Generator) -> Iterator[Program]:
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=(1,), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,)
    )
    function, combine = _SCATTERS[name], _COMBINE.get(name)
    for places in ([2, 0], [1, 1], [2, 7], [-1, 1]):
        if combine is None and places[0] == places[1]:
            continue
        indices = np.array(places)[:, None]
        put = lambda x, y, k=indices: function(x, k, y, numbers, mode=MODES[1])  # noqa: E731
        exact = combine and functools.partial(_scattered, combine, places)
        arguments = (rng.uniform(-3, 3, (3, 2)), rng.uniform(-3, 3, (2, 2)))
        yield Program(put, arguments, exact, radius=0.3)
        for dtype in ("int8", "uint16", "int64"):
            known = edges(rng, dtype, 6).reshape(3, 2), edges(rng, dtype, 4).reshape(2, 2)
            yield Program(put, known)
            mixed = lambda x, y, f=put, t=dtype: f(x, seen_as(t, y))  # noqa: E731
            yield Program(mixed, (known[0], rng.uniform(1, 9, (2, 2))), radius=1.0)


def _scattered(combine: Any, places: list[int], x: Any, updates: Any) -> Any:
    result = x.copy()
    for place, update in zip(places, updates, strict=True):
        if 0 <= place < len(x):
            result[place] = combine(result[place], update)
    return result


def _sort(rng: np.random.Generator) -> Iterator[Program]:
    for axis in (0, 1):
        for kind in ("float64", "int32", "uint8"):
            order = lambda x, k=axis, t=kind: lax.sort(seen_as(t, x), dimension=k)  # noqa: E731
            yield Program(order, (rng.uniform(1, 9, (3, 4)),), radius=1.0)
    for kind in ("int8", "uint64", "int64"):
        yield Program(lax.sort, (edges(rng, kind, 7),))
    keys, ties = rng.permutation(5) / 4.0, rng.integers(0, 2, 5).astype(float)
    companion = lambda *xs: tuple(lax.sort(xs, num_keys=1))  # noqa: E731
    yield Program(companion, (keys, rng.normal(size=5)), radius=0.05)
    yield Program(companion, (ties, rng.normal(size=5)), radius=0.0)
    yield Program(companion, (keys, edges(rng, "int32", 5)), radius=0.05)
    both = lambda *xs: tuple(lax.sort(xs, num_keys=2))  # noqa: E731
    yield Program(both, (ties, keys, edges(rng, "uint8", 5)), radius=0.0)


GENERATORS: dict[str, Generator] = {
    **{name: functools.partial(_scatter, name) for name in _SCATTERS},
    "dynamic_slice": _slices,
    "dynamic_update_slice": _updates,
    "gather": _gather,
    "sort": _sort,
}
