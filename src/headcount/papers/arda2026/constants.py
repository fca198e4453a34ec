"""The constants of arda2026, each written once: as printed and, where we know better, sharp.

Every formula takes numbers or JAX arrays. The sharp forms are proved in docs/arda2026.md and
survive the falsifier. B_U is a priori (Remark 7) or realised.
"""

from __future__ import annotations

import math
from functools import cached_property
from operator import attrgetter
from typing import Any

from ...core import Activation, check_choice
from ...theory import Statements, Table
from ...theory.numbers import Number, largest, log, smallest
from .twins_constants import SlowConstants

TIERS = ("printed", "sharp")


def event_radius(d: Number, m: Number, delta_prime: Number) -> Number:
    """sqrt(d) + sqrt(2 ln(m / (2 delta'))), the radius of the event E_U [arda2026, Def. 1]."""
    return d**0.5 + (2 * (log(m) - log(2 * delta_prime))) ** 0.5  # m / delta' may overflow


def event_radius_exact(d: int, m: int, delta_prime: float) -> float:
    """The chi_d quantile at (1 - delta')^{2/m}: exact for the m/2 independent norms.

    Where 2 delta'/m is below what float64 can hold, Definition 1's radius, which is larger.
    """
    from scipy import stats  # slow to import

    tail = -math.expm1(math.log1p(-delta_prime) * 2 / m)
    exact = float(stats.chi.isf(tail, d))
    return exact if math.isfinite(exact) else float(event_radius(d, m, delta_prime))


def approximation(
    sigma: Activation, nu: Any, n: Number, m: Number, delta: Number, form: str = "corrected"
) -> Number:
    """B_app = 2 (s0 nu_c + s1 nu_u + s nu_w) sqrt(2 ln(2n/delta) / m) [arda2026, Lemma 5].

    s = s2 as the main text prints it, s1 as the appendix proves it ("corrected");
    "sharp": 2 (s0 nu_c + s1 nu_u + sqrt(2) s1 nu_w) sqrt(ln(2n/delta) / m).
    """
    bounded = sigma.sigma0 * nu[0] + sigma.sigma1 * nu[1]
    logarithm = log(2 * n) - log(delta)
    if form == "sharp":
        return 2 * (bounded + math.sqrt(2) * sigma.sigma1 * nu[2]) * (logarithm / m) ** 0.5
    s = sigma.sigma2 if form == "printed" else sigma.sigma1
    return 2 * (bounded + s * nu[2]) * (2 * logarithm / m) ** 0.5


def label_envelope(sigma: Activation, nu: Any, d: Number, tier: str) -> Number:
    """y_max = s0 nu_c + s1 nu_u + s1 sqrt(d) nu_w [arda2026, Lemma 6]; sharp: no sqrt(d)."""
    w = nu[2] if tier == "sharp" else d**0.5 * nu[2]
    return sigma.sigma0 * nu[0] + sigma.sigma1 * (nu[1] + w)


def gradient_envelope(sigma: Activation, L1: Number, rho: Any, m: Number, tier: str) -> Number:
    """A = s0 + (1 + rho_c/sqrt m) L1 [arda2026, Eq. (41)]; sharp: root of the sum of squares."""
    theta = (1 + rho[0] / m**0.5) * L1
    return (sigma.sigma0**2 + theta**2) ** 0.5 if tier == "sharp" else sigma.sigma0 + theta


def length(radii: Any) -> Number:
    """|rho|_2 or |nu|_2."""
    return (radii[0] ** 2 + radii[1] ** 2 + radii[2] ** 2) ** 0.5


class Constants(Table):
    """The constants at a head, a model, a run or a setting; the form "sharp", else as printed."""

    sigma, rho, nu = (property(attrgetter(f"symbols.{name}")) for name in ("sigma", "rho", "nu"))
    d, m, n, delta = (property(attrgetter(f"symbols.{name}")) for name in ("d", "m", "n", "delta"))
    eta, tau, V0 = (property(attrgetter(f"symbols.{name}")) for name in ("step", "tau", "V0"))
    loss_at_start = property(attrgetter("symbols.loss_at_start"))

    @property
    def tier(self) -> str:
        """Which constants a form takes."""
        return "sharp" if self.form == "sharp" else "printed"

    @property
    def best(self) -> Constants:
        """The sharp constants, for what is known without the paper's."""
        return Constants(self.symbols, "sharp")

    @cached_property
    def B_U(self) -> Number:
        """The bound on |U_i| [Remark 7]: realised where the symbols know one, else a priori."""
        known = self.symbols.B_U
        if known is not None:
            return known
        radius = event_radius(self.d, self.m, self.symbols.delta_prime)
        return radius + self.rho[1] / self.m**0.5

    @cached_property
    def L1(self) -> Number:
        """L1 = s1 sqrt(1 + B_U^2) [Lemma 2]; L1* = s1 max(1, B_U)."""
        sharp = self.tier == "sharp"
        return self.sigma.sigma1 * (largest(1.0, self.B_U) if sharp else (1 + self.B_U**2) ** 0.5)

    @cached_property
    def L2(self) -> Number:
        """L2 = s2 (1 + B_U^2) + 8 s1 sqrt(1 + B_U^2) [Lemma 2].

        L2* = s2 max(1, B_U^2) + s1 sqrt(2 + (32/27)^2 B_U^2).
        """
        sigma, B_U = self.sigma, self.B_U
        if self.tier == "sharp":
            attention = (2 + (32 / 27) ** 2 * B_U**2) ** 0.5
            return sigma.sigma2 * largest(1.0, B_U) ** 2 + sigma.sigma1 * attention
        return sigma.sigma2 * (1 + B_U**2) + 8 * sigma.sigma1 * (1 + B_U**2) ** 0.5

    @cached_property
    def k(self) -> Number:
        """k = sqrt(rho_u^2 + rho_w^2)."""
        return (self.rho[1] ** 2 + self.rho[2] ** 2) ** 0.5

    @cached_property
    def lengths(self) -> Number:
        """|nu| + |rho|."""
        return length(self.nu) + length(self.rho)

    @cached_property
    def nu_squared(self) -> Number:
        """|nu|^2, which bounds V(phi0)."""
        return length(self.nu) ** 2

    @property
    def start(self) -> Number:
        """What a run starts from: |nu|^2, or V(phi0) in the form "measured"."""
        return self.V0 if self.form == "measured" else self.nu_squared

    @cached_property
    def B_lin(self) -> Number:
        """B_lin = (L1 rho_c k + L2 k^2) / sqrt(m) [Lemma 3]; sharp: L2/2, as proved."""
        curvature = self.L2 / 2 if self.tier == "sharp" else self.L2
        return (self.L1 * self.rho[0] * self.k + curvature * self.k**2) / self.m**0.5

    @cached_property
    def B_app(self) -> Number:
        """The bound of Lemma 5 that is proved, with s1 nu_w."""
        return self.approximation("sharp" if self.tier == "sharp" else "corrected")

    def approximation(self, form: str) -> Number:
        """B_app in one of the forms of Lemma 5."""
        return approximation(self.sigma, self.nu, self.n, self.m, self.delta, form)

    @cached_property
    def distance(self) -> Number:
        """(|nu| + |rho|) / sqrt(m) [Eq. (32)]."""
        return self.lengths / self.m**0.5

    @cached_property
    def change_c(self) -> Number:
        """The change of one head's gradient in c [Eq. (36)]."""
        return self.L1 * self.k / self.m

    @cached_property
    def change_theta(self) -> Number:
        """The change of one head's gradient in theta [Eq. (35)]."""
        return (self.L2 * self.k + self.rho[0] * self.L1) / self.m

    @cached_property
    def change(self) -> Number:
        """Both [Eq. (37)]: the sum; sharp: the root of the sum of squares."""
        if self.tier == "sharp":
            return (self.change_c**2 + self.change_theta**2) ** 0.5
        return self.change_c + self.change_theta

    @cached_property
    def B_CoF(self) -> Number:
        """B_CoF = ((L1 + L2) k + rho_c L1) (|nu| + |rho|) / sqrt(m) [Eq. (38)]."""
        return (self.change_c + self.change_theta) * self.lengths * self.m**0.5

    @cached_property
    def f_max(self) -> Number:
        """f_max = L1 k + s0 rho_c [Lemma 6]."""
        return self.L1 * self.k + self.sigma.sigma0 * self.rho[0]

    @cached_property
    def y_max(self) -> Number:
        """The bound on targets [Lemma 6]."""
        return label_envelope(self.sigma, self.nu, self.d, self.tier)

    @cached_property
    def A(self) -> Number:
        """The bound on the model's gradient [Eq. (41)]."""
        return gradient_envelope(self.sigma, self.L1, self.rho, self.m, self.tier)

    @cached_property
    def B_grad(self) -> Number:
        """B_grad = 4 (f_max + y_max)^2 A^2 [Eq. (42)]."""
        return 4 * (self.f_max + self.y_max) ** 2 * self.A**2

    @property
    def any_output(self) -> Number:
        """s0 (sqrt(m) + rho_c) >= |f|, because |c_i| <= 1 + rho_c/sqrt m and |h| <= s0."""
        return self.sigma.sigma0 * (self.m**0.5 + self.rho[0])

    @property
    def any_error(self) -> Number:
        """|f - f_lin| from |h| <= s0 and the size of the linear term alone."""
        return 2 * self.any_output + self.best.L1 * self.k

    @property
    def any_gap(self) -> Number:
        """|f_lin(phi~)| <= s0 nu_c + s1 (nu_u + B_U nu_w), and |f*| <= y_max*: without Lemma 5."""
        sigma, nu = self.sigma, self.nu
        linear = sigma.sigma0 * nu[0] + sigma.sigma1 * (nu[1] + self.B_U * nu[2])
        return linear + self.best.y_max

    @property
    def any_change_c(self) -> Number:
        """Both gradients of a head in c by their own bounds, without (36)."""
        return 2 * self.sigma.sigma0 / self.m**0.5

    @property
    def any_change_theta(self) -> Number:
        """Both gradients of a head in theta by their own bounds, without (35)."""
        return (2 + self.rho[0] / self.m**0.5) * self.best.L1 / self.m**0.5

    @property
    def any_change(self) -> Number:
        """Both, without (37)."""
        return (self.any_change_c**2 + self.any_change_theta**2) ** 0.5

    @property
    def any_feature_error(self) -> Number:
        """What bounds the change-of-feature error without (38): gradients by their own bounds."""
        start = gradient_envelope(self.sigma, self.best.L1, (0.0, 0.0, 0.0), self.m, "sharp")
        return (self.best.A + start) * self.lengths

    @property
    def known_output(self) -> Number:
        """What bounds |f| on Omega_rho without Theorem 1: the trivial bound, or f_max with L1*."""
        return smallest(self.best.f_max, self.any_output)

    @property
    def known_loss(self) -> Number:
        """(known |f| + y_max*)^2, which bounds the loss on all of Omega_rho."""
        return (self.known_output + self.best.y_max) ** 2

    @property
    def known_descent(self) -> Number:
        """What bounds <grad L, phi~ - phi> + 2 L without (39): |grad L| <= 2 max |f - y| A*."""
        slope = 2 * self.known_loss**0.5 * self.best.A
        return slope * self.lengths + 2 * self.known_loss

    @property
    def known_gradient(self) -> Number:
        """(42) with what is known about |f| and |y| without it."""
        return 4 * (self.known_output + self.best.y_max) ** 2 * self.A**2


def constants(setting: Any, tier: str = "printed") -> Constants:
    """The constants for a setting, by attribute: constants(setting).B_lin.

    The sharp tier keeps the printed B_U unless the setting gives one, so that tiers compare.
    """
    return Constants(setting, check_choice("tier", tier, TIERS))


state = Statements("arda2026", Constants, SlowConstants)
