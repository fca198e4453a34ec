"""Head counting: what each theorem asks for, and what training needs in fact.

Three questions about one target loss: the least width, the largest step size, the fewest steps.
Theorems answer by inverting their bounds; training answers by search over real runs.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import check_choice, check_count, check_positive
from ..core._rounding import ordered, round_down, round_up
from ..training import TrainConfig, run_config
from ._claim import Check, Claim
from ._free_steps import coarse_pairs, downwards, least_over_steps
from ._registry import claims
from ._setting import Setting

QUESTIONS = ("width", "steps", "step-size")
_LARGEST = 2**1000
"""Widths and steps beyond this are "never": the bound does not reach the target in float64."""
_ETA_RANGE = (1e-12, 1e6)
_DENSE = 64
"""Up to this multiple of the width's unit every value is tried, beyond it some per octave."""
_FAR = 2**100
"""Beyond this multiple one value per octave: nothing but powers of the width is left there."""


@dataclass(frozen=True)
class Answer:
    """One answer: a theorem's or the training's; `value` None means never."""

    question: str
    source: str
    variant: str
    value: float | None
    note: str
    beyond: float | None = None
    """Where `value` is None: the answer is only known to lie beyond this; None means never."""
    met_at_start: bool = False
    """Where `value` is None: the target is met before the first step, nothing is needed."""

    @property
    def shown(self) -> str:
        """The value for people, rounded to the side on which it still is an answer."""
        if self.value is not None:
            safe = round_down if self.question == "step-size" else round_up
            return safe(self.value, 4)
        if self.met_at_start:
            return "nothing"
        return "never" if self.beyond is None else f"> {round_down(self.beyond, 4)}"

    def to_json(self) -> dict[str, Any]:
        """Plain values; widths beyond float range as text."""
        return {
            "question": self.question,
            "source": self.source,
            "variant": self.variant,
            "value": self.value,
            "note": self.note,
            "beyond": self.beyond,
            "met_at_start": self.met_at_start,
        }


@dataclass(frozen=True)
class Probe:
    """One search point of the training's answer."""

    value: float
    losses: tuple[float, ...]
    reached: bool


@dataclass(frozen=True)
class Practice:
    """The training's answer with every run that led to it."""

    answer: Answer
    probes: tuple[Probe, ...]
    narrower: tuple[Answer, ...] = ()
    """Narrower models that, trained otherwise, make the same run: the paper's `reduction`."""


QUANTITIES = ("loss", "gap")
"""What a theorem may bound: the training loss, or how much larger the test loss is."""

Progress = Callable[[str], None]


def claims_about(paper: str, quantity: str = "loss") -> Iterator[tuple[Claim, str]]:
    """A paper's claims that bound this quantity, with each variant that a setting can answer.

    Variants known to fail are left out, and measured ones, which need a run.
    """
    for claim in claims.of_paper(paper):
        if claim.quantity == quantity and claim.bound is not None:
            for name, variant in claim.variants.items():
                if not variant.fails and name != "measured":
                    yield claim, name


class Promise:
    """What one variant of a claim promises at a setting, and why it may promise nothing."""

    def __init__(self, claim: Claim, variant: str) -> None:
        self.claim, self.variant = claim, variant

    def __call__(self, setting: Setting) -> float:
        """The right side where every hypothesis of the setting holds, else infinity."""
        return self.explained(setting)[0]

    def explained(self, setting: Setting) -> tuple[float, Check | None]:
        """The same, with the hypothesis that fails worst, if one does."""
        bound, checks = self.claim.promise(setting, self.variant)
        failed = [check for check in checks if not check.holds]
        if failed:
            return math.inf, min(failed, key=lambda check: check.margin)
        rhs = float(bound.rhs)
        return rhs if math.isfinite(rhs) else math.inf, None


def theorem_answers(
    paper: str,
    setting: Setting,
    target: float,
    question: str,
    quantity: str = "loss",
    progress: Progress | None = None,
) -> list[Answer]:
    """What every theorem of a paper asks for at this setting, to promise at most `target`.

    `progress` is told which theorem is asked where a start is drawn for each width, which is slow.
    """
    check_positive(quantity, target)
    check_choice("question", question, QUESTIONS)
    check_choice("quantity", quantity, QUANTITIES)
    invert = {"width": _least_width, "steps": _fewest_steps, "step-size": _largest_step}[question]
    widths = question == "width"
    widest = getattr(setting, "widest", None) if widths else None
    answers = []
    for claim, variant in claims_about(paper, quantity):
        promise = Promise(claim, variant)
        if progress is not None and widest is not None:
            progress(f"  asking {claim.id} ({variant})")
        for search in (invert, _width_with_free_steps) if widths else (invert,):
            value, note = search(promise, setting, target)
            beyond = float(widest) if value is None and widest is not None else None
            answers.append(Answer(question, claim.id, variant, value, note, beyond))
    return answers


def _grid(unit: int = 1, per_octave: int = 8) -> Iterator[int]:
    """Whole multiples of `unit`: all of them at first, then some per octave, far out one."""
    yield from range(unit, _DENSE * unit + 1, unit)
    for k in itertools.count(1):
        octave, part = divmod(k, per_octave)
        value = _DENSE * 2**octave
        if unit * value > _LARGEST:
            return
        if part and value >= _FAR:
            continue
        yield unit * (value + ((value * round((2 ** (part / per_octave) - 1) * 2**20)) >> 20))


def _widths_per_octave(setting: Setting) -> int:
    """Fewer where a start is drawn for each: most of the time goes to the widest ones."""
    return 8 if getattr(setting, "widest", None) is None else 2


def _least(
    reaches: Callable[[int], bool], unit: int = 1, per_octave: int = 8
) -> tuple[int, int] | None:
    """The least value on the grid that reaches, made exact downwards; and the next that fails.

    The grid is walked upwards, so a bound that is not monotone is found where it first reaches,
    up to dips between grid points. The second number is the next grid point beyond the answer
    where the target is missed again, 0 if there is none.
    """
    before, found = 0, None
    for value in _grid(unit, per_octave):
        if found is None and reaches(value):
            found = downwards(reaches, before, value, unit)
        elif found is not None and not reaches(value):
            return found, value
        before = value
    return None if found is None else (found, 0)


Promised = tuple[float, Check | None]
"""What `Promise.explained` says of one setting."""


def _asked_once(promise: Promise, setting_at: Callable[..., Setting]) -> Callable[..., Promised]:
    """What is promised along a line of settings; the search and its explanation share it."""
    return functools.cache(lambda *at: promise.explained(setting_at(*at)))


def _at_least(count: int) -> float:
    """The least float64 that is not below a whole number."""
    near = float(count)
    return near if near >= count else math.nextafter(near, math.inf)


def _never(line: Iterable[Promised], what: str) -> str:
    """Why no setting along a line reaches the target."""
    smallest, reason = math.inf, ""
    for promised, check in line:
        smallest = min(smallest, promised)
        if check is not None:
            reason = f"{check.name}: {' > '.join(ordered(check.value, check.threshold))}"
    if math.isinf(smallest):
        return f"not applicable: {reason}" if reason else "the bound is not finite"
    return f"{what} brings the bound below {round_down(smallest)}"


def _octaves(unit: int = 1) -> Iterator[int]:
    return (unit * 2**k for k in range((_LARGEST // unit).bit_length()))


def _least_width(promise: Promise, setting: Setting, loss: float) -> tuple[float | None, str]:
    unit, steps = setting.width_step, setting.steps
    at = _asked_once(promise, lambda m: setting.resized(width=m))
    found = _least(lambda m: at(m)[0] <= loss, unit, _widths_per_octave(setting))
    if found is None:
        return None, _never(map(at, _octaves(unit)), f"at {steps} steps no width")
    missed = f"; not at width {found[1]:.4g} any more" if found[1] else ""
    return _at_least(found[0]), f"at {steps} steps{missed}"


def _fewest_steps(promise: Promise, setting: Setting, loss: float) -> tuple[float | None, str]:
    free = setting.resized(step_size="default")
    at = _asked_once(promise, lambda k: free.resized(steps=k))
    found = _least(lambda k: at(k)[0] <= loss)
    if found is None:
        return None, _never(map(at, _octaves()), f"at width {setting.width} no number of steps")
    return _at_least(found[0]), f"at width {setting.width}, with the theorem's own step size"


def _width_with_free_steps(
    promise: Promise, setting: Setting, loss: float
) -> tuple[float | None, str]:
    """The least width when as many steps as one likes may be taken."""
    free, unit = setting.resized(step_size="default"), setting.width_step
    widest = getattr(setting, "widest", None)
    widths = [m for m in _octaves(unit) if widest is None or m < 2 * widest]
    steps = [*_octaves()]
    at = _asked_once(promise, lambda width, count: free.resized(width=width, steps=count))

    def reaches(width: int, count: int = _LARGEST) -> bool:
        return at(width, count)[0] <= loss

    endless = _least(reaches, unit, _widths_per_octave(setting))
    known = None if endless is None else (endless[0], _LARGEST)
    found = least_over_steps(reaches, known, unit, widths, steps)
    if found is None:
        line = itertools.starmap(at, coarse_pairs(widths, steps))
        return None, _never(line, "with any number of steps no width")
    width, count = found
    if count != _LARGEST:
        taken = round_up(_at_least(count))
        return _at_least(width), f"with {taken} steps, the number that asks for the fewest heads"
    doubled = free.resized(width=2 * width)
    fewest = _least(lambda k: promise(doubled.resized(steps=k)) <= loss)
    taken = f"{round_up(_at_least(fewest[0]))} suffice" if fewest is not None else "none suffices"
    return _at_least(width), f"with endlessly many steps; at twice this width {taken}"


def _largest_step(promise: Promise, setting: Setting, loss: float) -> tuple[float | None, str]:
    """The largest step size whose right side is at most `loss`."""
    grid = np.geomspace(*_ETA_RANGE, 400)[::-1]
    at = _asked_once(promise, lambda eta: setting.resized(step_size=float(eta)))
    reached = next((k for k, eta in enumerate(grid) if at(eta)[0] <= loss), None)
    if reached is None:
        return None, _never(map(at, grid), "no step size")
    low, high = float(grid[reached]), float(grid[max(reached - 1, 0)])
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if at(middle)[0] <= loss else (low, middle)
    return float(low), f"at width {setting.width}, {setting.steps} steps"


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

    def reaches(field: str, value: float) -> bool:
        if value not in probes:
            changed = {"width": int, "steps": int, "eta": float}[field](value)
            run = run_config(config.model_copy(update={field: changed}))
            losses = np.nan_to_num(np.atleast_1d(run.min_loss), nan=np.inf)
            first = float(np.median(np.atleast_2d(run.loss)[:, 0]))
            if first <= loss:
                raise _MetAtStart(first)
            good = bool(np.median(losses) <= loss)
            probes[value] = Probe(value, tuple(float(v) for v in losses), good)
            tell(f"{field} {value:.4g}: median smallest loss {np.median(losses):.3g}")
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
    seeds = len(config.seeds)
    note = f"{seeds} seed{'s' if seeds != 1 else ''}, {note}"
    answer = Answer(question, "training", "measured", value, note, met_at_start=met_at_start)
    return Practice(answer, tuple(probes[key] for key in sorted(probes)))


class _MetAtStart(Exception):
    def __init__(self, loss: float) -> None:
        super().__init__(loss)
        self.loss = loss


Reaches = Callable[[str, float], bool]
_CELL = 8
"""Values tried inside the grid cell that holds the answer."""


def _search_width(reaches: Reaches, unit: int, most: int) -> tuple[float | None, str]:
    """Upwards: every width up to 16 units, then four per octave, then inside the last cell."""
    grid = [unit * k for k in range(1, 17)]
    while grid[-1] < most:
        grid.append(round(grid[-1] * 2**0.25 / unit) * unit)
    grid = [m for m in grid if m <= most]
    failed = 0
    for m in grid:
        if reaches("width", m):
            inside = range(failed + unit, m, max((m - failed) // _CELL // unit, 1) * unit)
            best = next((w for w in inside if reaches("width", w)), m)
            return float(best), f"tried upwards from {unit}"
        failed = m
    return None, f"not reached up to width {failed}"


def _search_steps(reaches: Reaches, most: int) -> tuple[float | None, str]:
    """Upwards on a grid of factor sqrt 2: the step size may change with the number of steps."""
    grid = sorted({round(most / 2 ** (k / 2)) for k in range(2 * most.bit_length())} - {0})
    failed = 0
    for steps in grid:
        if reaches("steps", steps):
            inside = range(failed + 1, steps, max((steps - failed) // _CELL, 1))
            best = next((k for k in inside if reaches("steps", k)), steps)
            return float(best), "to within 1/16"
        failed = steps
    return None, f"not reached within {most} steps"


def _search_step_size(reaches: Reaches) -> tuple[float | None, str]:
    """Downwards from 10^4 by factors of 2, then within the last factor."""
    grid = [1e4 / 2**k for k in range(40)]
    for above, eta in zip((grid[0], *grid), grid, strict=False):
        if reaches("eta", eta):
            if eta == grid[0]:
                return eta, "no upper end found"
            inside = np.geomspace(above, eta, _CELL + 1)[1:-1]
            return float(next((e for e in inside if reaches("eta", e)), eta)), "to within 10 %"
    return None, f"no step size from {grid[0]:g} down to {grid[-1]:.2g} reaches the loss"
