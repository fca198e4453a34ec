"""Head counting: what each theorem asks for, by inverting its bound.

Three questions about one target: the least width, the largest step size, the fewest steps. What
training needs in fact is `_practice`.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..core import check_choice, check_positive
from ..core._rounding import round_down, round_up
from ._claim import Claim
from ._free_steps import coarse_pairs, downwards, least_over_steps
from ._in_notebooks import Answers, AnswerShown
from ._promise import Promised, claims_about, known_without, promised
from ._setting import Setting

QUESTIONS = ("width", "steps", "step-size")
QUANTITIES = ("loss", "gap")
"""What a theorem may bound: the training loss, or how much larger the test loss is."""
_LARGEST = 2**1000
"""Widths and steps beyond this are "never": the bound does not reach the target in float64."""
_ETA_RANGE = (1e-12, 1e6)
"""Between these a step size is searched; an answer at an end is told to be one."""
_FAR = 2**100
"""Beyond this multiple one value per octave: nothing but powers of the width is left there."""

Progress = Callable[[str], None]


@dataclass(frozen=True, repr=False)
class Answer(AnswerShown):
    """One answer: a theorem's or the training's; `value` None means that there is none."""

    question: str
    source: str
    variant: str
    value: float | None
    note: str
    beyond: float | None = None
    """Where `value` is None: the answer is only known to lie beyond this."""
    met_at_start: bool = False
    """Where `value` is None: the target is met before the first step, nothing is needed."""
    printed: bool = False
    """Whether the form is the paper's own, not one of ours."""
    taken: str = ""
    """Of a width for any number of steps: how many; empty where the steps are the given ones."""
    applies: bool = True
    """Whether the hypotheses can be met along the line that was searched."""
    trivial: float | None = None
    """What is known without the theorem, where the target is no smaller: the answer is vacuous."""
    seeds: tuple[int, ...] = ()
    """The seeds that were asked, where the answer depends on the seed."""
    per_seed: tuple[float | None, ...] = ()

    @property
    def shown(self) -> str:
        """The value for people, rounded to the side on which it still is an answer."""
        if self.value is not None:
            return _shown(self.question, self.value)
        if self.met_at_start:
            return "nothing"
        if self.beyond is not None:
            return f"> {round_down(self.beyond, 4)}"
        return "never" if self.applies else "-"

    def to_json(self) -> dict[str, Any]:
        """Plain values; `vacuous` says whether as much is known without the theorem."""
        names = ("question", "source", "variant", "value", "note", "beyond", "met_at_start")
        more = ("printed", "taken", "applies", "trivial", "seeds", "per_seed")
        found = {name: getattr(self, name) for name in (*names, *more)}
        return {**found, "vacuous": self.trivial is not None}


def _shown(question: str, value: float) -> str:
    return (round_down if question == "step-size" else round_up)(value, 4)


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
    searches = (invert, _width_with_free_steps) if question == "width" else (invert,)
    widest = getattr(setting, "widest", None) if question == "width" else None
    answers = Answers()
    for claim, form in claims_about(paper, quantity):
        if progress is not None and widest is not None:
            progress(f"  asking {claim.id} ({form})")
        for search in searches:
            found = search(functools.partial(promised, claim, form), setting, target)
            note = f"{found.note}; {claim.proviso}" if claim.proviso else found.note
            if widest is not None:
                grid = f"starts drawn at every width to {_DRAWN.dense}, then once per octave"
                note = f"{note}; {grid}"
                found = replace(found, beyond=None if found.value else float(widest))
            answers.append(
                replace(
                    found, source=claim.id, variant=form, printed=_printed(claim, form), note=note
                )
            )
    return answers


def _printed(claim: Claim, form: str) -> bool:
    return form == "printed" or claim.forms[form].role != "ours"


def over_seeds(answers: Mapping[int, list[Answer]]) -> list[Answer]:
    """One answer for those of several seeds: the median seed's, beside the range.

    Of an even number of seeds the worse of the two in the middle: half of them can do with it.
    """
    if len(answers) == 1:
        return next(iter(answers.values()))
    return Answers(_median(tuple(answers), same) for same in zip(*answers.values(), strict=True))


def _median(seeds: tuple[int, ...], answers: tuple[Answer, ...]) -> Answer:
    largest = answers[0].question == "step-size"

    def need(answer: Answer) -> float:
        if answer.value is None:
            return math.inf
        return -answer.value if largest else answer.value

    order = sorted(answers, key=need)
    middle = order[len(order) // 2]
    values = tuple(answer.value for answer in answers)
    first, last, asked = order[0].shown, order[-1].shown, ", ".join(map(str, seeds))
    if first != last:
        note = f"{middle.note}; median of seeds {asked}: {first} to {last}"
    elif len({answer.note for answer in answers}) == 1:
        note = f"{middle.note}; so for each of seeds {asked}"
    else:
        others = ", ".join(map(str, seeds[1:]))
        note = f"{answers[0].note}; so for seed {seeds[0]}, with other numbers for seeds {others}"
    return replace(middle, note=note, seeds=seeds, per_seed=values)


def _found(question: str, value: float, note: str, there: Promised, target: float) -> Answer:
    """An answer; vacuous where the target is no smaller than what is known without the theorem."""
    known = there.trivial
    vacuous = known is not None and target >= known
    if vacuous:
        assert known is not None
        note = f"{note}; {known_without(known)}"
    return Answer(question, "", "", value, note, trivial=known if vacuous else None)


class Grid(NamedTuple):
    """Every multiple of the unit up to `dense`, then so many per octave, far out one."""

    dense: int = 64
    per_octave: int = 8

    def values(self, unit: int = 1) -> Iterator[int]:
        """The values, upwards."""
        yield from range(unit, self.dense * unit + 1, unit)
        for k in itertools.count(1):
            octave, part = divmod(k, self.per_octave)
            value = self.dense * 2**octave
            if unit * value > _LARGEST:
                return
            if part and value >= _FAR:
                continue
            share = round((2 ** (part / self.per_octave) - 1) * 2**20)
            yield unit * (value + ((value * share) >> 20))


_FULL, _DRAWN = Grid(), Grid(16, 1)
"""The second where a start is drawn for each width: most of the time goes there."""


def _grid_of(setting: Setting) -> Grid:
    return _FULL if getattr(setting, "widest", None) is None else _DRAWN


def _least(
    reaches: Callable[[int], bool], unit: int = 1, grid: Grid = _FULL
) -> tuple[int, int] | None:
    """The least value on the grid that reaches, made exact downwards; and the next that fails.

    The grid is walked upwards, so a bound that is not monotone is found where it first reaches,
    up to dips between grid points. The second number is the next grid point beyond the answer
    where the target is missed again, 0 if there is none.
    """
    before, found = 0, None
    for value in grid.values(unit):
        if found is None and reaches(value):
            found = downwards(reaches, before, value, unit)
        elif found is not None and not reaches(value):
            return found, value
        before = value
    return None if found is None else (found, 0)


Promise = Callable[[Setting], Promised]


def _asked_once(promise: Promise, setting_at: Callable[..., Setting]) -> Callable[..., Promised]:
    """What is promised along a line of settings; the search and its explanation share it."""
    return functools.cache(lambda *at: promise(setting_at(*at)))


def _at_least(count: int) -> float:
    """The least float64 that is not below a whole number."""
    near = float(count)
    return near if near >= count else math.nextafter(near, math.inf)


def _never(question: str, line: Iterable[Promised], what: str) -> Answer:
    """Why no setting along a line reaches the target."""
    smallest, reason = math.inf, ""
    for there in line:
        smallest = min(smallest, there.value)
        if there.worst is not None:
            reason = there.worst.failing
    if smallest < math.inf:
        note = f"{what} brings the bound below {round_down(smallest)}"
        return Answer(question, "", "", None, note)
    note = f"not applicable: {reason}" if reason else "the bound is not finite"
    return Answer(question, "", "", None, note, applies=False)


def _octaves(unit: int = 1) -> Iterator[int]:
    return (unit * 2**k for k in range((_LARGEST // unit).bit_length()))


def _least_width(promise: Promise, setting: Setting, target: float) -> Answer:
    unit, steps = setting.width_step, setting.steps
    at = _asked_once(promise, lambda m: setting.resized(width=m))
    found = _least(lambda m: at(m).value <= target, unit, _grid_of(setting))
    if found is None:
        return _never("width", map(at, _octaves(unit)), f"at {steps} steps no width")
    missed = f"; not at width {found[1]:.4g} any more" if found[1] else ""
    note = f"at {steps} steps{missed}"
    return _found("width", _at_least(found[0]), note, at(found[0]), target)


def _fewest_steps(promise: Promise, setting: Setting, target: float) -> Answer:
    free = setting.resized(step_size="default")
    at = _asked_once(promise, lambda k: free.resized(steps=k))
    found = _least(lambda k: at(k).value <= target)
    if found is None:
        return _never("steps", map(at, _octaves()), f"at width {setting.width} no number of steps")
    note = f"at width {setting.width}, with the theorem's own step size"
    return _found("steps", _at_least(found[0]), note, at(found[0]), target)


def _width_with_free_steps(promise: Promise, setting: Setting, target: float) -> Answer:
    """The least width when as many steps as one likes may be taken."""
    free, unit = setting.resized(step_size="default"), setting.width_step
    widest = getattr(setting, "widest", None)
    widths = [m for m in _octaves(unit) if widest is None or m < 2 * widest]
    steps = [*_octaves()]
    at = _asked_once(promise, lambda width, count: free.resized(width=width, steps=count))

    def reaches(width: int, count: int = _LARGEST) -> bool:
        return at(width, count).value <= target

    endless = _least(reaches, unit, _grid_of(setting))
    known = None if endless is None else (endless[0], _LARGEST)
    found = least_over_steps(reaches, known, unit, widths, steps)
    if found is None:
        line = itertools.starmap(at, coarse_pairs(widths, steps))
        never = _never("width", line, "with any number of steps no width")
        return replace(never, taken="any number of steps")
    width, count = found
    if count != _LARGEST:
        taken = f"{round_up(_at_least(count))} steps"
        note = f"with {taken}, the number that asks for the fewest heads"
    else:
        doubled = free.resized(width=2 * width)
        fewest = _least(lambda k: promise(doubled.resized(steps=k)).value <= target)
        enough = "none suffices" if fewest is None else f"{round_up(_at_least(fewest[0]))} suffice"
        taken = f"endlessly many steps; at twice this width {enough}"
        note = f"with {taken}"
    answer = _found("width", _at_least(width), note, at(width, count), target)
    return replace(answer, taken=taken)


def _largest_step(promise: Promise, setting: Setting, target: float) -> Answer:
    """The largest step size whose right side is at most `target`."""
    grid = np.geomspace(*_ETA_RANGE, 400)[::-1]
    at = _asked_once(promise, lambda eta: setting.resized(step_size=float(eta)))
    reached = next((k for k, eta in enumerate(grid) if at(eta).value <= target), None)
    if reached is None:
        never = _never("step-size", map(at, grid), "no step size")
        own = promise(setting.resized(step_size="default"))
        if never.applies or own.value == math.inf:
            return never
        note = f"the theorem has one step size of its own: its bound is {round_up(own.bound)}"
        return replace(never, note=note)
    note = f"at width {setting.width}, {setting.steps} steps"
    low, high = float(grid[reached]), float(grid[max(reached - 1, 0)])
    if reached == 0:
        note += f"; the end of the range that is searched, {_ETA_RANGE[0]:g} to {_ETA_RANGE[1]:g}"
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if at(middle).value <= target else (low, middle)
    return _found("step-size", float(low), note, at(low), target)
