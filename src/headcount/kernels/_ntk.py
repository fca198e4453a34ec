"""The empirical tangent kernel `ntk(model, params, x1, x2=None)`, total and by block."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..core import (
    Array,
    check_count,
    own_precision,
)
from ..core._memory import available_memory
from ..core._results import mappable
from ..core._samples import Samples, count_samples, sample_shapes
from ..core._shown import Shown, html_curve
from ..models._module import as_model
from ._features import Factors, contract_traced, structured_features
from ._generic import as_trained, kept_blocks, output_size
from ._plan import MemoryPlan, require_fit
from ._source import (
    FeatureSource,
    Problem,
    check_inputs,
    chunk_size,
    kernel_tile,
    model_name,
    prepare,
    sample_features,
    summed,
    tile_count,
    tile_ranges,
)
from ._traced import Part

if TYPE_CHECKING:
    import xarray as xr

_LARGEST_SHOWN = 500
"""Rows of a kernel whose eigenvalues a notebook shows."""
_TOO_LARGE: dict[str, tuple[str, ...]] = {
    "auto": ("the factors of four samples would take more than an eighth of the memory",),
    "vector-products": (),
}
"""Why it is vector products."""
_TILE_BYTES = 1 << 27
"""The matrices of one tile, token pairs included, stay below this."""


@mappable("model", "method", "dtype", "symmetric", "trained", "frozen", "plan")
@dataclass(frozen=True, repr=False)
class EmpiricalNTK(Shown):
    """K(x1, x2) = sum_b K_b, K_b(x, x') = <grad_b f(x), grad_b f(x')>, at one parameter point.

    `total` is (n1, n2), or (n1, o, n2, o) for f with o outputs; `blocks` maps the names of the
    trained blocks to arrays of the same shape, and is empty when only the total was asked for.
    The arrays are read-only.
    """

    total: Float[np.ndarray, "..."]
    blocks: Mapping[str, Float[np.ndarray, "..."]]
    model: str
    method: str
    dtype: str
    symmetric: bool
    trained: tuple[str, ...]
    frozen: tuple[str, ...]
    plan: MemoryPlan

    def summary(self) -> dict[str, Any]:
        """Model, size, blocks and trace."""
        shown: dict[str, Any] = {
            "model": self.model,
            "total": self.total,
            "blocks": ", ".join(self.blocks),
        }
        if self.symmetric:
            shown["trace"] = float(np.trace(self.matrix))
        return {**shown, "frozen": ", ".join(self.frozen) or "none", "method": self.method}

    def pictures(self) -> str:
        """The eigenvalues, where they take no time."""
        if not self.symmetric or len(self.matrix) > _LARGEST_SHOWN:
            return ""
        return html_curve(np.linalg.eigvalsh(self.matrix)[::-1], "eigenvalues, the largest first")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Float[np.ndarray, "..."]:
        """The total: what takes an array takes a kernel."""
        return np.array(self.total, dtype, copy=copy)

    @property
    def matrix(self) -> Float[np.ndarray, "n1o n2o"]:
        """The total as a matrix, outputs of one sample side by side."""
        return self.total.reshape(self.plan.n1 * self.plan.outputs, -1)

    def to_xarray(self) -> xr.Dataset:
        """A data set with named dimensions: `total`, and `block` with a coordinate of names."""
        import xarray as xr

        dims = kernel_dims(self.total.ndim)
        variables: dict[str, Any] = {"total": (dims, self.total)}
        coordinates: dict[str, Any] = {
            dim: np.arange(size) for dim, size in zip(dims, self.total.shape, strict=True)
        }
        if self.blocks:
            variables["block"] = (("name", *dims), np.stack(list(self.blocks.values())))
            coordinates["name"] = list(self.blocks)
        attributes = {
            "model": self.model,
            "method": self.method,
            "dtype": self.dtype,
            "symmetric": int(self.symmetric),
            "trained": ",".join(self.trained),
            "frozen": ",".join(self.frozen),
        }
        return xr.Dataset(variables, coords=coordinates, attrs=attributes)


def kernel_dims(ndim: int) -> tuple[str, ...]:
    """The names of a kernel's axes."""
    if ndim == 2:
        return ("sample_1", "sample_2")
    return ("sample_1", "output_1", "sample_2", "output_2")


def ntk(
    model: Any,
    params: Any,
    x1: Samples,
    x2: Samples | None = None,
    *,
    blocks: str | int = "each",
    frozen: Sequence[str] = (),
    dtype: str = "float64",
    method: str = "auto",
    tile: int | None = None,
    memory_limit: int | None = None,
) -> EmpiricalNTK:
    """The tangent kernel of any f(params, x) between x1 and x2 (x1 with itself by default).

    model: f(params, x), or an equinox module, which brings its parameters where they are None.
    x1, x2: samples along the first axis: an array, ids as integers, or a pytree of such.

    blocks: "each" keeps every parameter block beside the total, "total" only their sum; "leaves"
    has a block for every array, named by its path ("encoder.0.weight"), a number one for every
    path cut to so many names.
    frozen: names of blocks or paths in them that are not trained and are left out.
    dtype: "float64", whatever JAX's global setting is, or "float32" on request.
    method: "structured" (features in factors), "jacobian" (contraction of the Jacobian),
    "vector-products" (jvp of vjp), all for any f, or "auto": structured, but vector products where
    the features of two samples do not fit. `plan` says how each block is made.
    tile: samples per side of a tile; memory_limit: bytes, instead of what the machine has free.
    A plan that does not fit is refused before anything is allocated (`KernelTooLarge`).
    """
    problem, x1, x2, plan = planned(
        model, params, x1, x2, blocks=blocks, frozen=frozen, dtype=dtype, method=method, tile=tile,
        memory_limit=memory_limit, to_file=False,
    )  # fmt: skip
    require_fit(plan)
    o = problem.width
    shape = (plan.n1 * o, plan.n2 * o)
    total = np.zeros(shape, dtype)
    kept = {name: np.empty(shape, dtype) for name in problem.names} if blocks != "total" else {}
    for rows, columns, tiles in computed_tiles(problem, x1, x2, plan, by_block=bool(kept)):
        at = (slice(rows[0] * o, rows[1] * o), slice(columns[0] * o, columns[1] * o))
        for name, values in tiles.items():
            total[at] += values
            if kept:
                kept[name][at] = values
        if x2 is None and rows != columns:
            for array in (total, *kept.values()):
                array[at[::-1]] = array[at].T
    return EmpiricalNTK(
        total=_sealed(total, problem, plan),
        blocks={name: _sealed(array, problem, plan) for name, array in kept.items()},
        model=model_name(problem.model),
        method=problem.method,
        dtype=dtype,
        symmetric=x2 is None,
        trained=problem.names,
        frozen=tuple(frozen),
        plan=plan,
    )


def plan_ntk(
    model: Any,
    params: Any,
    x1: Samples,
    x2: Samples | None = None,
    *,
    blocks: str | int = "each",
    frozen: Sequence[str] = (),
    dtype: str = "float64",
    method: str = "auto",
    tile: int | None = None,
    memory_limit: int | None = None,
    to_file: bool = False,
    n: int | None = None,
) -> MemoryPlan:
    """What `ntk` (or `ntk_to_file`) would allocate with the same arguments; nothing is computed.

    `n` plans for so many samples like those of x1, which need not exist yet.
    """
    return planned(
        model, params, x1, x2, blocks=blocks, frozen=frozen, dtype=dtype, method=method, tile=tile,
        memory_limit=memory_limit, to_file=to_file, n=n,
    )[-1]  # fmt: skip


def planned(
    model: Any,
    params: Any,
    x1: Any,
    x2: Any,
    *,
    blocks: str | int,
    frozen: Sequence[str],
    dtype: str,
    method: str,
    tile: int | None,
    memory_limit: int | None,
    to_file: bool,
    n: int | None = None,
) -> tuple[Problem, Any, Any, MemoryPlan]:
    """The checked problem, its samples and its memory plan."""
    model, params = as_model(model, params)
    names = kept_blocks(params, frozen, blocks)
    limit = (
        available_memory() if memory_limit is None else check_count("memory_limit", memory_limit)
    )
    given, chosen = x1, method
    problem, x1 = prepare(model, params, given, names=names, dtype=dtype, method=chosen)
    if method == "auto" and 4 * problem.feature_bytes > limit // 8:
        chosen = "vector-products"
        problem, x1 = prepare(model, params, given, names=names, dtype=dtype, method=chosen)
    if x2 is not None:
        x2 = check_inputs("x2", x2, model, dtype)
    n1 = count_samples(x1) if n is None else check_count("n", n)
    n2 = n1 if x2 is None else count_samples(x2)
    itemsize, o = np.dtype(dtype).itemsize, problem.width
    one_kernel = n1 * n2 * o * o * itemsize
    copies = 1 + (len(problem.names) if blocks != "total" else 0)
    kernel = 0 if to_file else copies * one_kernel

    # A kernel that fills the memory is refused later; its plan still shows sensible tiles.
    spare = max(limit - kernel, limit // 8)
    per_sample = problem.feature_bytes
    samples = n1 + (0 if x2 is None else n2)
    stored = problem.method != "vector-products" and samples * per_sample <= spare // 2
    side = (
        check_count("tile", tile)
        if tile is not None
        else _tile(problem, max(n1, n2), 0 if stored else per_sample, spare // 4)
    )
    side = min(side, max(n1, n2))
    working = problem.working_bytes
    chunk = max(1, min(chunk_size(working), spare // 8 // working, max(n1, n2)))
    plan = MemoryPlan(
        n1=n1,
        n2=n2,
        outputs=o,
        dtype=dtype,
        method=problem.method,
        tile=side,
        chunk=chunk,
        tiles=tile_count(n1, n2, side, symmetric=x2 is None),
        stored_features=stored,
        features=per_sample * (samples if stored else 2 * side),
        kernel=kernel,
        scratch=side * side * _tile_bytes(problem) + chunk * working,
        file=copies * one_kernel if to_file else 0,
        available=limit,
        ways=problem.layout.ways if problem.method != "vector-products" else _TOO_LARGE[method],
    )
    return problem, x1, x2, plan


def computed_tiles(
    problem: Problem, x1: Any, x2: Any, plan: MemoryPlan, wanted: Any = None, *, by_block: bool
) -> Any:
    """Iterate over (rows, columns, tiles by block); `wanted(rows, columns)` may leave some out."""
    keep = plan.stored_features
    left = FeatureSource(problem, x1, plan.chunk, keep=keep)
    right = left if x2 is None else FeatureSource(problem, x2, plan.chunk, keep=keep)
    current: tuple[tuple[int, int], dict[Part, Factors]] | None = None
    for rows, columns in tile_ranges(plan.n1, plan.n2, plan.tile, symmetric=x2 is None):
        if wanted is not None and not wanted(rows, columns):
            continue
        if problem.method == "vector-products":
            yield rows, columns, kernel_tile(left, right, rows, columns, by_block=by_block)
            continue
        if current is None or current[0] != rows:
            current = (rows, left.rows(*rows))
        tile = kernel_tile(left, right, rows, columns, current[1], by_block=by_block)
        yield rows, columns, tile


@own_precision
def traced_ntk(
    model: Any,
    params: Any,
    x1: Samples,
    x2: Samples | None = None,
    *,
    frozen: Sequence[str] = (),
) -> dict[str, Float[Array, "n1o n2o"]]:
    """The blocks of the kernel as a pure JAX function: for use under jit, vmap, scan and grad.

    All at once in memory, in the precision of the arguments, unchecked; `ntk` is the tool for
    everything else. Rows and columns of a multi-output f are (sample, output) pairs in order.
    """
    model, params = as_model(model, params)
    names = kept_blocks(params, frozen)
    fast = structured_features(model)
    prepared = params if fast is None else fast.prepare(model, params)
    one = partial(sample_features, model, names, "structured", prepared)

    def batch(x: Any) -> dict[Part, Factors]:
        merged = partial(jax.tree.map, lambda f: f.reshape(-1, *f.shape[2:]))
        return merged(jax.vmap(one)(x))

    left = batch(x1)
    right = left if x2 is None else batch(x2)
    tiles = summed((part, contract_traced(left[part], right[part])) for part in left)
    rows, columns = (
        count_samples(x) * _outputs(model, params, x) for x in (x1, x1 if x2 is None else x2)
    )
    return {name: tiles.get(name, jnp.zeros((rows, columns))) for name in names}


def _outputs(model: Any, params: Any, x: Any) -> int:
    return output_size(*as_trained(model, params), sample_shapes(x)) or 1


def _tile(problem: Problem, n: int, recomputed_bytes: int, budget: int) -> int:
    """Samples per tile: as many as keep the matrices of a tile within _TILE_BYTES and the budget.

    Features that are recomputed per tile must fit twice into the budget as well.
    """
    largest = math.isqrt(min(_TILE_BYTES, budget) // _tile_bytes(problem))
    if recomputed_bytes:
        largest = min(largest, budget // (2 * recomputed_bytes))
    return max(1, min(largest, n))


def _tile_bytes(problem: Problem) -> int:
    """Bytes per squared tile side: two Gram matrices of token pairs, all blocks and their sum."""
    pairs = 2 * problem.layout.rows**2
    kernels = (len(problem.names) + 1) * problem.width**2
    return (pairs + kernels) * np.dtype(problem.dtype).itemsize


def _sealed(
    array: Float[np.ndarray, "n1o n2o"], problem: Problem, plan: MemoryPlan
) -> Float[np.ndarray, "..."]:
    if problem.layout.outputs is not None:
        array = array.reshape(plan.n1, plan.outputs, plan.n2, plan.outputs)
    array.setflags(write=False)
    return array
