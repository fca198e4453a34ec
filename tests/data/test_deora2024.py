"""DM1 and DM2 of deora2024."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from assumptions import assumption_holds
from scipy import stats

from headcount.core import BadArgument
from headcount.data import Dataset
from headcount.papers.deora2024.dm1 import DM1
from headcount.papers.deora2024.dm2 import DM2

BOUNDED = DM1(T=8, d=7, M=3, S=1.5, zeta=0.25, noise="bounded", Z_mu=0.2, Z_nu=0.3, Z_orth=0.4)


def test_patterns_and_targets_have_the_printed_norms():
    m = BOUNDED
    patterns = np.vstack([m.mu_plus, m.mu_minus, m.nu])
    np.testing.assert_allclose(patterns @ patterns.T, m.S**2 * np.eye(m.M + 2), atol=1e-15)
    assert np.linalg.norm(m.u_star) == pytest.approx(math.sqrt(2) * m.S)
    assert np.linalg.norm(m.U_star) == pytest.approx(m.S * math.sqrt(2 * m.T))
    assert np.linalg.norm(m.W_star) == pytest.approx(m.S**2 * math.sqrt(2 * (m.M + 1)))
    assert m.U_star.shape == (m.T, m.d)


def test_logits_under_w_star_favour_relevant_tokens():
    """Without noise: x_t^T W_* x_relevant = S^4 and zero for irrelevant keys [Eq. (8)]."""
    m = dataclasses.replace(BOUNDED, Z_mu=0.0, Z_nu=0.0, Z_orth=0.0)
    data = m.sample(5, 0)
    mask = m.relevant_mask(data)
    for X, relevant in zip(data.x, mask, strict=True):
        logits = X @ m.W_star @ X.T
        np.testing.assert_allclose(logits[:, relevant], m.S**4)
        np.testing.assert_allclose(logits[:, ~relevant], 0, atol=1e-14)


@pytest.mark.parametrize("d", [6, 8])
def test_bounded_noise_fills_its_box_and_its_ball_evenly(d):
    """Along the patterns uniform in [-Z/S, Z/S]; beyond them uniform in a ball of d - k features.

    A right law is called wrong with probability 1e-6 by each test (Kolmogorov-Smirnov).
    """
    model = dataclasses.replace(BOUNDED, d=d)
    k = model.M + 2
    z = model.noise_of(model.sample(400, 3))
    ball = z[:, k:] / model.Z_orth
    evenly = [
        np.linalg.norm(ball, axis=1) ** (d - k),
        *((1 + z[:, :2].T * model.S / model.Z_mu) / 2),
        *((1 + z[:, 2:k].T * model.S * model.M / model.Z_nu) / 2),
    ]
    for values in evenly:
        assert stats.kstest(values, "uniform").pvalue > 1e-6
    # The square of one coordinate of a direction has this law, whatever the radius is.
    along = (ball[:, 0] / np.linalg.norm(ball, axis=1)) ** 2
    if d - k > 1:
        assert stats.kstest(along, stats.beta(1 / 2, (d - k - 1) / 2).cdf).pvalue > 1e-6


@pytest.mark.parametrize("relevant", ["random", "fixed"])
def test_bounded_noise_meets_assumption_3(relevant):
    model = dataclasses.replace(BOUNDED, relevant=relevant)
    data = model.sample(2000, 0)
    found = model.measure(data)
    assert assumption_holds(found)
    for key, bound in [("Z_mu", 0.2), ("Z_nu", 0.3), ("Z", model.Z), ("R", model.R)]:
        assert 0.8 * bound < found[key].value <= bound
    mask = model.relevant_mask(data)
    assert np.all(mask.sum(axis=1) == 2)
    if relevant == "fixed":
        assert np.all(mask[:, :2])
    else:
        share = mask.mean(axis=0)
        assert np.all(np.abs(share - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 2000))


def test_labels_and_patterns_are_fair():
    model = DM1(T=10, M=2)
    data = model.sample(3000, 1)
    assert abs(np.mean(data.y)) < 5 / math.sqrt(3000)
    tokens = data.x[~model.relevant_mask(data)]
    share = np.mean(tokens[:, 2] > tokens[:, 3])
    assert abs(share - 0.5) < 5 * 0.5 / math.sqrt(len(tokens))


def test_gaussian_noise_has_its_deviation_and_no_sure_bound():
    model = DM1()
    data = model.sample(1000, 0)
    z = model.noise_of(data)
    assert z.shape == (9000, 4)
    assert np.std(z) == pytest.approx(0.1, abs=5 * 0.1 / math.sqrt(2 * z.size))
    found = model.measure(data)
    assert not assumption_holds(found)
    assert found["noise_bounded"].holds is False
    assert math.inf == model.Z
    assert assumption_holds(DM1(noise_sd=0.0).measure(DM1(noise_sd=0.0).sample(5, 0)))


def test_gamma_lin_is_attained_by_the_worst_noise():
    """(132) with noise -y Z_mu u_*/S^2 on every irrelevant token is an equality."""
    m = BOUNDED
    X = np.tile(m.nu[0] + m.Z_mu / m.S**2 * (m.mu_minus - m.mu_plus), (m.T, 1))
    X[: m.relevant_tokens] = m.mu_plus
    found = m.measure(Dataset(X[None], np.ones(1)))
    assert found["gamma_lin"].value == pytest.approx(m.gamma_lin(m.Z_mu), rel=1e-13)
    assert found["gamma_lin"].holds


def test_measure_finds_broken_data():
    data = BOUNDED.sample(20, 0)
    doubled = Dataset(data.x * 2, data.y)
    found = BOUNDED.measure(doubled)
    assert found["R"].holds is False
    assert found["relevant_tokens"].value == 20
    assert not assumption_holds(found)


@pytest.mark.parametrize("zeta", [0.15, 0.01, 1.2, 0.0, -0.1, math.nan])
def test_zeta_must_give_whole_tokens(zeta):
    with pytest.raises(BadArgument, match="zeta"):
        DM1(T=10, zeta=zeta)


def test_the_fix_for_zeta_works():
    with pytest.raises(BadArgument, match=r"zeta\*T = 1.5 must be a whole number .*use zeta=0.2"):
        DM1(T=10, zeta=0.15)
    assert DM1(T=10, zeta=0.2).relevant_tokens == 2
    assert DM1(T=10, zeta=0.3).relevant_tokens == 3
    assert DM1(T=1, zeta=1.0).measure(DM1(T=1, zeta=1.0).sample(3, 0))["Z"].value == 0


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"d": 3}, "d"),
        ({"M": 0}, "M"),
        ({"S": 0.0}, "S"),
        ({"noise": "cauchy"}, "noise"),
        ({"noise_sd": -1.0}, "noise_sd"),
        ({"Z_mu": -0.1}, "Z_mu"),
        ({"Z_nu": math.inf}, "Z_nu"),
        ({"relevant": "last"}, "relevant"),
        ({"patterns": 2 * np.eye(3)}, "patterns"),
        ({"patterns": [[2, 0], [1]]}, "patterns"),
        ({"patterns": 2.0}, "patterns"),
        ({"patterns": (2.0, 1.0)}, "patterns"),
        ({"patterns": np.full((4, 4), math.nan)}, "patterns"),
        ({"patterns": np.eye(4)}, "patterns"),  # norm 1, not S = 2
        ({"patterns": 2 * np.eye(4) + 1e-6 * np.eye(4, k=1)}, "patterns"),
    ],
)
def test_bad_dm1_fields_are_named(fields, argument):
    with pytest.raises(BadArgument) as caught:
        DM1(**fields)
    assert caught.value.argument == argument


def test_patterns_of_ones_own_are_the_standard_ones_turned():
    turn = np.linalg.qr(np.arange(49.0).reshape(7, 7) % 11 + np.eye(7))[0]
    own = dataclasses.replace(BOUNDED, patterns=1.5 * turn[:5])
    found = own.measure(own.sample(200, 0))
    assert assumption_holds(found)
    usual = BOUNDED.measure(BOUNDED.sample(200, 0))
    for name in ("R", "Z_mu", "Z_nu", "Z", "gamma_lin"):  # all invariant under the turn
        assert found[name].value == pytest.approx(usual[name].value, rel=1e-9), name
    with pytest.raises(BadArgument, match="Assumption 3: patterns must be orthogonal"):
        dataclasses.replace(BOUNDED, patterns=1.5 * (turn + 0.01)[:5])


def softmax_rows(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def test_dm2_labels_come_from_the_planted_head(relative):
    model = DM2(T=4, d=3)
    U, W = model.planted(5)
    assert np.linalg.norm(U) == pytest.approx(1, rel=1e-14)
    x, y = model.sample(30, 5)
    phi = np.array([np.sum(U * (softmax_rows(X @ W @ X.T) @ X)) for X in x])
    np.testing.assert_array_equal(y, np.sign(phi))
    assert np.min(np.abs(phi)) > 0.2
    np.testing.assert_allclose(model.logits(x, 5), phi, rtol=relative["float64"])


def test_dm2_rejects_only_below_the_margin():
    """Rejection: margin 0 keeps every candidate, and a margin keeps exactly those beyond it."""
    everything = DM2(T=4, d=3, margin=0.0).sample(1000, 2)
    kept = DM2(T=4, d=3).sample(500, 2)
    phi = DM2(T=4, d=3).logits(everything.x, 2)
    expected = everything.x[np.abs(phi) > 0.2][:500]
    np.testing.assert_array_equal(kept.x[: len(expected)], expected)
    assert 0 < np.mean(np.abs(phi) <= 0.2) < 0.9


def test_dm2_prefix_and_fixed_plant():
    model = DM2(T=4, d=3, planted_seed=9)
    long = model.sample(1500, 0)
    np.testing.assert_array_equal(long.x[:40], model.sample(40, 0).x)
    np.testing.assert_array_equal(model.planted(0).W, model.planted(1).W)
    assert model.measure(long)["margin"].holds
    assert "margin" not in DM2(T=4, d=3).measure(long)
    assert DM2(T=4, d=3).measure(long, seed=9)["margin"].holds
    flipped = long._replace(y=-long.y)
    assert model.measure(flipped)["margin"].holds is False


def test_an_impossible_margin_stops():
    with pytest.raises(BadArgument, match=r"margin = 50.0: keeps 0 of"):
        DM2(T=2, d=2, margin=50.0).sample(3, 0)
    with pytest.raises(BadArgument, match=r"margin = -1"):
        DM2(margin=-1.0)
    with pytest.raises(BadArgument, match="planted_seed"):
        DM2(planted_seed=-3)
