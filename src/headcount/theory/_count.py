"""Head counting: what each theorem asks for, and what training needs in fact.

Three questions about one target loss: the least width, the largest step size, the fewest steps.
Theorems answer by inverting their bounds; training answers by search over real runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import check_choice, check_count, check_positive
from ..training import TrainConfig, run_config
from ._claim import Claim
from ._registry import claims
from ._setting import Setting

QUESTIONS = ("width", "steps", "step-size")
_LARGEST = 2**1000
"""Widths and steps beyond this are "never": the bound does not reach the target in float64."""
_ETA_RANGE = (1e-12, 1e6)


@dataclass(frozen=True)
class Answer:
    """One answer: a theorem's or the training's; `value` None means never."""

    question: str
    source: str
    variant: str
    value: float | None
    note: str

    def to_json(self) -> dict[str, Any]:
        """Plain values; widths beyond float range as text."""
        return {
            "question": self.question,
            "source": self.source,
            "variant": self.variant,
            "value": self.value,
            "note": self.note,
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


def loss_claims() -> Iterator[tuple[Claim, str]]:
    """The claims that bound the training loss, with each variant that a setting can answer.

    Variants known to fail are left out, and measured ones, which need a run.
    """
    for _, claim in claims.items():
        if claim.quantity == "loss" and claim.bound is not None:
            for name, variant in claim.variants.items():
                if not variant.fails and name != "measured":
                    yield claim, name


def theorem_answers(setting: Setting, loss: float, question: str) -> list[Answer]:
    """What every theorem asks for at this setting, to promise a loss of at most `loss`."""
    check_positive("loss", loss)
    check_choice("question", question, QUESTIONS)
    invert = {"width": _least_width, "steps": _fewest_steps, "step-size": _largest_step}[question]
    answers = []
    for claim, variant in loss_claims():

        def promise(s: Setting, claim: Claim = claim, variant: str = variant) -> float:
            assert claim.bound is not None
            return float(claim.bound(s, variant).rhs)

        value, note = invert(promise, setting, loss)
        answers.append(Answer(question, claim.id, variant, value, note))
        if question == "width":
            answers.append(_width_with_free_steps(claim.id, variant, promise, setting, loss))
    return answers


Promise = Callable[[Setting], float]


def _least(reaches: Callable[[int], bool], start: int) -> int | None:
    """The least whole number >= start, by doubling then bisection, from which on it reaches."""
    high = start
    while not reaches(high):
        high *= 2
        if high > _LARGEST:
            return None
    low = high // 2
    while high - low > 1 and high > start:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return max(high, start)


def _smallest(value: Callable[[int], float]) -> float:
    """The smallest value over the powers of two that `_least` tries."""
    return min(value(2**k) for k in range(_LARGEST.bit_length()))


def _least_width(promise: Promise, setting: Setting, loss: float) -> tuple[float | None, str]:
    half = _least(lambda k: promise(setting.resized(width=2 * k)) <= loss, 1)
    if half is None:
        floor = _smallest(lambda k: promise(setting.resized(width=2 * k)))
        return None, f"at tau = {setting.steps} no width brings the bound below {floor:.3g}"
    return float(2 * half), f"at tau = {setting.steps}"


def _fewest_steps(promise: Promise, setting: Setting, loss: float) -> tuple[float | None, str]:
    free = setting.resized(step_size="default")
    steps = _least(lambda k: promise(free.resized(steps=k)) <= loss, 1)
    if steps is None:
        floor = _smallest(lambda k: promise(free.resized(steps=k)))
        return None, f"at m = {setting.width} no number of steps brings the bound below {floor:.3g}"
    return float(steps), f"at m = {setting.width}, eta = tau^(-1/2)"


def _width_with_free_steps(
    source: str, variant: str, promise: Promise, setting: Setting, loss: float
) -> Answer:
    """The least width when as many steps as one likes may be taken."""
    endless = setting.resized(steps=_LARGEST, step_size="default")
    half = _least(lambda k: promise(endless.resized(width=2 * k)) <= loss, 1)
    if half is None:
        return Answer("width", source, variant, None, "even with endlessly many steps")
    doubled = setting.resized(width=4 * half, step_size="default")
    steps = _least(lambda k: promise(doubled.resized(steps=k)) <= loss, 1)
    note = f"with endlessly many steps; at twice this width tau = {float(steps or 0):.3g}"
    return Answer("width", source, variant, float(2 * half), note)


def _largest_step(promise: Promise, setting: Setting, loss: float) -> tuple[float | None, str]:
    """(44) holds for any step size: the largest eta whose right side is at most `loss`."""
    grid = np.geomspace(*_ETA_RANGE, 400)
    good = [eta for eta in grid if promise(setting.resized(step_size=float(eta))) <= loss]
    if not good:
        best = min(promise(setting.resized(step_size=float(eta))) for eta in grid)
        return None, f"no step size brings the bound below {best:.3g}"
    low, high = good[-1], good[-1] * (grid[1] / grid[0])
    for _ in range(60):
        middle = math.sqrt(low * high)
        reached = promise(setting.resized(step_size=middle)) <= loss
        low, high = (middle, high) if reached else (low, middle)
    return float(low), f"at m = {setting.width}, tau = {setting.steps}"


Progress = Callable[[str], None]


def practice(
    config: TrainConfig,
    loss: float,
    question: str,
    *,
    most_width: int = 1024,
    progress: Progress | None = None,
) -> Practice:
    """What training needs to bring the median seed's smallest loss to `loss`, by bisection."""
    check_positive("loss", loss)
    check_choice("question", question, QUESTIONS)
    check_count("most_width", most_width, least=2)
    tell = progress or (lambda text: None)
    probes: list[Probe] = []
    met_at_start: list[float] = []

    def attempt(name: str, value: float, changed: dict[str, Any]) -> Any:
        run = run_config(config.model_copy(update=changed))
        losses = np.nan_to_num(run.min_loss, nan=np.inf)
        probe = Probe(value, tuple(float(v) for v in losses), bool(np.median(losses) <= loss))
        probes.append(probe)
        if np.median(run.loss[:, 0]) <= loss:
            met_at_start.append(value)
        tell(f"{name} {value:.4g}: median smallest loss {np.median(losses):.3g}")
        return run, probe

    search = {"width": _search_width, "steps": _search_steps, "step-size": _search_step_size}
    value, note = search[question](config, loss, attempt, most_width)
    if met_at_start:
        note += "; the loss is below the target before the first step"
    seeds = f"{len(config.seeds)} seeds, {note}"
    answer = Answer(question, "training", "measured", value, seeds)
    return Practice(answer, tuple(sorted(probes, key=lambda p: p.value)))


Attempt = Callable[[str, float, dict[str, Any]], Any]


def _search_width(
    config: TrainConfig, loss: float, attempt: Attempt, most: int
) -> tuple[float | None, str]:
    def reaches(half: int) -> bool:
        return attempt("width", 2 * half, {"width": 2 * half})[1].reached

    half, failed = 1, 0
    while not reaches(half):
        failed = half
        half *= 2
        if 2 * half > most:
            return None, f"not reached up to width {2 * failed}"
    while half - failed > 1:
        middle = (half + failed) // 2
        half, failed = (middle, failed) if reaches(middle) else (half, middle)
    return float(2 * half), f"tau = {config.steps}"


def _search_steps(
    config: TrainConfig, loss: float, attempt: Attempt, most: int
) -> tuple[float | None, str]:
    """One run per step budget: eta = tau^(-1/2) changes with the budget, as in Theorem 1."""

    def reaches(steps: int) -> bool:
        return attempt("steps", steps, {"steps": steps})[1].reached

    if not reaches(config.steps):
        return None, f"not reached within {config.steps} steps"
    failed, steps = 0, config.steps
    while steps - failed > max(1, steps // 16):
        middle = (steps + failed) // 2
        steps, failed = (middle, failed) if reaches(middle) else (steps, middle)
    return float(steps), "to within 1/16"


def _search_step_size(
    config: TrainConfig, loss: float, attempt: Attempt, most: int
) -> tuple[float | None, str]:
    def reaches(eta: float) -> bool:
        return attempt("step size", eta, {"eta": eta})[1].reached

    eta = config.step_size
    while not reaches(eta):
        eta *= 4
        if eta > 1e4:
            return None, "no step size up to 1e4 reaches the loss"
    good = eta
    while reaches(eta := good * 4):
        good = eta
        if good > 1e6:
            return float(good), "no upper end found"
    bad = eta
    while bad / good > 1.1:
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if reaches(middle) else (good, middle)
    return float(good), "to within 10 %"
