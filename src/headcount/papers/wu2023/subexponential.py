"""Lemmas 2 and 3 of wu2023 on what they are used for: products of two normal weights.

The moment generating function of g h with g, h ~ N(0, eta) is (1 - l^2 eta^2)^{-1/2}.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Hypothesis, Sides, instance_class
from ...theory.domain import Domain
from ...theory.families import shaped
from ...theory.slow import Arithmetic
from .declare import claim
from .naive import Data


@instance_class
@dataclass(frozen=True)
class SumOfProducts(Domain):
    """sum_k s_k g_k h_k with independent standard normals, and the argument l of its mgf."""

    s: Float[Array, "n"]
    l: Float[Array, ""]

    positive: ClassVar[tuple[str, ...]] = ("s",)


def _draw(rng: np.random.Generator, count: int, *, n: int) -> SumOfProducts:
    return SumOfProducts(np.exp(rng.uniform(-2, 2, (count, n))), rng.normal(size=count))


def _project(i: SumOfProducts) -> SumOfProducts:
    s = jnp.clip(jnp.abs(i.s), 1e-3, 1e3)
    most = (1 - 1e-6) * 0.5**0.5 / jnp.max(s)
    return SumOfProducts(s, jnp.clip(i.l, -most, most))


def _logs(i: SumOfProducts, variant: str) -> Sides:
    """log of the mgf against nu^2 l^2/2, nu^2 = 2 sum s_k^2."""
    lhs = -jnp.sum(jnp.log1p(-((i.l * i.s) ** 2))) / 2
    return Sides(lhs, i.l**2 * jnp.sum(i.s**2))


def _logs_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    l, s = data["l"], data["s"]
    lhs = -num.total([num.log(1 - (l * x) ** 2) for x in s]) / 2
    return lhs, l**2 * num.total([x**2 for x in s])


IN_RANGE = Hypothesis(
    "|l| < 1/a",
    lambda i: 2**0.5 * jnp.max(i.s) * jnp.abs(i.l),
    lambda num, data: num.sqrt(num.number(2)) * num.largest(data["s"]) * abs(data["l"]),
)
_FAMILIES = tuple(shaped("products", _draw, _project, n=n) for n in (1, 3))

on_sums = functools.partial(
    claim, sides=_logs, naive=_logs_naive, hypotheses=(IN_RANGE,), where="App. B.3"
)

on_sums(
    "lemma-2",
    "A scaled product of two normals is sub-exponential",
    "Lemma 2",
    "s X ~ SE(s nu, s a) for X ~ SE(nu, a). Tested on X = g h ~ SE(sqrt 2, sqrt 2): "
    "log E exp(l s X) <= (s nu l)^2/2 for |l| < 1/(s a).",
    r"X\sim SE(\nu,\alpha)\Rightarrow sX\sim SE(s\nu,s\alpha)",
    families=_FAMILIES[:1],
)

on_sums(
    "lemma-3",
    "A sum of products of normals is sub-exponential",
    "Lemma 3",
    "Independent X_k ~ SE(nu_k, a_k): sum X_k ~ SE(sqrt(sum nu_k^2), max a_k). Tested on products "
    "of normals with scales s_k.",
    r"\textstyle\sum_kX_k\sim SE(\sqrt{\sum_k\nu_k^2},\max_k\alpha_k)",
    families=_FAMILIES[1:],
)
