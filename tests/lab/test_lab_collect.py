"""Declarations, addresses, and the way from trials to one data set."""

from __future__ import annotations

import hashlib
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_figure

from headcount import core, lab

FIGURE = toy_figure.figure


def test_an_address_is_the_sha256_of_the_canonical_json() -> None:
    text = '{"config":{"a":[1,2.5],"b":null},"measurement":"x","version":2}'
    expected = hashlib.sha256(text.encode()).hexdigest()
    assert lab.content_address("x", 2, {"b": None, "a": (1, 2.5)}) == expected
    assert lab.content_address("x", 3, {"b": None, "a": (1, 2.5)}) != expected


@pytest.mark.parametrize("value", [np.float64(1), float("nan"), {1: 2}, {"a": {3}}, object()])
def test_only_plain_values_have_an_address(value: Any) -> None:
    with pytest.raises(core.BadArgument, match="config"):
        lab.content_address("x", 1, {"a": value})


def test_figures_share_trials() -> None:
    one = lab.make_plan(FIGURE, "smoke", seeds=[0])
    two = lab.make_plan(FIGURE, "quick", seeds=[0])
    assert set(one.unique) < set(two.unique)  # quick has the same widths and one more


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"id": "Fig 1"}, "paper/figure"),
        ({"scales": {"quick": {"seeds": 1}}}, "three scales"),
        ({"scales": {"smoke": {"seeds": 1}, "quick": {"seeds": 1}, "paper": {"s": 1}}}, "same"),
        ({"scales": {"smoke": {"n": 1}, "quick": {"n": 1}, "paper": {"n": 1}}}, "seeds among"),
    ],
)
def test_a_bad_figure_is_refused(change: dict[str, Any], match: str) -> None:
    fields = {name: getattr(FIGURE, name) for name in FIGURE.__dataclass_fields__}
    with pytest.raises(core.BadArgument, match=match):
        lab.Figure(**(fields | change))


def test_a_measurement_must_be_found_by_name() -> None:
    with pytest.raises(core.BadArgument, match="module level"):
        lab.Measurement("x", 1, lambda config, context: {}, {})


def test_equal_coordinates_are_refused() -> None:
    fields = {name: getattr(FIGURE, name) for name in FIGURE.__dataclass_fields__}
    twice = lab.Figure(**(fields | {"trials": lambda *a: 2 * toy_figure.trials(*a)}))
    with pytest.raises(core.BadArgument, match="same coordinates"):
        lab.make_plan(twice, "smoke")


@pytest.mark.parametrize("scale", lab.SCALES)
@pytest.mark.parametrize("name", list(lab.figures))
def test_every_figure_has_a_plan(name: str, scale: str) -> None:
    """Conformance of all registered figures; computes nothing."""
    made_up = "templates" in lab.figures[name].options.get("data", ())
    plan = lab.make_plan(name, scale, options={"data": "templates"} if made_up else {})
    assert plan.seeds == tuple(range(plan.figure.scales[scale]["seeds"]))
    assert any("seed" in trial.coordinates for trial in plan.trials)
    for trial in plan.trials:
        seconds, size = trial.measurement.estimate(trial.config)
        assert seconds > 0
        assert size > 0
        module, _, function = trial.measurement.location.partition(":")
        assert getattr(importlib.import_module(module), function) is trial.measurement.function
    if scale == "smoke":
        assert lab.cost(plan.trials, 2).seconds < 60


def test_collect_reads_and_judges(tmp_path: Path, plan: lab.Plan, calls) -> None:
    lab.run_plan(plan, tmp_path, workers=0)
    count = len(calls())
    collection = lab.collect(plan, lab.Store(tmp_path))
    assert len(calls()) == count == 12
    assert collection.missing == 0
    assert collection.data.sizes == {"m": 3, "seed": 4, "step": 5}
    direct = toy_figure.measure({"m": 32, "steps": 5, "seed": 2}, lab.PlainContext())
    assert float(collection.data["error"].sel(m=32, seed=2)) == direct["error"]
    assert "mean_error" in collection.data
    assert "error" not in collection.statistics
    assert [verdict.outcome for verdict in collection.verdicts][1] == lab.NOT_CONFIRMED
    assert '"scale": "smoke"' in collection.data.attrs["plan"]
