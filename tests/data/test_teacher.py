"""The transport-map teacher against loops, and its invariants."""

from __future__ import annotations

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest
from naive_arda2026 import label, transport

from headcount.core import BadArgument, activations, float64, normal, seeded_query, stream
from headcount.papers.arda2026 import (
    PooledAttentionParams,
    TransportMap,
    TransportTeacher,
    transported,
)

SMALL = TransportTeacher(T=4, d=3, anchors=5, nu=(3.0, 2.0, 0.4), pool=13)
VARIANTS = {
    "paper": SMALL,
    "released": dataclasses.replace(
        SMALL, weights="signed", attention="diagonal", anchors_from="data"
    ),
    "scaled": dataclasses.replace(SMALL, w_branch="scaled", activation=activations["erf"]),
    "never-clipped": dataclasses.replace(SMALL, nu=(1.0, 2.0, 50.0)),
    "fixed-query": dataclasses.replace(SMALL, query=seeded_query(3, 7)),
    "one-token": dataclasses.replace(SMALL, T=1),
    "one-feature": dataclasses.replace(SMALL, d=1),
    "one-anchor": dataclasses.replace(SMALL, anchors=1, pool=1),
}


def heads(teacher, seed):
    return [(u, w) for U, W in teacher.heads(seed) for u, w in zip(U, W, strict=True)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_labels_match_loops(variant, relative):
    teacher = VARIANTS[variant]
    x, y = teacher.sample(5, seed=3)
    v = teacher.transport(3, x)
    expected = [label(teacher, X, v.anchors, v.weights, heads(teacher, 3)) for X in x]
    np.testing.assert_allclose(y, expected, rtol=relative["float64"], atol=1e-14)


def test_labels_of_a_pool_in_several_blocks_match_loops(monkeypatch, relative):
    monkeypatch.setattr("headcount.papers.arda2026.teacher._POOL_BLOCK", 5)
    x, y = SMALL.sample(3, seed=3)
    assert [len(U) for U, _ in SMALL.heads(3)] == [5, 5, 3]
    v = SMALL.transport(3)
    expected = [label(SMALL, X, v.anchors, v.weights, heads(SMALL, 3)) for X in x]
    np.testing.assert_allclose(y, expected, rtol=relative["float64"], atol=1e-14)


@pytest.mark.parametrize("variant", VARIANTS)
def test_transport_matches_loops_and_lies_in_its_class(variant, relative):
    teacher = VARIANTS[variant]
    x = teacher.law.inputs(9, 1)
    v = teacher.transport(1, x)
    U, W = normal(stream(5, "U"), (6, teacher.d)), normal(stream(5, "W"), (6, teacher.d, teacher.d))
    got = v(np.ones(6), U, W)
    for i in range(6):
        expected = transport(teacher, v.anchors, v.weights, U[i], W[i])
        for block, want in zip(got, expected, strict=True):
            np.testing.assert_allclose(block[i], want, rtol=relative["float64"], atol=1e-14)
    nu_c, nu_u, nu_w = teacher.nu
    assert np.max(np.abs(got.v_c)) <= nu_c
    assert np.max(np.linalg.norm(got.v_u, axis=-1)) <= nu_u * (1 + 1e-12)
    assert np.max(np.linalg.norm(got.v_w, axis=(1, 2))) <= nu_w * (1 + 1e-12)


def test_the_clip_acts_in_the_small_case():
    """Guards the loops above: without an active clip they would not test it."""
    free = dataclasses.replace(SMALL, nu=(3.0, 2.0, 50.0))
    U, W = normal(stream(5, "U"), (40, 3)), normal(stream(5, "W"), (40, 3, 3))
    clipped, whole = (t.transport(1)(np.ones(40), U, W).v_w for t in (SMALL, free))
    assert np.max(np.abs(clipped - whole)) > 0.01


def test_transported_point_has_the_linear_model_of_eq_10(relative):
    """f_lin(X; phi~) = (1/m) sum_i g_i(X) [below Eq. (10)], by a directional derivative."""
    import jax

    teacher, m, d = SMALL, 6, 3
    c = np.array([1.0, -1.0, 1.0, -1.0, -1.0, 1.0])
    U, W = normal(stream(8, "U"), (m, d)), normal(stream(8, "W"), (m, d, d))
    v = teacher.transport(2)
    c1, U1, W1 = transported(PooledAttentionParams(c, U, W), v(c, U, W))
    X = teacher.law.inputs(1, 4)[0]

    def f(c, U, W):
        alpha = jax.nn.softmax(jnp.einsum("td,mde,e->mt", X, W, X[-1]), axis=-1)
        return c @ jnp.tanh(jnp.sum(U * (alpha @ X), axis=-1)) / math.sqrt(m)

    _, linear = jax.jvp(f, (c, U, W), (c1 - c, U1 - U, W1 - W))
    expected = label(teacher, X, v.anchors, v.weights, list(zip(U, W, strict=True)))
    np.testing.assert_allclose(linear, expected, rtol=relative["float64"])


def test_float32_labels_agree_with_float64(relative):
    single = dataclasses.replace(SMALL, dtype="float32")
    x, y = single.sample(20, 0)
    x64, y64 = dataclasses.replace(single, dtype="float64").sample(20, 0)
    assert y.dtype == np.float64
    np.testing.assert_array_equal(x, x64)
    np.testing.assert_allclose(y, y64, atol=relative["float32"] * np.max(np.abs(y64)))


def test_a_label_does_not_depend_on_its_batch_or_chunk(monkeypatch):
    x = SMALL.law.inputs(21, 0)
    v = SMALL.transport(0)
    together = SMALL.labels(x, v, 0)
    monkeypatch.setattr("headcount.papers.arda2026.teacher._CHUNK_NUMBERS", 4 * 13 * 5)
    np.testing.assert_allclose(SMALL.labels(x, v, 0), together, rtol=1e-12, atol=1e-15)
    alone = np.concatenate([SMALL.labels(x[:5], v, 0), SMALL.labels(x[5:], v, 0)])
    np.testing.assert_allclose(together, alone, rtol=1e-12, atol=1e-15)


def test_streams_are_separate():
    """A larger pool keeps the anchors; more data keeps the teacher; teacher_seed fixes it."""
    v, wide = SMALL.transport(3), dataclasses.replace(SMALL, pool=600).transport(3)
    np.testing.assert_array_equal(v.anchors, wide.anchors)
    fixed = dataclasses.replace(SMALL, teacher_seed=11)
    np.testing.assert_array_equal(fixed.transport(0).anchors, fixed.transport(1).anchors)
    assert not np.array_equal(fixed.sample(3, 0).x, fixed.sample(3, 1).x)
    first = heads(dataclasses.replace(SMALL, pool=5), 3)
    for (U, W), (U2, W2) in zip(first, heads(SMALL, 3)[:5], strict=True):
        np.testing.assert_array_equal(U, U2)
        np.testing.assert_array_equal(W, W2)


def test_anchors_from_data_are_distinct_training_inputs():
    teacher = VARIANTS["released"]
    train, _ = teacher.sample_split(8, 3, seed=0)
    anchors = teacher.transport(0, train.x).anchors
    rows = [int(np.flatnonzero((train.x == a).all(axis=(1, 2)))[0]) for a in anchors]
    assert len(set(rows)) == teacher.anchors
    assert np.sum(np.abs(teacher.transport(0, train.x).weights)) == pytest.approx(1, rel=1e-14)


def test_the_pool_converges_at_its_monte_carlo_rate():
    """Two disjoint pools differ by a few standard errors [arda2026, errata E17]."""
    x = SMALL.law.inputs(4, 0)
    big = dataclasses.replace(SMALL, pool=4096)
    v = big.transport(0)
    first, second = big.labels(x, v, 0), big.labels(x, v, 1)
    per_head = [
        np.std([label(SMALL, X, v.anchors, v.weights, [h]) for h in heads(SMALL, 0)]) for X in x
    ]
    assert np.all(np.abs(first - second) < 8 * np.array(per_head) * math.sqrt(2 / 4096))
    assert np.all(first != second)


def test_x64_setting_outside_is_untouched():
    import jax

    with jax.enable_x64(False):
        single = SMALL.sample(3, 0).y
        assert jnp.zeros(1).dtype == jnp.float32
    with float64():
        np.testing.assert_array_equal(SMALL.sample(3, 0).y, single)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"anchors": 0}, "anchors"),
        ({"pool": 0}, "pool"),
        ({"T": 0}, "T"),
        ({"nu": (1.0, 0.0, 1.0)}, "nu_u"),
        ({"nu": (1.0, 1.0)}, "nu"),
        ({"weights": "random"}, "weights"),
        ({"attention": "half"}, "attention"),
        ({"w_branch": "none"}, "w_branch"),
        ({"anchors_from": "air"}, "anchors_from"),
        ({"dtype": "float16"}, "dtype"),
        ({"query": seeded_query(4, 0)}, "query"),
        ({"query": 3}, "query"),
        ({"teacher_seed": -1}, "teacher_seed"),
    ],
)
def test_bad_fields_are_named(changes, argument):
    with pytest.raises(BadArgument) as caught:
        dataclasses.replace(SMALL, **changes)
    assert caught.value.argument == argument


@pytest.mark.usefixtures("wrong_shapes")
def test_bad_calls_are_named():
    teacher = VARIANTS["released"]
    with pytest.raises(BadArgument, match=r"x = None: cannot give 5 anchors"):
        teacher.transport(0)
    with pytest.raises(BadArgument, match=r"x = '4 inputs'"):
        teacher.sample(4, 0)
    with pytest.raises(BadArgument, match="n = 0"):
        SMALL.sample(0, 0)
    with pytest.raises(BadArgument, match="n_val = 0"):
        SMALL.sample_split(3, 0, 0)
    v = SMALL.transport(0)
    with pytest.raises(BadArgument, match="must have shape"):
        SMALL.labels(np.zeros((2, 4, 5)), v, 0)
    with pytest.raises(BadArgument, match="NaN"):
        SMALL.labels(np.full((2, 4, 3), np.nan), v, 0)
    with pytest.raises(BadArgument, match="absolute sum above 1"):
        TransportMap(v.anchors, np.ones(5))
    with pytest.raises(BadArgument, match=r"^W = "):
        v(np.ones(2), np.ones((2, 3)), np.ones((2, 3)))
