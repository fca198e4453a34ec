"""The constants of deora2024 in slow arithmetic: the twin of `constants`, written apart from it."""

from __future__ import annotations

from typing import Any

from ...theory.slow import Arithmetic

Number = Any


def per_rows(num: Arithmetic, T: int, readout: str) -> Number:
    """The power of T of a read-out."""
    if readout == "last":
        return num.number(1)
    return num.number(T) if readout == "pooling" else num.sqrt(num.number(T))


def beta_1(num: Arithmetic, N: Number, R: Number, T: int, readout: str = "full") -> Number:
    """The gradient's bound."""
    return per_rows(num, T, readout) * (2 * R * R * R * N + R)


def beta_3(
    num: Arithmetic, N: Number, R: Number, T: int, d: int, tier: str, readout: str = "full"
) -> Number:
    """The Hessian's bound."""
    t, cube = per_rows(num, T, readout), R * R * R
    if tier == "sharp":
        return t * cube + 2 * t * cube * R * R * N
    root = num.sqrt(num.number(d))
    first = 6 * t * d * cube * R * R * N + 2 * t * root * cube
    return first if tier == "v1" else first * d


def beta_2(
    num: Arithmetic,
    N: Number,
    R: Number,
    H: Number,
    T: int,
    d: int,
    tier: str,
    readout: str = "full",
) -> Number:
    """The loss's smoothness."""
    half = beta_1(num, N, R, T, readout) / 2
    return half * half + beta_3(num, N, R, T, d, tier, readout) / num.sqrt(H)


def rho(
    num: Arithmetic,
    B: Number,
    R: Number,
    H: Number,
    T: int,
    d: int,
    tier: str,
    readout: str = "full",
) -> Number:
    """The inverse of the largest step."""
    t, root_H = per_rows(num, T, readout), num.sqrt(H)
    if tier == "sharp":
        longest = B + beta_1(num, B, R, T, readout) / root_H
        return beta_2(num, longest, R, H, T, d, tier, readout)
    root = num.sqrt(num.number(d))
    power = 1 if tier == "v1" else d
    slope = 9 * power * root * t * R**5 * B + 6 * power * root * t * R**3
    smooth = 2 * power * root * t * R**3 / root_H + t * t * R * R / 4
    return smooth * slope * slope


def stable_rho(
    num: Arithmetic,
    B: Number,
    R: Number,
    H: Number,
    T: int,
    d: int,
    tier: str,
    readout: str = "full",
) -> Number:
    """The same where eta beta_1(B)^2 <= 1 is asked for, too."""
    slope = beta_1(num, B, R, T, readout)
    return num.largest([slope * slope, rho(num, B, R, H, T, d, tier, readout)])


def start_loss(num: Arithmetic, B_Phi: Number) -> Number:
    """log(1 + e^{B_Phi})."""
    return num.log(1 + num.exp(B_Phi))


def realizable_root(
    num: Arithmetic,
    G: Number,
    B_2: Number,
    B_Phi: Number,
    R: Number,
    T: int,
    d: int,
    tier: str,
    readout: str = "full",
) -> Number:
    """What sqrt(H) must reach in (98)."""
    if tier == "sharp":
        root = num.sqrt(num.number(2))
        return G * G * beta_3(num, B_2 + root * G, R, T, d, tier, readout) / B_Phi
    lead = beta_3(num, num.number(1), R, T, d, tier, readout) * 5 / 2
    return lead * B_2 / B_Phi * G * G * num.largest([num.number(1), G])


def good_start_root(
    num: Arithmetic,
    g0: Number,
    B_2: Number,
    R: Number,
    T: int,
    d: int,
    tier: str,
    readout: str = "full",
) -> Number:
    """What sqrt(H) must reach in Corollary 5."""
    lead = 128 * beta_3(num, 4 * g0 + B_2, R, T, d, tier, readout) * g0 * g0
    return lead if tier == "sharp" else lead * B_2
