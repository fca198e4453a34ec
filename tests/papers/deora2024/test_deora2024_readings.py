"""Readings of Figs. 2-5: what a choice changes, and that the default's trials stay the same."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import xarray as xr

from headcount import lab
from headcount.core import BadArgument
from headcount.papers.deora2024.dm2 import DM2
from headcount.papers.deora2024.figures.curves import reached
from headcount.papers.deora2024.figures.fig4 import planted_margins


def addresses(figure: str, **options: str) -> set[str]:
    return set(lab.make_plan(figure, "paper", options=options).unique)


@pytest.mark.parametrize("figure", ["fig4", "fig5"])
def test_a_choice_of_the_verdicts_alone_runs_nothing_new(figure: str) -> None:
    ours = addresses(f"deora2024/{figure}")
    assert addresses(f"deora2024/{figure}", judged="every") == ours
    for choice in ({"readout": "plain"}, {"attention": "unit"}, {"attention": "scaled"}):
        assert not ours & addresses(f"deora2024/{figure}", **choice)
    shared = ours & addresses(f"deora2024/{figure}", heads="16")
    assert 0 < len(shared) < len(ours)


@pytest.mark.parametrize(
    ("figure", "choice", "given"),
    [
        ("fig2", {"positions": "fixed"}, {"relevant": "fixed"}),
        ("fig4", {"planted": "seed"}, {"planted_seed": None}),
        ("fig4", {"readout": "plain"}, {"readout": "plain"}),
        ("fig5", {"attention": "unit"}, {"attention": "unit"}),
    ],
)
def test_a_choice_of_the_data_reaches_every_run(
    figure: str, choice: dict[str, str], given: dict[str, str | None]
) -> None:
    ours, other = (
        [t.config for t in lab.make_plan(f"deora2024/{figure}", "smoke", options=one).trials]
        for one in ({}, choice)
    )
    for config in (*ours, *other):
        config["data_options"] = {"planted_seed": None} | config["data_options"]
    assert [{**c, "data_options": c["data_options"] | given} for c in ours] == other


@pytest.mark.parametrize(
    ("choice", "given"),
    [({"step": "0.1"}, {"gd": 0.1, "momentum": 0.1}), ({"adam": "0.01"}, {"adam": 0.01 / 0.06})],
)
def test_a_step_is_changed_for_its_optimisers(
    choice: dict[str, str], given: dict[str, float]
) -> None:
    plans = [lab.make_plan("deora2024/fig5", "smoke", options=one) for one in ({}, choice)]
    for ours, other in zip(*(plan.trials for plan in plans), strict=True):
        factor = given.get(str(ours.coordinates["run"]), 1.0)
        assert other.config["eta"] == pytest.approx(factor * ours.config["eta"])


def test_three_times_as_many_iterations() -> None:
    plans = [lab.make_plan("deora2024/fig3", "smoke", options=o) for o in ({}, {"iterations": "3"})]
    counts = [{trial.config["steps"] for trial in plan.trials} for plan in plans]
    assert counts == [{40}, {120}]


def test_the_default_names_no_choice_in_its_trials() -> None:
    """So that what was run before there were choices is found again."""
    plan = lab.make_plan("deora2024/fig4", "paper")
    given = {tuple(trial.config["data_options"]) for trial in plan.trials}
    assert given == {("T", "d", "margin", "planted_seed")}


def test_the_planted_head_by_its_choices() -> None:
    ours, plain = DM2(T=4, d=3).planted(5), DM2(T=4, d=3, readout="plain").planted(5)
    assert np.linalg.norm(ours.U) == pytest.approx(1)
    np.testing.assert_allclose(plain.U / np.linalg.norm(plain.U), ours.U)
    np.testing.assert_array_equal(plain.W, ours.W)
    scaled, unit = (DM2(T=4, d=3, attention=a).planted(5) for a in ("scaled", "unit"))
    np.testing.assert_allclose(scaled.W * math.sqrt(3), ours.W)
    np.testing.assert_allclose(unit.W * np.linalg.norm(ours.W), ours.W)
    with pytest.raises(BadArgument, match="attention = 'none'"):
        DM2(attention="none")


def made_under(**options: str) -> xr.Dataset:
    data = xr.Dataset(coords={"seed": [0, 1, 2]})
    data.attrs["plan"] = json.dumps({"options": options})
    return data


def test_the_margin_is_that_of_a_unit_read_out() -> None:
    by_seed = {"planted": "seed", "attention": "gaussian"}
    own = [np.linalg.norm(DM2(readout="plain").planted(s).U) for s in range(3)]
    found = planted_margins(made_under(readout="plain", **by_seed))
    np.testing.assert_allclose(found, 0.2 / np.array(own))
    np.testing.assert_allclose(planted_margins(made_under(readout="unit", **by_seed)), 0.2)


def test_one_stuck_run_decides_where_every_run_is_asked() -> None:
    values = np.array([[1.0, 1.0], [1.02, 1.01], [1.01, 0.98]])
    average = reached(made_under(judged="average"), "all", values, 0.9)
    every = reached(made_under(judged="every"), "all", values, 0.99)
    assert (average.outcome, every.outcome) == ("confirmed", "not confirmed")
    assert every.value == 0.98
    assert reached(made_under(judged="every"), "all", values, 0.97).outcome == "confirmed"
