"""The arda2026 figures: measurements against naive twins, options, smoke runs, resume."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from drawing_checks import keys_on_data
from headcount import lab, report
from headcount.data import GaussianTokens
from headcount.models import initialisations, outputs
from headcount.papers.arda2026 import (
    ARWindows,
    IndRNN,
    PooledAttention,
    PooledAttentionParams,
    TransportTeacher,
    omega,
    paired,
    paired_indrnn,
)
from headcount.papers.arda2026.figures import (
    errors_at_start,
    fig1,
    fig2,
    problem,
    recurrent,
    training,
)
from headcount.training import gd, train

RHO = (3.0, 2.0, 1.5)
IDS = [f"arda2026/{name}" for name in (
    "fig1", "fig2", "steps", "iterates", "samples", "tokens", "projsgd", "reference",
)]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One results folder for all smoke runs: figures share trials."""
    return tmp_path_factory.mktemp("results")


@pytest.fixture
def student() -> tuple[PooledAttention, PooledAttentionParams, np.ndarray]:
    """A small student at its initialisation, and inputs."""
    model = PooledAttention(3, 6)
    return model, paired(model, 5), GaussianTokens(4, 3).inputs(7, 5)


@pytest.mark.parametrize("figure", IDS)
def test_smoke_scale_runs_to_verdicts_and_files(figure: str, folder: Path) -> None:
    plan = lab.make_plan(figure, "smoke")
    sweep = lab.run_plan(plan, folder, workers=0)
    assert sweep.problems == []
    store = lab.Store(folder)
    collection = lab.collect(plan, store)
    assert collection.missing == 0
    assert all(np.isfinite(verdict.value) for verdict in collection.verdicts)
    assert len({verdict.claim for verdict in collection.verdicts}) == len(collection.verdicts)
    # Claims are for readers: words, no names of variables.
    assert not [v.claim for v in collection.verdicts if re.search(r"[a-z]{3,}_[a-z]", v.claim)]
    numbers = collection.statistics
    centres = [name for name in numbers if not str(name).endswith(("_low", "_high"))]
    assert all(np.isfinite(numbers[name]).all() for name in centres)
    assert report.render(collection, "svg")["svg"]
    assert keys_on_data(report.draw(collection)) == []


@pytest.mark.parametrize(
    ("name", "value", "kinds"),
    [
        ("teacher", "code", {"arda2026-approximation", "arda2026-training"}),
        ("step", "code", {"arda2026-training"}),
        ("heads", "unpaired", {"arda2026-approximation"}),
        ("split", "80", {"arda2026-training"}),
    ],
)
def test_an_option_changes_the_addresses_of_what_it_concerns_only(
    name: str, value: str, kinds: set[str]
) -> None:
    plain = lab.make_plan("arda2026/fig1", "smoke").unique
    other = lab.make_plan("arda2026/fig1", "smoke", options={name: value}).unique
    changed = {trial.measurement.name for key, trial in other.items() if key not in plain}
    kept = {trial.measurement.name for key, trial in other.items() if key in plain}
    assert changed == kinds
    assert kept == {trial.measurement.name for trial in plain.values()} - kinds


def test_code_direction_is_on_the_spheres_along_the_summed_gradient(student: Any) -> None:
    model, start, x = student
    shift = errors_at_start.code_direction(model, start, x, RHO)

    def summed(i: int) -> Callable[..., jax.Array]:
        return lambda U, W: sum(model.head(U, W, jnp.asarray(X)) for X in x)

    for i in range(model.m):
        G_U, G_W = jax.grad(summed(i), argnums=(0, 1))(start.U[i], start.W[i])
        for got, gradient, radius in ((shift.U[i], G_U, RHO[1]), (shift.W[i], G_W, RHO[2])):
            wanted = radius / math.sqrt(model.m) * gradient / np.linalg.norm(gradient)
            np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(shift.c, RHO[0] / math.sqrt(model.m))


def test_remainder_is_f_minus_the_gradient_s_line(student: Any) -> None:
    model, start, x = student
    shift = errors_at_start.code_direction(model, start, x, RHO)
    moved = jax.tree.map(np.add, start, shift)
    got = errors_at_start.remainder(model, start, shift, x)
    line = errors_at_start.linear_change(model, start, shift, x)
    for j, X in enumerate(jnp.asarray(x)):
        grad = jax.grad(model)(start, X)
        linear = sum(np.vdot(g, s) for g, s in zip(grad, shift, strict=True))
        np.testing.assert_allclose(line[j], linear, rtol=1e-10)
        np.testing.assert_allclose(got[j], float(model(moved, X)) - linear, rtol=1e-9, atol=1e-13)


def test_the_second_order_term_cancels_in_pairs(student: Any) -> None:
    """What is left of the code's direction is m^{-1/2} sum_i dc_i (h_i - h_i0)."""
    model, start, x = student
    shift = errors_at_start.code_direction(model, start, x, RHO)
    heads = jax.vmap(jax.vmap(model.head, in_axes=(0, 0, None)), in_axes=(None, None, 0))
    h0 = heads(start.U, start.W, x)
    h = heads(start.U + shift.U, start.W + shift.W, x)
    left = (h - h0) @ shift.c / math.sqrt(model.m)
    got = errors_at_start.remainder(model, start, shift, x)
    np.testing.assert_allclose(got, left, rtol=1e-9, atol=1e-13)


def test_adversarial_point_is_the_best_of_all_combinations() -> None:
    """One pair of heads: try all 8 x 8 boundary points of the two heads."""
    model = PooledAttention(3, 2)
    start = paired(model, 1)
    x = GaussianTokens(4, 3).inputs(3, 1)
    got = errors_at_start.adversarial_remainder(model, start, x, RHO)
    signs = [(a, b, c) for a in (1, -1) for b in (1, -1) for c in (1, -1)]
    r_c, r_u, r_w = (rho / math.sqrt(2) for rho in RHO)
    for j, X in enumerate(jnp.asarray(x)):
        grads = [jax.grad(model.head, argnums=(0, 1))(start.U[i], start.W[i], X) for i in range(2)]

        def point(i: int, sign: tuple[int, int, int], grads: Any = grads) -> tuple[Any, Any, Any]:
            G_U, G_W = grads[i]
            dU, dW = G_U / jnp.linalg.norm(G_U), G_W / jnp.linalg.norm(G_W)
            return sign[0] * r_c, sign[1] * r_u * dU, sign[2] * r_w * dW

        worst = 0.0
        for first in signs:
            for second in signs:
                parts = zip(point(0, first), point(1, second), strict=True)
                shift = PooledAttentionParams(*(np.stack([a, b]) for a, b in parts))
                error = errors_at_start.remainder(model, start, shift, X[None])
                worst = max(worst, abs(error.item()))
        np.testing.assert_allclose(got[j], worst, rtol=1e-9)


@pytest.mark.parametrize("teacher", ["paper", "code"])
@pytest.mark.parametrize("heads", ["paired", "unpaired"])
def test_approximation_error_is_a_small_pool_against_a_large_one(teacher: str, heads: str) -> None:
    """f_lin(phi~) is the mean of g over the student's own heads [arda2026, Eq. (10)]."""
    sizes = {"n": 20, "T": 4, "d": 3, "pool": 32}
    config = problem.teacher_student(sizes, 6, 2, teacher, init=heads, dtype="float64")
    got = errors_at_start.measure_approximation(config, lab.PlainContext())
    law = TransportTeacher(T=4, d=3, pool=32, **problem.TEACHERS[teacher])
    x = law.law.inputs(20, 2)
    transport = law.transport(2, x)
    y = law.labels(x, transport, 2)
    model = PooledAttention(3, 6)
    start = initialisations[heads](model, 2)
    own = _mean_of_g(law, transport, start, x)
    np.testing.assert_allclose(got["approximation_sup"], np.max(np.abs(own - y)), rtol=1e-9)
    np.testing.assert_allclose(got["approximation_rms"] ** 2, np.mean((own - y) ** 2), rtol=1e-9)


def _mean_of_g(law: TransportTeacher, transport: Any, start: Any, x: np.ndarray) -> np.ndarray:
    """(1/m) sum_i phi_c v_c + <phi_u, v_u> + <phi_w, v_w>, with gradients of h by autodiff."""
    diagonal = law.attention == "diagonal"
    model = PooledAttention(law.d, len(start.c))
    v = transport(start.c, start.U, start.W)
    result = np.zeros(len(x))
    for j, X in enumerate(jnp.asarray(x)):
        for i in range(model.m):
            W = start.W[i] * np.eye(law.d) if diagonal else start.W[i]
            h, (G_U, G_W) = jax.value_and_grad(model.head, argnums=(0, 1))(start.U[i], W, X)
            result[j] += h * v.v_c[i] + np.vdot(G_U, v.v_u[i]) + np.vdot(G_W, v.v_w[i])
    return result / model.m


def _training_config(batch: int | None = None, **changes: Any) -> dict[str, Any]:
    options = {"teacher": "paper", "step": "paper", "heads": "paired", "split": "all"}
    sizes = {"n": 30, "T": 4, "d": 3, "pool": 32, "steps": 250}
    return {**fig1.training_config(sizes, 4, 3, options, batch), **changes}


def test_training_trial_is_projected_descent_written_out() -> None:
    config = _training_config(steps=6, dtype="float64", eta=0.4, rho=[0.3, 0.2, 0.1])
    got = training.measure_training(config, lab.PlainContext())
    x, y = problem.student(config)[2:4]
    model = PooledAttention(3, 4)
    start = jax.tree.map(jnp.asarray, paired(model, 3))

    def loss(p: Any) -> jax.Array:
        return jnp.mean((outputs(model, p, jnp.asarray(x)) - y) ** 2)

    params, losses, points = start, [], []
    for _ in range(6):
        losses.append(float(loss(params)))
        points.append(params)
        stepped = jax.tree.map(lambda p, g: p - 0.4 * g, params, jax.grad(loss)(params))
        params = omega(0.3, 0.2, 0.1)(stepped, start)
    average = jax.tree.map(lambda *leaves: sum(leaves) / 6, *points)
    np.testing.assert_allclose(got["loss"], losses, rtol=1e-10)
    np.testing.assert_allclose(got["min_loss"], min(losses), rtol=1e-10)
    np.testing.assert_allclose(got["mean_loss"], np.mean(losses), rtol=1e-10)
    np.testing.assert_allclose(got["final_loss"], float(loss(params)), rtol=1e-10)
    np.testing.assert_allclose(got["average_iterate_loss"], float(loss(average)), rtol=1e-10)
    np.testing.assert_allclose(got["mean_square_label"], np.mean(y**2), rtol=1e-12)


def test_training_data_depend_on_the_seed_and_not_on_the_width() -> None:
    narrow = problem.student(_training_config())
    wide = problem.student(_training_config(width=8))
    other = problem.student(_training_config(seeds=[4]))
    np.testing.assert_array_equal(narrow.x, wide.x)
    np.testing.assert_array_equal(narrow.y, wide.y)
    assert not np.allclose(narrow.y, other.y)


class _Stops(Exception):
    """Raised by the context below in place of a kill."""


class _Interrupting(lab.PlainContext):
    """Saves at the k-th offer, then stops the trial."""

    def __init__(self, offer: int) -> None:
        super().__init__()
        self.left, self.saved = offer, None

    def checkpoint_due(self) -> bool:
        self.left -= 1
        return self.left == 0

    def checkpoint(self, state: Mapping[str, Any]) -> bool:
        self.saved = {name: np.array(value) for name, value in state.items()}
        raise _Stops


class _Resuming(lab.PlainContext):
    def __init__(self, saved: Any) -> None:
        super().__init__()
        self.saved = saved

    def restore(self) -> Any:
        return self.saved


@pytest.mark.parametrize("batch", [None, 1])
def test_resumed_training_trial_equals_the_uninterrupted_one(batch: int | None) -> None:
    config = _training_config(batch=batch)
    whole = training.measure_training(config, lab.PlainContext())
    stopped = _Interrupting(2)
    with pytest.raises(_Stops):
        training.measure_training(config, stopped)
    assert 0 < int(stopped.saved["done"]) < config["steps"]
    resumed = training.measure_training(config, _Resuming(stopped.saved))
    assert set(resumed) == set(whole)
    for name in whole:
        assert np.asarray(resumed[name]).tobytes() == np.asarray(whole[name]).tobytes(), name


def test_a_diverged_run_is_marked() -> None:
    context = lab.PlainContext()
    config = _recurrent_config("IndRNN", eta=1e200)
    recurrent.measure_recurrent(config, context)
    assert context.divergence is not None
    assert "diverged" in context.divergence


def _recurrent_config(model: str, **changes: Any) -> dict[str, Any]:
    sizes = {"n": 12, "n_val": 6, "m": 4, "steps": 4, "record_every": 2}
    options = lab.figures["arda2026/fig2"].choose({"tokens": "raw"})
    config = fig2.run_config(sizes, model, 2, 1, options)
    return {**config, "eta": 0.1, "dtype": "float64", **changes}


@pytest.mark.parametrize("normalise", [True, False], ids=["unit ball", "raw"])
@pytest.mark.parametrize(("n", "m"), [(12, 4), (700, 64)], ids=["one chunk", "several"])
@pytest.mark.parametrize("name", recurrent.MODELS)
def test_recurrent_norms_are_those_of_the_general_recorder(
    name: str, n: int, m: int, normalise: bool
) -> None:
    config = _recurrent_config(name, n=n, width=m)
    config["data_options"]["normalise_tokens"] = normalise
    got = recurrent.measure_recurrent(config, lab.PlainContext())
    data, validation = ARWindows(L=2, normalise_tokens=normalise).sample_split(n, 6, 1)
    model: Any = PooledAttention(17, m) if name == "Transformer" else IndRNN(17, m)
    start: Any = paired(model, 1) if name == "Transformer" else paired_indrnn(model, 1, gamma=1.5)
    run = train(
        model, start, *data, rule=gd(0.1), steps=4, record=("jacobian", "gradient", "validation"),
        record_every=2, validation=tuple(validation), dtype="float64",
    )  # fmt: skip
    b = "W" if name == "Transformer" else "w"
    wanted = {
        "jacobian_of_mean": f"jacobian_of_mean_{b}",
        "mean_jacobian": f"jacobian_mean_{b}",
        "largest_jacobian": f"jacobian_max_{b}",
        "loss_gradient": f"gradient_{b}",
    }
    for ours, theirs in wanted.items():
        records = run.records[theirs]
        np.testing.assert_allclose(got[f"max_{ours}"], records[:-1].max(), rtol=1e-9)
        np.testing.assert_allclose(got[f"end_{ours}"], records[-1], rtol=1e-9)
        np.testing.assert_allclose(got[f"first_{ours}"], records[0], rtol=1e-9)
    best, end = np.min(run.records["validation_loss"][:-1]), run.records["validation_loss"][-1]
    np.testing.assert_allclose(got["min_validation_loss"], best, rtol=1e-12)
    np.testing.assert_allclose(got["end_validation_loss"], end, rtol=1e-12)
    np.testing.assert_array_equal(got["recorded_step"], run.recorded_steps)


@pytest.mark.parametrize("name", recurrent.MODELS)
def test_streaming_predicts_what_the_model_says_of_the_window(name: str) -> None:
    x = jnp.asarray(ARWindows(L=3).sample(4, 0).x[1])
    if name == "Transformer":
        model: Any = PooledAttention(17, 4)
        params: Any = paired(model, 0)
        stream: Any = recurrent.stream_transformer
        state = jnp.zeros_like(x)
    else:
        model = IndRNN(17, 4)
        params = paired_indrnn(model, 0, gamma=1.0)
        stream, state = recurrent.stream_indrnn, jnp.zeros(4)
    params = params._replace(c=np.array([1.0, 0.5, -2.0, 0.25]))
    for token in x:
        state, prediction = stream(model, params, state, token)
    np.testing.assert_allclose(prediction, model(params, x), rtol=1e-12)


def test_memory_of_the_window_grows_and_that_of_the_state_does_not() -> None:
    sizes = {
        (model, L): recurrent.measure_memory(
            problem.complete(
                model=recurrent.MODELS[model], width=8, data="ar", data_options={"L": L}
            ),
            lab.PlainContext(),
        )
        for model in recurrent.MODELS
        for L in (4, 40)
    }
    assert sizes["Transformer", 40]["state_bytes"] == 4 * 41 * 17
    assert sizes["IndRNN", 4]["state_bytes"] == sizes["IndRNN", 40]["state_bytes"] == 4 * 8
    grown = [sizes[model, 40]["streaming_bytes"] - sizes[model, 4]["streaming_bytes"]
             for model in recurrent.MODELS]  # fmt: skip
    assert grown[0] > 0
    assert grown[1] == 0


def test_reference_verdicts_follow_the_options(folder: Path) -> None:
    """With the released code's choices the comparison is with the released code."""
    plan = lab.make_plan("arda2026/fig1", "smoke")
    lab.run_plan(plan, folder, workers=0)
    data = lab.collect(plan, lab.Store(folder)).data
    claims = " ".join(verdict.claim for verdict in plan.figure.verdicts(data))
    assert "approximation error is that of an independent" in claims
    described = json.loads(data.attrs["plan"])
    described["options"] |= {"teacher": "code", "heads": "unpaired"}
    data.attrs["plan"] = json.dumps(described)
    claims = " ".join(verdict.claim for verdict in plan.figure.verdicts(data))
    assert "approximation error is that of the released code" in claims
