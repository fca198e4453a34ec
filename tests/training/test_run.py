"""A run as a data set and as a file."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from training_problems import linear

from headcount.core import BadArgument
from headcount.training import (
    AttentionMass,
    HeadBalls,
    Run,
    gd,
    projgd,
    read_run,
    stack_seeds,
    train,
)


@pytest.fixture(scope="module")
def run() -> Run:
    model, params, x, y = linear()
    other = linear(seed=1)[1]
    return train(
        model,
        stack_seeds([params, other]),
        x,
        y,
        seeds=[3, 8],
        rule=projgd(0.1, HeadBalls((("U", 0.5),))),
        steps=4,
        record=["outputs", "margin"],
        record_every=3,
        keep="average",
    )


def test_data_set_has_named_dimensions(run: Run) -> None:
    data = run.to_xarray()
    assert data["loss_trace"].dims == ("seed", "step")
    assert data["outputs"].dims == ("seed", "recorded_step", "sample")
    assert data["final_U"].dims == ("seed", "T", "d")
    np.testing.assert_array_equal(data["seed"], [3, 8])
    np.testing.assert_array_equal(data["recorded_step"], [0, 3, 4])
    np.testing.assert_array_equal(data["initial_U"], run.initial.U)
    np.testing.assert_array_equal(data["average_U"], run.average.U)
    np.testing.assert_array_equal(data["diverged_at"], [-1, -1])
    assert "best_U" not in data
    described = {"model": "deora2024-linear", "optimiser": "projgd", "optimiser_eta": 0.1}
    described |= {"loss": "mean-squared", "steps": 4, "n": 5, "T": 3, "dtype": "float32"}
    assert described.items() <= data.attrs.items()
    assert "HeadBalls" in data.attrs["projection"]
    assert data.attrs["seconds"] > 0


def test_parameters_of_one_seed(run: Run) -> None:
    np.testing.assert_array_equal(run.parameters(seed=8).U, run.params.U[1])
    np.testing.assert_array_equal(run.parameters("average", 3).U, run.average.U[0])
    for wrong in (None, 0):
        with pytest.raises(BadArgument, match=r"seed = .*the run has \(3, 8\)"):
            run.parameters("initial", wrong)
    with pytest.raises(BadArgument, match="final, average"):
        run.parameters("best", 3)
    model, start, x, y = linear()
    alone = train(model, start, x, y, rule=gd(0.1), steps=1)
    np.testing.assert_array_equal(alone.parameters().U, alone.params.U)


def test_one_seed_has_no_axis_unless_asked() -> None:
    model, start, x, y = linear()
    settings = {"rule": gd(0.1), "steps": 3, "record": "outputs", "keep": "best"}
    alone = train(model, start, x, y, **settings)
    asked = train(model, stack_seeds([start]), x, y, seeds=[0], **settings)
    assert alone.single
    assert not asked.single
    assert alone.loss.shape == (3,)
    assert asked.loss.shape == (1, 3)
    assert alone.records["outputs"].shape == (2, 5)
    assert alone.min_loss.shape == ()
    np.testing.assert_array_equal(alone.min_loss, asked.min_loss[0])
    assert alone.outcomes == asked.outcomes == ("completed",)
    np.testing.assert_array_equal(alone.parameters("initial").U, start.U.astype(np.float32))
    xr.testing.assert_equal(alone.to_xarray(), asked.to_xarray())
    with pytest.raises(BadArgument, match="are several"):
        train(model, stack_seeds([start] * 2), x, y, seeds=[0, 1], **settings).without_seeds()


def test_a_run_is_a_pytree(run: Run) -> None:
    second = jax.tree.map(lambda leaf: leaf[1], run)
    assert second.single
    np.testing.assert_array_equal(second.loss, run.loss[1])
    np.testing.assert_array_equal(second.recorded_steps, run.recorded_steps)
    assert second.settings == run.settings
    gaps = jax.tree.map(lambda a, b: np.abs(a - b).max(), run, run)
    assert max(jax.tree.leaves(gaps)) == 0
    means = jax.jit(lambda r: jax.tree.map(lambda leaf: leaf.mean(axis=0), r.params))(run)
    np.testing.assert_allclose(means.U, run.params.U.mean(axis=0), rtol=1e-6)


def test_file_holds_the_data_set(run: Run, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"run\.nc holds no configuration: .* config=TrainConfig"):
        path = run.save(tmp_path / "new" / "run.nc")
    with pytest.raises(BadArgument, match="holds no configuration"):
        read_run(path)
    with xr.open_dataset(path, engine="h5netcdf") as read:
        assert read.attrs.pop("checksum")
        xr.testing.assert_identical(read.load(), run.to_xarray())
    assert [p.name for p in path.parent.iterdir()] == ["run.nc"]


@pytest.mark.filterwarnings("ignore:.* holds no configuration")
def test_a_failed_save_leaves_the_old_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "run.nc"
    target.write_bytes(b"old")

    def broken(self: xr.Dataset, path: Path, **_: object) -> None:
        Path(path).write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", broken)
    with pytest.raises(OSError, match="disk full"):
        run.save(target)
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["run.nc"]


@pytest.mark.filterwarnings("ignore:.* holds no configuration")
def test_a_run_without_recorders_saves_too(tmp_path: Path) -> None:
    model, params, x, y = linear()
    plain = train(model, params, x, y, rule=projgd(0.1, HeadBalls((("U", 0.5),))), steps=2)
    assert plain.records == {}
    with xr.open_dataset(plain.save(tmp_path / "plain.nc"), engine="h5netcdf") as read:
        assert read["loss_trace"].shape == (1, 2)
        assert read.sizes["recorded_step"] == 0


@pytest.mark.filterwarnings("ignore:.* holds no configuration")
def test_nested_parameters_of_a_function_are_recorded_and_saved(tmp_path: Path) -> None:
    """The same function with flat and with nested parameters: the same numbers, longer names."""
    x = np.linspace(-1, 1, 24).reshape(4, 3, 2)
    y = x[:, 0, 0]
    first, second, bias = np.ones((2, 3)), np.full(3, 0.5), np.array(0.1)

    def flat(params, sample):
        return jnp.tanh(sample.mean(axis=0) @ params["A"]) @ params["b"] + params["c"]

    def nested(params, sample):
        hidden, (b, c) = params["layer"]["A"], params["out"]
        return flat({"A": hidden, "b": b, "c": c}, sample)

    settings = {"rule": gd(0.3), "steps": 3, "record": ["jacobian", "gradient"], "dtype": "float64"}
    plain = train(flat, {"A": first, "b": second, "c": bias}, x, y, **settings)
    deep = train(nested, {"layer": {"A": first}, "out": (second, bias)}, x, y, **settings)
    deep.save(tmp_path / "run.nc")
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as data:
        np.testing.assert_array_equal(data["final_layer_A"][0], plain.params["A"])
        np.testing.assert_array_equal(data["final_out_1"][0], plain.params["c"])
    for name in ("jacobian_of_mean", "jacobian_mean", "jacobian_max", "gradient"):
        np.testing.assert_array_equal(deep.records[f"{name}_layer"], plain.records[f"{name}_A"])
    for name in ("jacobian_of_mean", "gradient"):
        parts = [plain.records[f"{name}_{block}"] for block in "bc"]
        np.testing.assert_allclose(deep.records[f"{name}_out"], np.hypot(*parts), rtol=1e-14)


def test_attention_masks_are_compared_by_identity() -> None:
    """Two masks are never mistaken for each other in the cache of programs."""
    mask = np.ones((2, 3), bool)
    assert AttentionMass(mask) != AttentionMass(mask)
