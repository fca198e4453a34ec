"""How deora2024 declares its claims: what most of them share, written once."""

from __future__ import annotations

import functools

from ...theory import declare
from ...theory.declare import false as false

claim = functools.partial(declare.claim, "deora2024")
identity = functools.partial(declare.identity, "deora2024")


def tier_of(variant: str) -> str:
    """The Hessian bound that a form is stated with."""
    return variant if variant in ("v1", "sharp") else "v2"


HESSIAN_TIERS = {
    "v2": ("the later text, with an extra factor d", "E9"),
    "v1": ("the first text, without it: its proof has a slip, the statement is true", "E9"),
    "sharp": ("free of d: R^2 beta_1 for beta_3", "E9"),
}
