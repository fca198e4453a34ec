"""What `sharpen` says: an interval of the best constant at each size, and laws that both ends bear.

A law needs more than a table of lower ends: these may lie low where a search is hard.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core._rounding import round_down, round_up
from ._closed_form import ClosedForm
from ._lemma_report import SizeRatio, growth_of

_SAME = 0.03
"""Both ends bear a law if they are no further apart than this, relatively."""


@dataclass(frozen=True)
class Best:
    """The best constant at one choice of sizes: lhs <= c rhs fails below `found`.

    It holds from `proved` on.
    """

    sizes: Mapping[str, int]
    found: float | None
    """The lower end, proved in balls at a point and rounded down; None where no ball tells it."""
    proved: float | None
    """The upper end, proved on the whole domain; None where it is not."""
    value: str = ""
    """The ratio at the extremal point, as a decimal of `digits` digits."""
    digits: int = 0
    """To how many digits the point is polished; 0 where it is only the best that was found."""
    form: ClosedForm | None = None
    point: Mapping[str, Any] = field(default_factory=dict)
    """Nested lists of decimals; of what tends to zero, infinity or another array the direction."""
    approached: tuple[str, ...] = ()
    kind: str = "not polished"
    problem: str = ""
    """Why there is no upper end."""

    @property
    def shown(self) -> str:
        """The interval for a reader."""
        if self.kind == "unbounded":
            return "no constant: the ratio grows without bound"
        low = "?" if self.found is None else round_down(self.found, 12)
        if self.proved is None:
            return f"best constant at least {low}; no upper end: {self.problem}"
        return f"best constant in [{low}, {round_up(self.proved, 12)}]"

    @property
    def guess(self) -> str:
        """The number in closed form, as a guess."""
        if self.form is None:
            return ""
        number = self.value if len(self.value) <= 18 else f"{self.value[:18]}..."
        return f"{number} = {self.form.text} to {self.form.digits} digits (a guess)"

    @property
    def where(self) -> str:
        """The extremal point in one line, cut to numbers that can be read."""
        how = f" as {', '.join(self.approached)}" if self.approached else ""
        points = ", ".join(f"{name}={_brief(x)}" for name, x in self.point.items())
        return f"{self.kind}{how}: {points}"

    def to_json(self) -> dict[str, Any]:
        """The keys of one size in `sharpen --json`."""
        return {
            "sizes": dict(self.sizes),
            "found": self.found,
            "proved": self.proved,
            "value": self.value,
            "digits": self.digits,
            "closed_form": None if self.form is None else self.form.text,
            "closed_form_digits": 0 if self.form is None else self.form.digits,
            "point": dict(self.point),
            "approached": list(self.approached),
            "extremum": self.kind,
            "problem": self.problem,
        }


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_brief, value))}]"
    return value if len(value) <= 12 else f"{float(value):.8g}"


@dataclass(frozen=True)
class Sharpened:
    """The best constants of a claim, lhs <= c rhs with the right side as it is declared."""

    claim: str
    variant: str
    rows: tuple[Best, ...]
    instances: int
    seconds: float

    @property
    def law(self) -> tuple[str, ...]:
        """How the best constant grows or falls with a size, where that is borne out."""
        return law_of(self.rows)

    @property
    def message(self) -> str:
        """One sentence for a reader."""
        ends = [row for row in self.rows if row.found is not None]
        if not ends:
            return "no ratio is enclosed in balls: there is no lower end"
        largest = max(ends, key=lambda row: row.found or 0.0)
        sizes = ", ".join(f"{k}={v}" for k, v in largest.sizes.items())
        return f"{largest.shown}{f' (at {sizes})' if len(self.rows) > 1 and sizes else ''}"

    def to_json(self) -> dict[str, Any]:
        """The keys that `sharpen --json` prints; those of the largest constant come first."""
        largest = max(self.rows, key=lambda row: row.found or 0.0)
        own = {k: v for k, v in largest.to_json().items() if k != "sizes"}
        return {
            "claim": self.claim,
            "variant": self.variant,
            **own,
            "at": dict(largest.sizes),
            "law": list(self.law),
            "per_size": [row.to_json() for row in self.rows],
            "instances": self.instances,
            "seconds": self.seconds,
        }


def law_of(rows: Sequence[Best]) -> tuple[str, ...]:
    """One sentence for each size on which the best constant depends by a law; often none.

    That it falls is told only if the upper ends fall so: a point of few tokens may be one of many,
    and then nothing falls. That it grows is a matter of lower ends, which are proved; an upper end
    that is known must agree. That it is constant is no law but what the table shows.
    """
    if any(row.found is None or row.kind == "unbounded" for row in rows):
        return ()
    lower = growth_of([SizeRatio(row.sizes, row.found or 0.0) for row in rows])
    proved = all(row.proved is not None for row in rows)
    close = all(
        row.proved is not None and math.isclose(row.proved, row.found or 0.0, rel_tol=_SAME)
        for row in rows
    )
    told = []
    for sentence in lower:
        rest = sentence.partition("the worst ratio ")[2]
        verb = rest.split()[0] if rest else ""
        if verb == "grows" and not proved:
            told.append(f"of what the search found, the best constant {rest}")
        elif verb in ("grows", "falls") and close:
            told.append(f"at these sizes, proved from both sides, the best constant {rest}")
    return tuple(told)
