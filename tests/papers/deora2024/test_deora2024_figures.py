"""The deora2024 figures: measurements against naive twins, and smoke runs to verdicts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from drawing_checks import keys_on_data, words_beyond_panels
from headcount import lab, report
from headcount.data import Dataset
from headcount.kernels import direction_margins
from headcount.papers.deora2024.definition_1 import GoodStart, good_start
from headcount.papers.deora2024.dm1 import DM1
from headcount.papers.deora2024.dm2 import DM2
from headcount.papers.deora2024.figures import (
    curves,
    noise,
    one_head,
    required_heads,
    samples,
    stability,
    training_run,
)
from headcount.papers.deora2024.model import MultiHeadAttention, MultiHeadParams
from headcount.papers.deora2024.reduction import one_head as reduction
from headcount.papers.deora2024.starts import two_phase_groups, zero
from headcount.training import TrainConfig, run_config

IDS = [f"deora2024/{name}" for name in (
    "fig2", "fig3", "fig4", "fig5", "one-head", "random-start", "samples", "stability",
    "required-heads", "noise",
)]  # fmt: skip

REPLICATED = {1: 6, 16: 24}
"""Iterations to a training loss of 0.01 in an independent one-seed replication of Fig. 2."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One results folder for all smoke runs: figures share trials."""
    return tmp_path_factory.mktemp("results")


def smoke(figure: str, folder: Path) -> lab.Collection:
    plan = lab.make_plan(figure, "smoke")
    sweep = lab.run_plan(plan, folder, workers=0)
    assert sweep.problems == []
    return lab.collect(plan, lab.Store(folder))


@pytest.mark.parametrize("figure", IDS)
def test_smoke_scale_runs_to_verdicts_and_files(figure: str, folder: Path) -> None:
    collection = smoke(figure, folder)
    assert collection.missing == 0
    assert collection.verdicts
    assert len({verdict.claim for verdict in collection.verdicts}) == len(collection.verdicts)
    numbers = collection.statistics
    centres = [name for name in numbers if not str(name).endswith(("_low", "_high"))]
    assert all(np.any(np.isfinite(numbers[name])) for name in centres)
    assert report.render(collection, "svg")["svg"]
    canvas = report.draw(collection)
    assert keys_on_data(canvas) == words_beyond_panels(canvas) == []


@pytest.mark.parametrize("figure", IDS)
def test_the_caption_says_what_the_bands_are(figure: str, folder: Path) -> None:
    """A range over trials must not be called an interval, nor an interval a range."""
    collection = smoke(figure, folder)
    numbers, data = collection.statistics, collection.data
    raw = {str(name).removeprefix("average_").removesuffix("_along") for name in numbers}
    ranges = [
        name
        for name in raw & set(map(str, data))
        for drawn in (f"average_{name}_low", f"{name}_along_low")
        if drawn in numbers
    ]
    caption = report.draw(collection).get_supxlabel()
    assert ("smallest to largest trial" in caption) == bool(ranges)
    only_ranges = all(str(n).startswith("average_") for n in numbers if str(n).endswith("_low"))
    assert ("95 % interval" in caption) == (not only_ranges)


def test_iterations_are_those_of_an_independent_replication(folder: Path) -> None:
    found = smoke("deora2024/fig2", folder).data["iterations_to_level"].sel(run="gd-constant")
    for H, theirs in REPLICATED.items():
        np.testing.assert_allclose(found.sel(H=H).values, theirs, atol=3)


def test_figures_that_show_the_same_runs_share_them() -> None:
    gd = {t.address for t in lab.make_plan("deora2024/fig4", "paper").trials}
    assert gd < {t.address for t in lab.make_plan("deora2024/fig5", "paper").trials}


SETTINGS = {"n": 6, "n_test": 5, "steps": 7, "record_every": 3, "optimiser_options": {
    "momentum": {"beta": 0.8}, "adam": {"b1": 0.8, "b2": 0.95, "eps": 1e-3},
}}  # fmt: skip
SMALL = {"T": 5, "d": 4, "zeta": 0.2, "S": 1.5}


def config_of(data: str, **values: Any) -> dict[str, Any]:
    law = SMALL if data == "dm1" else {"T": 4, "d": 3}
    given = {"width": 3, "seeds": [2], "optimiser": "gd", "eta": 0.5, "data": data, **values}
    return training_run.run_config(SETTINGS, data_options=law, **given)


def plain_descent(model: MultiHeadAttention, data: Dataset) -> tuple[Any, list[MultiHeadParams]]:
    """All heads by automatic differentiation, one sample after the other."""

    def loss(theta: MultiHeadParams, x: Any, y: Any) -> jax.Array:
        f = jnp.stack([model(theta, X) for X in jnp.asarray(x)])
        return jnp.mean(jnp.log1p(jnp.exp(-y * f)))

    step = jax.jit(jax.grad(loss))
    path = [zero(model)]
    for _ in range(SETTINGS["steps"]):
        gradient = step(path[-1], *data)
        path.append(jax.tree.map(lambda p, g: p - 0.5 * g, path[-1], gradient))
    return loss, path


def test_a_dm1_run_is_what_the_panels_say() -> None:
    got = training_run.measure_run(config_of("dm1"), lab.PlainContext())
    law = DM1(**SMALL)
    data, test = law.sample_split(6, 5, 2)
    model = MultiHeadAttention(law.T, law.d, 3)
    loss, path = plain_descent(model, data)
    assert got["k"].tolist() == list(range(1, 8))
    relevant = law.relevant_mask(data)
    assert relevant.sum() == 6
    for at, k in enumerate(got["k"]):
        theta = path[k]
        np.testing.assert_allclose(got["train_loss"][at], loss(theta, *data), rtol=1e-11)
        np.testing.assert_allclose(got["test_loss"][at], loss(theta, *test), rtol=1e-11)
        norms = [np.linalg.norm(W) for W in theta.W], [np.linalg.norm(U) for U in theta.U]
        np.testing.assert_allclose(got["norm_W"][at], sum(norms[0]) / 3, rtol=1e-10, atol=1e-16)
        np.testing.assert_allclose(got["norm_U"][at], sum(norms[1]) / math.sqrt(3), rtol=1e-10)
        f = np.array([model(theta, jnp.asarray(X)) for X in data.x])
        margin = np.min(data.y * f) / np.linalg.norm(theta.U)
        np.testing.assert_allclose(got["margin"][at], margin, rtol=1e-9, atol=1e-14)
        masses = []
        for X, marked in zip(data.x, relevant, strict=True):
            for W in theta.W:
                for query in X:
                    scores = np.exp(X @ (np.asarray(W).T @ query))
                    masses.append(scores[marked].sum() / scores.sum())
        np.testing.assert_allclose(got["attention"][at], np.mean(masses), rtol=1e-10)
    assert got["start_output"] == 0


def test_a_dm2_run_has_the_cosines_with_the_planted_head() -> None:
    got = training_run.measure_run(config_of("dm2"), lab.PlainContext())
    law = DM2(T=4, d=3)
    _, path = plain_descent(MultiHeadAttention(4, 3, 3), law.sample(6, 2))
    planted = law.planted(2)
    for name, target, heads in (
        ("alignment_W", planted.W, [theta.W for theta in path]),
        ("alignment_U", planted.U, [theta.U for theta in path]),
    ):
        for at, k in enumerate(got["k"]):
            repeated, own = np.stack([target] * 3), np.asarray(heads[k])
            length = np.linalg.norm(own) * np.linalg.norm(repeated)
            # W does not move in the first step, and zero has no direction.
            wanted = np.sum(own * repeated) / length if length else np.nan
            np.testing.assert_allclose(got[name][at], wanted, rtol=1e-9)


@pytest.mark.parametrize("optimiser", ["gd", "momentum", "adam"])
def test_one_head_with_rescaled_steps_is_all_heads(optimiser: str) -> None:
    config = config_of("dm1", optimiser=optimiser, eta=0.2, model="deora2024")
    got = one_head.measure_one_head(config, lab.PlainContext())
    assert got["largest_error"] < 1e-12
    assert max(got["error_U"], got["error_W"]) < 1e-12
    np.testing.assert_allclose(got["loss_many"], got["loss_one"], rtol=1e-12)
    assert np.ptp(got["loss_many"]) > 1e-3


def test_a_gaussian_start_has_heads_of_unit_expected_size() -> None:
    config = config_of("dm1", model="deora2024", init="gaussian", width=500)
    _, built = training_run.problem_of({**config, "init_options": {"scale": 2.0}})
    for block in built.initial:
        squares = np.sum(block[0].reshape(500, -1) ** 2, axis=1)
        error = np.std(squares) / math.sqrt(500)
        assert abs(np.mean(squares) - 4) < 5 * error
    assert not np.allclose(built.initial.U[0, 0], built.initial.U[0, 1])


def test_kept_iterations_are_spread_in_log_k() -> None:
    every_five = np.arange(0, 1501, 5)
    kept = every_five[training_run.logarithmic(every_five)]
    assert kept[0] == 5
    assert kept[-1] == 1500
    assert len(kept) <= training_run.TRACE_POINTS
    assert np.all(np.diff(kept) > 0)
    few = np.arange(4)
    assert few[training_run.logarithmic(few)].tolist() == [1, 2, 3]


def test_early_iterations_are_all_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = training_run.measure_run(config_of("dm1"), lab.PlainContext())
    monkeypatch.setattr(training_run, "EARLY", 2)
    got = training_run.measure_run(config_of("dm1"), lab.PlainContext())
    assert got["k"].tolist() == [1, 2, 3, 6, 7]
    for name in ("test_loss", "norm_W", "attention"):
        np.testing.assert_array_equal(got[name], whole[name][got["k"] - 1])


def test_first_below_and_late_slope() -> None:
    k = np.arange(2000.0)
    assert training_run.first_below(1 / (k + 1), 0.01) == 100
    assert math.isnan(training_run.first_below(np.ones(5), 0.01))
    np.testing.assert_allclose(training_run.late_slope(np.append(9.0, 3 / k[1:])), -1, rtol=1e-10)
    np.testing.assert_allclose(
        training_run.late_slope(np.append(9.0, k[1:] ** -0.5)), -0.5, rtol=1e-10
    )


def test_step_sizes() -> None:
    settings = {"step_constant": 2.0, "adam_step": 0.06}
    assert curves.step_size(settings, "gd-constant", 16) == 2
    assert curves.step_size(settings, "gd", 16) == 8
    assert curves.step_size(settings, "momentum", 16) == 8
    assert curves.step_size(settings, "adam", 16) == 0.06


def test_gap_is_the_last_iterate_s() -> None:
    config = config_of("dm1")
    got = samples.measure_gap(config, lab.PlainContext())
    whole = training_run.measure_run(config, lab.PlainContext())
    assert got["train_loss"] == whole["train_loss"][-1]
    assert got["test_loss"] == whole["test_loss"][-1]
    assert got["gap"] == got["test_loss"] - got["train_loss"]


def test_stability_is_measured_at_the_iterations_it_names() -> None:
    config = {**config_of("dm1"), "tier": "sharp"}
    got = stability.measure_stability(config, lab.PlainContext())
    whole = training_run.measure_run(config, lab.PlainContext())
    assert got["k"].tolist() == whole["k"].tolist()
    np.testing.assert_allclose(got["train_loss"], whole["train_loss"], rtol=1e-10)
    np.testing.assert_allclose(got["gap"], whole["test_loss"] - whole["train_loss"], rtol=1e-8)
    # The target is the last iterate, from zero: N sqrt(H) = D.
    D, T, law = got["moved"], 5, DM1(**SMALL)
    R = np.max(np.linalg.norm(law.sample(6, 2).x, axis=2))
    beta_1 = math.sqrt(T) * R * (2 * R**2 * (3 * D + D / math.sqrt(3)) + 1)
    inner = 2 * 7 * got["train_loss"][-1] + 9 * D**2 / (4 * 0.5)
    np.testing.assert_allclose(got["lemma_11"][-1], 2 * 0.5 / 6 * beta_1 * inner, rtol=1e-9)
    np.testing.assert_allclose(got["theorem_4"][-1], 4 / 6 * inner, rtol=1e-9)


BOUNDED = DM1(T=5, zeta=0.2, S=1.5, noise="bounded", Z_mu=0.2, Z_nu=0.3)


def started() -> tuple[Any, MultiHeadParams, Dataset]:
    fresh, data = BOUNDED.sample(40, 7), BOUNDED.sample(8, 3)
    model, start = two_phase_groups(5, 4, 9, 1, x=fresh.x, y=fresh.y)
    return model, start, data


def test_the_direction_has_the_exact_margin_of_the_text() -> None:
    """y <u_*, sum x_t>/(S sqrt(2T)) + y <(sum x_t) (Cov(X) ubar)^T, W_*>/|W_*| [P3]."""
    model, start, (x, y) = started()
    direction = noise.tangent_direction(model, start, BOUNDED)
    got = direction_margins(model, start, direction, x, y)
    row = start.U[0, 0] * np.sign(start.U[0, 0] @ BOUNDED.u_star)
    u, W, T = BOUNDED.u_star, BOUNDED.W_star, BOUNDED.T
    for j, (X, label) in enumerate(zip(x, y, strict=True)):
        Cov = X.T @ (np.eye(T) / T - np.ones((T, T)) / T**2) @ X
        first = u @ X.sum(axis=0) / (BOUNDED.S * math.sqrt(2 * T))
        second = np.sum(np.outer(X.sum(axis=0), Cov @ row) * W) / np.linalg.norm(W)
        np.testing.assert_allclose(got[j], label * (first + second), rtol=1e-10)


def test_definition_1_and_the_bounds_of_the_mixture() -> None:
    model, start, (x, y) = started()
    own = good_start(model, start, x, y)
    size = max(np.linalg.norm(U) for U in start.U)
    np.testing.assert_allclose(own.B_2, max(1, size), rtol=1e-12)
    f = [model.plain(model.expand(start), jnp.asarray(X)) for X in x]
    np.testing.assert_allclose(own.B_Phi, max(1, np.max(np.abs(f))), rtol=1e-12)
    direction = noise.tangent_direction(model, start, BOUNDED)
    given = np.min(direction_margins(model, start, direction, x, y))
    found = noise.mixture_bounds(BOUNDED, start, x, y)
    # The best direction is no worse than theta_*, which is no worse than gamma_* promises.
    assert own.gamma >= given >= found["gamma_star"]
    row = start.U[0, 0] * np.sign(start.U[0, 0] @ BOUNDED.u_star)
    P = np.linalg.norm(row - 0.05 * BOUNDED.u_star)
    np.testing.assert_allclose(found["P"], P, rtol=1e-12)
    np.testing.assert_allclose(found["size_bound"], math.sqrt(5) * (1.5 + P), rtol=1e-12)
    R = np.max(np.linalg.norm(x, axis=2))
    bound = 5 * R * (1.5 + P) * math.sqrt(2 * math.log(2 / noise.DELTA))
    np.testing.assert_allclose(found["output_bound"], bound, rtol=1e-12)
    assert found["Z_mu"] <= 0.2
    assert found["Z_nu"] <= 0.3


@pytest.mark.parametrize(("form", "root"), [("printed", 1.0), ("corrected", math.sqrt(2))])
def test_required_heads_by_hand(form: str, root: float) -> None:
    own = GoodStart(B_2=1.5, B_Phi=2.0, gamma=0.3, status="separable", R=1.2, loss=0.7)
    G = (2 * 2.0 + math.log(100)) / 0.3
    T, d, g0 = 5, 4, root * G
    first = 256 * d * math.sqrt(T * d) * 1.2**3 * 1.5
    first *= (3 * math.sqrt(d) * 1.2**2 * (4 * g0 + 1.5) + 1) * g0**2
    second = 5 * d * math.sqrt(T * d) * 1.2**3 * (1.5 / 2) * (3 * math.sqrt(d) * 1.2**2 + 1) * G**3
    got = required_heads.required_heads(own, 100, T, d, form)
    np.testing.assert_allclose(got, max(first, second) ** 2, rtol=1e-12)


@pytest.mark.parametrize("kind", ["bounded", "gaussian"])
def test_both_laws_of_the_noise_have_the_same_deviation(kind: str) -> None:
    law = DM1(**noise.law_of(kind, 0.2, {}))
    z = law.noise_of(law.sample(400, 0))
    # Four-sigma band of a sample deviation; the Gaussian's kurtosis is the larger.
    assert np.all(np.abs(np.std(z, axis=0) - 0.2) < 4 * 0.2 / math.sqrt(2 * len(z)))


@pytest.mark.parametrize("optimiser", ["gd", "adam"])
def test_count_says_which_steps_make_one_head_the_same_run(optimiser: str) -> None:
    config = TrainConfig(
        model="deora2024", width=9, n=12, steps=20, eta=0.3, optimiser=optimiser, seeds=(0, 1)
    )
    (answer,) = reduction(config)
    smallest = float(np.median(run_config(config).min_loss))
    on_U, on_W = ("0.9", "0.3") if optimiser == "adam" else ("0.3", "0.03333")
    assert f"9 heads are one head with steps {on_U} on U and {on_W} on W" in answer.note
    assert answer.note.endswith(f"its smallest loss is {smallest:.3g}")
    assert reduction(config.model_copy(update={"init": "gaussian"})) == []
