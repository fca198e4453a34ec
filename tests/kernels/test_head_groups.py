"""Every tool sees head groups as all their heads: groups (3, 2, 5) against ten plain heads."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.flatten_util import ravel_pytree

from headcount.core import LOGISTIC, BadArgument, losses, normal, stream
from headcount.kernels import (
    Linearised,
    NTKOperator,
    direction_margins,
    drift,
    head_hessians,
    hessian_extremes,
    hessian_vector_product,
    kernel_margin,
    loss_function,
    model_function,
    normalised_margin,
    ntk,
    ntk_margin,
    ntk_vector_product,
    traced_ntk,
    train_linearised,
    weight_movement,
)
from headcount.models import outputs, over_heads
from headcount.papers.deora2024.model import HeadGroups, MultiHeadParams
from headcount.training import (
    AttentionMass,
    HeadBalls,
    adam,
    adamw,
    gd,
    generic_path,
    momentum,
    naive_path,
    projgd,
    recorders,
    sgd,
    train,
)

T, D, N = 3, 2, 5


def case(readout: str = "full") -> tuple[HeadGroups, MultiHeadParams, MultiHeadParams, Any, Any]:
    """The groups, two parameter points, and data with signs that the tangent features separate."""
    groups = HeadGroups(T, D, (3, 2, 5), readout)
    shapes = groups.shapes()

    def draw(seed: int) -> MultiHeadParams:
        return MultiHeadParams(
            *(normal(stream(seed, "groups", b), s) for b, s in shapes._asdict().items())
        )

    x = normal(stream(0, "groups", "x"), (N, T, D))
    return groups, draw(1), draw(2), x, np.array([1.0, -1.0, 1.0, 1.0, -1.0])


def agree(got: Any, want: Any, rtol: float = 1e-11) -> None:
    """Equal leaf by leaf, measured against each leaf's largest entry."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * max(np.max(np.abs(b)), 1e-300))


def test_kernels() -> None:
    """All models and methods: see test_ntk.py, whose slow twin expands groups."""
    groups, p, _, x, _ = case()
    want = ntk(groups.plain, groups.expand(p), x).blocks
    agree(ntk(groups, p, x).blocks, want)
    agree({k: np.asarray(v) for k, v in traced_ntk(groups, p, x).items()}, dict(want))
    v = np.cos(np.arange(N))
    agree(NTKOperator(groups, p, x, method="jacobian") @ v, sum(want.values()) @ v)
    agree(np.asarray(ntk_vector_product(groups, p, x, v)), sum(want.values()) @ v)


def test_linearised_model() -> None:
    groups, p, q, x, _ = case()
    flat, plain = Linearised(groups, p), Linearised(groups.plain, groups.expand(p))
    agree(outputs(flat, q, x), outputs(plain, groups.expand(q), x))
    agree(ntk(flat, q, x).total, ntk(plain, groups.expand(q), x).total)
    agree(ntk(flat, q, x).total, ntk(groups, p, x).total)


@pytest.mark.parametrize("radius", [None, 0.3])
def test_train_linearised(radius: float | None) -> None:
    groups, p, _, x, y = case()
    call = {
        "eta": 0.05,
        "steps": 6,
        "loss": losses["half-squared-sum"],
        "radius": radius,
        "x_test": x[:2],
    }
    ours = train_linearised(groups, p, x, y, **call)
    theirs = train_linearised(groups.plain, groups.expand(p), x, y, **call)
    agree((ours.train, ours.test, ours.loss), (theirs.train, theirs.test, theirs.loss))
    agree(groups.expand(ours.params), theirs.params)
    length = weight_movement(p, ours.params, model=groups)["movement"]
    assert length == pytest.approx(radius) if radius else length > 0.5


@pytest.mark.parametrize("rule", [gd(0.3), adam(0.03)], ids=["gd", "adam"])
def test_training_the_linearised_model(rule: Any) -> None:
    """The generic gradient path, which such a model takes, steps like one head of each group."""
    groups, p, _, x, y = case()
    call = {"rule": rule, "steps": 7, "loss": LOGISTIC, "dtype": "float64"}
    ours = train(Linearised(groups, p), p, x, y, **call)
    every = groups.expand(p)
    theirs = train(Linearised(groups.plain, every), every, x, y, **call)
    agree(groups.expand(ours.parameters()), theirs.parameters(), 1e-10)
    if rule.name == "gd":
        once = train_linearised(groups, p, x, y, eta=0.3, steps=7, loss=LOGISTIC)
        agree(ours.parameters(), once.params)


@pytest.mark.parametrize("build", [generic_path, naive_path])
def test_gradient_paths(build: Any) -> None:
    groups, p, _, x, y = case()
    ours, theirs = build(groups, LOGISTIC, 2), build(groups.plain, LOGISTIC, 2)
    x, y = jnp.asarray(x), jnp.asarray(y)
    value, gradient = ours.loss_and_gradient(p, ours.prepare(x, y))
    want = theirs.loss_and_gradient(groups.expand(p), theirs.prepare(x, y))
    agree((value, groups.expand(gradient)), want)


def test_margins() -> None:
    groups, p, q, x, y = case()
    every = groups.expand(p)
    ours, theirs = ntk_margin(groups, p, x, y), ntk_margin(groups.plain, every, x, y)
    assert ours.status == theirs.status == "separable"
    assert ours.gamma == pytest.approx(theirs.gamma, rel=1e-10)
    direction = ours.direction(groups, p, x)
    agree(groups.expand(direction), theirs.direction(groups.plain, every, x), 1e-9)
    achieved = direction_margins(groups, p, direction, x, y)
    assert np.min(achieved) == pytest.approx(ours.gamma, rel=1e-9)
    unscaled = direction_margins(groups, p, direction, x, y, norm=None)
    np.testing.assert_allclose(unscaled, achieved, rtol=1e-9)
    for norm in (None, 2.0):
        agree(
            direction_margins(groups, p, q, x, y, norm=norm),
            direction_margins(groups.plain, every, groups.expand(q), x, y, norm=norm),
        )
    f = outputs(groups, p, x)
    ours_too = normalised_margin(f, y, p.U, model=groups)
    assert ours_too == pytest.approx(normalised_margin(f, y, every.U), rel=1e-12)


def test_margin_of_very_many_heads() -> None:
    """The direction found attains the margin for 10^12 heads, too."""
    _, p, _, x, y = case()
    groups = HeadGroups(T, D, (5 * 10**11, 2 * 10**11, 3 * 10**11))
    margin = ntk_margin(groups, p, x, y)
    achieved = direction_margins(groups, p, margin.direction(groups, p, x), x, y)
    assert np.min(achieved) == pytest.approx(margin.gamma, rel=1e-9)
    assert margin.gamma <= margin.upper
    ten = HeadGroups(T, D, (5, 2, 3))  # the same shares, so the same kernel
    assert margin.gamma == pytest.approx(kernel_margin(ntk(ten, p, x).total, y).gamma, rel=1e-9)


def functions(model: Any, x: Any, y: Any) -> tuple[Any, Any]:
    return model_function(model, x[0]), loss_function(model, LOGISTIC, x, y)


@pytest.mark.parametrize(("dense_below", "linearised"), [(3, False), (10**4, False), (3, True)])
def test_hessians(dense_below: int, linearised: bool) -> None:
    groups, p, q, x, y = case("last")
    every, few, many = groups.expand(p), groups, groups.plain
    if linearised:
        few, many = Linearised(groups, q), Linearised(groups.plain, groups.expand(q))
    for ours, theirs in zip(functions(few, x, y), functions(many, x, y), strict=True):
        product = hessian_vector_product(ours, p, q)
        want = hessian_vector_product(theirs, every, groups.expand(q))
        agree(groups.expand(product), want, 1e-10)
        flat, unravel = ravel_pytree(jax.tree.map(jnp.asarray, every))
        hessian = jax.jit(jax.hessian(lambda v, f=theirs, back=unravel: f(back(v))))(flat)
        values = np.linalg.eigvalsh(hessian)
        ends = hessian_extremes(ours, p, dense_below=dense_below)
        size = max(abs(values[0]), abs(values[-1]), 1e-9)
        assert ends.smallest.value == pytest.approx(values[0], abs=1e-9 * size)
        assert ends.largest.value == pytest.approx(values[-1], abs=1e-9 * size)
        apart, _ = groups.split(p)
        vector = apart.expand(ends.largest.vector)
        unit = ravel_pytree(vector)[0]
        assert np.linalg.norm(unit) == pytest.approx(1, rel=1e-12)
        np.testing.assert_allclose(hessian @ unit, ends.largest.value * unit, atol=1e-8 * size)


def test_smallest_curvature_needs_a_head_to_move_alone() -> None:
    """Directions that keep equal heads equal miss an end of the spectrum: split matters."""
    groups, p, _, x, y = case("last")
    loss = loss_function(groups, LOGISTIC, x, y)
    ends = hessian_extremes(loss, p)
    stretched, unravel = ravel_pytree(over_heads(groups, jax.tree.map(jnp.asarray, p)))
    together = jax.hessian(lambda v: loss(over_heads(groups, unravel(v), power=-1)))(stretched)
    values = np.linalg.eigvalsh(together)
    assert ends.smallest.value <= values[0] + 1e-12
    assert ends.largest.value >= values[-1] - 1e-12
    assert ends.smallest.value < values[0] - 1e-6 or ends.largest.value > values[-1] + 1e-6


def test_head_hessians() -> None:
    groups, p, _, x, _ = case()
    ours = head_hessians(groups, p, x[0])
    theirs = head_hessians(groups.plain, groups.expand(p), x[0])
    assert len(ours) == 3
    np.testing.assert_allclose(np.repeat(ours, (3, 2, 5), axis=0), theirs, rtol=1e-12)


def test_drift_and_movement() -> None:
    groups, p, q, x, _ = case()
    every = groups.plain, groups.expand(p), groups.expand(q), x
    ours, theirs = drift(groups, p, q, x), drift(*every)
    agree(ours, theirs, 1e-10)
    inside = jax.jit(lambda now: drift(groups, p, now, x))(q)
    agree({k: float(v) for k, v in inside.items()}, theirs, 1e-10)
    moved = weight_movement(p, q, model=groups)
    agree({k: float(v) for k, v in moved.items()}, {k: theirs[k] for k in moved}, 1e-12)


def test_projection() -> None:
    """Each head stays within rho/sqrt(H), H = 10, not the number of groups."""
    groups, p, q, x, y = case()
    balls = HeadBalls((("U", 0.4), ("W", 0.9)))
    ours = balls(q, p, groups)
    agree(groups.expand(ours), balls(groups.expand(q), groups.expand(p), groups.plain))
    moved = np.linalg.norm((np.asarray(ours.W) - p.W).reshape(3, -1), axis=1)
    np.testing.assert_allclose(moved, 0.9 / math.sqrt(10), rtol=1e-12)
    call = {"rule": projgd(3.0, balls), "steps": 5, "loss": LOGISTIC, "dtype": "float64"}
    one = train(groups, p, x, y, **call)
    all_heads = train(groups.plain, groups.expand(p), x, y, **call)
    agree(groups.expand(one.parameters()), all_heads.parameters(), 1e-10)


@pytest.mark.parametrize("rule", [momentum(0.2), sgd(0.2, 2), adamw(0.05), optax.lion(0.1)])
def test_update_rules(rule: Any) -> None:
    groups, p, _, x, y = case("last")
    call = {"rule": rule, "steps": 4, "loss": "logistic", "dtype": "float64"}
    ours = train(groups, p, x, y, **call)
    theirs = train(groups.plain, groups.expand(p), x, y, **call)
    agree(groups.expand(ours.parameters()), theirs.parameters(), 1e-12)


@pytest.mark.parametrize(
    "rule",
    [optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.5)), optax.lamb(0.1)],
    ids=["clipped", "lamb"],
)
def test_rules_that_look_at_all_heads_are_refused(rule: Any) -> None:
    """Norms over the representatives are not norms over the heads; plain heads may have them."""
    groups, p, _, x, y = case("last")
    call = {"rule": rule, "steps": 1, "loss": "logistic"}
    with pytest.raises(BadArgument, match=r"moves a head by what the other heads do.*expand"):
        train(groups, p, x, y, **call)
    assert train(groups.plain, groups.expand(p), x, y, **call).outcomes == ("completed",)


def test_recorders() -> None:
    groups, p, _, x, y = case()
    shared = [name for name in recorders if name != "iterates"]  # those have one entry a group
    record = [*shared, AttentionMass(np.arange(N * T).reshape(N, T) % 3 == 0)]
    call = {"rule": gd(0.5), "steps": 2, "loss": LOGISTIC, "dtype": "float64", "record": record}
    ours = train(groups, p, x, y, validation=(x, y), **call)
    theirs = train(groups.plain, groups.expand(p), x, y, validation=(x, y), **call)
    agree(ours.records, theirs.records, 1e-10)


def test_split_is_the_same_function_and_expand_undoes_it() -> None:
    groups, p, _, x, _ = case()
    apart, params = groups.split(p)
    assert apart.multiplicities == (1, 2, 1, 1, 1, 4)
    agree(apart.expand(params), groups.expand(p), 0)
    agree(outputs(apart, params, x), outputs(groups, p, x))
    assert HeadGroups(T, D, (1,)).split(p)[0].multiplicities == (1,)


def test_powers_of_the_weight() -> None:
    groups, p, _, _, _ = case()
    every = groups.expand(p)
    assert optax.tree.norm(over_heads(groups, p)) == pytest.approx(float(optax.tree.norm(every)))
    agree(over_heads(groups, over_heads(groups, p, power=-2), power=2), p)
    assert over_heads(groups.plain, every) is every
    assert over_heads(None, p) is p
    with pytest.raises(BadArgument, match="multiplicities"):
        HeadGroups(T, D, (3, 0))
