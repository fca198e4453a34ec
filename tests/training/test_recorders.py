"""Recorders against direct computations, sample by sample."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from training_problems import linear, linear_loss, pooled

from headcount.core import LOGISTIC, MEAN_SQUARED, BadArgument
from headcount.papers.deora2024.model import HeadGroups, MultiHeadParams
from headcount.training import AttentionMass, Run, Snapshot, gd, naive_path, recorders, sgd, train

RELEVANT = np.arange(35).reshape(7, 5) % 3 == 0


@pytest.fixture(scope="module")
def case() -> tuple[Any, ...]:
    """A run with every recorder, chunks that do not divide n, and its last parameters."""
    model, params, x, y = pooled()
    validation = pooled(n=4, seed=9)[2:]
    run = train(
        model,
        params,
        x,
        y,
        rule=gd(0.2),
        steps=3,
        record=[*recorders, AttentionMass(RELEVANT)],
        validation=validation,
        chunk=3,
        dtype="float64",
    )
    final = run.params
    return run, model, params, final, x, y, validation


def last(run: Run, name: str) -> Any:
    assert len(run.records[name]) == 2
    return run.records[name][-1]


def flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def outputs(model: Any, params: Any, x: np.ndarray) -> np.ndarray:
    return np.array([float(model(params, jnp.asarray(sample))) for sample in x])


def test_losses_and_outputs(case: tuple[Any, ...]) -> None:
    run, model, start, final, x, y, (xv, yv) = case
    f = outputs(model, final, x)
    np.testing.assert_allclose(last(run, "outputs"), f, rtol=1e-10)
    np.testing.assert_allclose(last(run, "loss"), np.mean((f - y) ** 2), rtol=1e-10)
    np.testing.assert_allclose(run.final_loss, np.mean((f - y) ** 2), rtol=1e-10)
    fv = outputs(model, final, xv)
    np.testing.assert_allclose(last(run, "validation_loss"), np.mean((fv - yv) ** 2), rtol=1e-10)
    np.testing.assert_allclose(run.records["outputs"][0], outputs(model, start, x), rtol=1e-10)
    np.testing.assert_array_equal(run.recorded_steps, [0, 3])


def test_distance_from_the_start(case: tuple[Any, ...]) -> None:
    run, _, start, final, *_ = case
    for block in ("c", "U", "W"):
        moved = np.linalg.norm(np.ravel(getattr(final, block) - getattr(start, block)))
        np.testing.assert_allclose(last(run, f"distance_{block}"), moved, rtol=1e-10)
        assert run.records[f"distance_{block}"][0] == 0
    np.testing.assert_allclose(
        last(run, "distance"), np.linalg.norm(flat(final) - flat(start)), rtol=1e-10
    )


def test_gradient_norms(case: tuple[Any, ...]) -> None:
    run, model, _, final, x, y, _ = case
    path = naive_path(model, MEAN_SQUARED)
    _, gradient = path.loss_and_gradient(final, (jnp.asarray(x), jnp.asarray(y)))
    for block in ("c", "U", "W"):
        size = np.linalg.norm(np.ravel(getattr(gradient, block)))
        np.testing.assert_allclose(last(run, f"gradient_{block}"), size, rtol=1e-10)
    np.testing.assert_allclose(last(run, "gradient"), np.linalg.norm(flat(gradient)), rtol=1e-10)


def test_jacobian_norms(case: tuple[Any, ...]) -> None:
    run, model, _, final, x, _, _ = case
    slope = jax.jit(jax.grad(model))
    each = [slope(final, jnp.asarray(sample)) for sample in x]
    for block in ("c", "U", "W"):
        rows = np.stack([np.ravel(getattr(g, block)) for g in each])
        lengths = np.linalg.norm(rows, axis=1)
        expected = {
            "of_mean": np.linalg.norm(rows.mean(axis=0)),
            "mean": lengths.mean(),
            "max": lengths.max(),
        }
        for kind, value in expected.items():
            np.testing.assert_allclose(last(run, f"jacobian_{kind}_{block}"), value, rtol=1e-10)


def test_margin(case: tuple[Any, ...]) -> None:
    run, model, _, final, x, y, _ = case
    smallest = np.min(y * outputs(model, final, x))
    np.testing.assert_allclose(last(run, "margin"), smallest, rtol=1e-10)
    expected = smallest / np.linalg.norm(final.U)
    np.testing.assert_allclose(last(run, "normalised_margin"), expected, rtol=1e-10)


def test_linearised_outputs(case: tuple[Any, ...]) -> None:
    run, model, start, final, x, _, _ = case
    slope = jax.jit(jax.grad(model))
    change = flat(final) - flat(start)
    f_lin = np.array(
        [
            float(model(start, jnp.asarray(sample)))
            + flat(slope(start, jnp.asarray(sample))) @ change
            for sample in x
        ]
    )
    np.testing.assert_allclose(last(run, "linearised_outputs"), f_lin, rtol=1e-10)
    error = np.max(np.abs(outputs(model, final, x) - f_lin))
    np.testing.assert_allclose(last(run, "linearisation_error"), error, rtol=1e-9)
    assert run.records["linearisation_error"][0] <= 1e-14


def naive_softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max())
    return e / e.sum()


def test_attention_mass(case: tuple[Any, ...]) -> None:
    run, _, _, final, x, _, _ = case
    masses = [
        naive_softmax(sample @ W @ sample[-1])[marked].sum()
        for sample, marked in zip(x, RELEVANT, strict=True)
        for W in final.W
    ]
    np.testing.assert_allclose(last(run, "attention_mass"), np.mean(masses), rtol=1e-10)


def test_every_recorder_conforms(case: tuple[Any, ...]) -> None:
    run = case[0]
    for name, recorder in recorders.items():
        assert recorder.__doc__, name
    for name, values in run.records.items():
        assert values.dtype == np.float64, name
        assert np.all(np.isfinite(values)), name


def snapshot(model: Any, params: Any, start: Any, x: np.ndarray, y: np.ndarray) -> Snapshot:
    path = naive_path(model, LOGISTIC)
    return Snapshot(model, LOGISTIC, path, params, start, jnp.asarray(x), jnp.asarray(y), None, 3)


@pytest.mark.parametrize("readout", ["full", "pooling", "last"])
def test_groups_of_equal_heads_read_as_all_their_heads(readout: str) -> None:
    """Recorders of a run on head groups equal those of the plain H-head model."""
    rng = np.random.default_rng(0)
    groups = HeadGroups(T=5, d=3, multiplicities=(2, 3), readout=readout)
    shapes = groups.shapes()
    params, start = (
        MultiHeadParams(rng.normal(size=shapes.U), rng.normal(size=shapes.W)) for _ in range(2)
    )
    x, y = rng.normal(size=(7, 5, 3)), np.sign(rng.normal(size=7))
    few = snapshot(groups, params, start, x, y)
    many = snapshot(groups.plain, groups.expand(params), groups.expand(start), x, y)
    chosen = [recorders[name] for name in ("distance", "jacobian", "margin", "linearised")]
    every = (*chosen, AttentionMass(RELEVANT))
    ours, theirs = (jax.jit(lambda now=now: [r(now) for r in every])() for now in (few, many))
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_mini_batch_runs_record_the_loss_on_all_samples() -> None:
    model, params, x, y = linear(n=9)
    run = train(model, params, x, y, rule=sgd(0.1, 2), steps=4, record="loss", record_every=3)
    np.testing.assert_array_equal(run.recorded_steps, [0, 3, 4])
    np.testing.assert_allclose(run.records["loss"][0], linear_loss(params.U, x, y), rtol=1e-5)
    np.testing.assert_allclose(run.records["loss"][-1], run.final_loss, rtol=1e-5)


def test_what_cannot_be_recorded_is_named() -> None:
    model, params, x, y = linear()
    settings: dict[str, Any] = {"rule": gd(0.1), "steps": 1}
    with pytest.raises(BadArgument, match="validation = None: is needed to record it"):
        train(model, params, x, y, record=["validation"], **settings)
    with pytest.raises(BadArgument, match="recorder = 'los': is not known; did you mean loss"):
        train(model, params, x, y, record="los", **settings)
    with pytest.raises(BadArgument, match=r"relevant = .*must have shape"):
        train(model, params, x, y, record=[AttentionMass(RELEVANT)], **settings)
    relevant = np.ones(x.shape[:2], bool)
    with pytest.raises(BadArgument, match="model = 'LinearModel': has no attention"):
        train(model, params, x, y, record=[AttentionMass(relevant)], **settings)
