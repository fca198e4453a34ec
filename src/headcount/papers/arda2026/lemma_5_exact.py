"""The exact probability that Lemma 5 fails with two heads in one dimension, by enclosures.

Tokens +-1 and query 1: with a = tanh(W) the worst map gives g(|U|, |W|) =
nu_c s(|U a|) + nu_u s'(U a) |a| + nu_w s'(U a) |U| (1 - a^2). On a cell of a grid of (|U|, |W|)
every factor is monotone for tanh and erf, so g lies between two numbers there; cells that surely
exceed the bound are counted from below, cells that may exceed it from above.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core import Array, activation_named, float64
from ...theory._frequency import Interval
from .constants import approximation

FURTHEST, CELLS = 9.0, 720
"""The grid covers [0, FURTHEST]^2; what lies beyond (1e-18) counts as exceeding, from above."""
ROUNDING = 1e-9
MONOTONE = ("tanh", "erf", "50*tanh(0.02*x)")


def _products(
    case: Mapping[str, Any], u: tuple[Array, Array], a: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Bounds on g over the cells with |U| in u and |a| in a (lower and upper ends)."""
    sigma = activation_named(case["activation"])
    inside = [np.multiply.outer(u[k], a[k]) for k in range(2)]
    value = [np.asarray(sigma(x)) for x in inside]
    steep = [np.asarray(sigma.derivative(inside[1 - k])) for k in range(2)]
    moved = [np.multiply.outer(u[k], 1 - a[1 - k] ** 2) for k in range(2)]
    low, high = (
        case["nu_c"] * value[k] + steep[k] * (case["nu_u"] * a[k] + case["nu_w"] * moved[k])
        for k in range(2)
    )
    return low, high


def exact_probability(case: Mapping[str, Any], variant: str, factor: float) -> Interval | None:
    """An enclosure of P(lhs > factor B_app); None for cases that are not enumerated."""
    sizes = (case["data"], case["m"], case["policy"])
    if sizes != ("antipodal", 2, "aligned") or case["activation"] not in MONOTONE:
        return None
    from scipy.special import erf  # a tenth of a second that `explain` need not wait for

    edges = np.linspace(0.0, FURTHEST, CELLS + 1)
    mass = np.diff(erf(edges / np.sqrt(2)))
    nu = tuple(float(case[name]) for name in ("nu_c", "nu_u", "nu_w"))
    a = np.tanh(edges)
    with float64():
        low, high = _products(case, (edges[:-1], edges[1:]), (a[:-1], a[1:]))
        sigma = activation_named(case["activation"])
        bound = factor * float(approximation(sigma, nu, 1, 2, float(case["delta"]), variant))
    weight = np.multiply.outer(mass, mass)
    surely = float(np.sum(weight[low > bound * (1 + ROUNDING)]))
    perhaps = float(np.sum(weight[high > bound * (1 - ROUNDING)]))
    return Interval(max(surely * (1 - ROUNDING), 0.0), min(perhaps * (1 + ROUNDING) + 1e-15, 1.0))
