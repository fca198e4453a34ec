"""Theorem 3 of wu2023: the Hessian shrinks with the width, for which initialisations?

Four copies of every unit are a network of four times the width, whose weights are as typical of
the initialisation as one copy's. The Hessian of both is exact for d = 1, so a single instance
shows how its norm goes with the width, whatever constant the theorem's O hides.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from ...core import Array, self_attention
from ...theory import Family, Sides, instance_class
from ...theory.domain import Domain
from ...theory.duals import Dual, duals
from ...theory.slow import Arithmetic, dot, norm, softmax
from ...theory.slow_spectrum import extreme_eigenvalues
from .declare import claim, false, identity
from .model import EncoderParams
from .naive import Data, Number, Theta, gradient_Q

INITIALISATIONS = ("ntk", "lecun", "he")
COPIES = 4


@instance_class
@dataclass(frozen=True)
class ScalarInstance(Domain):
    """One sample with d = 1 and standard normals for every weight of d_m units."""

    x: Float[Array, "T"]
    g_Q: Float[Array, "d_m"]
    g_K: Float[Array, "d_m"]
    g_V: Float[Array, "d_m"]
    g_O: Float[Array, "d_m"]
    initialisation: str = "ntk"

    positive: ClassVar[tuple[str, ...]] = ()

    def outside(self) -> str | None:
        """The three of Table 1."""
        known = self.initialisation in INITIALISATIONS
        return None if known else f"initialisation is not one of {INITIALISATIONS}"


def _scales(initialisation: str, d_m: int) -> tuple[float, float, float]:
    """Standard deviations of inner and output weights (d = 1) and tau1 [wu2023, Table 1]."""
    inner = 2**0.5 if initialisation == "he" else 1.0
    if initialisation == "ntk":
        return inner, 1.0, d_m**-0.5
    return inner, inner / d_m**0.5, 1.0


def _hessian(i: ScalarInstance, copies: int) -> Any:
    """Hess_theta f at `copies` copies of every unit, tau0 = 1/d_m, by autodiff."""
    d_m = copies * i.g_Q.shape[0]
    inner, outer, tau1 = _scales(i.initialisation, d_m)
    g_Q, g_K, g_V, g_O = (jnp.concatenate([g] * copies) for g in (i.g_Q, i.g_K, i.g_V, i.g_O))
    theta = EncoderParams(inner * g_Q, inner * g_K, inner * g_V, outer * g_O)
    flat, unravel = ravel_pytree(theta)

    def f(t: Any) -> Any:
        w_Q, w_K, w_V, w_O = unravel(t)
        logit = jnp.reshape(w_Q @ w_K / d_m, (1, 1))
        mean = self_attention(i.x[:, None], logit) @ i.x
        return tau1 * jnp.sum(jax.nn.relu(jnp.outer(mean, w_V)) @ w_O)

    return jax.hessian(f)(flat)


def _norm(matrix: Any) -> Any:
    return jnp.max(jnp.abs(jnp.linalg.eigvalsh((matrix + matrix.T) / 2)))


def scales_naively(num: Arithmetic, name: str, d_m: int) -> tuple[Number, Number, Number]:
    """The same in slow arithmetic."""
    inner = num.sqrt(num.number(2)) if name == "he" else num.number(1)
    root = num.sqrt(num.number(d_m))
    return (inner, num.number(1), 1 / root) if name == "ntk" else (inner, inner / root, root / root)


def _hessian_naively(num: Arithmetic, data: Data, copies: int) -> list[list[Number]]:
    """The closed form, entry by entry."""
    x, d_m, name = data["x"], copies * len(data["g_Q"]), data["initialisation"]
    inner, outer, tau1 = scales_naively(num, name, d_m)
    tau0 = num.number(1) / d_m
    w_Q, w_K, w_V = ([inner * g for g in data[k]] * copies for k in ("g_Q", "g_K", "g_V"))
    w_O = [outer * g for g in data["g_O"]] * copies
    M = tau0 * dot(w_Q, w_K)
    zero = num.number(0)
    a, b, c, e = zero, zero, [zero] * d_m, [zero] * d_m
    for token in x:
        beta = softmax(num, [token * M * other for other in x])
        m = dot(beta, x)
        v = dot(beta, [(other - m) ** 2 for other in x])
        third = dot(beta, [(other - m) ** 3 for other in x])
        on = [bool(w * m > 0) for w in w_V]
        s = num.total([p * q for p, q, k in zip(w_V, w_O, on, strict=True) if k])
        a = a + tau0**2 * tau1 * token**2 * s * third
        b = b + tau0 * tau1 * token * s * v
        c = [old + tau1 * m if k else old for old, k in zip(c, on, strict=True)]
        e = [old + tau0 * tau1 * token * v if k else old for old, k in zip(e, on, strict=True)]
    return _assembled(num, (w_Q, w_K, w_V, w_O), a, b, c, e)


def _assembled(num: Arithmetic, w: Any, a: Any, b: Any, c: Any, e: Any) -> list[list[Number]]:
    w_Q, w_K, w_V, w_O = w
    d_m = len(w_Q)
    H = [[num.number(0)] * (4 * d_m) for _ in range(4 * d_m)]
    logit = [*w_K, *w_Q]
    other = [p * q for p, q in zip([*w_O, *w_V], [*e, *e], strict=True)]
    for k in range(2 * d_m):
        for l in range(2 * d_m):
            H[k][l] = a * logit[k] * logit[l]
            H[k][2 * d_m + l] = H[2 * d_m + l][k] = logit[k] * other[l]
    for k in range(d_m):
        H[k][d_m + k] = H[d_m + k][k] = H[k][d_m + k] + b
        H[2 * d_m + k][3 * d_m + k] = H[3 * d_m + k][2 * d_m + k] = c[k]
    return H


def _norm_naively(num: Arithmetic, matrix: list[list[Number]]) -> Number:
    low, high = extreme_eigenvalues(num, matrix)
    return num.largest([abs(low), abs(high)])


def _shrinks(i: ScalarInstance, variant: str) -> Sides:
    one, four = _hessian(i, 1), _hessian(i, COPIES)
    if variant == "printed" or i.initialisation == "ntk":
        return Sides(_norm(four), 0.5 * _norm(one))
    return Sides(_norm(four), jnp.sqrt(jnp.sum(one**2)))


def _shrinks_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    one, four = (_hessian_naively(num, data, copies) for copies in (1, COPIES))
    if variant == "printed" or data["initialisation"] == "ntk":
        return _norm_naively(num, four), _norm_naively(num, one) / 2
    return _norm_naively(num, four), norm(num, [entry for row in one for entry in row])


def _draw(rng: np.random.Generator, count: int, *, name: str, d_m: int) -> ScalarInstance:
    x = np.exp(rng.uniform(-1, 1, (count, 1))) * rng.normal(size=(count, 3))
    g_Q, g_K, g_V, g_O = rng.normal(size=(4, count, d_m))
    return ScalarInstance(x, g_Q, g_K, g_V, g_O, name)


def _project(i: ScalarInstance) -> ScalarInstance:
    return jax.tree.map(lambda leaf: jnp.clip(leaf, -30.0, 30.0), i)


def _switched_on(i: ScalarInstance) -> ScalarInstance:
    """Tokens and values positive, so that every unit is on and b is not zero."""
    inside = _project(i)
    x, g_V, g_O = (jnp.abs(part) + 0.1 for part in (inside.x, inside.g_V, inside.g_O))
    return replace(inside, x=x, g_V=g_V, g_O=g_O)


FAMILIES = tuple(
    # Third derivatives take long to compile and help little: the ratio hardly varies.
    Family(
        f"scalar tokens {name}",
        functools.partial(_draw, name=name, d_m=1),
        _project,
        differentiable=False,
    )
    for name in INITIALISATIONS
)
ON = tuple(replace(family, project=_switched_on) for family in FAMILIES)


def lecun() -> ScalarInstance:
    """Tokens 1 and 0.5, every normal 1, LeCun: H_OV does not shrink."""
    one = np.ones(1)
    return ScalarInstance(np.array([1.0, 0.5]), one, one, one, one, "lecun")


claim(
    "theorem-3",
    "The Hessian shrinks like d_m^{-1/2}",
    "Theorem 3, (69)-(75)",
    "With tau0 = 1/d_m and d = 1, ||H|| is of order d_m^{-1/2}: four copies of every unit halve "
    "it. The theorem names no initialisation.",
    r"\|H(\theta)\|_2\le O(d_m^{-1/2})",
    sides=_shrinks,
    naive=_shrinks_naive,
    families=FAMILIES,
    targets=lambda: (lecun(), replace(lecun(), initialisation="ntk")),
    forms={
        "printed": false("any initialisation of Table 1: H_OV does not shrink for LeCun", "E21"),
        "corrected": (
            "NTK, where it halves exactly; LeCun and He: at most ||H||_F of one copy",
            "E21",
        ),
    },
    errata=("E3",),
    where="Sec. 4.3 and App. D.3",
)


def _mixed_blocks(i: ScalarInstance, variant: str) -> Sides:
    """H_QK by autodiff against a w_K w_Q^T, a from H_QQ = a w_K w_K^T, with or without b I."""
    H, d_m = _hessian(i, 1), i.g_Q.shape[0]
    inner, outer, tau1 = _scales(i.initialisation, d_m)
    w_Q, w_K, w_V, w_O = inner * i.g_Q, inner * i.g_K, inner * i.g_V, outer * i.g_O
    beta = self_attention(i.x[:, None], jnp.reshape(w_Q @ w_K / d_m, (1, 1)))
    mean = beta @ i.x
    gaps = i.x[None, :] - mean[:, None]
    s = jnp.where(jnp.outer(mean, w_V) > 0, (w_V * w_O)[None, :], 0.0).sum(axis=1)
    a = tau1 / d_m**2 * jnp.sum(i.x**2 * s * jnp.sum(beta * gaps**3, axis=1))
    b = tau1 / d_m * jnp.sum(i.x * s * jnp.sum(beta * gaps**2, axis=1))
    closed = a * jnp.outer(w_K, w_Q) + (0.0 if variant == "printed" else b) * jnp.eye(d_m)
    return Sides(jnp.ravel(H[:d_m, d_m : 2 * d_m]), jnp.ravel(closed), scale=jnp.max(jnp.abs(H)))


def _mixed_blocks_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    """H_QK by dual numbers through grad_Q, against the closed form."""
    d_m, dual = len(data["g_Q"]), duals(num)
    inner, outer, tau1 = scales_naively(num, data["initialisation"], d_m)
    tau = [Dual(num.number(1) / d_m, num.number(0)), Dual(tau1, num.number(0))]
    X = [[Dual(token, num.number(0))] for token in data["x"]]
    columns = []
    for moving in range(d_m):
        blocks = {
            name: [
                [Dual(inner * g, num.number(int(name == "g_K" and k == moving)))]
                for k, g in enumerate(data[name])
            ]
            for name in ("g_Q", "g_K", "g_V")
        }
        w_O = [Dual(outer * g, num.number(0)) for g in data["g_O"]]
        theta = Theta(blocks["g_Q"], blocks["g_K"], blocks["g_V"], w_O)
        columns.append([row[0].slope for row in gradient_Q(dual, X, theta, tau)])
    mixed = [columns[l][k] for k in range(d_m) for l in range(d_m)]
    H = _hessian_naively(num, data, 1)
    closed = [[H[k][d_m + l] for l in range(d_m)] for k in range(d_m)]
    if variant == "printed":
        for k in range(d_m):  # a w_K w_Q^T from H_QQ = a w_K w_K^T
            closed[k][k] = H[k][k] / data["g_K"][k] * data["g_Q"][k]
    return mixed, [entry for row in closed for entry in row]


identity(
    "theorem-3-mixed",
    "The block of queries and keys",
    "(71)-(73)",
    "H_QK = a w_K w_Q^T, as printed; the derivative of the logit itself adds b I. Left: "
    "derivatives; right: the formula.",
    r"H_{QK}=a\,w_Kw_Q^\top+bI",
    sides=_mixed_blocks,
    naive=_mixed_blocks_naive,
    families=ON,
    targets=lambda: (lecun(),),
    forms={
        "printed": false("without b I", "E21"),
        "corrected": ("with b I", "E21"),
    },
    where="App. D.3",
)
