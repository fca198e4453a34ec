"""The falsifier: maximise left over right inside the hypotheses.

Candidates come from the search (`_search.py`), from the claim's constructions and from the worst
instances on file. What exceeds 1 is shrunk and proved in ball arithmetic. Claims about
probabilities are searched over their cases.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from ..core import BadArgument, check_choice, check_count, float64, stream
from ._certificate import Certificate, certify, certify_frequency
from ._claim import Claim, Instance, Kind, generator
from ._corpus import known_instances
from ._prove import Proof, prove, ratio_in_balls
from ._search import Budget, Candidate, scores_of, search_family, search_sizes
from ._shrink import fewer_bits, shrink
from ._verdict import ROUNDING, Outcome, judge_frequency, outside_domain

BUDGETS = {
    "small": Budget(random=256, restarts=8, steps=100),
    "default": Budget(random=2000, restarts=24, steps=600, sizes=2),
    "large": Budget(random=20000, restarts=96, steps=2000, sizes=6),
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
    steps = max((evaluations - random) // restarts, 1)
    return Budget(random, min(restarts, random), steps, sizes=min(3, evaluations // 5000))


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
            proved = self.proof is not None and self.proof.proved
            words = "the violation is proved" if proved else "violated"
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


def _on_file(claim: Claim, cold: bool) -> Iterator[Candidate]:
    """The claim's own constructions and the worst instances known from earlier searches."""
    known = () if cold else known_instances(claim)
    built = () if cold else claim.targets()
    for origin, instances in (("construction", built), ("known", known)):
        for index, instance in enumerate(instances):
            yield Candidate(scores_of(claim, instance), instance, f"{origin} {index + 1}")


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
    found, instances = candidates(claim, name, plan, seed, cold, tell)
    tell(f"{claim.id} [{name}]: proving")
    result = settle(claim, name, found)
    result = replace(result, instances=instances)
    if claim.experiment is not None:
        result = _with_frequencies(claim, name, plan, seed, tell, result)
    if result.instances == 0:
        raise BadArgument("claim", claim.id, "has nothing to search", fix="audit a run instead")
    return replace(result, seconds=time.perf_counter() - started)


def candidates(
    claim: Claim, name: str, plan: Budget, seed: int, cold: bool, tell: Callable[[str], None]
) -> tuple[list[Candidate], int]:
    """Bad instances from the file, the families and other sizes, and how many were evaluated."""
    found: list[Candidate] = []
    instances = 0
    with float64():
        ready = list(_on_file(claim, cold))
        for family in claim.families:
            tell(f"{claim.id} [{name}]: {family.name}")
            rng = generator(stream(seed, "falsify", claim.id, family.name))
            worst, evaluated = search_family(claim, family, plan, rng)
            found += worst
            instances += evaluated
        own = list(claim.variants).index(name)
        if plan.sizes and found and not any(c.scores[own] > _VIOLATION for c in (*ready, *found)):
            tell(f"{claim.id} [{name}]: other sizes")
            rng = generator(stream(seed, "falsify", claim.id, "sizes"))
            worst, evaluated = search_sizes(claim, found, plan, rng)
            found += worst
            instances += evaluated
    return [*ready, *found], instances + len(ready)


_VIOLATION = float(np.log1p(ROUNDING))
"""The score above which a candidate is a violation."""


_DOUBTFUL, _TRIED = 1e-6, 2
"""An excess of at most this is most likely rounding: so many candidates with it are proved."""


def settle(claim: Claim, name: str, found: list[Candidate]) -> Falsification:
    """The worst candidate that is not mere rounding; a violation is shrunk and proved.

    Where float64 sees its own rounding, the candidate's ratio is that of the slow twin's balls.
    """
    own = list(claim.variants).index(name)
    best = Falsification(claim.id, name, 0.0, False, 0, "nothing evaluated", 0.0)
    undecided, doubtful = best, 0
    for candidate in sorted(found, key=lambda c: -c.scores[own]):
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
            violation, refuted = _violation(claim, name, survived)
            if violation is not None:
                return violation
            if not refuted:
                undecided = survived if undecided.worst is None else undecided
                continue
        truth = _true_ratio(claim, survived)
        if truth > 1 + ROUNDING:
            continue  # refuted, as a hypothesis fails
        if best.worst is None or truth > best.worst_ratio:
            best = replace(survived, worst_ratio=truth)
        if seen <= best.worst_ratio * (1 + _DOUBTFUL):
            return best  # no other candidate looks worse
    if best.worst is None and undecided.worst is not None:
        return replace(undecided, where=f"{undecided.where}, not decided")
    return best


def _true_ratio(claim: Claim, found: Falsification) -> float:
    """left/right of a candidate without float64's rounding, where balls can tell."""
    seen = found.worst_ratio
    if claim.kind is not Kind.DETERMINISTIC:
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
    if not proof.proved:
        return None, proof.refuted  # float64 said more than can be proved
    if claim.kind is not Kind.IDENTITY and proof.twin.rhs > 0:
        ratio = min(found.worst_ratio, proof.twin.lhs / proof.twin.rhs)  # without its rounding
        found = replace(found, worst_ratio=ratio)
    small = shrink(claim, name, worst)
    again = prove(claim, name, small)
    small, proof = (small, again) if again.proved else (worst, proof)
    certificate = certify(claim, small, name) if claim.factor == 1.0 else None
    proved = replace(found, violated=True, worst=small, certificate=certificate, proof=proof)
    return proved, False


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
