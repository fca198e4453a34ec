"""Plots: the same data give the same bytes, at the width of a paper's column."""

from __future__ import annotations

import io
import math
import string
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import BadArgument, check_choice
from ..lab import COLOURS, Collection
from ._finish import finish

if TYPE_CHECKING:
    import xarray as xr

COLUMN_INCHES = 3.4
"""Width of a column of a paper."""
PAGE_INCHES = 6.9
"""Width of a page of a paper."""
_PANEL_HEIGHT = 2.6

# No dates and no program versions: a file changes only when the figure does.
METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
}

STYLE: Any = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "font.size": 8,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.fontsize": 6.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "pdf.fonttype": 42,
    "savefig.dpi": 300,
    "svg.fonttype": "none",
    "svg.hashsalt": "headcount",
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
}
"""Settings of Matplotlib for all plots."""


_LEAST_PANEL = 2.2
"""Inches that a panel needs for its ticks and labels."""
_LEAST_HEIGHT = 1.4
"""Inches that a panel needs with its title."""


STYLES = {"paper": 1.0, "talk": 1.6}
"""How large letters, lines and marks are, beside those of a paper."""
TALK_INCHES = 10.0
"""Width of a slide."""


@dataclass(frozen=True)
class Look:
    """How a figure is drawn: inches, a title, and whether the verdicts are counted below.

    Without a width it has the paper's own arrangement of panels; with one, as many panels stand
    side by side as have room. A height is that of the whole picture. `style="talk"` is for a slide,
    10 inches wide if nothing else is said; `panels="ac"` draws the first and the third alone.
    """

    width: float | None = None
    height: float | None = None
    title: str = ""
    verdicts: bool = False
    style: str = "paper"
    panels: str = ""

    def __post_init__(self) -> None:
        check_choice("style", self.style, tuple(STYLES))
        if self.width is None and (self.style == "talk" or self.panels):
            width = TALK_INCHES if self.style == "talk" else PAGE_INCHES
            object.__setattr__(self, "width", width)
        for name in ("width", "height"):
            inches = getattr(self, name)
            if inches is not None and not 1.5 <= inches <= 50:
                raise BadArgument(name, inches, "must be 1.5 to 50 inches", fix=f"use {name}=3.4")

    @classmethod
    def of_size(cls, size: str | None, **rest: Any) -> Look:
        """From `column`, `page` or WIDTHxHEIGHT in inches."""
        known: dict[str, float | None] = {"column": COLUMN_INCHES, "page": PAGE_INCHES}
        if size is None or size in known:
            return cls(known.get(size or ""), **rest)
        try:
            width, height = (float(part) for part in size.split("x"))
        except ValueError:
            fix = "use column, page or inches such as 5.5x3"
            raise BadArgument("size", size, "is no size", fix=fix) from None
        return cls(width, height, **rest)

    @property
    def scale(self) -> float:
        """Of letters, lines and marks."""
        return STYLES[self.style]

    def chosen(self, count: int) -> list[int]:
        """Which of so many panels are drawn, in their order."""
        letters = string.ascii_lowercase[:count]
        if set(self.panels) - set(letters) or len(set(self.panels)) < len(self.panels):
            fix = f"use letters of {letters}, each once, such as panels={letters[:1]!r}"
            raise BadArgument("panels", self.panels, "are not panels of this figure", fix=fix)
        return [i for i, letter in enumerate(letters) if not self.panels or letter in self.panels]

    def grid(self, rows: int, columns: int) -> tuple[int, int, float]:
        """Rows and columns of panels, and the width of the picture."""
        if self.width is None:
            return rows, columns, COLUMN_INCHES if columns == 1 else PAGE_INCHES
        count = len(self.chosen(rows * columns))
        fitting = max(1, int(self.width / (_LEAST_PANEL * self.scale)))
        beside = min(columns, fitting, count)
        return -(-count // beside), beside, self.width

    def settings(self) -> Any:
        """Matplotlib's, with what is measured in points as large as the style asks."""
        sizes = ("size", "width", "fontsize")
        return {
            name: value * self.scale if name.endswith(sizes) else value
            for name, value in STYLE.items()
        }


def draw(collection: Collection, look: Look | None = None, **options: Any) -> Any:
    """The figure as a Matplotlib figure; no window and no global state.

    Options are those of `Look`: `draw(collection, width=3.4, panels="ac", title="Mine")`.
    """
    import matplotlib as mpl
    from cycler import cycler
    from matplotlib.figure import Figure as Canvas

    look = replace(look or Look(), **options)
    own = collection.plan.figure.layout
    rows, columns, width = look.grid(*own)
    panel_height = _PANEL_HEIGHT * math.sqrt(look.scale)
    settings: Any = {**look.settings(), "axes.prop_cycle": cycler(color=COLOURS)}
    with mpl.rc_context(settings):
        canvas = Canvas(figsize=(width, panel_height * rows), layout="constrained")
        axes = list(np.atleast_1d(canvas.subplots(*own)).ravel())
        collection.plan.figure.plot(_drawable(collection.data), axes)
        axes = _arrange(canvas, axes, look, rows, columns)
        finish(canvas, axes, columns, collection, look.verdicts, look.scale, look.title)
        if look.height is not None:
            words = canvas.get_size_inches()[1] - panel_height * rows
            if look.height < (least := words + _LEAST_HEIGHT * look.scale * rows):
                problem = "leaves no room for the panels beside keys and caption"
                fix = f"use {least:.1f} inches or more, or leave it out"
                raise BadArgument("height", look.height, problem, fix=fix)
            canvas.set_size_inches(width, look.height)
    return canvas


def _arrange(canvas: Any, axes: list[Any], look: Look, rows: int, columns: int) -> list[Any]:
    """The panels that are wanted, row after row; words of a size of their own grow as the rest."""
    kept = [axes[i] for i in look.chosen(len(axes))]
    for ax in axes:
        if ax not in kept:
            ax.remove()
    if look.width is not None:
        places = canvas.add_gridspec(rows, columns)
        for i, ax in enumerate(kept):
            ax.set_subplotspec(places[i // columns, i % columns])
    smallest = STYLE["legend.fontsize"] * look.scale
    for words in canvas.findobj(lambda one: hasattr(one, "set_fontsize")):
        if words.get_fontsize() < smallest:
            words.set_fontsize(words.get_fontsize() * look.scale)
    return kept


def _drawable(data: xr.Dataset) -> xr.Dataset:
    """The data with infinities as NaN: there is no place for them on an axis."""
    shown = data.copy()
    for name, variable in data.data_vars.items():
        if variable.dtype.kind == "f" and np.isinf(variable.values).any():
            shown[name] = variable.where(np.isfinite(variable.values))
    return shown


def render(collection: Collection, *kinds: str, look: Look | None = None) -> dict[str, bytes]:
    """The figure as the bytes of files: render(collection, "png", "pdf", "svg")["png"]."""
    import matplotlib as mpl

    for kind in kinds:
        check_choice("kind", kind, tuple(METADATA))
    canvas = draw(collection, look)
    files = {}
    with mpl.rc_context(STYLE):
        canvas.draw_without_rendering()
        canvas.set_layout_engine("none")  # laid out once; saving would do it again each time
        for kind in kinds:
            buffer = io.BytesIO()
            canvas.savefig(buffer, format=kind, metadata=METADATA[kind])
            files[kind] = buffer.getvalue()
    return files
