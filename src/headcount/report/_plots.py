"""Plots: the same data give the same bytes, at the width of a paper's column."""

from __future__ import annotations

import io
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Look:
    """How a figure is drawn: inches, a title, and whether the verdicts are counted below.

    Without a width it has the paper's own arrangement of panels; with one, as many panels stand
    side by side as have room. A height is that of the whole picture.
    """

    width: float | None = None
    height: float | None = None
    title: str = ""
    verdicts: bool = False

    def __post_init__(self) -> None:
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

    def grid(self, rows: int, columns: int) -> tuple[int, int, float]:
        """Rows and columns of panels, and the width of the picture."""
        if self.width is None:
            return rows, columns, COLUMN_INCHES if columns == 1 else PAGE_INCHES
        fitting = max(1, int(self.width / _LEAST_PANEL))
        beside = min(columns, fitting)
        return -(-rows * columns // beside), beside, self.width


def draw(collection: Collection, look: Look | None = None) -> Any:
    """The figure as a Matplotlib figure; no window and no global state."""
    import matplotlib as mpl
    from cycler import cycler
    from matplotlib.figure import Figure as Canvas

    look = look or Look()
    own = collection.plan.figure.layout
    rows, columns, width = look.grid(*own)
    with mpl.rc_context({**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}):
        canvas = Canvas(figsize=(width, _PANEL_HEIGHT * rows), layout="constrained")
        places = list(np.atleast_1d(canvas.subplots(rows, columns)).ravel())
        axes = places[: own[0] * own[1]]
        for place in places[len(axes) :]:
            place.remove()
        collection.plan.figure.plot(_drawable(collection.data), axes)
        finish(canvas, axes, columns, collection, look.verdicts)
        if look.title:
            canvas.suptitle(look.title)
        if look.height is not None:
            words = canvas.get_size_inches()[1] - _PANEL_HEIGHT * rows
            if look.height < (least := words + _LEAST_HEIGHT * rows):
                problem = "leaves no room for the panels beside keys and caption"
                fix = f"use {least:.1f} inches or more, or leave it out"
                raise BadArgument("height", look.height, problem, fix=fix)
            canvas.set_size_inches(width, look.height)
    return canvas


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
