"""Leave-one-out training against n plain runs; both sides of (19)-(22); curvature measurements."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from headcount.core import BadArgument
from headcount.papers.deora2024 import convexity, stability_bounds
from headcount.papers.deora2024.dm1 import DM1
from headcount.papers.deora2024.model import HeadGroups, MultiHeadAttention, MultiHeadParams
from headcount.papers.deora2024.stability import LeftOut, largest_head, leave_one_out
from headcount.papers.deora2024.starts import two_phase_groups, zero

LAW = DM1(T=4, d=4, M=2, S=1.5, zeta=0.25, noise="bounded", Z_mu=0.2, Z_nu=0.3)
ETA, STEPS, N = 0.7, 12, 5
TIERS = ("v2", "v1", "sharp")


def start_of(kind: str) -> tuple[Any, MultiHeadParams]:
    """Seven heads: from zero, in two sign classes, or all different."""
    if kind == "zero":
        model = HeadGroups(LAW.T, LAW.d, (7,))
        return model, zero(model)
    if kind == "two groups":
        fresh = LAW.sample(20, 9)
        return two_phase_groups(LAW.T, LAW.d, 7, 1, x=fresh.x, y=fresh.y)
    plain = MultiHeadAttention(LAW.T, LAW.d, 3)
    draw = np.random.default_rng(0)
    shapes = plain.shapes()
    return plain, MultiHeadParams(
        0.3 * draw.normal(size=shapes.U), 0.3 * draw.normal(size=shapes.W)
    )


def every_head(model: Any, theta: MultiHeadParams) -> tuple[MultiHeadAttention, MultiHeadParams]:
    if isinstance(model, HeadGroups):
        return model.plain, model.expand(theta)
    return model, theta


def vector(theta: MultiHeadParams) -> np.ndarray:
    return np.concatenate([np.asarray(leaf).ravel() for leaf in theta])


@pytest.fixture(scope="module", params=["zero", "two groups", "all different"])
def case(request: pytest.FixtureRequest) -> tuple[Any, MultiHeadParams, Any, LeftOut]:
    model, start = start_of(request.param)
    data = LAW.sample(N, 3)
    run = leave_one_out(model, start, *data, eta=ETA, steps=STEPS, test=LAW.sample(9, 4))
    return model, start, data, run


@pytest.fixture(scope="module")
def twin(case: Any) -> tuple[Any, list[list[MultiHeadParams]]]:
    """The slow twin: all heads, automatic differentiation, one run after the other."""
    model, start, (x, y), _ = case
    plain, theta_0 = every_head(model, start)

    @jax.jit
    def losses(theta: MultiHeadParams) -> jax.Array:
        f = jnp.stack([plain(theta, X) for X in jnp.asarray(x)])
        return jnp.log1p(jnp.exp(-y * f))

    gradient = jax.jit(jax.grad(lambda theta, kept: jnp.vdot(kept, losses(theta))))

    def descend(left_out: int | None) -> list[MultiHeadParams]:
        kept = np.array([j != left_out for j in range(N)]) / N
        path = [theta_0]
        for _ in range(STEPS):
            step = gradient(path[-1], kept)
            path.append(jax.tree.map(lambda p, g: p - ETA * g, path[-1], step))
        return path

    return losses, [descend(None), *(descend(i) for i in range(N))]


def test_it_is_n_plain_runs_of_all_heads(case: Any, twin: Any) -> None:
    run: LeftOut = case[3]
    losses, (full, *others) = twin
    for k in range(STEPS + 1):
        for i in range(N):
            apart = np.linalg.norm(vector(full[k]) - vector(others[i][k]))
            np.testing.assert_allclose(run.distance[k, i], apart, rtol=1e-9, atol=1e-14)
    for k in range(STEPS):
        own = losses(full[k])
        np.testing.assert_allclose(run.loss[k], np.mean(own), rtol=1e-12)
        np.testing.assert_allclose(run.own_loss[k], own, rtol=1e-11)
        np.testing.assert_allclose(run.size[k], largest_head(full[k]), rtol=1e-12, atol=1e-15)
        for i in range(N):
            there = np.delete(losses(others[i][k]), i)
            np.testing.assert_allclose(run.left_out_loss[k, i], np.sum(there) / N, rtol=1e-11)
            here = np.delete(own, i)
            np.testing.assert_allclose(run.without_own[k, i], np.sum(here) / N, rtol=1e-11)
            half = jax.tree.map(lambda a, b: (a + b) / 2, full[k], others[i][k])
            middle = np.sum(np.delete(losses(half), i)) / N
            np.testing.assert_allclose(run.middle_loss[k, i], middle, rtol=1e-11)
    np.testing.assert_allclose(
        vector(every_head(case[0], run.final)[1]), vector(full[-1]), atol=1e-12
    )
    moved = np.linalg.norm(vector(full[-1]) - vector(full[0]))
    np.testing.assert_allclose(run.moved, moved, rtol=1e-11)


def test_own_gradients_and_the_left_side_of_19(case: Any, twin: Any) -> None:
    run: LeftOut = case[3]
    losses, (full, *others) = twin
    gradients = jax.jit(jax.jacrev(losses))
    for k in (1, STEPS - 1):
        every = gradients(full[k])
        for i in range(N):
            own = jax.tree.map(lambda leaf, i=i: leaf[i], every)
            np.testing.assert_allclose(
                run.own_gradient[k, i], np.linalg.norm(vector(own)), rtol=1e-9
            )
            onward = vector(full[k + 1]) + ETA / N * vector(own)
            wanted = np.linalg.norm(onward - vector(others[i][k + 1]))
            np.testing.assert_allclose(run.expanded[k, i], wanted, rtol=1e-8, atol=1e-13)


def test_the_full_run_is_followed_on_test_samples(case: Any, twin: Any) -> None:
    model, _, _, run = case
    full = twin[1][0]
    x, y = LAW.sample(9, 4)
    plain = model.plain if isinstance(model, HeadGroups) else model
    for k in (0, STEPS - 1):
        f = np.array([plain(full[k], jnp.asarray(X)) for X in x])
        np.testing.assert_allclose(run.test_loss[k], np.mean(np.log1p(np.exp(-y * f))), rtol=1e-11)
        np.testing.assert_allclose(run.gap[k], run.test_loss[k] - run.loss[k], rtol=1e-14)
    f = np.array([plain(full[-1], jnp.asarray(X)) for X in x])
    np.testing.assert_allclose(run.final_test_loss, np.mean(np.log1p(np.exp(-y * f))), rtol=1e-11)
    np.testing.assert_allclose(run.final_loss, np.mean(twin[0](full[-1])), rtol=1e-11)
    assert run.gap[-1] == run.final_test_loss - run.final_loss
    assert np.all(np.isnan(trained("zero")[3].gap))


def test_on_average_stability_is_the_mean_distance(case: Any) -> None:
    run: LeftOut = case[3]
    assert run.on_average[0] == 0
    np.testing.assert_allclose(run.on_average[-1], sum(run.distance[-1]) / N, rtol=1e-14)


@pytest.mark.parametrize("tier", TIERS)
def test_one_step_inequalities_hold_and_follow_from_each_other(case: Any, tier: str) -> None:
    model, start, data, run = case
    theta = stability_bounds.target(model, start, run.final, *data)
    assert np.all(stability_bounds.expansiveness(run, tier).ratio <= 1)
    assert np.all(stability_bounds.one_step(run, tier).ratio <= 1)
    small = stability_bounds.one_small_step(run, theta, tier)
    weaker = stability_bounds.unrolled_step(run, theta, tier)
    # 1 + (eta beta_3~/sqrt(H)) max L is at most 1 + alpha_{k,i} where Proposition 4 holds.
    assert np.all(small.right <= weaker.right)
    assert np.all(stability_bounds.small_step(run, theta, tier).ratio > 1)  # eta = 0.7 is too large


def test_right_sides_by_hand() -> None:
    """Every right side from the formulas of the text, one entry, with loops and no helper."""
    model = HeadGroups(LAW.T, LAW.d, (7,))
    data = LAW.sample(N, 3)
    run = leave_one_out(model, zero(model), *data, eta=ETA, steps=3)
    theta = stability_bounds.Target(D=0.8, N=0.4, loss=0.25)
    T, d, H, k, i = LAW.T, LAW.d, 7, 2, 1
    R = max(np.linalg.norm(token) for X in data.x for token in X)
    B = 3 * 0.8 + 0.4
    b1 = math.sqrt(T) * R * (2 * R**2 * B + 1)
    b3 = 2 * d * math.sqrt(T * d) * R**3 * (3 * math.sqrt(d) * R**2 * B + 1)
    alpha = 4 * ETA * b3 / (3 * math.sqrt(H)) * (run.without_own[k, i] + run.left_out_loss[k, i])
    wanted = (1 + alpha) * run.distance[k, i] + ETA * b1 / N * run.own_loss[k, i]
    got = stability_bounds.unrolled_step(run, theta)
    np.testing.assert_allclose(got.right[k, i], wanted, rtol=1e-12)
    assert got.left[k, i] == run.distance[k + 1, i]
    summed = stability_bounds.summed_growth(run, theta)
    by_hand = sum(stability_bounds.growth_rates(run, theta)[1:, i])
    np.testing.assert_allclose(summed.left[i], by_hand, rtol=1e-12)
    assert summed.right[i] == 0.1
    losses = stability_bounds.from_losses(run, theta)
    np.testing.assert_allclose(losses.right[2], 2 * ETA * b1 / N * sum(run.loss[:3]), rtol=1e-12)
    inner = 2 * 3 * 0.25 + 9 * 0.8**2 / (4 * ETA)
    lemma = stability_bounds.lemma_11(run, theta)
    np.testing.assert_allclose(lemma.right[2], 2 * ETA / N * b1 * inner, rtol=1e-12)
    np.testing.assert_allclose(stability_bounds.theorem_4(run, theta)[2], 4 / N * inner, rtol=1e-12)
    largest = max(run.without_own[k, i], run.left_out_loss[k, i], run.middle_loss[k, i])
    size = max(run.size[k], run.left_out_size[k, i])
    local3 = 2 * d * math.sqrt(T * d) * R**3 * (3 * math.sqrt(d) * R**2 * size + 1)
    local1 = math.sqrt(T) * R * (2 * R**2 * size + 1)
    factor = max(
        1 + ETA * local3 / math.sqrt(H) * largest, ETA * (local3 / math.sqrt(H) + local1**2 / 4)
    )
    own = ETA * math.sqrt(T) * R * (2 * R**2 * run.size[k] + 1) * run.own_loss[k, i] / N
    step = stability_bounds.one_step(run)
    np.testing.assert_allclose(step.right[k, i], factor * run.distance[k, i] + own, rtol=1e-12)


def test_lemma_11_where_its_hypotheses_hold() -> None:
    """Two sign classes of 10^16 heads, a target near the start and an admissible step."""
    from headcount.papers.deora2024.constants import largest_step, required_root, rho

    fresh = LAW.sample(50, 9)
    H = 10**18
    model, start = two_phase_groups(LAW.T, LAW.d, H, 1, x=fresh.x, y=fresh.y)
    data = LAW.sample(6, 3)
    steps = 30
    # One step of length D along the negative gradient: D^2 >= eta K L(theta) for small eta.
    short = leave_one_out(model, start, *data, eta=1e-2, steps=1)
    theta = stability_bounds.target(model, start, short.final, *data)
    R = max(short.R, 1.0)
    for tier in TIERS:
        assert required_root(theta.D, theta.N, R, LAW.T, LAW.d, tier, factor=128) <= math.sqrt(H)
        step_rho = rho(theta.B, R, H, LAW.T, LAW.d, tier)
        eta = largest_step(step_rho, theta.D, steps, theta.loss, float(short.loss[0]))
        run = leave_one_out(model, start, *data, eta=eta, steps=steps)
        for sides in (
            stability_bounds.small_step(run, theta, tier),
            stability_bounds.expansiveness(run, tier),
            stability_bounds.one_step(run, tier),
            stability_bounds.one_small_step(run, theta, tier),
            stability_bounds.unrolled_step(run, theta, tier),
            stability_bounds.summed_growth(run, theta, tier),
            stability_bounds.from_losses(run, theta),
            stability_bounds.lemma_11(run, theta),
        ):
            assert np.all(sides.ratio <= 1)
            assert np.any(sides.ratio > 0)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [({"eta": 0.0}, "eta"), ({"steps": 0}, "steps"), ({"y": np.arange(N) - 2.0}, "y")],
)
def test_bad_input_is_named(changes: dict[str, Any], argument: str) -> None:
    model, start = start_of("zero")
    x, y = LAW.sample(N, 3)
    given = {"x": x, "y": y, "eta": 1.0, "steps": 2, **changes}
    with pytest.raises(BadArgument) as caught:
        leave_one_out(model, start, **given)
    assert caught.value.argument == argument


def trained(kind: str) -> tuple[Any, MultiHeadParams, Any, LeftOut]:
    model, start = start_of(kind)
    data = LAW.sample(N, 3)
    return model, start, data, leave_one_out(model, start, *data, eta=ETA, steps=4)


@pytest.mark.parametrize("kind", ["two groups", "all different"])
def test_curvature_is_that_of_all_heads(kind: str) -> None:
    model, _, (x, y), run = trained(kind)
    got = convexity.curvature(model, run.final, x, y)
    plain, theta = every_head(model, run.final)
    flat, back = ravel_pytree(theta)

    def loss(v: jax.Array) -> jax.Array:
        f = jax.vmap(plain, in_axes=(None, 0))(back(v), jnp.asarray(x))
        return jnp.mean(jnp.log1p(jnp.exp(-y * f)))

    values = np.linalg.eigvalsh(jax.jit(jax.hessian(loss))(flat))
    np.testing.assert_allclose(got.loss, loss(flat), rtol=1e-12)
    np.testing.assert_allclose(got.gradient, np.linalg.norm(jax.grad(loss)(flat)), rtol=1e-10)
    np.testing.assert_allclose(got.hessian.smallest.value, values[0], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(got.hessian.largest.value, values[-1], rtol=1e-8)


def test_segment_length_bulge_and_tau() -> None:
    model, start, (x, y), run = trained("two groups")
    got = convexity.segment(model, start, run.final, x, y, points=5)
    plain, first = every_head(model, start)
    second = every_head(model, run.final)[1]
    losses = []
    for a in np.linspace(0, 1, 5):
        point = jax.tree.map(lambda p, q, a=a: (1 - a) * p + a * q, first, second)
        losses.append(
            np.mean(
                [
                    np.log1p(np.exp(-b * plain(point, jnp.asarray(X))))
                    for X, b in zip(x, y, strict=True)
                ]
            )
        )
    np.testing.assert_allclose(got.loss, losses, rtol=1e-12)
    np.testing.assert_allclose(
        got.length, np.linalg.norm(vector(first) - vector(second)), rtol=1e-12
    )
    np.testing.assert_allclose(got.length, run.moved, rtol=1e-12)
    assert got.bulge == max(got.loss) / max(got.loss[0], got.loss[-1])
    R = max(run.R, 1.0)
    sharp = math.sqrt(LAW.T) * R**3 * (2 * R**2 * got.size + 1)
    wanted = sharp / math.sqrt(7) * max(losses)
    np.testing.assert_allclose(convexity.tau(model, got, R, "sharp"), wanted, rtol=1e-12)
    condition = 2 * sharp * got.length**2 / math.sqrt(7)
    np.testing.assert_allclose(got.condition(model, R, "sharp"), condition, rtol=1e-12)


def test_largest_descent_step_is_the_edge_of_the_descent_lemma() -> None:
    model, _, (x, y), run = trained("two groups")
    eta = convexity.largest_descent_step(model, run.final, x, y)
    plain, theta = every_head(model, run.final)

    def loss(p: Any) -> jax.Array:
        return jnp.mean(
            jnp.stack([jnp.log1p(jnp.exp(-b * plain(p, a))) for a, b in zip(x, y, strict=True)])
        )

    g = jax.grad(loss)(theta)
    square = np.linalg.norm(vector(g)) ** 2

    def excess(step: float) -> float:
        after = jax.tree.map(lambda p, q: p - step * q, theta, g)
        return float(loss(after) - loss(theta) + step / 2 * square)

    assert excess(0.999 * eta) < 0 < excess(1.001 * eta)
    lemma_7 = (
        1 / stability_bounds.small_step(run, stability_bounds.Target(0, run.size[-1], 1)).right
    )
    assert eta > 1 / lemma_7


def test_the_step_has_a_limit_where_nothing_fails() -> None:
    model = HeadGroups(2, 4, (3,))
    x = np.zeros((2, 2, 4))
    assert convexity.largest_descent_step(model, zero(model), x, np.ones(2), limit=5.0) == 5.0
