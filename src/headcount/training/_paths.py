"""Gradient paths: how one model's loss and gradient are computed over a whole data set.

The one place that batches and chunks. A path prepares the data once, then maps parameters to
(loss, gradient). Fast paths are registered by model type, and by the form of the tokens where
that saves work; every other model takes the generic chunked path. `naive_path` is the slow twin
of all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ..core import Array, Loss, check_count, loss_of, total
from ..core._papers import bring_rooms
from ..models import over_heads


class Samples(NamedTuple):
    """The samples of one chunk; repeated ones carry weight 0, the others the loss's weight(n)."""

    x: Any
    """(b, T, d), or any arrays with the samples first."""
    y: Any
    weight: Float[Array, "b"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Chunks:
    """A data set and the size of its chunks. No copy: chunks are sliced where they are used."""

    x: Any
    """(n, T, d), or any arrays with the samples first."""
    y: Any
    size: int = field(metadata={"static": True})
    sample_weight: float = field(metadata={"static": True})

    @property
    def count(self) -> int:
        """How many chunks there are."""
        return -(-self.y.shape[0] // self.size)

    def __getitem__(self, i: Any) -> Samples:
        """Chunk i. The last one is moved back to fit, its repeated samples weigh nothing."""
        wanted = i * self.size
        start = jnp.minimum(wanted, self.y.shape[0] - self.size)
        x, y = jax.tree.map(
            lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, self.size), (self.x, self.y)
        )
        fresh = start + jnp.arange(self.size) >= wanted
        kind = y.dtype if jnp.issubdtype(y.dtype, jnp.floating) else float
        return Samples(x, y, jnp.where(fresh, jnp.asarray(self.sample_weight, kind), 0))


class BlockJacobian(NamedTuple):
    """What a gradient's pass knows of grad_b f(x_j) for one block b, beyond the loss's gradient."""

    block: str
    total: Float[Array, "..."]
    """sum_j grad_b f(x_j); axes and their order are the path's own."""
    lengths: Float[Array, "n"]
    """||grad_b f(x_j)||, in the order of the data."""


@dataclass(frozen=True)
class GradientPath:
    """prepare(x, y) -> data, then loss_and_gradient(params, data) and outputs(params, data).

    All are pure and jittable; `outputs` are in the order of the data. `with_jacobian` is
    loss_and_gradient and, from the same pass, the Jacobian of the block the path knows it for.
    """

    prepare: Callable[[Any, Any], Any]
    loss_and_gradient: Callable[[Any, Any], tuple[Float[Array, ""], Any]]
    outputs: Callable[[Any, Any], Float[Array, "n *k"]]
    with_jacobian: Callable[[Any, Any], tuple[Float[Array, ""], Any, BlockJacobian]] | None = None


PathBuilder = Callable[..., GradientPath]
ChunkSize = Callable[[Any, int], int]
_FAST: dict[tuple[type, type], tuple[PathBuilder, ChunkSize]] = {}


def register_path(
    kind: type, build: PathBuilder, chunk_size: ChunkSize, *, tokens: type | None = None
) -> None:
    """Use `build(model, loss, chunk)` for models of type `kind`, chunk = chunk_size(model, T).

    With `tokens`, a class of token forms: use build(model, loss, chunk, form) on such data only.
    """
    _FAST[kind, tokens or type(None)] = (build, chunk_size)


def gradient_path(
    model: Any, loss: Loss | str, *, n: int, T: int, chunk: int | None = None, tokens: Any = None
) -> GradientPath:
    """The fast path of this model if it has one, else the generic chunked path.

    `tokens` is the form that all samples have (`PositionalTokens`), or None for any tokens.
    """
    bring_rooms(type(model))
    own = _FAST.get((type(model), type(tokens)))
    if own is None:
        own, tokens = _FAST.get((type(model), type(None)), _GENERIC), None
    build, chunk_size = own
    chunk = chunk_size(model, T) if chunk is None else check_count("chunk", chunk)
    form = () if tokens is None else (tokens,)
    return build(model, loss_of(loss), balanced(n, min(chunk, n)), *form)


def balanced(n: int, chunk: int) -> int:
    """The smallest chunk that needs no more chunks than `chunk` does: the least padding."""
    return -(-n // -(-n // chunk))


def default_chunk(T: int) -> int:
    """A chunk for models without a fast path: about 2^12 tokens at a time."""
    return max(1, 4096 // T)


def into_chunks(x: Any, y: Any, loss: Loss | str, chunk: int) -> Chunks:
    """The data as chunks of `chunk` samples."""
    n = y.shape[0]
    return Chunks(x, y, min(chunk, n), loss_of(loss).weight(n))


def sum_over_chunks(one_chunk: Callable[[Samples], Any], data: Chunks) -> Any:
    """Add up `one_chunk` over the chunks in a scan: memory of one chunk, whatever n is."""
    if data.count == 1:
        return one_chunk(data[0])
    return fold_chunks(lambda samples: (one_chunk(samples), ()), data)[0]


def fold_chunks(one_chunk: Callable[[Samples], tuple[Any, Any]], data: Chunks) -> tuple[Any, Any]:
    """Of the pair that `one_chunk` returns, add up the first and join the second along samples.

    One pass where `sum_over_chunks` and `map_over_chunks` would need two.
    """
    shapes = jax.eval_shape(lambda: one_chunk(data[0])[0])
    start = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)

    def step(carry: Any, i: Array) -> tuple[Any, Any]:
        added, kept = one_chunk(data[i])
        return jax.tree.map(jnp.add, carry, added), kept

    sums, parts = jax.lax.scan(step, start, jnp.arange(data.count))
    return sums, _joined(parts, data)


def map_over_chunks(one_chunk: Callable[[Samples], Any], data: Chunks) -> Any:
    """`one_chunk` of every chunk, joined along samples in the order of the data.

    The leaves of what it returns have the chunk's samples as their first axis.
    """
    parts = jax.lax.map(lambda i: one_chunk(data[i]), jnp.arange(data.count))
    return _joined(parts, data)


def _joined(parts: Any, data: Chunks) -> Any:
    """Chunks one after the other; the last one repeats samples of the one before, left out here."""
    n, size = data.y.shape[0], data.size

    def join(leaf: Array) -> Array:
        body = leaf[:-1].reshape(-1, *leaf.shape[2:])
        return jnp.concatenate([body, leaf[-1][size - (n - body.shape[0]) :]])

    return jax.tree.map(join, parts)


def generic_path(model: Any, loss: Loss | str, chunk: int) -> GradientPath:
    """Automatic differentiation, chunk by chunk, for any f(params, x).

    The gradient is that in one head of each group, where the model has groups of equal heads.
    """
    loss = loss_of(loss)
    batched = jax.vmap(model, in_axes=(None, 0))

    def chunk_loss(params: Any, data: Samples) -> Float[Array, ""]:
        return jnp.sum(data.weight * loss.pointwise(batched(params, data.x), data.y))

    def loss_and_gradient(params: Any, data: Chunks) -> tuple[Float[Array, ""], Any]:
        value, gradient = sum_over_chunks(lambda c: jax.value_and_grad(chunk_loss)(params, c), data)
        return value, over_heads(model, gradient, power=-2)

    def outputs(params: Any, data: Chunks) -> Float[Array, "n *k"]:
        return map_over_chunks(lambda c: batched(params, c.x), data)

    return GradientPath(
        prepare=lambda x, y: into_chunks(x, y, loss, chunk),
        loss_and_gradient=loss_and_gradient,
        outputs=outputs,
    )


_GENERIC: tuple[PathBuilder, ChunkSize] = (generic_path, lambda model, T: default_chunk(T))


def naive_path(model: Any, loss: Loss | str, chunk: int = 0) -> GradientPath:
    """The slow twin of every path: one vmap over all samples, automatic differentiation."""
    loss = loss_of(loss)
    batched = jax.vmap(model, in_axes=(None, 0))

    def whole(params: Any, data: tuple[Array, Array]) -> Float[Array, ""]:
        return total(loss, batched(params, data[0]), data[1])

    def loss_and_gradient(params: Any, data: Any) -> tuple[Float[Array, ""], Any]:
        value, gradient = jax.value_and_grad(whole)(params, data)
        return value, over_heads(model, gradient, power=-2)

    return GradientPath(
        prepare=lambda x, y: (x, y),
        loss_and_gradient=loss_and_gradient,
        outputs=lambda params, data: batched(params, data[0]),
    )
