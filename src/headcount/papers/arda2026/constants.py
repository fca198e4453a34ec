"""The constants of arda2026, each written once: as printed and, where we know better, sharp.

Every function takes numbers or JAX arrays. `tier` is "printed" or "sharp"; the sharp forms are
proved in docs/theory.md and survive the falsifier. B_U is a priori (Remark 7) or realised.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from scipy import stats

from ...core import Activation, check_choice
from ...theory.numbers import Number, largest, log, smallest
from .setting import Setting

TIERS = ("printed", "sharp")


def event_radius(d: Number, m: Number, delta_prime: Number) -> Number:
    """sqrt(d) + sqrt(2 ln(m / (2 delta'))), the radius of the event E_U [arda2026, Def. 1]."""
    return d**0.5 + (2 * (log(m) - log(2 * delta_prime))) ** 0.5  # m / delta' may overflow


def event_radius_exact(d: int, m: int, delta_prime: float) -> float:
    """The chi_d quantile at (1 - delta')^{2/m}: exact for the m/2 independent norms.

    Where 2 delta'/m is below what float64 can hold, Definition 1's radius, which is larger.
    """
    tail = -math.expm1(math.log1p(-delta_prime) * 2 / m)
    exact = float(stats.chi.isf(tail, d))
    return exact if math.isfinite(exact) else float(event_radius(d, m, delta_prime))


def lipschitz(sigma: Activation, B_U: Number, tier: str) -> Number:
    """L1 = s1 sqrt(1 + B_U^2) [arda2026, Lemma 2]; L1* = s1 max(1, B_U)."""
    if tier == "sharp":
        return sigma.sigma1 * largest(1.0, B_U)
    return sigma.sigma1 * (1 + B_U**2) ** 0.5


def smoothness(sigma: Activation, B_U: Number, tier: str) -> Number:
    """L2 = s2 (1 + B_U^2) + 8 s1 sqrt(1 + B_U^2) [arda2026, Lemma 2].

    L2* = s2 max(1, B_U^2) + s1 sqrt(2 + (32/27)^2 B_U^2).
    """
    if tier == "sharp":
        attention = (2 + (32 / 27) ** 2 * B_U**2) ** 0.5
        return sigma.sigma2 * largest(1.0, B_U) ** 2 + sigma.sigma1 * attention
    return sigma.sigma2 * (1 + B_U**2) + 8 * sigma.sigma1 * (1 + B_U**2) ** 0.5


def drift_radius(rho: Any) -> Number:
    """k = sqrt(rho_u^2 + rho_w^2)."""
    return (rho[1] ** 2 + rho[2] ** 2) ** 0.5


def length(radii: Any) -> Number:
    """|rho|_2 or |nu|_2."""
    return (radii[0] ** 2 + radii[1] ** 2 + radii[2] ** 2) ** 0.5


def linearisation(L1: Number, L2: Number, rho: Any, m: Number, tier: str) -> Number:
    """B_lin = (L1 rho_c k + L2 k^2) / sqrt(m) [arda2026, Lemma 3]; sharp: L2/2, as proved."""
    k = drift_radius(rho)
    curvature = L2 / 2 if tier == "sharp" else L2
    return (L1 * rho[0] * k + curvature * k**2) / m**0.5


def approximation(
    sigma: Activation, nu: Any, n: Number, m: Number, delta: Number, variant: str = "corrected"
) -> Number:
    """B_app = 2 (s0 nu_c + s1 nu_u + s nu_w) sqrt(2 ln(2n/delta) / m) [arda2026, Lemma 5].

    s = s2 as the main text prints it, s1 as the appendix proves it ("corrected");
    "sharp": 2 (s0 nu_c + s1 nu_u + sqrt(2) s1 nu_w) sqrt(ln(2n/delta) / m).
    """
    bounded = sigma.sigma0 * nu[0] + sigma.sigma1 * nu[1]
    logarithm = log(2 * n) - log(delta)
    if variant == "sharp":
        return 2 * (bounded + math.sqrt(2) * sigma.sigma1 * nu[2]) * (logarithm / m) ** 0.5
    s = sigma.sigma2 if variant == "printed" else sigma.sigma1
    return 2 * (bounded + s * nu[2]) * (2 * logarithm / m) ** 0.5


def feature_change(
    L1: Number, L2: Number, rho: Any, m: Number, tier: str
) -> tuple[Number, Number, Number]:
    """Change of one head's gradient: c-block, theta-block, both [arda2026, Eqs. (36), (35), (37)].

    Both: the sum as printed; sharp: the root of the sum of squares.
    """
    k = drift_radius(rho)
    on_c, on_theta = L1 * k / m, (L2 * k + rho[0] * L1) / m
    both = (on_c**2 + on_theta**2) ** 0.5 if tier == "sharp" else on_c + on_theta
    return on_c, on_theta, both


def change_of_features(L1: Number, L2: Number, rho: Any, nu: Any, m: Number) -> Number:
    """B_CoF = ((L1 + L2) k + rho_c L1) (|nu| + |rho|) / sqrt(m) [arda2026, Eq. (38)]."""
    return feature_change(L1, L2, rho, m, "printed")[2] * (length(nu) + length(rho)) * m**0.5


def output_envelope(sigma: Activation, L1: Number, rho: Any) -> Number:
    """f_max = L1 k + s0 rho_c [arda2026, Lemma 6]."""
    return L1 * drift_radius(rho) + sigma.sigma0 * rho[0]


def output_trivially(sigma: Activation, rho: Any, m: Number) -> Number:
    """s0 (sqrt(m) + rho_c) >= |f|, because |c_i| <= 1 + rho_c/sqrt m and |h| <= s0."""
    return sigma.sigma0 * (m**0.5 + rho[0])


def known_output(sigma: Activation, B_U: Number, rho: Any, m: Number) -> Number:
    """What bounds |f| on Omega_rho without Theorem 1: the trivial bound, or f_max with L1*."""
    near_start = output_envelope(sigma, lipschitz(sigma, B_U, "sharp"), rho)
    return smallest(near_start, output_trivially(sigma, rho, m))


def known_loss(sigma: Activation, B_U: Number, rho: Any, nu: Any, m: Number) -> Number:
    """(known |f| + y_max*)^2, which bounds the loss on all of Omega_rho without Theorem 1."""
    y_max = label_envelope(sigma, nu, 1, "sharp")
    return (known_output(sigma, B_U, rho, m) + y_max) ** 2


def known_change(sigma: Activation, B_U: Number, rho: Any, nu: Any, m: Number) -> Number:
    """What bounds the change-of-feature error without (38): both gradients by their own bound."""
    L1 = lipschitz(sigma, B_U, "sharp")
    here, at_start = (gradient_envelope(sigma, L1, r, m, "sharp") for r in (rho, (0.0, 0.0, 0.0)))
    return (here + at_start) * (length(nu) + length(rho))


def known_descent(sigma: Activation, B_U: Number, rho: Any, nu: Any, m: Number) -> Number:
    """What bounds <grad L, phi~ - phi> + 2 L without (39): |grad L| <= 2 max |f - y| A*."""
    loss = known_loss(sigma, B_U, rho, nu, m)
    A = gradient_envelope(sigma, lipschitz(sigma, B_U, "sharp"), rho, m, "sharp")
    return 2 * loss**0.5 * A * (length(nu) + length(rho)) + 2 * loss


def label_envelope(sigma: Activation, nu: Any, d: Number, tier: str) -> Number:
    """y_max = s0 nu_c + s1 nu_u + s1 sqrt(d) nu_w [arda2026, Lemma 6]; sharp: no sqrt(d)."""
    w = nu[2] if tier == "sharp" else d**0.5 * nu[2]
    return sigma.sigma0 * nu[0] + sigma.sigma1 * (nu[1] + w)


def gradient_envelope(sigma: Activation, L1: Number, rho: Any, m: Number, tier: str) -> Number:
    """A = s0 + (1 + rho_c/sqrt m) L1 [arda2026, Eq. (41)]; sharp: root of the sum of squares."""
    theta = (1 + rho[0] / m**0.5) * L1
    return (sigma.sigma0**2 + theta**2) ** 0.5 if tier == "sharp" else sigma.sigma0 + theta


def loss_gradient(f_max: Number, y_max: Number, A: Number) -> Number:
    """B_grad = 4 (f_max + y_max)^2 A^2 [arda2026, Eq. (42)]."""
    return 4 * (f_max + y_max) ** 2 * A**2


class Constants(SimpleNamespace):
    """Every constant of arda2026 for one setting and tier, by the name it has in `constants_at`."""

    def to_dict(self) -> dict[str, Number]:
        """Name to value."""
        return dict(vars(self))


def constants_at(
    sigma: Activation,
    B_U: Number,
    rho: Any,
    nu: Any,
    *,
    d: Number,
    m: Number,
    n: Number,
    delta: Number | None,
    tier: str,
) -> Constants:
    """All constants; B_app is the form that is proved, with s1 nu_w.

    Without delta there is no B_app.
    `distance` is that of Eq. (32); `change_c`, `change_theta` and `change` are `feature_change`.
    """
    L1, L2 = lipschitz(sigma, B_U, tier), smoothness(sigma, B_U, tier)
    f_max, y_max = output_envelope(sigma, L1, rho), label_envelope(sigma, nu, d, tier)
    A = gradient_envelope(sigma, L1, rho, m, tier)
    change_c, change_theta, change = feature_change(L1, L2, rho, m, tier)
    form = "sharp" if tier == "sharp" else "corrected"
    app = {} if delta is None else {"B_app": approximation(sigma, nu, n, m, delta, form)}
    return Constants(
        **app,
        B_U=B_U,
        L1=L1,
        L2=L2,
        B_lin=linearisation(L1, L2, rho, m, tier),
        B_CoF=change_of_features(L1, L2, rho, nu, m),
        f_max=f_max,
        y_max=y_max,
        A=A,
        B_grad=loss_gradient(f_max, y_max, A),
        k=drift_radius(rho),
        rho_norm=length(rho),
        nu_norm=length(nu),
        distance=(length(nu) + length(rho)) / m**0.5,
        change_c=change_c,
        change_theta=change_theta,
        change=change,
    )


def value_bound(setting: Setting, tier: str = "printed") -> float:
    """B_U [arda2026, Remark 7]: realised if the setting has one, else a priori."""
    if setting.B_U is not None:
        return setting.B_U
    radius = event_radius_exact if tier == "sharp" else event_radius
    within = radius(setting.d, setting.m, setting.delta_prime)
    return float(within + setting.rho[1] / math.sqrt(setting.m))


def constants(setting: Setting, tier: str = "printed", *, B_U: float | None = None) -> Constants:
    """All constants for a setting.

    The sharp tier keeps the printed B_U unless the setting or the call gives one, so that tiers
    compare.
    """
    check_choice("tier", tier, TIERS)
    sizes: dict[str, Any] = {
        "d": setting.d,
        "m": setting.m,
        "n": setting.n,
        "delta": setting.delta,
        "tier": tier,
    }
    B = float(value_bound(setting) if B_U is None else B_U)
    return constants_at(setting.sigma, B, setting.rho, setting.nu, **sizes)
