"""Kernel and weight drift against their definitions."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.kernels import drift, kernel_distance, ntk, relative_change
from headcount.papers import arda2026, deora2024

from .ntk_cases import ALL, random_params, samples

MODEL = ALL["wu2023-sum"]
START, END = random_params(MODEL), random_params(MODEL, "moved")
X = samples(5)


def test_drift_is_its_definition():
    found = drift(MODEL, START, END, X, eigenvalues=2)
    K0, K = ntk(MODEL, START, X), ntk(MODEL, END, X)
    inner = np.trace(K.total @ K0.total.T)
    norms = np.linalg.norm(K.total) * np.linalg.norm(K0.total)
    values = np.linalg.eigvalsh(K.total)
    moved = {k: np.linalg.norm(getattr(END, k) - getattr(START, k)) for k in START._fields}
    size = {k: np.linalg.norm(getattr(START, k)) for k in START._fields}
    total = np.sqrt(sum(v**2 for v in moved.values()))
    want = {
        "kernel_distance": 1 - inner / norms,
        "relative_change": np.linalg.norm(K.total - K0.total) / np.linalg.norm(K0.total),
        "eigenvalue/1": values[-1],
        "eigenvalue/2": values[-2],
        "eigenvalue/-1": values[0],
        "eigenvalue/-2": values[1],
        "movement": total,
        "relative_movement": total / np.sqrt(sum(v**2 for v in size.values())),
    }
    for k in START._fields:
        change = np.linalg.norm(K.blocks[k] - K0.blocks[k]) / np.linalg.norm(K0.blocks[k])
        want[f"relative_change/{k}"] = change
        want[f"movement/{k}"] = moved[k]
        want[f"relative_movement/{k}"] = moved[k] / size[k]
    assert found.keys() == want.keys()
    for key, value in want.items():
        assert found[key] == pytest.approx(value, rel=1e-10, abs=1e-12), key
        assert isinstance(found[key], float)


def test_nothing_moves_at_the_start():
    found = drift(MODEL, START, START, X)
    zero = [k for k in found if not k.startswith("eigenvalue")]
    assert max(abs(found[k]) for k in zero) < 1e-14


@pytest.mark.usefixtures("wrong_shapes")
def test_distance_ignores_scale_and_resolves_tiny_changes():
    K = ntk(MODEL, START, X).total
    assert float(kernel_distance(3 * K, K)) == pytest.approx(0, abs=1e-30)
    nudged = K.copy()
    nudged[0, 0] *= 1 + 1e-9
    assert 0 < float(kernel_distance(nudged, K)) < 1e-17
    assert float(relative_change(3 * K, K)) == pytest.approx(2)
    with pytest.raises(BadArgument, match="K ="):
        kernel_distance(K[:2], K)


def test_drift_inside_a_program_and_with_frozen_blocks():
    outside = drift(MODEL, START, END, X, frozen=("W_Q",))
    inside = jax.jit(lambda p: drift(MODEL, START, p, X, frozen=("W_Q",)))(END)
    assert "relative_change/W_Q" not in outside
    for key, value in outside.items():
        assert float(inside[key]) == pytest.approx(value, rel=1e-10, abs=1e-12)


def test_float64_from_float32_arguments_in_a_float32_session():
    small = type(START)(*(leaf.astype(np.float32) for leaf in END))
    double = type(START)(*(leaf.astype(np.float64) for leaf in small))
    with jax.enable_x64(False):
        found = drift(MODEL, START, small, X)
    assert found == drift(MODEL, START, double, X)


def test_bad_requests_are_named():
    with pytest.raises(BadArgument, match="above n"):
        drift(MODEL, START, END, X, eigenvalues=6)
    with pytest.raises(BadArgument, match="not a block"):
        drift(MODEL, START, END, X, frozen=("c",))
    with pytest.raises(BadArgument, match="params"):
        drift(deora2024.LinearModel(5, 4), START, END, X)


def test_drift_is_a_training_recorder(tmp_path) -> None:
    """Every k steps of a run, and stored with it."""
    from headcount.training import gd, train

    model = arda2026.PooledAttention(d=2, m=4)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 3, 2)), rng.normal(size=5)

    def kernel_drift(now):
        return drift(now.model, now.initial, now.params, now.x)

    run = train(
        model,
        arda2026.paired(model, 0),
        x,
        y,
        rule=gd(0.5),
        steps=4,
        record=[kernel_drift],
        record_every=2,
        dtype="float64",
    )
    recorded = run.records["kernel_distance"]
    assert recorded[0] < 1e-30 < recorded[-1]
    final = drift(model, arda2026.paired(model, 0), run.parameters(), x)
    assert recorded[-1] == pytest.approx(final["kernel_distance"], rel=1e-10)
    stored = run.to_xarray()
    assert "movement_U" in stored
    with pytest.warns(UserWarning, match="holds no configuration"):
        run.save(tmp_path / "run.nc")
