"""The constants of deora2024, each written once.

Every function takes numbers or JAX arrays. `tier` says which Hessian bound is meant: "v2", the
later text, with an extra factor d; "v1", the first; "sharp", free of d (see docs/deora2024.md).
Any other name means "v2". The read-outs "full", "pooling" and "last" have their own power of T.
"""

from __future__ import annotations

from ...theory.numbers import Number, exp, largest, log, smallest

TIERS = ("v2", "v1", "sharp")


def rows_factor(T: Number, readout: str = "full") -> Number:
    """sqrt(T) for a free U; T where every row is u; 1 where only the last row is [Sec. 2]."""
    if readout == "full":
        return T**0.5
    return 1.0 * T if readout == "pooling" else 1.0


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
