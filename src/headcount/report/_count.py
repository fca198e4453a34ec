"""The plot of a head count: measured losses, the target, and where the theorems point."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..theory._count import Answer, Practice

LABELS = {"width": "width m", "steps": "steps", "step-size": "step size"}


def draw_count(practice: Practice, answers: list[Answer], loss: float, ax: Any) -> Any:
    """Smallest loss of every run against the searched value, log-log; returns `ax`."""
    question = practice.answer.question
    values = [probe.value for probe in practice.probes]
    medians = [float(np.median(probe.losses)) for probe in practice.probes]
    for probe in practice.probes:
        ax.plot([probe.value] * len(probe.losses), probe.losses, ".", color="0.6", ms=3)
    ax.plot(values, medians, "o-", color="#0072B2", label="median over seeds")
    ax.axhline(loss, color="#D55E00", ls="--", label=f"target {loss:g}")
    if practice.answer.value is not None:
        ax.axvline(practice.answer.value, color="#0072B2", lw=0.8)
    reachable = sorted({a.value for a in answers if a.value is not None})
    note = f"theorems ask for {reachable[0]:.1e} or more" if reachable else "theorems: never"
    ax.set(xscale="log", yscale="log", xlabel=LABELS[question], ylabel="smallest training loss")
    ax.legend(title=note, fontsize=7, title_fontsize=7, frameon=False)
    return ax
