"""Lemmas inside pytest: a test fails with the shrunk counterexample, as Hypothesis would show it.

def test_my_bound():
    assert_survives(my_bound, budget="small")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .theory import Claim, falsify, verify


def assert_survives(
    claim: Claim, variant: str | None = None, *, budget: str = "small", seed: int = 0
) -> None:
    """Fail if a search finds a counterexample; all variants are searched, or the one named."""
    __tracebackhide__ = True
    for form in claim.variants if variant is None else [claim.variant(variant)]:
        found = falsify(claim, form, budget=budget, seed=seed)
        if found.violated:
            more = f"\n\n{found.shown.python}" if found.shown is not None else ""
            raise AssertionError(_example(claim, form, found.points, found.message) + more)


def assert_verified(
    lemma: Claim, variant: str | None = None, *, boxes: int = 20_000, tolerance: float = 1e-9
) -> None:
    """Fail unless lhs <= rhs is proved on the whole domain (up to a factor 1 + tolerance)."""
    __tracebackhide__ = True
    for form in lemma.variants if variant is None else [lemma.variant(variant)]:
        found = verify(lemma, form, boxes=boxes, tolerance=tolerance)
        if found.answer != "proved":
            raise AssertionError(_example(lemma, form, found.instance, found.message))


def _example(claim: Claim, form: str, points: Mapping[str, Any], message: str) -> str:
    """The call that fails, one argument a line."""
    name = claim.id.rpartition(":")[2]
    said = f"{claim.id} ({claim.variants[form].text}): {message}"
    if not points:
        return said
    lines = [f"    {key}={value}," for key, value in points.items()]
    return "\n".join([said, f"Falsifying example: {name}(", *lines, ")"])
