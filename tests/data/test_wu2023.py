"""The data of wu2023 and the measured Assumptions 1 to 4."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.data import Dataset, GaussianTokens, clip_to_ball
from headcount.papers.wu2023.data import GaussianRegression, VectorInput, encoder_assumptions


@pytest.mark.parametrize(("tokens", "size"), [("raw", 1.0), ("scaled", 1 / math.sqrt(20))])
def test_entries_have_the_chosen_size(tokens, size):
    x, y = GaussianRegression(T=5, d=20, tokens=tokens).sample(400, 0)
    assert np.std(x) == pytest.approx(size, abs=5 * size / math.sqrt(2 * x.size))
    assert np.std(y) == pytest.approx(1, abs=5 / math.sqrt(800))
    assert abs(np.corrcoef(x[:, 0, 0], y)[0, 1]) < 5 / math.sqrt(400)


def test_both_layouts_hold_the_same_numbers():
    row, column = VectorInput(D=6), VectorInput(D=6, layout="column")
    a, b = row.sample(4, 1), column.sample(4, 1)
    assert a.x.shape == (4, 1, 6)
    assert b.x.shape == (4, 6, 1)
    np.testing.assert_array_equal(a.x.ravel(), b.x.ravel())
    np.testing.assert_array_equal(a.y, b.y)
    assert row.measure(a)["row_rank"].holds
    assert column.measure(b)["row_rank"].holds is False


def test_assumptions_by_hand():
    X = np.array([[[3.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [2.0, 2.0]], [[0.0, 2.0], [1.0, 0.0]]])
    found = encoder_assumptions(Dataset(X, np.zeros(3)))
    assert found["C_x"].value == pytest.approx(math.sqrt(10 / 2))
    assert found["row_rank"].value == 1
    assert found["row_rank"].holds is False
    assert found["C_lambda"].value == pytest.approx(0, abs=1e-14)
    summed = np.array([[3, 1], [3, 3], [1, 2]])
    expected = np.linalg.eigvalsh(sum(np.outer(s, s) for s in summed) / 3)[0]
    assert found["C_Sigma"].value == pytest.approx(expected)
    assert found["C_Sigma"].holds
    products = [np.linalg.norm(X[i] @ X[j].T) ** 2 for i, j in [(0, 1), (0, 2), (1, 2)]]
    assert found["A3_largest"].value == pytest.approx(max(products))
    assert "A3_exponent" not in found


def test_undecided_and_singular_cases():
    few = GaussianRegression(T=2, d=5).sample(3, 0)
    assert encoder_assumptions(few)["C_Sigma"].holds is None
    assert "A3_largest" not in encoder_assumptions(Dataset(few.x[:1], few.y[:1]))
    flat = Dataset(np.ones((9, 2, 3)), np.zeros(9))
    assert encoder_assumptions(flat)["C_Sigma"].holds is False


def test_the_tail_exponent_of_one_feature_is_that_of_a_product_of_normals():
    """T = d = 1: the product x^2 x'^2 has a tail exp(-sqrt t): exponent near 1/2 up to logs."""
    data = GaussianRegression(T=1, d=1, tokens="raw").sample(200, 0)
    assert 0.3 < encoder_assumptions(data)["A3_exponent"].value < 0.7


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GaussianRegression(T=0), "T = 0"),
        (lambda: GaussianRegression(tokens="unit"), "tokens = 'unit'"),
        (lambda: VectorInput(D=0), "D = 0"),
        (lambda: VectorInput(layout="both"), "layout = 'both'"),
        (lambda: GaussianTokens(d=-2), "d = -2"),
    ],
)
def test_bad_fields_are_named(make, message):
    with pytest.raises(BadArgument, match=message):
        make()


def test_clipping_moves_only_long_tokens():
    x = np.array([[0.3, 0.4], [3.0, 4.0], [0.0, 0.0], [1e-200, 0.0]])
    np.testing.assert_allclose(
        clip_to_ball(x), [[0.3, 0.4], [0.6, 0.8], [0, 0], [1e-200, 0]], rtol=1e-15
    )


def test_gaussian_tokens_keep_the_inner_part_of_the_law():
    """d = 1: |X| < 1 with probability 0.6827, and the sign is fair."""
    x = GaussianTokens(T=1, d=1).sample(4000, 0).x.ravel()
    assert np.max(np.abs(x)) <= 1 + 1e-15
    assert np.mean(np.abs(x) < 1 - 1e-12) == pytest.approx(0.6827, abs=5 * math.sqrt(0.2166 / 4000))
    assert abs(np.mean(x)) < 5 / math.sqrt(4000)
