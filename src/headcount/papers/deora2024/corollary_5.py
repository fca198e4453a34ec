"""Corollary 5 of deora2024 (= Corollary 2): training from a good start.

Why it holds with g_0 = G although Proposition 7 does not is in docs/deora2024.md.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from ...theory import Bound, Check, Hypothesis, Sides
from ...theory.slow import Arithmetic
from . import constants, naive, naive_constants
from . import quantities as model
from .declare import claim, tier_of
from .good_start import (
    DIRECTION,
    SEPARABLE,
    WIDE,
    NaiveStart,
    StartInstance,
    form_of,
    start_family,
)
from .naive import Data
from .setting import Setting
from .training import short_step


def squared_stretch(variant: str) -> int:
    """(g_0/G)^2."""
    return 1 if form_of(variant) == "printed" else 2


def training_root(i: StartInstance, variant: str) -> Any:
    """What sqrt(H) must reach."""
    g0 = constants.g_0(i.B_Phi, i.gamma, i.eps, form_of(variant))
    return constants.good_start_root(g0, i.B_2, i.R, i.T, i.d, tier_of(variant), i.readout)


def training_step(i: StartInstance, variant: str, rho_of: Any = constants.rho) -> Any:
    """What eta may be at most."""
    B = 4 * constants.g_0(i.B_Phi, i.gamma, i.eps, form_of(variant)) + i.B_2
    rho = rho_of(B, i.R, i.H, i.T, i.d, tier_of(variant), i.readout)
    first = 4 * i.B_Phi**2 / (i.gamma**2 * constants.start_loss(i.B_Phi))
    return jnp.minimum(1.0, jnp.minimum(1 / rho, first))


def stable_step(i: StartInstance, variant: str) -> Any:
    """The same where eta beta_1(B)^2 <= 1 is asked for, too."""
    return training_step(i, variant, constants.stable_rho)


TRAINED = tuple(
    start_family(f"trained, {form}", form, training_root, training_step, K=3)
    for form in ("v2", "v1", "printed", "sharp")
)


def _training_limit(i: StartInstance, variant: str) -> Any:
    return jnp.sqrt(i.H) / training_root(i, variant)


def _training_limit_naively(num: Arithmetic, data: Data, variant: str) -> Any:
    s = NaiveStart(num, data)
    wanted = (_naive_g_0(num, s, variant), s.B_2, s.R, s.T, s.d, tier_of(variant), s.readout)
    return num.sqrt(s.H) / naive_constants.good_start_root(num, *wanted)


def _naive_g_0(num: Arithmetic, s: NaiveStart, variant: str) -> Any:
    return s.G if variant in ("printed", "sharp") else num.sqrt(num.number(2)) * s.G


def _step_limit_naively(
    num: Arithmetic, data: Data, variant: str, rho_of: Any = naive_constants.rho
) -> Any:
    s = NaiveStart(num, data)
    B = 4 * _naive_g_0(num, s, variant) + s.B_2
    rho = rho_of(num, B, s.R, s.H, s.T, s.d, tier_of(variant), s.readout)
    first = (2 * s.B_Phi / s.gamma) ** 2 / naive_constants.start_loss(num, s.B_Phi)
    return num.smallest([num.number(1), 1 / rho, first])


AT_HORIZON = Hypothesis(
    "eps = 1/K",
    lambda i: jnp.abs(i.eps * i.K - 1),
    lambda num, data: num.absolute(data["eps"] * int(data["K"]) - 1),
    1e-9,
)
TRAINING = (
    SEPARABLE,
    DIRECTION,
    AT_HORIZON,
    replace(
        WIDE,
        name="Corollary 5: 1 <= sqrt(H)/(what it must reach)",
        threshold=_training_limit,
        naive_threshold=_training_limit_naively,
    ),
    short_step(
        "eta <= min(1, 1/rho(K), (4 B_Phi^2/gamma^2)/log(1 + e^B_Phi))",
        training_step,
        _step_limit_naively,
    ),
)
STABLE_TRAINING = (
    *TRAINING[:-1],
    short_step(
        "eta <= min(1, 1/rho(K), 1/beta_1(B)^2, (4 B_Phi^2/gamma^2)/log(1 + e^B_Phi))",
        stable_step,
        functools.partial(_step_limit_naively, rho_of=naive_constants.stable_rho),
    ),
)


def descended(i: Any, weights: Any = None) -> Any:
    """theta_K on the mean or on a weighted loss."""

    def step(rows: Any, _: None) -> tuple[Any, None]:
        return rows - i.eta * model.loss_gradient(i, rows, weights), None

    return jax.lax.scan(step, i.rows, None, length=i.K)[0]


def _trained(i: StartInstance, variant: str) -> Sides:
    rhs = 2 / i.K + 5 * squared_stretch(variant) * i.G**2 / (4 * i.eta * i.K)
    table = {"B_2": i.B_2, "B_Phi": i.B_Phi, "gamma": i.gamma, "H": i.H, "eta": i.eta}
    return Sides(model.loss(i, descended(i)), rhs, table)


def _trained_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    s, K, rows = NaiveStart(num, data), int(data["K"]), naive.parameters(data)
    for _ in range(K):
        g = naive.loss_gradient(num, data, naive.samples(num, data, rows))
        rows = naive.combined(rows, g, -data["eta"])
    rhs = num.number(2) / K + 5 * _naive_g_0(num, s, variant) ** 2 / (4 * data["eta"] * K)
    return naive.loss(num, data, rows), rhs


def _promised(setting: Setting, variant: str) -> Bound:
    s, form = setting, form_of(variant)
    eta = s.eta if s.eta is not None else s.start_step(tier_of(variant), form)
    g0 = s.g_0(form)
    table = {"g_0": g0, "eta": eta, "gamma": s.gamma}
    return Bound(2 / s.K + 5 * g0**2 / (4 * eta * s.K), table, constants.start_loss(s.B_Phi))


def required(setting: Setting, variant: str, stable: bool = False) -> tuple[Check, ...]:
    """H and eta; `stable` asks for eta beta_1(B)^2 <= 1, too."""
    s, tier, form = setting, tier_of(variant), form_of(variant)
    root = constants.good_start_root(s.g_0(form), s.B_2, s.R, s.T, s.d, tier, s.readout)
    most = s.start_step(tier, form, stable=stable)
    return (
        Check("required sqrt(H) over sqrt(H)", root / float(s.H) ** 0.5, 1.0),
        Check("eta over its largest value", (most if s.eta is None else s.eta) / most, 1.0),
    )


claim(
    "corollary-5",
    "Training loss from a good start",
    "Corollary 5 = Corollary 2, first half of (5) and (101)",
    "From a good start, with H and eta as stated, L(theta_K) <= 2/K + 5 g_0^2/(4 eta K), "
    "g_0 = sqrt(2) (2 B_Phi + log K)/gamma.",
    r"\widehat L(\theta_K)\le\frac2K+\frac{5(2B_\Phi+\log K)^2}{2\gamma^2\eta K}",
    sides=_trained,
    naive=_trained_naive,
    families=TRAINED,
    hypotheses=TRAINING,
    bound=_promised,
    requires=required,
    quantity="loss",
    forms={
        "corrected": ("g_0 = sqrt(2) G everywhere: 5/2 for 5/4", "E2"),
        "printed": ("g_0 = G: the proof is wrong, the bound is not", "E2"),
        "v1": ("as corrected, with the first text's beta_3 in the conditions", "E9"),
        "sharp": ("g_0 = G, with sharp beta_3 in the conditions on H and eta", "E9"),
    },
    errata=("E2", "E10", "E11"),
    where="Sec. 4.3, App. C.4",
)
