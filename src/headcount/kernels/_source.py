"""Where kernel tiles come from: features kept for all samples, or computed per tile."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from ..core import BadArgument, check_choice, check_finite, check_shape, precision
from ._features import Factors, contract, structured_features
from ._generic import as_trained, jacobian_features, kept_blocks, output_size, vector_product_tile

METHODS = ("auto", "structured", "jacobian", "vector-products")
_CHUNK_BYTES = 1 << 23
"""Features computed in one JAX call: small enough to stay in cache, large enough for GEMM."""


@dataclass(frozen=True)
class Problem:
    """A checked request: which function, where, which blocks, in which precision."""

    model: Any
    params: Any
    prepared: Any
    names: tuple[str, ...]
    dtype: str
    method: str
    outputs: int | None

    @property
    def width(self) -> int:
        """Rows of the kernel per sample: the number of outputs, 1 for a scalar f."""
        return self.outputs or 1


def prepare(
    model: Any, params: Any, x: Any, *, frozen: tuple[str, ...], dtype: str, method: str
) -> tuple[Problem, Float[np.ndarray, "n ..."]]:
    """Check model, parameters and samples, and bring both to one precision."""
    with precision(dtype):
        check_choice("method", method, METHODS)
        params = jax.tree.map(lambda leaf: _numbers("params", leaf, dtype), params)
        check_params(model, params)
        samples = check_inputs("x1", x, model, dtype)
        names = kept_blocks(params, frozen)
        fast = structured_features(model)
        if method == "structured" and fast is None:
            raise BadArgument(
                "method", method, f"is not known for {model_name(model)}", fix="use method='auto'"
            )
        if method == "auto":
            method = "jacobian" if fast is None else "structured"
        outputs = output_size(*as_trained(model, params), samples[0])
        structured = fast is not None and method == "structured"
        prepared = _prepared(model, params) if structured else params
    return Problem(model, params, prepared, names, dtype, method, outputs), samples


def check_inputs(argument: str, x: Any, model: Any, dtype: str) -> Float[np.ndarray, "n ..."]:
    """Samples as a finite NumPy array of `dtype`: (n, T, d) for the models of this package."""
    samples = _numbers(argument, x, dtype)
    if samples.ndim == 0 or samples.size == 0:
        raise BadArgument(
            argument, f"array of shape {samples.shape}", "holds no sample", fix="give n >= 1"
        )
    if hasattr(model, "shapes"):
        T = getattr(model, "T", None)
        check_shape(argument, samples, (None, T, getattr(model, "d", None)))
        D = getattr(model, "D", None)
        if D is not None and samples[0].size != D:
            raise BadArgument(
                argument, f"array of shape {samples.shape}", f"needs T d = {D}", fix="reshape it"
            )
    return samples


def check_params(model: Any, params: Any) -> None:
    """Every leaf finite and of the shape that the model states."""
    for leaf in jax.tree.leaves(params):
        check_finite("params", leaf)
    if not hasattr(model, "shapes"):
        return
    shapes = model.shapes()
    if type(params) is not type(shapes):
        raise BadArgument(
            "params",
            type(params).__name__,
            f"is not what {model_name(model)} takes",
            fix=f"give {type(shapes).__name__}",
        )
    for name, shape in shapes._asdict().items():
        check_shape(f"params.{name}", getattr(params, name), shape)


def feature_shapes(problem: Problem, sample: Any) -> dict[str, tuple[tuple[int, ...], ...]]:
    """The shapes (o, R, p) of every factor of one sample; nothing is computed."""
    with precision(problem.dtype):
        shapes = jax.eval_shape(
            partial(sample_features, problem.model, problem.names, problem.method),
            problem.prepared,
            jax.ShapeDtypeStruct(sample.shape, sample.dtype),
        )
    return {name: tuple(f.shape for f in factors) for name, factors in shapes.items()}


def bytes_per_sample(problem: Problem, sample: Any) -> int:
    """Bytes of the features of one sample."""
    sizes = feature_shapes(problem, sample)
    numbers = sum(int(np.prod(shape)) for shapes in sizes.values() for shape in shapes)
    return numbers * np.dtype(problem.dtype).itemsize


def working_bytes(problem: Problem, sample: Any) -> int:
    """Bytes that one sample needs while its features are made: features and temporaries.

    The temporaries are estimated as four times the largest intermediate array, counted as what a
    second sample adds to a batch of one: arrays that all samples share do not count.
    """

    def sizes(n: int) -> list[int]:
        batch = jax.ShapeDtypeStruct((n, *sample.shape), sample.dtype)
        program = jax.make_jaxpr(partial(_vmapped, problem.model, problem.names, problem.method))(
            problem.prepared, batch
        )
        return [math.prod(v.aval.shape) for e in program.eqns for v in e.outvars]

    with precision(problem.dtype):
        added = [two - one for one, two in zip(sizes(1), sizes(2), strict=True)]
    largest = max(added, default=0) * np.dtype(problem.dtype).itemsize
    return bytes_per_sample(problem, sample) + 4 * largest


def rows_per_sample(problem: Problem, sample: Any) -> int:
    """The largest number of GEMM rows per sample, o R: what a tile of token pairs is made of."""
    sizes = feature_shapes(problem, sample)
    return max(shape[0] * shape[1] for shapes in sizes.values() for shape in shapes)


def chunk_size(working: int) -> int:
    """Samples per JAX call, when each needs `working` bytes."""
    return max(1, min(512, _CHUNK_BYTES // working))


class FeatureSource:
    """The features of one set of samples: all kept, or computed for each range that is asked."""

    def __init__(
        self, problem: Problem, x: Float[np.ndarray, "n ..."], chunk: int, *, keep: bool
    ) -> None:
        self.problem = problem
        self.x = x
        self.chunk = min(chunk, len(x))
        self._kept = self._compute(0, len(x)) if keep else None

    def rows(self, start: int, stop: int) -> dict[str, Factors]:
        """The factors (samples x outputs, R, p) of samples start..stop."""
        if self._kept is None:
            return self._compute(start, stop)
        o = self.problem.width
        return {
            name: tuple(factor[start * o : stop * o] for factor in factors)
            for name, factors in self._kept.items()
        }

    def _compute(self, start: int, stop: int) -> dict[str, Factors]:
        shapes = feature_shapes(self.problem, self.x[0])
        kept = {
            name: tuple(np.empty((stop - start, *shape), self.problem.dtype) for shape in factors)
            for name, factors in shapes.items()
        }
        for low in range(start, stop, self.chunk):
            high = min(low + self.chunk, stop)
            for name, factors in self._chunk(low, high).items():
                for whole, part in zip(kept[name], factors, strict=True):
                    whole[low - start : high - start] = part[: high - low]
        return {
            name: tuple(f.reshape(-1, *f.shape[2:]) for f in factors)
            for name, factors in kept.items()
        }

    def _chunk(self, low: int, high: int) -> dict[str, Any]:
        """Features of at most one chunk; the last one is padded, so that XLA compiles once."""
        x = self.x[low:high]
        if high - low < self.chunk:
            x = np.concatenate([x, np.repeat(x[-1:], self.chunk - (high - low), axis=0)])
        p = self.problem
        with precision(p.dtype):
            features = _batch(p.model, p.names, p.method, p.prepared, x)
            return {k: tuple(np.asarray(f) for f in v) for k, v in features.items()}


def kernel_tile(
    left: FeatureSource,
    right: FeatureSource,
    rows: tuple[int, int],
    columns: tuple[int, int],
    left_features: dict[str, Factors] | None = None,
) -> dict[str, Float[np.ndarray, "r c"]]:
    """The kernel between two ranges of samples, by block.

    The diagonal tile of a symmetric kernel is made exactly symmetric.
    """
    problem = left.problem
    diagonal = left is right and rows == columns
    if problem.method == "vector-products":
        with precision(problem.dtype):
            tiles = vector_product_tile(
                problem.model,
                problem.params,
                left.x[slice(*rows)],
                right.x[slice(*columns)],
                problem.names,
            )
    else:
        a = left.rows(*rows) if left_features is None else left_features
        b = a if diagonal else right.rows(*columns)
        tiles = {name: contract(a[name], b[name]) for name in problem.names}
    if diagonal:
        for tile in tiles.values():
            np.copyto(tile, tile.T, where=np.tri(len(tile), k=-1, dtype=bool))
    return tiles


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
    model: Any, names: tuple[str, ...], method: str, prepared: Any, x: Any
) -> dict[str, Factors]:
    """Factors (o, R, p) of one sample, blocks that are not named left out."""
    fast = structured_features(model) if method == "structured" else None
    if fast is None:
        return jacobian_features(model, prepared, x, names)
    features = fast.features(model, prepared, x)
    return {name: tuple(factor[None] for factor in features[name]) for name in names}


def _vmapped(
    model: Any, names: tuple[str, ...], method: str, prepared: Any, x: Any
) -> dict[str, Factors]:
    return jax.vmap(partial(sample_features, model, names, method, prepared))(x)


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
    return array.astype(dtype)


def model_name(model: Any) -> str:
    """How messages and files call the model."""
    return str(getattr(model, "name", getattr(model, "__name__", type(model).__name__)))
