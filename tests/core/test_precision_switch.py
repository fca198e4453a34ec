"""What public functions return does not depend on JAX's global precision setting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount import kernels, models, training
from headcount.core import LOGISTIC, mirrored_sum, normal, own_precision, stream, total
from headcount.papers import arda2026, deora2024, wu2023
from headcount.papers.arda2026 import features_arda2026
from headcount.papers.deora2024.kernel import features_deora2024
from headcount.papers.wu2023.kernel import features_wu2023, prepare_wu2023
from headcount.papers.wu2023.limit import angle, arc_cosine
from headcount.training import cross_entropy, sign_regression

T, D, N = 3, 2, 4
GROUPS = deora2024.HeadGroups(T, D, (2, 3))
X = normal(stream(0, "switch", "x"), (N, T, D))
Y = np.array([1.0, -1.0, 1.0, -1.0])
P, Q = (
    deora2024.MultiHeadParams(
        *(normal(stream(s, "switch", str(i)), k) for i, k in enumerate(shapes))
    )
    for s, shapes in ((1, GROUPS.shapes()), (2, GROUPS.shapes()))
)
K, K0 = X[:, 0] @ X[:, 0].T, X[:, 1] @ X[:, 1].T + np.eye(N)
LOSS = kernels.loss_function(GROUPS, LOGISTIC, X, Y)
POOLED, ENCODER = arda2026.PooledAttention(D, 4), wu2023.Encoder(D, 5, 0.4, 0.5, "mean")
START, NTK_START = arda2026.unpaired(POOLED, 0), wu2023.ntk_normal(ENCODER, 0)
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
    "total": lambda: total(LOGISTIC, K[0], Y),
    "total, by name": lambda: total("mean-squared", as_jax(K[0]), Y),
    "mirrored_sum": lambda: mirrored_sum(K[0]),
    "mirrored_sum, odd": lambda: mirrored_sum(K[0, :3]),
    "angle": lambda: angle(K[0], K[1]),
    "arc_cosine": lambda: arc_cosine(K[0], K[1]),
    "cross_entropy": lambda: cross_entropy(K[0], np.int64(1)),
    "sign_regression": lambda: sign_regression(as_jax(K[0, :1]), np.float64(1)),
    "model_function": lambda: kernels.model_function(POOLED, X[0])(START),
    "model_function, float32 at float64 data": lambda: kernels.model_function(
        lambda p, x: jnp.sum(x) + p.astype(x.dtype), X[0]
    )(np.float32(1)),
    "loss_function": lambda: LOSS(P),
    "features_arda2026": lambda: features_arda2026(POOLED, START, X[0]),
    "features_deora2024": lambda: features_deora2024(GROUPS, P, X[0]),
    "features_wu2023": lambda: features_wu2023(ENCODER, prepare_wu2023(ENCODER, NTK_START), X[0]),
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


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "total": (lambda f: lambda outputs: f(LOGISTIC, outputs, Y.astype("f4")), (total, K[0])),
    "mirrored_sum": (lambda f: f, (mirrored_sum, K[0])),
    "arc_cosine": (lambda f: lambda u: f(u, u[::-1]), (arc_cosine, K[0])),
    "cross_entropy": (lambda f: lambda outputs: f(outputs, np.int32(1)), (cross_entropy, K[0])),
    "features": (lambda f: lambda x: f(POOLED, single(START), x), (features_arda2026, X[0])),
}


def single(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), tree)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("setting", [True, False])
def test_inside_a_program_the_decorator_leaves_no_trace(name: str, setting: bool) -> None:
    """The same program as without it, under jit, vmap and grad, in the caller's float32."""
    calling, (helper, argument) = PROGRAMS[name]
    given = single(argument)
    with jax.enable_x64(setting):
        programs = []
        for function in (calling(helper), calling(helper.__wrapped__)):
            slope = jax.grad(lambda v, f=function: sum(map(jnp.sum, jax.tree.leaves(f(v)))))
            made = [
                jax.make_jaxpr(function)(given),
                jax.make_jaxpr(jax.vmap(function))(given[None]),
                jax.make_jaxpr(slope)(given),
            ]
            programs.append([str(program) for program in made])
            found = jax.tree.leaves(jax.jit(function)(given))
            assert {leaf.dtype for leaf in found} == {np.dtype("float32")}
        assert programs[0] == programs[1]


def test_functions_of_a_model_can_be_traced_through_their_data() -> None:
    """Parameters with numbers and data without: still one program, in the data's precision."""
    with jax.enable_x64(False):
        x, params = single(X[0]), single(START)
        value = jax.jit(lambda x: kernels.model_function(POOLED, x)(params))(x)
        assert value.dtype == jnp.float32
        assert jax.grad(lambda x: kernels.model_function(POOLED, x)(params))(x).shape == x.shape


def test_building_blocks_follow_the_switch() -> None:
    """docs/training.md says so of what the user's own program is made of."""
    blocks: dict[str, Callable[[], Any]] = {
        "model": lambda: POOLED(START, X[0]),
        "activation": lambda: POOLED.activation(K),
        "loss": lambda: LOGISTIC.pointwise(K[0], Y),
        "vmapped": lambda: jax.vmap(POOLED, (None, 0))(START, X),
    }
    for name, block in blocks.items():
        for setting, dtype in ((True, jnp.float64), (False, jnp.float32)):
            with jax.enable_x64(setting):
                assert block().dtype == dtype, name
