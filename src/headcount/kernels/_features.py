"""Tangent features in factored form, and their contraction into kernel tiles.

Every tangent kernel of this package is, block by block,

    K_b(x, x') = sum_{t, s} prod_f <F_f(x)_t, F_f(x')_s>,

with one or two factors F_f(x): (R, p_f). One factor with R = 1 is a plain feature vector; two
factors with R = 1 are a Hadamard product of two Gram matrices; R = T is a sum over token pairs.
None of them holds the gradient itself, which would be the outer product of the factors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..core import Array
from ..core._papers import bring_rooms

Factors = tuple[Any, ...]
"""One or two factors (... R p) of one part of a block, with the same number of rows R.

A factor that all outputs of a sample share stands there once. One of integers stands for rows of
the identity: its inner products are one where the integers are equal, else zero.
"""

FeatureMap = Callable[[Any, Any, Float[Array, "T d"]], dict[str, Factors]]
"""(model, prepared parameters, one sample) -> the factors of every block."""


class StructuredFeatures(NamedTuple):
    """`prepare(model, params)` is done once, `features(model, prepared, x)` once per sample."""

    prepare: Callable[[Any, Any], Any]
    features: FeatureMap


_STRUCTURED: dict[type, StructuredFeatures] = {}


def register_features(
    kind: type,
    features: FeatureMap,
    prepare: Callable[[Any, Any], Any] = lambda model, params: params,
) -> None:
    """Use `features` for models whose type is exactly `kind` (a subclass may change f)."""
    _STRUCTURED[kind] = StructuredFeatures(prepare, features)


def structured_features(model: Any) -> StructuredFeatures | None:
    """The feature map of this model's type, if it has one."""
    bring_rooms(type(model))
    return _STRUCTURED.get(type(model))


def flattened(features: Float[Array, "..."]) -> Factors:
    """One plain feature vector as a factor with a single row."""
    return (features.reshape(1, -1),)


def cheapest(factors: Factors) -> Factors:
    """Multiply two factors out, F = sum_t F1_t (x) F2_t, when that makes the contraction cheaper.

    Per pair of samples the outer form costs p1 p2 multiplications, the paired form
    R^2 (p1 + p2) and about as much as 32 R^2 more for its sum over token pairs. The paired form
    needs less memory, so it is kept unless it costs half as much again.
    """
    if len(factors) == 1:
        return factors
    first, second = factors
    R, p1, p2 = first.shape[-2], first.shape[-1], second.shape[-1]
    if 3 * p1 * p2 >= 2 * R * R * (p1 + p2 + 32) or R == 1:
        return factors
    outer = jnp.einsum("...tp,...tq->...pq", first, second)
    return (outer.reshape(*outer.shape[:-2], 1, p1 * p2),)


def contract_traced(left: Factors, right: Factors) -> Float[Array, "n1 n2"]:
    """The same contraction inside a JAX program."""
    tile = None
    for a, b in zip(*(_spread(side, jnp.repeat) for side in (left, right)), strict=True):
        ids = a.dtype.kind in "iu"
        gram = a[:, None, :, None, 0] == b[None, :, None, :, 0] if ids else None
        gram = jnp.einsum("itp,jsp->ijts", a, b) if gram is None else gram
        tile = gram if tile is None else tile * gram
    assert tile is not None
    return tile.sum(axis=(2, 3))


def contract_diagonal(factors: Factors) -> Float[np.ndarray, "n"]:
    """K_b(x_j, x_j) for every sample, without the rest of the kernel."""
    total: Float[np.ndarray, "n R R"] | None = None
    for factor in _spread(factors, np.repeat):
        ids = factor.dtype.kind in "iu"
        gram = factor == np.swapaxes(factor, 1, 2) if ids else None
        gram = np.matmul(factor, np.swapaxes(factor, 1, 2)) if gram is None else gram
        total = gram if total is None else total * gram
    assert total is not None
    return total.sum(axis=(1, 2))


def pull_back(factors: Factors, v: Float[np.ndarray, "n"]) -> Float[np.ndarray, "..."]:
    """sum_j v_j (gradient of sample j), as the p1-vector or p1 x p2 matrix it lives in.

    Rows of the identity that no sample has are left out.
    """
    if len(factors) == 1:
        return np.repeat(v, factors[0].shape[1]) @ _rows(factors[0])
    first, second = _spread(factors, np.repeat)
    if first.dtype.kind in "iu":
        known, places = np.unique(first, return_inverse=True)
        total = np.zeros((len(known), second.shape[2]), second.dtype)
        np.add.at(total, places.ravel(), _rows(second * v[:, None, None]))
        return total
    return _rows(first * v[:, None, None]).T @ _rows(second)


def push_forward(factors: Factors, Z: Float[np.ndarray, "..."]) -> Float[np.ndarray, "n"]:
    """<gradient of sample j, Z> for every sample; `push_forward(F, pull_back(F, v))` is K v."""
    if len(factors) == 1:
        values = _rows(factors[0]) @ Z
    else:
        first, second = _spread(factors, np.repeat)
        ids = first.dtype.kind in "iu"
        moved = Z[np.unique(first, return_inverse=True)[1].ravel()] if ids else _rows(first) @ Z
        values = np.einsum("jp,jp->j", moved, _rows(second))
    R = factors[0].shape[1]
    return values.reshape(-1, R).sum(axis=1)


def _spread(factors: Factors, repeat: Callable[..., Any]) -> Factors:
    """Factors that all outputs share, once for each of them."""
    n = max(len(factor) for factor in factors)
    return tuple(f if len(f) == n else repeat(f, n // len(f), axis=0) for f in factors)


def _rows(factor: Float[np.ndarray, "n R p"]) -> Float[np.ndarray, "nR p"]:
    return factor.reshape(-1, factor.shape[-1])
