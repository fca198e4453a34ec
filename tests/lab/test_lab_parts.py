"""Costs, data sets of trials, where an interval lies, what a plan says of its data."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_figure

from headcount import core, lab
from headcount.core._files import json_text
from headcount.lab._collect import to_dataset
from headcount.lab._findings import KINDS
from headcount.lab._plan import Cost, survey
from headcount.lab._stored import StoredTrial


def measure_together(
    configs: Sequence[dict[str, Any]], contexts: Sequence[lab.Context]
) -> list[dict[str, Any]]:
    """Notes how many came together, then one after another."""
    with Path(os.environ["TOY_LOG"]).open("a") as log:
        log.write(f"together:{len(configs)}\n")
    return [toy_figure.measure(c, context) for c, context in zip(configs, contexts, strict=True)]


together = replace(toy_figure.toy, batch=measure_together)


@pytest.fixture
def plan() -> lab.Plan:
    """Two widths, 18 seeds each, that may go together."""
    plain = lab.make_plan(toy_figure.figure, "smoke", seeds=range(18))
    trials = [replace(t, measurement=together) for t in plain.trials if t.coordinates["m"] < 100]
    return replace(plain, trials=tuple(trials))


def test_cost_packs_longest_first() -> None:
    seconds = {8: 3.0, 32: 2.0, 128: 2.0}
    measurement = lab.Measurement(
        "c",
        1,
        toy_figure.measure,
        {},
        lambda config: (seconds[config["m"]], 10.0 * config["m"]),
        0.0,
    )
    trials = [lab.Trial(measurement, {"m": m}, {"m": m}) for m in seconds]
    assert lab.cost(trials, 2) == Cost(4.0, 1600.0, 2)
    assert lab.cost(trials, 1) == Cost(7.0, 1280.0, 1)
    assert lab.cost([], 2).seconds == 0


def stored(**payload: Any) -> StoredTrial:
    arrays = {name: np.asarray(value) for name, value in payload.items()}
    return StoredTrial(arrays, {"outcome": "ok", "seconds": 1.0})


def test_ragged_trials_fall_into_place() -> None:
    """Own step coordinates are united, uncoordinated entries counted, gaps are NaN."""
    outputs = {"loss": ("step",), "step": ("step",), "grid": ("step", "k"), "best": ()}
    measurement = lab.Measurement("r", 1, toy_figure.measure, outputs)
    trials = [
        lab.Trial(measurement, {"model": a, "seed": s}, {"model": a, "seed": s})
        for a in ("t", "rnn")
        for s in (3, 1)
    ]
    found: dict[str, StoredTrial | None] = {t.address: None for t in trials}
    found[trials[0].address] = stored(loss=[1.0, 2.0], step=[0, 10], grid=[[1.0], [2.0]], best=0.5)
    found[trials[3].address] = stored(
        loss=[5.0, 6.0], step=[5, 10], grid=[[1.0, 2], [3, 4]], best=0.25
    )
    failed = StoredTrial({}, {"outcome": "failed", "reason": "r", "seconds": 2.0})
    found[trials[1].address] = failed
    data = to_dataset(trials, found)
    assert data["loss"].dims == ("model", "seed", "step")
    assert data["step"].values.tolist() == [0, 5, 10]
    np.testing.assert_array_equal(data["loss"].sel(model="t", seed=3), [1, np.nan, 2])
    np.testing.assert_array_equal(data["loss"].sel(model="rnn", seed=1), [np.nan, 5, 6])
    np.testing.assert_array_equal(
        data["grid"].sel(model="rnn", seed=1), [[np.nan, np.nan], [1, 2], [3, 4]]
    )
    np.testing.assert_array_equal(data["best"], [[0.5, np.nan], [np.nan, 0.25]])
    assert data["r_outcome"].values.tolist() == [["ok", "failed"], ["missing", "ok"]]
    assert float(data["r_seconds"].sel(model="t", seed=1)) == 2.0


C, N, I = lab.CONFIRMED, lab.NOT_CONFIRMED, lab.INCONCLUSIVE


@pytest.mark.parametrize(
    ("low", "high", "expected", "outcome"),
    [
        (0.2, 0.4, (0.0, 1.0), C),
        (0.0, 1.0, (0.0, 1.0), C),
        (-0.1, 0.4, (0.0, 1.0), I),
        (0.5, 1.1, (0.0, 1.0), I),
        (-1.0, 2.0, (0.0, 1.0), I),
        (-0.4, -0.2, (0.0, 1.0), N),
        (1.1, 1.2, (0.0, 1.0), N),
        (1e9, 2e9, (0.0, math.inf), C),
        (0.0, 0.0, (0.0, math.inf), I),
        (1.0, 1.0, (1.0, 1.0), C),
        (math.nan, math.nan, (0.0, 1.0), I),
    ],
)
def test_where_the_interval_lies(low, high, expected, outcome) -> None:
    estimate = lab.Estimate((low + high) / 2, low, high, 5)
    verdict = lab.inside("c", estimate, expected)
    assert verdict.outcome == outcome
    assert (verdict.interval, verdict.expected) == ((low, high), expected) or math.isnan(low)
    json.loads(json_text(verdict.to_json()), parse_constant=pytest.fail)


def test_a_source_is_quoted_with_its_place() -> None:
    source = lab.Source("more heads are faster", "App. G")
    found = lab.threshold("c", np.ones(5), above=0.5, source=source)
    said = {"kind": "paper", "says": "more heads are faster", "where": "App. G"}
    assert found.to_json()["source"] == said
    assert lab.threshold("c", np.ones(5), above=0.5).source == lab.OURS != lab.SANITY
    assert [s.kind for s in (source, lab.OURS, lab.SANITY)] == list(KINDS)
    with pytest.raises(core.BadArgument, match="has a place"):
        lab.Source("more heads are faster")


def test_what_stands_in_is_never_judged_and_only_a_run_may_prepare(tmp_path: Path) -> None:
    import dataclasses

    import toy_figure

    prepared: list[int] = []
    figure = dataclasses.replace(
        toy_figure.figure,
        prepare=lambda trials: prepared.append(len(trials)),
        stand_in=lambda trials: f"{len(trials)} made-up numbers",
    )
    plan = lab.make_plan(figure, "smoke")
    survey(plan, lab.Store(tmp_path))
    assert prepared == []
    for _ in range(2):  # the second run finds everything stored
        lab.run_plan(plan, tmp_path, workers=0)
    assert prepared == [len(plan.unique)]
    count = len(plan.trials)
    for verdict in lab.collect(plan, lab.Store(tmp_path)).verdicts:
        assert verdict.outcome == lab.NOT_JUDGED
        assert verdict.sentence.startswith(f"not judged: {count} made-up numbers; ")
    judged = lab.collect(lab.make_plan(toy_figure.figure, "smoke"), lab.Store(tmp_path)).verdicts
    assert lab.NOT_JUDGED not in {verdict.outcome for verdict in judged}
