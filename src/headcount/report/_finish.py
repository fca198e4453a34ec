"""Finishing touches that every figure gets: keys beside the data, letters, ticks, a caption."""

from __future__ import annotations

import math
import string
import textwrap
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..lab import Collection

_LINE_INCHES = 0.135
"""Height of one line of a legend or a caption."""
_BELOW_POINTS = 27
"""From the lower edge of a panel past its tick labels and its label."""
_CHARACTERS_PER_INCH = 21
_LEAST_TICKS = 3
_BEYOND = 4.0
"""A band may reach so many times beyond the curves before it is cut off."""


def finish(
    canvas: Any,
    panels: Sequence[Any],
    columns: int,
    collection: Collection,
    verdicts: bool = False,
    scale: float = 1.0,
    title: str = "",
) -> None:
    """Apply all of it; the canvas grows by what the keys and the caption need.

    With `verdicts` the caption counts them. Letters are `scale` times as large as in a paper. The
    title stands above a key that is there.
    """
    width, height = canvas.get_size_inches()
    for ax in panels:
        _limit_to_curves(ax)
        label_ticks(ax)
    if len(panels) > 1:
        _letter(panels)
    said = canvas.get_suptitle()  # below, so that a shared key has the place above
    canvas.suptitle("")
    text = caption(collection, panels) + (f". {said}" if said else "")
    if verdicts:
        counted = Counter(str(verdict.outcome) for verdict in collection.verdicts)
        text += ". Verdicts: " + ", ".join(f"{n} {outcome}" for outcome, n in counted.items())
    lines = textwrap.wrap(text, int(width / scale * _CHARACTERS_PER_INCH * 1.1))
    canvas.supxlabel("\n".join(lines), fontsize=6 * scale, color="0.35")
    keys = _move_keys(canvas, panels, columns, width / scale, scale)
    height += scale * (0.1 + _LINE_INCHES * len(lines) + keys)
    if title and canvas.legends:
        below = canvas.legends[0].get_title().get_text()
        title_and_key = f"{title}\n{below}" if below else title
        canvas.legends[0].set_title(title_and_key, prop={"size": 9 * scale})
        height += scale * 1.5 * _LINE_INCHES
    elif title:
        canvas.suptitle(title)
    canvas.set_size_inches(width, height)


def caption(collection: Collection, panels: Sequence[Any]) -> str:
    """What the figure is, at which scale, from how many seeds, and what its bands are."""
    plan = collection.plan
    seeds = len(plan.seeds)
    text = f"{plan.figure.id}, {plan.scale} scale"
    chosen = [
        f"{name} = {value}"
        for name, value in plan.options.items()
        if value != plan.figure.options[name][0]
    ]
    text += "".join(f", {choice}" for choice in chosen)
    if any(_has_bands(ax) for ax in panels):
        return f"{text}. Bands and bars: {plan.figure.bands}, {seeds} seeds"
    return f"{text}, {seeds} seed{'s' if seeds > 1 else ''}"


def _has_bands(ax: Any) -> bool:
    return any(type(c).__name__ in ("FillBetweenPolyCollection", "LineCollection", "PolyCollection")
               for c in ax.collections)  # fmt: skip


def _letter(panels: Sequence[Any]) -> None:
    """(a), (b), ... in front of the titles."""
    for letter, ax in zip(string.ascii_lowercase, panels, strict=False):
        title = ax.get_title()
        ax.set_title("")
        ax.set_title(f"({letter}) {title}".rstrip(), loc="left")


def _move_keys(
    canvas: Any, panels: Sequence[Any], columns: int, width: float, scale: float
) -> float:
    """Legends out of the panels: once above the figure where panels share one, else below each.

    Returns the height they take, in inches of a paper, as `width` is.
    """
    keys = {}
    drawn = Counter(tuple(ax.get_legend_handles_labels()[1]) for ax in panels)
    for ax in panels:
        if ax.get_legend() is not None:
            ax.get_legend().remove()
            handles, labels = ax.get_legend_handles_labels()
            if labels:
                keys[ax] = (handles, tuple(labels))
    # A key in one panel holds for all that draw the same.
    common = max((labels for _, labels in keys.values()), key=drawn.__getitem__, default=())
    extra, shared = 0.0, None
    if canvas.legends:  # the place above the figure is taken
        (own,) = canvas.legends
        labels = [text.get_text() for text in own.get_texts()]
        own.remove()
        extra += _key_above(canvas, own.legend_handles, labels, width, own.get_title().get_text())
    elif drawn[common] > 1:
        handles = next(handles for handles, labels in keys.values() if labels == common)
        extra += _key_above(canvas, handles, common, width)
        shared = common
    rows: dict[int, int] = {}
    for i, ax in enumerate(panels):
        handles, labels = keys.get(ax, ((), ()))
        if labels and labels != shared:
            key_below(ax, handles, labels, scale)
            rows[i // columns] = max(rows.get(i // columns, 0), len(labels))
    return extra + sum(0.05 + _LINE_INCHES * count for count in rows.values())


def _key_above(
    canvas: Any, handles: Sequence[Any], labels: Sequence[str], width: float, title: str = ""
) -> float:
    """One key above all panels, in as many columns as have room; the height that it takes."""
    fitting = int(width * _CHARACTERS_PER_INCH) // (max(map(len, labels)) + 8)
    columns = max(1, min(len(labels), fitting))
    place = {"loc": "outside upper center", "frameon": False}
    canvas.legend(handles, labels, ncols=columns, title=title or None, **place)
    return 0.1 + _LINE_INCHES * (math.ceil(len(labels) / columns) + bool(title))


def key_below(ax: Any, handles: Sequence[Any], labels: Sequence[str], scale: float = 1.0) -> None:
    """The legend of a panel below its label, where no data are."""
    from matplotlib.transforms import ScaledTranslation

    down = ScaledTranslation(0, -_BELOW_POINTS * scale / 72, ax.figure.dpi_scale_trans)
    ax.legend(
        handles,
        labels,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=ax.transAxes + down,
        frameon=False,
        borderaxespad=0.0,
        fontsize=6.5 * scale,
    )


def _limit_to_curves(ax: Any) -> None:
    """On a logarithmic axis a band that reaches down to zero would hide the curves: cut it off."""
    if ax.get_yscale() != "log":
        return
    numbers = [
        np.asarray(line.get_ydata(), dtype=float)
        for line in ax.lines
        if line.get_transform() in (ax.transData, ax.get_yaxis_transform())
    ]
    drawn = np.concatenate(numbers) if numbers else np.zeros(0)
    drawn = drawn[np.isfinite(drawn) & (drawn > 0)]
    if drawn.size:
        low, high = ax.get_ylim()
        ax.set_ylim(max(low, drawn.min() / _BEYOND), min(high, drawn.max() * _BEYOND))


def label_ticks(ax: Any) -> None:
    """At least a few labelled ticks on logarithmic axes that cover less than two decades.

    The same on axes that are logarithmic beyond a threshold, where none would be in sight.
    """
    from matplotlib import ticker

    for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if axis.get_scale() == "symlog":
            low, high = sorted(limits)
            if sum(low <= tick <= high for tick in axis.get_majorticklocs()) < 2:
                axis.set_major_locator(ticker.MaxNLocator(4, steps=[1, 2, 5, 10]))
                axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        if axis.get_scale() != "log" or isinstance(axis.get_major_locator(), ticker.FixedLocator):
            continue
        decades = math.log10(max(limits) / min(limits)) if min(limits) > 0 else 9.0
        if decades < 0.7:
            axis.set_major_locator(_narrow(limits))
        elif decades < 2.2:
            few = decades > 1.2
            subs = (1.0, 2.0, 5.0) if few else (1.0, 2.0, 3.0, 5.0, 7.0)
            axis.set_major_locator(ticker.LogLocator(subs=subs))
        if decades < 2.2:
            axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(ticker.NullFormatter())


def _narrow(limits: tuple[float, float]) -> Any:
    """Round values within less than a decade, at least three of them in sight."""
    from matplotlib import ticker

    low, high = sorted(limits)
    for most in (6, 9, 12):
        locator = ticker.MaxNLocator(most, steps=[1, 2, 5, 10])
        if sum(low <= tick <= high for tick in locator.tick_values(low, high)) >= _LEAST_TICKS:
            break
    return locator
