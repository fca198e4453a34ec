"""The falsifier: maximise left over right inside the hypotheses.

Random admissible instances, then Adam from the best of them on log(lhs/rhs) seen through the
family's projection, then the claim's targeted constructions. Restarts run in one compiled
program.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from ..core import Array, BadArgument, check_choice, check_count, float64, stream
from ._certificate import Certificate, certify, certify_frequency
from ._claim import Claim, Family, Instance, Kind, generator
from ._compilation import quick_compilation
from ._verdict import ROUNDING, Outcome, judge_frequency, ratio_of


@dataclass(frozen=True)
class Budget:
    """How many random instances, how many ascents, how many steps each, per family."""

    random: int
    restarts: int
    steps: int

    @property
    def evaluations(self) -> int:
        """Instances evaluated per family."""
        return self.random + self.restarts * self.steps


BUDGETS = {
    "small": Budget(random=256, restarts=8, steps=100),
    "default": Budget(random=2000, restarts=24, steps=600),
    "large": Budget(random=20000, restarts=96, steps=2000),
}


def budget_of(budget: str | int | Budget) -> Budget:
    """A named budget, or about so many evaluations per family."""
    if isinstance(budget, Budget):
        return budget
    if isinstance(budget, str) and not budget.isdigit():
        return BUDGETS[check_choice("budget", budget, BUDGETS)]
    evaluations = check_count("budget", int(budget), least=10)
    random = max(evaluations // 5, 8)
    restarts = min(24, max(1, evaluations // 200))
    return Budget(random, min(restarts, random), max((evaluations - random) // restarts, 1))


@dataclass(frozen=True)
class Falsification:
    """The outcome of a search for a counterexample."""

    claim: str
    variant: str
    worst_ratio: float
    violated: bool
    instances: int
    where: str
    seconds: float
    worst: Instance | None = None
    certificate: Certificate | None = None

    @property
    def message(self) -> str:
        """One sentence for a reader."""
        if self.violated:
            return f"violated: ratio {self.worst_ratio:.6g} ({self.where})"
        return (
            f"survived {self.instances} instances; the constant could shrink by at most "
            f"{self.worst_ratio:.4g} ({self.where})"
        )

    def to_json(self, certificate: str | None = None) -> dict[str, Any]:
        """The keys that `falsify --json` prints; `certificate` is the file written, if any."""
        return {
            "claim": self.claim,
            "variant": self.variant,
            "worst_ratio": self.worst_ratio,
            "violated": self.violated,
            "instances": self.instances,
            "certificate": certificate,
        }


def _log_ratio(claim: Claim, variant: str, instance: Instance) -> Float[Array, ""]:
    ratio = ratio_of(claim.kind, claim.evaluate(instance, variant))
    score = jnp.log(jnp.maximum(ratio, 1e-250))
    return jnp.where(jnp.isfinite(score), score, -jnp.inf)


@functools.lru_cache(maxsize=32)
def _scorer(claim: Claim, variant: str, family: Family) -> Any:
    """Draws -> (admissible instances, scores), compiled."""

    def score(raw: Instance) -> tuple[Instance, Float[Array, ""]]:
        instance = family.project(raw)
        return instance, _log_ratio(claim, variant, instance)

    return jax.jit(jax.vmap(score), compiler_options=quick_compilation())


@functools.lru_cache(maxsize=32)
def _target_scorer(claim: Claim, variant: str) -> Any:
    """One instance -> score, compiled."""
    score = functools.partial(_log_ratio, claim, variant)
    return jax.jit(score, compiler_options=quick_compilation())


@functools.lru_cache(maxsize=32)
def _climber(claim: Claim, variant: str, family: Family, steps: int) -> Any:
    """Starts -> (best instances, best scores) of Adam on the log-ratio, compiled."""
    optimiser = optax.adam(optax.cosine_decay_schedule(0.1, steps, alpha=1e-3))

    def climb(start: Instance) -> tuple[Instance, Float[Array, ""]]:
        # One flat vector instead of a dozen arrays: a third of the compilation.
        flat, restore = ravel_pytree(start)

        def objective(vector: Float[Array, "p"]) -> tuple[Float[Array, ""], Float[Array, "p"]]:
            inside = family.project(restore(vector))
            return -_log_ratio(claim, variant, inside), ravel_pytree(inside)[0]

        def step(carry: Any, _: None) -> tuple[Any, None]:
            vector, state, best, best_vector = carry
            (value, inside), slope = jax.value_and_grad(objective, has_aux=True)(vector)
            better = -value > best
            best_vector = jnp.where(better, inside, best_vector)
            update, state = optimiser.update(jnp.nan_to_num(slope), state)
            return (inside + update, state, jnp.where(better, -value, best), best_vector), None

        carry = (flat, optimiser.init(flat), jnp.asarray(-jnp.inf), flat)
        (_, _, best, best_vector), _ = jax.lax.scan(step, carry, None, length=steps)
        return restore(best_vector), best

    return jax.jit(jax.vmap(climb), compiler_options=quick_compilation())


def _search(
    claim: Claim, variant: str, family: Family, budget: Budget, rng: np.random.Generator
) -> tuple[float, Instance, int]:
    """The worst score of one family, its instance, and how many instances were evaluated."""
    drawn, scores = _scorer(claim, variant, family)(family.draw(rng, budget.random))
    order = np.argsort(-np.asarray(scores))[: budget.restarts]
    best = jax.tree.map(lambda leaf: leaf[order], drawn)
    top, instance = float(scores[order[0]]), jax.tree.map(lambda leaf: leaf[0], best)
    if claim.kind is Kind.IDENTITY or not family.differentiable:
        return top, instance, budget.random
    raised, climbed = _climber(claim, variant, family, budget.steps)(best)
    highest = int(np.argmax(np.asarray(climbed)))
    if float(climbed[highest]) > top:
        top, instance = float(climbed[highest]), jax.tree.map(lambda leaf: leaf[highest], raised)
    return top, instance, budget.evaluations


def falsify(
    claim: Claim,
    variant: str | None = None,
    *,
    budget: str | int | Budget = "default",
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Falsification:
    """Search for an instance with lhs > rhs; if found, it comes with a certificate."""
    name, plan = claim.variant(variant), budget_of(budget)
    tell = progress if progress is not None else lambda line: None
    started = time.perf_counter()
    worst_score, worst, where, instances = -np.inf, None, "nothing evaluated", 0
    with float64():
        for family in claim.families:
            tell(f"{claim.id} [{name}]: {family.name}")
            rng = generator(stream(seed, "falsify", claim.id, family.name))
            score, found, evaluated = _search(claim, name, family, plan, rng)
            instances += evaluated
            if score > worst_score:
                worst_score, worst, where = score, found, family.name
        for index, target in enumerate(claim.targets()):
            score = float(_target_scorer(claim, name)(target))
            instances += 1
            if score >= worst_score - 1e-12:
                worst_score, worst, where = score, target, f"construction {index + 1}"
    ratio = float(np.exp(worst_score))
    certificate = None
    if worst is not None and ratio > 1 + ROUNDING and claim.factor == 1.0:
        certificate = certify(claim, worst, name)
    result = Falsification(
        claim=claim.id,
        variant=name,
        worst_ratio=ratio,
        violated=ratio > 1 + ROUNDING,
        instances=instances,
        where=where,
        seconds=time.perf_counter() - started,
        worst=jax.tree.map(np.asarray, worst),
        certificate=certificate,
    )
    if claim.experiment is not None:
        result = _with_frequencies(claim, name, plan, seed, tell, result, started)
    if result.instances == 0:
        raise BadArgument("claim", claim.id, "has nothing to search", fix="audit a run instead")
    return result


def _with_frequencies(
    claim: Claim,
    name: str,
    plan: Budget,
    seed: int,
    tell: Callable[[str], None],
    result: Falsification,
    started: float,
) -> Falsification:
    """Add the experiment's cases: the worst frequency of failure over delta."""
    assert claim.experiment is not None
    ratio, violated, where = result.worst_ratio, result.violated, result.where
    certificate, instances = result.certificate, result.instances
    for case in claim.experiment.cases:
        label = ", ".join(f"{key}={value}" for key, value in case.items())
        tell(f"{claim.id} [{name}]: {label}")
        verdict = judge_frequency(claim, case, name, repetitions=2 * plan.random, seed=seed)
        instances += 2 * plan.random
        if verdict.ratio > ratio and verdict.outcome is Outcome.VIOLATED:
            violated = True
            certificate = certify_frequency(claim, case, name, repetitions=400, seed=seed)
        if verdict.ratio >= ratio:
            ratio, where = verdict.ratio, label
    return Falsification(
        claim=claim.id,
        variant=name,
        worst_ratio=ratio,
        violated=violated,
        instances=instances,
        where=where,
        seconds=time.perf_counter() - started,
        worst=result.worst,
        certificate=certificate,
    )
