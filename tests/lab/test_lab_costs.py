"""The cost model finds what a machine adds to an estimate, whatever a few odd trials say."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import toy_figure
from toy_cli import app

from headcount import core, lab


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


def test_a_guess_counts_the_compiling_once_per_group() -> None:
    trials = _many(50)
    slow = [dataclasses.replace(t, measurement=_compiles(t.measurement, 10.0)) for t in trials]
    more = lab.cost(slow, 1).seconds - lab.cost(trials, 1).seconds
    assert more == pytest.approx(10.0 * len(WIDTHS))
    both = lab.cost(slow, 2)
    assert both.seconds == pytest.approx(lab.cost(slow, 1).seconds / 2, rel=0.1)


def _compiles(measurement: lab.Measurement, seconds: float) -> lab.Measurement:
    return dataclasses.replace(measurement, compiling=seconds)


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
