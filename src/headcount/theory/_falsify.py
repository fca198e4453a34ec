"""The falsifier: maximise left over right inside the hypotheses.

Candidates come from the search (`_search.py`), from the claim's constructions and from the worst
instances on file. What exceeds 1 is shrunk and proved in ball arithmetic. Claims about
probabilities are searched over their cases.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from ..core import BadArgument, check_count, stream
from ..core._rounding import round_up
from ._asked import claim_of
from ._candidates import VIOLATION, candidates, preferred
from ._certificate import Certificate, certify, certify_frequency
from ._claim import Claim, Instance, Kind, generator
from ._in_notebooks import FalsificationShown
from ._judge_frequency import judge_frequency
from ._lemma_report import LOOSE, Shown, SizeRatio, growth_of, in_words, points_as_lists, shown
from ._prove import Proof, Status, prove, ratio_in_balls
from ._pytree import arrays_of
from ._record import sizes_of
from ._search import Budget, Candidate
from ._shrink import fewer_bits, shrink
from ._sizes import letters_of
from ._verdict import ROUNDING, Outcome, above_one, judge, outside_domain

BUDGETS = {
    "small": Budget(random=256, restarts=8, steps=100),
    "default": Budget(random=2000, restarts=24, steps=600, sizes=2),
    "large": Budget(random=20000, restarts=96, steps=2000, sizes=6),
}
"""How much a search may try, by name."""


def budget_of(budget: str | int | Budget, sized: bool = False) -> Budget:
    """A named budget, or about so many evaluations per family.

    Where sizes have ranges there are more families than elsewhere: each gets a part.
    """
    if isinstance(budget, Budget):
        return budget
    if isinstance(budget, str) and budget in BUDGETS:
        named, least = BUDGETS[budget], BUDGETS["small"]
        return named.shared(least) if sized else named
    evaluations = int(budget) if isinstance(budget, str) and budget.isdecimal() else budget
    if isinstance(evaluations, bool) or not isinstance(evaluations, int) or evaluations < 10:
        problem = "is neither a budget by name nor a whole number of evaluations"
        fix = f"use {', '.join(BUDGETS)}, or a number of 10 or more"
        raise BadArgument("budget", budget, problem, fix=fix)
    random = max(evaluations // 5, 8)
    restarts = min(24, max(1, evaluations // 200))
    steps = max((evaluations - random) // restarts, 1)
    return Budget(random, min(restarts, random), steps, sizes=min(3, evaluations // 5000))


@dataclass(frozen=True, repr=False)
class Falsification(FalsificationShown):
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
    sizes: Mapping[str, int] = field(default_factory=dict)
    """The sizes of the instance."""
    per_size: tuple[SizeRatio, ...] = ()
    """For a lemma: the worst ratio at each choice of sizes, confirmed in ball arithmetic."""
    points: Mapping[str, Any] = field(default_factory=dict)
    """The instance as nested lists, by variable."""
    shown: Shown | None = None
    """For a lemma: the counterexample as text, LaTeX and Python."""
    identity: bool = False
    """Whether the claim is an equality: its ratio is a difference in units of rounding."""
    words: str = "the violation is proved"
    """What a proved counterexample is called, by the role of the form."""

    @property
    def proved(self) -> bool:
        """Whether the violation is proved in ball arithmetic."""
        return self.proof is not None and self.proof.proved

    @property
    def growth(self) -> tuple[str, ...]:
        """For a lemma: how its worst ratio depends on each size, where the search shows a law."""
        return () if self.identity else growth_of(self.per_size)

    @property
    def message(self) -> str:
        """One sentence for a reader."""
        if self.violated:
            words = self.words if self.proved else f"violated{self._unproved}"
            close = self.worst_ratio < 1.00001
            size = above_one(self.worst_ratio) if close else f"{self.worst_ratio:.6g}"
            return f"{words}: ratio {size} ({self.where})"
        if np.isnan(self.worst_ratio) and self.where != _NOTHING:
            return f"survived {self.instances} instances: no ratio to tell ({self.where})"
        if np.isnan(self.worst_ratio):
            none = f"none of {self.instances} instances meets the hypotheses and can be evaluated"
            return f"nothing is tested: {none}"
        if self.identity:
            apart = round_up(min(self.worst_ratio, 1.0) * ROUNDING)
            agree = f"the two sides agree to {apart} of their size"
            return f"survived {self.instances} instances: {agree} ({self.where})"
        if self.per_size and 0 < self.worst_ratio < LOOSE:
            factor = round_up(1 / self.worst_ratio)
            return (
                f"survived {self.instances} instances; could be tightened by up to a factor of "
                f"{factor} ({self.where})"
            )
        return (
            f"survived {self.instances} instances: worst ratio "
            f"{round_up(min(self.worst_ratio, 1.0), 7)} ({self.where})"
        )

    @property
    def _unproved(self) -> str:
        return "" if self.proof is None else f" in float64, not proved: {self.proof.reason}"

    def to_json(self, certificate: str | None = None) -> dict[str, Any]:
        """The keys that `falsify --json` prints; `certificate` is the file written, if any."""
        return {
            "claim": self.claim,
            "variant": self.variant,
            "worst_ratio": self.worst_ratio,
            "violated": self.violated,
            "instances": self.instances,
            "certificate": certificate,
            "proved": self.proved,
            "sizes": dict(self.sizes),
            "instance": dict(self.points),
            **({} if not self.per_size else self._by_size()),
        }

    def _by_size(self) -> dict[str, Any]:
        rows = [row.to_json() for row in self.per_size]
        return {"per_size": rows, "growth": list(self.growth)}


def falsify(
    claim: Claim | str,
    variant: str | None = None,
    *,
    budget: str | int | Budget = "default",
    seed: int = 0,
    cold: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Falsification:
    """Search for an instance with lhs > rhs; if found, it comes with a proof and a certificate.

    `claim` is a claim or its name. `cold` leaves out the claim's constructions and the instances
    on file, to see what the search finds alone.
    """
    claim = claim_of(claim)
    check_count("seed", seed, least=0)
    tell = progress if progress is not None else lambda line: None
    started = time.perf_counter()
    name, plan = claim.variant(variant), budget_of(budget, claim.raw)
    found, instances, table = candidates(claim, name, plan, seed, cold, tell)
    tell(f"{claim.id} [{name}]: proving")
    result = _described(claim, replace(settle(claim, name, found, table), per_size=table))
    result = replace(result, instances=instances)
    if claim.experiment is not None:
        result = _with_frequencies(claim, name, plan, seed, tell, result)
    if result.instances == 0:
        raise BadArgument("claim", claim.id, "has nothing to search", fix="audit a run instead")
    if result.where == _NOTHING:  # a claim that was never asked has not survived anything
        result = replace(result, worst_ratio=float("nan"), per_size=())
    return replace(result, seconds=time.perf_counter() - started)


def _described(claim: Claim, result: Falsification) -> Falsification:
    """The instance's sizes and points; for a lemma also in words, LaTeX and Python."""
    top = max([row.ratio for row in result.per_size], default=0.0)
    if result.worst is None:
        known = result.where == _ROUNDING and top > 0
        return replace(result, worst_ratio=top) if known else result
    if not claim.raw:
        fields = arrays_of(result.worst)
        points = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in fields.items()}
        return replace(result, sizes=letters_of(type(result.worst), fields), points=points)
    points = points_as_lists(claim, result.worst)
    result = replace(result, sizes=sizes_of(result.worst), points=points)
    if not result.violated:
        where = f"{result.where}; {in_words(claim, result.worst)}"
        if top < 0:  # no two sides can be compared
            return replace(result, where=_ROUNDING, worst_ratio=float("nan"))
        # Balls that agree on a limit from below are better than float64 that went past it.
        return replace(result, where=where, worst_ratio=min(result.worst_ratio, top))
    verdict = judge(claim, result.worst, result.variant)
    words = shown(claim, result.variant, result.worst, verdict.lhs, verdict.rhs)
    worst = result.worst_ratio if claim.kind is Kind.IDENTITY else max(top, result.worst_ratio)
    return replace(result, shown=words, worst_ratio=worst)


_NOTHING, _ROUNDING = "nothing evaluated", "nothing but rounding"


_DOUBTFUL, _TRIED = 1e-6, 2
"""An excess of at most this is most likely rounding: so many candidates with it are proved."""
_REFUTED = 12
"""Candidates of a lemma that are tried to be proved."""


def settle(
    claim: Claim, name: str, found: list[Candidate], table: tuple[SizeRatio, ...] = ()
) -> Falsification:
    """The worst candidate that is not mere rounding; a violation is shrunk and proved.

    Where float64 sees its own rounding, the candidate's ratio is that of the slow twin's balls.
    """
    own = list(claim.variants).index(name)
    identity = claim.kind is Kind.IDENTITY
    best = Falsification(
        claim.id, name, 0.0, False, 0, _NOTHING, 0.0, identity=identity,
        words=claim.forms[name].proved,
    )  # fmt: skip
    undecided, doubtful, unproved = best, 0, 0
    standing: Falsification | None = None
    scored = any(candidate.scores[own] > -np.inf for candidate in found)
    order = sorted(found, key=lambda c: -c.scores[own])
    if claim.raw:
        order = preferred(order, own, VIOLATION, table)
    for candidate in order:
        score = float(candidate.scores[own])
        if not score > -np.inf or outside_domain(candidate.instance) is not None:
            continue
        seen = float(np.exp(score))
        worst = jax.tree.map(np.asarray, candidate.instance)
        survived = replace(best, worst_ratio=seen, where=candidate.where, worst=worst)
        if seen > 1 + ROUNDING:
            doubtful += seen < 1 + _DOUBTFUL
            if seen < 1 + _DOUBTFUL and doubtful > _TRIED:
                continue  # an equality: one candidate after another is as little decided
            if claim.raw and unproved >= _REFUTED:
                continue  # a lemma that float64 evaluates badly
            violation, refuted = _violation(claim, name, survived)
            if violation is not None and violation.proved:
                return violation
            standing = standing or violation
            unproved += 1
            if not refuted:
                undecided = survived if undecided.worst is None else undecided
                continue
        if standing is not None:
            break
        truth = _true_ratio(claim, survived)
        if truth > 1 + ROUNDING:
            continue  # refuted, as a hypothesis fails
        if best.worst is None or truth > best.worst_ratio:
            best = replace(survived, worst_ratio=truth)
        if seen <= best.worst_ratio * (1 + ROUNDING):
            return best  # no other candidate looks worse
    if standing is not None:
        return standing
    if best.worst is None and undecided.worst is not None:
        return replace(undecided, where=f"{undecided.where}, not decided")
    if scored and best.worst is None:
        return replace(best, where=_ROUNDING, worst_ratio=float("nan"))
    return best


def _true_ratio(claim: Claim, found: Falsification) -> float:
    """left/right of a candidate without float64's rounding, where balls can tell."""
    seen = found.worst_ratio
    if claim.kind is not Kind.DETERMINISTIC or claim.naive is None:
        return seen
    truth = ratio_in_balls(claim, found.variant, found.worst)
    return min(seen, 1.0) if truth is None else truth


def _violation(claim: Claim, name: str, found: Falsification) -> tuple[Falsification | None, bool]:
    """A candidate above 1, shrunk and proved, or None; and whether it is refuted."""
    worst = found.worst
    proof = prove(claim, name, worst)
    if not proof.proved:
        # A projection may end an ulp outside its ball; with fewer bits it is inside.
        worst = jax.tree.map(fewer_bits(40), worst)
        proof = prove(claim, name, worst)
    if not proof.proved and _stands(proof, found):
        return replace(found, violated=True, proof=proof), False
    if not proof.proved:
        return None, proof.refuted  # float64 said more than can be proved
    seen = proof.decisive
    if claim.kind is not Kind.IDENTITY and seen.rhs > 0:
        ratio = min(found.worst_ratio, seen.lhs / seen.rhs)  # without its rounding
        found = replace(found, worst_ratio=ratio)
    small = shrink(claim, name, worst)
    again = prove(claim, name, small)
    small, proof = (small, again) if again.proved else (worst, proof)
    certificate = certify(claim, small, name) if claim.factor == 1.0 else None
    proved = replace(found, violated=True, worst=small, certificate=certificate, proof=proof)
    return proved, False


def _stands(proof: Proof, found: Falsification) -> bool:
    """Whether a violation far beyond rounding stands unproved: nothing can enclose the lemma."""
    nothing = proof.twin.status is proof.traced.status is Status.UNAVAILABLE
    return nothing and found.worst_ratio > 1 + _DOUBTFUL


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
    worst = (result.violated, result.worst_ratio)  # a violation beats any ratio that chance allows
    rng = generator(stream(seed, "cases", claim.id))
    for case in claim.experiment.searched(rng, 2 * plan.restarts):
        label = ", ".join(f"{key}={value}" for key, value in case.items())
        tell(f"{claim.id} [{name}]: {label}")
        verdict = judge_frequency(claim, case, name, repetitions=2 * plan.random, seed=seed)
        result = replace(result, instances=result.instances + 2 * plan.random)
        found = (verdict.outcome is Outcome.VIOLATED, verdict.ratio)
        if not found > worst:
            continue
        worst = found
        result = replace(result, violated=found[0], worst_ratio=found[1], where=label)
        if found[0] and claim.factor == 1.0:
            written = certify_frequency(claim, case, name, repetitions=400, seed=seed)
            result = replace(result, certificate=written)
    return result
