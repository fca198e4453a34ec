"""Lemmas 8 and 11 of wu2023: the size of softmax's output, and its Jacobian."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...theory import Sides
from ...theory.slow import Arithmetic, dot, norm, softmax
from .declare import claim, identity
from .instances import LOGITS, SoftmaxInstance
from .naive import Data

APPENDIX = "App. C.1"


def _targets() -> tuple[SoftmaxInstance, ...]:
    """Equal weights, and nearly all weight on one token."""
    signs = np.array([1.0, -1.0])
    return SoftmaxInstance(np.zeros(2), signs), SoftmaxInstance(40.0 * signs, signs)


claim(
    "lemma-8-lower",
    "Softmax output from below",
    "Lemma 8",
    "1/sqrt(d_s) <= |softmax(u)|: the quadratic mean of the weights is at least their mean.",
    r"1/\sqrt{d_s}\le\|\mathrm{softmax}(u)\|_2",
    sides=lambda i, variant: Sides(1 / i.u.shape[0] ** 0.5, jnp.linalg.norm(jax.nn.softmax(i.u))),
    naive=lambda num, data, variant: (
        1 / num.sqrt(num.number(len(data["u"]))),
        norm(num, softmax(num, data["u"])),
    ),
    families=LOGITS,
    targets=_targets,
    forms={"printed": ("attained by equal weights; the proof's AM-GM is QM-AM", "E25")},
    where=APPENDIX,
)

claim(
    "lemma-8-upper",
    "Softmax output from above",
    "Lemma 8",
    "|softmax(u)| <= 1.",
    r"\|\mathrm{softmax}(u)\|_2\le1",
    sides=lambda i, variant: Sides(jnp.linalg.norm(jax.nn.softmax(i.u)), 1.0),
    naive=lambda num, data, variant: (norm(num, softmax(num, data["u"])), num.number(1)),
    families=LOGITS,
    targets=_targets,
    forms="approached as one weight tends to 1",
    where=APPENDIX,
)


def _jacobian_naively(num: Arithmetic, u: Any) -> list[Any]:
    """By the quotient rule on exp(u_i) / S, row by row."""
    top = num.number(max(num.roughly(x) for x in u))
    weights = [num.exp(x - top) for x in u]
    S = num.total(weights)
    size = range(len(u))
    return [((S if i == j else 0) * weights[i] - weights[i] * weights[j]) / S**2
            for i in size for j in size]  # fmt: skip


def _closed(num: Arithmetic, u: Any) -> list[Any]:
    v = softmax(num, u)
    size = range(len(v))
    return [v[i] * ((i == j) - v[j]) for i in size for j in size]


identity(
    "lemma-11",
    "The Jacobian of softmax",
    "Lemma 11",
    "dv/du = diag(v) - v v^T for v = softmax(u). Left: derivatives; right: the formula.",
    r"\partial v/\partial u=\mathrm{diag}(v)-vv^\top",
    sides=lambda i, variant: Sides(
        jax.jacfwd(jax.nn.softmax)(i.u),
        jnp.diag(jax.nn.softmax(i.u)) - jnp.outer(jax.nn.softmax(i.u), jax.nn.softmax(i.u)),
        scale=1.0,
    ),
    naive=lambda num, data, variant: (
        _jacobian_naively(num, data["u"]),
        _closed(num, data["u"]),
    ),
    families=LOGITS,
    forms={"printed": ("the proof prints a sum where a product is meant", "E25")},
    where=APPENDIX,
)


def _centred(i: SoftmaxInstance) -> Any:
    p = jax.nn.softmax(i.u)
    return p * (i.v - p @ i.v)


def _size(i: SoftmaxInstance, variant: str) -> Sides:
    constant = 2.0 if variant == "printed" else 0.5
    return Sides(jnp.linalg.norm(_centred(i)), constant * jnp.linalg.norm(i.v))


def _size_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    p, v = softmax(num, data["u"]), data["v"]
    mean = dot(p, v)
    image = [weight * (x - mean) for weight, x in zip(p, v, strict=True)]
    constant = num.number(2 if variant == "printed" else 1) / (1 if variant == "printed" else 2)
    return norm(num, image), constant * norm(num, v)


claim(
    "lemma-11-size",
    "Size of the Jacobian of softmax",
    "Lemmas 7 and 12",
    "|(diag(p) - p p^T) v| <= 2 |v|, as the lemmas use it.",
    r"\|(\mathrm{diag}(p)-pp^\top)v\|_2\le2\|v\|_2",
    sides=_size,
    naive=_size_naive,
    families=LOGITS,
    targets=_targets,
    forms={
        "printed": "constant 2",
        "sharp": "constant 1/2, attained by two equal weights: the largest eigenvalue of a "
        "weighted covariance of indicator vectors",
    },
    where=APPENDIX,
)
