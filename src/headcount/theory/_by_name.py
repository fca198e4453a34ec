"""Claims, facts and lemmas of a paper go to another process by name and parameters."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..core import BadArgument, Registry
from ..core._named import Call
from ._claim import Claim
from ._facts import facts
from ._registry import claims

_REGISTRIES: dict[str, Registry[Any]] = {"claim": claims, "fact": facts}


def named_claim(kind: str, name: str, factor: float, dropped: tuple[str, ...]) -> Claim:
    """The registered claim with its right side scaled and some hypotheses dropped."""
    claim: Claim = _REGISTRIES[kind][name]
    for hypothesis in dropped:
        claim = claim.without_hypothesis(hypothesis)
    return claim.with_bound_scaled(factor) if factor != 1.0 else claim


def call_of(claim: Claim) -> Call:
    """The call of `named_claim` that gives this claim again."""
    kept = {hypothesis.name for hypothesis in claim.hypotheses}
    for kind, registry in _REGISTRIES.items():
        if claim.id in registry:
            own: Claim = registry[claim.id]
            dropped = tuple(h.name for h in own.hypotheses if h.name not in kept)
            found = kind, claim.id, claim.factor / own.factor, dropped
            if _fields(named_claim(*found)) == _fields(claim):
                return named_claim, found
    fix = '@claims.named("paper/name") in a module of a paper, which the other process imports'
    problem = "is not the registered claim of this name, and claims travel by name"
    raise BadArgument("claim", claim.id, problem, fix=fix)


def _fields(claim: Claim) -> list[object]:
    return [type(claim), *(getattr(claim, f.name) for f in dataclasses.fields(claim))]
