"""Where parameters enter a program: at each place the other operand and a zero that is added.

The gradient with respect to that zero is the cotangent of the place, and the gradient of the
parameter there a sum of outer products of the two. The program is walked equation by equation;
calls, branches and scans are entered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal, jaxpr_as_fun
from jaxtyping import Float

from ..core import Array
from ._places import PLACES, seen_through
from ._views import View

CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
}
"""Primitives that run one program on their operands and have no rule of their own."""

Cotangent = Callable[[Float[Array, "..."]], Float[Array, "B R q"]]


class Unsuited(Exception):
    """A leaf is used in a way that has no factors: its gradient is taken whole."""

    def __init__(self, leaves: Sequence[int]) -> None:
        self.leaves = frozenset(leaves)
        super().__init__(sorted(leaves))


@dataclass(frozen=True)
class Use:
    """One place: sum over rows r of `factor`[b, r] (x) `cotangent`(g)[b, r] on two groups of atoms.

    `batch` are the atoms of the axis b, on which the gradient is block by block; `at` are atoms
    held at one index, `steps` those that scans run over, each with its depth. `factor` of integers
    stands for rows of the identity. `shape` and `dtype` are those of the zero that is added.
    """

    leaf: int
    atoms: tuple[int, ...]
    at: tuple[tuple[int, int], ...]
    steps: tuple[tuple[int, int], ...]
    batch: tuple[int, ...]
    groups: tuple[tuple[int, ...], tuple[int, ...]]
    factor: Any
    shape: tuple[int, ...]
    dtype: Any
    cotangent: Cotangent = field(repr=False)
    reaches: Any = True
    """Where the parameter reaches the output at all; used in the walk that found it alone."""

    @property
    def layout(self) -> tuple[Any, ...]:
        """How the gradient is laid out: alike in all uses of a leaf, or it is taken whole."""
        held = tuple(atom for atom, _ in self.at)
        return self.atoms, held, self.batch, frozenset(self.groups)

    def over_steps(self, stacked: Any, length: int, depth: int) -> Use:
        """The use in all steps of a scan: each on an index of its own, or all on the same."""
        # A leaf of which an outer scan has taken a step is one and the same in all of these.
        apart = bool(self.steps) and self.steps[-1][1] == depth

        def joined(parts: Any) -> Any:
            if apart:  # (step, B, R, p) -> (step B, R, p)
                return parts.reshape(-1, *parts.shape[2:])
            rows = jnp.moveaxis(parts, 0, 1)
            return rows.reshape(rows.shape[0], -1, rows.shape[-1])

        return replace(
            self,
            steps=self.steps[:-1] if apart else self.steps,
            batch=(self.steps[-1][0], *self.batch) if apart else self.batch,
            factor=joined(stacked),
            shape=(length, *self.shape),
            cotangent=lambda g: joined(jax.vmap(self.cotangent)(g)),
        )


class Walk:
    """One pass through a program; `zeros` are those of its uses in order, absent to find them.

    `depth` counts the scans around it.
    """

    def __init__(
        self, whole: frozenset[int], zeros: Sequence[Any] | None = None, depth: int = 0
    ) -> None:
        self.whole, self.zeros, self.depth = whole, zeros, depth
        self.uses: list[Use] = []

    def run(
        self, program: Any, consts: Sequence[Any], values: Sequence[Any], views: Sequence[Any]
    ) -> list[Any]:
        """The outputs; `views` says of each input how it is a parameter, or None."""
        held: dict[Any, Any] = dict(zip(program.constvars, consts, strict=True))
        held.update(zip(program.invars, values, strict=True))
        seen: dict[Any, View] = {
            var: view
            for var, view in zip(program.invars, views, strict=True)
            if view is not None and view.leaf not in self.whole
        }
        for equation in program.eqns:
            read = [v.val if isinstance(v, Literal) else held[v] for v in equation.invars]
            own = [None if isinstance(v, Literal) else seen.get(v) for v in equation.invars]
            found, view = self._step(equation, read, own)
            held.update(zip(equation.outvars, found, strict=True))
            if view is not None:
                seen[equation.outvars[0]] = view
        leaving = [
            seen[v].leaf for v in program.outvars if not isinstance(v, Literal) and v in seen
        ]
        if leaving:
            raise Unsuited(leaving)
        return [v.val if isinstance(v, Literal) else held[v] for v in program.outvars]

    def _step(
        self, equation: Any, read: list[Any], own: list[View | None]
    ) -> tuple[list[Any], View | None]:
        name = equation.primitive.name
        if not any(own):
            return evaluated(equation, read), None
        if name in CALLS:
            return self._called(equation.params[CALLS[name]], read, own), None
        if name == "cond":
            return self._branches(equation, read, own), None
        if name == "scan":
            return self._scanned(equation, read, own), None
        view = seen_through(equation, read, own)
        if view is not None:
            return evaluated(equation, read), view
        place = PLACES[name](equation, read, own) if name in PLACES else None
        if place is None:
            # Of two parameters that meet the smaller one is taken whole: the other may be seen yet.
            met = [view for view in own if view is not None]
            raise Unsuited([min(met, key=lambda view: math.prod(view.atoms)).leaf])
        (out,) = evaluated(equation, read)
        self.uses.append(place)
        if self.zeros is None:
            return [out], None
        zero = self.zeros[len(self.uses) - 1]
        return [out + jnp.where(place.reaches, zero, 0.0)], None

    def _called(self, program: Any, read: Sequence[Any], own: Sequence[Any]) -> list[Any]:
        return self.run(getattr(program, "jaxpr", program), consts_of(program), read, own)

    def _branches(self, equation: Any, read: list[Any], own: list[View | None]) -> list[Any]:
        """All branches, and a choice between what they give: as `vmap` makes of them."""
        if own[0] is not None:
            raise Unsuited([own[0].leaf])
        found = [self._called(branch, read[1:], own[1:]) for branch in equation.params["branches"]]
        index = jnp.clip(jnp.asarray(read[0], jnp.int32), 0, len(found) - 1)
        stacked = [jnp.stack(parts) for parts in zip(*found, strict=True)]
        return [jax.lax.dynamic_index_in_dim(s, index, keepdims=False) for s in stacked]

    def _scanned(self, equation: Any, read: list[Any], own: list[View | None]) -> list[Any]:
        """A scan whose steps take their zeros and give their factors."""
        program, length = equation.params["jaxpr"], equation.params["length"]
        body = getattr(program, "jaxpr", program)
        # JAX changes the parameters that tell constants, carry and columns apart; not the ranks.
        columns = _of_one_shape(equation.invars, body.invars)
        carried = _of_one_shape(equation.outvars, body.outvars)
        fixed = columns - carried
        bad = [v for v in own[fixed:columns] if v is not None]
        bad += [v for v in own[columns:] if v is not None and len(v.axes[0]) != 1]
        if bad:
            raise Unsuited([view.leaf for view in bad])
        depth = self.depth + 1
        steps = [None if view is None else view.at_step(depth) for view in own[columns:]]
        views = [*own[:columns], *steps]
        consts, start, xs = read[:fixed], read[fixed:columns], read[columns:]
        found: list[Use] = []

        def step(carry: Any, at: Any, zeros: Any) -> Any:
            walk = Walk(self.whole, zeros, depth)
            out = walk._called(program, [*consts, *carry, *at], views)
            found[:] = walk.uses
            return out[:carried], (out[carried:], [use.factor for use in walk.uses])

        zeros = None
        if self.zeros is not None:
            one = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in xs]
            jax.eval_shape(lambda c, x: step(c, x, None), list(start), one)
            zeros = list(self.zeros[len(self.uses) : len(self.uses) + len(found)])
        last, (ys, factors) = jax.lax.scan(
            lambda carry, at: step(carry, *at),
            list(start), (list(xs), zeros), length=length, reverse=equation.params["reverse"],
        )  # fmt: skip
        for use, stacked in zip(found, factors, strict=True):
            self.uses.append(use.over_steps(stacked, length, depth))
        return [*last, *ys]


def _of_one_shape(outer: Sequence[Any], inner: Sequence[Any]) -> int:
    """How many variables of a scan are as they are in its body: the others have an axis more."""
    return sum(a.aval.shape == b.aval.shape for a, b in zip(outer, inner, strict=True))


def consts_of(program: Any) -> Sequence[Any]:
    """The constants of a program, closed or not."""
    return getattr(program, "consts", ())


def evaluated(equation: Any, read: Sequence[Any]) -> list[Any]:
    """The outputs of one equation, its own rules for derivatives included."""
    inputs = [v for v in equation.invars if not isinstance(v, Literal)]
    frame = jax.make_jaxpr(lambda *values: values)(*(_shape(v) for v in inputs))
    names = dict(zip(inputs, frame.jaxpr.invars, strict=True))
    own = [v if isinstance(v, Literal) else names[v] for v in equation.invars]
    alone = equation.replace(invars=own)
    body = frame.jaxpr.replace(eqns=[alone], outvars=list(alone.outvars))
    values = [r for v, r in zip(equation.invars, read, strict=True) if not isinstance(v, Literal)]
    return list(jaxpr_as_fun(frame.replace(jaxpr=body))(*values))


def _shape(variable: Any) -> jax.ShapeDtypeStruct:
    aval = variable.aval
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)
