"""What a claim promises at a setting: its right side, what is known without it, what fails."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..core import papers
from ..core._rounding import round_down
from ..training import TrainConfig
from ._claim import Check, Claim
from ._registry import claims
from ._setting import Setting


class Promised(NamedTuple):
    """The right side of one form of a claim at a setting, beside its trivial rival."""

    claim: str
    variant: str
    bound: float
    failing: tuple[Check, ...]
    """The hypotheses that do not hold: where there are any, nothing is promised."""
    trivial: float | None = None

    @property
    def value(self) -> float:
        """What is promised: infinity where nothing is."""
        return math.inf if self.failing or not math.isfinite(self.bound) else self.bound

    @property
    def worst(self) -> Check | None:
        """The hypothesis that fails worst, if one does."""
        return min(self.failing, key=lambda check: check.margin) if self.failing else None

    @property
    def vacuous(self) -> bool:
        """Whether as much is known without the claim."""
        return self.trivial is not None and self.trivial <= self.value < math.inf

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "claim": self.claim,
            "variant": self.variant,
            "bound": None if self.value == math.inf else self.bound,
            "trivial": self.trivial,
            "vacuous": self.vacuous,
            "failing": [check.to_json() for check in self.failing],
        }


def promised(claim: Claim, variant: str, setting: Setting) -> Promised:
    """What one form of a claim promises; hypotheses are asked without room for rounding."""
    bound, checks = claim.promise(setting, variant)
    failing = tuple(check for check in checks if not check.value <= check.threshold)
    return Promised(claim.id, variant, float(bound.rhs), failing, bound.trivial)


def known_without(trivial: float) -> str:
    """Why a bound or a target is vacuous, in words."""
    return f"vacuous: at most {round_down(trivial, 4)} is known without it"


def claims_about(paper: str, quantity: str | None = None) -> Iterator[tuple[Claim, str]]:
    """A paper's claims that bound this quantity, with each form that a setting can answer.

    Forms known to fail are left out, and measured ones, which need a run.
    """
    for claim in claims.of_paper(paper):
        if claim.bound is not None and quantity in (None, claim.quantity):
            for name, variant in claim.variants.items():
                if not variant.fails and name != "measured":
                    yield claim, name


def settings_of(config: TrainConfig, *, delta: float) -> dict[int, Setting]:
    """The setting of each seed; of the first alone where it does not depend on the seed."""
    of = papers.of_model(config.model).part("setting").of
    found: dict[int, Setting] = {}
    for seed in config.seeds:
        setting = of(config.model_copy(update={"seeds": (seed,)}), delta=delta)
        if setting == found.get(config.seeds[0]):
            return {config.seeds[0]: setting}
        found[seed] = setting
    return found
