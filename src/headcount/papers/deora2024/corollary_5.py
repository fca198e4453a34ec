"""Corollary 5 of deora2024 (= Corollary 2): training from a good start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from ...theory import Bound, Check, Hypothesis, Sides
from ...theory.slow import Arithmetic
from . import constants, model, naive, naive_constants
from .declare import claim
from .good_start import (
    DIRECTION,
    SEPARABLE,
    WIDE,
    NaiveStart,
    StartInstance,
    start_family,
    tier_of,
)
from .naive import Data
from .setting import Setting
from .training import short_step


def training_root(i: StartInstance, tier: str) -> Any:
    g0 = 2**0.5 * i.G
    return constants.good_start_root(g0, i.B_2, i.R, i.T, i.d, tier)


def training_step(i: StartInstance, tier: str) -> Any:
    B = 4 * 2**0.5 * i.G + i.B_2
    rho = constants.rho(B, i.R, i.H, i.T, i.d, tier)
    first = 4 * i.B_Phi**2 / (i.gamma**2 * constants.start_loss(i.B_Phi))
    return jnp.minimum(1.0, jnp.minimum(1 / rho, first))


TRAINED = (
    start_family("trained, v2", "v2", training_root, training_step),
    start_family("trained, sharp", "sharp", training_root, training_step),
)


def _training_limit(i: StartInstance, variant: str) -> Any:
    return jnp.sqrt(i.H) / training_root(i, tier_of(variant))


def _training_limit_naively(num: Arithmetic, data: Data, variant: str) -> Any:
    s = NaiveStart(num, data)
    g0 = num.sqrt(num.number(2)) * s.G
    wanted = (g0, s.B_2, s.R, s.T, s.d, tier_of(variant))
    return num.sqrt(s.H) / naive_constants.good_start_root(num, *wanted)


def _step_limit_naively(num: Arithmetic, data: Data, variant: str) -> Any:
    s = NaiveStart(num, data)
    B = 4 * num.sqrt(num.number(2)) * s.G + s.B_2
    rho = naive_constants.rho(num, B, s.R, s.H, s.T, s.d, tier_of(variant))
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
        lambda i, variant: training_step(i, tier_of(variant)),
        _step_limit_naively,
    ),
)


def descended(i: Any, weights: Any = None) -> Any:
    """theta_K on the mean or on a weighted loss."""

    def step(rows: Any, _: None) -> tuple[Any, None]:
        return rows - i.eta * model.loss_gradient(i, rows, weights), None

    return jax.lax.scan(step, i.rows, None, length=i.K)[0]


def _trained(i: StartInstance, variant: str) -> Sides:
    rhs = 2 / i.K + 5 * i.G**2 / (2 * i.eta * i.K)
    table = {"B_2": i.B_2, "B_Phi": i.B_Phi, "gamma": i.gamma, "H": i.H, "eta": i.eta}
    return Sides(model.loss(i, descended(i)), rhs, table)


def _trained_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    s, K, rows = NaiveStart(num, data), int(data["K"]), naive.parameters(data)
    for _ in range(K):
        g = naive.loss_gradient(num, data, naive.samples(num, data, rows))
        rows = naive.combined(rows, g, -data["eta"])
    rhs = num.number(2) / K + 5 * s.G**2 / (2 * data["eta"] * K)
    return naive.loss(num, data, rows), rhs


def _promised(setting: Setting, variant: str) -> Bound:
    s = setting
    eta = s.eta if s.eta is not None else s.start_step(tier_of(variant))
    g0 = s.g_0()
    table = {"g_0": g0, "eta": eta, "gamma": s.gamma}
    return Bound(2 / s.K + 5 * g0**2 / (4 * eta * s.K), table, constants.start_loss(s.B_Phi))


def _required(setting: Setting, variant: str) -> tuple[Check, ...]:
    s, tier = setting, tier_of(variant)
    root = constants.good_start_root(s.g_0(), s.B_2, s.R, s.T, s.d, tier)
    eta = s.eta if s.eta is not None else s.start_step(tier)
    return (
        Check("required sqrt(H) over sqrt(H)", root / float(s.H) ** 0.5, 1.0),
        Check("eta over its largest value", eta / s.start_step(tier), 1.0),
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
    requires=_required,
    quantity="loss",
    forms={
        "corrected": ("g_0 = sqrt(2) G everywhere: 5/2 for 5/4", "E2"),
        "sharp": ("the same with sharp beta_3 in the conditions on H and eta", "E9"),
    },
    errata=("E2", "E10", "E11"),
    where="Sec. 4.3, App. C.4",
)
