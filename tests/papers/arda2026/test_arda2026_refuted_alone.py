"""Lemma 5 of arda2026's main text, refuted once more from its words alone: mpmath, no code of ours.

"epsilon_app <= 2 (s0 nu_c + s1 nu_u + s2 nu_w) sqrt(2 log(2n/delta)/m) with probability at least
1 - delta" for f~(.; v) in F_nu and phi~ as in (10), at the case that is shipped.
"""

from __future__ import annotations

import json
import random
from math import comb
from pathlib import Path

import mpmath as mp
import pytest

from headcount.papers import arda2026
from headcount.theory import claims

DRAWS = 40
STEP = mp.mpf("1e-12")
"""Of the difference quotient for f_lin: its error is of this order squared."""


@pytest.fixture(scope="module")
def shipped():
    folder = Path(arda2026.__file__).parent / "certificates"
    return json.loads((folder / "arda2026-lemma-5-printed.json").read_text())


def sigma(u):
    """sigma(u) = 50 tanh(u/50), the activation of the case."""
    return 50 * mp.tanh(u / 50)


def sizes():
    """sup |sigma|, |sigma'|, |sigma''|: 50 at infinity, 1 at 0, and where (tanh'')' = 0."""
    steepest = 50 * mp.atanh(1 / mp.sqrt(3))
    return mp.mpf(50), mp.diff(sigma, 0), abs(mp.diff(sigma, steepest, 2))


def f(X, q, phi):
    """Eqs. (2)-(4) in one feature: softmax attention, sigma(U a), the mean of c h over sqrt m."""
    total = mp.mpf(0)
    for c, U, W in phi:
        weights = [mp.exp(x * W * q) for x in X]
        a = sum(w * x for w, x in zip(weights, X, strict=True)) / sum(weights)
        total += c * sigma(U * a)
    return total / mp.sqrt(len(phi))


def start(m, rng):
    """Sec. 5.2: m/2 heads at random, then the same with -c."""
    half = [(rng.choice([-1, 1]), rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(m // 2)]
    return [
        (mp.mpf(c), mp.mpf(U), mp.mpf(W)) for c, U, W in half + [(-c, U, W) for c, U, W in half]
    ]


def moved(phi, nu, share):
    """phi0 + share (phi~ - phi0) with v = (nu_c, 0, nu_w) [Eq. (10)]: constant maps, in V_nu."""
    root = mp.sqrt(len(phi))
    return [
        (c + share * nu[0] / root, U, W + share * c * nu[2] / root) for c, U, W in phi
    ]  # fmt: skip


def approximation_error(X, q, phi, nu):
    """|f_lin(X; phi~) - f~(X)|: f_lin is the slope of f towards phi~ (f(phi0) = 0), and f~ = 0.

    sigma is odd and sigma' even: phi_c and phi_w change sign with U, whose law is symmetric.
    """
    ahead, behind = (f(X, q, moved(phi, nu, share)) for share in (STEP, -STEP))
    return abs(ahead - behind) / (2 * STEP)


def test_no_other_statement_of_the_paper_is_called_false() -> None:
    """One that is refuted later needs its own recomputation here."""
    refuted = [
        (claim.id, name)
        for claim in claims.of_paper("arda2026")
        for name, form in claim.forms.items()
        if form.fails and form.role == "statement"
    ]
    assert refuted == [("arda2026/lemma-5", "printed")]


def test_lemma_5_of_the_main_text_fails_by_its_words_alone(shipped) -> None:
    case = shipped["case"]
    assert case["activation"] == "50*tanh(0.02*x)"
    assert case["policy"] == "constant"
    X, q, m, delta = (1, -1), 1, case["m"], mp.mpf(case["delta"])
    nu = [mp.mpf(case[f"nu_{block}"]) for block in "cuw"]
    with mp.workdps(30):
        s0, s1, s2 = sizes()
        assert s1 == pytest.approx(1)
        assert float(s2) == pytest.approx(0.0153960, rel=1e-5)
        assert max(map(abs, X)) <= 1
        assert abs(q) <= 1
        bound, appendix = (
            2 * (s0 * nu[0] + s1 * nu[1] + s * nu[2]) * mp.sqrt(2 * mp.log(2 / delta) / m)
            for s in (s2, s1)
        )
        rng = random.Random(5)
        errors = []
        for _ in range(DRAWS):
            phi = start(m, rng)
            assert abs(f(X, q, phi)) < 1e-25
            errors.append(approximation_error(X, q, phi, nu))
        failed = sum(error > bound for error in errors)
        assert not any(error > appendix for error in errors)  # as App. A.6 states it
    # If the lemma were true, so many failures would have this probability.
    p = float(delta)
    chance = sum(comb(DRAWS, k) * p**k * (1 - p) ** (DRAWS - k) for k in range(failed, DRAWS + 1))
    assert chance < 1e-12
    # The certificate's share, within four standard errors of both counts.
    share = float(shipped["claimed"]["exceedances"]) / float(shipped["claimed"]["repetitions"])
    spread = (share * (1 - share) * (1 / DRAWS + 1 / 400)) ** 0.5
    assert abs(failed / DRAWS - share) < 4 * spread
    assert claims["arda2026/lemma-5"].forms["printed"].called.startswith("false as printed: ")
