"""Every registered claim: it holds where it should, it can fail, and its slow twin agrees."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import headcount
from headcount.core import float64, stream
from headcount.theory import (
    Budget,
    Claim,
    Kind,
    Outcome,
    claims,
    falsify,
    judge,
    judge_frequency,
    read_certificate,
    recheck,
    shipped_certificates,
)
from headcount.theory.domain import arrays_of
from headcount.theory.slow import FLOATS
from headcount.theory.slow_sides import slow_checks, slow_data, slow_sides

BUDGET = Budget(random=1000, restarts=4, steps=0)
"""Draws and hops around the worst of them. Ascents are compiled for minutes, so they are left to
tests/theory/test_power.py and to `make power`; what they found is on file and is judged here."""
SEARCHED = [name for name, claim in claims.items() if claim.families]
TWINNED = [name for name, claim in claims.items() if claim.naive is not None]
IDENTITIES = [name for name in SEARCHED if claims[name].kind is Kind.IDENTITY]
FREQUENCIES = [name for name, claim in claims.items() if claim.experiment is not None]
FALSE = [
    (name, variant)
    for name, claim in claims.items()
    for variant, form in claim.variants.items()
    if form.fails
]


@functools.cache
def shortened(name: str) -> Claim:
    """The claim with one family, as one object: what is compiled for it is used again."""
    claim = claims[name]
    return replace(claim, families=claim.families[:1], experiment=None)


def searched(name: str, variant: str) -> Any:
    """One search: 1,000 draws, hops around the worst, constructions, what is on file."""
    return falsify(shortened(name), variant, budget=BUDGET)


def tameness(instance: object) -> float:
    """How far the sizes of the arrays are from one, in powers of e."""
    sizes = [float(np.sqrt(np.mean(leaf**2))) for leaf in jax.tree.leaves(instance)]
    return max(abs(np.log(max(size, 1e-300))) for size in sizes)


@functools.cache
def tame_instances(claim: Claim) -> list[object]:
    """Four of 32 draws, tamest first: many digits are asked for where float64 can give them."""
    if not claim.families:
        assert claim.experiment is not None
        rng = np.random.default_rng(list(claim.id.encode()))
        batch = claim.experiment.draw(claim.experiment.cases[0], rng, 1)
        return [jax.tree.map(lambda leaf: leaf[0], batch)]
    family = claim.families[0]
    batch = family.draw(np.random.default_rng(list(claim.id.encode())), 32)
    draws = [jax.tree.map(lambda leaf: jnp.asarray(leaf[k]), batch) for k in range(32)]  # noqa: B023
    with float64():  # projections are slow: of the likely ones only
        projected = [family.project(draw) for draw in sorted(draws, key=tameness)[:4]]
    return [jax.tree.map(np.asarray, one) for one in sorted(projected, key=tameness)]


def instance_of(claim: Claim) -> object:
    """The tamest."""
    return tame_instances(claim)[0]


@pytest.mark.parametrize("name", SEARCHED)
def test_a_search_breaks_nothing_and_a_sharp_form_looks_no_looser(name: str) -> None:
    """Whichever form is searched, every instance met is judged under all; up to rounding."""
    forms, default = claims[name].variants, claims[name].default
    found = {default: searched(name, default)}
    assert found[default].instances >= BUDGET.random
    assert not found[default].violated, found[default].message
    if "sharp" not in forms:
        return
    form = next(v for v in ("printed", "v2", "corrected") if v in forms and not forms[v].fails)
    found |= {variant: searched(name, variant) for variant in {form, "sharp"} - {default}}
    printed, sharp = found[form], found["sharp"]
    assert sharp.worst_ratio >= printed.worst_ratio * (1 - 1e-8), (printed.message, sharp.message)


@pytest.mark.parametrize("name", [n for n in IDENTITIES if n != "arda2026/remark-6"])
def test_a_scaled_side_breaks_an_identity(name: str) -> None:
    """Where its terms do not cancel to a millionth, which is so at one of the draws."""
    instances = tame_instances(claims[name])
    assert {judge(claims[name], one).outcome for one in instances} == {Outcome.HOLDS}
    broken = claims[name].with_bound_scaled(1 + 1e-6)
    assert Outcome.VIOLATED in {judge(broken, one).outcome for one in instances}


def test_an_unpaired_start_is_outside_remark_6_and_breaks_it() -> None:
    """At one of the draws: where all tokens are zero, any start gives zero."""
    claim = claims["arda2026/remark-6"]
    dropped, found = claim.without_hypothesis("paired initialisation with |c| = 1"), set()
    for instance in tame_instances(claim):
        shift = np.arange(4.0).reshape(2, 2)
        unpaired = replace(instance, U0=instance.U0 + shift)  # type: ignore
        outside = judge(claim, unpaired)
        assert outside.outcome is Outcome.NOT_APPLICABLE
        assert "paired" in outside.message
        found.add(judge(dropped, unpaired).outcome)
    assert Outcome.VIOLATED in found


@pytest.mark.parametrize("name", TWINNED)
def test_the_slow_twin_agrees_with_the_fast_path(name: str) -> None:
    claim = claims[name]
    if claim.naive is None or (not claim.families and claim.experiment is None):
        return  # an identity, or a claim about runs: its own tests compare its paths
    instance = instance_of(claim)
    data = slow_data(FLOATS, arrays_of(instance))
    for variant in claim.variants:
        sides = jax.jit(claim.sides, static_argnums=1)(instance, variant)
        lhs, rhs = claim.naive(FLOATS, data, variant)
        if claim.kind is Kind.IDENTITY:
            gap = np.max(np.abs(np.ravel(lhs) - np.ravel(rhs)))
            size = np.max(np.abs(np.ravel(rhs)))
            assert (gap <= 1e-9 * size) == (not claim.variants[variant].fails)
            if name == "arda2026/remark-6":
                continue
            for slow, fast in ((lhs, sides.lhs), (rhs, sides.rhs)):
                np.testing.assert_allclose(np.ravel(slow), np.ravel(fast), rtol=1e-8, atol=1e-9)
        else:
            np.testing.assert_allclose([lhs, rhs], [sides.lhs, sides.rhs], rtol=1e-8, atol=1e-13)


ROOMS = f"{Path(headcount.__file__).parent}{os.sep}"
ENGINE = ("core", "theory")
"""Layers that both sides may use: numbers, domains, the declaration of claims."""
WORDS = {"_tier", "_stretch", "form_of", "tier_of"}
"""What the name of a variant stands for."""


def functions_called(work: Callable[[], object]) -> set[CodeType]:
    """Our own functions that run in the meantime, those of the engine aside."""
    seen: set[CodeType] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOMS):
            seen.add(frame.f_code)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return {c for c in seen if not c.co_filename.removeprefix(ROOMS).startswith(ENGINE)}


def is_right_side(code: CodeType) -> bool:
    """A formula in the table k of constants is written once; the constants themselves are not."""
    return code.co_varnames[:1] == ("k",)


@pytest.mark.parametrize("name", [name for name in SEARCHED if claims[name].naive is not None])
def test_the_slow_twin_shares_no_code_with_the_fast_path(name: str) -> None:
    claim = claims[name]
    instance, variant = instance_of(claim), claim.default
    data = arrays_of(instance)

    def fast() -> None:
        jax.eval_shape(lambda i: claim.sides(i, variant).lhs, instance)  # always traced anew
        for hypothesis in claim.hypotheses:
            hypothesis.check(instance, variant)

    def slow() -> None:
        slow_sides(claim, FLOATS, data, variant)
        slow_checks(claim, FLOATS, data, variant)

    quick, careful = functions_called(fast), functions_called(slow)
    assert quick
    assert careful
    shared = {c.co_qualname for c in quick & careful if not is_right_side(c)}
    assert shared <= WORDS


@pytest.mark.parametrize("name", [name for name in SEARCHED if "v1" in claims[name].variants])
def test_two_texts_of_a_paper_are_drawn_where_they_differ(name: str) -> None:
    """In a side or in what a hypothesis allows; at d = 1, say, both Hessian bounds are one."""
    claim = claims[name]
    first = claim.default if claim.default != "sharp" else "v2"
    for family in claim.families:
        point = family.sample(stream(2, "texts", name))
        found = []
        for variant in (first, "v1"):
            limits = [h.check(point, variant).threshold for h in claim.hypotheses]
            found.append((slow_sides(claim, FLOATS, arrays_of(point), variant), limits))
        if found[0] != found[1]:
            return
    pytest.fail(f"no family of {name} tells {first} from v1")


@pytest.mark.parametrize("name", SEARCHED)
def test_draws_meet_the_hypotheses(name: str) -> None:
    claim = claims[name]
    instance = instance_of(claim)
    data = slow_data(FLOATS, arrays_of(instance))
    for hypothesis in claim.hypotheses:
        check = hypothesis.check(instance, claim.default)
        assert check.holds, check
        if hypothesis.naive is None:
            continue
        if hypothesis.naive is None:
            continue
        slow = float(hypothesis.naive(FLOATS, data))
        np.testing.assert_allclose(slow, check.value, rtol=1e-12, atol=1e-12)


SLOW = 200
"""Repetitions of the slow twin."""
RARE = 1e-6
"""Probability with which a right count would be called wrong."""


def slow_count_is_possible(slow: int, probability: tuple[float, float]) -> bool:
    """Whether `slow` of SLOW failures may come from a probability in the interval."""
    low, high = probability
    too_many = stats.binom.sf(slow - 1, SLOW, high)
    too_few = stats.binom.cdf(slow, SLOW, low)
    return min(too_many, too_few) > RARE


@pytest.mark.parametrize("name", FREQUENCIES)
def test_failures_are_no_more_frequent_than_delta(name: str) -> None:
    """The slow twin fails as often as the fast path; it could be seen to fail too often."""
    claim = claims[name]
    assert claim.experiment is not None
    for case in claim.experiment.cases:
        verdict = judge_frequency(claim, case, repetitions=1000)
        assert verdict.outcome is not Outcome.VIOLATED, (case, verdict.message)
        seen = verdict.frequency
        probability = (
            tuple(stats.binomtest(seen.exceedances, seen.repetitions).proportion_ci(1 - RARE))
            if seen is not None
            else (verdict.lhs, min(verdict.rhs, 1.0))
        )
        slow = claim.experiment.exceeds_naively(case, claim.default, 0, SLOW)
        assert slow_count_is_possible(slow, probability), (case, slow, probability)
        assert not slow_count_is_possible(SLOW // 4, probability)


@pytest.mark.parametrize("name", FREQUENCIES)
def test_a_frequency_test_can_fail(name: str) -> None:
    claim = claims[name]
    assert claim.experiment is not None
    broken = claim.with_bound_scaled(1e-3)
    verdict = judge_frequency(broken, claim.experiment.cases[-1], repetitions=200)
    assert verdict.outcome is Outcome.VIOLATED


@pytest.mark.parametrize(("name", "variant"), FALSE)
def test_a_false_variant_has_a_certificate_and_a_corrected_default(name: str, variant: str) -> None:
    claim = claims[name]
    assert claim.default != variant
    shipped = [read_certificate(path) for path in shipped_certificates()]
    own = [c for c in shipped if (c.claim, c.variant) == (name, variant)]
    assert own, "no certificate is shipped"
    for certificate in own:
        result = recheck(certificate)
        assert result.confirmed, result.message


@pytest.mark.parametrize("name", list(claims))
def test_a_claim_documents_itself(name: str) -> None:
    claim = claims[name]
    for text in (claim.title, claim.statement, claim.latex, claim.equations):
        assert text.strip()
    assert all(form.text for form in claim.variants.values())
    assert claim.paper in ("arda2026", "deora2024", "wu2023")
