"""Blocks at any depth, frozen by path, and modules and data as people bring them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from headcount import kernels, models, training
from headcount.core import BadArgument

pytestmark = pytest.mark.usefixtures("as_users_write")
RNG = np.random.default_rng(3)
X = RNG.normal(size=(5, 3, 2))
PARAMS: dict[str, Any] = {
    "enc": [{"q": RNG.normal(size=(2, 2)), "k": RNG.normal(size=(2, 2))} for _ in "12"],
    "read": RNG.normal(size=(2, 2)),
}


def encoder(p: Any, x: Any) -> Any:
    for layer in p["enc"]:
        x = x + jax.nn.softmax((x @ layer["q"]) @ (x @ layer["k"]).T) @ x
    return x.mean(axis=0) @ p["read"]


def by_leaf() -> dict[str, Any]:
    """The kernel of every array, by autodiff."""
    J = jax.vmap(jax.jacrev(encoder), (None, 0))(PARAMS, X)
    flat = {
        jax.tree_util.keystr(path, simple=True, separator="."): leaf.reshape(10, -1)
        for path, leaf in jax.tree_util.tree_flatten_with_path(J)[0]
    }
    return {name: np.asarray(rows @ rows.T) for name, rows in flat.items()}


@pytest.mark.parametrize("method", ["auto", "jacobian", "vector-products"])
def test_blocks_are_named_by_their_paths_at_any_depth(method: str) -> None:
    leaves = by_leaf()
    cases: list[tuple[str | int, tuple[str, ...], list[str]]] = [
        ("leaves", (), list(leaves)),
        (2, (), ["enc.0", "enc.1", "read"]),
        ("each", ("enc.0.q",), ["enc.0.k", "enc.1", "read"]),
        ("leaves", ("enc.1", "read"), ["enc.0.k", "enc.0.q"]),
    ]
    for blocks, frozen, names in cases:
        K = kernels.ntk(encoder, PARAMS, X, blocks=blocks, frozen=frozen, method=method)
        assert list(K.blocks) == names
        for name, block in K.blocks.items():
            expected = sum(k for leaf, k in leaves.items() if f"{leaf}.".startswith(f"{name}."))
            np.testing.assert_allclose(block.reshape(10, 10), expected, atol=1e-11)


def test_operators_files_and_products_take_paths_too(tmp_path: Path) -> None:
    K = kernels.ntk(encoder, PARAMS, X, frozen=("enc.0",))
    v = RNG.normal(size=(5, 2))
    product = np.tensordot(K.total, v, axes=2)
    operator = kernels.NTKOperator(encoder, PARAMS, X, frozen=("enc.0",))
    np.testing.assert_allclose(operator @ v.ravel(), product.ravel(), atol=1e-10)
    moved = kernels.ntk_vector_product(encoder, PARAMS, X, v, frozen=("enc.0",))
    np.testing.assert_allclose(moved, product, atol=1e-10)
    stored = kernels.ntk_to_file(encoder, PARAMS, X, file=tmp_path / "k.h5", blocks="leaves")
    np.testing.assert_allclose(stored.read(block="enc.1.q"), by_leaf()["enc.1.q"], atol=1e-11)
    with pytest.raises(BadArgument, match="a path in one of them"):
        kernels.ntk(encoder, PARAMS, X, frozen=("enc.2",))


def test_names_with_slashes_go_into_files(tmp_path: Path) -> None:
    """As haiku names its modules."""
    start = {"linear/~/w": {"w": RNG.normal(size=(2, 2))}, "b": np.ones(2)}

    def f(p: Any, x: Any) -> Any:
        return jnp.tanh(x @ p["linear/~/w"]["w"] + p["b"]).sum()

    for computed in (1, 0):
        stored = kernels.ntk_to_file(f, start, X, file=tmp_path / "k.nc", blocks="each")
        assert stored.computed == computed
    whole = kernels.ntk(f, start, X).blocks["linear/~/w"]
    np.testing.assert_allclose(stored.read(block="linear/~/w"), whole)
    run = training.train(f, start, X, np.ones(5), rule=training.gd(0.1), steps=1)
    with pytest.warns(UserWarning, match="no configuration"):
        run.save(tmp_path / "run.nc")


def test_whole_numbers_and_masks_are_operands_like_any() -> None:
    """Their factor is no row of the identity, although it is of integers."""
    wide = {"a": RNG.normal(size=(4, 30)), "b": RNG.normal(size=(30, 30))}

    def f(p: Any, x: Any) -> Any:
        return jnp.tanh(jnp.tanh(x @ p["a"]) @ p["b"]).sum()

    counts = RNG.integers(0, 9, (6, 4))
    for x in (counts, counts > 4):
        K, slow = (kernels.ntk(f, wide, x, method=m) for m in ("auto", "jacobian"))
        assert any("products over" in way for way in K.plan.ways)
        np.testing.assert_allclose(K.total, slow.total, rtol=1e-11, atol=1e-12)


def test_of_two_parameters_that_meet_only_the_smaller_is_taken_whole() -> None:
    def f(p: Any, x: Any) -> Any:
        return jnp.tanh(x[0] @ (p["W"] * p["s"])).sum()

    start = {"W": RNG.normal(size=(2, 9)), "s": np.array(1.5)}
    K, slow = (kernels.ntk(f, start, X, method=m) for m in ("auto", "jacobian"))
    np.testing.assert_allclose(K.total, slow.total, rtol=1e-12)
    assert "W: products over 1 position, of 2 and 9 numbers" in K.plan.ways


class Net(eqx.Module):
    a: eqx.nn.Linear
    b: eqx.nn.Linear

    def __init__(self, seed: int) -> None:
        one, two = jax.random.split(jax.random.key(seed))
        self.a, self.b = eqx.nn.Linear(2, 4, key=one), eqx.nn.Linear(4, 3, key=two)

    def __call__(self, x: Any) -> Any:
        return self.b(jnp.tanh(self.a(x)))


def test_a_module_stands_for_itself_wherever_a_model_does() -> None:
    net, x, classes = Net(0), X[:, 0], np.array([0, 1, 2, 0, 1])
    model, params = models.split_module(net)
    for given in ((net, None), (net, params)):
        loss = kernels.loss_function(given[0], "cross-entropy", x, classes)
        expected = kernels.loss_function(model, "cross-entropy", x, classes)
        ends = kernels.hessian_extremes(loss, given[1]).largest.value
        np.testing.assert_allclose(ends, kernels.hessian_extremes(expected, params).largest.value)
        G = kernels.gauss_newton(given[0], "cross-entropy", x, classes)
        assert kernels.spectral_density(G, given[1], probes=2, order=4).trace[0] > 0
    v = RNG.normal(size=(5, 3))
    K = kernels.ntk(net, params, x)
    np.testing.assert_allclose(
        kernels.ntk_vector_product(net, None, x, v), np.tensordot(K.total, v, axes=2), rtol=1e-5
    )
    twin = kernels.Linearised(net, None)
    np.testing.assert_allclose(twin(twin.initial, x[0]), net(x[0]), rtol=1e-6)
    starts = training.stack_seeds([Net(0), Net(1)])
    fit = {"rule": training.gd(0.1), "steps": 2, "loss": "cross-entropy"}
    both = training.train(net, starts, x, classes, seeds=[0, 1], **fit)
    for k, seed in enumerate((0, 1)):
        alone = training.train(Net(seed), None, x, classes, **fit)
        np.testing.assert_allclose(both.final_loss[k], alone.final_loss, rtol=1e-5)


def test_lists_of_whole_numbers_are_ids_everywhere() -> None:
    def f(p: Any, ids: Any) -> Any:
        return p["E"][ids].sum()

    ids = RNG.integers(0, 4, (5, 3)).tolist()
    start = {"E": np.ones(4)}
    assert kernels.ntk(f, start, ids).total.shape == (5, 5)
    run = training.train(f, start, ids, [1.0] * 5, rule=training.gd(0.01), steps=1)
    assert run.final_loss < run.loss[0]


def endless(p: Any, x: Any) -> Any:
    halved = jax.lax.while_loop(lambda c: c.sum() > 1, lambda c: c * 0.5, jnp.tanh(x * p["w"]))
    return halved.sum()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (endless, "has a loop of unknown length"),
        (lambda p, x: {"a": p["w"] @ x}, "returns a dict; return one array"),
        (lambda p, x: p["w"] @ x > 0, "returns bool, which has no gradient"),
        (lambda p, x: p["w"] @ x if x[0] > 0 else 0.0, "use jnp.where or lax.cond in place of"),
    ],
    ids=["while", "dict", "bool", "if"],
)
def test_where_generality_ends_one_line_says_so(model: Any, message: str) -> None:
    start, x, y = {"w": np.ones(2)}, X[:, 0], np.ones(5)
    with pytest.raises(BadArgument, match=message):
        kernels.ntk(model, start, x)
    with pytest.raises(BadArgument, match=message):
        training.train(model, start, x, y, rule=training.gd(0.1), steps=1)


def test_rules_that_ask_for_the_loss_are_refused() -> None:
    message = "asks for more than the gradient"
    with pytest.raises(BadArgument, match=message):
        training.train(
            lambda p, x: p["w"] @ x, {"w": np.ones(2)}, X[:, 0], np.ones(5), rule=optax.lbfgs(),
            steps=1,
        )  # fmt: skip


def test_what_a_model_of_ones_own_raises_names_it_and_its_sample() -> None:
    with pytest.raises(TypeError) as caught:
        kernels.ntk(encoder, PARAMS, X[:, :, :1])
    assert any("encoder, called on one sample of shape (3, 1)" in n for n in caught.value.__notes__)
    vector = kernels.model_function(encoder, X[0])
    with pytest.raises(BadArgument, match="take one output"):
        kernels.hessian_extremes(vector, PARAMS)


def test_margins_of_classes_are_the_least_lead_of_the_right_output() -> None:
    """The direction attains the margin, and no other that was tried has more."""
    net, x, classes = Net(0), X[:, 0], np.array([0, 1, 2, 0, 1])
    _, params = models.split_module(net)
    margin = kernels.ntk_margin(net, None, x, classes)
    assert margin.status == "separable"
    theta = margin.direction(net, None, x)
    leads = kernels.direction_margins(net, params, theta, x, classes)
    np.testing.assert_allclose(leads.min(), margin.gamma, rtol=1e-9)
    assert margin.lower <= margin.gamma <= margin.upper <= margin.lower * (1 + 1e-6)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        other = jax.tree.map(lambda t, rng=rng: t + 0.2 * rng.normal(size=t.shape), theta)
        assert kernels.direction_margins(net, params, other, x, classes).min() <= margin.upper
    fit = {"rule": training.gd(0.1), "steps": 1, "loss": "cross-entropy", "dtype": "float64"}
    run = training.train(net, None, x, classes, record=kernels.tangent_kernel, **fit)
    path = kernels.margin_path(run.records["tangent_kernel"], classes)
    np.testing.assert_allclose(path[0].gamma, margin.gamma, rtol=1e-6)
    with pytest.raises(BadArgument, match="are no classes of 3 outputs"):
        kernels.ntk_margin(net, None, x, classes + 1)
