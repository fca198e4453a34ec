"""Verdicts: what a claim says about an instance, with the numbers and a message.

One rule for everybody: no right side is used unless every hypothesis was evaluated and holds.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..core import float64
from ..core._rounding import ordered, round_down, round_up
from ._asked import check_instance, claim_of
from ._claim import Check, Claim, Hypothesis, Instance, Kind, Sides, allowed, overflow
from ._compilation import quick_compilation
from ._outcome import NOT_MEASURED as NOT_MEASURED
from ._outcome import ROUNDING as ROUNDING
from ._outcome import Outcome as Outcome
from ._outcome import Verdict as Verdict
from ._pytree import Batch, arrays_of
from ._record import was_seen

_TINY = 1e-290


def _ratios(lhs: Any, rhs: Any, xp: Any = jnp) -> Any:
    """A number above 1 exactly where lhs > rhs, for sides of any sign.

    lhs/rhs for a positive right side; rhs/lhs where both are negative; 0/0 counts as 0.
    """
    # Every branch divides by a safe number: a slope must not be spoilt by the branch not taken.
    above, below = rhs > _TINY, lhs < -_TINY
    positive = lhs / xp.where(above, rhs, 1.0)
    negative = rhs / xp.where(below, lhs, -1.0)
    nothing = xp.where(lhs > _TINY, xp.inf, 0.0)
    ratio = xp.where(above, positive, xp.where(below, negative, nothing))
    return xp.where(xp.isnan(lhs) | xp.isnan(rhs), xp.nan, ratio)


_TIE = 1e-9
"""Entries whose ratios are this close, relatively, are equally bad: the first of them counts."""


def worst_index(lhs: Any, rhs: Any) -> int:
    """Which entry of an inequality is the worst; NaN is worse than any number."""
    return _worst(lhs, rhs)[0]


def worst_entry(lhs: Any, rhs: Any) -> tuple[float, float, float]:
    """(lhs, rhs, ratio) at the worst entry of an inequality.

    The verdict on an instance and the recheck of its certificate both show this entry.
    """
    return _worst(lhs, rhs)[1]


def _worst(lhs: Any, rhs: Any) -> tuple[int, tuple[float, float, float]]:
    left, right = np.broadcast_arrays(
        np.asarray(lhs, float).ravel(), np.asarray(rhs, float).ravel()
    )
    with np.errstate(over="ignore", invalid="ignore"):  # inf/inf is NaN, the worst there is
        ratios = _ratios(left, right, np)
    hardness = np.where(np.isnan(ratios), np.inf, ratios)
    top = np.max(hardness)
    as_bad = hardness >= top - _TIE * abs(top) if np.isfinite(top) else hardness == top
    k = int(np.argmax(as_bad))
    return k, (float(left[k]), float(right[k]), float(ratios[k]))


def ratio_of(kind: Kind, sides: Sides, xp: Any = jnp) -> Any:
    """lhs / rhs at the worst entry; for an identity the difference over ROUNDING times the size.

    Either way a value above 1 (beyond rounding) means that the statement fails. Of sides that are
    known NumPy (`xp`) tells it without compiling anything.
    """
    lhs, rhs = xp.broadcast_arrays(xp.asarray(sides.lhs), xp.asarray(sides.rhs))
    if kind is Kind.IDENTITY:
        sizes = xp.maximum(xp.max(xp.abs(lhs)), xp.max(xp.abs(rhs)))
        size = xp.maximum(sizes, xp.asarray(sides.scale))
        return xp.max(xp.abs(lhs - rhs)) / xp.maximum(ROUNDING * size, 1e-300)
    return xp.max(_ratios(lhs, rhs, xp))


def score_of(kind: Kind, sides: Sides) -> Any:
    """What the falsifier climbs: log(lhs/rhs) at the worst entry, for sides of any sign.

    Where the left side is estimated, its interval's lower end counts.
    """
    if kind is Kind.IDENTITY:
        return jnp.log(jnp.maximum(ratio_of(kind, sides), 1e-250))
    certain = jnp.asarray(sides.lhs) - jnp.asarray(sides.spread)
    lhs, rhs = jnp.broadcast_arrays(certain, jnp.asarray(sides.rhs))
    gap = (lhs - rhs) / jnp.maximum(jnp.abs(lhs) + jnp.abs(rhs), _TINY)
    ratios = _ratios(lhs, rhs)
    known = (ratios > 1e-250) & (ratios < 1e250)
    logs = jnp.log(jnp.where(known, ratios, 1.0))
    # Signs differ: nothing to compare but the gap, far below (or above) every real ratio.
    scores = jnp.where(known, logs, jnp.where(lhs > rhs, 600.0, -600.0) + gap)
    scores = jnp.where(jnp.isnan(ratios), -jnp.inf, scores)
    return jnp.max(scores)


def summarise(kind: Kind, sides: Sides) -> tuple[float, float]:
    """lhs and rhs as two numbers: at the worst entry; an identity's arrays by their norms."""
    lhs, rhs = np.broadcast_arrays(np.asarray(sides.lhs), np.asarray(sides.rhs))
    if kind is Kind.IDENTITY:
        with np.errstate(over="ignore"):
            return float(np.linalg.norm(lhs)), float(np.linalg.norm(rhs))
    return worst_entry(lhs, rhs)[:2]


def judge(
    claim: Claim | str,
    instance: Instance,
    variant: str | None = None,
    *,
    setting: Any | None = None,
    event: Check | None = None,
) -> Verdict:
    """Ask `claim`, or the claim of this name, about `instance`.

    With `setting`, the measured left side meets the a priori right side `claim.bound(setting)`;
    `event` is then the measured event on which the statement is conditioned.
    """
    claim = claim_of(claim)
    check_instance(claim, instance)
    name = claim.variant(variant)
    problem = outside_domain(instance)
    if problem is not None:
        return _no_instance(claim, name, problem)
    with float64():
        try:
            checks, sides = _evaluate(claim, name, instance)
        except OverflowError as error:  # of a constant, a plain number: arrays become infinite
            return Verdict(claim.id, name, Outcome.INCONCLUSIVE, overflow(error))
        if setting is not None:
            bound, decided = claim.promise(setting, name)
            sides = sides._replace(
                rhs=bound.rhs, constants=dict(bound.constants), trivial=bound.trivial
            )
            checks += (*decided, *_event(claim, event))
        checks = _in_words(claim, checks, instance, name)
        with np.errstate(all="ignore"):  # inf/inf is NaN: the verdict says so
            ratio = float(ratio_of(claim.kind, sides, np))
    return _if_in_range(decide(claim, name, sides, checks, ratio), instance)


def judge_hardest(claim: Claim, instances: Sequence[Instance], variant: str) -> Verdict:
    """Ask `claim` about all instances; the verdict on the one that speaks most against it.

    Only those that meet every hypothesis count; if none does, the verdict says what fails. One
    that cannot be evaluated (NaN, overflow) is harder than all that hold, but hides no violation.
    """
    if len(instances) == 1:
        return judge(claim, instances[0], variant)
    if was_seen(instances[0]):
        verdicts = [judge(claim, one, variant) for one in instances]
        spoke = [v.outcome is not Outcome.NOT_APPLICABLE for v in verdicts]
        return _of_several(max(verdicts, key=_hardness), np.array(spoke))
    with float64():
        if isinstance(instances, Batch):
            batch = jax.tree.map(jnp.asarray, instances.tree)
        else:
            batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *instances)
        try:
            measured, sides, ratios = _mapped(claim, variant)(batch)
        except OverflowError as error:
            return Verdict(claim.id, variant, Outcome.INCONCLUSIVE, overflow(error))
    apply = np.ones(len(instances), bool)
    checks = [
        [Check(h.name, float(v), float(at)) for v, at in zip(*map(np.asarray, pair), strict=True)]
        for h, pair in zip(claim.asked(variant), measured, strict=True)
    ]
    for column in checks:
        apply &= np.array([check.holds for check in column])
    hardness = np.where(np.isnan(ratios), 1 + ROUNDING, ratios)
    chosen = int(np.argmax(np.where(apply, hardness, -np.inf)))
    problem = outside_domain(instances[chosen])
    if problem is not None:
        return _no_instance(claim, variant, problem)
    one = jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], sides)
    found = tuple(column[chosen] for column in checks)
    with float64():
        found = _in_words(claim, found, instances[chosen], variant)
    verdict = decide(claim, variant, one, found, float(ratios[chosen]))
    return _of_several(_if_in_range(verdict, batch), apply)


def _of_several(verdict: Verdict, apply: np.ndarray) -> Verdict:
    """The verdict on the hardest, which says how many others the claim does not concern."""
    if apply.all() or not apply.any():
        return verdict
    left = f"{len(apply) - int(apply.sum())} of {len(apply)}"
    message = f"{verdict.message} ({left} instances are outside its hypotheses)"
    return replace(verdict, message=message)


def _hardness(verdict: Verdict) -> tuple[bool, float]:
    """How much a verdict speaks against the claim: first, whether it speaks at all."""
    speaks = verdict.outcome is not Outcome.NOT_APPLICABLE
    return speaks, 1 + ROUNDING if np.isnan(verdict.ratio) else verdict.ratio


@functools.lru_cache(maxsize=256)
def _mapped(claim: Claim, variant: str) -> Any:
    """Hypotheses, sides and ratio of a batch of instances; NaN where a side is not finite."""

    def evaluate(instance: Instance) -> tuple[list[Any], Sides, Any]:
        measured = [
            (jnp.asarray(h.value(instance)), jnp.asarray(h.limit(instance, variant)))
            for h in claim.asked(variant)
        ]
        sides = claim.evaluate(instance, variant)
        ratio = ratio_of(claim.kind, sides)
        finite = jnp.all(jnp.isfinite(sides.lhs)) & jnp.all(jnp.isfinite(sides.rhs))
        return measured, sides, jnp.where(finite, ratio, jnp.nan)

    return jax.jit(jax.vmap(evaluate), compiler_options=quick_compilation())


def admissible(hypotheses: tuple[Hypothesis, ...], instance: Instance, variant: str) -> Any:
    """Whether every hypothesis holds, up to the rounding that `Check.holds` allows, under jit."""
    holds = jnp.asarray(True)
    for hypothesis in hypotheses:
        if not hypothesis.asked_by(variant):
            continue
        limit = jnp.asarray(hypothesis.limit(instance, variant))
        holds &= jnp.asarray(hypothesis.value(instance)) <= allowed(limit)
    return holds


def outside_domain(instance: Instance) -> str | None:
    """Why an instance is not one of those that its class describes; None if it is."""
    problem = getattr(instance, "problem", None)
    return problem() if problem is not None else None


_SQUARABLE = (1e-150, 1e150)
"""Outside, squares vanish or overflow in float64: sides of such numbers may look equal."""


def _if_in_range(verdict: Verdict, instances: Instance) -> Verdict:
    """No claim holds on the strength of numbers whose squares float64 cannot tell from 0 or inf.

    Probabilities are exempt: their logarithms are what counts.
    """
    if verdict.outcome is not Outcome.HOLDS or was_seen(instances):
        return verdict
    for name, value in arrays_of(instances).items():
        if isinstance(value, (str, int)) or name in getattr(instances, "fractions", ()):
            continue
        sizes = np.abs(value[value != 0])
        for size in sizes[(sizes < _SQUARABLE[0]) | (sizes > _SQUARABLE[1])][:1]:
            message = f"{name} has an entry of size {size:.3g}, whose square float64 cannot hold"
            return replace(verdict, outcome=Outcome.INCONCLUSIVE, message=message)
    return verdict


def _no_instance(claim: Claim, variant: str, problem: str) -> Verdict:
    message = f"outside the domain: {problem}"
    return Verdict(claim.id, variant, Outcome.NOT_APPLICABLE, message)


def _event(claim: Claim, event: Check | None) -> tuple[Check, ...]:
    if not claim.needs_event:
        return ()
    return (event if event is not None else Check("the event, which was not measured", np.nan, 0),)


def _evaluate(claim: Claim, name: str, instance: Instance) -> tuple[tuple[Check, ...], Sides]:
    """Hypotheses and sides; compiled when the claim is one that can be searched."""
    if was_seen(instance) or not (claim.families or claim.experiment):
        with np.errstate(all="ignore"):  # of a wild run
            checks = tuple(h.check(instance, name) for h in claim.asked(name))
            return checks, claim.evaluate(instance, name)
    measured, sides = _evaluator(claim.sides, claim.asked(name), name)(instance)
    checks = tuple(
        Check(h.name, float(value), float(limit))
        for h, (value, limit) in zip(claim.asked(name), measured, strict=True)
    )
    return checks, claim.scaled(sides)


@functools.lru_cache(maxsize=64)
def _evaluator(
    sides: Callable[[Instance, str], Sides], hypotheses: tuple[Hypothesis, ...], variant: str
) -> Any:
    def evaluate(instance: Instance) -> tuple[list[Any], Sides]:
        measured = [(h.value(instance), h.limit(instance, variant)) for h in hypotheses]
        return measured, sides(instance, variant)

    return jax.jit(evaluate, compiler_options=quick_compilation())


def _in_words(
    claim: Claim, checks: tuple[Check, ...], instance: Instance, variant: str
) -> tuple[Check, ...]:
    """The same checks; those that fail speak as their hypotheses do."""
    told = {h.name: h.told for h in claim.hypotheses if h.told is not None}
    return tuple(
        check._replace(told=told[check.name](instance, variant))
        if check.name in told and not check.holds
        else check
        for check in checks
    )


def decide(
    claim: Claim, name: str, sides: Sides, checks: tuple[Check, ...], ratio: float
) -> Verdict:
    """The verdict on measured sides and hypotheses."""
    lhs, rhs = summarise(claim.kind, sides)
    direction = "equality" if claim.kind is Kind.IDENTITY else "lower" if claim.lower else "upper"
    failed = [check for check in checks if not check.holds]
    if failed:
        worst = min(failed, key=lambda check: np.nan_to_num(check.margin, nan=-np.inf))
        left, right = (NOT_MEASURED, rhs) if claim.lower else (lhs, NOT_MEASURED)
        return Verdict(
            claim.id, name, Outcome.NOT_APPLICABLE, worst.failing, left, right,
            hypotheses=checks, direction=direction,
        )  # fmt: skip
    constants = {key: float(value) for key, value in sides.constants.items()}
    outcome, message = _outcome(claim, sides, lhs, rhs, ratio)
    return Verdict(
        claim.id, name, outcome, message, lhs, rhs, ratio, checks, constants, direction=direction
    )


def above_one(ratio: float) -> str:
    """A ratio that is known to exceed 1, so that a reader sees that it does."""
    return round_down(ratio, 6) if ratio > 1.00001 else f"1 + {round_down(ratio - 1)}"


def _outcome(
    claim: Claim, sides: Sides, lhs: float, rhs: float, ratio: float
) -> tuple[Outcome, str]:
    infinite = not (np.isfinite(lhs) and np.isfinite(rhs))
    if np.isnan(ratio) or infinite:
        side = "left" if not np.isfinite(lhs) else "right"
        return Outcome.INCONCLUSIVE, f"the {side} side is {lhs if side == 'left' else rhs}"
    if claim.kind is Kind.IDENTITY:
        if ratio > 1 + ROUNDING:
            return Outcome.VIOLATED, f"the sides differ by {round_down(ratio * ROUNDING)} of them"
        return Outcome.HOLDS, f"both sides agree to {round_up(max(ratio, 0) * ROUNDING)}"
    spread = float(np.max(np.asarray(sides.spread)))
    if not np.isfinite(spread):
        return Outcome.INCONCLUSIVE, "the estimate of the left side has no interval"
    left, right = ordered(lhs, rhs)
    shown = f"left side {left} against {right}"
    if ratio > 1 + ROUNDING and lhs - spread > rhs:
        return Outcome.VIOLATED, f"{shown}: ratio {above_one(ratio)}"
    if spread and lhs + spread > rhs:
        return Outcome.INCONCLUSIVE, f"{shown}, with an uncertainty of {round_up(spread)}"
    trivial = np.asarray(np.inf if sides.trivial is None else sides.trivial)
    bounds = rhs if trivial.ndim == 0 else np.asarray(sides.rhs)
    if np.all(bounds >= trivial) and sides.trivial is not None:
        known = round_down(float(np.min(trivial)))
        return Outcome.VACUOUS, f"the bound {round_up(rhs)} is not below the trivial {known}"
    if lhs > rhs:
        return Outcome.HOLDS, f"both sides are {round_up(rhs)} up to rounding"
    return Outcome.HOLDS, f"{shown}: ratio {round_up(ratio)}"
