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
from headcount.lab._drawing import MARKERS, NOT_NEGATIVE
from headcount.report._finish import label_ticks


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


@pytest.mark.parametrize("top", [1.5, 4.0, 30.0, 1e4])
def test_logarithmic_axes_have_labelled_ticks(top):
    canvas = Figure()
    ax = canvas.add_subplot()
    ax.plot([1, 2], [1.0, top])
    ax.set(xscale="log", yscale="log", ylim=(1.0, top))
    label_ticks(ax)
    canvas.draw_without_rendering()
    shown = [t for t in ax.get_yticklabels() if t.get_text()]
    inside = [t for t in shown if 1.0 <= t.get_position()[1] <= top]
    assert 3 <= len(inside) <= 9


def test_a_symmetric_logarithmic_axis_has_ticks_in_sight():
    canvas = Figure()
    ax = canvas.subplots()
    ax.set_yscale("symlog", linthresh=1)
    ax.set_ylim(3.6, 4.4)
    label_ticks(ax)
    canvas.draw_without_rendering()
    assert sum(3.6 <= tick <= 4.4 for tick in ax.get_yticks()) >= 2


def test_a_narrow_logarithmic_axis_has_three_ticks_in_sight():
    ax = Figure().subplots()
    ax.set(yscale="log", ylim=(0.00063, 0.00198))
    label_ticks(ax)
    assert sum(0.00063 <= tick <= 0.00198 for tick in ax.get_yticks()) >= 3


def test_the_caption_says_what_else_the_bands_are(collection):
    figure = replace(collection.plan.figure, bands="smallest to largest trial")
    other = replace(collection, plan=replace(collection.plan, figure=figure))
    text = " ".join(report.draw(other).get_supxlabel().split())
    assert text.endswith("Bands and bars: smallest to largest trial, 4 seeds")


def test_a_band_is_cut_off_where_the_quantity_has_no_values(collection):
    ax = Figure().subplots()
    wide = collection.data.assign(mean_error_low=-collection.data["mean_error"])
    lab.draw_interval(ax, wide, "mean_error", "m", within=NOT_NEGATIVE)
    band, ends = ax.collections
    assert len(ends.get_segments()) == 2  # each end is marked, so that bands can be told apart
    assert min(path.vertices[:, 1].min() for path in band.get_paths()) == 0.0


def test_a_fit_that_names_points_carries_their_marker(collection):
    ax = Figure().subplots()
    lab.draw_power_law(ax, collection.data, "error", "m", index=2, label="toy")
    (line,) = ax.lines
    assert line.get_label().startswith("toy, slope")
    assert line.get_marker() == MARKERS[2]
    assert line.get_markevery() == []  # the points themselves are drawn by their own line


def test_bars_beside_each_other_do_not_share_a_place(collection):
    ax = Figure().subplots()
    for i in range(2):
        lab.draw_interval(ax, collection.data, "mean_error", "m", index=i, beside=(i, 2))
    left, right = (line.get_xdata() for line in ax.lines)
    np.testing.assert_allclose(right / left, 1.05)
    np.testing.assert_allclose(np.sqrt(left * right), collection.data["m"])
    assert len(ax.collections) == 2
