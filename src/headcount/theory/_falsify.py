"""The falsifier: maximise left over right inside the hypotheses.

Random admissible instances over many orders of magnitude and of special shapes; Adam from the
best of them on log(lhs/rhs), seen through the family's projection, with the size of every array
as a parameter of its own; a second ascent around the best; the claim's constructions and the
worst instances that are on file. What exceeds 1 is then shrunk and proved in ball arithmetic.
"""

import functools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from ..core import Array, BadArgument, check_choice, check_count, float64, stream
from ._certificate import Certificate, certify, certify_frequency
from ._claim import Claim, Family, Instance, Kind, generator
from ._compilation import quick_compilation
from ._corpus import known_instances
from ._prove import Proof, prove
from ._shrink import _short, shrink
from ._starts import neighbours, starts
from ._verdict import ROUNDING, Outcome, judge_frequency, outside_domain, score_of


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
    proof: Proof | None = None

    @property
    def message(self) -> str:
        """One sentence for a reader."""
        if self.violated:
            words = "the violation is proved" if self.proof else "violated"
            return f"{words}: ratio {self.worst_ratio:.6g} ({self.where})"
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
            "proved": self.proof is not None and self.proof.proved,
        }


@dataclass(frozen=True)
class _Candidate:
    score: float
    instance: Instance
    where: str


def _score(claim: Claim, variant: str, instance: Instance) -> Float[Array, ""]:
    score = score_of(claim.kind, claim.evaluate(instance, variant))
    return jnp.where(jnp.isnan(score), -jnp.inf, score)


@functools.lru_cache(maxsize=32)
def _scorer(claim: Claim, variant: str, family: Family) -> Any:
    """Draws -> (admissible instances, scores), compiled."""

    def score(raw: Instance) -> tuple[Instance, Float[Array, ""]]:
        instance = family.project(raw)
        return instance, _score(claim, variant, instance)

    return jax.jit(jax.vmap(score), compiler_options=quick_compilation())


@functools.lru_cache(maxsize=32)
def _target_scorer(claim: Claim, variant: str) -> Any:
    """One instance -> score, compiled."""
    score = functools.partial(_score, claim, variant)
    return jax.jit(score, compiler_options=quick_compilation())


@functools.lru_cache(maxsize=32)
def _climber(claim: Claim, variant: str, family: Family, steps: int) -> Any:
    """(Starts, step size) -> (best instances, best scores) of Adam on the score, compiled.

    A leaf x is exp(a) z with z of unit size: the ascent changes its shape and its size alike.
    """

    def climb(start: Instance, rate: Any) -> tuple[Instance, Float[Array, ""]]:
        optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps, alpha=1e-3))
        structure = jax.tree.structure(start)

        def split(instance: Instance) -> tuple[list[Array], list[Array]]:
            leaves = jax.tree.leaves(instance)
            sizes = [jnp.sqrt(jnp.mean(leaf**2)) for leaf in leaves]
            sizes = [jnp.where(size > 0, size, 1.0) for size in sizes]
            shapes = [leaf / size for leaf, size in zip(leaves, sizes, strict=True)]
            return shapes, [jnp.log(size) for size in sizes]

        def objective(free: Any) -> tuple[Float[Array, ""], Instance]:
            grown = [jnp.exp(jnp.clip(a, -60.0, 60.0)) * z for z, a in zip(*free, strict=True)]
            inside = family.project(jax.tree.unflatten(structure, grown))
            return -_score(claim, variant, inside), inside

        def step(carry: Any, _: None) -> tuple[Any, None]:
            free, state, best, best_instance = carry
            (value, inside), slope = jax.value_and_grad(objective, has_aux=True)(free)
            better = -value > best
            best_instance = jax.tree.map(
                lambda new, old: jnp.where(better, new, old), inside, best_instance
            )
            update, state = optimiser.update(jax.tree.map(jnp.nan_to_num, slope), state)
            # From the projected point: outside the domain a clipped entry has no slope.
            moved = optax.apply_updates(split(inside), update)
            return (moved, state, jnp.where(better, -value, best), best_instance), None

        free = split(family.project(start))
        carry = (free, optimiser.init(free), jnp.asarray(-jnp.inf), family.project(start))
        (_, _, best, best_instance), _ = jax.lax.scan(step, carry, None, length=steps)
        return best_instance, best

    return jax.jit(jax.vmap(climb, in_axes=(0, None)), compiler_options=quick_compilation())


def _take(batch: Instance, order: Any) -> Instance:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[order], batch)


def _search(
    claim: Claim, variant: str, family: Family, budget: Budget, rng: np.random.Generator
) -> tuple[list[_Candidate], int]:
    """The worst instances of one family, and how many were evaluated."""
    score = _scorer(claim, variant, family)
    drawn, scores = score(starts(family, rng, budget.random))
    pool, values = _take(drawn, slice(None)), np.asarray(scores)
    evaluated = budget.random
    if claim.kind is not Kind.IDENTITY:
        rounds = _climbs if family.differentiable else _hops
        for batch, found in rounds(claim, variant, family, budget, rng, pool, values):
            pool = jax.tree.map(lambda a, b: np.concatenate([a, b]), pool, batch)
            values = np.concatenate([values, found])
        evaluated = budget.evaluations
    order = np.argsort(-values)[:_KEPT]
    return [_Candidate(float(values[k]), _take(pool, k), family.name) for k in order], evaluated


_KEPT = 8
"""Candidates kept per family: the worst may turn out to be rounding."""

Round = Iterator[tuple[Instance, Any]]


def _climbs(
    claim: Claim,
    variant: str,
    family: Family,
    budget: Budget,
    rng: np.random.Generator,
    pool: Instance,
    values: Any,
) -> Round:
    """Two ascents: from the best draws and some others, then closely around the best found."""
    climb = _climber(claim, variant, family, max(budget.steps // 2, 1))
    top = np.argsort(-values)
    best = max(budget.restarts // 2, 1)
    others = rng.permutation(top[best:])[: budget.restarts - best]
    raised, found = climb(_take(pool, np.concatenate([top[:best], others])), 0.1)
    yield _take(raised, slice(None)), np.asarray(found)
    lead = np.argsort(-np.asarray(found))[: max(budget.restarts // 4, 1)]
    around = neighbours(_take(raised, lead), rng, budget.restarts)
    polished, found = climb(around, 0.02)
    yield _take(polished, slice(None)), np.asarray(found)


def _hops(
    claim: Claim,
    variant: str,
    family: Family,
    budget: Budget,
    rng: np.random.Generator,
    pool: Instance,
    values: Any,
) -> Round:
    """Where there is no slope: random steps around the best, again and again."""
    score = _scorer(claim, variant, family)
    for _ in range(max(budget.restarts * budget.steps // budget.random, 1)):
        lead = _take(pool, np.argsort(-values)[: budget.restarts])
        batch, found = score(neighbours(lead, rng, budget.random))
        pool, values = _take(batch, slice(None)), np.asarray(found)
        yield pool, values


def _on_file(claim: Claim, variant: str, cold: bool) -> Iterator[_Candidate]:
    """The claim's own constructions and the worst instances known from earlier searches."""
    known = () if cold else known_instances(claim)
    built = () if cold else claim.targets()
    for origin, instances in (("construction", built), ("known", known)):
        for index, instance in enumerate(instances):
            score = float(_target_scorer(claim, variant)(instance))
            yield _Candidate(score, instance, f"{origin} {index + 1}")


def falsify(
    claim: Claim,
    variant: str | None = None,
    *,
    budget: str | int | Budget = "default",
    seed: int = 0,
    cold: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Falsification:
    """Search for an instance with lhs > rhs; if found, it comes with a proof and a certificate.

    `cold` leaves out the claim's constructions and the instances on file, to see what the search
    finds alone.
    """
    name, plan = claim.variant(variant), budget_of(budget)
    tell = progress if progress is not None else lambda line: None
    started = time.perf_counter()
    candidates: list[_Candidate] = []
    instances = 0
    with float64():
        for family in claim.families:
            tell(f"{claim.id} [{name}]: {family.name}")
            rng = generator(stream(seed, "falsify", claim.id, family.name))
            found, evaluated = _search(claim, name, family, plan, rng)
            candidates += found
            instances += evaluated
        ready = list(_on_file(claim, name, cold))
    instances += len(ready)
    tell(f"{claim.id} [{name}]: proving")
    result = _settle(claim, name, [*ready, *candidates])
    result = replace(result, instances=instances)
    if claim.experiment is not None:
        result = _with_frequencies(claim, name, plan, seed, tell, result)
    if result.instances == 0:
        raise BadArgument("claim", claim.id, "has nothing to search", fix="audit a run instead")
    return replace(result, seconds=time.perf_counter() - started)


def _settle(claim: Claim, name: str, candidates: list[_Candidate]) -> Falsification:
    """The worst candidate that is not mere rounding; a violation is shrunk and proved."""
    empty = Falsification(claim.id, name, 0.0, False, 0, "nothing evaluated", 0.0)
    ranked = sorted(candidates, key=lambda c: -c.score)
    for candidate in ranked:
        if not candidate.score > -np.inf or outside_domain(candidate.instance) is not None:
            continue
        ratio = float(np.exp(candidate.score))
        worst = jax.tree.map(np.asarray, candidate.instance)
        where = candidate.where
        survived = replace(empty, worst_ratio=ratio, where=where, worst=worst)
        if not ratio > 1 + ROUNDING:
            return survived
        if not prove(claim, name, worst).proved:
            # A projection may end an ulp outside its ball; with fewer bits it is inside.
            worst = jax.tree.map(_short(40), worst)
            if not prove(claim, name, worst).proved:
                continue  # float64 said more than can be proved
        small = shrink(claim, name, worst)
        proof = prove(claim, name, small)
        if not proof.proved:
            small, proof = worst, prove(claim, name, worst)
        certificate = certify(claim, small, name) if claim.factor == 1.0 else None
        return replace(survived, violated=True, worst=small, certificate=certificate, proof=proof)
    return empty


def _with_frequencies(
    claim: Claim,
    name: str,
    plan: Budget,
    seed: int,
    tell: Callable[[str], None],
    result: Falsification,
) -> Falsification:
    """Add the experiment's cases: the worst frequency of failure over delta."""
    assert claim.experiment is not None
    ratio, violated, where = result.worst_ratio, result.violated, result.where
    certificate, instances = result.certificate, result.instances
    rng = generator(stream(seed, "cases", claim.id))
    for case in claim.experiment.searched(rng, 4 * plan.restarts):
        label = ", ".join(f"{key}={value}" for key, value in case.items())
        tell(f"{claim.id} [{name}]: {label}")
        verdict = judge_frequency(claim, case, name, repetitions=2 * plan.random, seed=seed)
        instances += 2 * plan.random
        if verdict.ratio > ratio and verdict.outcome is Outcome.VIOLATED:
            violated = True
            if claim.factor == 1.0:
                certificate = certify_frequency(claim, case, name, repetitions=400, seed=seed)
        if verdict.ratio >= ratio:
            ratio, where = verdict.ratio, label
    return replace(
        result,
        worst_ratio=ratio,
        violated=violated,
        instances=instances,
        where=where,
        certificate=certificate,
    )
