"""Refuted statements again, from the quotation alone: mpmath, and no code of the claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpmath import binomial, exp, log, mp, mpf, sqrt

from headcount.theory import claims, read_certificate, shipped_certificates

mp.dps = 40
Point = dict[str, Any]
ALONE: dict[str, Callable[[Point], tuple[Any, Any]]] = {}


def alone(name: str) -> Callable[[Any], Any]:
    """Register a recomputation: it asserts the hypotheses and returns both sides."""

    def register(function: Any) -> Any:
        ALONE[f"deora2024/{name}"] = function
        return function

    return register


def number(value: Any) -> Any:
    """One exact number."""
    return mpf(float(np.asarray(value).item()))


def signs(H: int) -> list[tuple[int, Any]]:
    """(the sum of H fair signs, its probability)."""
    return [(2 * k - H, binomial(H, k) / mpf(2) ** H) for k in range(H + 1)]


@alone("fact-2")
def _(p: Point) -> tuple[Any, Any]:
    """|mean - mu| <= 2 B sqrt(log(1/delta)/(2H)) with probability at least 1 - delta; B = 1."""
    H, delta = int(p["H"]), number(p["delta"])
    assert 0 < delta < 1
    bound = 2 * sqrt(log(1 / delta) / (2 * H))
    return sum(w for s, w in signs(H) if abs(mpf(s) / H) > bound), delta


def mixture(p: Point) -> tuple[list[list[Any]], list[list[Any]], Any]:
    """(tokens, patterns, zeta) of a DM1 sample, from its noise in units of the bounds."""
    S, M, L = number(p["S"]), p["on_nu"].shape[1], int(p["L"])
    pattern = [[S if i == k else mpf(0) for i in range(M + 2)] for k in range(M + 2)]
    own = 0 if float(p["y"]) > 0 else 1
    tokens = [list(pattern[own]) for _ in range(L)]
    for mu, nu, kind in zip(p["on_mu"], p["on_nu"], p["kind"], strict=True):
        z = [number(p["Z_mu"]) * number(e) / S for e in mu]
        z += [number(p["Z_nu"]) / M * number(e) / S for e in nu]
        chosen = pattern[2 + int(np.argmax(kind))]
        tokens.append([a + b for a, b in zip(chosen, z, strict=True)])
    return tokens, pattern, mpf(L) / len(tokens)


@alone("lemma-12")
def _(p: Point) -> tuple[Any, Any]:
    """|Phi~(X; theta^(1))| <= T R (S + P) sqrt(2 log(1/delta)) with probability at least 1 - delta,
    at U_h = alpha_h 1_T ((zeta/2) u_* + p)^T, W_h = 0."""
    X, pattern, zeta = mixture(p)
    S, H, delta, T = number(p["S"]), int(p["H"]), number(p["delta"]), len(X)
    assert 0 < zeta < 1
    assert 0 < delta < 1
    Z_mu, Z_nu, M = number(p["Z_mu"]), number(p["Z_nu"]), len(pattern) - 2
    R = sqrt(S**2 + (2 * Z_mu**2 + Z_nu**2 / M) / S**2 + 2 * Z_nu / M)
    assert R >= 1
    row = [
        zeta / 2 * (a - b) + number(e)
        for a, b, e in zip(pattern[0], pattern[1], p["p"], strict=True)
    ]
    P = sqrt(sum(number(e) ** 2 for e in p["p"]))
    # Attention at W = 0 is uniform: <U, 1 1^T X/T> = sum over tokens of <row, x_t>.
    one = sum(sum(a * b for a, b in zip(row, x, strict=True)) for x in X)
    bound = T * R * (S + P) * sqrt(2 * log(1 / delta))
    return sum(w for s, w in signs(H) if abs(s / sqrt(mpf(H)) * one) > bound), delta


@alone("lemma-18")
def _(p: Point) -> tuple[Any, Any]:
    """sum_{i > L} softmax(Gamma r)_i <= eps."""
    r, L = [number(e) for e in p["r"]], int(p["L"])
    A, B, Gamma, eps = (number(p[name]) for name in ("A", "B", "Gamma", "eps"))
    assert r[:L] == sorted(r[:L], reverse=True)
    assert min(r[:L]) >= A
    assert max(r[L:]) <= B
    assert A > 2 * B
    assert eps > 0
    assert Gamma >= 2 / A * log((mpf(len(r)) / L - 1) / eps)
    weights = [exp(Gamma * e) for e in r]
    return sum(weights[L:]) / sum(weights), eps


def labels_alone(p: Point, lead: Any) -> tuple[Any, Any, Any]:
    """(P(|p_1| > bound), delta) without noise: |p_1| at any share a of positive labels is at least
    that at a = 1/2, and the bound is below it."""
    S, zeta, C, n_1, d, delta = (number(p[k]) for k in ("S", "zeta", "C", "n_1", "d", "delta"))
    assert S >= 1  # R = S without noise
    assert 0 < zeta < 1
    assert d >= 3  # M + 2 patterns
    assert n_1 == int(n_1)
    bound = lead * C * S * (sqrt(d / n_1) + sqrt(log(1 / delta) / n_1))
    lengths = [zeta / 2 * S * sqrt((1 - a) ** 2 + a**2) for a in (mpf(k) / 64 for k in range(65))]
    assert min(lengths) == lengths[32]
    return (mpf(1) if bound < lengths[32] else mpf(0)), delta, bound


@alone("lemma-2")
def _(p: Point) -> tuple[Any, Any]:
    """|p| <= C (2S + Z)(sqrt(d/n_1) + sqrt(log(1/delta)/n_1)) with probability 1 - delta, Z = 0."""
    failing, delta, _ = labels_alone(p, 2)
    return failing, delta


@alone("eq-121")
def _(p: Point) -> tuple[Any, Any]:
    """|p_1| <= C S (sqrt(d/n_1) + sqrt(log(1/delta)/n_1)) with probability at least 1 - 2 delta."""
    failing, delta, _ = labels_alone(p, 1)
    return failing, 2 * delta


@alone("proposition-3")
def _(p: Point) -> tuple[Any, Any]:
    """Attention on the irrelevant tokens <= eps for any Gamma >= (8 sqrt(2(M+1))/(3 S^2))
    log((1/zeta - 1)/eps), at W = Gamma W_*/(S^2 sqrt(2(M+1))); here at equality."""
    X, pattern, zeta = mixture(p)
    S, eps, L, M = number(p["S"]), number(p["eps"]), int(p["L"]), len(pattern) - 2
    assert number(p["Z_mu"]) == number(p["Z_nu"]) <= S**2 / 8
    assert eps > 0
    size = sqrt(mpf(2 * (M + 1)))
    Gamma = 8 * size / (3 * S**2) * log((1 / zeta - 1) / eps)

    def inner(a: list[Any], b: list[Any]) -> Any:
        return sum(x * y for x, y in zip(a, b, strict=True))

    plus, minus, *others = pattern
    leaks = []
    for x in X:
        # x^T W_* x' with W_* = mu_+ mu_+^T + mu_- mu_-^T + sum nu_l (mu_+ + mu_-)^T
        noise = sum(inner(x, nu) for nu in others)
        scores = [
            (inner(x, plus) + noise) * inner(z, plus) + (inner(x, minus) + noise) * inner(z, minus)
            for z in X
        ]
        weights = [exp(Gamma * s / (S**2 * size)) for s in scores]
        leaks.append(sum(weights[L:]) / sum(weights))
    return max(leaks), eps


@alone("proposition-7")
def _(p: Point) -> tuple[Any, Any]:
    """With (98) some theta within g_0 = (2 B_Phi + log(1/eps))/gamma of theta_0 has L <= eps. One
    token, one sample: Phi~ = H^{-1/2} sum_h <u_h, x> whatever W is."""
    assert p["X"].shape == (1, 1, 1)
    x, y, H, eps = number(p["X"]), number(p["y"]), number(np.sum(p["k"])), number(p["eps"])
    u, v = number(p["U"]), number(p["vU"]) / sqrt(H)
    W = number(p["vW"]) / sqrt(H)
    assert abs(H * (v**2 + W**2) - 2) < 1e-12  # |theta_*|^2 over all heads
    R, T, d = max(abs(x), mpf(1)), 1, 1
    B_2 = max(mpf(1), sqrt(u**2 + number(p["W"]) ** 2))
    B_Phi = max(mpf(1), abs(sqrt(H) * u * x))
    gamma = y * sqrt(H) * x * v  # <grad Phi~, theta_*>, each head's gradient being x/sqrt(H)
    assert gamma > 0
    assert 0 < eps <= 1
    G = (2 * B_Phi + log(1 / eps)) / gamma
    lead = 5 * d * sqrt(mpf(T * d)) * R**3 * B_2 / B_Phi * (3 * sqrt(mpf(d)) * R**2 + 1)
    assert sqrt(H) >= lead * G**2 * max(mpf(1), G)
    best = y * sqrt(H) * u * x + G * abs(x)  # the largest margin within G: |grad Phi~| = |x|
    return log(1 + exp(-best)), eps


REFUTED = [
    claim.id
    for claim in claims.of_paper("deora2024")
    for form in claim.forms.values()
    if form.fails and form.role == "statement"
]


@pytest.mark.parametrize("claim", REFUTED)
def test_the_statement_fails_at_the_shipped_point(claim: str) -> None:
    (certificate,) = (
        one
        for one in map(read_certificate, shipped_certificates())
        if (one.claim, one.variant) == (claim, "printed")
    )
    lhs, rhs = ALONE[claim](dict(certificate.instance))
    assert lhs > rhs
    np.testing.assert_allclose(float(lhs), certificate.claimed["lhs"], rtol=1e-9)
    np.testing.assert_allclose(float(rhs), certificate.claimed["rhs"], rtol=1e-9)
