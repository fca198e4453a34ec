"""Training part by part, with nothing compiled: chunks, plans, checks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument, losses
from headcount.papers.arda2026 import PooledAttention, arda2026_chunk
from headcount.papers.deora2024.fast import deora2024_chunk
from headcount.papers.deora2024.model import HeadGroups, LinearModel, LinearParams
from headcount.papers.wu2023.fast import wu2023_chunk
from headcount.papers.wu2023.model import Encoder
from headcount.training import TrainConfig, _build, _config, _plan, _setup, gd, sgd, stack_seeds
from headcount.training import _paths as paths
from headcount.training._config import ProblemConfig
from headcount.training._devices import check_split, sample_mesh
from headcount.training._recipes import inverse_root
from headcount.training._train import _listed, _validation


def test_chunks_of_a_data_set() -> None:
    """Seven samples by three: the last chunk is moved back, its repeated samples weigh nothing."""
    y = jnp.arange(7.0)
    data = paths.into_chunks(y[:, None, None], y, losses["mean-squared"], 3)
    assert data.count == 3
    assert data.sample_weight == 1 / 7
    for k, (first, weights) in enumerate([(0, (1, 1, 1)), (3, (1, 1, 1)), (4, (0, 0, 1))]):
        samples = data[k]
        np.testing.assert_array_equal(samples.y, np.arange(first, first + 3))
        np.testing.assert_array_equal(samples.x[:, 0, 0], samples.y)
        np.testing.assert_allclose(samples.weight, np.array(weights) / 7)
    whole = paths.into_chunks(y[:, None, None], y, losses["half-squared-sum"], 99)
    assert (whole.count, whole.size, whole.sample_weight) == (
        1,
        7,
        losses["half-squared-sum"].weight(7),
    )
    assert paths.into_chunks(y[:6, None, None], y[:6], losses["mean-squared"], 3).count == 2


@pytest.mark.parametrize(
    ("n", "chunk", "expected"), [(7, 3, 3), (10, 6, 5), (9, 4, 3), (8, 4, 4), (5, 5, 5), (9, 8, 5)]
)
def test_chunks_are_balanced(n: int, chunk: int, expected: int) -> None:
    assert paths.balanced(n, chunk) == expected


def test_the_size_of_chunks() -> None:
    assert [paths.default_chunk(T) for T in (1, 4, 4096, 10**6)] == [4096, 1024, 1, 1]
    model = PooledAttention(2, 8)
    assert arda2026_chunk(model, 16) == 2**16 // 128
    assert arda2026_chunk(model, 2**20) == 1
    groups = HeadGroups(4, 2, (5, 7))
    assert deora2024_chunk(groups, 4) == 2**17 // (2 * 4 * 4)
    assert deora2024_chunk(HeadGroups(4, 2, (5, 7), "last"), 4) == 2**17 // (2 * 4)
    assert deora2024_chunk(groups, 2**20) == 1
    for width, T, expected in (
        (8, 1, 512),
        (8, 100, 5),
        (2**13, 1, 256),
        (6000, 1, 349),
        (8, 600, 1),
    ):
        encoder = Encoder(2, width, tau0=1.0, tau1=1.0, pooling="sum")
        assert wu2023_chunk(encoder, T) == expected


def test_parts_of_chunks_are_joined_in_order() -> None:
    y = jnp.arange(7.0)
    data = paths.into_chunks(y[:, None, None], y, losses["mean-squared"], 3)
    with jax.disable_jit():
        parts = jnp.stack([data[k].y for k in range(3)])
        np.testing.assert_array_equal(paths._joined(parts, data), y)
        sums, joined = paths.fold_chunks(lambda s: (jnp.sum(s.weight * s.y), s.y * 2), data)
        assert float(sums) == pytest.approx(3.0)
        np.testing.assert_array_equal(joined, 2 * y)
        np.testing.assert_array_equal(paths.map_over_chunks(lambda s: s.y, data), y)
        assert float(paths.sum_over_chunks(lambda s: jnp.sum(s.weight), data)) == pytest.approx(1.0)


CONFIG = TrainConfig.of(
    {"width": 4, "n": 10, "steps": 6, "data_options": {"d": 2, "T": 3}, "rho": (1, 1, 1)}
)


def planned(**changes: Any) -> Any:
    return _plan.plan_training(CONFIG.model_copy(update=changes))


def test_the_bytes_of_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_plan, "_step_seconds", lambda config, model, data: 0.5)
    parameters, numbers = 4 * (1 + 2 + 4), 10 * (3 * 2 + 1)
    plan = planned()
    assert (plan.T, plan.d, plan.parameters, plan.data_bytes) == (3, 2, parameters, 8 * numbers)

    def expected(item: int, copies: int, kept: int = 0, seeds: int = 1, trace: int = 7) -> int:
        p, n = seeds * parameters, seeds * numbers
        return 8 * (n + p) + item * (n + copies * p + seeds * trace + kept)

    assert plan.memory_bytes == expected(4, 4)
    assert planned(dtype="float64").memory_bytes == expected(8, 4)
    assert planned(keep=("average", "best")).memory_bytes == expected(4, 6)
    for optimiser, more in (("adam", 2), ("momentum", 1)):
        found = planned(optimiser=optimiser, rho=None).memory_bytes
        assert found == expected(4, 4 + more)
    recorded = {"record": ("iterates",)}
    assert planned(**recorded).memory_bytes == expected(4, 4, kept=2 * parameters)
    often = planned(**recorded, record_every=2)
    assert often.memory_bytes == expected(4, 4, kept=4 * parameters)
    assert planned(record=("distance",), record_every=2).memory_bytes == expected(4, 4)
    two = planned(seeds=(0, 1))
    assert two.memory_bytes == expected(4, 4, seeds=2)
    assert (plan.seconds, two.seconds) == pytest.approx((3 + 6 * 0.5, 3 + 2 * 6 * 0.5), abs=0.05)
    assert planned(n_val=5).data_bytes == 8 * 15 * 7
    problem = {k: v for k, v in CONFIG.model_dump().items() if k in ProblemConfig.model_fields}
    alone = _plan.plan_training(ProblemConfig(**problem))
    assert (alone.memory_bytes, alone.seconds) == (8 * (numbers + parameters), None)


def test_the_seconds_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations of one and two samples, extended to all of them, or to a batch."""
    counted = {1: (2e9, 1e9), 2: (3e9, 4e9)}
    monkeypatch.setattr(_plan, "_operations", lambda config, model, data, count: counted[count])
    assert _plan._step_seconds(CONFIG, None, None) == pytest.approx((1e9 + 9 * 3e9) / 50e9)
    batch = CONFIG.model_copy(update={"batch_size": 1})
    assert _plan._step_seconds(batch, None, None) == pytest.approx(2e9 / 50e9)


@pytest.mark.parametrize(("memory", "fits"), [(10, True), (11, False)])
def test_what_fits(memory: int, fits: bool) -> None:
    plan = _plan.TrainingPlan(1, 1, 1, 1, memory, 10, None)
    assert plan.fits is fits
    if fits:
        _plan.require_memory(plan)
        return
    with pytest.raises(ValueError, match="does not fit into memory"):
        _plan.require_memory(plan)


def test_what_a_setting_takes_in_words() -> None:
    fields = TrainConfig.model_fields
    words = {name: _config._wanted(fields[name].annotation)[0] for name in fields}
    assert (words["data_options"], words["rho"]) == ("a table of options", "three numbers")
    assert words["seeds"] == "whole numbers"
    assert words["keep"] == "a list of words"
    assert words["width"] == words["chunk"] == "a whole number"
    assert words["eta"] == "a number"
    assert words["model"] == "a word"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"width": 0}, "width"),
        ({"n": 0}, "n"),
        ({"n_val": -1}, "n_val"),
        ({"seeds": ()}, "seeds"),
        ({"steps": 0}, "steps"),
        ({"record_every": 0}, "record_every"),
        ({"chunk": 0}, "chunk"),
        ({"dtype": "float16"}, "dtype"),
        ({"keep": ("worst",)}, "keep"),
        ({"batch_size": 3}, "batch_size"),
        ({"optimiser": "sgd", "rho": None}, "batch_size"),
        ({"optimiser": "sgd", "rho": None, "batch_size": 11}, "at most 10"),
        ({"optimiser": "gd"}, "rho"),
        ({"rho": None}, "rho"),
        ({"model": "linear", "optimiser": "projgd"}, "projection|model"),
    ],
)
def test_settings_that_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises((BadArgument, KeyError), match=problem):
        _build.check_settings(CONFIG.model_copy(update=changes))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"width": 1, "n": 1, "n_val": 0, "steps": 1, "record_every": 1, "chunk": 1},
        {"optimiser": "sgd", "rho": None, "batch_size": 10},
        {"optimiser": "projsgd", "batch_size": 1},
        {"optimiser": "gd", "rho": None},
    ],
)
def test_settings_that_are_fine(changes: dict[str, Any]) -> None:
    config = CONFIG.model_copy(update=changes)
    _build.check_settings(config)
    rule = _build.build_rule(config)
    assert rule.batch_size == config.batch_size


def test_step_sizes_of_a_configuration() -> None:
    assert [inverse_root(steps, 1, "") for steps in (0, 1, 4)] == [1.0, 1.0, 0.5]
    assert CONFIG.model_copy(update={"eta": 0.3}).step_size == 0.3
    other = CONFIG.model_copy(update={"optimiser": "adam", "rho": None, "steps": 16})
    assert other.step_size == 0.25
    assert CONFIG.fingerprint == CONFIG.model_copy().fingerprint
    assert CONFIG.fingerprint != other.fingerprint
    assert len(CONFIG.fingerprint) == 12
    assert CONFIG.resolved()["eta"] == CONFIG.step_size


def test_options_that_are_not_known() -> None:
    assert _build.check_options("f", "o", ("d", "T"), {"d": 1}) == {"d": 1}
    with pytest.raises(BadArgument, match="did you mean depth"):
        _build.check_options("f", "o", ("depth", "T"), {"dept": 1})
    with pytest.raises(BadArgument, match="it has no options"):
        _build.check_options("f", "o", (), {"d": 1})


def made(**changes: Any) -> _setup.Setup:
    rng = np.random.default_rng(0)
    values: dict[str, Any] = {
        "model": LinearModel(3, 2),
        "start": LinearParams(rng.normal(size=(1, 3, 2))),
        "x": rng.normal(size=(5, 3, 2)),
        "y": rng.normal(size=5),
        "rule": gd(0.1),
        "steps": 4,
        "loss": losses["mean-squared"],
        "seeds": (0,),
        "validation": None,
        "recorders": (),
        "every": 4,
        "tracers": (),
        "keep": (),
        "dtype": "float64",
        "chunk": None,
        "tokens": None,
    }
    return _setup.Setup(**{**values, **changes})


def test_the_arguments_of_a_run() -> None:
    setup = made()
    assert (setup.n, setup.T, setup.shared) == (5, 3, True)
    described = setup.describe()
    assert (described["n"], described["T"], described["batch_size"], described["devices"]) == (
        5,
        3,
        5,
        1,
    )
    assert made(rule=sgd(0.1, batch_size=2)).describe()["batch_size"] == 2
    assert made(steps=_setup.MOST_STEPS).steps == 10**9
    many = made(x=np.zeros((1, 5, 3, 2)), y=np.zeros((1, 5)))
    assert not many.shared
    assert many.n == 5
    x, y = np.ones((1, 2, 3, 2)), np.ones((1, 2))
    for own, shape in (((x, y), (2, 3, 2)), ((x[0], y[0]), (2, 3, 2))):
        held_out = made(validation=own).held_out(True)
        assert held_out is not None
        assert held_out[0].shape == shape
    assert made(validation=(x, y)).held_out(False)[0].shape == (1, 2, 3, 2)  # type: ignore[index]
    assert made().held_out(True) is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"steps": 0}, "steps"),
        ({"steps": 10**9 + 1}, "more than 1000000000"),
        ({"model": 3}, "is no such function"),
        ({"every": 0}, "record_every"),
        ({"chunk": 0}, "chunk"),
        ({"dtype": "half"}, "dtype"),
        ({"keep": ("worst",)}, "keep"),
        ({"seeds": ()}, "seeds"),
        ({"y": np.zeros(4)}, "y"),
        ({"loss": losses["logistic"], "y": np.array([1.0, -1, 1, -1, 0])}, "only -1 and"),
        ({"x": np.zeros((2, 5, 3, 2)), "y": np.zeros((2, 5))}, "x"),
        ({"start": LinearParams(np.full((1, 3, 2), np.nan))}, "U"),
        ({"start": LinearParams(np.zeros((2, 3, 2)))}, "U"),
        ({"validation": (np.zeros((2, 4, 2)), np.zeros(2))}, "validation x"),
        ({"validation": (np.zeros((2, 3, 2)), np.zeros(3))}, "validation y"),
        ({"model": lambda params, x: x}, "return a scalar"),
    ],
)
@pytest.mark.usefixtures("wrong_shapes")
def test_arguments_that_are_refused(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadArgument, match=problem):
        made(**changes)
    assert made(loss=losses["logistic"], y=np.array([1.0, -1, 1, -1, 1])).n == 5


def test_devices_and_lists() -> None:
    assert sample_mesh(None) is None
    assert sample_mesh(1) is None
    assert sample_mesh(jax.devices()[:1]) is None
    for bad in (0, 10**6, "cpu", [1], True):
        with pytest.raises(BadArgument, match="devices"):
            sample_mesh(bad)  # type: ignore[arg-type]
    mesh: Any = SimpleNamespace(size=2)
    check_split(None, 5, 3, True)
    check_split(mesh, 4, None, False)
    for n, batch, traced, problem in (
        (5, None, False, "use 4 samples"),
        (4, 2, False, "all samples"),
        (4, None, True, "trace"),
    ):
        with pytest.raises(BadArgument, match=problem):
            check_split(mesh, n, batch, traced)
    assert _listed("keep", "best") == ("best",)
    assert _listed("seeds", np.array([1, 2])) == (1, 2)
    assert _listed("keep", ["a", "b"]) == ("a", "b")
    for pair in (3, (1,), (1, 2, 3), [1, 2]):
        with pytest.raises(BadArgument, match="validation"):
            _validation(pair, None, losses["mean-squared"])
    x, y = _validation((np.ones((2, 1, 1)), [1, 2]), None, losses["mean-squared"])
    assert (x.shape, y.dtype) == ((2, 1, 1), np.float64)
    assert stack_seeds([{"a": 1.0}, {"a": 2.0}])["a"].tolist() == [1.0, 2.0]
    with pytest.raises(BadArgument, match="must hold numbers"):
        _setup.as_floats("x", np.array(["a"]))
    assert _setup.as_floats("x", [True, False]).dtype == np.float64
