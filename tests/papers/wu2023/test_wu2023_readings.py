"""Readings of wu2023's figures: what a choice changes in the trials, and what it measures."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import xarray as xr

from headcount import lab
from headcount.papers.wu2023.figures import fig2, fig5, hessian, limit


def configs(figure: str, **options: str) -> list[Any]:
    plan = lab.make_plan(f"wu2023/{figure}", "smoke", options=options)
    return [trial.config for trial in plan.trials]


@pytest.mark.parametrize(
    ("figure", "choice", "given"),
    [
        ("fig2", {"gamma": "lambda"}, {"eta": None}),
        ("fig9", {"dtype": "float64"}, {"dtype": "float64"}),
        ("fig3", {"gamma": "lambda"}, {"eta": None}),
        ("fig5", {"dtype": "float64"}, {"dtype": "float64"}),
        ("scaling", {"gamma": "fixed"}, {"eta": 0.1}),
        ("hessian", {"law": "shifted"}, {"shift": 1.0}),
        ("limit", {"tokens": "raw"}, {"tokens": "raw"}),
        ("limit", {"pooling": "mean"}, {"pooling": "mean"}),
        ("fig5", {"scaling": "ntk"}, {"model_options": {"scaling": "ntk", "pooling": "mean"}}),
        ("scaling", {"init": "he"}, {"init": "he"}),
        ("fig6", {"scaling": "ntk"}, {"scaling": "ntk"}),
        ("fig7", {"width": "16384"}, {"d_m": 16384}),
        ("fig8", {"step": "printed"}, {"eta": 0.1}),
        ("fig4", {"block": "no-mlp"}, {"block": "no-mlp"}),
        ("fig4", {"readout": "class"}, {"readout": "class"}),
        ("fig4", {"init": "small"}, {"init": "small"}),
        ("fig4", {"batch": "0.5"}, {"batch_size": 16}),
        ("fig4", {"schedule": "cosine"}, {"schedule": "cosine"}),
    ],
)
def test_a_choice_reaches_every_run_and_changes_nothing_else(
    figure: str, choice: dict[str, str], given: dict[str, Any]
) -> None:
    ours, other = configs(figure), configs(figure, **choice)
    assert ours != other
    assert [{**config, **given} for config in ours] == other


@pytest.mark.parametrize("figure", ["fig2", "fig3", "fig5", "fig9"])
@pytest.mark.parametrize(("reading", "pooling"), [("printed", "mean"), ("formulas", "sum")])
def test_the_normalisation_is_that_of_the_reading(figure: str, reading: str, pooling: str) -> None:
    for config in configs(figure, normalisation=reading):
        assert (config["loss"], config["data_options"]["tokens"]) == ("half-squared-sum", "raw")
        assert config["model_options"].get("pooling", pooling) == pooling


def test_the_scale_outside_goes_with_the_width() -> None:
    assert "tau1" not in configs("fig4")[0]
    for config in configs("fig4", outside="ntk"):
        assert config["tau1"] == config["d_m"] ** -0.5


def test_all_widths_are_judged_where_the_reading_says_so() -> None:
    assert configs("fig2", widths="all") == configs("fig2")
    plan = lab.make_plan("wu2023/fig2", "smoke")
    rng = np.random.default_rng(0)
    curves = ("loss", "movement", "kernel_from_start", "kernel_from_previous")
    dims = ("d_m", "seed", "epoch")
    data = xr.Dataset(
        {name: (dims, rng.uniform(0.1, 1, (2, 3, 17))) for name in curves}
        | {"finite": (("d_m", "seed"), np.ones((2, 3)))},
        coords={"d_m": [4, 32], "seed": [0, 1, 2], "epoch": np.arange(17)},
    )
    counted = {}
    for widths in ("converging", "all"):
        data.attrs["plan"] = json.dumps({"options": plan.options | {"widths": widths}})
        found = fig2.verdicts(data)
        counted[widths] = sum("less than a tenth" in finding.claim for finding in found)
    assert counted == {"converging": 1, "all": 2}


def test_only_converging_widths_are_judged_where_the_reading_says_so() -> None:
    plan = lab.make_plan("wu2023/fig5", "smoke")
    dims, sizes = ("panel", "d_m", "seed", "epoch"), (4, 2, 3, 17)
    loss = np.random.default_rng(0).uniform(0.1, 1, sizes)
    data = xr.Dataset(
        {"loss": (dims, loss), "finite": (dims[:3], np.ones(sizes[:3]))},
        coords={"panel": list(fig5.PANELS), "d_m": [4, 32], "seed": [0, 1, 2],
                "epoch": np.arange(17)},
    )  # fmt: skip
    judged = {}
    for widths in ("all", "converging"):
        data.attrs["plan"] = json.dumps({"options": plan.options | {"widths": widths}})
        judged[widths] = [finding.claim for finding in fig5.verdicts(data)]
    only = [claim for claim in judged["all"] if not claim.startswith("width 4:")]
    assert judged["converging"] == only
    assert len(only) == len(judged["all"]) - 4


def test_shifted_tokens_have_a_sum_away_from_zero() -> None:
    """The same relation as with Gaussian tokens holds for the Hessian of the shifted ones."""
    config = {"widths": [3], "T": 4, "init": "he", "scaling": "ntk", "seed": 2}
    plain = hessian.measure_hessian(config, lab.PlainContext())
    far = hessian.measure_hessian({**config, "shift": 1e6}, lab.PlainContext())
    equal = hessian.measure_hessian({**config, "shift": 1e9}, lab.PlainContext())
    assert not np.allclose(plain["hessian_norm"], far["hessian_norm"], rtol=1e-2)
    np.testing.assert_allclose(far["hessian_norm"], equal["hessian_norm"], rtol=1e-4)


def test_the_kernel_of_mean_pooling_goes_to_the_limit_of_mean_pooling() -> None:
    config = {"n": 4, "T": 3, "d": 5, "tokens": "scaled", "init": "ntk", "scaling": "ntk",
              "seed": 0, "widths": [2000]}  # fmt: skip
    for pooling in ("sum", "mean"):
        found = limit.measure_limit({**config, "pooling": pooling}, lab.PlainContext())
        assert found["limit_error"][0] < 0.15
