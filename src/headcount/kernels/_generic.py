"""Tangent kernels of any f(params, x): Jacobian contraction and NTK-vector products.

f may return a scalar or an array; an array is flattened to o outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..core import Array, BadArgument, check_choice, check_count, own_precision
from ..core import _tree as tree
from ..core._samples import Samples, count_samples, sample_shapes, take_samples
from ..models import over_heads
from ..models._called import output_of
from ..models._module import as_model
from ._features import Factors

Function = Callable[[Any, Float[Array, "..."]], Float[Array, "..."]]


def as_trained(model: Any, params: Any) -> tuple[Any, Any]:
    """The function and the parameters whose plain gradients make the tangent kernel.

    For head groups these are sqrt(k_g) theta_g: one group stands for k_g equal heads, and in
    these coordinates lengths, gradients and Hessians are those of the k_g heads together.
    """
    stretched = over_heads(model, params)
    if stretched is params:
        return model, params
    return lambda p, *x: model(over_heads(model, p, power=-1), *x), stretched


DEPTHS = {"each": 1, "total": 1, "leaves": 1000}
"""How many names of its path a block has, by what `blocks` asks for."""


def kept_blocks(params: Any, frozen: Sequence[str], blocks: str | int = "each") -> tuple[str, ...]:
    """The names of what is not frozen, in the order of the parameters.

    A name is a path with dots, so many names deep as `blocks` says. Of a block that is frozen in
    part the parts that are left are named by their paths.
    """
    if isinstance(frozen, str):
        raise BadArgument("frozen", frozen, "must be a sequence of names", fix=f"use ({frozen!r},)")
    paths = tree.paths(params)
    for name in frozen:
        if name not in tree.blocks(params) and not any(tree.is_at(path, name) for path in paths):
            listed = ", ".join(tree.blocks(params))
            fix = f"choose from: {listed}, or a path in one of them"
            raise BadArgument("frozen", name, "is not a block", fix=fix)
    kept = tuple(name for block in tree.blocks(params) for name in _left(block, paths, frozen))
    if isinstance(blocks, str):
        check_choice("blocks", blocks, tuple(DEPTHS))
    depth = DEPTHS[blocks] if isinstance(blocks, str) else check_count("blocks", blocks)
    if depth > 1:
        cut = [path.split(".")[:depth] for path in paths if any(tree.is_at(path, k) for k in kept)]
        short = [".".join(names) for names in cut]
        kept = tuple(n for name in dict.fromkeys(short) for n in _left(name, paths, frozen))
    if not kept:
        raise BadArgument("frozen", tuple(frozen), "leaves no block", fix="free at least one block")
    return kept


def _left(name: str, paths: Sequence[str], frozen: Sequence[str]) -> list[str]:
    """The name, or what is left below it where something is frozen."""
    if any(tree.is_at(name, f) for f in frozen):
        return []
    if not any(tree.is_at(f, name) for f in frozen):
        return [name]
    depth = name.count(".") + 2
    below = [".".join(path.split(".")[:depth]) for path in paths if tree.is_at(path, name)]
    return [one for part in dict.fromkeys(below) for one in _left(part, paths, frozen)]


def output_size(f: Function, params: Any, x: Any) -> int | None:
    """How many outputs f has on a sample like x (its shape is enough); None for a scalar."""
    shape = output_of(f, params, x).shape
    return None if shape == () else math.prod(shape)


def restricted(f: Function, params: Any, names: Sequence[str]) -> tuple[Function, dict[str, Any]]:
    """f as a function of the named arrays only, with flattened output, and their values."""

    def g(moving: dict[str, Any], x: Samples) -> Float[Array, "o"]:
        return jnp.ravel(f(tree.with_subtrees(params, moving), x))

    return g, tree.subtrees(params, names)


def jacobian_features(
    model: Any, params: Any, x: Samples, names: Sequence[str]
) -> dict[str, Factors]:
    """The Jacobian of one sample by block, if it has numbers: one factor of shape (o, 1, P_b)."""
    g, values = restricted(*as_trained(model, params), names)
    J = jax.jacrev(g)(values, x)

    def flat(block: Any) -> Float[Array, "o 1 P"]:
        leaves = [leaf.reshape(leaf.shape[0], -1) for leaf in jax.tree.leaves(block)]
        return jnp.concatenate(leaves, axis=1)[:, None, :]

    features = {name: (flat(J[name]),) for name in names}
    return {name: one for name, one in features.items() if one[0].size}


def pull_back_outputs(
    model: Any,
    params: Any,
    x: Samples,
    v: Float[Array, "n o"],
    names: Sequence[str],
) -> dict[str, Any]:
    """J^T v = sum_j J(x_j)^T v_j on the named blocks, by one reverse pass."""
    g, values = restricted(*as_trained(model, params), names)
    out, vjp = jax.vjp(lambda moving: jax.vmap(g, in_axes=(None, 0))(moving, x), values)
    return vjp(v.astype(out.dtype))[0]


def as_precise(tree: Any, other: Any) -> Any:
    """The tree with its floating numbers in the highest precision of it and another."""
    kinds = {jnp.result_type(leaf) for leaf in jax.tree.leaves((tree, other))}
    floats = [kind for kind in kinds if jnp.issubdtype(kind, jnp.floating)]
    highest = max(floats, key=lambda kind: kind.itemsize, default=None)

    def leaf(value: Any) -> Any:
        is_float = jnp.issubdtype(jnp.result_type(value), jnp.floating)
        return jnp.asarray(value, highest) if is_float else value

    return jax.tree.map(leaf, tree)


def push_forward_outputs(
    model: Any, params: Any, x: Samples, direction: dict[str, Any]
) -> Float[Array, "n o"]:
    """J(x_j) direction for every sample, by one forward pass."""
    g, values = restricted(*as_trained(model, params), tuple(direction))
    _, out = jax.jvp(
        lambda moving: jax.vmap(g, in_axes=(None, 0))(moving, x), (values,), (direction,)
    )
    return out


@own_precision
def ntk_vector_product(
    model: Any,
    params: Any,
    x1: Samples,
    v: Float[Array, "n2 *o"],
    x2: Samples | None = None,
    *,
    frozen: Sequence[str] = (),
) -> Float[Array, "n1 *o"]:
    """K(x1, x2) v = J(x1) (J(x2)^T v): a forward pass after a reverse pass, no kernel stored.

    v has shape (n2,) for a scalar f, (n2, o) for o outputs; the answer has the same layout. This
    is a plain JAX function: it computes in the precision of its arguments and can be jitted.
    """
    model, params = as_model(model, params)
    params = as_precise(params, v)
    x2 = x1 if x2 is None else x2
    names = kept_blocks(params, frozen)
    columns = jnp.reshape(v, (count_samples(x2), -1))
    direction = pull_back_outputs(model, params, x2, columns, names)
    product = push_forward_outputs(model, params, x1, direction)
    return product.reshape(count_samples(x1), *jnp.shape(v)[1:])


def vector_product_tile(
    model: Any,
    params: Any,
    x1: Samples,
    x2: Samples,
    names: tuple[str, ...],
) -> dict[str, Float[np.ndarray, "n1o n2o"]]:
    """One tile of the kernel by NTK-vector products, one per output of every sample of x2."""
    outputs = output_size(*as_trained(model, params), sample_shapes(x2)) or 1
    tiles: dict[str, list[Any]] = {name: [] for name in names}
    for k in range(count_samples(x2)):
        x = take_samples(x2, k)
        for name, block in _columns(model, names, outputs, params, x1, x).items():
            tiles[name].append(np.asarray(block).reshape(outputs, -1))
    return {name: np.ascontiguousarray(np.concatenate(t).T) for name, t in tiles.items()}


@partial(jax.jit, static_argnums=(0, 1, 2))
def _columns(
    model: Any, names: tuple[str, ...], outputs: int, params: Any, x1: Any, x: Any
) -> dict[str, Float[Array, "o n1 o"]]:
    def column(v: Float[Array, "o"]) -> dict[str, Float[Array, "n1 o"]]:
        one = jax.tree.map(lambda leaf: leaf[None], x)
        direction = pull_back_outputs(model, params, one, v[None], names)
        return {
            name: push_forward_outputs(model, params, x1, {name: direction[name]}) for name in names
        }

    dtype = jnp.result_type(*jax.tree.leaves(params))
    return jax.lax.map(column, jnp.eye(outputs, dtype=dtype))
