"""The wu2023 figures: measurements against naive twins, options, smoke runs, resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from drawing_checks import keys_on_data
from headcount import kernels, lab, report
from headcount.core import BadArgument
from headcount.models import initialisations
from headcount.papers import wu2023
from headcount.papers.wu2023.data import GaussianRegression
from headcount.papers.wu2023.figures import (
    curves,
    descent,
    fig2,
    fig5,
    hessian,
    images,
    limit,
    tails,
)
from headcount.papers.wu2023.limit import arc_cosine
from headcount.papers.wu2023.model import Encoder, EncoderParams
from headcount.papers.wu2023.starts import lecun

IDS = [f"wu2023/{name}" for name in (
    *(f"fig{number}" for number in range(1, 10)), "hessian", "limit", "scaling",
)]  # fmt: skip


def own_data(figure: str) -> dict[str, str]:
    """Options under which a figure needs no file of this machine's."""
    offered = lab.figures[figure].options
    return {
        name: value
        for name, value in (("dataset", "digits"), ("text", "sample"))
        if name in offered
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One results folder for all smoke runs: figures share trials."""
    return tmp_path_factory.mktemp("results")


@pytest.mark.parametrize("figure", IDS)
def test_smoke_scale_runs_to_verdicts_and_files(figure: str, folder: Path) -> None:
    plan = lab.make_plan(figure, "smoke", options=own_data(figure))
    sweep = lab.run_plan(plan, folder, workers=0)
    assert [p for p in sweep.problems if p.outcome != "diverged"] == []
    collection = lab.collect(plan, lab.Store(folder))
    assert collection.missing == 0
    assert len({verdict.claim for verdict in collection.verdicts}) == len(collection.verdicts)
    assert all(np.isfinite(v.value) or v.lost for v in collection.verdicts)
    assert report.render(collection, "svg")["svg"]
    assert keys_on_data(report.draw(collection)) == []
    if figure == "wu2023/fig3":  # exact, so it holds at any size
        assert plan.figure.verdicts(collection.data)[0].value < 1e-9
    assert {verdict.outcome for verdict in collection.verdicts} <= {lab.NOT_JUDGED}
    if own_data(figure):
        drawn = report.render(collection, "svg")["svg"].decode()
        assert "ship" in drawn  # the figure says which data it used


def test_figures_6_and_7_take_the_trials_of_figure_4() -> None:
    wide = {"dataset": "digits"}
    for scale in lab.SCALES:
        fourth = set(lab.make_plan("wu2023/fig4", scale, options=wide).unique)
        for other in ("wu2023/fig6", "wu2023/fig7"):
            assert set(lab.make_plan(other, scale, options=wide).unique) < fourth


def test_a_figure_asked_for_mnist_by_name_does_not_take_other_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HEADCOUNT_DATA", str(tmp_path))
    for choice in ("mnist", "auto"):
        with pytest.raises(BadArgument, match="is missing") as error:
            lab.make_plan("wu2023/fig4", "smoke", options={"dataset": choice})
        assert str(tmp_path / "train-images-idx3-ubyte.gz") in str(error.value)
    with pytest.raises(BadArgument, match="is missing"):
        lab.make_plan("wu2023/fig1", "smoke", options={"text": "imdb"})


SMALL = {"n": 8, "T": 3, "d": 5, "epochs": 6}


def small_run(normalisation: str = "stable", **changed: Any) -> dict[str, Any]:
    chosen = {"d_m": 7, "init": "lecun", "scaling": "realistic", "gamma": 0.5, "seed": 3}
    config = descent.run_settings(normalisation, settings=SMALL, **{**chosen, **changed})
    return {**config, "dtype": "float64"}


def descent_by_hand(config: dict[str, Any], factor: float) -> list[EncoderParams]:
    """theta_0, theta_1, ... by automatic differentiation of factor |f - y|^2."""
    tokens = config["data_options"]["tokens"]
    x, y = GaussianRegression(SMALL["T"], SMALL["d"], tokens).sample(SMALL["n"], 3)
    model = Encoder(SMALL["d"], 7, 7**-0.5, 1.0, config["model_options"]["pooling"])

    def loss(theta: EncoderParams) -> Any:
        f = jnp.stack([model(theta, sample) for sample in x])
        return factor * jnp.sum((f - y) ** 2)

    path, gradient = [lecun(model, 3)], jax.jit(jax.grad(loss))
    for _ in range(SMALL["epochs"]):
        step = gradient(path[-1])
        path.append(jax.tree.map(lambda p, g: np.asarray(p - config["eta"] * g), path[-1], step))
    return path


@pytest.mark.parametrize(
    ("normalisation", "factor"), [("stable", 1 / 8), ("printed", 0.5), ("formulas", 0.5)]
)
def test_loss_movement_and_drift_are_those_of_descent_by_hand(
    normalisation: str, factor: float
) -> None:
    config = small_run(normalisation, gamma=0.5 if normalisation == "stable" else 1e-4)
    got = descent.measure_drift(config, lab.PlainContext())
    path = descent_by_hand(config, factor)
    x, y = GaussianRegression(3, 5, config["data_options"]["tokens"]).sample(8, 3)
    model = Encoder(5, 7, 7**-0.5, 1.0, config["model_options"]["pooling"])
    flat = [np.concatenate([np.ravel(leaf) for leaf in theta]) for theta in path]
    K = [kernels.ntk(model, theta, x, blocks="total", method="jacobian").total for theta in path]
    for t in range(SMALL["epochs"]):
        f = np.array([float(model(path[t], sample)) for sample in x])
        np.testing.assert_allclose(got["loss"][t], np.sum((f - y) ** 2) / 16, rtol=1e-9)
        step = np.linalg.norm(flat[t + 1] - flat[t]) / np.linalg.norm(flat[t])
        np.testing.assert_allclose(got["movement"][t], step, rtol=1e-7)
        for name, other in (("start", 0), ("previous", t)):
            cosine = (
                np.sum(K[t + 1] * K[other]) / np.linalg.norm(K[t + 1]) / np.linalg.norm(K[other])
            )
            np.testing.assert_allclose(got[f"kernel_from_{name}"][t + 1], 1 - cosine, atol=1e-12)
    largest = np.linalg.eigvalsh(K[0])[-1]
    np.testing.assert_allclose(got["stability"], config["eta"] * 2 * factor * largest, rtol=1e-9)
    assert got["finite"] == 1


def test_the_printed_normalisation_diverges_and_says_so() -> None:
    settings = {"n": 30, "T": 5, "d": 20, "epochs": 40}
    chosen = {"d_m": 50, "init": "lecun", "scaling": "realistic", "gamma": 1.0, "seed": 0}
    context = lab.PlainContext()
    config = descent.run_settings("printed", settings=settings, **chosen)
    got = descent.measure_descent(config, context)
    assert context.divergence is not None
    assert got["finite"] == 0
    assert got["stability"] > 2
    assert 1 <= got["diverged_at"] <= 20
    assert np.isnan(got["loss"][-1])


def test_the_step_of_the_scaling_figure_is_one_over_the_largest_eigenvalue() -> None:
    options = lab.figures["wu2023/scaling"].choose({})
    config = descent.scaled_settings(d_m=7, scaling="ntk", settings=SMALL, seed=1, options=options)
    got = descent.measure_scaled_descent(config, lab.PlainContext())
    np.testing.assert_allclose(got["stability"], 1, rtol=1e-5)
    assert np.all(np.diff(got["loss"]) < 0)


def test_verdict_helpers() -> None:
    epochs = np.arange(17)
    straight = np.exp(-0.3 * epochs)[None]
    np.testing.assert_allclose(fig2.halves(straight), 1)
    assert fig2.halves(1 / (1 + epochs)[None] ** 2) < fig2.SLOWEST
    gone = fig2.path_after(np.r_[4.0, 2.0, np.full(14, 0.5), np.nan][None])
    np.testing.assert_allclose(gone, [7.0])
    np.testing.assert_array_equal(
        fig5.epochs_needed(np.array([[1, 0.5, 0.09], [1, 0.5, 0.2]])), [2, np.inf]
    )


def test_pair_products_tail_and_exponent() -> None:
    x = np.random.default_rng(0).normal(size=(12, 3, 4))
    found = tails.tail_of(x)
    unit = [sample / np.linalg.norm(sample) for sample in x]
    products = [
        np.sum((unit[i].T @ unit[i]) * (unit[j].T @ unit[j])) for i in range(12) for j in range(i)
    ]
    np.testing.assert_allclose(found["largest_product"], max(products), rtol=1e-12)
    share = np.mean(np.array(products) >= found["products"][100])
    assert abs(share - tails.tail_levels()[100]) < 2 / len(products)
    bound = np.exp(-(found["products"] ** found["tail_exponent"]))
    wanted = np.max(tails.tail_levels() - bound)
    got = tails.excess(found["products"][None], np.array([found["tail_exponent"]]))
    np.testing.assert_allclose(got, wanted)


def test_the_hessian_s_norm_is_that_of_automatic_differentiation() -> None:
    config = {"widths": [3, 5], "T": 4, "init": "he", "scaling": "ntk", "seed": 2}
    got = hessian.measure_hessian(config, lab.PlainContext())
    from headcount.core import normal, stream

    x = normal(stream(2, "wu2023", "hessian", "x"), (4, 1))
    x = 2 * x / np.linalg.norm(x)
    for i, d_m in enumerate(config["widths"]):
        model = Encoder(1, d_m, 1 / d_m, 1.0, "sum")
        start = initialisations["he"](model, 2)
        flat, unravel = jax.flatten_util.ravel_pytree(start)
        whole = jax.jit(jax.hessian(lambda theta, u=unravel, f=model: f(u(theta), x)))
        dense = whole(flat)
        np.testing.assert_allclose(got["hessian_norm"][i], np.linalg.norm(dense, 2), rtol=1e-8)
        rows = {"Q": slice(0, d_m), "V": slice(2 * d_m, 3 * d_m)}
        block = np.linalg.norm(dense[rows["Q"], rows["V"]], 2)
        np.testing.assert_allclose(
            got["block_norm"][i][hessian.BLOCKS.index("QV")], block, rtol=1e-8
        )
    assert not np.allclose(got["hessian_norm"], got["hessian_norm_nearby"])


def test_the_printed_limit_has_a_matrix_product() -> None:
    x = np.random.default_rng(1).normal(size=(4, 2, 3))
    s = x.sum(axis=1)
    value, slope = np.zeros((4, 4)), np.zeros((4, 4))
    for i in range(4):
        for j in range(4):
            a, b = arc_cosine(jnp.asarray(s[i]), jnp.asarray(s[j]))
            value[i, j], slope[i, j] = float(a), float(b)
    np.testing.assert_allclose(limit.printed_limit(x), value + slope @ (s @ s.T), rtol=1e-9)
    np.testing.assert_allclose(
        wu2023.limit_wu2023(x, pooling="sum").total, value + slope * (s @ s.T), rtol=1e-9
    )
    K = value + slope * (s @ s.T)
    scales = np.linspace(0.01, 3, 3000)
    best = min(np.linalg.norm(c * K - value) for c in scales) / np.linalg.norm(value)
    np.testing.assert_allclose(limit.shape_distance(K, value), best, rtol=1e-4)


class Interrupted(Exception):
    """What the lab raises when a sweep is stopped."""


class OneCheckpoint(lab.PlainContext):
    """Saves at every chance and stops after the first."""

    saved: dict[str, np.ndarray] | None = None

    def checkpoint_due(self) -> bool:
        return True

    def checkpoint(self, state: Any) -> bool:
        self.saved = {name: np.asarray(value) for name, value in state.items()}
        raise Interrupted

    def restore(self) -> Any:
        return None


class Resumed(lab.PlainContext):
    def __init__(self, saved: dict[str, np.ndarray]) -> None:
        super().__init__()
        self.saved = saved

    def restore(self) -> dict[str, np.ndarray]:
        return self.saved


def test_a_resumed_image_run_equals_an_uninterrupted_one() -> None:
    settings = {"images": 64, "evaluated": 20, "pairs_of": 5, "epochs": 3, "batch_size": 16}
    offered = lab.figures["wu2023/fig4"].options
    options = {name: values[0] for name, values in offered.items()}
    config = images.vit_config(settings, options, "digits", "zero-one", 16, "realistic", 0)
    whole = images.measure_vit(config, lab.PlainContext())
    first = OneCheckpoint()
    with pytest.raises(Interrupted):
        images.measure_vit(config, first)
    assert first.saved is not None
    rest = images.measure_vit(config, Resumed(first.saved))
    for name, value in whole.items():
        np.testing.assert_array_equal(rest[name], value, err_msg=name)
    np.testing.assert_allclose(whole["sign_error"], 4 * 20 * whole["train_error"])
    assert whole["loss"].shape == (4,)


def test_classes_and_signs() -> None:
    np.testing.assert_array_equal(images.predicted(np.array([[0.2], [-1.0], [0.0]])), [1, -1, 1])
    np.testing.assert_array_equal(images.predicted(np.array([[0.2, 0.3], [1, 0]])), [1, 0])
    task = images.load_task("digits", "zero-one", 40)
    assert task.x.shape == (40, 16, 4)
    assert set(task.y) == {-1.0, 1.0}
    assert images.load_task("digits", "classes", 10**6).x.shape == (1500, 16, 4)
    assert set(curves.SCALINGS) == set(curves.STYLES)
    assert set(images.TITLES) == set(images.PATCH)
    offered = lab.figures["wu2023/fig4"].options
    assert offered["block"] == tuple(wu2023.vit.BLOCKS)
    assert offered["readout"] == wu2023.vit.READOUTS
    assert offered["init"] == wu2023.vit.STARTS
