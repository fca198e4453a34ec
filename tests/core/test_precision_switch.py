"""What public functions return does not depend on JAX's global precision setting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount import kernels, models, training
from headcount.core import LOGISTIC, normal, own_precision, stream

T, D, N = 3, 2, 4
GROUPS = models.HeadGroups(T, D, (2, 3))
X = normal(stream(0, "switch", "x"), (N, T, D))
Y = np.array([1.0, -1.0, 1.0, -1.0])
P, Q = (
    models.MultiHeadParams(*(normal(stream(s, "switch", str(i)), k) for i, k in enumerate(shapes)))
    for s, shapes in ((1, GROUPS.shapes()), (2, GROUPS.shapes()))
)
K, K0 = X[:, 0] @ X[:, 0].T, X[:, 1] @ X[:, 1].T + np.eye(N)
LOSS = kernels.loss_function(GROUPS, LOGISTIC, X, Y)
BALLS = training.HeadBalls((("U", 0.1), ("W", 0.2)))

HELPERS: dict[str, Callable[[], Any]] = {
    "kernel_distance": lambda: kernels.kernel_distance(K, K0),
    "relative_change": lambda: kernels.relative_change(K, K0),
    "weight_movement": lambda: kernels.weight_movement(P, Q, model=GROUPS),
    "drift": lambda: kernels.drift(GROUPS, P, Q, X),
    "expand": lambda: GROUPS.expand(P),
    "expand, jax arrays": lambda: GROUPS.expand(as_jax(P)),
    "split": lambda: GROUPS.split(P)[1],
    "over_heads": lambda: models.over_heads(GROUPS, as_jax(P)),
    "outputs": lambda: models.outputs(GROUPS, P, X),
    "linearised": lambda: kernels.Linearised(GROUPS, P)(Q, X[0]),
    "ntk": lambda: kernels.ntk(GROUPS, P, X).total,
    "traced_ntk": lambda: kernels.traced_ntk(GROUPS, P, X),
    "ntk_vector_product": lambda: kernels.ntk_vector_product(GROUPS, P, X, Y),
    "hessian_vector_product": lambda: kernels.hessian_vector_product(LOSS, P, Q),
    "hessian_extremes": lambda: kernels.hessian_extremes(LOSS, P).largest.value,
    "head_hessian": lambda: kernels.head_hessian(GROUPS.head, (P.U[0], P.W[0]), X[0]),
    "head_hessians": lambda: kernels.head_hessians(GROUPS, P, X[0]),
    "direction_margins": lambda: kernels.direction_margins(GROUPS, P, Q, X, Y),
    "train_linearised": lambda: kernels.train_linearised(GROUPS, P, X, Y, eta=0.1, steps=2).params,
    "projection": lambda: BALLS(Q, P, GROUPS),
}


def as_jax(tree: Any) -> Any:
    with jax.enable_x64(True):
        return jax.tree.map(jnp.asarray, tree)


@pytest.mark.parametrize("name", HELPERS)
def test_results_do_not_depend_on_the_switch(name: str) -> None:
    helper = HELPERS[name]
    with jax.enable_x64(True):
        here = jax.tree.map(np.asarray, helper())
    with jax.enable_x64(False):
        there = helper()
        assert jnp.zeros(()).dtype == jnp.float32
    for a, b in zip(jax.tree.leaves(here), jax.tree.leaves(there), strict=True):
        assert np.asarray(b).dtype == np.float64
        np.testing.assert_array_equal(a, np.asarray(b))


def test_float32_stays_float32_and_programs_keep_their_own() -> None:
    double = own_precision(lambda x, y: jnp.sum(x) * jnp.asarray(y, x.dtype))
    for setting in (True, False):
        with jax.enable_x64(setting):
            assert double(np.ones(2, np.float32), np.float32(2)).dtype == np.float32
            assert double(np.ones(2, np.float32), 2.0).dtype == np.float32
            assert double(np.ones(2), np.float32(2)).dtype == np.float64
            inside = jax.jit(lambda x: double(x, np.float32(1)))(np.ones(2, np.float32))
            assert inside.dtype == np.float32
