"""The sentence that answers what was asked: for the steps, the form and the width that were given.

What is printed comes before what is ours, what was asked before what other numbers of steps would
give, and theorems before training.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..theory import Answer

NOT_REACHED = "not reached"
_NOUNS = {
    "width": ("a width of {} suffices", "no width suffices"),
    "steps": ("{} steps suffice", "no number of steps suffices"),
    "step-size": ("the largest step size that suffices is {}", "no step size suffices"),
}


def in_short(
    question: str, given: str, goal: str, answers: Sequence[Answer], training: Answer | None
) -> str:
    """One sentence for what was asked, one for free numbers of steps, one for training.

    `given` is what was fixed, such as "at 400 steps", `goal` such as "a loss of 0.01".
    """
    asked = [answer for answer in answers if not answer.taken]
    sentences = [_as_asked(question, given, goal, asked)]
    known = [a.trivial for a in answers if a.trivial is not None]
    if known:
        from ..core._rounding import round_down

        least = round_down(min(known), 4)
        sentences.append(f"{goal} is a vacuous goal: at most {least} is known without any theorem")
    elif free := _with_free_steps([answer for answer in answers if answer.taken], asked):
        sentences.append(free)
    if training is not None:
        needed = training_needs(training)
        reached = f"needs {needed}" if needed != NOT_REACHED else "did not get there"
        sentences.append(f"training {reached}")
    return ". ".join(sentence[0].upper() + sentence[1:] for sentence in sentences) + "."


def _as_asked(question: str, given: str, goal: str, asked: list[Answer]) -> str:
    from ..core._rounding import round_down

    found = [answer for answer in asked if answer.value is not None]
    some, none = _NOUNS[question]
    if found:
        return f"for {goal} {given} {_listed(found, some)}"
    if any(answer.applies and answer.beyond is None for answer in asked):
        return f"for {goal} {given} {none}"
    if not asked:
        return f"no theorem answers for {goal}"
    beyond = next((answer.beyond for answer in asked if answer.beyond is not None), None)
    reason = asked[-1].note.removeprefix("not applicable: ")
    upto = "" if beyond is None else f" up to width {round_down(beyond, 4)}"
    return f"for {goal} {given} no theorem applies{upto}: {reason}"


def _with_free_steps(free: list[Answer], asked: list[Answer]) -> str:
    """What other numbers of steps would give, where it is less than with the given ones."""
    before = min((a.value for a in asked if a.value is not None), default=math.inf)
    better = [a for a in free if a.value is not None and a.value < before]
    return f"with other numbers of steps {_listed(better, '{} would do')}" if better else ""


def _listed(found: list[Answer], words: str) -> str:
    """The best printed answer, then the best of ours where that is better."""
    sign = -1.0 if found[0].question == "step-size" else 1.0

    def need(answer: Answer) -> float:
        return sign * (answer.value or 0.0)

    found = sorted(found, key=lambda answer: answer.source.split("/")[-1].startswith("eq-"))
    printed = min((a for a in found if a.printed), key=need, default=None)
    ours = min((a for a in found if not a.printed), key=need, default=None)
    parts = []
    if printed is not None:
        parts.append(f"{words.format(printed.shown)} {_whose(printed)}")
    if ours is not None and (printed is None or need(ours) < need(printed)):
        text = ours.shown if parts else words.format(ours.shown)
        parts.append(f"{text} {_whose(ours)}")
    return "; ".join(parts)


def _whose(answer: Answer) -> str:
    """Which theorem, in whose form, and with how many steps where they were free."""
    name = answer.source.split("/", 1)[-1]
    own = "as printed" if answer.variant == "printed" else f"as printed in {answer.variant}"
    form = own if answer.printed else f"in our form '{answer.variant}'"
    steps = f", with {answer.taken}" if answer.taken else ""
    return f"({name} {form}{steps})"


def training_needs(answer: Answer) -> str:
    """What training needed. A search that gave up proves no "never", as a bound does."""
    gave_up = answer.source == "training" and answer.shown == "never"
    return NOT_REACHED if gave_up else answer.shown
