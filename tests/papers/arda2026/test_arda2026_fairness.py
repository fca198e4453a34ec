"""What we say of arda2026 is what it prints: quotations, roles, left sides, rivals."""

from __future__ import annotations

import math
import re

import jax
import numpy as np
import pytest
import xarray as xr

from headcount.core import float64, stream
from headcount.papers import arda2026
from headcount.papers.arda2026.figures import fig2, fixed_width, samples, sentences, tokens
from headcount.theory import Kind, Outcome, claims, judge

OURS = {name: claims[name] for name in claims if name.startswith("arda2026/")}
REFUTED = {
    "definition-1 misread": "ours",
    "informal-theorem implied": "implication",
    "inner-product printed": "step",
    "lemma-2b-step implied": "implication",
    "lemma-4 display": "step",
    "lemma-5 printed": "statement",
    "lemma-5-centring implied": "implication",
    "lemma-5-independence implied": "implication",
    "lemma-5-step printed": "step",
    "lemma-6-display printed": "step",
    "proposition-2-cutoff bounded": "informal",
    "psi-2 printed": "step",
    "subgaussian-tail implied": "implication",
}


def test_an_upper_bound_has_a_one_sided_test() -> None:
    """O(L) memory, a logarithm of n, no growth with T, a rate in tau: less is no failure."""
    assert samples.NO_POWER[0] == tokens.NO_GROWTH[0] == fixed_width.AT_LEAST_HALF[0] == -math.inf
    data = xr.Dataset(
        {"state_bytes": (("model", "L"), [[8.0, 8.0], [1.0, 1.0]])},
        coords={"model": ["Transformer", "IndRNN"], "L": [4, 16]},
    )
    assert [found.outcome for found in fig2._memory(data)] == ["confirmed", "confirmed"]
    assert {found.source for found in fig2._memory(data)} == {sentences.MEMORY}
    assert fig2._memory(data.assign(state_bytes=data.state_bytes * data.L**1.5))[0].outcome == (
        "not confirmed"
    )


def test_each_refuted_form_is_called_by_its_role() -> None:
    """One numbered statement is false as printed: the main text's Lemma 5."""
    refuted = {
        f"{name.removeprefix('arda2026/')} {key}": form
        for name, claim in OURS.items()
        for key, form in claim.forms.items()
        if form.fails
    }
    assert {name: form.role for name, form in refuted.items()} == REFUTED
    for name, form in refuted.items():
        assert ("false as printed" in form.called) == (name == "lemma-5 printed")
        assert form.role == "ours" or (form.defence and form.checked), name
        assert form.becomes == ("untouched" if form.role == "step" else ""), name
    assert [name for name, form in refuted.items() if name.endswith("printed")] == [
        name for name in refuted if REFUTED[name] in ("statement", "step") and name[8:] != "display"
    ]


def test_the_informal_theorem_holds_where_its_derivation_does_not() -> None:
    """At the shipped point the loss is far below the printed rate; (46)'s right side is not."""
    claim = claims["arda2026/informal-theorem"]
    (point,) = claim.targets()
    with float64():
        k = arda2026.constants.Constants(point, "printed")
        largest_loss, bound = float(k.known_loss), float(arda2026.claims.rates.average(k))
        rate = float(arda2026.claims.rates.rate(point, "implied"))
    assert largest_loss == pytest.approx((math.sqrt(100) + 3 + 9) ** 2)
    assert largest_loss < 1e-4 * rate
    assert bound > 1e4 * rate


def test_the_papers_own_factor_2_keeps_the_shipped_signs_inside_their_tail() -> None:
    """(23) has K = 2: with it the tail that the generic implication misses is a theorem here."""
    claim = claims["arda2026/subgaussian-tail"]
    signs = claim.on(N=np.array(60.0), level=np.array(40.0))
    verdict = judge(claim, signs, "implied")
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.lhs < 2 * math.exp(-(40.0**2) / 60 / 4)


@pytest.mark.parametrize("T", [11, 101, 1001])
def test_at_the_cutoff_no_constant_serves_every_length(T: int) -> None:
    """|dh_T/dw| = (T - 1)/8 for a logistic unit at s1 |w| = 1."""
    claim = claims["arda2026/proposition-2-cutoff"]
    verdict = judge(claim, arda2026.claims.proposition_2.at_the_boundary(T), "corrected")
    assert verdict.lhs == pytest.approx((T - 1) / 8, rel=1e-9)
    assert verdict.outcome is Outcome.HOLDS


def heads(count: int):
    family = claims["arda2026/eq-17"].families[0]
    return [family.sample(stream(seed, "heads")) for seed in range(count)]


def test_eq_17_is_about_the_whole_hessian_with_the_mixed_block_twice() -> None:
    """||Hess z||^2 = 2 |M|^2 |q|^2 + |the W-W block|^2, from M and third moments by loops."""
    for head in heads(5):
        alpha = np.exp(head.X @ head.W @ head.q)
        alpha /= alpha.sum()
        centred = head.X - alpha @ head.X
        M = np.einsum("t,ti,tj->ij", alpha, centred, centred)
        third = np.einsum("t,ti,tj,t->ij", alpha, centred, centred, centred @ head.U)
        q = head.q @ head.q
        verdict = judge(claims["arda2026/eq-17"], head, "printed")
        block = judge(claims["arda2026/eq-17-block"], head, "printed")
        assert block.lhs == pytest.approx(np.linalg.norm(third) * q, rel=1e-8, abs=1e-12)
        assert verdict.lhs == pytest.approx(2 * np.sum(M**2) * q + block.lhs**2, rel=1e-8)
        assert verdict.rhs == pytest.approx(2 + 64 * head.U @ head.U)


@pytest.mark.parametrize("name", ["eq-15", "eq-17", "eq-23"])
def test_a_missing_display_is_a_claim_and_is_attained_in_its_sharp_form(name: str) -> None:
    claim = claims[f"arda2026/{name}"]
    assert claim.forms["printed"].role == "step"
    points = claim.targets()
    ratios = {f: max(judge(claim, point, f).ratio for point in points) for f in claim.variants}
    assert ratios["printed"] <= 1
    assert 0.99 < ratios["sharp"] <= 1


def test_no_formula_has_a_command_glued_to_what_follows() -> None:
    assert [n for n, c in OURS.items() if re.search(r"\\(le|ge)(?![a-z]|[^A-Za-z])", c.latex)] == []


def test_the_sharp_form_of_eq_37_says_all_that_it_does() -> None:
    assert "root of the sum" in claims["arda2026/eq-37"].forms["sharp"].text


def test_every_inequality_has_a_rival_or_says_why_not() -> None:
    for name, claim in OURS.items():
        if claim.kind is Kind.IDENTITY or claim.no_rival:
            continue
        key = stream(4, name)
        points = [family.sample(key) for family in claim.families[:1]] or list(claim.targets()[:1])
        if claim.experiment is not None and not points:
            drawn = claim.experiment.draw(claim.experiment.cases[0], np.random.default_rng(0), 1)
            points = [jax.tree.map(lambda leaf: leaf[0], drawn)]
        with float64():
            sides = jax.eval_shape(lambda i, own=claim: own.sides(i, own.default), points[0])
        assert sides.trivial is not None, name


def test_a_bound_above_its_rival_is_vacuous() -> None:
    claim = claims["arda2026/fact-4"]
    point = claim.families[0].sample(stream(1, "norms")).changed(t=np.array(1e-3))
    assert judge(claim, point, "printed").outcome is Outcome.VACUOUS
