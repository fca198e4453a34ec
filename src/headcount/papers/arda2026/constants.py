"""The constants of arda2026, each written once: as printed and, where we know better, sharp.

Every function takes numbers or JAX arrays. `tier` is "printed" or "sharp"; the sharp forms are
proved in docs/theory.md and survive the falsifier. B_U is a priori (Remark 7) or realised.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy import stats

from ...core import Activation, check_choice
from .setting import Setting

TIERS = ("printed", "sharp")
Number = Any


def _largest(a: Number, b: Number) -> Number:
    return max(a, b) if isinstance(b, float) else jnp.maximum(a, b)


def event_radius(d: int, m: int, delta_prime: float) -> float:
    """sqrt(d) + sqrt(2 ln(m / (2 delta'))), the radius of the event E_U [arda2026, Def. 1]."""
    return math.sqrt(d) + math.sqrt(2 * math.log(m / (2 * delta_prime)))


def event_radius_exact(d: int, m: int, delta_prime: float) -> float:
    """The chi_d quantile at (1 - delta')^{2/m}: exact for the m/2 independent norms."""
    tail = -math.expm1(math.log1p(-delta_prime) * 2 / m)
    return float(stats.chi.isf(tail, d))


def lipschitz(sigma: Activation, B_U: Number, tier: str) -> Number:
    """L1 = s1 sqrt(1 + B_U^2) [arda2026, Lemma 2]; L1* = s1 max(1, B_U)."""
    if tier == "sharp":
        return sigma.sigma1 * _largest(1.0, B_U)
    return sigma.sigma1 * (1 + B_U**2) ** 0.5


def smoothness(sigma: Activation, B_U: Number, tier: str) -> Number:
    """L2 = s2 (1 + B_U^2) + 8 s1 sqrt(1 + B_U^2) [arda2026, Lemma 2].

    L2* = s2 max(1, B_U^2) + s1 sqrt(2 + (32/27)^2 B_U^2).
    """
    if tier == "sharp":
        attention = (2 + (32 / 27) ** 2 * B_U**2) ** 0.5
        return sigma.sigma2 * _largest(1.0, B_U) ** 2 + sigma.sigma1 * attention
    return sigma.sigma2 * (1 + B_U**2) + 8 * sigma.sigma1 * (1 + B_U**2) ** 0.5


def drift_radius(rho: Any) -> Number:
    """k = sqrt(rho_u^2 + rho_w^2)."""
    return (rho[1] ** 2 + rho[2] ** 2) ** 0.5


def length(radii: Any) -> Number:
    """|rho|_2 or |nu|_2."""
    return (radii[0] ** 2 + radii[1] ** 2 + radii[2] ** 2) ** 0.5


def linearisation(L1: Number, L2: Number, rho: Any, m: int, tier: str) -> Number:
    """B_lin = (L1 rho_c k + L2 k^2) / sqrt(m) [arda2026, Lemma 3]; sharp: L2/2, as proved."""
    k = drift_radius(rho)
    curvature = L2 / 2 if tier == "sharp" else L2
    return (L1 * rho[0] * k + curvature * k**2) / math.sqrt(m)


def approximation(
    sigma: Activation, nu: Any, n: int, m: int, delta: float, variant: str = "corrected"
) -> Number:
    """B_app = 2 (s0 nu_c + s1 nu_u + s nu_w) sqrt(2 ln(2n/delta) / m) [arda2026, Lemma 5].

    s = s2 as the main text prints it, s1 as the appendix proves it ("corrected");
    "sharp": 2 (s0 nu_c + s1 nu_u + sqrt(2) s1 nu_w) sqrt(ln(2n/delta) / m).
    """
    bounded = sigma.sigma0 * nu[0] + sigma.sigma1 * nu[1]
    logarithm = math.log(2 * n / delta)
    if variant == "sharp":
        return 2 * (bounded + math.sqrt(2) * sigma.sigma1 * nu[2]) * math.sqrt(logarithm / m)
    s = sigma.sigma2 if variant == "printed" else sigma.sigma1
    return 2 * (bounded + s * nu[2]) * math.sqrt(2 * logarithm / m)


def change_of_features(L1: Number, L2: Number, rho: Any, nu: Any, m: int) -> Number:
    """B_CoF = ((L1 + L2) k + rho_c L1) (|nu| + |rho|) / sqrt(m) [arda2026, Eq. (38)]."""
    per_head = (L1 + L2) * drift_radius(rho) + rho[0] * L1
    return per_head * (length(nu) + length(rho)) / math.sqrt(m)


def output_envelope(sigma: Activation, L1: Number, rho: Any) -> Number:
    """f_max = L1 k + s0 rho_c [arda2026, Lemma 6]."""
    return L1 * drift_radius(rho) + sigma.sigma0 * rho[0]


def label_envelope(sigma: Activation, nu: Any, d: int, tier: str) -> Number:
    """y_max = s0 nu_c + s1 nu_u + s1 sqrt(d) nu_w [arda2026, Lemma 6]; sharp: no sqrt(d)."""
    w = nu[2] if tier == "sharp" else math.sqrt(d) * nu[2]
    return sigma.sigma0 * nu[0] + sigma.sigma1 * (nu[1] + w)


def gradient_envelope(sigma: Activation, L1: Number, rho: Any, m: int, tier: str) -> Number:
    """A = s0 + (1 + rho_c/sqrt m) L1 [arda2026, Eq. (41)]; sharp: root of the sum of squares."""
    theta = (1 + rho[0] / math.sqrt(m)) * L1
    return (sigma.sigma0**2 + theta**2) ** 0.5 if tier == "sharp" else sigma.sigma0 + theta


def loss_gradient(f_max: Number, y_max: Number, A: Number) -> Number:
    """B_grad = 4 (f_max + y_max)^2 A^2 [arda2026, Eq. (42)]."""
    return 4 * (f_max + y_max) ** 2 * A**2


@dataclass(frozen=True)
class Constants:
    """Every constant of arda2026 for one setting and tier."""

    B_U: float
    L1: float
    L2: float
    B_lin: float
    B_app: float
    B_CoF: float
    f_max: float
    y_max: float
    A: float
    B_grad: float
    k: float
    rho_norm: float
    nu_norm: float

    def to_dict(self) -> dict[str, float]:
        """Name to value."""
        return asdict(self)


def value_bound(setting: Setting, tier: str = "printed") -> float:
    """B_U [arda2026, Remark 7]: realised if the setting has one, else a priori."""
    if setting.B_U is not None:
        return setting.B_U
    radius = event_radius_exact if tier == "sharp" else event_radius
    within = radius(setting.d, setting.m, setting.delta_prime)
    return within + setting.rho[1] / math.sqrt(setting.m)


def constants(setting: Setting, tier: str = "printed", *, B_U: float | None = None) -> Constants:
    """All constants of ledger section 1.7 for a setting.

    B_app of the printed tier is the appendix form with s1 nu_w, the one that is proved. The sharp
    tier keeps the printed B_U unless the setting or the call gives one, so that tiers compare.
    """
    check_choice("tier", tier, TIERS)
    sigma, rho, nu, m = setting.sigma, setting.rho, setting.nu, setting.m
    B = float(np.float64(value_bound(setting) if B_U is None else B_U))
    L1, L2 = lipschitz(sigma, B, tier), smoothness(sigma, B, tier)
    variant = "sharp" if tier == "sharp" else "corrected"
    f_max = output_envelope(sigma, L1, rho)
    y_max = label_envelope(sigma, nu, setting.d, tier)
    A = gradient_envelope(sigma, L1, rho, m, tier)
    return Constants(
        B_U=B,
        L1=L1,
        L2=L2,
        B_lin=linearisation(L1, L2, rho, m, tier),
        B_app=approximation(sigma, nu, setting.n, m, setting.delta, variant),
        B_CoF=change_of_features(L1, L2, rho, nu, m),
        f_max=f_max,
        y_max=y_max,
        A=A,
        B_grad=loss_gradient(f_max, y_max, A),
        k=drift_radius(rho),
        rho_norm=length(rho),
        nu_norm=length(nu),
    )
