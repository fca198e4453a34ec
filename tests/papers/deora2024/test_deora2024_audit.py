"""The audit of deora2024: on DM1, on arrays of the user, with and without gradient descent."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.core import BadArgument, float64
from headcount.data import Arrays
from headcount.papers.deora2024 import audit
from headcount.papers.deora2024.audit import merged, slack, subject
from headcount.papers.deora2024.claims.lemma_11 import pairs_of
from headcount.papers.deora2024.dm1 import DM1
from headcount.papers.deora2024.mixture import Mixture, first_phase_row, offered_mixtures
from headcount.papers.deora2024.model import MultiHeadAttention, MultiHeadParams
from headcount.papers.deora2024.records import LeftOut
from headcount.papers.deora2024.stability import leave_one_out
from headcount.papers.deora2024.starts import zero
from headcount.theory import Outcome, ask, claims
from headcount.training import TrainConfig, run_config

OUTCOMES = {"theorem-3": Outcome.NOT_APPLICABLE, "lemma-8": Outcome.VACUOUS}
"""Too few heads; a bound above the loss at the start, below which a descending run stays."""
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
        expected = OUTCOMES.get(name, Outcome.HOLDS)
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
    (run,) = subject(small, 0, delta=0.05).instances(LeftOut)
    alone = leave_one_out(
        MultiHeadAttention(4, 4, 4),
        zero(MultiHeadAttention(4, 4, 4)),
        run.X,
        run.y,
        eta=0.2,
        steps=4,
    )
    with float64():
        np.testing.assert_allclose(pairs_of(run, "v2").distance.T, alone.distance, rtol=1e-9)
    monkeypatch.setattr(audit, "MOST_LEFT_OUT", 5**2 * 4 * 4**2 - 1)
    found = subject(small, 0, delta=0.05)
    assert found.instances(LeftOut) == ()
    assert "too many" in found.note


ON_MIXTURES = ("assumption-1", "eq-107", "eq-119", "eq-129", "eq-132", "proposition-3")


def test_samples_of_dm1_are_offered_in_the_coordinates_of_the_claims() -> None:
    basis = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    data = DM1(T=5, d=5, M=3, S=1.5, zeta=0.4, noise="bounded", patterns=tuple(1.5 * basis))
    drawn = data.sample(7, seed=2)
    offers, note = offered_mixtures(data, drawn, most=64)
    assert note == ""
    mixtures = offers[Mixture]
    assert len(mixtures) == 2 * 7
    row = first_phase_row(drawn)
    for k, one in enumerate(mixtures):
        assert one.problem() is None  # also in the shared, larger bounds
        assert (float(one.Z_mu), float(one.Z_nu)) == (0.1, 0.1)
        with float64():
            tokens = np.asarray(one.X) @ basis
        own = drawn.x[k % 7]
        np.testing.assert_allclose(np.sort(tokens, axis=0), np.sort(own, axis=0), atol=1e-12)
        centre = one.p @ basis + data.zeta / 4 * data.u_star
        np.testing.assert_allclose(centre, row, atol=1e-12)


def test_claims_on_dm1_are_asked_and_say_where_the_noise_bounds_come_from() -> None:
    for noise in ("gaussian", "bounded"):
        own = {"T": 4, "zeta": 0.25, "noise": noise}
        found = subject(config(n=6, steps=2, data_options=own), 0, delta=0.05)
        assert ("Assumption 3 fails" in found.note) == (noise == "gaussian")
        sure = ask(claims["deora2024/assumption-3"], found, "corrected")
        assert (sure is None) == (noise == "gaussian")  # Gaussian noise has no sure bounds to ask
        for name in ON_MIXTURES:
            claim = claims[f"deora2024/{name}"]
            verdict = ask(claim, found, claim.default)
            assert verdict is not None
            large = name == "proposition-3" and noise == "gaussian"  # noise above S^2/8
            assert verdict.outcome is (Outcome.NOT_APPLICABLE if large else Outcome.HOLDS), verdict


@pytest.mark.parametrize("own", [{"d": 6}, {"T": 2, "zeta": 1.0}])
def test_claims_on_dm1_that_do_not_fit_are_not_asked(own: dict[str, float]) -> None:
    data = DM1(**{"T": 4, "zeta": 0.25, **own})  # type: ignore[arg-type]
    offers, note = offered_mixtures(data, data.sample(3, seed=0), most=64)
    assert offers == {}
    assert "not asked" in note


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
