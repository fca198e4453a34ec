"""AR(L) windows: the recursion, the channels, and no leakage."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.linalg
from assumptions import assumption_holds

from headcount.core import BadArgument
from headcount.data import positional_channels
from headcount.papers.arda2026 import ARWindows

RELEASED = ARWindows(
    L=3,
    normalise_tokens=False,
    standardise_labels="train+val",
    windows="overlapping",
    split="random",
)


@pytest.mark.parametrize("L", [1, 3, 7])
def test_the_series_follows_its_recursion(L):
    """The residuals x_t - alpha x_{t-L} are white with variance 0.1."""
    model = ARWindows(L=L)
    x = model.series(20_000, seed=0)
    residual = x[L:] - model.alpha * x[:-L]
    n = len(residual)
    assert np.var(residual) == pytest.approx(0.1, abs=5 * 0.1 * math.sqrt(2 / n))
    for lag in range(1, 2 * L + 1):
        correlation = np.mean(residual[lag:] * residual[:-lag]) / 0.1
        assert abs(correlation) < 5 / math.sqrt(n)


def test_a_longer_series_only_continues():
    short, long = (ARWindows(L=4).series(k, 2) for k in (10, 500))
    np.testing.assert_array_equal(short, long[:10])


@pytest.mark.parametrize(("L", "alpha"), [(300, -0.5), (96, 0.9)])
def test_the_series_is_stationary_from_its_first_entry(L, alpha):
    """Variance and lag-L covariance against the Lyapunov equation of the companion matrix."""
    model = ARWindows(L=L, alpha=alpha)
    companion = np.eye(L, k=-1)
    companion[0, -1] = alpha
    noise = np.zeros((L, L))
    noise[0, 0] = model.noise_variance
    exact = scipy.linalg.solve_discrete_lyapunov(companion, noise)[0, 0]
    seeds = 40_000 // L
    series = np.stack([model.series(2 * L, seed) for seed in range(seeds)])
    for part in (series[:, :L], series[:, L:]):
        # L times seeds independent normal values each; 5 standard errors of their variance.
        error = exact * math.sqrt(2 / part.size)
        assert np.mean(part**2) == pytest.approx(exact, abs=5 * error)
    together = np.mean(series[:, :L] * series[:, L:])
    spread = exact * math.sqrt((1 + alpha**2) / (seeds * L))
    assert together == pytest.approx(alpha * exact, abs=5 * spread)


def test_positional_channels_by_hand():
    channels = positional_channels(5, 8)
    for t in range(5):
        for k in range(8):
            w = 2 * math.pi / (32 * 2**k)
            assert channels[t, k] == pytest.approx(math.sin(w * t), abs=1e-15)
            assert channels[t, 8 + k] == pytest.approx(math.cos(w * t), abs=1e-15)


def test_windows_hold_the_series_and_the_next_value():
    model = ARWindows(L=3, normalise_tokens=False, standardise_labels="none")
    x, y = model.sample(6, seed=1)
    series = model.series(30, seed=1)
    for j in range(6):
        start = 5 * j
        np.testing.assert_array_equal(x[j, :, 0], series[start : start + 4])
        assert y[j] == series[start + 4]
    np.testing.assert_array_equal(x[2, :, 1:], positional_channels(4, 8))
    assert model.T == 4
    assert model.d == 17
    assert model.informative == 1


def test_overlapping_windows_move_by_one_step():
    x, y = dataclasses.replace(RELEASED, standardise_labels="none").sample(6, seed=1)
    np.testing.assert_array_equal(x[1:, :-1, 0], x[:-1, 1:, 0])
    np.testing.assert_array_equal(y[:-1], x[1:, -1, 0])


@pytest.mark.parametrize("T", [3, 4, 9])
def test_the_informative_token_predicts_the_label(T):
    model = ARWindows(L=3, T=T, normalise_tokens=False)
    data = model.sample(4000, 0)
    found = model.measure(data)["lag_correlation"].value
    assert found == pytest.approx(0.9, abs=5 * (1 - 0.81) / math.sqrt(4000))


def test_labels_are_standardised_by_training_statistics():
    model = ARWindows(L=3)
    raw = dataclasses.replace(model, standardise_labels="none")
    (_, y), (_, y_val) = model.sample_split(50, 20, 0)
    (_, raw_y), (_, raw_val) = raw.sample_split(50, 20, 0)
    mean, deviation = np.mean(raw_y), np.std(raw_y)
    np.testing.assert_allclose(y, (raw_y - mean) / deviation, rtol=1e-14)
    np.testing.assert_allclose(y_val, (raw_val - mean) / deviation, rtol=1e-14)
    pooled = dataclasses.replace(model, standardise_labels="train+val").sample_split(50, 20, 0)
    together = np.concatenate([pooled[0].y, pooled[1].y])
    assert np.mean(together) == pytest.approx(0, abs=1e-14)
    assert np.std(together) == pytest.approx(1, rel=1e-14)


def test_only_the_released_split_leaks():
    def shared(model):
        train, validation = (
            set(s.x[:, :, 0].ravel().tolist()) for s in model.sample_split(40, 10, 0)
        )
        return len(train & validation)

    assert shared(RELEASED) > 0
    assert shared(dataclasses.replace(RELEASED, split="separate")) == 0
    assert shared(dataclasses.replace(RELEASED, windows="disjoint")) == 0
    x = np.concatenate([s.x for s in RELEASED.sample_split(40, 10, 0)])
    expected = RELEASED.sample(50, 0).x
    np.testing.assert_array_equal(
        np.sort(x[:, 0, 0]), np.sort(expected[:, 0, 0]), "the split must only reorder"
    )


def test_unnormalised_tokens_break_the_assumption():
    found = RELEASED.measure(RELEASED.sample(200, 0))
    assert not assumption_holds(found)
    assert found["token_norm"].value > math.sqrt(8)
    constant = RELEASED.sample(5, 0)._replace(y=np.zeros(5))
    assert RELEASED.measure(constant)["lag_correlation"].value == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"L": 0}, "L = 0"),
        ({"L": 5, "T": 4}, "T = 4: is below L"),
        ({"alpha": 1.0}, "alpha = 1.0: must lie in"),
        ({"noise_variance": 0.0}, "noise_variance = 0.0"),
        ({"pairs": -1}, "pairs = -1"),
        ({"standardise_labels": "yes"}, "standardise_labels = 'yes'"),
        ({"windows": "all"}, "windows = 'all'"),
        ({"split": "none"}, "split = 'none'"),
    ],
)
def test_bad_fields_are_named(fields, message):
    with pytest.raises(BadArgument, match=message):
        ARWindows(**fields)


def test_one_label_cannot_be_standardised():
    with pytest.raises(BadArgument, match="n = 1: is too small"):
        ARWindows().sample(1, 0)
    assert ARWindows(standardise_labels="none").sample(1, 0).x.shape == (1, 5, 17)
