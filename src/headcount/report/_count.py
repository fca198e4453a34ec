"""The plot of a head count: measured losses, the target, and where the theorems point."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..lab import COLOURS, tick_at
from ..theory import Answer
from ..theory._practice import Practice
from ._finish import key_below, label_ticks

LABELS = {"width": "width m", "steps": "steps", "step-size": "step size"}


def draw_count(practice: Practice, answers: list[Answer], loss: float, ax: Any) -> Any:
    """Smallest loss of every run against the searched value, log-log; returns `ax`."""
    question = practice.answer.question
    values = [probe.value for probe in practice.probes]
    medians = [float(np.median(probe.losses)) for probe in practice.probes]
    order = np.argsort(values)
    spread = [(probe.value, value) for probe in practice.probes for value in probe.losses]
    seeds = len(practice.probes[0].losses)
    ax.plot(*zip(*spread, strict=True), ".", color="0.6", ms=4, label=f"one of {seeds} seeds")
    median = np.take(values, order), np.take(medians, order)
    ax.plot(*median, "o-", color=COLOURS[0], ms=4, lw=1.2, label="median over seeds")
    ax.axhline(loss, color=COLOURS[1], ls="--", lw=1.2, label=f"target {loss:g}")
    if practice.answer.value is not None:
        words = f"training needs {practice.answer.shown}"
        ax.axvline(practice.answer.value, color=COLOURS[0], lw=0.8, ls=":", label=words)
    reachable = sorted({a.value for a in answers if a.value is not None and a.trivial is None})
    note = f"theorems ask for {reachable[0]:.1e} or more" if reachable else "theorems: never"
    ax.set(xscale="log", yscale="log", xlabel=LABELS[question], ylabel="smallest training loss")
    ax.set_title(note, loc="left", fontsize=8)
    ax.tick_params(labelsize=7)
    label_ticks(ax)
    tick_at(ax, sorted(set(values)))
    key_below(ax, *ax.get_legend_handles_labels())
    return ax
