"""Readings of Figs. 1 and 2: what a choice changes, and what it leaves as it was."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import xarray as xr

from headcount import lab
from headcount.papers.arda2026.ar import ARWindows
from headcount.papers.arda2026.figures import fig2, recurrent
from headcount.papers.arda2026.figures.fig2 import over_training


def configs(figure: str, **options: str) -> list[Any]:
    plan = lab.make_plan(f"arda2026/{figure}", "smoke", options=options)
    return [trial.config for trial in plan.trials if trial.measurement.name != "arda2026-memory"]


@pytest.mark.parametrize("choice", [{"norm": "loss_gradient"}, {"until": "through"}])
def test_choices_of_what_is_compared_run_nothing_new(choice: dict[str, str]) -> None:
    assert configs("fig2", **choice) == configs("fig2")


@pytest.mark.parametrize(
    ("choice", "given"),
    [
        ({"tokens": "raw"}, {"normalise_tokens": False}),
        ({"positions": "scaled"}, {"position_scale": 0.25}),
        ({"positions": "geometric"}, {"frequencies": "geometric"}),
        ({"positions": "none"}, {"pairs": 0}),
        ({"windows": "overlapping"}, {"windows": "overlapping"}),
        ({"validation": "random"}, {"split": "random"}),
        ({"labels": "none"}, {"standardise_labels": "none"}),
    ],
)
def test_choices_of_the_data_reach_every_run(choice: dict[str, str], given: dict[str, Any]) -> None:
    for ours, other in zip(configs("fig2"), configs("fig2", **choice), strict=True):
        assert {**ours, "data_options": ours["data_options"] | given} == other


def test_positions_for_the_transformer_alone() -> None:
    for config in configs("fig2", positions="transformer"):
        assert config["data_options"].get("pairs") == (0 if config["model"] == "indrnn" else None)


@pytest.mark.parametrize(
    ("figure", "measurement", "choice", "given"),
    [
        ("fig1", "training", {"steps": "4"}, {"steps": 160, "eta": 1 / math.sqrt(160)}),
        ("fig1", "training", {"step": "code"}, {"eta": 1.75 / math.sqrt(40)}),
        ("fig1", "training", {"split": "80"}, {"n": 80}),
        ("fig1", "approximation", {"heads": "unpaired"}, {"init": "unpaired"}),
        ("samples", "samples", {"heads": "unpaired"}, {"init": "unpaired"}),
        ("tokens", "training", {"step": "code"}, {"eta": 1.75 / math.sqrt(40)}),
    ],
)
def test_a_choice_of_the_run_reaches_it_and_nothing_else(
    figure: str, measurement: str, choice: dict[str, str], given: dict[str, Any]
) -> None:
    plans = [lab.make_plan(f"arda2026/{figure}", "smoke", options=one) for one in ({}, choice)]
    for ours, other in zip(*(plan.trials for plan in plans), strict=True):
        concerned = ours.measurement.name == f"arda2026-{measurement}"
        assert {**ours.config, **(given if concerned else {})} == other.config


@pytest.mark.parametrize("figure", ["fig1", "steps", "iterates", "projsgd", "samples", "tokens"])
def test_the_teacher_of_the_code_labels_every_run(figure: str) -> None:
    labelled = [c for c in configs(figure, teacher="code") if c["data"] == "transport-teacher"]
    assert labelled
    assert {c["data_options"]["attention"] for c in labelled} == {"diagonal"}


def test_gamma_and_the_step_of_the_comparison() -> None:
    for config in configs("fig2", gamma="0.5", step="code"):
        assert config["eta"] == 0.05
        assert config["init_options"] == ({"gamma": 0.5} if config["model"] == "indrnn" else {})


def test_the_norm_of_the_reading_is_compared() -> None:
    """The IndRNN's is larger in that norm alone."""
    norms, chosen = recurrent.NORMS, "loss_gradient"
    sides = np.ones((2, 3, 2)) + 0.01 * np.arange(3)[None, :, None]
    dims = ("model", "seed", "L")
    larger = sides * np.array([1.0, 5.0])[:, None, None]
    data = xr.Dataset(
        {f"max_{norm}": (dims, larger if norm == chosen else 1 / larger) for norm in norms}
        | {"min_validation_loss": (dims, sides), "state_bytes": (("model", "L"), np.ones((2, 2)))},
        coords={"model": list(recurrent.MODELS), "L": [4, 16], "seed": [0, 1, 2]},
    )
    outcomes = {}
    for norm in norms:
        data.attrs["plan"] = json.dumps({"options": {"until": "before", "norm": norm}})
        outcomes[norm] = fig2.verdicts(data)[0].outcome
    assert {n for n, outcome in outcomes.items() if outcome == lab.CONFIRMED} == {chosen}


def test_the_number_of_anchors_is_that_of_the_reading() -> None:
    labelled = [c for c in configs("fig1", anchors="4") if c["data"] == "transport-teacher"]
    assert labelled
    assert {config["data_options"]["anchors"] for config in labelled} == {4}


def test_the_last_step_counts_where_the_reading_says_so() -> None:
    norms = ("jacobian_of_mean", "mean_jacobian", "largest_jacobian", "loss_gradient")
    data = xr.Dataset({f"{when}_{norm}": value for norm in norms for when, value in
                       (("max", 2.0), ("end", 3.0))})  # fmt: skip
    data = data.assign(min_validation_loss=0.5, end_validation_loss=0.25)
    for until, largest, smallest in (("before", 2.0, 0.5), ("through", 3.0, 0.25)):
        data.attrs["plan"] = json.dumps({"options": {"until": until}})
        found = over_training(data)
        assert found["max_loss_gradient"] == largest
        assert found["min_validation_loss"] == smallest


def test_positional_channels_by_hand() -> None:
    law: dict[str, Any] = {"L": 3, "pairs": 2, "normalise_tokens": False}
    plain, scaled = (ARWindows(**law, position_scale=s).sample(2, 0).x for s in (1.0, 0.25))
    np.testing.assert_allclose(scaled[..., 1:], plain[..., 1:] / 4)
    np.testing.assert_array_equal(scaled[..., 0], plain[..., 0])
    usual = ARWindows(**law, frequencies="geometric")
    t = np.arange(4)
    angles = np.stack([t, t / 100], axis=1)
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(usual.sample(2, 0).x[0, :, 1:], expected)
    assert usual.token_form is None
    form = ARWindows(**law, position_scale=0.25).token_form
    assert form is not None
    form.check("x", scaled)  # a multiple of the channels: the fast path is right
