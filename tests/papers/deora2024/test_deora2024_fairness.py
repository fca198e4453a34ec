"""Fair to the word: quotations are the paper's, refutations are called what they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headcount.core import float64
from headcount.papers import deora2024
from headcount.theory import Outcome, claims, judge, read_certificate, shipped_certificates

OWN = list(claims.of_paper("deora2024"))
FORMS = [(claim.id, name) for claim in OWN for name in claim.forms]
REFUTED = [(c, n) for c, n in FORMS if claims[c].forms[n].fails]
SHIPPED = {
    (one.claim, one.variant): one
    for one in map(read_certificate, shipped_certificates())
    if one.claim.startswith("deora2024/")
}


def at(claim: str, form: str) -> Any:
    """The point of the shipped certificate."""
    return claims[claim].instance_class(**SHIPPED[claim, form].instance)


ROLES = {
    "statement": {
        "eq-121", "fact-2", "lemma-12", "lemma-18", "lemma-2", "proposition-3", "proposition-7",
    },
    "step": {"eq-21", "eq-24", "lemma-17-mean"},
    "informal": {"corollary-2-heads", "corollary-2-step", "eq-3", "theorem-1-step"},
    "implication": {"margin-order", "proposition-3"},
    "reading": {"lemma-5-gradient"},
    "assumption": {"assumption-3"},
}  # fmt: skip


def test_refuted_forms_have_the_roles_that_the_paper_gives_them() -> None:
    found: dict[str, set[str]] = {}
    for claim, name in REFUTED:
        found.setdefault(claims[claim].forms[name].role, set()).add(claim.split("/")[1])
    assert found == ROLES


@pytest.mark.parametrize(("claim", "name"), REFUTED)
def test_a_refuted_form_is_defended_checked_and_called_by_its_role(claim: str, name: str) -> None:
    form = claims[claim].forms[name]
    assert form.defence
    assert form.checked
    assert ("false as printed" in form.called) == (form.role == "statement")
    assert (claim, name) in SHIPPED


@pytest.mark.parametrize("claim", [c for c, n in REFUTED if claims[c].forms[n].role == "statement"])
def test_what_is_false_as_printed_fails_where_its_hypotheses_hold(claim: str) -> None:
    point = at(claim, "printed")
    verdict = judge(claims[claim], point, "printed")
    assert verdict.outcome is Outcome.VIOLATED
    assert all(check.holds for check in verdict.hypotheses)
    assert judge(claims[claim], point, "corrected").outcome is not Outcome.VIOLATED


def test_lemma_5_is_about_the_full_read_out() -> None:
    """It was called false for pooling, of which it does not speak."""
    claim = claims["deora2024/lemma-5-gradient"]
    point = at(claim.id, "same-constant")
    assert point.readout == "pooling"
    assert judge(claim, point, "printed").outcome is Outcome.NOT_APPLICABLE
    assert judge(claim, point, "same-constant").outcome is Outcome.VIOLATED
    full = deora2024.records.opposite_model("full").changed(X=np.ones((1, 2, 1)))
    np.testing.assert_allclose(judge(claim, full, "printed").ratio, 1.0)


def test_gamma_star_holds_at_the_start_of_102_under_both_readings() -> None:
    """What was refuted, uniform signs at our centre zeta/4, nobody printed."""
    claim = claims["deora2024/eq-119"]
    assert not any(form.fails for form in claim.forms.values())
    still = deora2024.mixture.quiet()
    for form in ("printed", "uniform", "corrected"):
        assert judge(claim, still, form).outcome is Outcome.HOLDS
    with float64():
        printed, uniform = (claim.sides(still, f).rhs for f in ("printed", "uniform"))
        centred = claim.sides(still, "corrected")
    np.testing.assert_allclose(uniform, centred.rhs)  # half of twice the attention part
    assert printed > uniform
    np.testing.assert_allclose(centred.lhs, centred.rhs)  # attained


def test_lemma_2_fails_for_every_constant() -> None:
    claim = claims["deora2024/lemma-2"]
    point = at(claim.id, "printed")
    for C in (1e-3, 1.0, 1e3, 1e6):
        rate = np.sqrt(3) + np.sqrt(np.log(4))
        n_1 = (8 * C * rate / 0.5) ** 2  # beyond, P is below half of zeta S/sqrt(8)
        one = point.changed(C=np.asarray(C), n_1=np.ceil(np.asarray(max(n_1, 1.0))))
        assert judge(claim, one, "printed").outcome is Outcome.VIOLATED
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], (50, 40))
    p_1 = 0.25 * (np.mean(y[..., None] * np.stack([y > 0, y < 0], -1), 1) - [1, -1])
    assert np.min(np.linalg.norm(p_1, axis=1)) >= 0.5 / np.sqrt(8) - 1e-15


def test_section_7_is_judged_by_the_margin_that_it_speaks_of() -> None:
    claim = claims["deora2024/proposition-3"]
    point = at(claim.id, "section-7")
    with float64():
        assert np.ndim(claim.sides(point, "section-7").lhs) == 0


def test_p2_is_asked_with_its_probability_and_lemmas_14_and_15_with_any_heads() -> None:
    signed = claims["deora2024/proposition-2-2"].on
    assert {"delta", "n"} <= set(signed.spaces)
    heads = claims["deora2024/lemma-14"].on
    assert {"delta", "n", "H"} <= set(heads.spaces)
    assert claims["deora2024/lemma-15"].on is heads


@pytest.mark.parametrize("name", ["corollary-3", "corollary-5", "theorem-3"])
def test_bounds_above_the_loss_at_the_start_are_vacuous(name: str) -> None:
    rows = deora2024.where_it_applies("sharp", n=4, K=20)
    found = {row.verdict.claim: row.verdict for row in rows}[f"deora2024/{name}"]
    assert found.outcome is Outcome.VACUOUS, found.message


def test_labels_are_those_of_the_text() -> None:
    assert "(73)-(75)" in claims["deora2024/lemma-10"].equations
    assert "(97)" not in claims["deora2024/lemma-11"].equations
    assert "(93)" in claims["deora2024/theorem-4"].equations
    assert "(95)-(97)" in claims["deora2024/corollary-4"].equations
    for name in ("corollary-1-1", "corollary-1-2", "corollary-1-3"):  # with max |U_h|
        assert claims[f"deora2024/{name}"].equations.startswith("Lemma 6")
    for name in ("definition-1", "fact-1", "first-phase"):  # what we derived from them
        assert "printed" not in claims[f"deora2024/{name}"].forms


def test_a_form_asks_its_own_hypotheses_alone() -> None:
    """Of the printed Lemma 18 it was told that A > 0 holds, at A = -1: within 1e9."""
    claim = claims["deora2024/lemma-18"]
    point = at(claim.id, "printed")
    assert float(point.A) < 0
    printed, corrected = (judge(claim, point, form) for form in ("printed", "corrected"))
    assert len(printed.hypotheses) == len(corrected.hypotheses) - 2
    assert corrected.outcome is Outcome.NOT_APPLICABLE
    for name in [claim.id for claim in OWN]:
        for hypothesis in claims[name].hypotheses:
            assert set(hypothesis.forms) <= set(claims[name].forms)
    stated = [check.threshold for one in SHIPPED.values() for check in one.hypotheses]
    assert max(stated) < 1e6
