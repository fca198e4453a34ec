"""The closed-form Hessian for d = 1 against autodiff, its norm against a dense eigensolver."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from headcount.core import Array, BadArgument
from headcount.papers.wu2023.hessian import BLOCKS, hessian_norm, scalar_hessian
from headcount.papers.wu2023.model import Encoder, EncoderParams, TwoLayerReLU

TAU0, TAU1 = 0.7, 0.4


def point(d_m: int, d: int = 1, T: int = 3, seed: int = 0) -> tuple[EncoderParams, Array]:
    rng = np.random.default_rng(seed)
    params = EncoderParams(*(rng.normal(size=s) for s in ((d_m, d), (d_m, d), (d_m, d), (d_m,))))
    return params, rng.normal(size=(T, d)) + 0.3


def autodiff(model: Encoder, params: EncoderParams, x: Array) -> Array:
    flat, unravel = ravel_pytree(jax.tree.map(jnp.asarray, params))
    return np.asarray(jax.hessian(lambda t: model(unravel(t), jnp.asarray(x)))(flat))


@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_closed_form_is_the_hessian(seed: int, pooling: str) -> None:
    params, x = point(5, seed=seed)
    model = Encoder(1, 5, TAU0, TAU1, pooling)
    tau1 = TAU1 / len(x) if pooling == "mean" else TAU1
    exact = autodiff(model, params, x)
    closed = scalar_hessian(params, x, tau0=TAU0, tau1=tau1).dense()
    np.testing.assert_allclose(closed, exact, rtol=1e-11, atol=1e-13)


def test_block_norms_are_those_of_the_dense_blocks() -> None:
    params, x = point(4, seed=3)
    hessian = scalar_hessian(params, x, tau0=TAU0, tau1=TAU1)
    dense = hessian.dense()
    place = {name: slice(4 * k, 4 * k + 4) for k, name in enumerate("QKVO")}
    for block, norm in hessian.block_norms().items():
        part = dense[place[block[0]], place[block[1]]]
        np.testing.assert_allclose(norm, np.linalg.norm(part, 2), rtol=1e-12, err_msg=block)
    assert set(hessian.block_norms()) == set(BLOCKS)


@pytest.mark.parametrize("d_m", [1, 6, 7, 40])
def test_lanczos_finds_the_norm(d_m: int) -> None:
    params, x = point(d_m, seed=d_m)
    hessian = scalar_hessian(params, x, tau0=1 / d_m, tau1=d_m**-0.5)
    dense = np.linalg.norm(hessian.dense(), 2)
    np.testing.assert_allclose(hessian.norm(), dense, rtol=1e-9)


def test_a_hessian_that_vanishes_has_norm_zero() -> None:
    params, x = point(9)
    assert scalar_hessian(params, 0 * x, tau0=TAU0, tau1=TAU1).norm() == 0.0


def test_both_ways_to_the_norm_agree_and_more_features_work() -> None:
    params, x = point(6, seed=5)
    model = Encoder(1, 6, TAU0, TAU1, "sum")
    by_products = np.linalg.norm(autodiff(model, params, x), 2)
    np.testing.assert_allclose(hessian_norm(model, params, x), by_products, rtol=1e-10)
    params, x = point(4, d=2, seed=6)
    model = Encoder(2, 4, TAU0, TAU1, "mean")
    np.testing.assert_allclose(
        hessian_norm(model, params, x), np.linalg.norm(autodiff(model, params, x), 2), rtol=1e-8
    )


def test_another_model_is_refused() -> None:
    params, x = point(3)
    with pytest.raises(BadArgument, match="encoder"):
        hessian_norm(TwoLayerReLU(3, 3, 1.0), params, x)  # type: ignore[arg-type]
