"""Kernels, their spectra, drift, margins and dynamics, for samples and outputs of any shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.kernels import (
    Linearised,
    NTKOperator,
    direction_margins,
    drift,
    extreme_eigenvalues,
    kernel_descent,
    kernel_flow,
    kernel_regression,
    margin_path,
    ntk,
    ntk_margin,
    ntk_to_file,
    smallest_eigenvalue,
    tangent_kernel,
    train_linearised,
)
from headcount.training import gd, stack_seeds, train
from own_models import SHAPES, N

pytestmark = pytest.mark.usefixtures("as_users_write")
SHOWN = ("ids", "images", "a dict")
"""Of the eight: a number from ids, vectors from images, signs from ids and a mask."""


def gram(f: Any, params: Any, x1: Any, x2: Any, blocks: Any) -> Any:
    """J J^T over the named blocks."""

    def rows(x: Any) -> Any:
        J = jax.vmap(jax.jacrev(f), (None, 0))(params, x)
        flat = [np.asarray(J[name]).reshape(-1, params[name].size) for name in blocks]
        return np.concatenate(flat, axis=1)

    return rows(x1) @ rows(x2).T


def first(x: Any, n: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[:n], x)


@pytest.mark.filterwarnings("ignore:lambda_min")  # two samples of the dict are equal
@pytest.mark.parametrize("name", SHOWN)
def test_all_that_kernels_can_do(name: str, tmp_path: Path) -> None:
    f, params, x, _, _ = SHAPES[name]
    K = ntk(f, params, x, tile=5)
    whole = gram(f, params, x, x, params)
    np.testing.assert_allclose(K.matrix, whole, rtol=0, atol=1e-12 * whole.max())
    np.testing.assert_allclose(K.blocks["a"].reshape(whole.shape), gram(f, params, x, x, ["a"]),
                               rtol=0, atol=1e-12 * whole.max())  # fmt: skip
    cross = ntk(f, params, first(x, 4), x, frozen=("a",))
    part = gram(f, params, first(x, 4), x, [b for b in params if b != "a"])
    np.testing.assert_allclose(cross.matrix, part, rtol=0, atol=1e-12 * whole.max())
    narrow = ntk(f, params, x, dtype="float32").matrix
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, whole, rtol=0, atol=1e-5 * whole.max())

    def stop(done: int, of: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    stored: dict[str, Any] = {"file": tmp_path / "k.h5", "tile": 4, "blocks": "each"}
    with pytest.raises(KeyboardInterrupt):
        ntk_to_file(f, params, x, progress=stop, **stored)
    again = ntk_to_file(f, params, x, **stored)
    assert again.computed == 10 - 3
    np.testing.assert_allclose(again.read(), whole, rtol=0, atol=1e-12 * whole.max())

    spectrum = np.linalg.eigvalsh(whole)
    operator = NTKOperator(f, params, x)
    least, largest = smallest_eigenvalue(K), extreme_eigenvalues(operator, which="largest")
    assert least.lower <= spectrum[0] <= least.upper
    assert largest.values[-1] == pytest.approx(spectrum[-1], rel=1e-8)


@pytest.mark.parametrize("name", SHOWN)
def test_drift_is_the_change_of_the_kernel(name: str) -> None:
    f, params, x, _, _ = SHAPES[name]
    later = jax.tree.map(lambda leaf: leaf + 0.1, params)
    told = drift(f, params, later, x, eigenvalues=2)
    K0, K1 = (gram(f, p, x, x, params) for p in (params, later))
    assert told["relative_change"] == pytest.approx(np.linalg.norm(K1 - K0) / np.linalg.norm(K0))
    assert told["eigenvalue/1"] == pytest.approx(np.linalg.eigvalsh(K1)[-1])
    moved = np.sqrt(sum(0.01 * leaf.size for leaf in params.values()))
    assert told["movement"] == pytest.approx(moved)


@pytest.mark.parametrize("name", SHOWN)
def test_the_linearised_model_and_the_kernel_descend_alike(name: str) -> None:
    f, params, x, y, loss = SHAPES[name]
    held = first(x, 4)
    K, K_test = ntk(f, params, x), ntk(f, params, held, x)
    at = jax.tree.map(jnp.asarray, params)
    f0, f0_test = (np.asarray(jax.vmap(f, (None, 0))(at, part)) for part in (x, held))
    plain = train_linearised(f, params, x, y, eta=0.01, steps=4, loss=loss, x_test=held)
    dual = kernel_descent(K, y, eta=0.01, steps=4, loss=loss, f0=f0, kernel_test=K_test,
                          f0_test=f0_test)  # fmt: skip
    as_model = train(Linearised(f, params), params, x, y, rule=gd(0.01), steps=4, loss=loss,
                     dtype="float64")  # fmt: skip
    np.testing.assert_allclose(dual.train, plain.train, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(dual.test, plain.test, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(as_model.loss, plain.loss[:-1], rtol=1e-9)
    at_start = ntk(Linearised(f, params), params, x).matrix
    np.testing.assert_allclose(at_start, K.matrix, rtol=0, atol=1e-12 * K.matrix.max())


def test_flow_and_regression_take_vector_outputs() -> None:
    f, params, x, y, _ = SHAPES["vectors"]
    K = ntk(f, params, x)
    fit = kernel_regression(K, y, ridge=0.1)
    solved = np.linalg.solve(K.matrix + 0.1 * np.eye(y.size), y.ravel())
    np.testing.assert_allclose(fit.coefficients.ravel(), solved, rtol=1e-8)
    end = kernel_flow(K, y, [0.0, np.inf])
    np.testing.assert_allclose(end.train[-1], kernel_regression(K, y).train, rtol=1e-7, atol=1e-9)


def test_margins_of_samples_that_are_no_array() -> None:
    f, params, x, y, loss = SHAPES["a dict"]
    x, y = first(x, 5), y[:5]
    margin = ntk_margin(f, params, x, y)
    theta = margin.direction(f, params, x)
    own = direction_margins(f, params, theta, x, y)
    assert own.min() == pytest.approx(margin.primal, rel=1e-6)
    slopes = [
        sum(
            float(jnp.vdot(theta[b], g))
            for b, g in jax.grad(f)(params, jax.tree.map(lambda leaf: leaf[j], x)).items()  # noqa: B023
        )
        for j in range(5)
    ]
    np.testing.assert_allclose(own, y * slopes, rtol=1e-9)
    both = stack_seeds([params, jax.tree.map(lambda leaf: 1.1 * leaf, params)])
    run = train(f, both, x, y, rule=gd(0.1), steps=2, loss=loss, seeds=(0, 1), dtype="float64",
                record=tangent_kernel, record_every=2)  # fmt: skip
    along = margin_path(run.records["tangent_kernel"][0], y)
    assert along[0].primal == pytest.approx(margin.primal, rel=1e-9)
    assert N > len(along) == 2
