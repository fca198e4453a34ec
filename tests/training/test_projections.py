"""Projections: against a loop, and by what defines the nearest point of a convex set."""

from __future__ import annotations

import numpy as np
import pytest
from training_problems import pooled

from headcount.core import BadArgument
from headcount.papers.arda2026 import IndRNNParams, omega, omega_indrnn
from headcount.training import HeadBalls, NoProjection

RADII = (0.3, 0.7, 1.1)


def displaced(size: float, seed: int = 0):
    """A start and parameters away from it, each head by a different amount."""
    _, start, _, _ = pooled(m=5, seed=seed)
    rng = np.random.default_rng(seed + 1)
    far = [leaf + size * rng.exponential() * rng.normal(size=leaf.shape) for leaf in start]
    return start, type(start)(*far)


def naive(params, start):
    """Every head of every block on its own."""
    result = []
    for leaf, origin, rho in zip(params, start, RADII, strict=True):
        heads = np.array(leaf, copy=True)
        for i in range(len(heads)):
            length = np.sqrt(np.sum((leaf[i] - origin[i]) ** 2))
            radius = rho / np.sqrt(len(heads))
            if length > radius:
                heads[i] = origin[i] + (leaf[i] - origin[i]) * radius / length
        result.append(heads)
    return type(params)(*result)


@pytest.mark.parametrize("size", [0.05, 0.2, 3.0, 1e6])
def test_projection_equals_a_loop_over_heads_and_is_idempotent(size: float) -> None:
    start, params = displaced(size)
    projected = omega(*RADII)(params, start)
    for ours, theirs in zip(projected, naive(params, start), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)
    for once, twice in zip(projected, omega(*RADII)(projected, start), strict=True):
        np.testing.assert_allclose(twice, once, rtol=1e-14)


@pytest.mark.parametrize(
    ("dtype", "far"), [("float32", 1e30), ("float32", 3e38), ("float64", 1e308)]
)
def test_a_point_whose_length_overflows_lands_on_the_sphere(dtype: str, far: float) -> None:
    """Its direction is kept: it is neither the centre nor left where it is."""
    point = np.array([[far, -far, far / 2]], dtype)
    landed = HeadBalls((("U", 3.0),))({"U": point}, {"U": np.zeros_like(point)})["U"]
    np.testing.assert_allclose(landed, np.array([[2.0, -2.0, 1.0]], dtype), rtol=1e-6)


@pytest.mark.parametrize("radius", [1e-160, 1e-3, 1e22, 1e200])
@pytest.mark.parametrize("far", [0.0, 1e-4, 0.999, 1.001, 1e4, 1e40, 1e100])
def test_any_radius_beside_any_distance(radius: float, far: float) -> None:
    """Near or far is meant in units of the radius, wherever the squares would go."""
    point = radius * far * np.array([[0.6, -0.8]])
    landed = HeadBalls((("U", radius),))({"U": point}, {"U": np.zeros_like(point)})["U"]
    expected = min(radius * far, radius) * np.array([[0.6, -0.8]])
    np.testing.assert_allclose(landed, expected, rtol=1e-14)
    if far < 1:
        np.testing.assert_array_equal(landed, point)


def test_projection_is_the_nearest_point() -> None:
    """<x - Px, z - Px> <= 0 for every z of the set, block by block and head by head."""
    start, params = displaced(2.0)
    projected = omega(*RADII)(params, start)
    rng = np.random.default_rng(3)
    for leaf, near, origin, rho in zip(params, projected, start, RADII, strict=True):
        for i in range(5):
            for _ in range(20):
                inside = rng.normal(size=origin[i].shape)
                inside *= rho / np.sqrt(5) * rng.uniform() / np.sqrt(np.sum(inside**2))
                assert np.sum((leaf[i] - near[i]) * (origin[i] + inside - near[i])) <= 1e-12


def test_points_inside_stay_as_they_are() -> None:
    start, params = displaced(1e-3)
    for projected in (omega(*RADII)(params, start), NoProjection()(params, start)):
        for ours, theirs in zip(projected, params, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(omega(*RADII)(start, start), start, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_indrnn_set_names_its_own_blocks() -> None:
    params = IndRNNParams(np.ones(4), np.ones((4, 2)), np.ones(4))
    start = IndRNNParams(np.zeros(4), np.zeros((4, 2)), np.zeros(4))
    projection = omega_indrnn(*RADII)
    projection.check(params)
    moved = projection(params, start)
    np.testing.assert_allclose(moved.c, 0.15)
    np.testing.assert_allclose(moved.U, 0.35 / np.sqrt(2))
    np.testing.assert_allclose(moved.w, 0.55)


@pytest.mark.parametrize("radius", [0, -1.0, float("nan"), float("inf"), "2"])
def test_radius_must_be_positive(radius) -> None:
    with pytest.raises(BadArgument, match=r"rho_U = .*must be a finite number > 0"):
        omega(1, radius, 1)


@pytest.mark.parametrize("radii", [(("c", 1.0),), (("c", 1.0), ("U", 1.0), ("W", 1.0), ("V", 1.0))])
def test_every_block_needs_a_radius_and_every_radius_a_block(radii) -> None:
    _, params, _, _ = pooled()
    with pytest.raises(BadArgument, match="does not name every block"):
        HeadBalls(radii).check(params)
