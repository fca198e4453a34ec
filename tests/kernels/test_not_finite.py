"""NaN in parameters is refused by name, and what rounding hides is not called impossible."""

import jax
import numpy as np
import pytest

from headcount.core import BadArgument, normal, stream
from headcount.kernels import (
    NTKOperator,
    direction_margins,
    head_hessians,
    hessian_extremes,
    linear_margin,
    loss_function,
    model_function,
    ntk,
    ntk_to_file,
    train_linearised,
)
from headcount.papers.arda2026 import PooledAttention, paired
from headcount.papers.wu2023.model import Encoder
from headcount.papers.wu2023.starts import ntk_normal

MODEL = PooledAttention(3, 4)
START = paired(MODEL, 0)
X = normal(stream(0, "x"), (5, 4, 3))
Y = np.sign(X[:, 0, 0])
HOLED = START._replace(W=np.where(np.arange(36).reshape(4, 3, 3) == 7, np.nan, START.W))

CALLS = {
    "train_linearised": ("initial", lambda p: train_linearised(MODEL, p, X, Y, eta=0.1, steps=2)),
    "hessian_extremes": (
        "params",
        lambda p: hessian_extremes(lambda q: MODEL(q, jax.numpy.asarray(X[0])), p),
    ),
    "head_hessians": ("params", lambda p: head_hessians(MODEL, p, X[0])),
    "margins_at": ("params", lambda p: direction_margins(MODEL, p, START, X, Y)),
    "margins_along": ("direction", lambda p: direction_margins(MODEL, START, p, X, Y)),
}


@pytest.mark.parametrize("call", CALLS)
def test_nan_is_named(call):
    argument, function = CALLS[call]
    with pytest.raises(BadArgument, match=f"{argument} = .*has 1 NaN or infinite"):
        function(HOLED)


def test_a_hessian_that_is_not_finite_is_refused():
    """Small ones are formed, large ones met by Lanczos: both end in the same words."""
    holed = np.where(np.arange(12).reshape(4, 3) == 7, np.nan, X[0])
    with pytest.raises(BadArgument, match=r"x = .*has 1 NaN or infinite"):
        model_function(MODEL, holed)
    functions = {
        "overflow": loss_function(MODEL, "mean-squared", 1e200 * X, Y),
        "closed over": lambda p: MODEL(p, jax.numpy.asarray(holed)),
    }
    for function in functions.values():
        for dense_below in (128, 3):
            with pytest.raises(BadArgument, match=r"function = .*Hessian.* is not finite; take"):
                hessian_extremes(function, START, dense_below=dense_below)


def test_a_sample_may_be_a_traced_value():
    params = START._replace(c=np.arange(4.0))  # a paired start gives zero
    value = jax.jit(lambda x: model_function(MODEL, x)(params))(X[0])
    np.testing.assert_allclose(value, MODEL(params, X[0]), rtol=1e-12)


def test_a_margin_below_the_root_of_rounding_is_undecided():
    """(1, 0) and (1, 1e-9) have a margin of 5e-10, whose square the Gram matrix cannot hold."""
    close = np.array([[[1.0, 0.0]], [[1.0, 1e-9]]])
    assert linear_margin(close, np.array([1.0, -1.0])).status == "undecided"
    same = np.array([[[1.0, 0.3]], [[1.0, 0.3]]])
    assert linear_margin(same, np.array([1.0, -1.0])).status == "not separable"


@pytest.mark.parametrize("method", ["structured", "jacobian", "vector-products"])
def test_an_overflowing_kernel_says_so(method):
    """|x|^2 = 1e50 has no place in float32; in float64 it has."""
    huge = 1e25 * X
    with pytest.raises(
        BadArgument, match=r"dtype = .float32.: overflows in block .* of .*; use dtype=.float64."
    ):
        ntk(MODEL, START, huge, dtype="float32", method=method)
    assert np.all(np.isfinite(ntk(MODEL, START, huge, method=method).total))
    with pytest.raises(BadArgument, match=r"'float64': overflows .*; scale the tokens"):
        ntk(MODEL, START, 1e200 * X, method=method)


def test_overflow_is_named_on_file_and_without_a_matrix(tmp_path):
    with pytest.raises(BadArgument, match="overflows in the kernel"):
        ntk_to_file(MODEL, START, 1e200 * X, file=tmp_path / "kernel.nc")
    operator = NTKOperator(MODEL, START, 1e25 * X, dtype="float32")
    with pytest.raises(BadArgument, match="overflows in a product"):
        operator @ Y
    with pytest.raises(BadArgument, match="overflows in the diagonal"):
        NTKOperator(MODEL, START, 1e200 * X).diagonal()


def test_parameters_that_a_dtype_cannot_hold():
    model = Encoder(3, 5, 0.4, 0.5, "mean")
    heavy = jax.tree.map(lambda leaf: 1e25 * leaf, ntk_normal(model, 0))
    with pytest.raises(BadArgument, match=r"overflows in block .* of wu2023"):
        ntk(model, heavy, X, dtype="float32")
