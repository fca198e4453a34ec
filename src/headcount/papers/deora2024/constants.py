"""The constants of deora2024, each written once.

`tier` says which Hessian bound is meant: "v2", the later text, with an extra factor d; "v1", the
first; "sharp", free of d (docs/deora2024.md). Any other name means "v2".
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ...theory import Statements, Table
from ...theory.numbers import Number, exp, largest, log, smallest
from .twins_constants import SlowConstants

TIERS = ("v2", "v1", "sharp")


def tier_of(form: str) -> str:
    """The Hessian bound that a form is stated with."""
    return form if form in ("v1", "sharp") else "v2"


def form_of(form: str) -> str:
    """Which g_0 Corollary 5 is stated with: G as printed and in its sharp form, else sqrt(2) G."""
    return "printed" if form in ("printed", "sharp") else "corrected"


def stretch_of(form: str) -> int:
    """g_0 over D: 1 where the printed proof sets them equal, 2 to see that more is allowed."""
    return 2 if form == "corrected" else 1


def rows_factor(T: Number, readout: str = "full") -> Number:
    """sqrt(T) for a free U; T where every row is u; 1 where only the last row is [Sec. 2]."""
    return {"full": T**0.5, "pooling": 1.0 * T}.get(readout, 1.0)


def beta_1(N: Number, R: Number, T: int, readout: str = "full") -> Number:
    """sqrt(T) R (2 R^2 N + 1), which bounds |grad Phi~| [deora2024, Cor. 1 (1)]."""
    return rows_factor(T, readout) * R * (2 * R**2 * N + 1)


def beta_3(N: Number, R: Number, T: int, d: int, tier: str = "v2", readout: str = "full") -> Number:
    """2 d sqrt(Td) R^3 (3 sqrt(d) R^2 N + 1) [Cor. 1 (3)]; v1 has no d in front.

    sharp: sqrt(T) R^3 (2 R^2 N + 1) = R^2 beta_1.
    """
    if tier == "sharp":
        return R**2 * beta_1(N, R, T, readout)
    lead = 2 * rows_factor(T, readout) * d**0.5 * R**3 * (3 * d**0.5 * R**2 * N + 1)
    return lead if tier == "v1" else d * lead


def beta_2(
    N: Number, R: Number, H: Number, T: int, d: int, tier: str = "v2", readout: str = "full"
) -> Number:
    """beta_3/sqrt(H) + beta_1^2/4, which bounds |Hess L| [deora2024, Cor. 1 (2)]."""
    return beta_3(N, R, T, d, tier, readout) / H**0.5 + beta_1(N, R, T, readout) ** 2 / 4


def reach(D: Number, N: Number) -> Number:
    """B = 3 |theta - theta_0| + |theta|_{2,inf}: what N becomes in the tilde constants."""
    return 3 * D + N


def required_root(
    D: Number,
    N: Number,
    R: Number,
    T: int,
    d: int,
    tier: str = "v2",
    readout: str = "full",
    *,
    factor: int = 18,
) -> Number:
    """factor beta_3[N -> B] D^2, what sqrt(H) must reach: 18 in (74), 128 in (84)."""
    return factor * beta_3(reach(D, N), R, T, d, tier, readout) * D**2


def alpha(B: Number, R: Number, T: int, d: int, tier: str = "v2", readout: str = "full") -> Number:
    """3 d sqrt(d) R^2 [3 sqrt(T) R^3 B + 2 sqrt(T) R] [Thm. 3]; v1 has no d in front."""
    t = rows_factor(T, readout)
    lead = 3 * d**0.5 * R**2 * (3 * t * R**3 * B + 2 * t * R)
    return lead if tier == "v1" else d * lead


def rho(
    B: Number, R: Number, H: Number, T: int, d: int, tier: str = "v2", readout: str = "full"
) -> Number:
    """(2 d sqrt(Td) R^3/sqrt(H) + T R^2/4) alpha^2, the inverse of the largest step [Thm. 3].

    sharp: beta_2 at B + beta_1(B)/sqrt(H), which no head exceeds after one more step.
    """
    t = rows_factor(T, readout)
    if tier == "sharp":
        return beta_2(B + beta_1(B, R, T, readout) / H**0.5, R, H, T, d, tier, readout)
    lead = 2 * t * d**0.5 * R**3 * (1 if tier == "v1" else d)
    return (lead / H**0.5 + t**2 * R**2 / 4) * alpha(B, R, T, d, tier, readout) ** 2


def stable_rho(
    B: Number, R: Number, H: Number, T: int, d: int, tier: str = "v2", readout: str = "full"
) -> Number:
    """rho v beta_1(B)^2: (94) needs eta beta_1(B)^2 <= 1 as well, which sharp rho leaves open."""
    return largest(rho(B, R, H, T, d, tier, readout), beta_1(B, R, T, readout) ** 2)


def largest_step(rho_B: Number, D: Number, K: int, L_theta: Number, L_0: Number) -> Number:
    """1 ^ 1/rho ^ D^2/(K L(theta)) ^ D^2/L(theta_0) [deora2024, Thm. 3]."""
    tiny = 1e-300
    step = smallest(1.0, 1 / largest(rho_B, tiny))
    step = smallest(step, D**2 / largest(K * L_theta, tiny))
    return smallest(step, D**2 / largest(L_0, tiny))


def training_bound(L_theta: Number, D: Number, eta: Number, K: Number) -> Number:
    """2 L(theta) + 5 D^2/(4 eta K) [deora2024, (4), (79)]."""
    return 2 * L_theta + 5 * D**2 / (4 * eta * K)


def gap_bound(L_theta: Number, D: Number, eta: Number, K: Number, n: Number) -> Number:
    """(4/n) (2 K L(theta) + 9 D^2/(4 eta)) [deora2024, Thm. 4]."""
    return 4 / n * (2 * K * L_theta + 9 * D**2 / (4 * eta))


def spread(B_Phi: Number, gamma: Number, eps: Number) -> Number:
    """G = (2 B_Phi + log(1/eps))/gamma [deora2024, Prop. 7]."""
    return (2 * B_Phi - log(eps)) / gamma


def g_0(B_Phi: Number, gamma: Number, eps: Number, form: str = "corrected") -> Number:
    """The realizability distance: printed G; corrected sqrt(2) G, since |theta_*| = sqrt(2)."""
    G = spread(B_Phi, gamma, eps)
    return G if form == "printed" else 2**0.5 * G


def realizable_root(
    G: Number,
    B_2: Number,
    B_Phi: Number,
    R: Number,
    T: int,
    d: int,
    tier: str = "v2",
    readout: str = "full",
) -> Number:
    """5 d sqrt(Td) R^3 (B_2/B_Phi) (3 sqrt(d) R^2 + 1) G^2 (1 v G) [deora2024, (98)].

    sharp: G^2 beta_3(B_2 + sqrt(2) G)/B_Phi, what its proof needs.
    """
    if tier == "sharp":
        return G**2 * beta_3(B_2 + 2**0.5 * G, R, T, d, tier, readout) / B_Phi
    return 2.5 * beta_3(1.0, R, T, d, tier, readout) * B_2 / B_Phi * G**2 * largest(1.0, G)


def good_start_root(
    g0: Number, B_2: Number, R: Number, T: int, d: int, tier: str = "v2", readout: str = "full"
) -> Number:
    """256 d sqrt(Td) R^3 B_2 (3 sqrt(d) R^2 (4 g_0 + B_2) + 1) g_0^2 [deora2024, Cor. 5].

    sharp: without the factor B_2, which Corollaries 3 and 4 do not ask for.
    """
    lead = 1.0 if tier == "sharp" else B_2
    return 128 * lead * beta_3(4 * g0 + B_2, R, T, d, tier, readout) * g0**2


def start_loss(B_Phi: Number) -> Number:
    """log(1 + e^{B_Phi}), which bounds the loss of a good start [deora2024, Cor. 5]."""
    return B_Phi + log(1 + exp(-B_Phi))


def start_step(B_Phi: Number, gamma: Number, rho_B: Number) -> Number:
    """1 ^ 1/rho ^ (4 B_Phi^2/gamma^2)/log(1 + e^{B_Phi}) [deora2024, Cor. 5]."""
    first = (2 * B_Phi / gamma) ** 2 / start_loss(B_Phi)
    return smallest(1.0, smallest(1 / rho_B, first))


def _symbol(name: str) -> Any:
    """A constant that is a symbol."""
    return cached_property(lambda table: getattr(table.symbols, name))


class Constants(Table):
    """The constants at a head, a model, a run, a start or a setting; the form names the tier."""

    @property
    def tier(self) -> str:
        """The Hessian bound."""
        return tier_of(self.form)

    @property
    def shape(self) -> tuple[Any, ...]:
        """What every beta_3 ends with: T, d, tier, read-out."""
        s = self.symbols
        return s.T, s.d, self.tier, s.readout

    N, R, H, D, L_theta, gamma = map(_symbol, ("N", "R", "H", "D", "L_theta", "gamma"))
    """As the symbols have them: N is |theta|_{2,inf} of a target, else the longest read-out."""

    @cached_property
    def beta_1(self) -> Any:
        """Of N."""
        return beta_1(self.N, self.R, self.symbols.T, self.symbols.readout)

    @cached_property
    def full_beta_1(self) -> Any:
        """Of N, with sqrt(T) whatever the read-out."""
        return beta_1(self.N, self.R, self.symbols.T)

    @cached_property
    def beta_2(self) -> Any:
        """Of N."""
        return beta_2(self.N, self.R, self.H, *self.shape)

    @cached_property
    def beta_3(self) -> Any:
        """Of N."""
        return beta_3(self.N, self.R, *self.shape)

    @cached_property
    def bend(self) -> Any:
        """beta_3/sqrt(H)."""
        return self.beta_3 / self.H**0.5

    @cached_property
    def B(self) -> Any:
        """3 D + N."""
        return reach(self.D, self.N)

    @cached_property
    def tilde_1(self) -> Any:
        """beta_1 of B."""
        return beta_1(self.B, self.R, self.symbols.T, self.symbols.readout)

    @cached_property
    def tilde_3(self) -> Any:
        """beta_3 of B."""
        return beta_3(self.B, self.R, *self.shape)

    @property
    def root(self) -> Any:
        """What sqrt(H) must reach in (74)."""
        return 18 * self.tilde_3 * self.D**2

    @property
    def wider_root(self) -> Any:
        """What sqrt(H) must reach in (84)."""
        return 128 * self.tilde_3 * self.D**2

    def _longest(self, rho_of: Any, *losses: Any) -> Any:
        rho_B = rho_of(self.B, self.R, self.H, *self.shape)
        return largest_step(rho_B, self.D, self.symbols.K, *losses)

    @property
    def longest_step(self) -> Any:
        """The largest eta of Theorem 3."""
        return self._longest(rho, self.symbols.L_theta, self.symbols.L_0)

    @property
    def longest_stable_step(self) -> Any:
        """The largest eta of Theorem 4, with eta beta_1(B)^2 <= 1, too."""
        return self._longest(stable_rho, self.symbols.L_theta, self.symbols.L_0)

    @property
    def sure_step(self) -> Any:
        """The same on every training set of a population."""
        return self._longest(stable_rho, self.symbols.worst_loss, self.symbols.first_loss)

    def _chosen(self, longest: str) -> Any:
        eta = self.symbols.eta
        return getattr(self, longest) if eta is None else eta

    @cached_property
    def eta(self) -> Any:
        """The step size, by default the largest of Theorem 3."""
        return self._chosen("longest_step")

    @cached_property
    def stable_eta(self) -> Any:
        """The step size, by default the largest of Theorem 4."""
        return self._chosen("longest_stable_step")

    @property
    def training_bound(self) -> Any:
        """Of Theorem 3."""
        return training_bound(self.L_theta, self.D, self.eta, self.symbols.K)

    @property
    def gap_bound(self) -> Any:
        """Of Theorem 4."""
        s = self.symbols
        return gap_bound(self.L_theta, self.D, self.stable_eta, s.K, s.samples)

    @property
    def stretched(self) -> Any:
        """g_0 of Corollary 3: D, or twice that."""
        return stretch_of(self.form) * self.D

    @property
    def stretched_root(self) -> Any:
        """What sqrt(H) must reach in (74) with g_0 for D."""
        return required_root(self.stretched, self.N, self.R, *self.shape)

    @property
    def stretched_step(self) -> Any:
        """The largest eta of Corollary 3."""
        rho_B = rho(reach(self.stretched, self.N), self.R, self.H, *self.shape)
        return largest_step(rho_B, self.stretched, 1, 1.0, self.symbols.L_0)

    @cached_property
    def g_0(self) -> Any:
        """The realizability distance of Corollary 5."""
        s = self.symbols
        return g_0(s.B_Phi, self.gamma, s.eps, form_of(self.form))

    @property
    def realizable_root(self) -> Any:
        """What sqrt(H) must reach in (98)."""
        s = self.symbols
        G = spread(s.B_Phi, s.gamma, s.eps)
        return realizable_root(G, s.B_2, s.B_Phi, self.R, *self.shape)

    @property
    def start_root(self) -> Any:
        """What sqrt(H) must reach in Corollary 5."""
        return good_start_root(self.g_0, self.symbols.B_2, self.R, *self.shape)

    def _start_step(self, rho_of: Any) -> Any:
        s = self.symbols
        rho_B = rho_of(4 * self.g_0 + s.B_2, self.R, self.H, *self.shape)
        return start_step(s.B_Phi, s.gamma, rho_B)

    @property
    def start_step(self) -> Any:
        """The largest eta of Corollary 5."""
        return self._start_step(rho)

    @property
    def stable_start_step(self) -> Any:
        """The largest eta of its second half."""
        return self._start_step(stable_rho)

    @cached_property
    def start_eta(self) -> Any:
        """The step size, by default the largest of Corollary 5."""
        return self._chosen("start_step")

    @cached_property
    def stable_start_eta(self) -> Any:
        """The step size, by default the largest of its second half."""
        return self._chosen("stable_start_step")

    @property
    def start_bound(self) -> Any:
        """2/K + 5 g_0^2/(4 eta K), of Corollary 5."""
        K = self.symbols.K
        return 2 / K + 5 * self.g_0**2 / (4 * self.start_eta * K)

    @property
    def start_gap_bound(self) -> Any:
        """17 g_0^2/(eta n), of its second half."""
        return 17 * self.g_0**2 / (self.stable_start_eta * self.symbols.samples)

    @property
    def margin_ceiling(self) -> Any:
        """sqrt(2) beta_1(B_2), which no margin exceeds."""
        s = self.symbols
        return 2**0.5 * beta_1(s.B_2, self.R, s.T, s.readout)


def START_LOSS(k: Any) -> Any:
    """L(theta_0): what is known of a run that descends."""
    return k.symbols.L_0


NO_SIZE = "a derivative has no size that is known without computing it"
"""Why bounds of derivatives have no trivial rival."""
state = Statements("deora2024", Constants, SlowConstants)
HESSIAN_TIERS = {
    "v2": ("the later text, with an extra factor d", "E9"),
    "v1": ("the first text, without it: its proof has a slip, the statement is true", "E9"),
    "sharp": ("free of d: R^2 beta_1 for beta_3", "E9"),
}
