"""The hypotheses of arda2026 as named checks, each in JAX and in slow arithmetic."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ...theory import Hypothesis
from ...theory.families import safe_norm
from ...theory.slow import Arithmetic, flat, norm
from .naive import Data


def _tokens_naively(num: Arithmetic, data: Data) -> Any:
    X = data["X"]
    batched = isinstance(X[0][0], (list, tuple))
    rows = [row for sample in X for row in sample] if batched else X
    return num.largest(norm(num, row) for row in rows)


def _query_naively(num: Arithmetic, data: Data) -> Any:
    q = data["q"]
    batched = isinstance(q[0], (list, tuple))
    return num.largest(norm(num, row) for row in (q if batched else [q]))


def _pairing_defect(instance: Any) -> Any:
    half = instance.c0.shape[0] // 2
    if instance.c0.shape[0] % 2:
        return jnp.inf
    gaps = [
        jnp.max(jnp.abs(instance.c0[:half] + instance.c0[half:])),
        jnp.max(jnp.abs(instance.U0[:half] - instance.U0[half:])),
        jnp.max(jnp.abs(instance.W0[:half] - instance.W0[half:])),
        jnp.max(jnp.abs(jnp.abs(instance.c0) - 1)),
    ]
    return jnp.max(jnp.asarray(gaps))


def _pairing_naively(num: Arithmetic, data: Data) -> Any:
    c0, U0, W0 = data["c0"], data["U0"], data["W0"]
    m = len(c0)
    if m % 2:
        return num.number("inf")
    gaps = [abs(abs(c) - 1) for c in c0]
    for i in range(m // 2):
        gaps.append(abs(c0[i] + c0[i + m // 2]))
        gaps.extend(abs(x - y) for x, y in zip(U0[i], U0[i + m // 2], strict=True))
        gaps.extend(abs(x - y) for x, y in zip(flat(W0[i]), flat(W0[i + m // 2]), strict=True))
    return num.largest(gaps)


def _displacement(c: Any, U: Any, W: Any) -> Any:
    return jnp.maximum(
        jnp.max(jnp.abs(c)),
        jnp.maximum(jnp.max(safe_norm(U)), jnp.max(safe_norm(W, axis=(-2, -1)))),
    )


def displacement_naively(num: Arithmetic, c: Any, U: Any, W: Any) -> Any:
    """The largest norm of any head's block."""
    sizes = [abs(entry) for entry in c]
    sizes += [norm(num, row) for row in U]
    sizes += [norm(num, flat(matrix)) for matrix in W]
    return num.largest(sizes)


def in_cube(name: str, field: str) -> Hypothesis:
    """Every entry of the field lies in [-1, 1]."""
    return Hypothesis(
        name,
        lambda i: jnp.max(jnp.abs(getattr(i, field))),
        lambda num, data: num.largest(abs(entry) for entry in data[field]),
    )


TOKENS = Hypothesis("tokens in the unit ball", lambda i: jnp.max(safe_norm(i.X)), _tokens_naively)
QUERY = Hypothesis("query in the unit ball", lambda i: jnp.max(safe_norm(i.q)), _query_naively)
PAIRED = Hypothesis(
    "paired initialisation with |c| = 1", _pairing_defect, _pairing_naively, threshold=0.0
)
FEASIBLE = Hypothesis(
    "phi in Omega_rho",
    lambda i: _displacement(i.dc, i.dU, i.dW),
    lambda num, data: displacement_naively(num, data["dc"], data["dU"], data["dW"]),
)
TRANSPORT = Hypothesis(
    "v in V_nu",
    lambda i: _displacement(i.vc, i.vu, i.vw),
    lambda num, data: displacement_naively(num, data["vc"], data["vu"], data["vw"]),
)
LABELS = in_cube("labels of a target in F_nu", "labels")
DIRECTION = Hypothesis(
    "direction v in the unit ball",
    lambda i: safe_norm(i.v, axis=(-2, -1)),
    lambda num, data: norm(num, flat(data["v"])),
)

SAMPLE = (TOKENS, QUERY)
NEAR_START = (TOKENS, QUERY, PAIRED, FEASIBLE)
