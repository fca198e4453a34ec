"""What high-probability claims of arda2026 are compared with: the right spread, the worst map."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
import pytest

from headcount.core import Array, activation_named
from headcount.papers.arda2026.claims import lemma_4
from headcount.theory import claims

DRAWS = 20_000


def test_one_heads_mean_and_spread_in_lemma_4() -> None:
    """With m = 2 the kernel is one head's term, so K and sd are its mean and deviation."""
    experiment = claims["arda2026/lemma-4-limit"].experiment
    assert experiment is not None
    case = {**experiment.cases[0], "m": 2}
    drawn = experiment.draw(case, np.random.default_rng(3), DRAWS)
    sides = jax.jit(jax.vmap(lambda i: experiment.sides(i, "printed")))(drawn)
    K, sd = lemma_4.limit()
    # |K_m - K| alone: the sign is that of the head's own term.
    terms = np.asarray(jax.jit(jax.vmap(lambda i: lemma_4.terms(i, i.U, i.W)[0]))(drawn))
    np.testing.assert_allclose(np.abs(terms - K), sides.lhs, rtol=1e-9, atol=1e-12)
    error = terms.std() / math.sqrt(DRAWS)
    assert abs(terms.mean() - K) < 4 * error
    fourth = np.mean((terms - terms.mean()) ** 4)
    spread_error = math.sqrt((fourth - terms.var() ** 2) / DRAWS) / (2 * terms.std())
    assert abs(terms.std() - sd) < 4 * spread_error
    # A sign error in the variance would be ten times what the test can see.
    assert abs(math.sqrt(sd**2 + 2 * K**2) - sd) > 10 * spread_error


def largest_sum(i: Any, k: int) -> float:
    """max over |v_c|, |v_u|, ||v_w|| <= 1 of one head's term on the first sample, by loops."""
    sigma = activation_named(i.activation)
    X, q, U, W = (np.asarray(part)[k] for part in (i.X, i.q, i.U0, i.W0))
    X, q, U, W = X[0], q[0], U[0], W[0]
    weights = [math.exp(float(x @ W @ q)) for x in X]
    alpha = [w / math.fsum(weights) for w in weights]
    a: Array = sum(p * x for p, x in zip(alpha, X, strict=True))
    MU: Array = sum(p * (x - a) * float((x - a) @ U) for p, x in zip(alpha, X, strict=True))
    h, slope = float(sigma(float(U @ a))), abs(float(sigma.derivative(float(U @ a))))
    on_w = slope * np.linalg.norm(MU) * np.linalg.norm(q)
    nu = np.asarray(i.nu)[k]
    return float(nu[0] * abs(h) + nu[1] * slope * np.linalg.norm(a) + nu[2] * on_w)


@pytest.mark.parametrize("activation", ["tanh", "sin"])
def test_the_adversary_of_lemma_5_is_the_worst_map_on_its_sample(activation: str) -> None:
    experiment = claims["arda2026/lemma-5"].experiment
    assert experiment is not None
    aligned = next(case for case in experiment.cases if case["policy"] == "aligned")
    case = {**aligned, "m": 2, "n": 1, "activation": activation}
    case |= {"nu_c": 0.7, "nu_u": 1.3, "nu_w": 2.1}
    drawn = experiment.draw(case, np.random.default_rng(4), 20)
    sides = jax.vmap(lambda i: experiment.sides(i, "corrected"))(drawn)
    worst = [largest_sum(drawn, k) for k in range(20)]
    np.testing.assert_allclose(np.asarray(sides.lhs), worst, rtol=1e-10)
