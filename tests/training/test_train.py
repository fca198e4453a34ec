"""The loop: traces, iterates, segmentation, seeds, divergence, resuming, precision, bad input."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from training_problems import (
    STATEFUL,
    Cubic,
    CubicParams,
    assert_same,
    linear,
    linear_gradient,
    linear_loss,
    pooled,
)

from headcount.core import BadArgument
from headcount.papers.arda2026 import PooledAttention, omega
from headcount.papers.deora2024.model import LinearModel
from headcount.training import Run, gd, momentum, projgd, stack_seeds, train


def of_seed(run: Run, i: int) -> Run:
    """The part of one seed."""
    values = vars(run).copy()
    for name in ("loss", "final_loss", "records", "params", "average", "best", "diverged_at"):
        values[name] = jax.tree.map(lambda leaf: leaf[i : i + 1], values[name])
    return Run(**values)


def test_trace_average_and_best_iterate() -> None:
    """Losses before each step; the mean of iterates 0..tau-1; the iterate of the least loss."""
    model, params, x, y = linear()
    eta, beta, steps = 0.2, 0.9, 12
    run = train(
        model,
        params,
        x,
        y,
        rule=momentum(eta, beta),
        steps=steps,
        keep=["average", "best"],
        dtype="float64",
    )
    U, b, iterates = params.U, 0, []
    for _ in range(steps):
        iterates.append(U)
        b = beta * b + linear_gradient(U, x, y)
        U = U - eta * b
    trace = [linear_loss(V, x, y) for V in iterates]
    best = int(np.argmin(trace))
    assert 0 < best < steps - 1, "the best iterate must not be the last, or the test is idle"
    np.testing.assert_allclose(run.loss, trace, rtol=1e-10)
    np.testing.assert_allclose(run.average.U, np.mean(iterates, axis=0), rtol=1e-10)
    np.testing.assert_allclose(run.best.U, iterates[best], rtol=1e-10)
    np.testing.assert_allclose(run.min_loss, trace[best], rtol=1e-10)
    np.testing.assert_array_equal(run.initial.U, params.U)


def three_seeds() -> tuple[PooledAttention, list[Any], np.ndarray, np.ndarray]:
    model, _, x, y = pooled()
    return model, [pooled(seed=s)[1] for s in (5, 6, 7)], x, y


SEEDED: dict[str, Any] = {
    "rule": projgd(0.3, omega(1, 1, 1)),
    "steps": 5,
    "chunk": 3,
    "keep": "average",
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_seed_alone_equals_the_seed_in_a_batch(dtype: str) -> None:
    model, starts, x, y = three_seeds()
    seeds = [5, 6, 7]
    together = train(model, stack_seeds(starts), x, y, seeds=seeds, dtype=dtype, **SEEDED)
    own = [train(model, stack_seeds([p]), x, y, seeds=[6], dtype=dtype, **SEEDED) for p in starts]
    for i, alone in enumerate(own):
        assert_same(of_seed(together, i), alone)
    xs, ys = np.stack([x] * 3), np.stack([y] * 3)
    assert_same(
        train(model, stack_seeds(starts), xs, ys, seeds=seeds, dtype=dtype, **SEEDED), together
    )


def test_one_seed_with_its_own_data_equals_shared_data() -> None:
    model, params, x, y = linear(n=7)
    shared = train(model, stack_seeds([params]), x, y, seeds=[3], **STATEFUL)
    assert_same(
        train(model, stack_seeds([params]), x[None], y[None], seeds=[3], **STATEFUL), shared
    )


def test_batches_depend_on_the_seed_alone() -> None:
    model, params, x, y = linear(n=7)
    start = stack_seeds([params] * 2)
    run = train(model, start, x, y, seeds=[3, 4], **STATEFUL)
    assert not np.array_equal(run.loss[0], run.loss[1])
    swapped = train(model, start, x, y, seeds=[4, 3], **STATEFUL)
    assert_same(of_seed(swapped, 1), of_seed(run, 0))


def test_divergence_of_one_seed_is_recorded_and_the_others_go_on() -> None:
    model, params, x, y = linear()
    data = np.stack([x, 1e3 * x, 0.5 * x])
    labels = np.stack([y] * 3)
    start = stack_seeds([params] * 3)
    settings: dict[str, Any] = {"rule": gd(0.1), "steps": 12, "keep": "average"}
    run = train(model, start, data, labels, seeds=[0, 1, 2], record="distance", **settings)
    k = int(run.diverged_at[1])
    assert 1 < k < 12
    assert np.all(np.isfinite(run.loss[1, :k]))
    assert not np.any(np.isfinite(run.loss[1, k:]))
    assert np.all(np.isnan(run.loss[1, k + 1 :]))
    assert np.isnan(run.final_loss[1])
    assert run.min_loss[1] == run.loss[1, :k].min()
    assert run.outcomes == ("completed", f"diverged at step {k}", "completed")
    for i in (0, 2):
        alone = train(
            model, start, data[i], labels[i], seeds=[0, 1, 2], record="distance", **settings
        )
        assert_same(of_seed(run, i), of_seed(alone, i))
    # Stopped just before: only the loss after the last step shows it.
    short = train(model, params, data[1], y, rule=gd(0.1), steps=k)
    assert np.all(np.isfinite(short.loss))
    assert short.outcomes == (f"diverged at step {k}",)
    assert np.isnan(short.final_loss)


def test_a_start_that_is_not_finite_diverged_at_step_zero() -> None:
    model, params, x, y = linear()
    run = train(model, params, 1e30 * x, y, rule=gd(0.1), steps=3)
    assert run.diverged_at == 0
    assert run.outcomes == ("diverged at step 0",)
    assert np.isnan(run.final_loss)
    assert np.all(np.isnan(run.loss[1:]))


def test_a_run_without_seeds_is_that_of_seed_zero() -> None:
    model, params, x, y = linear(n=7)
    start = stack_seeds([params])
    run = train(model, params, x, y, **STATEFUL)
    assert run.seeds == (0,)
    np.testing.assert_array_equal(
        run.loss, train(model, start, x, y, seeds=[0], **STATEFUL).loss[0]
    )


def test_equal_settings_compile_once() -> None:
    """A second run traces nothing; the one call left is the check of shapes."""
    _, _, x, y = pooled(d=2, n=4)
    start = CubicParams(np.array([0.1, -0.2]))
    settings: dict[str, Any] = {"steps": 3, "record": ["loss"], "keep": "best"}
    train(Cubic(2), start, x, y, rule=momentum(0.01), **settings)
    before = Cubic.calls[0]
    run = train(
        Cubic(2), CubicParams(np.array([0.3, 0.1])), 2 * x, y, rule=momentum(0.01), **settings
    )
    assert Cubic.calls[0] - before <= 1
    assert np.all(np.isfinite(run.loss))
    train(Cubic(2), start, x, y, rule=momentum(0.02), **settings)
    assert Cubic.calls[0] - before > 1, "the count must see another rule's trace"


@pytest.mark.parametrize("outside", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precision_is_the_runs_own(outside: bool, dtype: str) -> None:
    model, params, x, y = linear(n=7)
    with jax.enable_x64(outside):
        run = train(model, params, x, y, dtype=dtype, **STATEFUL)
        assert jax.config.jax_enable_x64 == outside
    for array in jax.tree.leaves((run.loss, run.final_loss, run.records, run.params, run.best)):
        assert array.dtype == dtype
    assert_same(run, train(model, params, x, y, dtype=dtype, **STATEFUL))


def test_whole_number_data_is_data() -> None:
    model, params, x, y = linear()
    x, y = np.round(3 * x).astype(int), np.round(3 * y).astype(int)
    run = train(model, params, x.tolist(), y, rule=gd(0.01), steps=2, dtype="float64")
    np.testing.assert_allclose(run.loss[0], linear_loss(params.U, x, y), rtol=1e-12)
    assert run.loss[1] < run.loss[0]


def test_losses_may_be_named() -> None:
    model, params, x, y = linear()
    run = train(model, params, x, np.sign(y), rule=gd(0.1), steps=1, loss="logistic")
    assert run.settings["loss"] == "logistic"


def test_a_model_must_return_a_scalar_or_a_vector() -> None:
    class Matrix(LinearModel):
        def __call__(self, params: Any, x: Any) -> Any:
            return x

    _, params, x, y = linear()
    message = r"model = .*returns shape \(3, 2\); return a scalar or a vector"
    with pytest.raises(BadArgument, match=message):
        train(Matrix(3, 2), params, x, y, rule=gd(0.1), steps=1)
