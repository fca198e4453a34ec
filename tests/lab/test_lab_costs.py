"""The cost model finds what a machine adds to an estimate, whatever a few odd trials say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import toy_figure
from toy_cli import app

from headcount import lab
from headcount.lab._costs import CostModel, Line, cost_model, fit_line


def test_a_power_law_is_found_despite_slow_first_trials() -> None:
    estimates = np.repeat([0.1, 1.0, 10.0, 100.0], 5)
    seconds = 3.0 * estimates**0.8
    seconds[::5] *= 20  # the first of each group compiles
    line = fit_line(list(zip(estimates, seconds, strict=True)))
    assert line.slope == pytest.approx(0.8, abs=1e-9)
    assert line.seconds(5.0) == pytest.approx(3 * 5**0.8)
    assert line.seconds(1000.0) == pytest.approx(10 * 3 * 100**0.8)  # beyond: like the estimate


def test_few_or_equal_trials_give_a_ratio() -> None:
    assert fit_line([(2.0, 6.0)]).seconds(4.0) == pytest.approx(12.0)
    line = fit_line([(2.0, 6.0), (2.0, 8.0), (2.0, 700.0), (2.1, 8.4), (2.0, 8.0)])
    assert line.seconds(1.0) == pytest.approx(4.0)


def _stored(trial: lab.Trial, store: lab.Store, seconds: float) -> None:
    """A record that says how long the trial took."""
    task = lab._trial.make_task(trial, store.folder)
    record = lab._trial._record(task, {}, "ok", "", seconds)
    store.write(trial.address, {}, record)


def test_the_model_reads_the_folder(tmp_path: Path) -> None:
    store = lab.Store(tmp_path)
    store.prepare()
    smoke = lab.make_plan(toy_figure.figure, "smoke")
    quick = lab.make_plan(toy_figure.figure, "quick")
    assert cost_model(quick.trials, store).count == 0
    for trial in smoke.trials:
        _stored(trial, store, 1000 * toy_figure.estimate(trial.config)[0])
    model = cost_model(quick.trials, store)
    assert model.count == len(smoke.trials)
    last = quick.trials[-1]
    assert model.seconds(last) == pytest.approx(1000 * toy_figure.estimate(last.config)[0])


def test_records_of_another_version_say_nothing(tmp_path: Path, plan: lab.Plan) -> None:
    store = lab.Store(tmp_path)
    store.prepare()
    older = lab.Measurement("toy-mean", 9, toy_figure.measure, toy_figure.toy.outputs)
    trial = lab.Trial(older, plan.trials[0].config, {"seed": 0})
    _stored(trial, store, 5.0)
    assert cost_model(plan.trials, store).count == 0


def test_the_longest_come_first_by_the_model(plan: lab.Plan) -> None:
    """A machine on which wide trials cost less per width still runs the widest first."""
    model = CostModel({"toy-mean": Line(0.0, 0.5, 1.0, 9)})
    order = sorted(plan.trials, key=model.seconds, reverse=True)
    assert [trial.coordinates["m"] for trial in order][::4] == [128, 32, 8]


def test_a_dry_run_learns_from_the_first_trials(tmp_path: Path, monkeypatch, capsys) -> None:
    """The toy's own estimate is microseconds; with a pause in every step it takes over 0.1 s."""
    command = ["reproduce", "toy/mean", "--scale", "smoke", "--dry-run", "--json", "--workers", "0"]
    command += ["--out", str(tmp_path)]
    monkeypatch.setenv("TOY_PAUSE", "0.02")
    lab.run_plan(lab.make_plan(toy_figure.figure, "smoke", seeds=[0]), tmp_path, workers=0)
    app(command, result_action="return_value")
    told = json.loads(capsys.readouterr().out)["plan"]
    assert (told["to_run"], told["past_trials"]) == (9, 3)
    assert told["estimated_seconds"] > 0.9
