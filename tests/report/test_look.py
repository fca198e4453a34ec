"""Pictures of a size that was asked for."""

from __future__ import annotations

import types

import pytest

from headcount.core import BadArgument
from headcount.report._plots import COLUMN_INCHES, PAGE_INCHES, TALK_INCHES, Look, draw


@pytest.mark.parametrize(
    ("width", "grid"), [(3.3, (3, 1)), (5.5, (2, 2)), (7.0, (1, 3)), (20.0, (1, 3))]
)
def test_as_many_panels_stand_side_by_side_as_have_room(width, grid):
    assert Look(width).grid(1, 3) == (*grid, width)


def test_sizes_by_name_and_in_inches():
    assert Look.of_size("column").width == COLUMN_INCHES
    assert Look.of_size("page", title="t").width == PAGE_INCHES
    assert Look.of_size("5.5x3") == Look(5.5, 3.0)
    assert Look.of_size(None) == Look()
    for size in ("wide", "5", "axb", "0x3", "5x900", "nanx3", "5x"):
        with pytest.raises(BadArgument, match=r"is no size|must be 1\.5 to 50 inches"):
            Look.of_size(size)


class Toy:
    """As much of a collection as is drawn: three panels, one line each."""

    data = types.SimpleNamespace(data_vars={}, copy=lambda: None)
    verdicts = (types.SimpleNamespace(outcome="confirmed"),) * 2
    plan = types.SimpleNamespace(
        seeds=(0, 1),
        scale="smoke",
        options={},
        figure=types.SimpleNamespace(
            id="a/b", layout=(1, 3), bands="", options={},
            plot=lambda data, axes: [
                (ax.plot([1, 2], [k, 3], label="a"), ax.legend()) for k, ax in enumerate(axes)
            ],
        ),
    )  # fmt: skip


def test_a_picture_has_the_width_all_panels_and_its_verdicts():
    canvas = draw(Toy(), Look(5.5, title="Mine", verdicts=True))
    assert canvas.get_size_inches()[0] == 5.5
    assert len(canvas.axes) == 3
    assert canvas.legends[0].get_title().get_text() == "Mine"  # above the key, not across it
    assert "Verdicts: 2 confirmed" in canvas.get_supxlabel()
    assert "Verdicts" not in draw(Toy()).get_supxlabel()
    assert draw(Toy(), Look(7.0, 4.0)).get_size_inches().tolist() == [7.0, 4.0]


def test_a_height_without_room_is_refused():
    with pytest.raises(BadArgument, match=r"leaves no room.*use \d"):
        draw(Toy(), Look(3.3, 3.0))


def test_a_talk_has_larger_letters_and_a_slides_width():
    paper, talk = draw(Toy()), draw(Toy(), style="talk", title="Mine")
    assert talk.get_size_inches()[0] == TALK_INCHES
    sizes = [
        (ax.xaxis.label.get_fontsize(), ax.lines[0].get_linewidth())
        for ax in (canvas.axes[0] for canvas in (paper, talk))
    ]
    assert sizes[1] == pytest.approx([1.6 * size for size in sizes[0]])
    assert Look(style="talk").grid(1, 3) == (2, 2, TALK_INCHES)


def test_panels_are_chosen_by_their_letters():
    canvas = draw(Toy(), panels="ca")
    assert [ax.lines[0].get_ydata()[0] for ax in canvas.axes] == [0, 2]
    assert [ax.get_title(loc="left") for ax in canvas.axes] == ["(a)", "(b)"]
    columns = {ax.get_subplotspec().get_gridspec().ncols for ax in canvas.axes}
    assert columns == {2}
    for wrong in ("d", "aa", "1"):
        with pytest.raises(BadArgument, match="use letters of abc"):
            draw(Toy(), panels=wrong)


def test_a_key_that_a_figure_puts_above_itself_has_the_columns_that_fit():
    def plot(data, axes):
        for name in ("one of the long names", "another of the long names", "a third long name"):
            axes[0].plot([1, 2], [1, 2], label=name)
        handles, labels = axes[0].get_legend_handles_labels()
        axes[0].figure.legend(handles, labels, ncols=3, title="names", loc="outside upper center")

    own = Toy()
    own.plan = types.SimpleNamespace(**{**vars(Toy.plan), "figure": types.SimpleNamespace(
        **{**vars(Toy.plan.figure), "plot": plot})})  # fmt: skip
    canvas = draw(own, Look(3.3))
    canvas.draw_without_rendering()
    (key,) = canvas.legends
    assert key.get_title().get_text() == "names"
    box = key.get_window_extent()
    assert (box.x0 >= 0, box.x1 <= canvas.bbox.x1) == (True, True)
