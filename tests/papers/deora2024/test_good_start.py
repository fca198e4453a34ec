"""Definition 1 measured, the margins of DM1, settings and what the theorems ask for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.kernels import direction_margins
from headcount.papers.deora2024 import constants, mixture_constants
from headcount.papers.deora2024.definition_1 import good_start, mixture_margins
from headcount.papers.deora2024.dm1 import DM1
from headcount.papers.deora2024.model import HeadGroups, MultiHeadParams
from headcount.papers.deora2024.setting import Setting
from headcount.papers.deora2024.starts import first_step_row, two_phase_groups
from headcount.papers.deora2024.theorem_runs import setup
from headcount.theory import claims
from headcount.training import TrainConfig

DATA = DM1(T=4, d=3, M=1, S=1.0, zeta=0.5, noise="bounded", Z_mu=0.02, Z_nu=0.02)


def two_phase(H: int, seed: int = 0) -> tuple[HeadGroups, MultiHeadParams]:
    first = DATA.sample(400, 7)
    return two_phase_groups(DATA.T, DATA.d, H, seed, x=first.x, y=first.y)


def test_the_tangent_margin_does_not_depend_on_the_number_of_heads() -> None:
    """E4: with signs every head contributes the same; no H is too small."""
    x, y = DATA.sample(30, 1)
    gammas = [good_start(*two_phase(H), x, y).gamma for H in (1, 2, 7, 50, 10**12)]
    np.testing.assert_allclose(gammas, gammas[0], rtol=1e-9)


def test_gamma_star_is_below_its_direction_is_below_the_largest_margin() -> None:
    x, y = DATA.sample(30, 1)
    model, params = two_phase(6)
    first = DATA.sample(400, 7)
    row = first_step_row(first.x, first.y)
    P = float(np.linalg.norm(row - DATA.zeta / 4 * DATA.u_star))
    U = np.tile(DATA.u_star, (DATA.T, 1)) / (DATA.S * math.sqrt(2 * DATA.T))
    W = DATA.W_star / np.linalg.norm(DATA.W_star)
    signs = np.sign(params.U[:, 0, 0]) * np.sign(row[0])
    root = math.sqrt(model.H)
    ours = MultiHeadParams(np.stack([U] * len(signs)) / root, signs[:, None, None] * W / root)
    margin = float(np.min(direction_margins(model, params, ours, x, y)))
    largest = good_start(model, params, x, y).gamma
    found = mixture_margins(DATA, DATA.sample(30, 1), P=P)
    assert 0 < found["gamma_*, sharp in p"] <= margin <= largest * (1 + 1e-9)
    assert found["gamma_* (7)"] <= found["gamma_*, sharp in p"]
    assert found["gamma_lin (132)"] <= found["linear SVM margin"]
    noisy = mixture_margins(DM1(), DM1().sample(30, 1))
    assert noisy["gamma_* (7)"] < 0
    assert noisy["H of Lemma 15, delta = 0.05"] == math.inf


def test_the_heads_of_lemma_15_make_the_deviation_of_lemma_14_half_of_gamma_star() -> None:
    found = mixture_margins(DATA, DATA.sample(30, 1), P=1e-3)
    R = max(1.0, DATA.measure(DATA.sample(30, 1))["R"].value)
    slope = 2 * R**3 * DATA.T * (DATA.S + 1e-3) + math.sqrt(DATA.T) * R
    H = found["H of Lemma 15, delta = 0.05"]
    # A union over the n = 30 samples makes delta in Lemma 14 delta/n.
    deviation = 2 * slope * math.sqrt(2 * math.log(30 / 0.05) / H)
    assert deviation == pytest.approx(found["gamma_* (7)"] / 2)


def test_p_costs_less_than_printed() -> None:
    """E17 and E18: P T R^3 is below half of what (115) has."""
    for T in (2, 5, 10):
        sharp, printed = (
            mixture_constants.p_term(0.3, 1.2, 1.0, 0.2, T, t) for t in ("sharp", "printed")
        )
        assert 2 * sharp <= 2 * printed
        assert sharp < printed


def test_realizability_curves() -> None:
    start = setup(K=20).start
    for eps in (1.0, 0.1, 1e-3):
        assert start.g_0(eps) == pytest.approx(math.sqrt(2) * start.g_0(eps, "printed"))
        assert start.g(eps) == start.B_2 + start.g_0(eps)
    assert start.g_0(1e-3) > start.g_0(0.1)


def test_settings_ask_for_what_the_constants_say() -> None:
    s = Setting(T=2, d=3, H=4, R=1.02, K=50, gamma=0.7)
    claim = claims["deora2024/theorem-3"]
    needed = []
    for tier in ("sharp", "v1", "v2"):
        H = constants.required_root(s.D, s.N, s.R, s.T, s.d, tier) ** 2
        needed.append(H)
        for factor, enough in ((1.001, True), (0.999, False)):
            bound, checks = claim.promise(s.resized(width=int(factor * H)), tier)
            assert all(check.holds for check in checks) is enough
            eta = bound.constants["eta"]
            np.testing.assert_allclose(bound.rhs, 2 / s.K + 5 * s.D**2 / (4 * eta * s.K))
    assert needed == sorted(needed)
    form = claims["deora2024/corollary-5"]
    H = constants.good_start_root(s.g_0(), s.B_2, s.R, s.T, s.d, "v2") ** 2
    _, checks = form.promise(s.resized(width=int(1.001 * H)), "corrected")
    assert all(check.holds for check in checks)


def test_a_configuration_is_measured() -> None:
    config = TrainConfig.of(
        {"model": "deora2024", "width": 8, "n": 20, "steps": 30, "data_options": {"noise_sd": 0.05}}
    )
    s = Setting.of(config, delta=0.05)
    assert (s.H, s.K, s.n, s.eta) == (8, 30, 20, None)
    assert s.gamma > 0
    assert s.R >= 2
    assert pytest.approx(math.sqrt(2) * (2 + math.log(30)) / s.gamma) == s.D


def test_what_is_outside_the_theorems_is_refused() -> None:
    x, y = DATA.sample(6, 0)
    model, params = two_phase(2)
    with pytest.raises(BadArgument, match="Assumption 1"):
        good_start(model, params, x, 2 * y)
    same = np.concatenate([x, x])
    with pytest.raises(BadArgument, match="P3"):
        good_start(model, params, same, np.concatenate([y, -y])).check_separable()
    linear = TrainConfig.of({"model": "deora2024-linear", "n": 5, "steps": 2})
    with pytest.raises(BadArgument, match="model"):
        Setting.of(linear, delta=0.05)


@pytest.mark.parametrize("wrong", [{"d": 3, "M": 2}, {"zeta": 0.15}])
def test_data_outside_assumption_3_are_refused(wrong: dict) -> None:
    with pytest.raises(BadArgument, match="Assumption 3"):
        DM1(**wrong)
