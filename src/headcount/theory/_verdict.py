"""Verdicts: what a claim says about an instance, with the numbers and a message."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from ..core import Array, BadArgument, check_count, float64, stream
from ._claim import Check, Claim, Hypothesis, Instance, Kind, Sides, generator
from ._compilation import quick_compilation
from ._frequency import Frequency, frequency_of
from ._rounding import round_down, round_up
from ._setting import Setting

ROUNDING = 1e-9
"""A ratio above 1 + ROUNDING is a violation; below, the excess could be float64 rounding."""


class Outcome(enum.StrEnum):
    """The five answers of a claim."""

    HOLDS = "holds"
    VACUOUS = "holds vacuously"
    NOT_APPLICABLE = "not applicable"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Verdict:
    """The outcome of one claim on one instance, run or family of seeds."""

    claim: str
    variant: str
    outcome: Outcome
    message: str
    lhs: float = float("nan")
    rhs: float = float("nan")
    ratio: float = float("nan")
    hypotheses: tuple[Check, ...] = ()
    constants: Mapping[str, float] = field(default_factory=dict)
    frequency: Frequency | None = None

    def to_json(self) -> dict[str, Any]:
        """The keys that `audit --json` prints for a claim."""
        return {
            "id": self.claim,
            "variant": self.variant,
            "outcome": str(self.outcome),
            "lhs": self.lhs,
            "rhs": self.rhs,
            "ratio": self.ratio,
            "hypotheses": [check.to_json() for check in self.hypotheses],
            "constants": dict(self.constants),
            "message": self.message,
        }


def ratio_of(kind: Kind, sides: Sides) -> Any:
    """lhs / rhs; for an identity the largest difference over ROUNDING times the sides' size.

    Either way a value above 1 (beyond rounding) means that the statement fails. 0/0 counts as 0.
    """
    if kind is Kind.IDENTITY:
        lhs, rhs = jnp.ravel(jnp.asarray(sides.lhs)), jnp.ravel(jnp.asarray(sides.rhs))
        sizes = jnp.maximum(jnp.max(jnp.abs(lhs)), jnp.max(jnp.abs(rhs)))
        size = jnp.maximum(sizes, jnp.asarray(sides.scale))
        gap = jnp.max(jnp.abs(lhs - rhs))
        return gap / jnp.maximum(ROUNDING * size, 1e-300)
    lhs, rhs = jnp.asarray(sides.lhs), jnp.asarray(sides.rhs)
    tiny = jnp.asarray(1e-290, lhs.dtype)
    return jnp.where(lhs <= tiny, 0.0, lhs / jnp.maximum(rhs, tiny))


def summarise(kind: Kind, sides: Sides) -> tuple[float, float]:
    """lhs and rhs as two numbers; the arrays of an identity by their Euclidean norms."""
    if kind is Kind.IDENTITY:
        return float(np.linalg.norm(sides.lhs)), float(np.linalg.norm(sides.rhs))
    return float(sides.lhs), float(sides.rhs)


def judge(
    claim: Claim,
    instance: Instance,
    variant: str | None = None,
    *,
    setting: Setting | None = None,
    event: Check | None = None,
) -> Verdict:
    """Ask `claim` about `instance`.

    With `setting`, the measured left side meets the a priori right side `claim.bound(setting)`;
    `event` is then the measured event on which the statement is conditioned.
    """
    name = claim.variant(variant)
    with float64():
        checks, sides = _evaluate(claim, name, instance)
        if setting is not None:
            sides = _against_setting(claim, sides, setting, name)
            checks += (event,) if event is not None and claim.needs_event else ()
        ratio = float(ratio_of(claim.kind, sides))
    lhs, rhs = summarise(claim.kind, sides)
    constants = {key: float(value) for key, value in sides.constants.items()}
    outcome, message = _decide(claim, checks, sides, lhs, rhs, ratio)
    return Verdict(claim.id, name, outcome, message, lhs, rhs, ratio, checks, constants)


def _evaluate(claim: Claim, name: str, instance: Instance) -> tuple[tuple[Check, ...], Sides]:
    """Hypotheses and sides; compiled when the claim is one that can be searched."""
    if not claim.families and claim.experiment is None:
        return tuple(h.check(instance) for h in claim.hypotheses), claim.evaluate(instance, name)
    values, sides = _evaluator(claim.sides, claim.hypotheses, name)(instance)
    checks = tuple(
        Check(h.name, float(value), h.threshold)
        for h, value in zip(claim.hypotheses, values, strict=True)
    )
    return checks, sides if claim.factor == 1.0 else sides._replace(rhs=claim.factor * sides.rhs)


@functools.lru_cache(maxsize=64)
def _evaluator(
    sides: Callable[[Instance, str], Sides], hypotheses: tuple[Hypothesis, ...], variant: str
) -> Any:
    def evaluate(instance: Instance) -> tuple[list[Any], Sides]:
        return [h.value(instance) for h in hypotheses], sides(instance, variant)

    return jax.jit(evaluate, compiler_options=quick_compilation())


def _against_setting(claim: Claim, sides: Sides, setting: Setting, name: str) -> Sides:
    if claim.bound is None:
        raise BadArgument("setting", setting, f"{claim.id} has no a priori bound", fix="omit it")
    bound = claim.bound(setting, name)
    return sides._replace(
        rhs=claim.factor * bound.rhs, constants=dict(bound.constants), trivial=bound.trivial
    )


def _decide(
    claim: Claim, checks: tuple[Check, ...], sides: Sides, lhs: float, rhs: float, ratio: float
) -> tuple[Outcome, str]:
    failed = [check for check in checks if not check.holds]
    if failed:
        worst = min(failed, key=lambda check: check.margin)
        return Outcome.NOT_APPLICABLE, (
            f"{worst.name} fails: {worst.value:.6g} exceeds {worst.threshold:.6g} "
            f"by {round_up(-worst.margin)}"
        )
    if not np.isfinite(ratio):
        return Outcome.INCONCLUSIVE, "the sides could not be evaluated in float64"
    shown = f"{round_up(lhs)} against {round_down(rhs)}"
    if ratio > 1 + ROUNDING:
        excess = "the sides differ" if claim.kind is Kind.IDENTITY else f"ratio {ratio:.6g}"
        return Outcome.VIOLATED, f"left side {shown}: {excess}"
    if claim.kind is Kind.IDENTITY:
        return Outcome.HOLDS, f"both sides agree to {round_up(max(ratio, 0) * ROUNDING)}"
    if sides.trivial is not None and rhs >= float(sides.trivial):
        return Outcome.VACUOUS, (
            f"the bound {round_up(rhs)} is not below the trivial {round_down(float(sides.trivial))}"
        )
    return Outcome.HOLDS, f"left side {shown}: ratio {ratio:.3g}"


@functools.lru_cache(maxsize=128)
def _counter(claim: Claim, variant: str) -> Any:
    experiment = claim.experiment
    assert experiment is not None

    def exceeds(instance: Instance) -> Bool[Array, ""]:
        sides = experiment.sides(instance, variant)
        return jnp.asarray(sides.lhs > claim.factor * sides.rhs)

    return jax.jit(jax.vmap(exceeds), compiler_options=quick_compilation())


def judge_frequency(
    claim: Claim,
    case: Mapping[str, Any],
    variant: str | None = None,
    *,
    repetitions: int = 2000,
    seed: int = 0,
) -> Verdict:
    """How often the inequality of a high-probability claim fails over seeds, against delta."""
    name = claim.variant(variant)
    check_count("repetitions", repetitions)
    if claim.experiment is None:
        raise BadArgument("claim", claim.id, "is not tested by frequency", fix="use judge")
    drawn = claim.experiment.draw(case, generator(stream(seed, "frequency", claim.id)), repetitions)
    with float64():
        exceeded = np.asarray(_counter(claim, name)(drawn))
    delta = claim.experiment.delta(case)
    result = frequency_of(int(exceeded.sum()), repetitions, delta)
    message = (
        f"failed {result.exceedances} times in {repetitions}: "
        f"[{round_down(result.interval.low)}, {round_up(result.interval.high)}] "
        f"against delta = {delta:g}"
    )
    return Verdict(
        claim.id,
        name,
        Outcome(result.outcome),
        message,
        lhs=result.rate,
        rhs=delta,
        ratio=result.rate / delta,
        frequency=result,
    )
