"""What a claim answers: the outcome with its numbers, its hypotheses and a message."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ._claim import Check
from ._frequency import Frequency
from ._in_notebooks import VerdictShown

ROUNDING = 1e-9
"""A ratio above 1 + ROUNDING is a violation; below, the excess could be float64 rounding."""

NOT_MEASURED = float("nan")


class Outcome(enum.StrEnum):
    """The five answers of a claim."""

    HOLDS = "holds"
    VACUOUS = "holds vacuously"
    NOT_APPLICABLE = "not applicable"
    VIOLATED = "violated"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, repr=False)
class Verdict(VerdictShown):
    """The outcome of one claim on one instance, run or family of seeds.

    Where a hypothesis fails there is no right side and no ratio: both are NaN.
    """

    claim: str
    variant: str
    outcome: Outcome
    message: str
    lhs: float = NOT_MEASURED
    rhs: float = NOT_MEASURED
    ratio: float = NOT_MEASURED
    hypotheses: tuple[Check, ...] = ()
    constants: Mapping[str, float] = field(default_factory=dict)
    frequency: Frequency | None = None
    direction: str = "upper"
    """What the bound is: "upper", "lower" (the left side is the bound), or "equality"."""

    @property
    def measured(self) -> float:
        """The side that was measured."""
        return self.rhs if self.direction == "lower" else self.lhs

    @property
    def bound(self) -> float:
        """The side that the claim gives."""
        return self.lhs if self.direction == "lower" else self.rhs

    @property
    def difference(self) -> float:
        """Of an equality: by how much its sides differ, relatively; NaN else."""
        return self.ratio * ROUNDING if self.direction == "equality" else NOT_MEASURED

    def to_json(self) -> dict[str, Any]:
        """The keys that `audit --json` prints for a claim."""
        return {
            "id": self.claim,
            "variant": self.variant,
            "outcome": str(self.outcome),
            "lhs": self.lhs,
            "rhs": self.rhs,
            "direction": self.direction,
            "measured": self.measured,
            "bound": self.bound,
            "ratio": NOT_MEASURED if self.direction == "equality" else self.ratio,
            "difference": self.difference,
            "hypotheses": [check.to_json() for check in self.hypotheses],
            "constants": dict(self.constants),
            "message": self.message,
        }
