"""The cost model finds what a machine adds to an estimate, whatever a few odd trials say."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_figure
from toy_cli import app

from headcount import core, lab
from headcount.lab._compiling import _Spans, compiling_seconds
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


def _stored(trial: lab.Trial, store: lab.Store, seconds: float, **more: object) -> None:
    """A record that says how long the trial took."""
    task = lab._trial.make_task(trial, store.folder)
    payload = {name: np.zeros((1,) * len(dims)) for name, dims in task["outputs"].items()}
    record = lab._trial._record(task, payload, "ok", "", seconds)
    store.write(trial.address, payload, record | more)


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


WIDTHS = (8, 16, 32, 64)


def _many(seeds: int) -> list[lab.Trial]:
    """Trials whose estimate knows the growth and neither the machine nor the compiling."""
    return [
        lab.Trial(
            toy_figure.toy, {"m": m, "steps": 1, "seed": seed}, {"m": m, "seed": seed}, f"{m}"
        )
        for m in WIDTHS
        for seed in range(seeds)
    ]


def _truth(trial: lab.Trial) -> tuple[float, float]:
    """Seconds of compiling and of computing on a machine that we made up."""
    m = trial.config["m"]
    return 2.0 + m / 16, 3e4 * toy_figure.estimate(trial.config)[0] ** 0.9 * (1.2 if m > 9 else 1)


def _run(trials: list[lab.Trial], store: lab.Store, *, told: bool = True) -> float:
    """Records of a sweep in one process; the seconds that it took, imports included."""
    seen: set[str] = set()
    total = 0.0
    for trial in trials:
        compiling, seconds = _truth(trial)
        compiling *= trial.group not in seen
        imports = 0.0 if seen else 2.0
        seen.add(trial.group)
        total += compiling + seconds + imports
        times = {"compiling": compiling, "first_in_process": imports > 0} if told else {}
        _stored(trial, store, compiling + seconds + imports, **times)
    return total


def test_after_one_seed_the_rest_is_known(tmp_path: Path) -> None:
    """Every past trial compiled its programs: the others of its group will not."""
    store = lab.Store(tmp_path)
    store.prepare()
    trials = _many(50)
    _run([trial for trial in trials if trial.config["seed"] == 0], store)
    rest = [trial for trial in trials if trial.config["seed"] > 0]
    model = cost_model(trials, store)
    assert model.count == len(WIDTHS)
    took = _run(rest, lab.Store(tmp_path))
    assert lab.cost(rest, 1, model).seconds == pytest.approx(took, rel=0.1)
    for trial in rest[:: len(rest) // 7]:
        assert model.compiling(trial) == pytest.approx(_truth(trial)[0])
    # The widest came first in no process: its own seconds count.
    assert model.seconds(rest[-1]) == pytest.approx(_truth(rest[-1])[1])


def test_the_first_of_a_process_says_little_about_its_group(tmp_path: Path) -> None:
    """It imported what all need; the line through the others knows better."""
    store = lab.Store(tmp_path)
    store.prepare()
    trials = _many(1)
    _run(trials, store)
    first = cost_model(trials, store).seconds(trials[0])
    assert _truth(trials[0])[1] < 0.5  # and 2 s of imports
    assert first == pytest.approx(_truth(trials[0])[1], rel=0.5)


def test_records_of_earlier_versions_do_not_tell_what_was_compiled(tmp_path: Path) -> None:
    """With a few seeds the slowest of a group tells."""
    store = lab.Store(tmp_path)
    store.prepare()
    trials = _many(20)
    _run([trial for trial in trials if trial.config["seed"] < 5], store, told=False)
    rest = [trial for trial in trials if trial.config["seed"] >= 5]
    estimate = lab.cost(rest, 1, cost_model(trials, store)).seconds
    assert estimate == pytest.approx(_run(rest, store), rel=0.2)


def test_a_guess_counts_the_compiling_once_per_group() -> None:
    trials = _many(50)
    slow = [dataclasses.replace(t, measurement=_compiles(t.measurement, 10.0)) for t in trials]
    more = lab.cost(slow, 1).seconds - lab.cost(trials, 1).seconds
    assert more == pytest.approx(10.0 * len(WIDTHS))
    both = lab.cost(slow, 2)
    assert both.seconds == pytest.approx(lab.cost(slow, 1).seconds / 2, rel=0.1)


def _compiles(measurement: lab.Measurement, seconds: float) -> lab.Measurement:
    return dataclasses.replace(measurement, compiling=seconds)


def test_a_long_group_is_split_over_the_workers() -> None:
    """And its programs are compiled by each of them; one trial cannot be split."""
    trials = [t for t in _many(40) if t.config["m"] == 64]
    model = CostModel({}, {("toy-mean", "64"): 1e9}, {("toy-mean", "64"): 5.0})
    each = model.seconds(trials[0])
    assert lab.cost(trials, 4, model).seconds == pytest.approx(10 * each + 5.0, rel=0.1)
    assert lab.cost(trials[:1], 4, model).seconds == pytest.approx(each + 5.0, rel=0.1)
    assert lab.cost([], 4, model).seconds == 0


def test_compiling_is_measured_by_jax_itself(tmp_path: Path) -> None:
    """A new program counts, the same again does not, and inner spans are not counted twice."""
    import jax

    before = compiling_seconds()
    program = jax.jit(lambda x: jax.jit(lambda y: y * 3 + 1)(x) - 2)
    program(1.0)
    once = compiling_seconds() - before
    program(2.0)
    assert once > 0
    assert compiling_seconds() - before == once
    spans = _Spans()
    for began, ended in ((1.0, 2.0), (3.0, 4.0), (0.5, 5.0), (6.0, 7.0)):
        spans.add(began, ended)
    assert spans.seconds == pytest.approx(5.5)


def compile_something(config: dict[str, object], context: lab.Context) -> dict[str, object]:
    """One program per process."""
    import jax

    return {"error": float(_program()(jax.numpy.float32(config["seed"])))}


@functools.cache
def _program() -> Callable[..., object]:
    import jax

    return jax.jit(lambda x: jax.numpy.sin(x) * 3 - 0.25)


def test_a_record_tells_compiling_and_the_first_of_a_process(tmp_path: Path) -> None:
    measurement = lab.Measurement("compiles", 1, compile_something, {"error": ()})
    trials = [lab.Trial(measurement, {"seed": s}, {"seed": s}, "one") for s in range(3)]
    plan = dataclasses.replace(lab.make_plan(toy_figure.figure, "smoke"), trials=tuple(trials))
    assert lab.run_plan(plan, tmp_path, workers=1).failed == 0
    stored = [lab.Store(tmp_path).read(trial.address) for trial in trials]
    records = [each.record for each in stored if each is not None]
    assert [record["first_in_process"] for record in records] == [True, False, False]
    assert [record["compiling"] > 0 for record in records] == [True, False, False]
    assert all(record["compiling"] <= record["seconds"] for record in records)


def test_what_is_no_figure_is_answered_with_the_name_of_one() -> None:
    unknown: Any = 3
    with pytest.raises(core.BadArgument, match="figure = 3: is a int; give its name") as caught:
        lab.make_plan(unknown)
    assert caught.value.fix.split()[-1] in lab.figures
