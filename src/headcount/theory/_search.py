"""One search for all forms of a claim: random and structured starts, ascents, other sizes.

Random admissible instances over many orders of magnitude and of special shapes; Adam from the
best of them on log(lhs/rhs), seen through the family's projection, with the size of every array
as a parameter of its own; a second ascent around the best; steps without a slope, for kinks and
boundaries; then the same with tokens, heads, samples and features added or left out. Every
variant gets its ascents and every instance is scored under every variant, whichever was asked
for: a sharper form never looks looser than the printed one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from ..core import Array, BadArgument
from ._claim import Claim, Family, Hypothesis, Instance, Kind, Sides
from ._compilation import quick_compilation
from ._sizes import resized
from ._starts import neighbours, starts
from ._verdict import admissible, outside_domain, score_of


@dataclass(frozen=True)
class Budget:
    """Random instances, ascents and their steps, per family; how often sizes are changed."""

    random: int
    restarts: int
    steps: int
    sizes: int = 0

    def shared(self, least: Budget) -> Budget:
        """The part of one of many families: a part of everything, but at least `least`."""
        return Budget(
            max(self.random * 2 // 5, least.random),
            max(self.restarts * 2 // 3, least.restarts),
            max(self.steps // 2, least.steps),
        )

    @property
    def evaluations(self) -> int:
        """Instances evaluated per family and variant, at the family's own sizes."""
        return self.random + self.restarts * self.steps


@dataclass(frozen=True)
class Candidate:
    """A bad instance with its score under every variant, and where it was found."""

    scores: Float[np.ndarray, "variants"]
    instance: Instance
    where: str
    family: Family | None = None


_JITTER, _COPIES, _PENALTY = 2.0**-44, 2, 10.0
"""A wary score loses ten times what two relative changes of this size make of it."""


@dataclass(frozen=True)
class _Objective:
    """What is compiled for a claim; claims that differ by a factor on the bound share it."""

    kind: Kind
    sides: Callable[[Instance, str], Sides]
    hypotheses: tuple[Hypothesis, ...]
    variants: tuple[str, ...]
    wary: bool = False
    """Whether a score that small changes of the instance change is taken for rounding."""

    @classmethod
    def of(cls, claim: Claim) -> "_Objective":
        wary = claim.naive is None  # anybody's function: its sides may be mere cancellation
        return cls(claim.kind, claim.sides, claim.hypotheses, tuple(claim.variants), wary)

    def excess(self, instance: Instance, variant: str) -> Float[Array, ""]:
        """How far an instance is outside the hypotheses, relatively; 0 inside."""
        total = jnp.asarray(0.0)
        for hypothesis in self.hypotheses:
            if not hypothesis.asked_by(variant):
                continue
            limit = jnp.asarray(hypothesis.limit(instance, variant))
            gap = jnp.asarray(hypothesis.value(instance)) - limit
            total += jnp.maximum(gap, 0.0) / (1.0 + jnp.abs(limit))
        return total

    def scores(self, instance: Instance, factor: Any) -> Float[Array, "variants"]:
        """The scores of an instance; minus infinity where a hypothesis fails."""
        if not self.wary:
            return self._scores(instance, factor)
        rng = np.random.default_rng(0)

        def moved(x: Any) -> Any:
            change = _JITTER * rng.integers(-1, 2, (_COPIES, *x.shape))
            return jnp.where(jnp.any(x != 0), x[None] * (1.0 + change), change)  # zero moves, too

        copies = jax.tree.map(moved, instance)
        scores = jnp.concatenate(
            [
                self._scores(instance, factor)[None],
                jax.vmap(lambda copy: self._scores(copy, factor))(copies),
            ]
        )
        usable = jnp.all(scores > -jnp.inf, axis=0)
        finite = jax.lax.stop_gradient(jnp.where(usable, scores, 0.0))
        spread = jnp.max(finite, axis=0) - jnp.min(finite, axis=0)
        return jnp.where(usable, scores[0], -jnp.inf) - _PENALTY * spread

    def _scores(self, instance: Instance, factor: Any) -> Float[Array, "variants"]:
        scores = []
        for variant in self.variants:
            sides = self.sides(instance, variant)
            score = score_of(self.kind, sides._replace(rhs=factor * sides.rhs))
            usable = admissible(self.hypotheses, instance, variant) & ~jnp.isnan(score)
            if self.wary and self.kind is not Kind.IDENTITY:
                usable &= (jnp.min(sides.lhs) >= 0) & (jnp.min(sides.rhs) >= 0)
            scores.append(jnp.where(usable, score, -jnp.inf))
        return jnp.stack(scores)


def _scorer(claim: Claim, family: Family) -> Any:
    """Draws -> (admissible instances, scores)."""
    return functools.partial(_compiled_scorer(_Objective.of(claim), family), claim.factor)


@functools.lru_cache(maxsize=32)
def _compiled_scorer(objective: _Objective, family: Family) -> Any:
    def score(factor: Any, raw: Instance) -> tuple[Instance, Float[Array, "variants"]]:
        instance = family.project(raw)
        return instance, objective.scores(instance, factor)

    return jax.jit(jax.vmap(score, in_axes=(None, 0)), compiler_options=quick_compilation())


def scores_of(claim: Claim, instance: Instance) -> Float[np.ndarray, "variants"]:
    """The scores of one instance under every variant."""
    return np.asarray(_compiled_instance_scorer(_Objective.of(claim))(instance, claim.factor))


@functools.lru_cache(maxsize=32)
def _compiled_instance_scorer(objective: _Objective) -> Any:
    return jax.jit(objective.scores, compiler_options=quick_compilation())


def _climber(claim: Claim, family: Family, steps: int) -> Any:
    """(Starts, variants, step size) -> (best instances, their scores) by Adam."""
    return functools.partial(_compiled_climber(_Objective.of(claim), family, steps), claim.factor)


@functools.lru_cache(maxsize=32)
def _compiled_climber(objective: _Objective, family: Family, steps: int) -> Any:
    """A leaf x is exp(a) z with z of unit size: the ascent changes its shape and its size alike."""

    def climb(
        factor: Any, start: Instance, variant: Any, rate: Any
    ) -> tuple[Instance, Float[Array, "k"]]:
        optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps, alpha=1e-3))
        structure = jax.tree.structure(start)

        def split(instance: Instance) -> tuple[list[Array], list[Array]]:
            leaves = jax.tree.leaves(instance)
            sizes = [jnp.sqrt(jnp.mean(leaf**2)) for leaf in leaves]
            sizes = [jnp.where(size > 0, size, 1.0) for size in sizes]
            shapes = [leaf / size for leaf, size in zip(leaves, sizes, strict=True)]
            return shapes, [jnp.log(size) for size in sizes]

        def negative(free: Any) -> tuple[Float[Array, ""], Any]:
            grown = [jnp.exp(jnp.clip(a, -60.0, 60.0)) * z for z, a in zip(*free, strict=True)]
            inside = family.project(jax.tree.unflatten(structure, grown))
            scores = objective.scores(inside, factor)
            climbed = scores[variant]
            if family.guided and objective.hypotheses:
                # Outside the hypotheses there is nothing to climb but the way back.
                away = jnp.stack([objective.excess(inside, v) for v in objective.variants])
                climbed = jnp.where(climbed > -jnp.inf, climbed, -10.0 * away[variant])
            return -climbed, (inside, scores)

        def step(carry: Any, _: None) -> tuple[Any, None]:
            free, state, best, best_scores = carry
            (_, (inside, scores)), slope = jax.value_and_grad(negative, has_aux=True)(free)
            better = scores[variant] > best_scores[variant]
            best = jax.tree.map(lambda new, old: jnp.where(better, new, old), inside, best)
            best_scores = jnp.where(better, scores, best_scores)
            with jax.numpy_dtype_promotion("standard"):  # optax counts its steps in int32
                update, state = optimiser.update(jax.tree.map(jnp.nan_to_num, slope), state)
            # From the projected point: outside the domain a clipped entry has no slope.
            return (optax.apply_updates(split(inside), update), state, best, best_scores), None

        start = family.project(start)
        free = split(start)
        nothing = jnp.full(len(objective.variants), -jnp.inf)
        carry = (free, optimiser.init(free), start, nothing)
        (_, _, best, best_scores), _ = jax.lax.scan(step, carry, None, length=steps)
        return best, best_scores

    over = jax.vmap(climb, in_axes=(None, 0, 0, None))
    return jax.jit(over, compiler_options=quick_compilation())


_KEPT = 8
"""Candidates kept per family and variant: the worst may turn out to be rounding."""


class _Pool:
    """Instances of one family and one size with their scores under every variant."""

    def __init__(self, instances: Instance, scores: Any) -> None:
        self.instances = jax.tree.map(np.asarray, instances)
        self.scores = np.asarray(scores)

    def add(self, instances: Instance, scores: Any) -> None:
        self.instances = jax.tree.map(
            lambda a, b: np.concatenate([a, np.asarray(b)]), self.instances, instances
        )
        self.scores = np.concatenate([self.scores, np.asarray(scores)])

    def worst(self, variant: int, count: int) -> Any:
        """Indices of the worst under a variant, the worst first."""
        return np.argsort(-self.scores[:, variant], kind="stable")[:count]

    def take(self, order: Any) -> Instance:
        return jax.tree.map(lambda leaf: leaf[order], self.instances)

    def candidates(self, family: Family, where: str) -> Iterator[Candidate]:
        """The worst of every variant."""
        kept = {int(k) for v in range(self.scores.shape[1]) for k in self.worst(v, _KEPT)}
        for k in sorted(kept):
            try:
                instance = self.take(k)
            except BadArgument:
                continue  # a projection can end outside the domain, where a number underflows
            yield Candidate(self.scores[k], instance, where, family)


def search_family(
    claim: Claim,
    family: Family,
    budget: Budget,
    rng: np.random.Generator,
    also: Sequence[Instance] = (),
) -> tuple[list[Candidate], int]:
    """The worst instances of one family at its own sizes, and how many were evaluated.

    `also` are raw instances to start from, in place of as many of the draws.
    """
    drawn = starts(family, rng, budget.random)
    if also:
        extra = jax.tree.map(lambda *leaves: np.stack(leaves), *also[: budget.random])
        drawn = jax.tree.map(lambda a, b: np.concatenate([a, b[: -len(a)]]), extra, drawn)
    pool = _Pool(*_scorer(claim, family)(drawn))
    evaluated = budget.random
    if claim.kind is not Kind.IDENTITY:
        evaluated += _improve(claim, family, budget, rng, pool)
    return list(pool.candidates(family, family.name)), evaluated


def _improve(
    claim: Claim, family: Family, budget: Budget, rng: np.random.Generator, pool: _Pool
) -> int:
    """Ascents and hops for every variant; the number of evaluations."""
    count, climbed = len(pool.scores), 0
    rounds = max(budget.restarts * budget.steps // budget.random, _POLISH)
    if family.differentiable:
        rounds = _POLISH
        if budget.steps:
            _climb(claim, family, budget, rng, pool)
            climbed = len(claim.variants) * budget.restarts * budget.steps
    # As many hops as there were draws, so that nothing is compiled again.
    shares = np.array_split(np.arange(count), len(claim.variants))
    for _ in range(rounds):
        batches = [
            neighbours(pool.take(pool.worst(v, budget.restarts)), rng, len(share))
            for v, share in enumerate(shares)
            if len(share)
        ]
        pool.add(*_scorer(claim, family)(_joined(batches)))
    return climbed + rounds * count


_POLISH = 3
"""Rounds of random steps after the ascents: a kink or a boundary has no slope to follow."""


def _joined(batches: list[Instance]) -> Instance:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *batches)


def _climb(
    claim: Claim, family: Family, budget: Budget, rng: np.random.Generator, pool: _Pool
) -> None:
    """Two ascents: from the best draws and some others, then closely around the best found."""
    climb = _climber(claim, family, max(budget.steps // 2, 1))
    forms, count = range(len(claim.variants)), budget.restarts
    best = max(count // 2, 1)
    from_draws = []
    for variant in forms:
        top = pool.worst(variant, len(pool.scores))
        from_draws.append(np.concatenate([top[:best], rng.permutation(top[best:])[: count - best]]))
    which = np.repeat(np.arange(len(claim.variants)), [len(order) for order in from_draws])
    raised = _Pool(*climb(pool.take(np.concatenate(from_draws)), which, 0.1))
    leads = [raised.take(raised.worst(variant, max(count // 4, 1))) for variant in forms]
    pool.add(raised.instances, raised.scores)
    around = _joined(
        [neighbours(lead, rng, len(o)) for lead, o in zip(leads, from_draws, strict=True)]
    )
    pool.add(*climb(around, which, 0.02))


_BEYOND = 1e-6
"""A score (log of the ratio) above this is a violation: another size would be no news."""
_WORTH = 1e-3
"""How much a change of sizes must raise the score to be followed by another."""


def search_sizes(
    claim: Claim, found: list[Candidate], budget: Budget, rng: np.random.Generator
) -> tuple[list[Candidate], int]:
    """The worst candidate of each variant with sizes changed, again and again while that helps."""
    known, evaluated = list(found), 0
    for variant in range(len(claim.variants)):
        for _ in range(budget.sizes if claim.kind is not Kind.IDENTITY else 0):
            best = max(known, key=lambda candidate: candidate.scores[variant])
            if best.scores[variant] > _BEYOND:
                break
            more, count = _other_sizes(claim, best, variant, budget, rng)
            known += more
            evaluated += count
            raised = max((c.scores[variant] for c in more), default=-np.inf)
            if not raised > best.scores[variant] + _WORTH:
                break
    return known[len(found) :], evaluated


def _other_sizes(
    claim: Claim, best: Candidate, variant: int, budget: Budget, rng: np.random.Generator
) -> tuple[list[Candidate], int]:
    """A look at every neighbouring size, and a search at the most promising one."""
    family, pools = best.family, []
    assert family is not None
    count = max(budget.random // 8, 8)
    for label, instance in resized(claim, family, best.instance, rng):
        batch = jax.tree.map(lambda leaf: np.asarray(leaf)[None], instance)
        raw = _joined([batch, neighbours(batch, rng, count - 1)])
        pool = _Pool(*_scorer(claim, family)(raw))
        if outside_domain(pool.take(0)) is None:
            pools.append((label, pool))
    if not pools:
        return [], 0
    label, pool = max(pools, key=lambda entry: np.max(entry[1].scores[:, variant]))
    evaluated = _improve(claim, family, budget, rng, pool)
    where = f"{family.name}, {label}"
    return list(pool.candidates(family, where)), evaluated + count * len(pools)
