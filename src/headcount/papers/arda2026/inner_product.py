"""The inner product of Sec. 5.4 of arda2026 is not one of functions: erratum E13.

Heads come in pairs (U, W), (-U, W) of equal probability, and sigma is odd. A map n with n_c and
n_w even in U and n_u odd then gives f~(X; n) = 0 for every X, while E|n|^2 > 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Hypothesis, Sides, instance_class
from ...theory.domain import Domain
from ...theory.families import shaped
from ...theory.slow import Arithmetic, activation, dot, flat
from . import naive
from . import quantities as model
from .declare import claim, false
from .naive import Data

ODD = ("tanh", "erf", "erf-normal", "sin", "arctan", "algebraic", "centred-logistic")


@instance_class
@dataclass(frozen=True)
class MirroredInstance(Domain):
    """Heads (U, W) and (-U, W), a transport map at both, a null map at the first; one sample."""

    X: Float[Array, "T d"]
    q: Float[Array, "d"]
    U: Float[Array, "k d"]
    W: Float[Array, "k d d"]
    plus: Float[Array, "k p"]
    minus: Float[Array, "k p"]
    null: Float[Array, "k p"]
    activation: str = "tanh"

    def outside(self) -> str | None:
        """p = 1 + d + d^2, and sigma is odd."""
        d, p = self.q.shape[0], self.null.shape[1]
        if p != 1 + d + d * d:
            return f"p = {p} is not 1 + d + d^2 with d = {d}"
        return None if self.activation in ODD else f"activation is not one of {ODD}"


def _mirror(d: int) -> Float[Array, "1 p"]:
    """What the null map is multiplied with at -U: c and W alike, U opposite."""
    return np.concatenate([np.ones(1), -np.ones(d), np.ones(d * d)])[None]


def _energy(plus: Any, minus: Any) -> Any:
    """E|v|^2."""
    return (jnp.sum(plus**2) + jnp.sum(minus**2)) / (2 * plus.shape[0])


def _sides(i: MirroredInstance, variant: str) -> Sides:
    mirror = _mirror(i.q.shape[0])
    moved = _energy(i.plus + i.null, i.minus + mirror * i.null)
    if variant == "printed":
        return Sides(moved, _energy(i.plus, i.minus))
    least = (i.plus - mirror * i.minus) / 2
    return Sides(_energy(least, -mirror * least), moved)


def _maps_naively(data: Data) -> list[tuple[list[Any], list[Any]]]:
    """(v, v + n) at every head, those at -U last."""
    d = len(data["q"])
    pairs = [
        (v, [x + y for x, y in zip(v, n, strict=True)])
        for v, n in zip(data["plus"], data["null"], strict=True)
    ]
    for v, n in zip(data["minus"], data["null"], strict=True):
        turned = [-y if 1 <= k <= d else y for k, y in enumerate(n)]
        pairs.append((v, [x + y for x, y in zip(v, turned, strict=True)]))
    return pairs


def _naive_sides(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    maps = _maps_naively(data)
    given = num.total([dot(v, v) for v, _ in maps]) / len(maps)
    moved = num.total([dot(w, w) for _, w in maps]) / len(maps)
    if variant == "printed":
        return moved, given
    d, least = len(data["q"]), []
    for v, w in zip(data["plus"], data["minus"], strict=True):
        gaps = [x + y if 1 <= k <= d else x - y for k, (x, y) in enumerate(zip(v, w, strict=True))]
        least.append(dot(gaps, gaps) / 4)
    return num.total(least) / len(least), moved


def _difference(i: MirroredInstance) -> Any:
    """|f~(X; v + n) - f~(X; v)|, in units of the largest entry of n."""
    heads = jnp.concatenate([i.U, -i.U]), jnp.concatenate([i.W, i.W])
    phi = model.sample_features(i.sigma, i.X, i.q, *heads)
    null = jnp.concatenate([i.null, _mirror(i.q.shape[0]) * i.null])
    return jnp.abs(jnp.mean(jnp.sum(phi * null, axis=-1))) / (1e-300 + jnp.max(jnp.abs(null)))


def _difference_naively(num: Arithmetic, data: Data) -> Any:
    sigma = activation(num, data["activation"])
    turned = [[-u for u in U] for U in data["U"]]
    total = num.number(0)
    heads = zip([*data["U"], *turned], [*data["W"], *data["W"]], _maps_naively(data), strict=True)
    for U, W, (v, w) in heads:
        unit = naive.head(num, sigma, data["X"], data["q"], U, W)
        gap = [y - x for x, y in zip(v, w, strict=True)]
        total = total + dot([unit.h, *unit.gradient], gap)
    size = num.largest([num.number("1e-300"), *(abs(n) for n in flat(data["null"]))])
    return abs(total) / (2 * len(turned)) / size


SAME_FUNCTION = Hypothesis(
    "both maps give the same f~(X)", _difference, _difference_naively, threshold=1e-9
)


def _draw(rng: np.random.Generator, count: int, *, d: int, k: int) -> MirroredInstance:
    plus, minus, null = (rng.normal(size=(count, k, 1 + d + d * d)) for _ in range(3))
    tokens, heads = rng.normal(size=(count, 3, d)), rng.normal(size=(count, k, d))
    W = rng.normal(size=(count, k, d, d))
    return MirroredInstance(tokens, tokens[:, -1], heads, W, plus, minus, null)


def _targets() -> tuple[MirroredInstance, ...]:
    """One feature, v_c = +-1 at +-U, and n_c = 1: the same function at twice the energy."""
    one = np.ones((1, 1))
    v = np.array([[1.0, 0.0, 0.0]])
    base = MirroredInstance(one, one[0], one, 0 * one[None], v, -v, v)
    return base, MirroredInstance(one, one[0], one, 0 * one[None], v, -v, 0 * v)


claim(
    "inner-product",
    "E<v, v'> as an inner product of functions",
    "Sec. 5.4, the display after Eq. (9)",
    "E|v|^2 is the same for all transport maps v of one function (printed), that is, the inner "
    "product is one of functions. Corrected: E|v|^2 is smallest for the part of v that no null map "
    "can remove, and the squared norm of f~ is at most that.",
    r"\langle\tilde f(\cdot;v),\tilde f(\cdot;v')\rangle_{\mathcal F}"
    r":=\mathbb E\langle v,v'\rangle",
    sides=_sides,
    naive=_naive_sides,
    families=tuple(shaped("mirrored", _draw, lambda i: i, d=d, k=k) for d, k in ((1, 1), (2, 2))),
    targets=_targets,
    forms={
        "printed": false("E|v + n|^2 <= E|v|^2 for a map n with f~(.; n) = 0", "E13"),
        "corrected": ("the smallest E|v + n|^2 over such n is that of the mirrored part", "E13"),
    },
    hypotheses=(SAME_FUNCTION,),
    where="Sec. 5.4",
)
