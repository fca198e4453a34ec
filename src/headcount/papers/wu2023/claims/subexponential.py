"""Lemmas 2 and 3 of wu2023 on what they are used for: products of two normal weights.

The moment generating function of g h with g, h ~ N(0, eta) is (1 - l^2 eta^2)^{-1/2}.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp

from ....theory import given
from ..constants import state
from ..records import OneProduct, SumOfProducts

in_range = given("|l| < 1/a", lambda s, l: 2**0.5 * jnp.max(s) * jnp.abs(l), 1.0)
on_sums = functools.partial(
    state.claim,
    given=(in_range,),
    proved="App. B.2",
    no_rival="a moment generating function is known in no other way",
)


def logs(s, l):
    """log of the mgf against nu^2 l^2/2, nu^2 = 2 sum s_k^2."""
    return -jnp.sum(jnp.log1p(-((l * s) ** 2))) / 2, l**2 * jnp.sum(s**2)


def slow_logs(num, s, l):
    """The same in slow arithmetic."""
    lhs = -num.total([num.log(1 - (l * x) ** 2) for x in s]) / 2
    return lhs, l**2 * num.total([x**2 for x in s])


@on_sums(
    "lemma-2",
    "A scaled product of two normals is sub-exponential",
    where="Lemma 2",
    on=OneProduct,
    says=r"X\sim SE(\nu,\alpha)\Rightarrow sX\sim SE(s\nu,s\alpha)",
)
def lemma_2(s, l):
    """s X ~ SE(s nu, s a) for X ~ SE(nu, a). Tested on X = g h ~ SE(sqrt 2, sqrt 2):
    log E exp(l s X) <= (s nu l)^2/2 for |l| < 1/(s a)."""
    return logs(s, l)


@on_sums(
    "lemma-3",
    "A sum of products of normals is sub-exponential",
    where="Lemma 3",
    on=SumOfProducts,
    says=r"\textstyle\sum_kX_k\sim SE(\sqrt{\sum_k\nu_k^2},\max_k\alpha_k)",
)
def lemma_3(s, l):
    """Independent X_k ~ SE(nu_k, a_k): sum X_k ~ SE(sqrt(sum nu_k^2), max a_k). Tested on products
    of normals with scales s_k."""
    return logs(s, l)


lemma_2.twin(slow_logs)
lemma_3.twin(slow_logs)
