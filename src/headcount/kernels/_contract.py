"""Kernel tiles from NumPy factors: small ones by NumPy, large ones block by block through XLA.

Most of a large kernel is one matrix product. XLA compiles its products for the machine it runs on;
OpenBLAS, which NumPy's wheels bring along, knows a list of processors and takes an old one's
kernels for those it does not know. Blocks of samples also use the symmetry, and never hold the
matrix of all token pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Shaped

from ..core import Array, precision
from ._features import Factors

_LARGE = 2**29
"""Multiplications of a tile from which compiling is worth while."""
_BLOCK_ROWS = 200
"""Rows of a block's products: smaller ones are slower, larger ones waste the symmetry."""
_GRAM_ROWS = 1024
"""The same for a factor that the outputs of a sample share, whose Gram matrix stands alone."""
_ALIGNMENT = 64
"""Bytes: JAX takes an array that begins at a multiple of it as it is, and copies any other."""


def contract_parts(left: Mapping[Any, Factors], right: Mapping[Any, Factors]) -> Iterator[Any]:
    """(part, tile) of every part, each tile an array of its own.

    A bias that is added to a product has the product's cotangent as its gradient: where a factor
    is the only one of another part, that part's tile is its Gram matrix.
    """
    others = {part for part, factors in left.items() if len(factors) > 1}
    for alone in left.keys() - others:
        tile = contract(left[alone], right[alone])
        known = left[alone][0], right[alone][0]
        for part in sorted(others):
            pairs = list(zip(left[part], right[part], strict=True))
            for k, pair in enumerate(pairs):
                if all(_same(a, b) for a, b in zip(pair, known, strict=True)):
                    c, d = pairs[1 - k]
                    others.remove(part)
                    yield part, _times(tile, contract((c,), (d,)))
                    break
        yield alone, tile
    for part in sorted(others):
        yield part, contract(left[part], right[part])


def _same(a: Any, b: Any) -> bool:
    """Whether two factors of single rows are equal: most often not even their first rows are."""
    if a.shape != b.shape or a.shape[1] > 1 or a.dtype != b.dtype:
        return False
    return np.array_equal(a[:1], b[:1]) and np.array_equal(a, b)


def _times(tile: Any, own: Any) -> Float[np.ndarray, "rows columns"]:
    """The product of two Gram matrices, `own` perhaps that of all outputs of a sample together."""
    if own.shape == tile.shape and own.dtype == tile.dtype:
        return np.multiply(own, tile, out=own)
    n1, n2 = own.shape
    parts = tile.reshape(n1, -1, n2, tile.shape[1] // n2) * own[:, None, :, None]
    return parts.reshape(tile.shape)


def contract(left: Factors, right: Factors) -> Float[np.ndarray, "n1 n2"]:
    """The kernel tile of one block of parameters from factors (n1, R, p) and (n2, R, p)."""
    pairs = list(zip(left, right, strict=True))
    work = sum(len(a) * a.shape[1] * len(b) * b.shape[1] * a.shape[2] for a, b in pairs)
    device = _cpu()
    if work < _LARGE or device is None:
        return contract_whole(left, right)
    if any(a.dtype.kind in "iu" or len(a) != len(left[0]) for a in left):
        return contract_whole(left, right, partial(_gram_by_xla, device))
    return contract_in_blocks(left, right, device)


def contract_whole(
    left: Factors, right: Factors, gram_of: Callable[[Any, Any], Any] | None = None
) -> Float[np.ndarray, "n1 n2"]:
    """All token pairs at once, by default in NumPy: GEMMs only."""
    R1, R2 = left[0].shape[1], right[0].shape[1]
    o1, o2 = (max(map(len, side)) // min(map(len, side)) for side in (left, right))
    tile: Any = None
    # Factors of one row for each output come first: the others are multiplied into their tile.
    for a, b in sorted(zip(left, right, strict=True), key=_after_outputs):
        gram = _equal(a, b) if a.dtype.kind in "iu" else (gram_of or _gram)(a, b)
        if tile is None:
            tile = gram
        elif gram.shape == tile.shape:
            tile = np.multiply(tile, gram, out=tile)
        else:  # (samples, outputs, rows) on both sides, of which the other has no outputs
            n1, n2 = len(gram) // R1, gram.shape[1] // R2
            parts = tile.reshape(n1, o1, R1, n2, o2, R2)
            parts *= gram.reshape(n1, 1, R1, n2, 1, R2)
    assert tile is not None
    return _summed(tile, R1, R2)


def _after_outputs(pair: tuple[Any, Any]) -> tuple[bool, int]:
    return pair[0].dtype.kind in "iu", -len(pair[0])


def _gram(a: Any, b: Any) -> Float[np.ndarray, "rows columns"]:
    """The very same array on both sides lets NumPy call the symmetric product: half the work."""
    return _rows(a) @ _rows(b).T if a is not b else _rows(a) @ _rows(a).T


def _equal(a: Any, b: Any) -> Any:
    """Inner products of rows of the identity."""
    return _rows(a) == _rows(b).T


def _gram_by_xla(device: Any, a: Any, b: Any) -> Float[np.ndarray, "rows columns"]:
    """The same in blocks, of which a symmetric product needs the lower ones only."""
    left, right = _rows(a), _rows(b)
    gram = np.empty((len(left), len(right)), a.dtype)
    with precision(a.dtype.name):
        for i in range(0, len(left), _GRAM_ROWS):
            here = slice(i, i + _GRAM_ROWS)
            held = jax.device_put(left[here], device, may_alias=True)
            for j in range(0, len(right), _GRAM_ROWS):
                at = slice(j, j + _GRAM_ROWS)
                if a is b and j > i:
                    break
                gram[here, at] = _product(held, jax.device_put(right[at], device, may_alias=True))
                if a is b and j < i:
                    gram[at, here] = gram[here, at].T
    return gram


@jax.jit
def _product(a: Any, b: Any) -> Any:
    return a @ b.T


def contract_in_blocks(left: Factors, right: Factors, device: Any) -> Float[np.ndarray, "n1 n2"]:
    """Blocks of samples through XLA; of a symmetric tile the lower ones only."""
    symmetric = all(a is b for a, b in zip(left, right, strict=True))
    dtype, R1, R2 = left[0].dtype, left[0].shape[1], right[0].shape[1]
    tile = np.empty((len(left[0]), len(right[0])), dtype)
    with precision(dtype.name):
        for here in _ranges(left):
            a = _put(left, here, device)
            for at in _ranges(right):
                if symmetric and at.start > here.start:
                    break
                pairs = _block(a, a if symmetric and at == here else _put(right, at, device))
                tile[here, at] = _summed(np.asarray(pairs), R1, R2)
                if symmetric and at != here:
                    tile[at, here] = tile[here, at].T
    return tile


@jax.jit
def _block(left: Factors, right: Factors) -> Float[Array, "rows columns"]:
    """The products of token pairs: sums over them are left to NumPy, which is faster at it."""
    grams = [_rows(a) @ _rows(b).T for a, b in zip(left, right, strict=True)]
    return math.prod(grams[1:], start=grams[0])


def _summed(
    pairs: Float[np.ndarray, "rows columns"], R1: int, R2: int
) -> Float[np.ndarray, "n1 n2"]:
    """The sum over the token pairs of every pair of samples."""
    if R1 == 1 and R2 == 1:
        return pairs
    # Rows first: that sum runs along memory, and leaves little for the other.
    by_rows = pairs.reshape(-1, R1, pairs.shape[1]).sum(axis=1)
    return by_rows.reshape(len(by_rows), -1, R2).sum(axis=2)


def empty_aligned(shape: tuple[int, ...], dtype: str) -> Shaped[np.ndarray, "..."]:
    """Like np.empty, beginning where JAX can use the memory without a copy."""
    size, itemsize = math.prod(shape), np.dtype(dtype).itemsize
    raw = np.empty(size + _ALIGNMENT // itemsize, dtype)
    begin = -raw.ctypes.data % _ALIGNMENT // itemsize
    return raw[begin : begin + size].reshape(shape)


def _ranges(factors: Factors) -> list[slice]:
    """Ranges of samples of one size, but for the last; each begins where JAX need not copy."""
    n, R = factors[0].shape[:2]
    size = -(-n // -(-n * R // _BLOCK_ROWS))
    unit = max(_ALIGNMENT // math.gcd(_ALIGNMENT, f[0].nbytes) for f in factors)
    size = -(-size // unit) * unit
    return [slice(i, min(i + size, n)) for i in range(0, n, size)]


def _put(factors: Factors, at: slice, device: Any) -> Factors:
    return tuple(jax.device_put(factor[at], device, may_alias=True) for factor in factors)


@lru_cache(maxsize=1)
def _cpu() -> Any:
    """The processor as a JAX device, where NumPy multiplies with OpenBLAS; else None.

    Accelerate and MKL are made for the processors that they run on.
    """
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    if "openblas" not in str(blas):
        return None
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX was told to see other devices only
        return None


def _rows(factor: Shaped[Array, "n R p"]) -> Shaped[Array, "nR p"]:
    return factor.reshape(-1, factor.shape[-1])
