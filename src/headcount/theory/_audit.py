"""Audit: every claim that concerns a configuration, beside what the run did."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, cast

import numpy as np

from ..core import BadArgument, Paper, check_fraction, float64, papers
from ..data import DataModel
from ..training import Run, TrainConfig, build, run_config
from ._claim import Claim, Kind, Sides
from ._in_notebooks import AuditShown
from ._registry import claims
from ._setting import Setting
from ._subject import Progress, Subject
from ._verdict import Outcome, Verdict, decide, judge_hardest, ratio_of
from .domain import NotFinite


@dataclass(frozen=True, repr=False)
class Audit(AuditShown):
    """The verdicts on a configuration, worst seed first, and where the bounds lose.

    `not_asked` are the claims without a verdict, by reason; `findings` the tables that the paper's
    subject shows beside the verdicts, `notes` its lines on where the runs came from.
    """

    paper: str
    setting: Setting
    seeds: tuple[int, ...]
    verdicts: tuple[Verdict, ...]
    slack: tuple[dict[str, float | str], ...]
    seconds: float
    not_asked: dict[str, tuple[str, ...]] = field(default_factory=dict)
    findings: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def violated(self) -> bool:
        """Whether any claim is violated."""
        return any(verdict.outcome is Outcome.VIOLATED for verdict in self.verdicts)

    def to_json(self) -> dict[str, Any]:
        """One object for machines."""
        return {
            "setting": asdict(cast(Any, self.setting)),
            "seeds": list(self.seeds),
            "claims": [verdict.to_json() for verdict in self.verdicts],
            "slack": list(self.slack),
            "not_asked": {reason: list(ids) for reason, ids in self.not_asked.items()},
            "findings": self.findings,
            "notes": list(self.notes),
            "seconds": round(self.seconds, 3),
        }


def audit(
    config: TrainConfig,
    *,
    delta: float = 0.05,
    variants: Sequence[str] | None = None,
    run: Run | None = None,
    data: DataModel | None = None,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
) -> Audit:
    """Train every seed of `config` in float64 and ask every claim of its paper.

    `variants` limits the variants that are asked; by default all that are not known to fail.
    `run` is a finished run of this configuration: where it holds what is needed nothing is trained,
    else a note says what is missing.
    `data` takes the place of the configuration's data model, such as `data.Arrays(x, y)`.
    `tell` hears which claim is judged.
    """
    began = time.perf_counter()
    check_fraction("delta", delta)
    if not isinstance(config, TrainConfig):
        fix = "give a TrainConfig; TrainConfig.of({...}) makes one"
        raise BadArgument("config", config, "is no configuration", fix=fix)
    paper = papers.of_model(config.model)
    given = {"delta": delta, "run": run, "data": data, "progress": progress}
    subjects, notes = _subjects(paper, config, given)
    verdicts: list[Verdict] = []
    silent: dict[str, tuple[str, ...]] = {}
    asked_of = claims.of_paper(paper.key)
    for place, claim in enumerate(asked_of, start=1):
        if tell is not None:
            tell(f"judging {claim.id} ({place} of {len(asked_of)})")
        found = [v for form in _forms(claim, variants) if (v := _over_seeds(claim, subjects, form))]
        verdicts += found
        if not found:
            reason = why_not_asked(claim, variants)
            silent[reason] = (*silent.get(reason, ()), claim.id)
    notes += [note for s in subjects if (note := getattr(s, "note", ""))]
    with float64(), np.errstate(all="ignore"):  # a wild run gives 0/0 and no row
        slack = tuple(paper.part("slack")(subjects[0], "printed")) if paper.slack else ()
    return Audit(
        paper=paper.key,
        setting=subjects[0].setting,
        seeds=tuple(config.seeds),
        verdicts=tuple(verdicts),
        slack=slack,
        seconds=time.perf_counter() - began,
        not_asked=silent,
        findings={k: dict(v) for k, v in getattr(subjects[0], "findings", {}).items()},
        notes=tuple(dict.fromkeys(notes)),
    )


def _forms(claim: Claim, variants: Sequence[str] | None) -> list[str]:
    """The forms that are asked: of those that are wanted, all that are not known to fail."""
    known = [name for name, form in claim.variants.items() if not form.fails]
    return [name for name in known if variants is None or name in variants]


def _over_seeds(claim: Claim, subjects: list[Subject], form: str) -> Verdict | None:
    asked = [v for s in subjects if (v := ask(claim, s, form)) is not None]
    return worst(asked) if asked else None


def why_not_asked(claim: Claim, variants: Sequence[str] | None = None) -> str:
    """Why an audit has no verdict on a claim, in words."""
    if not _forms(claim, variants):
        wanted = "" if variants is None else f" among {', '.join(variants)}"
        return f"no form{wanted} that is not known to fail"
    kind = claim.instance_class
    if kind is None:
        return "about probabilities, of which one run is no evidence"
    about = (kind.__doc__ or kind.__name__).strip().splitlines()[0].rstrip(".")
    return f"about {about[0].lower()}{about[1:]}"


def _subjects(
    paper: Paper, config: TrainConfig, given: dict[str, Any]
) -> tuple[list[Subject], list[str]]:
    """The subject of every seed, and what to tell of it.

    `run` and `data` go to those that take them: without its run a configuration is trained again,
    without its data it would be another problem. Of a run that diverges, the steps before.
    """
    subject_of = paper.part("subject")
    known, notes = inspect.signature(subject_of).parameters, []
    if "data" not in known and given.pop("data") is not None:
        problem = f"is not used by the audit of {paper.key}, which trains on its own data"
        raise BadArgument("data", "given", problem, fix="leave it out")
    if "run" not in known and given.pop("run") is not None:
        notes = [f"the audit of {paper.key} reads no runs: trained again from its configuration"]
    try:
        return [subject_of(config, seed, **given) for seed in config.seeds], notes
    except NotFinite as error:
        before = _before_divergence(subject_of, config, given)
        if before is None:
            problem = f"makes the run diverge: {error.problem}"
            fix = "audit a run with a smaller one"
            raise BadArgument("eta", config.step_size, problem, fix=fix) from error
        subjects, told = before
        return subjects, [*notes, told]


def _before_divergence(
    subject_of: Callable[..., Subject], config: TrainConfig, given: dict[str, Any]
) -> tuple[list[Subject], str] | None:
    """The same runs up to where the first of them diverges; None where not one step is left."""
    seed, diverged = _divergence(config, given.get("data"))
    again = ", trained again" if given.get("run") is not None else ""
    if "run" in given:
        given = {**given, "run": None}  # it has other steps
    steps = diverged - 1
    while steps >= 1:
        short = config.model_copy(update={"steps": steps, "eta": config.step_size})
        try:
            subjects = [subject_of(short, seed, **given) for seed in config.seeds]
        except NotFinite:  # of finite numbers whose squares are not
            steps = 3 * steps // 4
            continue
        told = f"seed {seed} diverges at step {diverged}: the claims are asked about the first"
        return subjects, f"{told} {steps}{again}"
    return None


def _divergence(config: TrainConfig, data: DataModel | None) -> tuple[int, int]:
    """The seed that diverges first, and the step; the last step if the losses stay finite."""
    plain = config.model_copy(update={"dtype": "float64", "record": ()})
    found = run_config(plain, built=build(plain, data)).diverged_at
    steps = np.where(np.atleast_1d(found) < 0, config.steps, found)
    first = int(np.argmin(steps))
    return config.seeds[first], int(steps[first])


def ask(claim: Claim, subject: Subject, variant: str) -> Verdict | None:
    """One claim about one run: at its hardest instance there, or None if it does not concern it."""
    if claim.measured is not None and claim.bound is not None:
        return _against_bound(claim, subject, variant)
    kind = claim.instance_class
    instances = subject.instances(kind) if kind is not None else ()
    return judge_hardest(claim, instances, variant) if len(instances) else None


def _against_bound(claim: Claim, subject: Subject, variant: str) -> Verdict:
    """A measured left side beside the right side of the setting, if there is a promise at all."""
    assert claim.measured is not None
    bound, checks = claim.promise(subject.setting, variant)
    if claim.conditions is not None:
        checks += claim.conditions(subject, variant)
    sides = Sides(
        np.float64(claim.measured(subject)), np.float64(bound.rhs), dict(bound.constants),
        bound.trivial,
    )  # fmt: skip
    with float64():
        ratio = float(ratio_of(claim.kind, sides))
    verdict = decide(claim, variant, sides, checks, ratio)
    if verdict.outcome is Outcome.VIOLATED and claim.kind is Kind.HIGH_PROBABILITY:
        message = f"{verdict.message}; one run may exceed it, with the probability that is allowed"
        return replace(verdict, outcome=Outcome.INCONCLUSIVE, message=message)
    return verdict


_ORDER = (
    Outcome.VIOLATED,
    Outcome.INCONCLUSIVE,
    Outcome.NOT_APPLICABLE,
    Outcome.VACUOUS,
    Outcome.HOLDS,
)


def worst(verdicts: list[Verdict]) -> Verdict:
    """The seed that speaks most against the claim."""
    return min(verdicts, key=lambda v: (_ORDER.index(v.outcome), -np.nan_to_num(v.ratio)))
