"""The gradient of any program in factors: (input, cotangent) where a parameter enters a product.

    W in y = W a        dL/dW = sum over positions t of (dL/dy_t) a_t^T

Every leaf of the parameters that enters products only, all laid out alike, has such factors; the
positions of several uses (tied weights, steps of a scan) stand below each other, and their cross
terms follow. Every other leaf keeps its Jacobian.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..core import _tree as tree
from ._features import Factors
from ._generic import as_trained
from ._uses import Unsuited, Use, Walk, consts_of
from ._views import View

MOST_BLOCKS = 64
"""Diagonal blocks of a gradient that are kept apart; with more of them it is taken whole."""

Part = tuple[str, int]
"""A block's name, and which of its parts: the kernel of a block is the sum of its parts'."""


class Program:
    """f at given shapes as a program: which leaves move, where they enter."""

    def __init__(self, model: Any, params: Any, x: Any, names: Sequence[str]) -> None:
        self.model, self.params = as_trained(model, params)
        self.leaves, structure = jax.tree.flatten(self.params)
        held = tree.subtrees(self.params, names)
        owners = {name: [name] * len(leaves) for name, leaves in held.items()}
        owned = tree.with_subtrees(jax.tree.map(lambda _: "", self.params), owners)
        self.owner = [  # a leaf without numbers has no gradient
            name if name and jnp.size(leaf) else None
            for name, leaf in zip(jax.tree.leaves(owned), self.leaves, strict=True)
        ]

        def flat(leaves: Any, x: Any) -> Any:
            return jnp.ravel(self.model(jax.tree.unflatten(structure, leaves), x))

        self.closed = jax.make_jaxpr(flat)(self.leaves, x)
        self.inputs = jax.tree.leaves(x)
        self.whole, self.uses = self._found()

    @property
    def without_factors(self) -> list[str]:
        """The paths of arrays that enter otherwise than by products, whose gradient is whole."""
        found, _ = jax.tree_util.tree_flatten_with_path(self.params)
        paths = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in found]
        return [paths[k] for k in sorted(self.whole) if found[k][1].ndim > 1]

    def run(self, walk: Walk, leaves: Sequence[Any], inputs: Sequence[Any]) -> Any:
        """The outputs of one walk."""
        views: list[View | None] = [
            None if owner is None else View.of(k, jnp.shape(leaf))
            for k, (leaf, owner) in enumerate(zip(leaves, self.owner, strict=True))
        ]
        views += [None] * len(inputs)
        body = getattr(self.closed, "jaxpr", self.closed)
        (out,) = walk.run(body, consts_of(self.closed), [*leaves, *inputs], views)
        return out

    def _found(self) -> tuple[frozenset[int], list[Use]]:
        """The leaves whose gradient is taken whole, and the uses of all others."""
        whole: frozenset[int] = frozenset()
        while True:
            walk = Walk(whole)
            try:
                jax.eval_shape(lambda p, x: self.run(walk, p, x), self.leaves, self.inputs)  # noqa: B023
            except Unsuited as problem:
                whole |= problem.leaves
                continue
            layouts: dict[int, set[Any]] = {}
            for use in walk.uses:
                layouts.setdefault(use.leaf, set()).add(use.layout)
            many = {
                u.leaf for u in walk.uses if math.prod(u.atoms[a] for a in u.batch) > MOST_BLOCKS
            }
            unlike = {leaf for leaf, found in layouts.items() if len(found) > 1} | many
            if not unlike:
                return whole, walk.uses
            whole |= unlike

    def factors(self) -> dict[Part, Factors]:
        """The factors (o, R, p) of every part; one that all outputs share has o = 1."""
        moving = {k: self.leaves[k] for k in self.whole}

        def f(zeros: Any, moving: Any) -> Any:
            walk = Walk(self.whole, zeros)
            leaves = [moving.get(k, leaf) for k, leaf in enumerate(self.leaves)]
            return self.run(walk, leaves, self.inputs), [use.factor for use in walk.uses]

        zeros = [jnp.zeros(use.shape, use.dtype) for use in self.uses]
        out, pull, inputs = jax.vjp(f, zeros, moving, has_aux=True)
        flows, jacobians = jax.vmap(pull)(jnp.eye(len(out), dtype=out.dtype))
        terms: dict[tuple[Any, ...], list[tuple[Any, Any]]] = {}
        first: dict[tuple[Any, ...], Use] = {}
        for use, a, g in zip(self.uses, inputs, flows, strict=True):
            key = (use.leaf, use.at)
            # (1, B, R, p), (o, B, R, q), in the leaf's precision where the program takes a lower
            kind = jnp.asarray(self.leaves[use.leaf]).dtype
            ids = jnp.issubdtype(a.dtype, jnp.integer)
            pair = (
                a[None] if ids else a[None].astype(kind),
                jax.vmap(use.cotangent)(g).astype(kind),
            )
            lead = first.setdefault(key, use)
            if use.groups != lead.groups:
                pair = pair[::-1]
            terms.setdefault(key, []).append(pair)
        found: dict[str, list[Factors]] = {}
        for key, pairs in terms.items():
            name = self.owner[key[0]]
            assert name is not None
            found.setdefault(name, []).extend(_joined(pairs, first[key]))
        for k in sorted(self.whole):
            name = self.owner[k]
            assert name is not None
            J = jacobians[k]
            found.setdefault(name, []).append((J.reshape(J.shape[0], 1, -1),))
        merged = {name: _merged(parts) for name, parts in found.items()}
        return {(name, k): one for name, parts in merged.items() for k, one in enumerate(parts)}


def traced_features(
    model: Any, params: Any, x: Any, names: Sequence[str], told: list[str] | None = None
) -> dict[Part, Factors]:
    """The factors of one sample; a block that does not enter has none.

    `told` is given the paths of the arrays that have no factors.
    """
    program = Program(model, params, x, names)
    if told is not None:
        told += program.without_factors
    return program.factors()


def _merged(parts: list[Factors]) -> list[Factors]:
    """The gradients of a block as one, but for those that may be a factor of another part.

    A bias has the cotangent of its product as its gradient: see `_contract.contract_parts`.
    """
    known = {factor.shape for part in parts if len(part) == 2 for factor in part}
    plain = [part[0] for part in parts if len(part) == 1 and part[0].shape not in known]
    if len(plain) < 2:
        return parts
    rest = [part for part in parts if len(part) == 2 or part[0].shape in known]
    return [*rest, (jnp.concatenate(plain, axis=2),)]


def _joined(pairs: list[tuple[Any, Any]], use: Use) -> list[Factors]:
    """The uses of one leaf as one: rows below each other, a part for each diagonal block."""
    outputs = max(side.shape[0] for pair in pairs for side in pair)
    sides = []
    for k, group in enumerate(use.groups):
        own = [pair[k] for pair in pairs]
        if any(a.dtype.kind == "f" for a in own):
            size = math.prod(use.atoms[atom] for atom in group)
            dtype = next(a.dtype for a in own if a.dtype.kind == "f")
            own = [
                a if a.dtype.kind == "f" else jax.nn.one_hot(a[..., 0], size, dtype=dtype)
                for a in own
            ]
        if len({a.shape[0] for a in own}) > 1:
            own = [jnp.broadcast_to(a, (outputs, *a.shape[1:])) for a in own]
        sides.append(jnp.concatenate(own, axis=2))
    left, right = sides
    return [_cheapest((left[:, b], right[:, b]), use) for b in range(left.shape[1])]


def _cheapest(factors: Factors, use: Use) -> Factors:
    """The two factors, or the gradient itself where its products cost less.

    For a pair of samples with o outputs: R^2 (p + q o^2 + 32 o^2) against p q o^2, if the first is
    shared by all outputs; see `_features.cheapest`.
    """
    first, second = factors
    (o1, R, p), (o2, _, q) = first.shape, second.shape
    o = max(o1, o2)
    ids = first.dtype.kind != "f"
    if ids:
        p = math.prod(use.atoms[atom] for atom in use.groups[0])
    pairs = R * R * ((0 if ids else p * o1 * o1) + q * o2 * o2 + 32 * o * o)
    if R == 1 or 3 * p * q * o * o >= 2 * pairs:
        return factors
    if ids:
        outer = jnp.zeros((o, p, q), second.dtype).at[:, first[0, :, 0]].add(second)
    else:
        outer = jnp.einsum("otp,utq->oupq" if 1 in (o1, o2) else "otp,otq->opq", first, second)
    return (outer.reshape(o, 1, p * q),)
