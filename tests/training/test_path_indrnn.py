"""The fast IndRNN gradient against automatic differentiation of the model as written."""

from __future__ import annotations

import numpy as np
import pytest
from training_problems import compare_with_twin

from headcount.core import activations, losses, normal, stream
from headcount.papers.arda2026 import IndRNN, IndRNNParams, indrnn_chunk, indrnn_path
from headcount.training import gradient_path


def draw(n: int, T: int, d: int, m: int) -> tuple:
    def of(name: str, *shape: int) -> np.ndarray:
        return normal(stream(0, "indrnn-path", name), shape)

    return IndRNNParams(of("c", m), of("U", m, d), of("w", m)), of("x", n, T, d), of("y", n)


CASES = {
    "asymmetric": ((7, 5, 3, 4), "tanh", "mean-squared", 3),
    "logistic loss": ((7, 5, 3, 4), "erf", "logistic", 2),
    "summed loss": ((5, 4, 2, 3), "sin", "half-squared-sum", 5),
    "one token": ((4, 1, 3, 2), "tanh", "mean-squared", 4),
    "one feature": ((4, 3, 1, 2), "gaussian", "mean-squared", 1),
    "one head": ((3, 4, 2, 1), "tanh", "logistic", 2),
    "one sample": ((1, 6, 2, 4), "tanh", "mean-squared", 1),
}


def compare(case: tuple, params: IndRNNParams, x, y, tolerance: float) -> None:
    (_, _, d, m), activation, loss, chunk = case
    model = IndRNN(d, m, activations[activation])
    compare_with_twin(indrnn_path, model, params, x, y, loss, chunk, tolerance)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_equals_automatic_differentiation(case, relative) -> None:
    compare(case, *draw(*case[0]), relative["float64"])


@pytest.mark.parametrize("change", ["equal tokens", "saturated"])
def test_degenerate_inputs(change, relative) -> None:
    """Equal tokens, and drives of a thousand (sine: saturation would leave no gradient at all)."""
    case = ((5, 4, 3, 4), "sin" if change == "saturated" else "tanh", "mean-squared", 2)
    params, x, y = draw(*case[0])
    if change == "equal tokens":
        x = np.repeat(x[:, :1], 4, axis=1)
    else:
        x, params = x * 1e3, params._replace(w=params.w / 10)
    compare(case, params, x, y, relative["float64"])


def test_is_registered_with_a_chunk_of_at_least_one_sample() -> None:
    assert indrnn_chunk(IndRNN(2, 256), T=16) == 64
    assert indrnn_chunk(IndRNN(2, 10**6), T=16) == 1
    path = gradient_path(IndRNN(2, 4), losses["mean-squared"], n=3, T=2)
    assert path.outputs.__module__ == indrnn_path.__module__
