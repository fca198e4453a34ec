"""Good starts of every read-out, the step size behind a gap, and beta_1 at theta_k itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headcount.core import float64
from headcount.papers.deora2024.constants import Constants
from headcount.papers.deora2024.records import LeftOut, Start
from headcount.papers.deora2024.setting import Setting
from headcount.papers.deora2024.theorem_runs import where_it_applies
from headcount.theory import Outcome, claims, judge

T = 16
POWER = {"full": 4.0, "pooling": 16.0, "last": 1.0}


def equal_tokens(readout: str) -> Start:
    """From zero, on T equal tokens: the margin is sqrt(2) |grad Phi| = sqrt(2) (power of T)."""
    r = T if readout == "full" else 1
    U, W = np.zeros((1, r, 1)), np.zeros((1, 1, 1))
    v, X = np.full((1, r, 1), math.sqrt(2 / r)), np.ones((1, T, 1))
    one = np.asarray(1.0)
    k = np.array([4.0])
    return Start(
        X=X, y=np.ones(1), k=k, U=U, W=W, readout=readout, vU=v, vW=W, eps=one, eta=one
    )  # fmt: skip


@pytest.mark.parametrize("readout", POWER)
def test_a_good_start_has_its_read_outs_power_of_T(readout: str) -> None:
    """E20: with sqrt(T) the margin of a pooling read-out would exceed Definition 1's ceiling."""
    start, t = equal_tokens(readout), POWER[readout]
    verdict = judge(claims["deora2024/definition-1"], start)
    assert verdict.outcome is Outcome.HOLDS
    np.testing.assert_allclose(verdict.lhs, math.sqrt(2) * t)
    np.testing.assert_allclose(verdict.rhs, math.sqrt(2) * t * 3)


@pytest.mark.parametrize("readout", POWER)
def test_corollary_5_asks_for_heads_and_steps_by_the_read_out(readout: str) -> None:
    """All by hand: R = d = B_2 = B_Phi = 1, K = 1, G = 2/gamma."""
    start, t = equal_tokens(readout), POWER[readout]
    G, H = 2 / (math.sqrt(2) * t), 4
    with float64():
        for variant, g0 in (("printed", G), ("corrected", math.sqrt(2) * G), ("sharp", G)):
            B = 4 * g0 + 1
            sharp = variant == "sharp"
            beta_3 = t * (2 * B + 1) if sharp else 2 * t * (3 * B + 1)
            np.testing.assert_allclose(Constants(start, variant).start_root, 128 * beta_3 * g0**2)
            if sharp:
                N = B + t * (2 * B + 1) / math.sqrt(H)
                rho = t * (2 * N + 1) / math.sqrt(H) + (t * (2 * N + 1)) ** 2 / 4
            else:
                alpha = 3 * (3 * t * B + 2 * t)
                rho = (2 * t / math.sqrt(H) + t * t / 4) * alpha**2
            first = 4 / (2 * t**2 * math.log1p(math.e))
            np.testing.assert_allclose(
                Constants(start, variant).start_step, min(1.0, 1 / rho, first)
            )


def test_a_setting_asks_for_more_heads_with_a_pooling_read_out() -> None:
    full, pooling = (
        Setting(T=T, d=3, H=4, R=1.0, K=50, gamma=0.7, readout=readout)
        for readout in ("full", "pooling")
    )
    for name in ("corollary-5", "corollary-5-gap"):
        claim = claims[f"deora2024/{name}"]
        for variant in claim.variants:
            few, many = (claim.promise(s, variant)[1][0].value for s in (full, pooling))
            np.testing.assert_allclose(many / few, T / math.sqrt(T))


STABLE = {"stable_eta", "stable_start_eta"}


def test_a_gap_asks_for_steps_below_one_over_beta_1_squared() -> None:
    """(94) needs eta beta_1(B)^2 <= 1; the sharp rho is only a quarter of beta_1(B)^2."""
    s = Setting(T=2, d=3, H=10**12, R=1.02, K=50, gamma=0.7)
    for name, B in (
        ("theorem-4", 3 * s.D + s.N),
        ("corollary-5-gap", 4 * s.g_0("printed") + s.B_2),
    ):
        bound, _ = claims[f"deora2024/{name}"].promise(s, "sharp")
        beta_1 = math.sqrt(s.T) * s.R * (2 * s.R**2 * B + 1)
        (eta,) = (bound.constants[key] for key in STABLE & set(bound.constants))
        np.testing.assert_allclose(eta * beta_1**2, 1.0)
    rows = {row.verdict.claim: row for row in where_it_applies("sharp", n=4, K=20)}
    ratio = rows["deora2024/theorem-3"].eta / rows["deora2024/theorem-4"].eta
    np.testing.assert_allclose(ratio, 4.0, rtol=1e-3)


def test_the_share_of_the_left_out_sample_has_beta_1_at_theta_k() -> None:
    """Eqs. (20) and (21): at k = 1 the run without the only sample is the longer one."""
    one = np.ones((1, 1, 1))
    run = LeftOut(
        X=one, y=-np.ones(1), k=np.array([4.0]), U=0.5 * one, W=0 * one, readout="full",
        dU=0.1 * one, dW=0 * one, eta=np.asarray(0.5), K=2,
    )  # fmt: skip
    with float64():
        rhs = claims["deora2024/eq-20"].sides(run, "sharp").rhs[1]
    # Phi~ = sqrt(4) u; L = l(-2u), and without its only sample the run stays at u = 1/2.
    u = 0.5 - 0.5 / 2 / (1 + math.exp(-1.0))
    moved = 2 * (0.5 - u)
    beta_1, beta_2 = 2 * u + 1, (2 * 0.5 + 1) / 2 + (2 * 0.5 + 1) ** 2 / 4
    grown = max(1.0, 0.5 * beta_2)  # L^{-1} is zero
    own = 0.5 * beta_1 * math.log1p(math.exp(2 * u))
    # The largest betas of the whole segment are above those of each of its cells.
    assert 0.97 * (grown * moved + own) < rhs <= grown * moved + own
