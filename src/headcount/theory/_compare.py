"""One question, several answers: the theorems of all papers beside each other on one data set.

Each paper trains its own model on its own loss, so losses are compared with their start: how wide
must the model be before descent has brought the loss to a given share of what it began with?
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import HeadcountError, Paper, check_count, check_fraction, check_positive, papers
from ..core._checks import check_kind
from ..core._outside import left_out_if_broken
from ..training import TrainConfig, run_config
from ..training._build import check_problem
from ._count import Answer, Progress, over_seeds, theorem_answers
from ._practice import practice
from ._promise import Promised, claims_about, promised, settings_of


@dataclass(frozen=True)
class Compared:
    """One paper's answers; `note` says why there are none from its theorems.

    The target is one loss for all widths: `share` of the median start at `width`. What is promised
    there is by seed, where it depends on the seed.
    """

    paper: str
    model: str
    loss: str
    width: int
    steps: int
    share: float
    start: float
    required: tuple[Answer, ...]
    promised: Mapping[int, tuple[Promised, ...]]
    training: Answer | None
    note: str = ""
    loss_asked: float | None = None
    """The target itself, where a loss was asked for and no share."""

    @property
    def target(self) -> float:
        """The loss that is asked for, at any width."""
        return self.share * self.start if self.loss_asked is None else self.loss_asked

    def to_json(self) -> dict[str, Any]:
        """One object for machines."""
        return {
            "paper": self.paper,
            "model": self.model,
            "loss": self.loss,
            "width": self.width,
            "steps": self.steps,
            "start": self.start,
            "target": self.target,
            "required": [answer.to_json() for answer in self.required],
            "promised": [
                {"seed": seed, **one.to_json()}
                for seed, rows in self.promised.items()
                for one in rows
            ],
            "training": None if self.training is None else self.training.to_json(),
            "note": self.note,
        }


def compare(
    problem: Mapping[str, Any],
    *,
    share: float = 0.1,
    loss: float | None = None,
    delta: float = 0.05,
    most_width: int = 256,
    theory_only: bool = False,
    keys: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> list[Compared]:
    """Ask every paper that has a setting about one problem.

    `problem` holds the fields of a `TrainConfig` that all papers share: data, its options, n,
    width, steps, seeds. Model, start, loss and optimiser are each paper's own. The target is a
    `share` of the loss at the start, or one `loss` for all.
    """
    check_fraction("share", share)
    check_kind("problem", problem, Mapping, fix='write {"data": "dm1", "n": 10}')
    if loss is not None:
        check_positive("loss", loss)
    check_fraction("delta", delta)
    check_count("most_width", most_width)
    tell = progress or (lambda text: None)
    asked = [papers[key] for key in keys] if keys else [p for _, p in papers.items()]
    answers = []
    for paper in asked:
        if paper.setting is not None and paper.models:
            # A paper that was asked for by name must answer; one from outside may fail beside ours.
            must = keys is not None or paper.key in papers.ours
            with left_out_if_broken(f"paper {paper.key!r}", ours=must):
                answers += [
                    _compared(paper, problem, share, loss, delta, most_width, theory_only, tell)
                ]
    return answers


def _compared(
    paper: Paper,
    problem: Mapping[str, Any],
    share: float,
    loss: float | None,
    delta: float,
    most_width: int,
    theory_only: bool,
    tell: Progress,
) -> Compared:
    model = next(iter(paper.models))
    config = TrainConfig.of({**problem, "model": model})
    check_problem(config)
    tell(f"{paper.key}: {paper.title}")
    first = run_config(config.model_copy(update={"steps": 1}))
    start = float(np.median(np.atleast_2d(first.loss)[:, 0]))
    target = share * start if loss is None else loss
    share = target / start if loss is not None and start > 0 else share
    required: tuple[Answer, ...] = ()
    there: dict[int, tuple[Promised, ...]] = {}
    note, unit = "", 1
    try:
        settings = settings_of(config, delta=delta)
    except HeadcountError as error:  # no theorem speaks here: that is an answer
        note = str(error)
    else:
        answers = {
            seed: theorem_answers(paper.key, setting, target, "width", progress=tell)
            for seed, setting in settings.items()
        }
        required = tuple(over_seeds(answers))
        for seed, setting in settings.items():
            unit, about = setting.width_step, claims_about(paper.key, "loss")
            there[seed] = tuple(promised(claim, form, setting) for claim, form in about)
    found = None
    if not theory_only:
        found = practice(
            config, target, "width", width_step=unit, most_width=most_width, progress=tell
        ).answer
    return Compared(
        paper.key, model, config.loss, config.width, config.steps, share, start, required, there,
        found, note, loss,
    )  # fmt: skip
