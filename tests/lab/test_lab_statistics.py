"""Statistics against textbook formulas, SciPy, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from headcount import core, lab

SAMPLE = core.normal(core.stream(3, "sample"), (9,))


def test_mean_is_the_t_interval_and_leaves_out_nan() -> None:
    estimate = lab.mean(np.append(SAMPLE, np.nan))
    low, high = stats.t.interval(0.95, 8, SAMPLE.mean(), stats.sem(SAMPLE))
    assert estimate.count == 9
    np.testing.assert_allclose((estimate.value, estimate.low, estimate.high),
                               (SAMPLE.mean(), low, high), rtol=1e-12)  # fmt: skip


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_seeds_have_no_interval(n: int) -> None:
    for estimate in (lab.mean(SAMPLE[:n]), lab.median(SAMPLE[:n])):
        assert not estimate.known
        assert math.isnan(estimate.value) == (n == 0)


def test_median_interval_covers_by_order_statistics() -> None:
    assert not lab.median(SAMPLE[:5]).known
    values = np.sort(SAMPLE)
    estimate = lab.median(SAMPLE)
    # n = 9: P(Bin < 2) = 10/512 = 0.0195 <= 0.025 < P(Bin < 3) = 0.0898, so k = 2.
    assert (estimate.value, estimate.low, estimate.high) == (values[4], values[1], values[7])


def test_paired_difference_is_the_paired_t_test() -> None:
    a, b = SAMPLE, 0.3 * SAMPLE + core.normal(core.stream(4, "other"), (9,))
    estimate = lab.paired_difference(a, b)
    interval = stats.ttest_rel(a, b).confidence_interval(0.95)
    np.testing.assert_allclose((estimate.low, estimate.high), interval, rtol=1e-12)
    with pytest.raises(core.BadArgument, match="must pair"):
        lab.paired_difference(a, b[:3])


def test_geometric_mean_is_the_t_interval_of_the_logarithms() -> None:
    estimate = lab.geometric_mean(np.append(np.exp(SAMPLE), np.nan))
    low, high = stats.t.interval(0.95, 8, SAMPLE.mean(), stats.sem(SAMPLE))
    np.testing.assert_allclose((estimate.value, estimate.low, estimate.high),
                               np.exp((SAMPLE.mean(), low, high)), rtol=1e-12)  # fmt: skip
    for values in (np.array([1.0, 0.0]), np.array([1.0, -2.0])):
        assert not lab.geometric_mean(values).known


@pytest.mark.parametrize("seeds", [4, 6])
def test_difference_from_a_reference_is_the_welch_test(seeds: int) -> None:
    other = 3 * core.normal(core.stream(4, "other"), (seeds,))
    error = stats.sem(other)
    estimate = lab.difference_from(SAMPLE, other.mean(), error, seeds)
    interval = stats.ttest_ind(SAMPLE, other, equal_var=False).confidence_interval(0.95)
    assert estimate.value == pytest.approx(SAMPLE.mean() - other.mean())
    np.testing.assert_allclose((estimate.low, estimate.high), interval, rtol=1e-10)
    assert not lab.difference_from(SAMPLE[:1], 0.0, error, seeds).known
    assert not lab.difference_from(SAMPLE, 0.0, 0.0, 1).known
    assert lab.difference_from(np.array([2.0, 2.0]), 1.5, 0.0, seeds) == lab.Estimate(
        0.5, 0.5, 0.5, 2
    )


def test_slope_of_an_exact_power_law() -> None:
    x = np.array([8.0, 16, 64, 128])
    factors = np.array([[0.5], [1.0], [1.7]])
    fit = lab.loglog_slope(x, factors * x**-0.5)
    for estimate in (fit.slope, *fit.halves):
        np.testing.assert_allclose(
            (estimate.value, estimate.low, estimate.high), -0.5, rtol=1e-9, atol=1e-9
        )
    np.testing.assert_allclose(fit(x), stats.gmean(factors) * x**-0.5, rtol=1e-12)
    assert fit.describe() == "slope -0.50 [-0.50, -0.50]"


def test_slope_interval_is_the_t_interval_of_the_seeds_slopes() -> None:
    x = np.array([1.0, 2, 3, 5, 8])
    y = np.exp(core.normal(core.stream(0, "y"), (4, 5)))
    fit = lab.loglog_slope(x, y)
    slopes = [stats.linregress(np.log(x), np.log(row)).slope for row in y]
    low, high = stats.t.interval(0.95, 3, np.mean(slopes), stats.sem(slopes))
    np.testing.assert_allclose(
        (fit.slope.value, fit.slope.low, fit.slope.high), (np.mean(slopes), low, high), rtol=1e-10
    )
    means = stats.linregress(np.log(x), np.log(y).mean(axis=0))
    np.testing.assert_allclose((fit.slope.value, fit.intercept), (means.slope, means.intercept))
    halves = [lab.loglog_slope(x[part], y[:, part]).slope for part in (np.s_[:3], np.s_[2:])]
    assert fit.halves == tuple(halves)
    assert not lab.loglog_slope(x, y[:1]).slope.known
    assert "[" not in lab.loglog_slope(x, y[:1]).describe()


def test_order_of_seeds_changes_nothing_and_lost_ones_are_counted() -> None:
    x = np.array([1.0, 2, 4])
    y = np.exp(core.normal(core.stream(5, "y"), (6, 3)))
    gaps = np.vstack([[1.0, np.nan, 1.0], y[::-1], [1.0, 2.0, np.inf]])
    one, other = lab.loglog_slope(x, y).slope, lab.loglog_slope(x, gaps).slope
    assert (other.value, other.low, other.high) == (one.value, one.low, one.high)
    assert (other.count, other.died, other.never) == (6, 1, 1)
    for summarise in (lab.mean, lab.geometric_mean, lab.median):
        assert summarise(y[:, 0]) == summarise(y[::-1, 0])


def test_slope_refuses_what_has_no_logarithm() -> None:
    assert not lab.loglog_slope(np.array([1.0, 2]), -np.ones((3, 2))).slope.known
    for x, y in (([0.0, 1.0], np.ones((2, 2))), ([1.0, 1.0], np.ones((2, 2))), ([1.0], [[1.0]])):
        with pytest.raises(core.BadArgument):
            lab.loglog_slope(np.array(x), np.array(y))


def test_over_seeds_and_power_law_keep_the_other_dimensions() -> None:
    values = np.exp(core.normal(core.stream(7, "v"), (2, 5, 3)))
    data = xr.DataArray(
        values,
        dims=("model", "seed", "m"),
        coords={"model": ["a", "b"], "m": [1, 2, 4]},
        name="loss",
    )
    summary = lab.over_seeds(data)
    assert set(summary) == {"mean_loss", "mean_loss_low", "mean_loss_high"}
    assert summary["mean_loss"].dims == ("model", "m")
    direct = lab.mean(values[1, :, 2])
    assert float(summary["mean_loss_low"].sel(model="b", m=4)) == pytest.approx(direct.low)
    assert float(lab.over_seeds(data, kind="median")["median_loss"][0, 0]) == np.median(
        values[0, :, 0]
    )
    geometric = lab.over_seeds(data, kind="geometric")["geometric_loss"]
    assert float(geometric[1, 2]) == pytest.approx(stats.gmean(values[1, :, 2]))
    law = lab.power_law(data, "m")
    fit = lab.loglog_slope(np.array([1, 2, 4]), values[1])
    assert float(law["loss_slope_high"].sel(model="b")) == fit.slope.high
    assert float(law["loss_last_half_slope_low"].sel(model="b")) == fit.halves[1].low
    np.testing.assert_allclose(law["loss_fit"].sel(model="b"), fit([1, 2, 4]))
    with pytest.raises(core.BadArgument, match="mean, median, geometric"):
        lab.over_seeds(data, kind="mode")
