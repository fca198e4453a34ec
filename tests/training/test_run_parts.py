"""Runs made by hand: what they say, their parameters, as data sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from training_problems import linear, linear_gradient, linear_loss

from headcount.core import BadArgument, losses, stream
from headcount.core._tree import axis_letters
from headcount.papers.arda2026 import IndRNN, PooledAttention
from headcount.papers.deora2024.dm1 import DM1
from headcount.papers.deora2024.model import HeadGroups, LinearParams, MultiHeadParams
from headcount.papers.deora2024.starts import two_phase, two_phase_groups
from headcount.papers.wu2023.model import Encoder, EncoderParams
from headcount.training import (
    HeadBalls,
    NoProjection,
    Run,
    TrainConfig,
    _run,
    adam,
    build,
    build_problem,
    from_optax,
    gd,
    into_chunks,
    momentum,
    optimisers,
    projgd,
    projsgd,
    read_run,
    run_config,
    sgd,
    train,
)
from headcount.training._build import check_settings
from headcount.training._config import ProblemConfig
from headcount.training._loop import batch_indices
from headcount.training._paths import balanced, map_over_chunks, sum_over_chunks
from headcount.training._plan import plan_training, require_memory
from headcount.training._recorders import attention_rows
from headcount.training._rules import UpdateRule
from headcount.training._runfile import UncheckedRun
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


SMALL = {"width": 4, "n": 6, "steps": 3}


TEACHER = {"data_options": {"T": 3, "d": 2, "pool": 8, "anchors": 2}}


@pytest.mark.parametrize("field", ["model", "init", "data", "optimiser", "loss", "record", "keep"])
def test_the_example_for_a_word_is_valid(field):
    with pytest.raises(BadArgument, match=f"for example {field}=") as caught:
        TrainConfig.of({field: 3})
    example = caught.value.fix.rpartition("=")[2]
    given = example.split(",") if field in ("record", "keep") else example
    check_settings(TrainConfig.of({field: given}))


def test_a_problem_needs_no_optimiser_and_is_that_of_the_run():
    values = {"width": 4, "n": 6, "n_val": 2, "seeds": (0, 3), **TEACHER}
    alone = build_problem(ProblemConfig.of(values))
    run = build(TrainConfig.of({**values, "optimiser": "adam"}))
    for one, other in ((alone.initial, run.initial), (alone.validation, run.validation)):
        jax.tree.map(np.testing.assert_array_equal, one, other)
    np.testing.assert_array_equal(alone.x[1], alone.data.sample_split(6, 2, 3)[0].x)
    with pytest.raises(BadArgument, match="optimiser"):
        ProblemConfig.of({"optimiser": "gd"})


def test_two_phase_looks_at_fresh_samples_only():
    values = {"model": "deora2024", "width": 4, "n": 5, "n_val": 2, "init": "two-phase"}
    built = build_problem(ProblemConfig.of({**values, "init_options": {"n_init": 3}}))
    fresh = DM1().sample_split(5, 5, 0)[1]
    expected = two_phase(built.model, 0, x=fresh.x[2:], y=fresh.y[2:])
    np.testing.assert_array_equal(built.initial.U[0], expected.U)
    for seen in (built.x[0], built.validation[0][0]):
        assert not any(np.array_equal(x, s) for x in fresh.x[2:] for s in seen)
    groups = build_problem(
        ProblemConfig.of({**values, "model": "deora2024-groups", "init_options": {"n_init": 3}})
    )
    model, start = two_phase_groups(10, 4, 4, 0, x=fresh.x[2:], y=fresh.y[2:])
    assert isinstance(groups.model, HeadGroups)
    assert groups.model == model
    np.testing.assert_array_equal(groups.initial.U[0], start.U)


OLDER = {
    "final_loss": "without final_loss",
    "loss_trace": "without loss_trace",
    "diverged_at": "without diverged_at",
    "initial_U": "without initial parameters",
    "final_W": "without final parameters",
}


@pytest.mark.filterwarnings("ignore::headcount.training._runfile.UncheckedRun")
def test_a_run_file_of_an_older_layout_is_refused_in_one_line(tmp_path):
    path = run_config(TrainConfig.of({**SMALL, **TEACHER})).save(tmp_path / "run.nc")
    read_run(path)
    with h5py.File(path, "a") as file:
        del file.attrs["checksum"]  # earlier versions wrote none
    with pytest.warns(UncheckedRun, match="has no checksum: damage to it would not be noticed"):
        read_run(path)
    for name, message in OLDER.items():
        with h5py.File(path, "a") as file:
            file.move(name, f"older_{name}")
        with pytest.raises(BadArgument, match=f"another version: {message}; train it again") as bad:
            read_run(path)
        assert "\n" not in str(bad.value)
        with h5py.File(path, "a") as file:
            file.move(f"older_{name}", name)
    with h5py.File(path, "a") as file:
        del file.attrs["seconds"]
    with pytest.raises(BadArgument, match="without seconds"):
        read_run(path)


@pytest.mark.parametrize(("n", "chunk"), [(7, 3), (8, 4), (5, 9), (1, 1), (10, 4)])
def test_chunks_count_every_sample_once_and_in_order(n: int, chunk: int) -> None:
    x = jnp.arange(n * 2.0).reshape(n, 1, 2)
    chunks = into_chunks(x, jnp.arange(n * 1.0), losses["half-squared-sum"], chunk)
    weight = sum_over_chunks(lambda s: jnp.sum(s.weight), chunks)
    weighted = sum_over_chunks(lambda s: jnp.tensordot(s.weight, s.x, axes=1), chunks)
    joined = map_over_chunks(lambda s: {"x": s.x, "y": s.y}, chunks)
    assert float(weight) == n
    np.testing.assert_array_equal(weighted, np.sum(x, axis=0))
    np.testing.assert_array_equal(joined["x"], x)
    np.testing.assert_array_equal(joined["y"], np.arange(n))


@pytest.mark.parametrize(("n", "chunk"), [(4000, 512), (7, 3), (5, 5), (1, 1), (100, 99)])
def test_balanced_chunks_are_the_smallest_of_their_number(n: int, chunk: int) -> None:
    size = balanced(n, chunk)
    assert size <= chunk
    assert -(-n // size) == -(-n // chunk)
    assert size == 1 or -(-n // (size - 1)) > -(-n // size)


def naive_softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max())
    return e / e.sum()


def test_attention_rows_of_an_encoder() -> None:
    rng = np.random.default_rng(1)
    model = Encoder(d=3, d_m=4, tau0=0.5, tau1=1.0, pooling="sum")
    params = EncoderParams(*(rng.normal(size=s) for s in model.shapes()))
    x = rng.normal(size=(5, 3))
    rows = attention_rows(model)(params, jnp.asarray(x))
    logits = 0.5 * x @ params.W_Q.T @ params.W_K @ x.T
    np.testing.assert_allclose(rows[0], [naive_softmax(z) for z in logits], rtol=1e-10)


CONFIG = TrainConfig(
    width=4,
    n=12,
    steps=6,
    eta=0.2,
    dtype="float64",
    record=("iterates",),
    record_every=1,
    data_options={"T": 3, "d": 2, "pool": 16, "anchors": 3},
)


def test_the_plan_counts_what_is_there():
    one = plan_training(CONFIG)
    more = plan_training(CONFIG.model_copy(update={"seeds": (0, 1), "record": ()}))
    assert (one.T, one.d, one.parameters) == (3, 2, 4 * 7)
    assert more.parameters == 2 * one.parameters
    assert more.data_bytes == 2 * one.data_bytes == 2 * 8 * 12 * 7
    assert one.fits
    slow = plan_training(CONFIG.model_copy(update={"n": 10**7, "steps": 10**5}))
    assert slow.seconds > 1000 * one.seconds
    with pytest.raises(ValueError, match="does not fit into memory"):
        require_memory(plan_training(CONFIG.model_copy(update={"n": 10**13})))


STEPS, SEED, RHO = 6, 11, 0.2
BALLS = HeadBalls((("U", RHO),))


Update = Callable[[np.ndarray, np.ndarray, int, dict], np.ndarray]


def plain(eta: float) -> Update:
    return lambda U, g, k, memory: U - eta * g


def heavy_ball(eta: float, beta: float) -> Update:
    def update(U, g, k, memory):
        memory["b"] = beta * memory.get("b", 0) + g
        return U - eta * memory["b"]

    return update


def adam_recursion(eta: float, b1: float, b2: float, eps: float) -> Update:
    def update(U, g, k, memory):
        memory["m"] = b1 * memory.get("m", 0) + (1 - b1) * g
        memory["v"] = b2 * memory.get("v", 0) + (1 - b2) * g**2
        first = memory["m"] / (1 - b1 ** (k + 1))
        second = memory["v"] / (1 - b2 ** (k + 1))
        return U - eta * first / (np.sqrt(second) + eps)

    return update


def onto_balls(U: np.ndarray, start: np.ndarray) -> np.ndarray:
    radius = RHO / np.sqrt(len(U))
    away = U - start
    lengths = np.linalg.norm(away, axis=1, keepdims=True)
    return start + away * np.minimum(1, radius / lengths)


CASES = {
    "gd": (gd(0.1), plain(0.1)),
    "projgd": (projgd(0.1, BALLS), plain(0.1)),
    "sgd": (sgd(0.1, batch_size=3), plain(0.1)),
    "projsgd": (projsgd(0.1, BALLS), plain(0.1)),
    "momentum": (momentum(0.05, beta=0.7), heavy_ball(0.05, 0.7)),
    "momentum-batches": (momentum(0.05, 0.7, batch_size=2), heavy_ball(0.05, 0.7)),
    "adam": (adam(0.1, 0.8, 0.9, 1e-4), adam_recursion(0.1, 0.8, 0.9, 1e-4)),
    "optax": (from_optax(optax.sgd(0.05, momentum=0.7), BALLS), heavy_ball(0.05, 0.7)),
}


@pytest.mark.parametrize("case", CASES)
def test_rule_follows_its_recursion(case: str) -> None:
    rule, update = CASES[case]
    model, params, x, y = linear()
    key = stream(SEED, "batches")
    U, memory, losses = params.U, {}, []
    for k in range(STEPS):
        index = np.arange(len(y))
        if rule.batch_size is not None:
            index = np.asarray(batch_indices(key, k, rule.batch_size, len(y)))
        losses.append(linear_loss(U, x[index], y[index]))
        U = update(U, linear_gradient(U, x[index], y[index]), k, memory)
        if not isinstance(rule.projection, NoProjection):
            U = onto_balls(U, params.U)
    stacked = jax.tree.map(lambda leaf: leaf[None], params)
    run = train(model, stacked, x, y, rule=rule, steps=STEPS, seeds=[SEED], dtype="float64")
    run = run.without_seeds()
    np.testing.assert_allclose(run.params.U, U, rtol=1e-10)
    np.testing.assert_allclose(run.loss, losses, rtol=1e-10)
    np.testing.assert_allclose(run.final_loss, linear_loss(U, x, y), rtol=1e-10)


def test_batches_are_a_function_of_key_and_step() -> None:
    key = stream(3, "batches")
    drawn = np.asarray(jax.vmap(lambda k: batch_indices(key, k, 4, 10))(np.arange(200)))
    for k in (0, 7, 199):
        np.testing.assert_array_equal(drawn[k], batch_indices(key, k, 4, 10))
    counts = np.bincount(np.ravel(drawn), minlength=10)
    assert len(counts) == 10
    # 800 draws: each count is Binomial(800, 1/10), standard error 8.5.
    assert np.abs(counts - 80).max() < 5 * 8.5
    assert not np.array_equal(drawn[0], np.asarray(batch_indices(stream(4, "batches"), 0, 4, 10)))


def example(name: str, eta: float = 0.05) -> UpdateRule:
    """The rule `name` with plain arguments."""
    arguments = {"projgd": (BALLS,), "projsgd": (BALLS, 4), "sgd": (4,)}
    return optimisers[name](eta, *arguments.get(name, ()))


@pytest.mark.parametrize("name", list(optimisers))
def test_every_optimiser_conforms(name: str) -> None:
    assert optimisers[name].__doc__
    rule = example(name)
    assert rule.name == name
    assert dict(rule.settings)["eta"] == 0.05
    assert rule == example(name), "equal settings must share compiled programs"
    assert hash(rule) == hash(example(name))
    assert rule != example(name, eta=0.06)
    for eta in (0, -0.1, float("nan"), float("inf"), True, None):
        with pytest.raises(BadArgument, match=r"eta = .*must be a finite number > 0; set eta > 0"):
            example(name, eta=eta)
    model, params, x, y = linear(n=8)
    run = train(model, params, x, y, rule=rule, steps=20, dtype="float64")
    assert run.final_loss < linear_loss(params.U, x, y)


def test_rules_of_different_transformations_differ() -> None:
    """Equal names do not make equal rules: each would run the other's compiled program."""
    slow, fast = UpdateRule("mine", optax.sgd(0.01)), UpdateRule("mine", optax.sgd(0.1))
    assert slow != fast
    model, params, x, y = linear()
    ends = [train(model, params, x, y, rule=rule, steps=2).params.U for rule in (slow, fast)]
    assert not np.allclose(ends[0], ends[1])
