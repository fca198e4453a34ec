"""What the figures at a fixed width share: the problem, its scales, losses against a size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ....lab import draw_interval, draw_power_law, log_log, tick_at
from ..measurements.problem import TEACHERS

if TYPE_CHECKING:
    import xarray as xr

PAPER = {"teacher": "paper", "step": "paper", "heads": "paired", "split": "all"}
CHOICES = {"teacher": tuple(TEACHERS)}


def teacher_student_scales(
    smoke: dict[str, Any], quick: dict[str, Any], paper: dict[str, Any]
) -> dict[str, Any]:
    """The scales of a teacher-student figure."""
    return {
        "smoke": {"seeds": 3, "m": 8, "n": 100, "T": 16, "d": 8, "pool": 256, **smoke},
        "quick": {"seeds": 5, "m": 64, "n": 500, "T": 16, "d": 8, "pool": 2048, **quick},
        "paper": {"seeds": 10, "m": 64, "n": 5000, "T": 16, "d": 8, "pool": 8192, **paper},
    }


def with_defaults(options: Mapping[str, str]) -> dict[str, str]:
    return {**PAPER, **options}


def by_seed(data: xr.Dataset, name: str, x: str) -> Any:
    return data[name].transpose("seed", x).values


def draw_losses(data: xr.Dataset, ax: Any, x: str, names: Mapping[str, str], x_label: str) -> None:
    for index, (name, label) in enumerate(names.items()):
        place = (index, len(names)) if len(names) > 3 else None  # four bands would hide each other
        draw_interval(ax, data, f"mean_{name}", x, label=label, index=index, beside=place)
        draw_power_law(ax, data, name, x, index=index)
    log_log(ax, x_label, "loss" if "min_loss" in names else "error")
    tick_at(ax, data[x].values)
