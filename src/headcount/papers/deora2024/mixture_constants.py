"""The constants of deora2024 for the tokenised mixture DM1, each written once [Sec. 5]."""

from __future__ import annotations

from ...theory.numbers import Number, largest, log


def token_bound(S: Number, Z: Number, Z_nu: Number, M: int) -> Number:
    """R = sqrt(S^2 + Z^2 + 2 Z_nu/M) [deora2024, Sec. 5]."""
    return (S**2 + Z**2 + 2 * Z_nu / M) ** 0.5


def gamma_lin(S: Number, T: int, zeta: Number, Z_mu: Number) -> Number:
    """S sqrt(T/2) (zeta - 2 (1 - zeta) Z_mu/S^2), the linear model's margin [(132)]."""
    return S * (T / 2) ** 0.5 * (zeta - 2 * (1 - zeta) * Z_mu / S**2)


def gamma_attn(S: Number, T: int, Z_mu: Number, eps: Number) -> Number:
    """sqrt(T)/(sqrt(2) S) (S^2 (1 - eps) - 2 eps Z_mu), that of saturated attention [(11)]."""
    return (T / 2) ** 0.5 / S * (S**2 * (1 - eps) - 2 * eps * Z_mu)


def attention_part(S: Number, T: int, M: int, zeta: Number, Zbar: Number) -> Number:
    """The first summand of gamma_* [deora2024, (7)]."""
    lead = T * (1 - zeta) * zeta / (4 * (2 * (M + 1)) ** 0.5)
    return lead * (zeta * S**4 - 7 * Zbar * S**2 - 12 * Zbar**2 - 16 * Zbar**3 / S**2)


def gamma_star(
    S: Number, T: int, M: int, zeta: Number, Z_mu: Number, Z_nu: Number, P_term: Number
) -> Number:
    """gamma_* of (7) = (119): attention part, minus what p costs, plus gamma_lin."""
    part = attention_part(S, T, M, zeta, largest(Z_mu, Z_nu))
    return part - P_term + gamma_lin(S, T, zeta, Z_mu)


def p_term(P: Number, R: Number, S: Number, Z: Number, T: int, tier: str = "printed") -> Number:
    """P T^{5/2} (S + Z)^3, what p costs at most [(114)]; sharp: P T R^3."""
    return P * T * R**3 if tier == "sharp" else P * T**2.5 * (S + Z) ** 3


def row_deviation(R: Number, n_1: Number, delta: Number) -> Number:
    """(R/sqrt(n_1)) (1/2 + sqrt(log(1/delta)/2)), an explicit P in place of (6)."""
    return R / n_1**0.5 * (0.5 + (-log(delta) / 2) ** 0.5)


def B_2(S: Number, P: Number, T: int) -> Number:
    """sqrt(T) (S + P), P1 of the two-phase start [deora2024, Prop. 2]."""
    return T**0.5 * (S + P)


def B_Phi(S: Number, P: Number, R: Number, T: int, delta: Number, count: Number = 2) -> Number:
    """T R (S + P) sqrt(2 log(count/delta)), P2; count 2 covers every X at once, n is printed."""
    return T * R * (S + P) * (2 * (log(count) - log(delta))) ** 0.5


def head_slope(S: Number, P: Number, R: Number, T: int) -> Number:
    """2 R^3 T (S + P) + sqrt(T) R [deora2024, (118)]."""
    return 2 * R**3 * T * (S + P) + T**0.5 * R


def sufficient_heads(gamma: Number, slope: Number, n: Number, delta: Number) -> Number:
    """H of Lemma 15, 16 (slope/gamma_*)^2 2 log(n/delta): enough for gamma_*/2, and not needed."""
    return 32 * (slope / gamma) ** 2 * (log(n) - log(delta))


def scores(S: Number, Z_mu: Number, Z_nu: Number) -> tuple[Number, Number]:
    """(A, B) of (129): logits of relevant tokens are at least A, of others at most B."""
    return S**4 - S**2 * (Z_mu + Z_nu), 2 * (Z_mu**2 + Z_mu * Z_nu + S**2 * Z_mu)


def saturation(S: Number, M: int, zeta: Number, eps: Number) -> Number:
    """(8 sqrt(2(M+1))/(3 S^2)) log((1/zeta - 1)/eps), Gamma of Prop. 3."""
    return 8 * (2 * (M + 1)) ** 0.5 / (3 * S**2) * log((1 / zeta - 1) / eps)
