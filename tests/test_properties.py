"""What must hold for every input of the public functions, on inputs that hypothesis makes up."""

import json
import math

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from headcount.core import (
    activation_named,
    activations,
    pooled_attention,
    self_attention,
    stream,
)
from headcount.kernels import kernel_distance, kernel_margin, kernel_regression, ntk
from headcount.lab import content_address, mean, parse_seeds
from headcount.papers.arda2026 import PooledAttention, PooledAttentionParams, omega
from headcount.training import TrainConfig

few = settings(max_examples=25, deadline=None, derandomize=True, database=None)
T, D, M = 3, 2, 4


def numbers(size):
    """Floats of a size; hypothesis likes the ends, zeros and equal ones."""
    return st.floats(-size, size, allow_subnormal=False)


ordinary = st.floats(-1e3, 1e3).filter(lambda v: abs(v) > 1e-6)
"""Numbers whose logarithms spread no further than their means can be told."""


def tokens(size=30.0):
    return arrays(np.float64, (T, D), elements=numbers(size))


def matrices(*shape, size=30.0):
    return arrays(np.float64, shape, elements=numbers(size))


@few
@given(tokens(), matrices(D, D), matrices(D), matrices(D))
def test_attention_is_a_mean_that_only_differences_of_tokens_move(X, W, q, shift):
    alpha = np.asarray(pooled_attention(X, W, q))
    assert alpha.sum() == pytest.approx(1, rel=1e-12)
    assert np.all(alpha >= 0)
    # A shift of every token adds one number to all logits; only rounding remains.
    rounding = 1e-12 * (1 + np.abs(X).max() + np.abs(shift).max()) * np.abs(W @ q).max()
    np.testing.assert_allclose(pooled_attention(X + shift, W, q), alpha, rtol=1e-9, atol=rounding)
    order = np.array([2, 0, 1])
    # Sums over tokens run in another order.
    np.testing.assert_allclose(pooled_attention(X[order], W, q), alpha[order], rtol=1e-14)
    rows = np.asarray(self_attention(X, W))
    np.testing.assert_allclose(rows.sum(axis=1), 1, rtol=1e-12)
    same = np.broadcast_to(X[:1], X.shape)
    np.testing.assert_array_equal(pooled_attention(same, W, q), np.full(T, 1 / 3))


def heads(size):
    blocks = matrices(M, size=size), matrices(M, D, size=size), matrices(M, D, D, size=size)
    return st.builds(PooledAttentionParams, *blocks)


@few
@given(heads(3.0), st.one_of(heads(3.0), heads(1e200)), st.floats(1e-3, 10))
def test_projection_lands_inside_once_and_for_all(start, params, rho):
    inside = omega(rho, rho, rho)(params, start)
    for after, before, origin in zip(inside, params, start, strict=True):
        away = np.asarray(after) - origin
        size = np.sqrt(np.sum(away.reshape(M, -1) ** 2, axis=1))
        rounding = 1e-14 * np.abs(origin).max()
        assert np.all(size <= rho / math.sqrt(M) * (1 + 1e-12) + rounding)
        moved = np.abs(before - origin).reshape(M, -1).max(axis=1)
        # A head that is far away ends on the sphere, not at the centre.
        far = moved > rho
        assert np.all(size[far] >= rho / math.sqrt(M) * (1 - 1e-12) - rounding)
    again = omega(rho, rho, rho)(inside, start)
    for once, twice in zip(inside, again, strict=True):
        np.testing.assert_allclose(twice, once, rtol=1e-12, atol=1e-14)


@few
@given(heads(2.0), matrices(4, T, D, size=2.0))
def test_tangent_kernels_are_symmetric_and_positive_semidefinite(params, x):
    K = ntk(PooledAttention(D, M), params, x).total
    np.testing.assert_allclose(K, K.T, rtol=1e-12, atol=1e-12)
    values = np.linalg.eigvalsh(K)
    assert values[0] >= -1e-12 * max(values[-1], 1e-300) * len(K)


def grams():
    """K = F F^T with no row of F zero."""
    return matrices(3, 4, size=10.0).map(lambda F: (F + 20) @ (F + 20).T)


@few
@given(grams(), st.lists(st.sampled_from([-1.0, 1.0]), min_size=3, max_size=3), st.floats(0.1, 10))
def test_margins_bracket_and_scale(K, signs, norm):
    y = np.array(signs)
    margin = kernel_margin(K, y)
    assert margin.gamma <= margin.upper * (1 + 1e-9) + 1e-9
    scaled = kernel_margin(K, y, norm=norm)
    assert scaled.gamma == pytest.approx(norm / math.sqrt(2) * margin.gamma, rel=1e-6, abs=1e-6)


@few
@given(grams(), matrices(3, size=5.0), st.floats(0.1, 10))
def test_ridge_predicts_what_its_equation_says(K, y, ridge):
    """K a with (K + ridge) a = y; what of y the kernel cannot see is left out of a."""
    fit = kernel_regression(K, y, ridge=ridge)
    expected = K @ np.linalg.solve(K + ridge * np.eye(3), y)
    np.testing.assert_allclose(K @ fit.coefficients, expected, rtol=1e-8, atol=1e-8)


@few
@given(grams(), grams(), st.floats(1e-3, 1e3))
def test_kernel_distance_is_a_symmetric_angle(K, K0, factor):
    distance = float(kernel_distance(K, K0))
    assert -1e-12 <= distance <= 1 + 1e-12  # kernels have a non-negative inner product
    assert float(kernel_distance(factor * K0, K)) == pytest.approx(distance, abs=1e-12)


@few
@given(st.sampled_from(sorted(activations)), numbers(50.0), st.floats(0.01, 5), st.floats(0.01, 5))
def test_activations_stay_within_their_bounds(name, s, A, k):
    sigma = activations[name].scaled(A, k)
    at = np.float64(s)
    assert abs(float(sigma(at))) <= sigma.sigma0 * (1 + 1e-12)
    assert abs(float(sigma.derivative(at))) <= sigma.sigma1 * (1 + 1e-12)
    assert abs(float(sigma.second_derivative(at))) <= sigma.sigma2 * (1 + 1e-12)
    written = activation_named(f"{A!r}*{name}({k!r}*x)")
    assert float(written(at)) == float(sigma(at))


@few
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=8, unique=True))
def test_seeds_are_read_as_written(seeds):
    assert parse_seeds(",".join(map(str, seeds))) == tuple(seeds)
    first = min(seeds)
    assert parse_seeds(f"{first}:{first + 3}") == (first, first + 1, first + 2)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)  # fmt: skip


@few
@given(st.dictionaries(st.text(min_size=1, max_size=5), PLAIN, max_size=4))
def test_addresses_depend_on_content_alone(config):
    here = content_address("toy", 1, config)
    backwards = dict(reversed(config.items()))
    assert content_address("toy", 1, backwards) == here
    assert content_address("toy", 1, json.loads(json.dumps(config))) == here
    assert content_address("toy", 2, config) != here
    assert content_address("toy", 1, {**config, "another entry": 0}) != here


@few
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "width": st.integers(1, 99).map(lambda k: 2 * k),
            "n": st.integers(1, 10**6),
            "steps": st.integers(0, 10**6),
            "eta": st.floats(1e-6, 10),
            "seeds": st.lists(st.integers(0, 99), min_size=1, unique=True).map(tuple),
            "data_options": st.fixed_dictionaries({}, optional={"T": st.integers(1, 9)}),
        },
    )
)
def test_configurations_survive_being_written(values):
    config = TrainConfig.of(values)
    back = TrainConfig.of(json.loads(json.dumps(config.model_dump(mode="json"))))
    assert back == config
    assert back.fingerprint == config.fingerprint
    assert config.model_copy(update={"n": config.n + 1}).fingerprint != config.fingerprint


@few
@given(st.integers(0, 2**31 - 1), st.text(max_size=4), st.text(max_size=4))
def test_streams_differ_where_names_do(seed, a, b):
    first, second = (np.asarray(jax.random.key_data(stream(seed, n))) for n in (a, b))
    assert np.array_equal(first, second) == (a == b)


@few
@given(arrays(np.float64, 6, elements=ordinary), numbers(1e3), st.floats(0.1, 10))
def test_means_move_with_the_data(values, shift, factor):
    """Intervals move with the unit; not with the zero, which decides what is positive."""
    plain, scaled, moved = mean(values), mean(factor * values), mean(values + shift)
    assert plain.low <= plain.value <= plain.high
    for end in ("value", "low", "high"):
        expected = factor * getattr(plain, end)
        assert getattr(scaled, end) == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert moved.value == pytest.approx(plain.value + shift, rel=1e-9, abs=1e-6)
