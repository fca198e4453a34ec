"""What a verification says, in data and in words."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from ..core._rounding import ordered


class Answer(enum.StrEnum):
    """What a verification says."""

    PROVED = "proved"
    FALSE = "false"
    OPEN = "open"
    EMPTY = "empty"
    """No point of the domain meets the hypotheses: there is nothing to prove."""


@dataclass(frozen=True)
class Verification:
    """The outcome on the whole domain.

    `touching` says that the sides meet (or nearly do) where no face decides: there it is proved
    that lhs <= (1 + tolerance) rhs. `open_share` is the share of the domain that stays open.
    """

    claim: str
    variant: str
    answer: Answer
    boxes: int
    open_share: float
    touching: bool
    tolerance: float
    seconds: float
    instance: dict[str, Any] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    """Those of the counterexample."""
    sides: tuple[float, float] = (float("nan"), float("nan"))
    excess: str = ""
    """lhs - rhs at the counterexample."""
    admissible: bool | None = True
    """Whether a point meets the hypotheses; None: none was found, and none was ruled out."""
    problem: str = ""
    """Why no part of the domain can be decided."""

    @property
    def message(self) -> str:
        """One sentence for a reader."""
        if self.answer is Answer.FALSE:
            shown = ", ".join(f"{name}={value}" for name, value in self.instance.items())
            left, right = ordered(*self.sides, 9)
            if left == right:  # float64 does not tell them apart
                return f"false: {left} exceeds {right} by {self.excess} at {shown}"
            return f"false: {left} > {right} at {shown}"
        if self.problem:
            return f"open: {self.problem}"
        if self.answer is Answer.OPEN:
            return f"open: {self.open_share:.3g} of the domain is not decided"
        if self.answer is Answer.EMPTY:
            return "empty: no point of the domain meets the hypotheses, so nothing is said"
        proved = "proved on the whole domain"
        if self.touching:
            proved = (
                f"proved up to a factor 1 + {self.tolerance:g}: the sides meet inside the domain"
            )
        if self.admissible is None:
            return f"{proved}; no point was found that meets the hypotheses"
        return proved

    def to_json(self) -> dict[str, Any]:
        """The keys that `verify --json` prints."""
        return {
            "claim": self.claim,
            "variant": self.variant,
            "answer": str(self.answer),
            "boxes": self.boxes,
            "open_share": self.open_share,
            "touching": self.touching,
            "tolerance": self.tolerance,
            "instance": self.instance,
            "admissible": self.admissible,
            "message": self.message,
        }
