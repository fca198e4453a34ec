"""Results of kernels are pytrees: several can be averaged, and they pass through JAX."""

from __future__ import annotations

import jax
import numpy as np

from headcount.core import normal, stream
from headcount.kernels import extreme_eigenvalues, kernel_regression, ntk
from headcount.models import initialisations
from headcount.papers.arda2026 import PooledAttention, limit_arda2026

MODEL = PooledAttention(2, 6)
X = normal(stream(0, "x"), (5, 3, 2))


def test_kernels_of_several_seeds_are_averaged_block_by_block() -> None:
    start = initialisations["paired"]
    kernels = [ntk(MODEL, start(MODEL, seed), X) for seed in range(3)]
    mean = jax.tree.map(lambda *entries: np.mean(entries, axis=0), *kernels)
    assert type(mean) is type(kernels[0])
    for name in ("c", "U", "W"):
        np.testing.assert_allclose(mean.blocks[name], sum(k.blocks[name] for k in kernels) / 3)
    np.testing.assert_allclose(mean.total, sum(mean.blocks.values()), rtol=1e-12)
    assert (mean.model, mean.method, mean.trained) == (
        kernels[0].model, kernels[0].method, ("c", "U", "W"),
    )  # fmt: skip


def test_other_results_map_over_their_arrays() -> None:
    limit = limit_arda2026(MODEL, X, heads=8)
    doubled = jax.tree.map(lambda entry: 2 * entry, limit)
    np.testing.assert_array_equal(doubled.total, 2 * limit.total)
    assert (doubled.method, doubled.heads) == (limit.method, 8)
    found = extreme_eigenvalues(limit.total, 2)
    assert len(jax.tree.leaves(found)) == 3
    fit = kernel_regression(limit.total + np.eye(5), np.arange(5.0))
    again = jax.tree.map(lambda leaf: leaf, fit)
    np.testing.assert_array_equal(again.predict(limit.total), fit.predict(limit.total))
    assert (again.rank, again.ridge) == (fit.rank, fit.ridge)
