"""Audit: every claim that concerns a configuration, beside what the run did."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..core import check_fraction, float64, papers, stream
from ..training import TrainConfig
from ._claim import Claim, Kind, generator
from ._registry import claims
from ._setting import Setting
from ._verdict import Outcome, Verdict, judge, ratio_of

Progress = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Audit:
    """The verdicts on a configuration, worst seed first, and where the bounds lose."""

    paper: str
    setting: Setting
    seeds: tuple[int, ...]
    verdicts: tuple[Verdict, ...]
    slack: tuple[dict[str, float | str], ...]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """One object for machines."""
        return {
            "setting": asdict(cast(Any, self.setting)),
            "seeds": list(self.seeds),
            "claims": [verdict.to_json() for verdict in self.verdicts],
            "slack": list(self.slack),
            "seconds": round(self.seconds, 3),
        }


def audit(
    config: TrainConfig,
    *,
    delta: float = 0.05,
    variants: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Train every seed of `config` in float64 and ask every claim of its paper.

    `variants` limits the variants that are asked; by default all that are not known to fail.
    """
    began = time.perf_counter()
    check_fraction("delta", delta)
    paper = papers.of_model(config.model)
    subject_of, slack_of = paper.part("subject"), paper.part("slack")
    subjects = [subject_of(config, seed, delta=delta, progress=progress) for seed in config.seeds]
    verdicts = []
    for claim in claims.of_paper(paper.key):
        for name, variant in claim.variants.items():
            if variant.fails or (variants is not None and name not in variants):
                continue
            asked = [v for s in subjects if (v := ask(claim, s, name)) is not None]
            if asked:
                verdicts.append(_worst(asked))
    return Audit(
        paper=paper.key,
        setting=subjects[0].setting,
        seeds=tuple(config.seeds),
        verdicts=tuple(verdicts),
        slack=tuple(slack_of(subjects[0], "printed")),
        seconds=time.perf_counter() - began,
    )


def ask(claim: Claim, subject: Any, variant: str) -> Verdict | None:
    """One claim about one run: at its worst instance there, or None if it does not concern it."""
    if claim.measured is not None and claim.bound is not None:
        return _against_bound(claim, subject, variant)
    for family in claim.families:
        instances = subject.instances(instance_type(family))
        if instances:
            return judge(claim, _hardest(claim, instances, variant), variant)
    return None


def instance_type(family: Any) -> type:
    """The class of the instances that a family draws."""
    return type(family.draw(generator(stream(0, "audit")), 1))


def _hardest(claim: Claim, instances: list[Any], variant: str) -> Any:
    if len(instances) == 1:
        return instances[0]
    with float64():
        batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *instances)
        ratios = jax.jit(jax.vmap(lambda i: ratio_of(claim.kind, claim.evaluate(i, variant))))(
            batch
        )
    return instances[int(np.nanargmax(ratios))]


def _against_bound(claim: Claim, subject: Any, variant: str) -> Verdict:
    """A measured left side beside the right side of the setting."""
    assert claim.measured is not None
    assert claim.bound is not None
    lhs = float(claim.measured(subject))
    bound = claim.bound(subject.setting, variant)
    ratio = lhs / bound.rhs
    outcome = Outcome.HOLDS
    message = f"left side {lhs:.4g} against {bound.rhs:.4g}: ratio {ratio:.3g}"
    if ratio > 1:
        # One exceedance is what a high-probability statement allows.
        allowed = claim.kind is Kind.HIGH_PROBABILITY
        outcome = Outcome.INCONCLUSIVE if allowed else Outcome.VIOLATED
    elif bound.trivial is not None and bound.rhs >= bound.trivial:
        outcome = Outcome.VACUOUS
        message = f"the bound {bound.rhs:.4g} is not below the trivial {bound.trivial:.4g}"
    constants = {name: float(value) for name, value in bound.constants.items()}
    return Verdict(claim.id, variant, outcome, message, lhs, bound.rhs, ratio, (), constants)


_ORDER = (
    Outcome.VIOLATED,
    Outcome.INCONCLUSIVE,
    Outcome.NOT_APPLICABLE,
    Outcome.VACUOUS,
    Outcome.HOLDS,
)


def _worst(verdicts: list[Verdict]) -> Verdict:
    """The seed that speaks most against the claim."""
    return min(verdicts, key=lambda v: (_ORDER.index(v.outcome), -np.nan_to_num(v.ratio)))
