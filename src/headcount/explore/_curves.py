"""The right sides of a paper's claims as functions of the width."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..theory import Claim
from ..theory._claim import Check
from ..theory._promise import Promised, claims_about, promised
from ._sizes import Sizes, setting_of, widest_drawn

LARGEST_POWER = 80
"""Curves go to the width 2^80; what the theorems ask for lies between 10^13 and 10^23."""
LOSS = "loss"
_CALLED = {LOSS: "training loss", "gap": "generalisation gap"}


class Ran(NamedTuple):
    """A run that was dropped on the picture: its sizes, the smallest and the last loss."""

    sizes: Sizes
    start: float
    smallest: float
    last: float
    diverged: int | None
    """The step after which the loss is no number, if there is one."""

    @classmethod
    def of(cls, sizes: Sizes, losses: Sequence[float]) -> Ran:
        """A run by its losses."""
        finite = [loss for loss in losses if math.isfinite(loss)] or [math.nan]
        lost = next((k for k, loss in enumerate(losses) if not math.isfinite(loss)), None)
        return cls(sizes, losses[0], min(finite), losses[-1], lost)

    @property
    def told(self) -> str:
        """How it went."""
        if self.diverged is not None:
            return f"Diverged at step {self.diverged}: smallest loss {self.smallest:.4g}."
        return f"Finished: loss {self.start:.4g} at the start, smallest {self.smallest:.4g}."


@dataclass(frozen=True)
class Curve:
    """What claims of one form promise at every width; several where they promise the same."""

    claims: tuple[str, ...]
    variant: str
    widths: tuple[int, ...]
    points: tuple[Promised, ...]
    here: Promised
    """At the width of the sliders."""

    @property
    def called(self) -> str:
        """The claims and the form, without the paper."""
        return f"{', '.join(name.split('/')[1] for name in self.claims)} ({self.variant})"

    def pieces(self) -> list[tuple[str, list[tuple[float, float]]]]:
        """The curve cut where what it says changes: (state, points)."""
        found: list[tuple[str, list[tuple[float, float]]]] = []
        for width, row in zip(self.widths, self.points, strict=True):
            if not math.isfinite(row.bound) or row.bound <= 0:
                continue
            point = (float(width), row.bound)
            if not found or found[-1][0] != state(row):
                before = found[-1][1][-1:] if found else []
                found.append((state(row), before))
            found[-1][1].append(point)
        return found


def state(row: Promised) -> str:
    """What a promise is worth: "fails" (nothing is promised), "vacuous", or "says" something."""
    if row.failing:
        return "fails"
    return "vacuous" if row.vacuous else "says"


def groups(paper: str) -> Mapping[str, list[tuple[Claim, str]]]:
    """What is drawn together: the claims about one quantity; any other claim alone."""
    found: dict[str, list[tuple[Claim, str]]] = {}
    for claim, form in claims_about(paper):
        found.setdefault(group_of(claim), []).append((claim, form))
    return dict(sorted(found.items(), key=lambda pair: pair[1][0][0].quantity != LOSS))


def group_of(claim: Claim) -> str:
    """The name of the group that a claim is drawn in."""
    return _CALLED.get(claim.quantity or "", f"{claim.id.split('/')[1]}: {claim.title}")


def curves(sizes: Sizes, group: str) -> list[Curve]:
    """The curves of a group, from the least width to 2^80 or to the widest start that is drawn."""
    here = setting_of(sizes)
    most = min(widest_drawn(here), 2.0**LARGEST_POWER)
    widths = tuple(
        2**k for k in range(LARGEST_POWER + 1)
        if 2**k <= most and 2**k % here.width_step == 0
    )  # fmt: skip
    settings = [here.resized(width=width) for width in widths]
    found: dict[tuple[object, ...], Curve] = {}
    for claim, form in groups(sizes.paper)[group]:
        points = tuple(promised(claim, form, one) for one in settings)
        key = (form, *((row.bound, state(row)) for row in points))
        before = found[key].claims if key in found else ()
        name = (*before, claim.id)
        found[key] = Curve(name, form, widths, points, promised(claim, form, here))
    return list(found.values())


class Lamp(NamedTuple):
    """A hypothesis with its margin, and who asks it."""

    check: Check
    asked_by: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """As a promise asks it: without room for rounding."""
        return self.check.value <= self.check.threshold


def lamps(sizes: Sizes, group: str) -> list[Lamp]:
    """Every hypothesis that the claims of a group ask of these sizes, each once."""
    setting = setting_of(sizes)
    found: dict[Check, list[str]] = {}
    for claim, form in groups(sizes.paper)[group]:
        _, checks = claim.promise(setting, form)
        for check in checks:
            found.setdefault(check, []).append(f"{claim.id.split('/')[1]} ({form})")
    return [Lamp(check, tuple(who)) for check, who in found.items()]


def same_but_width(one: Sizes, other: Sizes) -> bool:
    """Whether two runs are points of one curve."""
    return one == Sizes(**{**vars(other), "width": one.width})


def spanned(found: Sequence[Curve]) -> list[float]:
    """Every bound that has a place on a logarithmic axis."""
    return [row.bound for curve in found for row in curve.points
            if math.isfinite(row.bound) and row.bound > 0]  # fmt: skip
