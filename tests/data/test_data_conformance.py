"""What every registered data model must do: a new one is tested by being registered."""

from __future__ import annotations

import dataclasses
import inspect
import tempfile
from pathlib import Path

import jax
import numpy as np
import pytest
from assumptions import assumption_holds

from headcount.core import BadArgument
from headcount.data import DataModel, Measurement, as_dataset, data_models


def _wave() -> str:
    """A CSV file with a wave that never repeats a value."""
    values = np.sin(np.arange(150.0)) + 0.01 * np.arange(150)
    file = Path(tempfile.mkdtemp()) / "wave.csv"
    file.write_text("\n".join(["wave", *map(repr, values.tolist())]))
    return str(file)


SMALL = {
    "transport-teacher": {"T": 3, "d": 2, "anchors": 2, "pool": 8},
    "series": {"path": _wave(), "T": 3},
}
BREAKS_ITS_ASSUMPTION = {"dm1"}
"""By design and by default: Gaussian noise, as in the paper's experiments, has no sure bound."""


def make(name):
    return data_models[name](**SMALL.get(name, {}))


every_model = pytest.mark.parametrize("name", list(data_models))


@every_model
def test_is_a_frozen_hashable_description(name):
    model = make(name)
    assert isinstance(model, DataModel)
    assert model.name == name
    assert hash(model) == hash(make(name))
    assert model == make(name)
    assert len(model.assumption) > 20
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.T = 3
    parameters = inspect.signature(type(model)).parameters.values()
    assert all(p.default is not inspect.Parameter.empty for p in parameters)


@every_model
def test_samples_have_the_documented_shape_and_depend_on_the_seed_alone(name):
    model = make(name)
    x, y = model.sample(12, seed=3)
    assert x.shape == (12, model.T, model.d)
    assert y.shape == (12,)
    assert x.dtype == y.dtype == np.float64
    assert isinstance(x, np.ndarray)
    assert isinstance(y, np.ndarray)
    model.sample(5, seed=9)
    again = make(name).sample(12, seed=3)
    np.testing.assert_array_equal(x, again.x)
    np.testing.assert_array_equal(y, again.y)
    assert not np.array_equal(x, model.sample(12, seed=4).x)
    with jax.enable_x64(False):
        single = model.sample(12, seed=3)
    np.testing.assert_array_equal(x, single.x)
    np.testing.assert_array_equal(y, single.y)


def own_tokens(model, part):
    """The tokens that must not be shared, without what is fixed for all samples."""
    if model.name == "dm1":  # Relevant tokens carry no noise.
        return set(map(bytes, part.x[~model.relevant_mask(part)]))
    if model.name == "digit-pair":  # Patches of two images may agree, whole images do not.
        return set(map(bytes, part.x))
    varying = 1 if model.name == "ar" else model.d  # Positional channels are fixed.
    return set(map(bytes, part.x.reshape(-1, model.d)[:, :varying].copy()))


@every_model
def test_validation_is_disjoint_from_training(name):
    model = make(name)
    train, validation = model.sample_split(12, 7, seed=3)
    alone = model.sample(12, seed=3)
    np.testing.assert_array_equal(train.x, alone.x)
    np.testing.assert_allclose(train.y, alone.y, rtol=1e-12, atol=1e-15)
    assert validation.x.shape == (7, *train.x.shape[1:])
    assert validation.y.shape == (7,)
    tokens = [own_tokens(model, part) for part in (train, validation)]
    assert not tokens[0] & tokens[1]


@every_model
def test_the_claimed_assumption_is_measured(name):
    model = make(name)
    found = model.measure(model.sample(60, seed=1))
    assert all(
        isinstance(m, Measurement) and np.isfinite(m.value) and m.meaning for m in found.values()
    )
    assert assumption_holds(found) == (name not in BREAKS_ITS_ASSUMPTION)


@every_model
@pytest.mark.parametrize("n", [0, -1, 2.5, True, "3"])
def test_bad_sizes_are_named(name, n):
    model = make(name)
    with pytest.raises(BadArgument, match=r"n = .*must be a whole number >= 1"):
        model.sample(n, 0)
    with pytest.raises(BadArgument, match=r"n_val = .*must be a whole number >= 1"):
        model.sample_split(12, n, 0)


@every_model
def test_measuring_bad_data_is_refused(name):
    model = make(name)
    x, y = model.sample(12, 0)
    broken = x.copy()
    broken[0, 0, 0] = np.nan
    with pytest.raises(BadArgument, match="NaN or infinite"):
        model.measure(type(model.sample(12, 0))(broken, y))


def test_measurements_know_their_bounds():
    assert Measurement.at_most(1.0 + 1e-15, 1.0, "").holds
    assert not Measurement.at_most(1.001, 1.0, "").holds
    assert Measurement.at_least(2.0, 2.0, "").holds
    assert not Measurement.at_least(1.99, 2.0, "").holds
    assert not Measurement.above(0.0, 0.0, "").holds
    assert Measurement.observed(3, "").holds is None


def test_user_arrays_become_checked_float64():
    data = as_dataset(np.ones((2, 3, 1), np.float32), [1, 2])
    assert data.x.dtype == data.y.dtype == np.float64
    for x, y, message in [
        (np.ones((2, 3)), [1, 2], "must have shape"),
        (np.ones((0, 3, 1)), [], "is empty"),
        (np.ones((2, 3, 1)), [1, 2, 3], "must have shape"),
        (np.full((2, 3, 1), np.inf), [1, 2], "NaN or infinite"),
        (np.ones((2, 3, 1)), [1, np.nan], "NaN or infinite"),
    ]:
        with pytest.raises(BadArgument, match=message):
            as_dataset(x, y)
