"""The hypotheses of the claims about runs, measured on a small instance or on a run's trace."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from ...core import activation_named
from ...theory import Check, Hypothesis
from ...theory.slow import Arithmetic, flat, norm
from . import constants
from .drift_terms import APPROXIMATED
from .hypotheses import LABELS, PAIRED, TRANSPORT
from .naive import Data
from .runs import RunTrace, reach_of, tokens_of
from .setting import Setting


def _on_traces(hypothesis: Hypothesis, measured: Callable[[RunTrace], Any]) -> Hypothesis:
    """The same hypothesis; a trace holds the value already."""

    def value(i: Any) -> Any:
        return measured(i) if isinstance(i, RunTrace) else hypothesis.value(i)

    return replace(hypothesis, value=value)


def _reach_naively(num: Arithmetic, data: Data) -> Any:
    """Norms of phi~ - phi0 in units of rho/sqrt(m): of v_c, c0 v_u and c0 v_w."""
    scales = [abs(c) for c in data["c0"]]
    sizes = (
        num.largest(abs(v) for v in data["vc"]),
        num.largest(c * norm(num, v) for c, v in zip(scales, data["vu"], strict=True)),
        num.largest(c * norm(num, flat(v)) for c, v in zip(scales, data["vw"], strict=True)),
    )
    radii = zip(sizes, data["nu"], data["rho"], strict=True)
    return num.largest(v * n / r for v, n, r in radii)


def _tokens_naively(num: Arithmetic, data: Data) -> Any:
    rows = [row for sample in data["X"] for row in sample] + list(data["q"])
    return num.largest(num.root(sum(x * x for x in row)) for row in rows)


def _radii_naively(num: Arithmetic, data: Data) -> Any:
    return num.largest(n - r for n, r in zip(data["nu"], data["rho"], strict=True))


def _step_size_naively(num: Arithmetic, data: Data) -> Any:
    return abs(data["eta"] * num.sqrt(num.number(int(data["tau"]))) - 1)


def _app_ratio(trace: RunTrace) -> Any:
    sigma = activation_named(trace.activation)
    B_app = constants.approximation(sigma, trace.nu, trace.n, trace.m, trace.delta)
    return trace.e_app / B_app


def _steps(name: str, count: Callable[[RunTrace], Any], threshold: float = 0.0) -> Hypothesis:
    """About the steps of a trace; those of an instance are right by construction."""
    return _on_traces(
        Hypothesis(name, lambda i: jnp.zeros(()), lambda num, data: num.number(0), threshold),
        count,
    )


REACHABLE = Hypothesis("phi~ in Omega_rho", reach_of, _reach_naively)
UNIT_TOKENS = Hypothesis("tokens and query in the unit ball", tokens_of, _tokens_naively)
RADII = Hypothesis(
    "rho >= nu in every block: largest nu - rho",
    lambda i: jnp.max(i.nu - i.rho),
    _radii_naively,
    threshold=0.0,
)
STEP_SIZE = Hypothesis(
    "eta = tau^(-1/2)",
    lambda i: jnp.abs(i.eta * math.sqrt(i.tau) - 1),
    _step_size_naively,
    threshold=1e-9,
)
PAIRED_START = _on_traces(PAIRED, lambda trace: trace.pairing)
TRANSPORTED = _on_traces(TRANSPORT, lambda trace: trace.transport)
TARGET = _on_traces(LABELS, lambda trace: trace.labels)
E_APP = _on_traces(APPROXIMATED, _app_ratio)
STEPPED = _steps("every step is one of gradient descent on L", lambda trace: trace.astray)
INSIDE = _steps("every iterate in Omega_rho", lambda trace: trace.moved, threshold=1.0)
PROJECTED = _steps("every step is one of ProjGD onto Omega_rho", lambda trace: trace.unprojected)

REALISED = (REACHABLE, STEPPED)
"""What the realised certificates ask of a run."""
CLOSED = (UNIT_TOKENS, PAIRED_START, RADII, TRANSPORTED, TARGET, PROJECTED, E_APP)
"""What (43), (44) and Theorem 1 ask of a run; the event E_U is replaced by the realised B_U."""


def decided_by_setting(setting: Setting, variant: str) -> tuple[Check, ...]:
    """The hypotheses of Theorem 1 that a setting decides: rho >= nu, labels in F_nu, tokens."""
    gap = max(n - r for n, r in zip(setting.nu, setting.rho, strict=True))
    checks = [Check(RADII.name, gap, 0.0)]
    if setting.largest_label is not None:
        y_max = constants.label_envelope(setting.sigma, setting.nu, setting.d, "sharp")
        checks.append(Check("f* in F_nu: max |y| - y_max*", setting.largest_label - y_max, 0.0))
    if setting.largest_token is not None:
        checks.append(Check(UNIT_TOKENS.name, setting.largest_token, 1.0))
    return tuple(checks)
