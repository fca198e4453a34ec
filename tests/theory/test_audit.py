"""Audit: every claim of the paper is asked, with hypotheses, and can say no."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.papers.arda2026.subject import slack, subject
from headcount.theory import audit, claims
from headcount.theory._audit import ask
from headcount.training import TrainConfig, run_config

VALUES = {
    "width": 4,
    "n": 6,
    "steps": 5,
    "rho": (3.0, 3.0, 3.0),
    "dtype": "float64",
    "data_options": {"T": 3, "d": 2, "pool": 16, "anchors": 3},
}


@pytest.fixture(scope="module")
def audited():
    return subject(TrainConfig.of(VALUES), 0, delta=0.05)


def test_the_simulated_run_is_the_trained_one(audited):
    run = run_config(TrainConfig.of({**VALUES, "keep": ("average",)}))
    np.testing.assert_allclose(audited.trace.loss, run.loss[0], rtol=1e-12)
    np.testing.assert_allclose(audited.trace.distance.shape, 6)


def test_realised_certificates_hold_and_are_not_vacuous(audited):
    drift = ask(claims["arda2026/drift"], audited, "printed")
    mean = ask(claims["arda2026/mean-loss"], audited, "measured")
    assert (drift.outcome, mean.outcome) == ("holds", "holds")
    assert drift.ratio == pytest.approx(1, abs=1e-9)
    assert 0.05 < mean.ratio <= 1


def test_a_wrong_constant_changes_the_verdict(audited):
    claim = claims["arda2026/drift"].with_bound_scaled(1 - 1e-6)
    assert ask(claim, audited, "printed").outcome == "violated"


def test_a_failed_hypothesis_is_named_with_its_margin():
    changed = {**VALUES, "rho": (0.1, 3.0, 3.0)}
    small = subject(TrainConfig.of(changed), 0, delta=0.05)
    verdict = ask(claims["arda2026/theorem-1"], small, "printed")
    assert verdict.outcome == "not applicable"
    assert "phi~ in Omega_rho" in verdict.message
    failed = [check for check in verdict.hypotheses if not check.holds]
    assert failed[0].margin < 0


def test_the_step_size_of_the_theorem_is_a_hypothesis():
    other = subject(TrainConfig.of({**VALUES, "eta": 0.3}), 0, delta=0.05)
    assert ask(claims["arda2026/theorem-1"], other, "printed").outcome == "not applicable"
    assert ask(claims["arda2026/eq-44"], other, "printed").outcome != "not applicable"


def test_slack_names_every_factor(audited):
    rows = slack(audited, "printed")
    assert {"B_lin / max e_lin", "B_grad / max |grad L|^2"} <= {row["factor"] for row in rows}
    assert all(row["orders"] >= 0 for row in rows)


BAD = {
    "model": ({"model": "wu2023", "optimiser": "gd", "rho": None}, "has no subject"),
    "optimiser": ({"optimiser": "gd", "rho": None}, "use optimiser=projgd"),
    "data": ({"data": "gaussian-tokens", "data_options": {}}, "use data=transport-teacher"),
}


@pytest.mark.parametrize("case", BAD)
def test_outside_the_model_class_is_one_clear_message(case):
    changes, message = BAD[case]
    with pytest.raises(BadArgument, match=message):
        audit(TrainConfig.of({**VALUES, **changes}))


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0])
def test_delta_must_be_a_probability(delta):
    with pytest.raises(BadArgument, match="delta"):
        audit(TrainConfig.of(VALUES), delta=delta)
