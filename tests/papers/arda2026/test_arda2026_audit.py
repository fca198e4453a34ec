"""The audit of arda2026: the trained run itself, any optimiser, any data, and run files."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.cli import run as command
from headcount.core import BadArgument, float64, stream
from headcount.data import Arrays
from headcount.papers.arda2026 import (
    Head,
    Near,
    PooledAttentionParams,
    Run,
    RunTrace,
    Setting,
    Target,
    simulate,
    slack,
    subject,
)
from headcount.papers.arda2026 import audit as module
from headcount.papers.arda2026.needed_transport import TOO_LARGE, goal_of
from headcount.theory import ask, claims, judge, stored_iterates
from headcount.training import TrainConfig, build, read_run, run_config

VALUES = {
    "width": 4,
    "n": 6,
    "steps": 5,
    "rho": (3.0, 3.0, 3.0),
    "data_options": {"T": 3, "d": 2, "pool": 16, "anchors": 3},
}
CLOSED = ("eq-43", "eq-44", "theorem-1", "theorem-1-average")


def config(**changes) -> TrainConfig:
    return TrainConfig.of({**VALUES, **changes})


def verdict(name, looked_at, variant="printed"):
    return ask(claims[f"arda2026/{name}"], looked_at, variant)


@pytest.fixture(scope="module")
def audited():
    return subject(config(), 0, delta=0.05)


@pytest.fixture(scope="module")
def tight():
    """Radii so small that the projection acts, which also puts phi~ outside Omega_rho."""
    return subject(config(rho=(0.05, 0.05, 0.05), eta=0.9), 0, delta=0.05)


@pytest.mark.parametrize("which", ["audited", "tight"])
def test_the_trace_of_the_trained_run_is_that_of_the_small_loop(which, request):
    """All terms, by two implementations that share no step: `training` and `runs.advance`."""
    looked_at = request.getfixturevalue(which)
    offered = looked_at.instances(Target)[0]
    values = offered.fields()
    still = {name: jnp.zeros_like(values[name]) for name in ("dc", "dU", "dW")}
    eta, tau = jnp.asarray(looked_at.setting.step), looked_at.setting.tau
    with float64():
        small = jax.jit(simulate)(Run(**{**values, **still}, eta=eta, tau=tau))
    for field in fields(RunTrace):
        if field.name == "moved":
            continue
        found, wanted = getattr(looked_at.trace, field.name), getattr(small, field.name)
        if isinstance(wanted, str):
            assert found == wanted
            continue
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-13, err_msg=field.name)
    if which == "tight":
        assert np.sum(looked_at.trace.excess > 0) > 2
        assert looked_at.trace.moved == pytest.approx(1)


def test_the_offered_model_is_the_last_iterate_of_the_run(audited):
    built = build(config(dtype="float64"))
    run = run_config(config(dtype="float64"), built=built)
    model = audited.instances(Near)[0]
    for found, wanted in zip(model.params, run.parameters(), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    v = built.data.transport(0, built.x[0])(*(leaf[0] for leaf in built.initial))
    np.testing.assert_allclose(model.nu[0] * model.vc, v.v_c, rtol=1e-12)
    np.testing.assert_allclose(model.nu[2] * model.vw, v.v_w, rtol=1e-12)
    np.testing.assert_allclose(model.y, built.y[0], rtol=1e-12)
    largest = max(
        float(np.max(np.linalg.norm(np.reshape(b, (4, -1)), axis=1))) * 2 / 3
        for b in (run.parameters().U - built.initial.U[0], run.parameters().W - built.initial.W[0])
    )
    assert float(audited.trace.moved) >= largest - 1e-12


def test_realised_certificates_hold_and_are_not_vacuous(audited):
    drift, mean = verdict("drift", audited), verdict("mean-loss", audited, "measured")
    assert (drift.outcome, mean.outcome) == ("holds", "holds")
    assert drift.ratio == pytest.approx(1, abs=1e-9)
    assert 0.05 < mean.ratio <= 1
    wrong = claims["arda2026/drift"].with_bound_scaled(1 - 1e-6)
    assert ask(wrong, audited, "printed").outcome == "violated"


def test_closed_bounds_are_vacuous_in_one_sense(audited):
    trivial = float(audited.trace.loss[0])
    found = verdict("theorem-1", audited)
    assert found.outcome == "holds vacuously"
    assert found.rhs > trivial
    for name in ("eq-43", "eq-44", "eq-46", "theorem-1-average", "eq-39-bound"):
        assert verdict(name, audited).outcome == "holds vacuously", name


def test_delta_reaches_every_closed_bound(audited):
    stricter = subject(config(), 0, delta=1e-6)
    for name in CLOSED:
        assert verdict(name, stricter).rhs > 1.0001 * verdict(name, audited).rhs, name
    for name, hypothesis in (("theorem-1", "E_app"), ("eq-39-bound", "E_app")):
        before, after = (
            next(c.value for c in verdict(name, s).hypotheses if hypothesis in c.name)
            for s in (audited, stricter)
        )
        assert after < 0.9 * before
    for name, variant in (("definition-1", "printed"), ("lemma-5", "corrected")):
        assert verdict(name, stricter, variant).rhs > verdict(name, audited, variant).rhs


def test_radii_below_nu_in_one_block_are_named(audited):
    small = subject(config(rho=(3.0, 3.0, 2.5)), 0, delta=0.05)
    found = verdict("theorem-1", small)
    assert found.outcome == "not applicable"
    assert found.message == ("rho_w = 2.5 < nu_w = 3: the theorem asks rho >= nu in every block")
    assert np.isnan(found.rhs)
    checks = claims["arda2026/theorem-1"].requires(small.setting, "printed")
    assert [check.name for check in checks if not check.holds] == [checks[0].name]
    assert checks[0].margin == -0.5
    assert all(c.holds for c in claims["arda2026/theorem-1"].requires(audited.setting, "printed"))


def test_the_step_size_of_the_theorem_is_a_hypothesis():
    other = subject(config(eta=0.3), 0, delta=0.05)
    assert verdict("theorem-1", other).outcome == "not applicable"
    assert verdict("eq-44", other).outcome == "holds vacuously"


def test_descent_without_projection_keeps_its_certificates():
    free = subject(config(optimiser="gd", rho=None), 0, delta=0.05)
    assert verdict("drift", free).outcome == "holds"
    assert verdict("mean-loss", free, "measured").outcome == "holds"
    for name in CLOSED:
        found = verdict(name, free)
        assert found.outcome == "not applicable"
        assert found.message == "5 of 5 steps are none of ProjGD onto Omega_rho"
    near = verdict("lemma-3", free)
    assert near.outcome in ("holds", "holds vacuously")
    assert min(r - n for r, n in zip(free.setting.rho, free.setting.nu, strict=True)) >= 0


@pytest.mark.parametrize("changes", [{"optimiser": "adam"}, {"optimiser": "sgd", "batch_size": 2}])
def test_other_rules_say_which_hypothesis_fails_and_heads_still_speak(changes):
    other = subject(config(rho=None, **changes), 0, delta=0.05)
    found = verdict("drift", other)
    assert found.outcome == "not applicable"
    assert "gradient descent on L: 5 where at most 0 is allowed" in found.message
    assert verdict("lemma-2a", other).outcome == "holds"
    assert verdict("eq-39", other).outcome == "holds"
    assert verdict("eq-46", other, "measured").outcome == "holds"


def own_data(scale: float) -> Arrays:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(6, 3, 2))
    x *= scale / np.linalg.norm(x, axis=-1, keepdims=True)
    return Arrays(x, rng.normal(size=6))


def test_data_without_a_teacher_are_measured_against_the_smallest_transport():
    own = subject(config(width=8), 0, delta=0.05, data=own_data(1.0))
    assert verdict("drift", own).outcome == "holds"
    found = verdict("lemma-5", own, "corrected")
    assert found.outcome == "not applicable"
    assert "is fitted to this start" in found.message
    titles = list(own.findings)
    exact = own.findings[titles[1]]
    assert exact["residual max |f_lin - y|"] < 1e-9
    assert (
        exact["norm of v (mean over heads)"]
        >= own.findings[titles[0]]["norm of v (mean over heads)"]
    )
    assert own.setting.nu == pytest.approx(
        [own.findings[titles[0]][f"nu_{block}"] for block in "cuw"]
    )


@pytest.mark.parametrize("labels", [(0.5, 0.5), (0.5, 0.3), (0.5, -0.5)])
def test_titles_of_transports_say_what_was_found(labels):
    """One sample twice: with two labels it cannot be fitted, with opposite ones nothing is."""
    x = own_data(1.0).x[:1]
    own = build(config(n=2, width=8), Arrays(np.concatenate([x, x]), np.array(labels)))
    start = PooledAttentionParams(*(np.asarray(leaf[0]) for leaf in own.initial))
    found = goal_of(own, start, 0, 0.05).findings
    least, exact = found
    assert (least == TOO_LARGE) == (labels[1] < 0)
    gap = (labels[0] - labels[1]) / 2
    assert found[exact]["residual max |f_lin - y|"] == pytest.approx(gap, abs=1e-12)
    wanted = f"missed by {gap:.3g} (rank 1 for 2 samples)" if gap else "interpolated"
    assert exact == f"The same without ridge: the labels are {wanted}"


def test_tokens_outside_the_unit_ball_leave_the_realised_certificates():
    long = subject(config(width=8), 0, delta=0.05, data=own_data(2.0))
    assert verdict("drift", long).outcome == "holds"
    for name in ("theorem-1", "lemma-2a", "lemma-3"):
        found = verdict(name, long)
        assert found.outcome == "not applicable"
        assert "unit ball" in found.message


def test_divergence_is_data():
    wild = subject(config(optimiser="gd", rho=None, eta=1e200), 0, delta=0.05)
    for name, variant in (("drift", "printed"), ("mean-loss", "measured"), ("lemma-2a", "printed")):
        found = verdict(name, wild, variant)
        assert found.outcome in ("inconclusive", "not applicable"), name
        assert found.message


def test_slack_names_every_factor(audited):
    rows = slack(audited, "printed")
    assert {"B_lin / max e_lin", "B_grad / max |grad L|^2"} <= {row["factor"] for row in rows}
    assert all(row["orders"] >= 0 for row in rows)


def test_another_model_is_one_clear_message():
    with pytest.raises(BadArgument, match="use model=arda2026"):
        subject(TrainConfig.of({"model": "indrnn", "width": 4}), 0, delta=0.05)


def test_heads_are_asked_at_the_hardest_pair(audited):
    claim = claims["arda2026/lemma-2a"]
    each = [judge(claim, head) for head in list(audited.instances(Head))[::3]]
    hardest = ask(claim, audited, "printed")
    assert hardest.ratio >= max(v.ratio for v in each)
    assert hardest.ratio > min(v.ratio for v in each)


def test_a_paired_start_of_another_size_is_no_counterexample():
    """c0 = +-1000 in pairs, v_u = v_w = 0: phi~ lies in Omega_rho, and still nothing is claimed."""
    claim = claims["arda2026/theorem-1"]
    run = claim.families[0].sample(stream(5, "forgery"))
    forged = replace(run, c0=1000 * run.c0, vu=0 * run.vu, vw=0 * run.vw)
    found = judge(claim, forged)
    assert found.outcome == "not applicable"
    assert "paired" in found.message


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run.nc"
    flags = ["--width", "4", "--n", "6", "--steps", "5", "--rho", "3,3,3", "--out", str(path)]
    for option in ("T=3", "d=2", "pool=16", "anchors=3"):
        flags += ["--data-option", option]
    complete = ["--dtype", "float64", "--record", "iterates", "--record-every", "1"]
    assert command(["train", *flags, *complete]) == 0
    return path


def test_a_run_that_holds_every_iterate_is_not_trained_again(run_file, audited, monkeypatch):
    def never(*_, **__):
        raise AssertionError("trained")

    monkeypatch.setattr(module, "run_config", never)
    again = subject(config(), 0, delta=0.05, run=read_run(run_file))
    assert again.note == "nothing was trained: every iterate is in the run"
    for field in fields(RunTrace):
        found, wanted = getattr(again.trace, field.name), getattr(audited.trace, field.name)
        if not isinstance(wanted, str):
            np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-14, err_msg=field.name)


def test_a_run_that_lacks_something_says_what_and_is_trained_again(run_file, audited):
    run = read_run(run_file)
    shifted = {**run.records, "iterate_c": run.records["iterate_c"] + 1}
    lacking = {
        "the run has no seed 0": replace(run, seeds=(7,)),
        "in float32": replace(run, loss=run.loss.astype(np.float32)),
        "iterate of every step": replace(run, recorded_steps=run.recorded_steps[1:]),
        "starts elsewhere": replace(run, records=shifted),
    }
    built = build(config(dtype="float64"))
    assert stored_iterates(run, 0, config(), built)[0] is not None
    for reason, given in lacking.items():
        path, note = stored_iterates(given, 0, config(), built)
        assert path is None
        assert reason in note
    again = subject(config(), 0, delta=0.05, run=replace(run, records={}))
    assert "does not hold the iterate of every step" in again.note
    assert again.note.endswith("trained again from its configuration")
    np.testing.assert_array_equal(again.trace.loss, audited.trace.loss)


def test_a_stored_run_reads_back(run_file):
    run, again = run_config(config(dtype="float64", record=("iterates",))), read_run(run_file)
    np.testing.assert_array_equal(again.loss[0], run.loss)
    for found, wanted in zip(again.parameters(), run.parameters(), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert again.average is None
    assert again.seeds == (0,)


def test_the_command_reads_a_run_and_exits_with_3_on_a_violation(run_file, monkeypatch, capsys):
    some = [claims["arda2026/drift"], claims["arda2026/theorem-1"]]
    monkeypatch.setattr(type(claims), "of_paper", lambda self, key: some)
    assert command(["audit", str(run_file), "--strict", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["notes"] == ["nothing was trained: every iterate is in the run"]
    assert len(shown["findings"]) == 2
    monkeypatch.setattr(
        type(claims), "of_paper", lambda self, key: [some[0].with_bound_scaled(0.9)]
    )
    assert command(["audit", str(run_file), "--strict"]) == 3
    assert command(["audit", str(run_file)]) == 0
    text = capsys.readouterr().out
    assert "violated" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_run_whose_teacher_has_another_activation_is_read_as_it_is(tmp_path, monkeypatch, capsys):
    """Without flags the file decides; with one, teacher and student get the same."""
    monkeypatch.setattr(type(claims), "of_paper", lambda self, key: [])
    path = run_config(config(model_options={"activation": "erf"})).save(tmp_path / "run.nc")
    shown = []
    for more in ([], ["--model-option", "activation=sin"]):
        assert command(["audit", str(path), *more, "--json"]) == 0
        shown.append(json.loads(capsys.readouterr().out))
    read, again = shown
    assert "the run is in float32" in read["notes"][0]  # it was taken
    assert read["setting"]["activation"] == "erf"
    assert again["notes"] == []  # another configuration: it was not
    assert again["setting"]["activation"] == "sin"


def test_a_token_that_rounds_to_length_one_is_in_the_ball():
    """Not "the longest token has norm 1, the theorems ask at most 1"."""
    setting = Setting(d=2, m=4, largest_token=1 + 4e-16)
    assert module._outside_ball(config(), setting) == ""
    longer = replace(setting, largest_token=1.5, clip="scale its tokens")
    assert module._outside_ball(config(), longer) == (
        "the longest token has norm 1.5, the theorems ask at most 1; scale its tokens"
    )
