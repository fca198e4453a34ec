"""The table of required widths: entries of its NTK row by a derivation that shares no code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from benchmarks import wu2023_widths as table


def slow_conditions(u: Any, norms: Any, given: dict[str, float]) -> float:
    """The worse of (2) and (3) of Proposition 1, written out; C_* = exp(u)."""
    C_Q, C_K, C_V, C_O = np.exp(u)
    Q, K, V, O = norms + np.exp(u)
    N, T, tau0, tau1, C_x = (given[name] for name in ("N", "T", "tau0", "tau1", "C_x"))
    alpha, residual, S = given["alpha"], given["residual"], T * C_x**2
    rho = math.sqrt(N) * T**1.5 * tau1 * C_x
    moved = max(V / C_O, O / C_V, 2 * tau0 * S * K * V * O / C_Q, 2 * tau0 * S * Q * V * O / C_K)
    z = O**2 * (1 + 4 * tau0**2 * S**2 * V**2 * (Q**2 + K**2))
    second = 8 * rho * moved * residual / alpha**2
    third = 32 * rho**2 * z / O * residual / alpha**3
    return max(second, third)


def slow_ratio(x: Any, y: Any, width: int) -> float:
    """NTK initialisation, tau0 = 1/d_m, sum pooling: weights as `earlier_draw` documents them."""
    n, T, d = x.shape
    rng = np.random.default_rng(0)
    rng.standard_normal(x.size + y.size)  # tokens and labels come first
    W = [rng.standard_normal((width, d)) for _ in range(3)]
    w_O = rng.standard_normal(width)
    tau0, tau1 = 1 / width, width**-0.5
    features = []
    for sample in x:
        queries, keys = sample @ W[0].T, sample @ W[1].T
        weights = np.exp(tau0 * queries @ keys.T)
        weights /= weights.sum(axis=1, keepdims=True)
        features.append(tau1 * np.maximum(weights @ sample @ W[2].T, 0).sum(axis=0))
    F = np.array(features)
    norms = np.array([*(np.linalg.svd(w, compute_uv=False)[0] for w in W), np.linalg.norm(w_O)])
    given = {
        "N": n, "T": T, "tau0": tau0, "tau1": tau1,
        "C_x": max(np.linalg.norm(sample) for sample in x) / math.sqrt(T),
        "alpha": np.linalg.svd(F, compute_uv=False)[-1],
        "residual": np.linalg.norm(F @ w_O - y),
    }  # fmt: skip

    def log_worse(u: Any) -> float:
        return math.log(slow_conditions(u, norms, given))

    starts = (np.log(norms), np.log(norms) - 2)
    options = {"maxiter": 4000, "maxfev": 4000, "xatol": 1e-6, "fatol": 1e-8}
    minima = (
        scipy.optimize.minimize(log_worse, u, method="Nelder-Mead", options=options).fun
        for u in starts
    )
    return math.exp(min(minima))


@pytest.mark.parametrize(
    ("shape", "width", "holds"),
    [((1, 1, 1), 256, True), ((2, 2, 4), 2**16, False), ((2, 2, 4), 2**18, True)],
)
def test_the_ntk_row_of_the_table_is_what_the_conditions_say(
    shape: tuple[int, int, int], width: int, holds: bool
) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(shape), rng.standard_normal(shape[0])
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    ratio, c = table.worst(shape, ("ntk", "ntk"), table.earlier_draw, width)
    assert ratio == pytest.approx(slow_ratio(c * x, y, width), rel=1e-3)
    assert (ratio <= 1) == holds
    others = [slow_ratio(other * x, y, width) for other in table.SCALES[::2]]
    assert min(others) >= ratio * (1 - 1e-3)


@pytest.mark.parametrize("width", [16, 4096])  # (3) decides in the first, (2) in the second
def test_no_C_beats_the_bound_that_leaves_scales_out(width: int) -> None:
    """`least_possible` may leave a scale out only where no C_* could have helped."""
    model = table.Encoder(2, width, 1 / width, 1.0, "sum")
    params, x, y = table.earlier_draw(model, "lecun", (2, 1, 2))
    for c in table.SCALES[::3]:
        start = table.measure_start(model, params, c * x, y)
        ratio = table.best_room(start).worst
        assert 0 < table.least_possible(start) < ratio
