"""What a paper tells the engine about one audited run: its subject.

The manifest names a function, `subject="package.subject:subject"`. It trains (or is given) one seed
of a configuration and returns an object of this protocol; `Observed` is one that fits most papers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..training import TrainConfig
from ._setting import Setting

Progress = Callable[[int, int, float], None]
"""Called as progress(steps done, steps in all, current loss)."""


class Subject(Protocol):
    """One audited run.

    Two more attributes are read where they exist: `findings`, tables of plain values that are
    shown beside the verdicts, {title: {name: value}}; and `note`, one line on where the run came
    from (such as why a file had to be trained again).
    """

    @property
    def setting(self) -> Setting:
        """The numbers behind the closed right sides; also given to `Claim.measured`'s bound."""

    def instances(self, kind: type) -> Sequence[Any]:
        """The instances of this class that the run offers, none if the class does not concern it.

        A claim is asked at all of them that meet its hypotheses, and answers with the hardest. Many
        of one shape are best given as a `Batch`.
        """


class SubjectOf(Protocol):
    """The function that a manifest names.

    It may also take `run`, a finished `training.Run` that holds this seed (trained again only if
    something is missing, which `note` then says: `iterates_of`), and `data`, a data model in place
    of the configuration's. Without `run` the configuration is trained again, and a note says so;
    without `data` an audit of one's own data is refused.
    """

    def __call__(
        self, config: TrainConfig, seed: int, *, delta: float, progress: Progress | None = None
    ) -> Subject:
        """Train seed `seed` of `config` and collect what the claims ask about."""


def slack_table(pairs: Iterable[tuple[str, Any, Any]]) -> list[dict[str, float | str]]:
    """What a manifest's `slack` returns, from (factor, bound, what was measured in its place)."""
    return [
        {
            "factor": name,
            "bound": float(bound),
            "measured": float(measured),
            "orders": _orders(float(bound), float(measured)),
        }
        for name, bound, measured in pairs
    ]


def _orders(bound: float, measured: float) -> float:
    """log10 of bound over measured; NaN where a run diverged and there is nothing to compare."""
    ratio = bound / max(measured, 1e-300)
    return math.log10(ratio) if ratio > 0 else math.nan


@dataclass(frozen=True)
class Observed:
    """A subject that lists what it offers: instance class -> instances."""

    seed: int
    setting: Any
    offers: Mapping[type, Sequence[Any]] = field(repr=False)
    findings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    note: str = ""

    def instances(self, kind: type) -> Sequence[Any]:
        """What is offered of this class."""
        return self.offers.get(kind, ())
