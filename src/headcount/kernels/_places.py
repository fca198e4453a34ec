"""The operations in which a parameter may enter: those that only move it, and products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ._views import View

if TYPE_CHECKING:
    from ._uses import Use


def seen_through(equation: Any, read: Sequence[Any], own: Sequence[View | None]) -> View | None:
    """The output as a view of the same leaf; None where it is none."""
    name, p = equation.primitive.name, equation.params
    (out,) = (v.aval for v in equation.outvars) if len(equation.outvars) == 1 else (None,)
    if out is None:
        return None
    if name in ("mul", "div") and len([v for v in own if v is not None]) == 1:
        place = 0 if own[0] is not None else 1
        view, factor = own[place], read[1 - place]
        alike = out.shape == equation.invars[place].aval.shape
        if view is None or not alike or jnp.size(factor) != 1 or (name == "div" and place == 1):
            return None
        factor = jnp.reshape(factor, ())
        return view.scaled(1 / factor if name == "div" else factor)
    view = own[0] if len(own) == 1 else None
    if view is None:
        return None
    if name == "transpose":
        return view.moved(p["permutation"])
    if name == "reshape" and p.get("dimensions") is None:
        return view.reshaped(out.shape)
    if name == "squeeze":
        return view.moved([k for k in range(len(view.axes)) if k not in p["dimensions"]])
    if name == "broadcast_in_dim":
        return view.spread(out.shape, p["broadcast_dimensions"])
    if name == "convert_element_type" and jnp.issubdtype(out.dtype, jnp.floating):
        return view
    if name == "neg":
        return view.scaled(-1.0)
    if name == "slice":
        return _one_index(equation, view)
    return None


def _one_index(equation: Any, view: View) -> View | None:
    """One index of one axis, the others whole: a layer of parameters that stand in one array."""
    begin, end = equation.params["start_indices"], equation.params["limit_indices"]
    lengths = equation.invars[0].aval.shape
    cut = [k for k, n in enumerate(lengths) if end[k] - begin[k] != n]
    if len(cut) != 1 or end[cut[0]] - begin[cut[0]] != 1:
        return None
    return view.at_index(cut[0], begin[cut[0]])


def _use(view: View, equation: Any, batch: Any, groups: Any, factor: Any, cotangent: Any) -> Use:
    from ._uses import Use

    def long(places: Sequence[int]) -> tuple[int, ...]:
        return tuple(atom for atom in view.group(places) if view.atoms[atom] > 1)

    out = equation.outvars[0].aval
    atoms = tuple(atom for place in batch for atom in view.axes[place] if view.atoms[atom] > 1)
    return Use(
        view.leaf, view.atoms, view.at, view.steps, atoms, (long(groups[0]), long(groups[1])),
        factor, out.shape, out.dtype, cotangent,
    )  # fmt: skip


def _product(equation: Any, read: Sequence[Any], own: Sequence[View | None]) -> Use | None:
    """W . A: rows are the free axes of A."""
    if None not in own:
        return None
    w = 0 if own[0] is not None else 1
    view, A = own[w], read[1 - w].astype(equation.outvars[0].aval.dtype)  # ids count as numbers
    assert view is not None
    contracted, batched = equation.params["dimension_numbers"]
    (cw, ca), (bw, ba) = ((pair[w], pair[1 - w]) for pair in (contracted, batched))
    fw = [k for k in range(len(view.axes)) if k not in (*cw, *bw)]
    fa = [k for k in range(A.ndim) if k not in (*ca, *ba)]
    lead = [A.shape[k] for k in ba]
    B, R = math.prod(lead), math.prod(A.shape[k] for k in fa)
    moved = A.transpose(*ba, *fa, *ca).reshape(B, R, *(A.shape[k] for k in ca))
    factor = view.flat(moved, cw, lead=2)
    factor = factor if view.scale is None else factor * view.scale

    def cotangent(g: Any) -> Any:
        free = [view.size(view.axes[k]) for k in fw]
        if w == 0:  # batch, free axes of W, free axes of A
            g = jnp.moveaxis(g.reshape(B, math.prod(free), R), 1, 2)
        return view.flat(g.reshape(B, R, *free), fw, lead=2)

    return _use(view, equation, bw, (cw, fw), factor, cotangent)


def _gathered(equation: Any, read: Sequence[Any], own: Sequence[View | None]) -> Use | None:
    """W[ids], of one row each."""
    p = equation.params
    d, clipped = p["dimension_numbers"], "CLIP" in str(p["mode"])
    shape, ids = equation.invars[0].aval.shape, read[1]
    # Where the whole of an axis is read, an id for it can only be clipped to zero.
    others = [k for k in d.start_index_map if k != 0]
    plain = (
        own[1] is None
        and 0 in d.start_index_map
        and (clipped or not others)
        and d.collapsed_slice_dims in ((0,), ())
        and not d.operand_batching_dims
        and d.offset_dims == tuple(range(ids.ndim - 1, equation.outvars[0].aval.ndim))
        and p["slice_sizes"] == (1, *shape[1:])
    )
    if not plain:
        return None
    ids = ids[..., d.start_index_map.index(0)].astype(jnp.int32)  # bytes do not hold their number
    use = _rows(equation, own[0], ids)
    if use is None or clipped:
        return use
    # Otherwise JAX's gradients leave out ids that are out of range, whatever was read for them.
    there = (ids >= 0) & (ids < shape[0])
    return replace(use, reaches=there.reshape(*ids.shape, *[1] * len(d.offset_dims)))


def _sliced(equation: Any, read: Sequence[Any], own: Sequence[View | None]) -> Use | None:
    """W[i] with an index that the program finds."""
    if any(own[1:]) or equation.params["slice_sizes"] != (1, *equation.invars[0].aval.shape[1:]):
        return None
    return _rows(equation, own[0], jnp.asarray(read[1], jnp.int32))


def _rows(equation: Any, view: View | None, ids: Any) -> Use | None:
    """Rows of the identity times what flows back; ids that are out of range are clipped."""
    # Where an axis is made of several atoms, ids may count them in another order.
    if view is None or view.scale is not None or view.axes[0] != view.group([0]):
        return None
    n, places = view.size(view.axes[0]), range(1, len(view.axes))
    factor = jnp.clip(ids.reshape(1, -1, 1), 0, n - 1)

    def cotangent(g: Any) -> Any:
        free = [view.size(view.axes[k]) for k in places]
        return view.flat(g.reshape(1, factor.shape[1], *free), places, lead=2)

    return _use(view, equation, (), ([0], places), factor, cotangent)


def _convolution(equation: Any, read: Sequence[Any], own: Sequence[View | None]) -> Use | None:
    """Patches of the input times the filter: rows are positions of the output."""
    view, p = own[1], equation.params
    if view is None or own[0] is not None:
        return None
    if p["feature_group_count"] != 1 or p["batch_group_count"] != 1:
        return None
    d, A = p["dimension_numbers"], read[0].astype(equation.outvars[0].aval.dtype)
    space = [view.size(view.axes[k]) for k in d.rhs_spec[2:]]
    patches = jax.lax.conv_general_dilated_patches(
        A, space, p["window_strides"], p["padding"], p["lhs_dilation"], p["rhs_dilation"], d
    )
    inward, features = d.rhs_spec[1:], d.out_spec[1]
    moved = jnp.moveaxis(patches, features, -1)
    R = math.prod(moved.shape[:-1])
    lengths = [view.size(view.axes[k]) for k in inward]
    factor = view.flat(moved.reshape(1, R, *lengths), inward, lead=2)
    factor = factor if view.scale is None else factor * view.scale

    def cotangent(g: Any) -> Any:
        g = jnp.moveaxis(g, features, -1).reshape(1, R, -1)
        return view.flat(g, [d.rhs_spec[0]], lead=2)

    return _use(view, equation, (), (inward, [d.rhs_spec[0]]), factor, cotangent)


PLACES = {
    "dot_general": _product,
    "gather": _gathered,
    "dynamic_slice": _sliced,
    "conv_general_dilated": _convolution,
}
"""Products with a parameter: primitive -> the use, or None where it has no factors."""
