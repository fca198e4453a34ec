"""Every claim in ball arithmetic: both evaluations run, are narrow and agree, in every family."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from flint import arb

from headcount.core import stream
from headcount.theory import Claim, Kind, claims
from headcount.theory.balls import Ball, BallProgram
from headcount.theory.domain import arrays_of
from headcount.theory.slow import balls
from headcount.theory.slow_sides import slow_data

BITS = 200
BY_QUADRATURE = (
    "arda2026/eq-23",
    "arda2026/lemma-4-limit",
    "arda2026/lemma-6b",
    "arda2026/remark-8",
)
"""Integrals: their enclosures leave room for the error of the rule."""

OF_HALVES = "arda2026/remark-6"
"""f = 0: its slow twin compares the two halves of the heads."""


def instances(claim: Claim) -> list[Any]:
    """One instance of each family, the first construction, one draw of the experiment."""
    key = stream(2, "balls", claim.id)
    found = [family.sample(key) for family in claim.families]
    found += claim.targets()[:1]
    if claim.experiment is not None and not found:
        batch = claim.experiment.draw(
            claim.experiment.cases[0], np.random.default_rng(int(jax.random.bits(key))), 1
        )
        found.append(jax.tree.map(lambda leaf: leaf[0], batch))
    return found


def entries(value: Any) -> list[arb]:
    """The balls of either evaluation, in order."""
    if isinstance(value, Ball):
        return [value.arb]
    if isinstance(value, (list, tuple)):
        return [ball for part in value for ball in entries(part)]
    if isinstance(value, np.ndarray):
        return value.ravel().tolist()
    return [value]


def together(first: Any, second: Any) -> bool:
    pairs = zip(entries(first), entries(second), strict=True)
    return all(x.is_finite() and y.is_finite() and x.overlaps(y) for x, y in pairs)


@pytest.mark.parametrize("name", [n for n, c in claims.items() if instances(c)])
def test_both_evaluations_run_on_balls_and_agree(name: str) -> None:
    claim = claims[name]
    apart: dict[str, list[bool]] = {form: [] for form in claim.variants}
    for instance in instances(claim):

        def evaluate(i: Any, claim: Claim = claim) -> Any:
            sides = {v: tuple(claim.sides(i, v)[:2]) for v in claim.variants}
            return sides, [h.value(i) for h in claim.hypotheses]

        sides, values = BallProgram(evaluate, instance)(BITS)
        assert all(ball.is_finite() for ball in entries(values))
        with balls(BITS) as num:
            data = slow_data(num, arrays_of(instance))
            twin = claim.naive
            slow_sides = {v: twin(num, data, v) for v in claim.variants} if twin else sides
            slow_values = {h.name: h.naive(num, data) for h in claim.hypotheses if h.naive}
        for hypothesis, fast in zip(claim.hypotheses, values, strict=True):
            assert together(fast, slow_values.get(hypothesis.name, fast))
        for variant, form in claim.variants.items():
            (lhs, rhs), (slow_lhs, slow_rhs) = sides[variant], slow_sides[variant]
            if name != OF_HALVES:
                assert together(lhs, slow_lhs)
                assert together(rhs, slow_rhs)
            if claim.kind is Kind.IDENTITY:
                apart[variant] += [not together(lhs, rhs), not together(slow_lhs, slow_rhs)]
                assert form.fails or not any(apart[variant])
            # A program's own constants, such as 1/sqrt(m), are widened by units in the last place.
            narrow = 1e-8 if name in BY_QUADRATURE else 1e-18 if claim.naive else 1e-12
            balls_found = entries(slow_sides[variant])
            assert all(ball.rad() < narrow * (1 + abs(ball)) for ball in balls_found)
    if claim.kind is Kind.IDENTITY:  # a false form may hold where all is zero
        assert all(any(apart[form]) for form, variant in claim.variants.items() if variant.fails)
