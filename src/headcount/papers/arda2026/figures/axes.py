"""Small things that the figures' plots share."""

from __future__ import annotations

from typing import Any


def tick_at(ax: Any, values: Any) -> Any:
    """Label a logarithmic x axis at the measured values and nowhere else."""
    shown = [float(value) for value in values]
    ax.set_xticks(shown, [f"{value:g}" for value in shown])
    ax.set_xticks([], minor=True)
    return ax
