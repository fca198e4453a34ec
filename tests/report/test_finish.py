"""Finishing touches of figures: keys beside the data, letters, ticks, bands, captions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import toy_figure
from matplotlib.figure import Figure

from drawing_checks import keys_on_data
from headcount import lab, report


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> lab.Collection:
    folder: Path = tmp_path_factory.mktemp("results")
    plan = lab.make_plan(toy_figure.figure, "smoke", options={"rule": "other"})
    lab.run_plan(plan, folder, workers=0)
    return lab.collect(plan, lab.Store(folder))


def two_panels(same: bool):
    def plot(data, axes):
        for ax, label in zip(axes, ("one", "one" if same else "other"), strict=True):
            lab.draw_interval(ax, data, "mean_error", "m", label=label)
            lab.log_log(ax, "width m", "error")

    return plot


def drawn(collection: lab.Collection, plot):
    figure = replace(collection.plan.figure, plot=plot, layout=(1, 2))
    return report.draw(replace(collection, plan=replace(collection.plan, figure=figure)))


def test_keys_stand_beside_the_data_and_shared_ones_once(collection):
    canvas = report.draw(collection)
    assert keys_on_data(canvas) == []
    assert canvas.axes[0].get_legend() is not None
    shared = drawn(collection, two_panels(same=True))
    assert [len(shared.legends), *(ax.get_legend() for ax in shared.axes)] == [1, None, None]
    apart = drawn(collection, two_panels(same=False))
    assert not apart.legends
    assert all(ax.get_legend() for ax in apart.axes)
    assert keys_on_data(shared) == keys_on_data(apart) == []
    assert [ax.get_title(loc="left") for ax in apart.axes] == ["(a)", "(b)"]


def test_a_key_in_one_panel_holds_for_all_that_draw_the_same(collection):
    def plot(data, axes):
        for ax in axes:
            ax.plot([1, 2], [1, 2], label="one")
        axes[0].legend()

    canvas = drawn(collection, plot)
    assert [len(canvas.legends), canvas.axes[0].get_legend()] == [1, None]


def test_a_key_on_data_is_seen_by_the_check(collection):
    canvas = report.draw(collection)
    canvas.axes[0].legend(loc="center")
    assert keys_on_data(canvas) == ["mean error"]


def test_the_caption_names_scale_seeds_options_and_bands(collection):
    text = " ".join(report.draw(collection).get_supxlabel().split())
    assert text.startswith("toy/mean, smoke scale, rule = other. ")
    assert text.endswith("95 % interval, 4 seeds")


def test_a_band_down_to_zero_does_not_hide_the_curve(collection):
    def plot(data, axes):
        for ax in axes:
            wide = data.assign(mean_error_low=-data["mean_error"])
            lab.draw_interval(ax, wide, "mean_error", "m")
            ax.fill_between([8, 128], 1e-9, 1e9)
            lab.log_log(ax, "width m", "error")

    canvas = drawn(collection, plot)
    low, high = canvas.axes[0].get_ylim()
    values = collection.data["mean_error"].values
    assert low == pytest.approx(values.min() / 4)
    assert high == pytest.approx(values.max() * 4)


def test_the_caption_says_what_else_the_bands_are(collection):
    figure = replace(collection.plan.figure, bands="smallest to largest trial")
    other = replace(collection, plan=replace(collection.plan, figure=figure))
    text = " ".join(report.draw(other).get_supxlabel().split())
    assert text.endswith("Bands and bars: smallest to largest trial, 4 seeds")


def test_bars_beside_each_other_do_not_share_a_place(collection):
    ax = Figure().subplots()
    for i in range(2):
        lab.draw_interval(ax, collection.data, "mean_error", "m", index=i, beside=(i, 2))
    left, right = (line.get_xdata() for line in ax.lines)
    np.testing.assert_allclose(right / left, 1.05)
    np.testing.assert_allclose(np.sqrt(left * right), collection.data["m"])
    assert len(ax.collections) == 2
