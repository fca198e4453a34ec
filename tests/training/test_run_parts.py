"""Runs made by hand: what they say, their parameters, as data sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.core._tree import axis_letters
from headcount.papers.arda2026 import IndRNN, PooledAttention
from headcount.papers.deora2024.model import LinearParams, MultiHeadParams
from headcount.training import Run, _run
from headcount.training._stored import gathered


def run(**changes: Any) -> Run:
    values: dict[str, Any] = {
        "settings": {"model": "m", "optimiser": "gd", "n": 3, "dtype": "float64"},
        "seeds": (4, 9),
        "loss": np.array([[4.0, 2.0, 3.0], [8.0, np.nan, np.nan]]),
        "final_loss": np.array([1.0, np.nan]),
        "average_loss": None,
        "traces": {},
        "recorded_steps": np.array([0, 2]),
        "records": {"a/b": np.zeros((2, 2, 5))},
        "params": LinearParams(np.array([[[1.0]], [[2.0]]])),
        "average": None,
        "best": LinearParams(np.array([[[5.0]], [[6.0]]])),
        "initial": LinearParams(np.array([[[3.0]], [[4.0]]])),
        "diverged_at": np.array([-1, 1]),
        "seconds": 1.26,
    }
    return Run(**{**values, **changes})


def test_what_a_run_says() -> None:
    found = run()
    assert found.min_loss.tolist() == [2.0, 8.0]
    assert found.outcomes == ("completed", "diverged at step 1")
    assert run(diverged_at=np.array([0, -1])).outcomes[0] == "diverged at step 0"
    assert not found.single
    summary = found.summary()
    assert summary["steps"] == 3
    assert summary["seeds"] == 2
    assert summary["loss"] == "6 -> 1"
    assert summary["outcome"] == "1 diverged"
    assert summary["seconds"] == 1.3
    assert run(diverged_at=np.array([-1, -1])).summary()["outcome"] == "completed"
    assert np.isnan(run(loss=np.full((2, 3), np.nan)).min_loss).all()
    assert _run._median(np.array([np.nan])) == "nan"


def test_parameters_of_a_run() -> None:
    found = run()
    assert float(found.parameters("final", 9).U[0, 0]) == 2.0
    assert float(found.parameters("initial", 4).U[0, 0]) == 3.0
    assert float(found.parameters("best", 9).U[0, 0]) == 6.0
    for bad in (("average", 4), ("final", 5), ("final", None)):
        with pytest.raises(BadArgument):
            found.parameters(*bad)
    with pytest.raises(BadArgument, match="are several"):
        found.without_seeds()
    one = jax.tree.map(lambda leaf: leaf[:1], replace(found, seeds=(4,)))
    alone = one.without_seeds()
    assert alone.single
    assert alone.without_seeds() is alone
    assert float(alone.parameters().U[0, 0]) == float(one.parameters("final", 4).U[0, 0]) == 1.0
    assert alone.summary()["seeds"] == 1


def test_a_run_as_a_data_set() -> None:
    data = run(average_loss=np.array([0.5, 0.6]), traces={"t": np.zeros((2, 4))}).to_xarray()
    assert data["loss_trace"].dims == ("seed", "step")
    assert data["average_loss"].values.tolist() == [0.5, 0.6]
    assert data["t_trace"].dims == ("seed", "iterate")
    assert data["a_b"].dims == ("seed", "recorded_step", "a_b_axis0")
    assert data["final_U"].dims == ("seed", "T", "d")
    assert data["seed"].values.tolist() == [4, 9]
    assert "average_U" not in data
    assert "average_loss" not in run().to_xarray()
    assert _run._plain({"a": True, "b": 1, "c": None}) == {"a": "True", "b": 1, "c": "None"}


def test_axes_have_the_letters_of_the_paper() -> None:
    model = PooledAttention(3, 4)
    start = jax.tree.map(np.zeros, model.shapes(), is_leaf=lambda leaf: type(leaf) is tuple)
    assert axis_letters(start) == {"c": ("m",), "U": ("m", "d"), "W": ("m", "d", "d_2")}
    heads = MultiHeadParams(np.zeros((4, 2, 3)), np.zeros((4, 3, 3)))
    assert axis_letters(heads) == {"U": ("H", "T", "d"), "W": ("H", "d", "d_2")}
    assert axis_letters({"A": np.zeros(3)}) == {}
    # A letter that is a recorded quantity as well, or another size elsewhere, is no name.
    assert run(records={"T": np.zeros((2, 2))}).to_xarray()["final_U"].dims[1] == "U_axis0"
    axes = _run._Axes(start, ())
    assert axes("U", (4, 3)) == ("m", "d")
    assert axes("W", (4, 3, 2)) == ("m", "d", "d_2")
    assert axes("c", (5,)) == ("c_axis0",)


def test_stored_parameters_are_gathered_by_name() -> None:
    model = IndRNN(2, 3)
    arrays = {f"final_{name}": np.full(1, k) for k, name in enumerate(("c", "U", "w"))}
    found = gathered(model, arrays, "final_")
    assert [float(leaf[0]) for leaf in found] == [0, 1, 2]
    assert gathered(model, arrays, "best_") is None
    del arrays["final_w"]
    assert gathered(model, arrays, "final_") is None
