"""Where kernel tiles come from: features kept for all samples, or computed per tile."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from ..core import (
    BadArgument,
    check_choice,
    check_finite,
    check_shape,
    precision,
)
from ..core import _tree as tree
from ..core._checks import check_finite_leaves
from ..core._samples import Samples, as_samples, count_samples, sample_shapes, take_samples
from ..models._base import check_parameters_of
from ..models._called import differentiated
from ._contract import contract_parts, empty_aligned
from ._features import Factors, structured_features
from ._generic import jacobian_features, output_size, vector_product_tile
from ._traced import Part, traced_features

METHODS = ("auto", "structured", "jacobian", "vector-products")
_CHUNK_BYTES = 1 << 23
"""Features computed in one JAX call: small enough to stay in cache, large enough for GEMM."""


class Layout(NamedTuple):
    """Sizes that follow from shapes alone: outputs of f, factors of one sample, temporaries."""

    outputs: int | None
    factors: dict[Part, tuple[tuple[int, ...], ...]]
    """The shapes (o, R, p) of every factor of every part; o is 1 where outputs share it."""
    temporaries: int
    """Numbers in the intermediate arrays of one sample, estimated as four of the largest."""

    whole: tuple[str, ...] = ()
    """Paths of the matrices that have no factors."""

    @property
    def numbers(self) -> int:
        """How many numbers the features of one sample hold."""
        return sum(math.prod(shape) for shapes in self.factors.values() for shape in shapes)

    @property
    def rows(self) -> int:
        """The largest number of GEMM rows per sample, o R: what a tile of pairs is made of."""
        sizes = [shape[0] * shape[1] for shapes in self.factors.values() for shape in shapes]
        return max(sizes, default=1)

    @property
    def ways(self) -> tuple[str, ...]:
        """How each part of the kernel is made, in words."""
        ways = (_way(name, shapes) for (name, _), shapes in self.factors.items())
        told = (f"no factors, as it enters otherwise than by products: {p}" for p in self.whole)
        return tuple(dict.fromkeys([*ways, *told]))


def _way(name: str, shapes: tuple[tuple[int, ...], ...]) -> str:
    R, sizes = shapes[0][1], " and ".join(str(shape[2]) for shape in shapes)
    if len(shapes) == 1:
        return f"{name}: the gradient, {sizes} numbers"
    return f"{name}: products over {R} position{'s' if R > 1 else ''}, of {sizes} numbers"


@dataclass(frozen=True)
class Problem:
    """A checked request: which function, where, which blocks, in which precision."""

    model: Any
    params: Any
    prepared: Any
    names: tuple[str, ...]
    dtype: str
    method: str
    layout: Layout

    @property
    def width(self) -> int:
        """Rows of the kernel per sample: the number of outputs, 1 for a scalar f."""
        return self.layout.outputs or 1

    @property
    def feature_bytes(self) -> int:
        """Bytes of the features of one sample."""
        return self.layout.numbers * np.dtype(self.dtype).itemsize

    @property
    def working_bytes(self) -> int:
        """Bytes that one sample needs while its features are made: features and temporaries."""
        numbers = self.layout.numbers + self.layout.temporaries
        return numbers * np.dtype(self.dtype).itemsize


def prepare(
    model: Any, params: Any, x: Any, *, names: tuple[str, ...], dtype: str, method: str
) -> tuple[Problem, Samples]:
    """Check model, parameters and samples, and bring both to one precision."""
    with precision(dtype):
        check_choice("method", method, METHODS)
        if not callable(model) or getattr(model, "__hash__", None) is None:
            raise BadArgument(
                "model", type(model).__name__, "is not a hashable f(params, x)", fix="freeze it"
            )
        params = jax.tree.map(lambda leaf: _numbers("params", leaf, dtype), params)
        check_params(model, params)
        samples = check_inputs("x1", x, model, dtype)
        method = "structured" if method == "auto" else method
        structured = structured_features(model) is not None and method == "structured"
        if structured and not set(names) <= set(tree.blocks(params)):  # its features are by block
            method, structured = "jacobian", False
        prepared = _prepared(model, params) if structured else params
        one = sample_shapes(samples)
        sample = (jax.tree.structure(one), tuple((s.shape, s.dtype) for s in jax.tree.leaves(one)))
        layout = _layout(model, names, method, dtype, _shapes(params), _shapes(prepared), sample)
    return Problem(model, params, prepared, names, dtype, method, layout), samples


def check_inputs(argument: str, x: Any, model: Any, dtype: str) -> Any:
    """Finite samples, floats in `dtype`: (n, T, d) for the models of this package."""
    if not hasattr(model, "shapes"):
        return as_samples(argument, x, dtype)
    samples = as_samples(argument, _numbers(argument, x, dtype), dtype)
    T = getattr(model, "T", None)
    check_shape(argument, samples, (None, T, getattr(model, "d", None)))
    D = getattr(model, "D", None)
    if D is not None and samples[0].size != D:
        fix = f"give samples of {D} numbers each, or build the model for these"
        shown = f"array of shape {samples.shape}"
        raise BadArgument(argument, shown, f"needs T d = {D}", fix=fix)
    return samples


def check_params(model: Any, params: Any) -> None:
    """Every leaf finite and of the shape that the model states."""
    check_finite_leaves("params", params)
    if not hasattr(model, "shapes"):
        return
    check_parameters_of(model, params)
    for name, shape in model.shapes()._asdict().items():
        check_shape(f"params.{name}", getattr(params, name), shape)


_MARKER = 8191
"""A batch size that no other axis is likely to have: it tells batched arrays from shared ones."""


@lru_cache(maxsize=256)
def _layout(
    model: Any,
    names: tuple[str, ...],
    method: str,
    dtype: str,
    params: tuple[Any, tuple[tuple[int, ...], ...]],
    prepared: tuple[Any, tuple[tuple[int, ...], ...]],
    sample: tuple[Any, tuple[tuple[tuple[int, ...], Any], ...]],
) -> Layout:
    """Traced once per combination of shapes; nothing is computed."""
    with precision(dtype):

        def abstract(structure: Any, shapes: tuple[tuple[int, ...], ...]) -> Any:
            leaves = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
            return jax.tree.unflatten(structure, leaves)

        def samples(*lead: int) -> Any:
            leaves = [jax.ShapeDtypeStruct((*lead, *shape), kind) for shape, kind in sample[1]]
            return jax.tree.unflatten(sample[0], leaves)

        outputs = output_size(model, abstract(*params), samples())
        batch = samples(_MARKER)
        whole: list[str] = []
        with differentiated(model):
            program, shapes = jax.make_jaxpr(
                partial(_vmapped, model, names, method, told=whole), return_shape=True
            )(abstract(*prepared), batch)
    arrays = [v.aval.shape for e in program.eqns for v in e.outvars]
    largest = max((math.prod(s) // _MARKER for s in arrays if _MARKER in s), default=0)
    factors = {part: tuple(f.shape[1:] for f in block) for part, block in shapes.items()}
    return Layout(outputs, factors, 4 * largest, tuple(whole))


def _shapes(tree: Any) -> tuple[Any, tuple[tuple[int, ...], ...]]:
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(leaf.shape for leaf in leaves)


def chunk_size(working: int) -> int:
    """Samples per JAX call, when each needs `working` bytes."""
    return max(1, min(512, _CHUNK_BYTES // working))


class FeatureSource:
    """The features of one set of samples: all kept, or computed for each range that is asked."""

    def __init__(self, problem: Problem, x: Any, chunk: int, *, keep: bool) -> None:
        self.problem, self.x, self.n = problem, x, count_samples(x)
        # Chunks of equal size: the padding of the last one is computed for nothing.
        self.chunk = -(-self.n // -(-self.n // chunk))
        self._kept = self._compute(0, self.n) if keep else None

    def rows(self, start: int, stop: int) -> dict[Part, Factors]:
        """The factors (samples x outputs, R, p) of samples start..stop."""
        if self._kept is None:
            return self._compute(start, stop)
        found = {}
        for part, factors in self._kept.items():
            counts = [len(factor) // self.n for factor in factors]
            pairs = zip(factors, counts, strict=True)
            found[part] = tuple(factor[start * o : stop * o] for factor, o in pairs)
        return found

    def _compute(self, start: int, stop: int) -> dict[Part, Factors]:
        kept: dict[Part, Factors] = {}
        for low in range(start, stop, self.chunk):
            high = min(low + self.chunk, stop)
            for name, factors in self._chunk(low, high).items():
                if name not in kept:
                    shapes = [(stop - start, *factor.shape[1:]) for factor in factors]
                    pairs = zip(shapes, factors, strict=True)
                    kept[name] = tuple(empty_aligned(s, str(f.dtype)) for s, f in pairs)
                for whole, part in zip(kept[name], factors, strict=True):
                    whole[low - start : high - start] = part[: high - low]
        return {
            name: tuple(f.reshape(-1, *f.shape[2:]) for f in factors)
            for name, factors in kept.items()
        }

    def _chunk(self, low: int, high: int) -> dict[Part, Any]:
        """Features of at most one chunk; the last one is padded, so that XLA compiles once."""
        at = np.minimum(np.arange(low, low + self.chunk), high - 1)
        x = take_samples(self.x, slice(low, high) if high - low == self.chunk else at)
        p = self.problem
        with precision(p.dtype):
            features = _batch(p.model, p.names, p.method, p.prepared, x)
            return {k: tuple(np.asarray(f) for f in v) for k, v in features.items()}


def kernel_tile(
    left: FeatureSource,
    right: FeatureSource,
    rows: tuple[int, int],
    columns: tuple[int, int],
    left_features: dict[Part, Factors] | None = None,
    *,
    by_block: bool = True,
) -> dict[str, Float[np.ndarray, "r c"]]:
    """The kernel between two ranges of samples, by block, or all of them as "total".

    The diagonal tile of a symmetric kernel is made exactly symmetric.
    """
    problem = left.problem
    diagonal = left is right and rows == columns
    if problem.method == "vector-products":
        with precision(problem.dtype):
            tiles = vector_product_tile(
                problem.model,
                problem.params,
                take_samples(left.x, slice(*rows)),
                take_samples(right.x, slice(*columns)),
                problem.names,
            )
    else:
        a = left.rows(*rows) if left_features is None else left_features
        b = a if diagonal else right.rows(*columns)
        with np.errstate(over="ignore", invalid="ignore"):
            found = summed(contract_parts(a, b))
        o, dtype = problem.width, problem.dtype
        shape = ((rows[1] - rows[0]) * o, (columns[1] - columns[0]) * o)
        # A block that does not enter the function has no part at all.
        tiles = {n: found[n] if n in found else np.zeros(shape, dtype) for n in problem.names}
    if not by_block:
        tiles = summed((("total", 0), tile) for tile in tiles.values())
    for name, tile in tiles.items():
        check_held(problem, tile, f"block {name} of the kernel" if by_block else "the kernel")
    if diagonal:
        for tile in tiles.values():
            np.copyto(tile, tile.T, where=np.tri(len(tile), k=-1, dtype=bool))
    return tiles


def summed(parts: Iterable[tuple[Part, Any]]) -> dict[str, Any]:
    """The sums of the parts of every block; NumPy's are added up in place."""
    blocks: dict[str, Any] = {}
    for (name, _), tile in parts:
        if name not in blocks:
            blocks[name] = tile
        else:
            blocks[name] += tile
    return blocks


def check_held(problem: Problem, values: Float[np.ndarray, "..."], what: str) -> None:
    """Raise where finite parameters and samples give numbers that the dtype cannot hold."""
    if np.all(np.isfinite(values)):
        return
    smaller = "scale the tokens or parameters down"
    raise BadArgument(
        "dtype",
        problem.dtype,
        f"overflows in {what} of {model_name(problem.model)}",
        fix=smaller if problem.dtype == "float64" else f'use dtype="float64" or {smaller}',
    )


def tile_ranges(
    n1: int, n2: int, tile: int, *, symmetric: bool
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Row and column ranges of all tiles, row by row; only the upper ones when symmetric."""
    for i in range(0, n1, tile):
        for j in range(i if symmetric else 0, n2, tile):
            yield (i, min(i + tile, n1)), (j, min(j + tile, n2))


def tile_count(n1: int, n2: int, tile: int, *, symmetric: bool) -> int:
    """How many tiles `tile_ranges` yields."""
    down, across = -(-n1 // tile), -(-n2 // tile)
    return down * (down + 1) // 2 if symmetric else down * across


def sample_features(
    model: Any,
    names: tuple[str, ...],
    method: str,
    prepared: Any,
    x: Any,
    told: list[str] | None = None,
) -> dict[Part, Factors]:
    """Factors (o, R, p) of one sample, blocks that are not named left out."""
    if method != "structured":
        jacobian = jacobian_features(model, prepared, x, names)
        return {(name, 0): factors for name, factors in jacobian.items()}
    fast = structured_features(model)
    if fast is None:
        return traced_features(model, prepared, x, names, told)
    features = fast.features(model, prepared, x)
    return {(name, 0): tuple(factor[None] for factor in features[name]) for name in names}


def _vmapped(
    model: Any,
    names: tuple[str, ...],
    method: str,
    prepared: Any,
    x: Any,
    told: list[str] | None = None,
) -> dict[Part, Factors]:
    return jax.vmap(partial(sample_features, model, names, method, prepared, told=told))(x)


_batch = jax.jit(_vmapped, static_argnums=(0, 1, 2))


@partial(jax.jit, static_argnums=0)
def _prepared(model: Any, params: Any) -> Any:
    fast = structured_features(model)
    return params if fast is None else fast.prepare(model, params)


def _numbers(argument: str, value: Any, dtype: str) -> Float[np.ndarray, "..."]:
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" and str(array.dtype) != "bfloat16":
        raise BadArgument(argument, f"array of {array.dtype}", "is not real", fix="give floats")
    check_finite(argument, array)
    with np.errstate(over="ignore"):  # what the kernel makes of it is checked
        return array.astype(dtype)


def model_name(model: Any) -> str:
    """How messages and files call the model."""
    return str(getattr(model, "name", getattr(model, "__name__", type(model).__name__)))
