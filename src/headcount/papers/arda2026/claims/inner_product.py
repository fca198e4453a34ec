"""The inner product of Sec. 5.4 of arda2026 is not one of functions: erratum E13.

Heads come in pairs (U, W), (-U, W) of equal probability, and sigma is odd. A map n with n_c and
n_w even in U and n_u odd then gives f~(X; n) = 0 for every X, while E|n|^2 > 0.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from ....theory import Choice, Reals, Record, false, given
from ....theory.slow import dot
from .. import quantities
from ..constants import state


class Reflected(Record):
    """Heads (U, W) and (-U, W), a transport map at both, a null map at the first; one sample."""

    X = Reals("T", "d")
    q = Reals("d")
    U = Reals("k", "d")
    W = Reals("k", "d", "d")
    plus = Reals("k", "p")
    minus = Reals("k", "p")
    null = Reals("k", "p")
    activation = Choice(
        "tanh", "erf", "erf-normal", "sin", "arctan", "algebraic", "centred-logistic"
    )

    shapes = ({"T": 3, "d": 1, "k": 1, "p": 3}, {"T": 3, "d": 2, "k": 2, "p": 7})

    def outside(self) -> str | None:
        """p = 1 + d + d^2, and sigma is odd."""
        d, p = self.q.shape[0], self.null.shape[1]
        if p != 1 + d + d * d:
            return f"p = {p} is not 1 + d + d^2 with d = {d}"
        return super().outside()


def mirror(d):
    """What the null map is multiplied with at -U: c and W alike, U opposite."""
    return np.concatenate([np.ones(1), -np.ones(d), np.ones(d * d)])[None]


def energy(plus, minus):
    """E|v|^2."""
    return (jnp.sum(plus**2) + jnp.sum(minus**2)) / (2 * plus.shape[0])


def difference(i):
    """|f~(X; v + n) - f~(X; v)|, in units of the largest entry of n."""
    heads = jnp.concatenate([i.U, -i.U]), jnp.concatenate([i.W, i.W])
    phi = quantities.sample_features(i.sigma, i.X, i.q, *heads)
    null = jnp.concatenate([i.null, mirror(i.q.shape[0]) * i.null])
    return jnp.abs(jnp.mean(jnp.sum(phi * null, axis=-1))) / (1e-300 + jnp.max(jnp.abs(null)))


def same_functions():
    """One feature, v_c = +-1 at +-U, and n_c = 1: the same function at twice the energy."""
    one, v = np.ones((1, 1)), np.array([[1.0, 0.0, 0.0]])
    base = Reflected(X=one, q=one[0], U=one, W=0 * one[None], plus=v, minus=-v, null=v)
    return base, base.changed(null=0 * v)


@state.claim(
    "inner-product",
    "E<v, v'> as an inner product of functions",
    where="Sec. 5.4, the display after Eq. (9)",
    proved="Sec. 5.4",
    on=Reflected,
    says=r"\langle\tilde f(\cdot;v),\tilde f(\cdot;v')\rangle_{\mathcal F}"
    r":=\mathbb E\langle v,v'\rangle",
    forms={
        "printed": false("E|v + n|^2 <= E|v|^2 for a map n with f~(.; n) = 0", "E13"),
        "corrected": ("the smallest E|v + n|^2 over such n is that of the mirrored part", "E13"),
    },
    no_rival="it compares two squared norms",
    given=(given("both maps give the same f~(X)", difference, 1e-9),),
    tight=same_functions,
)
def inner_product(q, plus, minus, null, form):
    """E|v|^2 is the same for all transport maps v of one function (printed), that is, the inner
    product is one of functions. Corrected: E|v|^2 is smallest for the part of v that no null map
    can remove, and the squared norm of f~ is at most that."""
    turned = mirror(q.shape[0])
    moved = energy(plus + null, minus + turned * null)
    if form == "printed":
        return moved, energy(plus, minus)
    least = (plus - turned * minus) / 2
    return energy(least, -turned * least), moved


@inner_product.twin
def _(num, q, plus, minus, null, form):
    d = len(q)
    given_maps, moved = [*plus, *minus], []
    for k, (v, n) in enumerate(zip(given_maps, [*null, *null], strict=True)):
        at_minus = k >= len(plus)
        turned = [-y if at_minus and 1 <= r <= d else y for r, y in enumerate(n)]
        moved.append([x + y for x, y in zip(v, turned, strict=True)])
    energies = [num.total([dot(v, v) for v in maps]) / len(maps) for maps in (given_maps, moved)]
    if form == "printed":
        return energies[1], energies[0]
    least = []
    for v, w in zip(plus, minus, strict=True):
        gaps = [x + y if 1 <= k <= d else x - y for k, (x, y) in enumerate(zip(v, w, strict=True))]
        least.append(dot(gaps, gaps) / 4)
    return num.total(least) / len(least), energies[1]
