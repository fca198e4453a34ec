"""The smallest transport: least norm by another road, and the teacher's own where it is least."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

from headcount.core import BadArgument, float64
from headcount.kernels import Linearised
from headcount.papers.arda2026 import (
    PooledAttention,
    PooledAttentionParams,
    TransportMap,
    TransportProblem,
    easiest_transport,
    paired,
    transported,
)
from headcount.training import TrainConfig, build


def problem(width: int, n: int = 5, seed: int = 0, **options):
    data = {"T": 3, "d": 2, "pool": 16, "anchors": 3, **options}
    built = build(TrainConfig.of({"width": width, "n": n, "seeds": (seed,), "data_options": data}))
    start = PooledAttentionParams(*(np.asarray(leaf[0]) for leaf in built.initial))
    return built.model, start, built.x[0], built.y[0]


def jacobian(model: PooledAttention, start, x):
    with float64():
        rows = jax.vmap(jax.grad(model), (None, 0))(start, x)
    return np.concatenate([np.reshape(leaf, (len(x), -1)) for leaf in rows], axis=1)


def flat(params) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])


def test_it_is_the_least_norm_solution_of_the_linearised_equations():
    model, start, x, y = problem(6)
    found = TransportProblem(model, start, x, y).solve(0.0)
    wanted = np.linalg.pinv(jacobian(model, start, x)) @ y
    moved = flat(transported(start, found.v)) - flat(start)
    np.testing.assert_allclose(moved, wanted, rtol=1e-7, atol=1e-9)
    assert found.residual < 1e-9
    assert found.rank == 5
    v = found.v
    per_head = v.v_c**2 + np.sum(v.v_u**2, 1) + np.sum(v.v_w**2, (1, 2))
    assert found.norm == pytest.approx(np.sqrt(np.mean(per_head)))
    assert found.norm == pytest.approx(np.linalg.norm(wanted), rel=1e-7)
    assert found.nu[1] == pytest.approx(np.max(np.linalg.norm(v.v_u, axis=1)))


def test_a_ridge_trades_norm_for_residual():
    model, start, x, y = problem(6)
    J = jacobian(model, start, x)
    for ridge in (1e-3, 1.0):
        found = TransportProblem(model, start, x, y).solve(ridge)
        wanted = J.T @ np.linalg.solve(J @ J.T + ridge * np.eye(len(y)), y)
        moved = flat(transported(start, found.v)) - flat(start)
        np.testing.assert_allclose(moved, wanted, rtol=1e-9, atol=1e-12)
        assert found.residual == pytest.approx(np.max(np.abs(J @ wanted - y)))


def test_the_easiest_is_the_largest_ridge_that_suffices():
    kernel = TransportProblem(*problem(6))
    easiest = easiest_transport(kernel, 0.05)
    assert kernel.suffices(easiest, 0.05)
    assert easiest.ridge > 0
    assert not kernel.suffices(kernel.solve(10 * easiest.ridge), 0.05)
    assert kernel.solve(easiest.ridge / 10).norm > easiest.norm


def test_a_start_without_output_weights_has_none():
    model, start, x, y = problem(4)
    with pytest.raises(BadArgument, match="no transport map"):
        TransportProblem(model, start._replace(c=np.zeros(4)), x, y).solve(0.0)


WIDTHS, SEEDS, POOL = (32, 512), range(12), 2**16


def teacher(seed: int):
    """Three samples and their labels from a map of least norm: its anchors are the samples.

    v = (nu/sigma) sum_r w_r phi(X_r); tokens are short, so that nothing is clipped. The labels are
    f_lin at phi~ of a student of 2^16 heads, which stands for the expectation.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, 3, 2))
    x *= 0.7 / np.linalg.norm(x, axis=-1, keepdims=True)
    weights = rng.normal(size=3)
    nu = (3.0, 3.0, 3.0)
    v = TransportMap(x, weights / np.sum(np.abs(weights)), nu, w_branch="scaled")
    pool = PooledAttention(2, POOL)
    start = paired(pool, seed + 1000)
    with float64():
        moved = transported(start, v(*start))
        y = np.array([float(Linearised(pool, start)(moved, one)) for one in x])
    return x, y, v


@functools.cache
def recovered(m: int) -> tuple[np.ndarray, np.ndarray]:
    """Per seed: the error of v relative to the teacher's, and found nu over the teacher's."""
    errors, sizes = [], []
    for seed in SEEDS:
        x, y, v = teacher(seed)
        model = PooledAttention(2, m)
        start = paired(model, seed)
        wanted = [np.asarray(block).reshape(m, -1) for block in v(*start)]
        result = TransportProblem(model, start, x, y).solve(0.0)
        found = [block.reshape(m, -1) for block in result.v]
        gap = sum(np.sum((a - b) ** 2) for a, b in zip(found, wanted, strict=True))
        errors.append(np.sqrt(gap / sum(np.sum(b**2) for b in wanted)))
        sizes.append(
            [n / np.max(np.linalg.norm(b, axis=1)) for n, b in zip(result.nu, wanted, strict=True)]
        )
    return np.array(errors), np.array(sizes)


def test_it_recovers_the_teacher_as_the_width_grows():
    """The kernel of m heads is off by order m^(-1/2), and so is v: sixteen times m, a quarter."""
    logs = [np.log(recovered(m)[0]) for m in WIDTHS]
    slopes = (logs[1] - logs[0]) / np.log(WIDTHS[1] / WIDTHS[0])
    error = np.std(slopes, ddof=1) / np.sqrt(len(slopes))
    assert abs(np.mean(slopes) + 0.5) < 3 * error, (np.mean(slopes), error)
    assert error < 0.15
    assert np.mean(recovered(WIDTHS[1])[0]) < 0.15


def test_the_nu_that_labels_need_is_the_teachers():
    wide, narrow = (recovered(m)[1] for m in (WIDTHS[1], WIDTHS[0]))
    mean, error = np.mean(wide, axis=0), np.std(wide, axis=0, ddof=1) / np.sqrt(len(wide))
    np.testing.assert_array_less(np.abs(mean - 1), 3 * error + 0.02)
    assert np.mean(np.abs(wide - 1)) < 0.5 * np.mean(np.abs(narrow - 1))
