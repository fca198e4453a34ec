"""Kernels of any size, tile by tile into an HDF5 file that resumes after a kill.

The file is valid netCDF (named dimensions). All data sets are contiguous and allocated when the
file is created, under a temporary name that is moved into place: later writes change numbers and
no structure. A tile is written, flushed and synced before its flag is set, and its flag holds a
checksum of the numbers, so that a half-written tile is never trusted; in a symmetric kernel the
tile below the diagonal must be its mirror image.
"""

from __future__ import annotations

import hashlib
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import jax
import numpy as np
from jaxtyping import Float

from ..core import (
    Activation,
    BadArgument,
    check_choice,
)
from ..core._files import replacing, sync_to_disk
from ..core._hdf5 import check_self_contained
from ..core._samples import Samples
from ._ntk import computed_tiles, kernel_dims, planned
from ._plan import MemoryPlan, require_fit
from ._source import Problem, model_name, tile_count, tile_ranges

if TYPE_CHECKING:
    import xarray as xr

Progress = Callable[[int, int], None]
"""Called as progress(tiles done, tiles in all) after every tile."""


@dataclass(frozen=True)
class TiledNTK:
    """A finished kernel on disk: read any part of it, or open it as an xarray data set."""

    path: Path
    names: tuple[str, ...]
    shape: tuple[int, ...]
    dtype: str
    plan: MemoryPlan
    computed: int
    """Tiles computed by this call; the others were found in the file."""

    def read(
        self, rows: slice = slice(None), columns: slice = slice(None), *, block: str = "total"
    ) -> Float[np.ndarray, "r c"]:
        """K[rows, columns] of the total or of a named block, from the file."""
        check_choice("block", block, ("total", *self.names))
        with h5py.File(self.path, "r") as file:
            return np.asarray(file[_stored(block)][rows, columns])

    def diagonal(self, *, block: str = "total") -> Float[np.ndarray, "n"]:
        """K(x_j, x_j) of a square kernel, a tile at a time."""
        side = self.plan.tile * self.plan.outputs
        ranges = [slice(i, i + side) for i in range(0, min(self.shape), side)]
        return np.concatenate([np.diag(self.read(r, r, block=block)) for r in ranges])

    def to_xarray(self) -> xr.Dataset:
        """The whole file in memory, with named dimensions."""
        import xarray as xr

        return xr.load_dataset(self.path, engine="h5netcdf")


def ntk_to_file(
    model: Any,
    params: Any,
    x1: Samples,
    x2: Samples | None = None,
    *,
    file: str | Path,
    blocks: str | int = "total",
    frozen: Sequence[str] = (),
    dtype: str = "float64",
    method: str = "auto",
    tile: int | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> TiledNTK:
    """The kernel of `ntk`, streamed to `file`; call again with the same arguments to resume.

    A file of another model, other parameters, data or options is refused. The memory used is
    that of the plan: features (or two tiles of them) and one tile of the kernel. A finished file
    is returned as it is, bit for bit what an uninterrupted run would have written; its damaged
    tiles are told and computed again.
    """
    problem, x1, x2, plan = planned(
        model, params, x1, x2, blocks=blocks, frozen=frozen, dtype=dtype, method=method, tile=tile,
        memory_limit=memory_limit, to_file=True,
    )  # fmt: skip
    require_fit(plan)
    path = Path(file)
    kept = problem.names if blocks != "total" else ()
    identity = fingerprint(problem, x1, x2, plan, kept)
    if not path.exists():
        _create(path, problem, plan, kept, identity)
    with _opened(path) as store:
        _check_identity(path, store, identity)
        _check_layout(path, store, problem, plan, kept)
        computed = _fill(store, problem, x1, x2, plan, progress)
        shape = store["total"].shape
    return TiledNTK(path, kept, shape, dtype, plan, computed)


def fingerprint(
    problem: Problem, x1: Any, x2: Any, plan: MemoryPlan, kept: tuple[str, ...]
) -> dict[str, str]:
    """What must be equal for a file to be continued, by part, each as text or a digest."""
    leaves = jax.tree.leaves(problem.params)
    return {
        "model": describe(problem.model),
        "params": _digest(*leaves),
        "x1": _digest(*jax.tree.leaves(x1)),
        "x2": "" if x2 is None else _digest(*jax.tree.leaves(x2)),
        "trained": ",".join(problem.names),
        "blocks": ",".join(kept),
        "dtype": problem.dtype,
        "method": problem.method,
        "tile": str(plan.tile),
    }


def describe(model: Any) -> str:
    """A model in words that are the same in every process (no memory addresses)."""
    if isinstance(model, Activation):
        return f"{model.name}({model.sigma0!r}, {model.sigma1!r}, {model.sigma2!r})"
    if is_dataclass(model) and not isinstance(model, type):
        inner = ", ".join(f"{f.name}={describe(getattr(model, f.name))}" for f in fields(model))
        return f"{type(model).__qualname__}({inner})"
    if callable(model):
        return f"{getattr(model, '__module__', '')}.{getattr(model, '__qualname__', type(model))}"
    return repr(model)


def _create(
    path: Path, problem: Problem, plan: MemoryPlan, kept: Sequence[str], identity: Mapping[str, str]
) -> None:
    o = problem.width
    shape = (plan.n1 * o, plan.n2 * o)
    symmetric = identity["x2"] == ""
    count = tile_count(plan.n1, plan.n2, plan.tile, symmetric=symmetric)
    with replacing(path) as temporary, h5py.File(temporary, "w") as file:
        file.attrs.update({f"headcount_{key}": value for key, value in identity.items()})
        file.attrs["model"] = model_name(problem.model)
        file.attrs["outputs"] = o
        for axis, dim in enumerate(kernel_dims(2)):
            scale = file.create_dataset(dim, data=np.arange(shape[axis]))
            scale.make_scale(dim)
        for name in map(_stored, ("total", *kept)):
            kernel = _allocated(file, name, shape, problem.dtype)
            for axis, dim in enumerate(kernel_dims(2)):
                kernel.dims[axis].attach_scale(file[dim])
        tiles = file.create_dataset("tile", data=np.arange(count))
        tiles.make_scale("tile")
        _allocated(file, "checksum", (count,), "int64").dims[0].attach_scale(file["tile"])


def _allocated(file: h5py.File, name: str, shape: tuple[int, ...], dtype: str) -> Any:
    """A contiguous data set whose space is reserved now; zeros until written."""
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_layout(h5py.h5d.CONTIGUOUS)
    creation.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    creation.set_obj_track_times(False)
    kind = h5py.h5t.py_create(np.dtype(dtype), logical=True)
    h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(shape), creation)
    return file[name]


class DamagedTiles(UserWarning):
    """Tiles of a kernel file are not what was written; they are computed again."""


@contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    """The file to continue, if HDF5 can read it and it refers to no other."""
    try:
        check_self_contained(path)
        file = h5py.File(path, "r+")
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise _unusable(
            path, f"cannot be read as a kernel ({str(error).splitlines()[0]})"
        ) from None
    with file:
        yield file


def _check_layout(
    path: Path, file: h5py.File, problem: Problem, plan: MemoryPlan, kept: Sequence[str]
) -> None:
    """What no tile's checksum covers: names, shapes, types, positions and the attributes."""
    o, symmetric = problem.width, file.attrs["headcount_x2"] == ""
    shape: tuple[int, ...] = (plan.n1 * o, plan.n2 * o)
    count = tile_count(plan.n1, plan.n2, plan.tile, symmetric=symmetric)
    wanted = dict.fromkeys(map(_stored, ("total", *kept)), (shape, problem.dtype))
    wanted["checksum"] = ((count,), "int64")
    ranges = {**dict(zip(kernel_dims(2), shape, strict=True)), "tile": count}
    found = {name: file[name] for name in file}
    if found.keys() != wanted.keys() | ranges.keys():
        raise _unusable(path, f"is damaged: it holds {', '.join(found)}")
    same = all((found[k].shape, found[k].dtype) == (s, np.dtype(d)) for k, (s, d) in wanted.items())
    same &= all(np.array_equal(found[k][()], np.arange(n)) for k, n in ranges.items())
    about = (file.attrs.get("model"), file.attrs.get("outputs"))
    if not same or about != (model_name(problem.model), o):
        raise _unusable(path, "is damaged: it is not laid out as its kernel")


def _unusable(path: Path, problem: str) -> BadArgument:
    fix = "choose another file name, or delete this one"
    return BadArgument("file", str(path), problem, fix=fix)


def _check_identity(path: Path, file: h5py.File, identity: Mapping[str, str]) -> None:
    stored = {key: file.attrs.get(f"headcount_{key}") for key in identity}
    different = [key for key, value in identity.items() if stored[key] != value]
    if different:
        raise _unusable(path, f"holds another kernel (different: {', '.join(different)})")


def _fill(
    file: h5py.File, problem: Problem, x1: Any, x2: Any, plan: MemoryPlan, progress: Progress | None
) -> int:
    """Compute what is missing; returns the number of tiles computed."""
    ranges = list(tile_ranges(plan.n1, plan.n2, plan.tile, symmetric=x2 is None))
    index = {pair: i for i, pair in enumerate(ranges)}
    names = [name for name in ("total", *problem.names) if _stored(name) in file]
    flags, o = file["checksum"], problem.width
    empty = {pair for pair, i in index.items() if flags[i] == 0}
    damaged = {
        pair
        for pair, i in index.items()
        if pair not in empty
        and any(found != flags[i] for found in _checksums(file, names, pair, o, x2 is None))
    }
    if damaged:
        text = f"{file.filename}: {len(damaged)} damaged tiles are computed again"
        warnings.warn(text, DamagedTiles, stacklevel=3)
    missing = empty | damaged
    done = len(ranges) - len(missing)
    if not missing:
        return 0
    for rows, columns, tiles in computed_tiles(
        problem, x1, x2, plan, lambda r, c: (r, c) in missing, by_block=len(names) > 1
    ):
        total = np.sum(list(tiles.values()), axis=0, dtype=problem.dtype)
        values = [np.ascontiguousarray({"total": total, **tiles}[name]) for name in names]
        for name, value in zip(names, values, strict=True):
            kernel = file[_stored(name)]
            kernel[_at(rows, columns, o)] = value
            if x2 is None and rows != columns:
                kernel[_at(columns, rows, o)] = value.T
        _flush(file)
        flags[index[rows, columns]] = _checksum(values)
        _flush(file)
        done += 1
        if progress is not None:
            progress(done, len(ranges))
    return len(missing)


def _stored(name: str) -> str:
    """A block's name in the file, where a slash would open a group."""
    return name.replace("/", "|")


def _at(rows: tuple[int, int], columns: tuple[int, int], o: int) -> tuple[slice, slice]:
    return slice(rows[0] * o, rows[1] * o), slice(columns[0] * o, columns[1] * o)


def _checksums(
    file: h5py.File, names: Sequence[str], pair: Any, o: int, symmetric: bool
) -> Iterator[int]:
    """That of a tile as it is in the file, and of its mirror image where there is one."""
    rows, columns = pair
    kernels = [file[_stored(name)] for name in names]
    yield _checksum([kernel[_at(rows, columns, o)] for kernel in kernels])
    if symmetric and rows != columns:
        yield _checksum([kernel[_at(columns, rows, o)].T for kernel in kernels])


def _checksum(arrays: Sequence[Float[np.ndarray, "r c"]]) -> int:
    """A checksum that is never zero: zero marks a tile that was not finished."""
    value = 0
    for array in arrays:
        value = zlib.crc32(np.ascontiguousarray(array).tobytes(), value)
    return value + 1


def _flush(file: h5py.File) -> None:
    file.flush()
    sync_to_disk(Path(file.filename))


def _digest(*arrays: Any) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        values = np.ascontiguousarray(array)
        digest.update(f"{values.dtype}{values.shape}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()
