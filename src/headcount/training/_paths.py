"""Gradient paths: how one model's loss and gradient are computed over a whole data set.

The one place that batches and chunks. A path prepares the data once (layout, padding to whole
chunks), then maps parameters to (loss, gradient). Fast paths are registered by model type; every
other model takes the generic chunked path. `naive_path` is the slow twin of all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ..core import Array, Loss, check_count, total


class Chunks(NamedTuple):
    """Data in whole chunks; padded samples carry weight 0, real ones the loss's weight(n)."""

    x: Float[Array, "k b T d"]
    y: Float[Array, "k b"]
    weight: Float[Array, "k b"]


@dataclass(frozen=True)
class GradientPath:
    """prepare(x, y) -> data, then loss_and_gradient(params, data) and outputs(params, data).

    All three are pure and jittable; `outputs` returns the n outputs in the order of the data, as
    (chunk, sample) with padding at the end.
    """

    prepare: Callable[[Float[Array, "n T d"], Float[Array, "n"]], Any]
    loss_and_gradient: Callable[[Any, Any], tuple[Float[Array, ""], Any]]
    outputs: Callable[[Any, Any], Float[Array, "padded"]]


PathBuilder = Callable[[Any, Loss, int], GradientPath]
_FAST: dict[type, PathBuilder] = {}
_CHUNK: dict[type, Callable[[Any, int], int]] = {}


def register_path(kind: type, build: PathBuilder, chunk_size: Callable[[Any, int], int]) -> None:
    """Use `build(model, loss, chunk)` for models of type `kind`, chunk = chunk_size(model, T)."""
    _FAST[kind] = build
    _CHUNK[kind] = chunk_size


def gradient_path(
    model: Any, loss: Loss, *, n: int, T: int, chunk: int | None = None
) -> GradientPath:
    """The fast path of this model if it has one, else the generic chunked path."""
    if chunk is None:
        chunk = _CHUNK[type(model)](model, T) if type(model) in _CHUNK else default_chunk(T)
    chunk = balanced(n, min(check_count("chunk", chunk), n))
    build = _FAST.get(type(model), generic_path)
    return build(model, loss, chunk)


def balanced(n: int, chunk: int) -> int:
    """The smallest chunk that needs no more chunks than `chunk` does: the least padding."""
    return -(-n // -(-n // chunk))


def default_chunk(T: int) -> int:
    """A chunk for models without a fast path: about 2^12 tokens at a time."""
    return max(1, 4096 // T)


def into_chunks(x: Float[Array, "n T d"], y: Float[Array, "n"], loss: Loss, chunk: int) -> Chunks:
    """Cut the data into chunks of at most `chunk` samples, the last one padded with weight zero."""
    n = x.shape[0]
    chunk = -(-n // -(-n // chunk))  # the same number of chunks, of even size: least padding
    pad = -n % chunk
    weight = jnp.full((n,), loss.weight(n), x.dtype)

    def cut(array: Float[Array, "n ..."]) -> Float[Array, "k b ..."]:
        padded = jnp.pad(array, [(0, pad)] + [(0, 0)] * (array.ndim - 1))
        return padded.reshape(-1, chunk, *array.shape[1:])

    return Chunks(cut(x), cut(y), cut(weight))


def sum_over_chunks(
    one_chunk: Callable[[Any], tuple[Float[Array, ""], Any]], data: Any
) -> tuple[Float[Array, ""], Any]:
    """Add up (loss, gradient) over the chunks in a scan: memory of one chunk, whatever n is.

    `data` is a pytree whose leaves all have the chunks as their first axis.
    """
    first = jax.tree.map(lambda leaf: leaf[0], data)
    if jax.tree.leaves(data)[0].shape[0] == 1:
        return one_chunk(first)
    shapes = jax.eval_shape(one_chunk, first)
    start = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    def step(carry: Any, chunk: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, carry, one_chunk(chunk)), None

    return jax.lax.scan(step, start, data)[0]


def generic_path(model: Any, loss: Loss, chunk: int) -> GradientPath:
    """Automatic differentiation, chunk by chunk, for any f(params, x)."""
    batched = jax.vmap(model, in_axes=(None, 0))

    def chunk_loss(params: Any, data: Chunks) -> Float[Array, ""]:
        return jnp.sum(data.weight * loss.pointwise(batched(params, data.x), data.y))

    def loss_and_gradient(params: Any, data: Chunks) -> tuple[Float[Array, ""], Any]:
        return sum_over_chunks(lambda c: jax.value_and_grad(chunk_loss)(params, c), data)

    def outputs(params: Any, data: Chunks) -> Float[Array, "padded"]:
        return jax.lax.map(lambda x: batched(params, x), data.x).reshape(-1)

    return GradientPath(
        prepare=lambda x, y: into_chunks(x, y, loss, chunk),
        loss_and_gradient=loss_and_gradient,
        outputs=outputs,
    )


def naive_path(model: Any, loss: Loss, chunk: int = 0) -> GradientPath:
    """The slow twin of every path: one vmap over all samples, automatic differentiation."""
    batched = jax.vmap(model, in_axes=(None, 0))

    def whole(params: Any, data: tuple[Array, Array]) -> Float[Array, ""]:
        return total(loss, batched(params, data[0]), data[1])

    return GradientPath(
        prepare=lambda x, y: (x, y),
        loss_and_gradient=jax.value_and_grad(whole),
        outputs=lambda params, data: batched(params, data[0]),
    )
