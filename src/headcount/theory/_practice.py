"""What training needs in fact: real runs, searched for the least width, steps or step size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..core import check_choice, check_count, check_positive, total
from ..training import TrainConfig, build, run_config
from ._count import QUESTIONS, Answer, Progress


@dataclass(frozen=True)
class Probe:
    """One search point: the smallest loss of every seed, and how many runs failed on the way."""

    value: float
    losses: tuple[float, ...]
    reached: bool
    diverged: int = 0
    """Runs whose loss is not a finite number any more."""
    died: int = 0
    """Runs that end at the loss of the output zero, from which they did not start."""


@dataclass(frozen=True)
class Practice:
    """The training's answer with every run that led to it."""

    answer: Answer
    probes: tuple[Probe, ...]
    narrower: tuple[Answer, ...] = ()
    """Narrower models that, trained otherwise, make the same run: the paper's `reduction`."""


class Trained(NamedTuple):
    """Per seed: the smallest loss, the first, and whether the run diverged or died."""

    smallest: np.ndarray
    first: np.ndarray
    diverged: np.ndarray
    died: np.ndarray


_SAME = 1e-5
"""Two losses that differ by less than this part are the same: single precision."""


def trained(config: TrainConfig) -> Trained:
    """Train a configuration and say how its runs fared."""
    built = build(config)
    run = run_config(config, built=built)
    nothing = np.array([float(total(built.loss, np.zeros(len(y)), np.asarray(y))) for y in built.y])
    first, last = np.atleast_2d(run.loss)[:, 0], np.atleast_1d(run.final_loss)
    ends = np.isclose(last, nothing, rtol=_SAME, atol=0)
    return Trained(
        smallest=np.nan_to_num(np.atleast_1d(run.min_loss), nan=np.inf),
        first=first,
        diverged=np.atleast_1d(run.diverged_at) >= 0,
        died=ends & ~np.isclose(first, nothing, rtol=_SAME, atol=0),
    )


def practice(
    config: TrainConfig,
    loss: float,
    question: str,
    *,
    width_step: int = 1,
    most_width: int = 1024,
    progress: Progress | None = None,
) -> Practice:
    """What training needs to bring the median seed's smallest loss to `loss`.

    Losses need not be monotone in width, steps or step size: each is walked on a grid from the
    side of the answer, and the first that reaches is refined within its grid cell.
    """
    check_positive("loss", loss)
    check_choice("question", question, QUESTIONS)
    check_count("most_width", most_width, least=width_step)
    tell = progress or (lambda text: None)
    probes: dict[float, Probe] = {}
    field, kind = {"width": ("width", int), "steps": ("steps", int), "step-size": ("eta", float)}[
        question
    ]

    def reaches(value: float) -> bool:
        if value not in probes:
            found = trained(config.model_copy(update={field: kind(value)}))
            first, median = float(np.median(found.first)), float(np.median(found.smallest))
            if first <= loss:
                raise _MetAtStart(first)
            losses = tuple(float(v) for v in found.smallest)
            failed = int(np.sum(found.diverged)), int(np.sum(found.died))
            probes[value] = Probe(value, losses, median <= loss, *failed)
            told = _failures(probes[value].diverged, probes[value].died, len(losses))
            tell(f"{field} {value:.4g}: median smallest loss {median:.3g}{told}")
        return probes[value].reached

    searches = {
        "width": lambda: _search_width(reaches, width_step, most_width),
        "steps": lambda: _search_steps(reaches, config.steps),
        "step-size": lambda: _search_step_size(reaches),
    }
    met_at_start = False
    try:
        value, note = searches[question]()
    except _MetAtStart as met:
        value, met_at_start = None, True
        note = f"the loss is {met.loss:.3g} before the first step: nothing to train for"
    if value is None and not met_at_start and question != "step-size":
        note += _why(config, [*probes.values()], field)
    seeds = len(config.seeds)
    note = f"{seeds} seed{'s' if seeds != 1 else ''}, {note}"
    answer = Answer(question, "training", "measured", value, note, met_at_start=met_at_start)
    return Practice(answer, tuple(probes[key] for key in sorted(probes)))


def _failures(diverged: int, died: int, runs: int) -> str:
    """How many runs failed, as the end of a sentence; empty where none did."""
    parts = [f"{diverged} diverged"] * (diverged > 0)
    parts += [f"{died} died (all outputs are zero at the end)"] * (died > 0)
    return f"; of {runs} run{'s' if runs != 1 else ''} {' and '.join(parts)}" if parts else ""


_SMALLER, _MOST_TRIALS = 4, 8
"""A step that would help is sought by this factor, so many times."""


def _why(config: TrainConfig, probes: list[Probe], field: str) -> str:
    """Whether it was the step size that kept training from the target, and one that would help."""
    diverged, died = sum(p.diverged for p in probes), sum(p.died for p in probes)
    if not diverged + died:
        return ""
    told = _failures(diverged, died, sum(len(p.losses) for p in probes))
    worst = max(probes, key=lambda p: (p.diverged + p.died, p.value))
    there = config.model_copy(update={field: type(getattr(config, field))(worst.value)})
    where, eta = f"{field} {worst.value:.4g}", there.step_size
    for _ in range(_MOST_TRIALS):
        eta /= _SMALLER
        found = trained(there.model_copy(update={"eta": eta}))
        if not np.any(found.diverged | found.died):
            now = f"{there.step_size:.3g}"
            return f"{told}: with a step of {eta:.3g} (now {now}) none does at {where}"
    return f"{told}; steps down to {eta:.2g} do not help at {where}"


class _MetAtStart(Exception):
    def __init__(self, loss: float) -> None:
        super().__init__(loss)
        self.loss = loss


Reaches = Callable[[float], bool]
_CELL = 8
"""Values tried inside the grid cell that holds the answer."""
_EACH = 16
"""Up to so many units every width is tried, beyond four per octave."""


def _search_width(reaches: Reaches, unit: int, most: int) -> tuple[float | None, str]:
    """Upwards: every width at first, then four per octave, then inside the last cell."""
    grid = [unit * k for k in range(1, _EACH + 1)]
    while grid[-1] < most:
        grid.append(round(grid[-1] * 2**0.25 / unit) * unit)
    grid = [m for m in grid if m <= most]
    failed = 0
    for m in grid:
        if reaches(m):
            inside = range(failed + unit, m, max((m - failed) // _CELL // unit, 1) * unit)
            best = next((w for w in inside if reaches(w)), m)
            return float(best), f"tried upwards: {_tried(unit, best)}"
        failed = m
    return None, f"not reached up to width {failed}"


def _tried(unit: int, best: int) -> str:
    """Which widths were tried below the one that was found: it need not be the least."""
    every = "every width" if unit == 1 else f"every multiple of {unit}"
    dense = unit * _EACH
    if best <= dense:
        return every
    return f"{every} to {dense}, then four per octave: a smaller one between them may do"


def _search_steps(reaches: Reaches, most: int) -> tuple[float | None, str]:
    """Upwards on a grid of factor sqrt 2: the step size may change with the number of steps."""
    grid = sorted({round(most / 2 ** (k / 2)) for k in range(2 * most.bit_length())} - {0})
    failed = 0
    for steps in grid:
        if reaches(steps):
            inside = range(failed + 1, steps, max((steps - failed) // _CELL, 1))
            best = next((k for k in inside if reaches(k)), steps)
            return float(best), "tried upwards by factors of sqrt 2, then to within 1/16"
        failed = steps
    return None, f"not reached within {most} steps"


_ETA_TOP, _HALVINGS = 1e4, 40


def _search_step_size(reaches: Reaches) -> tuple[float | None, str]:
    """Downwards by factors of 2, then within the last factor."""
    grid = [_ETA_TOP / 2**k for k in range(_HALVINGS)]
    for above, eta in zip((grid[0], *grid), grid, strict=False):
        if reaches(eta):
            if eta == grid[0]:
                return eta, f"the end of the range that is searched, {grid[-1]:.2g} to {eta:g}"
            inside = np.geomspace(above, eta, _CELL + 1)[1:-1]
            best = float(next((e for e in inside if reaches(e)), eta))
            return best, "tried downwards by factors of 2, then to within 10 %"
    return None, f"no step size from {grid[0]:g} down to {grid[-1]:.2g} reaches the loss"
