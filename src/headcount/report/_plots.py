"""Plots: the same data give the same bytes, at the width of a paper's column."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import check_choice
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


def draw(collection: Collection) -> Any:
    """The figure as a Matplotlib figure; no window and no global state."""
    import matplotlib as mpl
    from cycler import cycler
    from matplotlib.figure import Figure as Canvas

    rows, columns = collection.plan.figure.layout
    width = COLUMN_INCHES if columns == 1 else PAGE_INCHES
    with mpl.rc_context({**STYLE, "axes.prop_cycle": cycler(color=COLOURS)}):
        canvas = Canvas(figsize=(width, _PANEL_HEIGHT * rows), layout="constrained")
        axes = list(np.atleast_1d(canvas.subplots(rows, columns)).ravel())
        collection.plan.figure.plot(_drawable(collection.data), axes)
        finish(canvas, axes, columns, collection)
    return canvas


def _drawable(data: xr.Dataset) -> xr.Dataset:
    """The data with infinities as NaN: there is no place for them on an axis."""
    shown = data.copy()
    for name, variable in data.data_vars.items():
        if variable.dtype.kind == "f" and np.isinf(variable.values).any():
            shown[name] = variable.where(np.isfinite(variable.values))
    return shown


def render(collection: Collection, *kinds: str) -> dict[str, bytes]:
    """The figure as the bytes of files: render(collection, "png", "pdf", "svg")["png"]."""
    import matplotlib as mpl

    for kind in kinds:
        check_choice("kind", kind, tuple(METADATA))
    canvas = draw(collection)
    files = {}
    with mpl.rc_context(STYLE):
        canvas.draw_without_rendering()
        canvas.set_layout_engine("none")  # laid out once; saving would do it again each time
        for kind in kinds:
            buffer = io.BytesIO()
            canvas.savefig(buffer, format=kind, metadata=METADATA[kind])
            files[kind] = buffer.getvalue()
    return files
