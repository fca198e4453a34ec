"""The audit of deora2024: on DM1, on arrays of the user, with and without gradient descent."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.core import BadArgument, float64
from headcount.data import Arrays
from headcount.models import MultiHeadAttention, MultiHeadParams, zero
from headcount.papers.deora2024 import observed
from headcount.papers.deora2024.leave_one_out import LeftOutInstance, pairs_of
from headcount.papers.deora2024.observed import merged
from headcount.papers.deora2024.stability import leave_one_out
from headcount.papers.deora2024.subject import slack, subject
from headcount.theory import Outcome, claims
from headcount.theory._audit import ask
from headcount.training import TrainConfig, run_config

ASKED = ("eq-70", "corollary-1-1", "corollary-1-3", "lemma-8", "eq-20", "theorem-3")


def config(**options: object) -> TrainConfig:
    base = {"model": "deora2024", "width": 4, "n": 12, "steps": 15, "eta": 0.2}
    return TrainConfig.of({**base, "data_options": {"T": 4, "zeta": 0.25}, **options})


def test_gradient_descent_on_dm1() -> None:
    found = subject(config(), 0, delta=0.05)
    assert "unbounded" in found.findings["assumptions"]["Assumption 3: sure noise bounds"]
    assert found.findings["good start (Definition 1)"]["groups of equal heads"] == 1
    required = found.findings["heads that the theorems ask for"]
    assert required["Theorem 3, sharp"] < required["Theorem 3, v1"] < required["Theorem 3, v2"]
    for name in ASKED:
        claim = claims[f"deora2024/{name}"]
        verdict = ask(claim, found, "measured" if name == "eq-70" else claim.default)
        assert verdict is not None
        expected = Outcome.NOT_APPLICABLE if name == "theorem-3" else Outcome.HOLDS
        assert verdict.outcome is expected, verdict
        if name == "eq-70":
            assert verdict.ratio > 0.5  # measured constants say something
    assert all(row["orders"] > -1e-9 for row in slack(found, "printed"))


def test_the_trace_is_the_trained_run() -> None:
    one = config(init="two-phase", width=6)
    found = subject(one, 0, delta=0.05)
    run = run_config(one.model_copy(update={"dtype": "float64", "record_every": 1}))
    assert found.trace is not None
    np.testing.assert_allclose(found.trace.loss[:-1], np.ravel(run.loss), rtol=1e-10)
    assert found.findings["good start (Definition 1)"]["groups of equal heads"] == 2


def test_leave_one_out_runs_are_asked_up_to_a_stated_size(monkeypatch: pytest.MonkeyPatch) -> None:
    small = config(n=5, steps=4)
    (run,) = subject(small, 0, delta=0.05).instances(LeftOutInstance)
    alone = leave_one_out(
        MultiHeadAttention(4, 4, 4),
        zero(MultiHeadAttention(4, 4, 4)),
        run.X,
        run.y,
        eta=0.2,
        steps=4,
    )
    with float64():
        np.testing.assert_allclose(pairs_of(run).distance.T, alone.distance, rtol=1e-9)
    monkeypatch.setattr(observed, "MOST_LEFT_OUT", 5**2 * 4 * 4**2 - 1)
    found = subject(small, 0, delta=0.05)
    assert found.instances(LeftOutInstance) == ()
    assert "too many" in found.note


def test_other_rules_and_data_of_the_user() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(10, 3, 2)), rng.choice([-1.0, 1.0], 10)
    adam = config(optimiser="adam", n=10, steps=4, data_options={})
    found = subject(adam, 0, delta=0.05, data=Arrays(x, y))
    assert found.trace is None
    assert "adam" in found.note
    assert found.findings["assumptions"]["Assumption 3 (DM1)"] == "not about these data"
    with pytest.raises(BadArgument, match="labels"):
        subject(adam, 0, delta=0.05, data=Arrays(x, y + 1))


def test_equal_heads_are_merged_with_their_counts() -> None:
    U = np.zeros((5, 3, 2))
    U[[1, 4]] = 1.0
    groups = merged(MultiHeadAttention(3, 2, 5), MultiHeadParams(U, np.zeros((5, 2, 2))))
    np.testing.assert_array_equal(np.sort(groups.k), [2, 3])
