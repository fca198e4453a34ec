"""What every drawn figure must meet, whoever drew it."""

from __future__ import annotations

from typing import Any


def keys_on_data(canvas: Any) -> list[str]:
    """The first labels of legends that lie on a panel."""
    canvas.draw_without_rendering()
    legends = [*canvas.legends, *(ax.get_legend() for ax in canvas.axes if ax.get_legend())]
    boxes = [ax.get_window_extent() for ax in canvas.axes]
    return [
        legend.get_texts()[0].get_text()
        for legend in legends
        if any(_overlap(legend.get_window_extent(), box) for box in boxes)
    ]


def words_beyond_panels(canvas: Any) -> list[str]:
    """Words beside a line that reach out of their panel, into a title or another panel."""
    canvas.draw_without_rendering()
    return [
        text.get_text()
        for ax in canvas.axes
        for text in ax.texts
        if not _inside(text.get_window_extent(), ax.get_window_extent())
    ]


def _inside(a: Any, b: Any) -> bool:
    """Up to a point."""
    wide = a.x0 >= b.x0 - 1 and a.x1 <= b.x1 + 1
    return bool(wide and a.y0 >= b.y0 - 1 and a.y1 <= b.y1 + 1)


def _overlap(a: Any, b: Any) -> bool:
    """More than a point in both directions."""
    wide = min(a.x1, b.x1) - max(a.x0, b.x0)
    high = min(a.y1, b.y1) - max(a.y0, b.y0)
    return bool(wide > 1 and high > 1)
