"""Kernels of any program in factors equal the contraction of its Jacobian."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.kernels import NTKOperator, ntk, ntk_to_file, traced_ntk

pytestmark = pytest.mark.usefixtures("as_users_write")
T, D, V = 3, 4, 9
Params = dict[str, Any]
Layer = tuple[Callable[[Params, Any], Any], dict[str, tuple[int, ...]]]
"""What it makes of tokens (T, D), and the shapes of its parameters."""


def _scan(p: Params, h: Any) -> Any:
    def step(state: Any, token: Any) -> Any:
        state = jnp.tanh(token @ p["W"] + state @ p["U"] + p["b"])
        return state, state

    return jax.lax.scan(step, jnp.zeros(D), h, reverse=True)[1]


def _stack(p: Params, h: Any) -> Any:
    return jax.lax.scan(lambda h, W: (jnp.tanh(h @ W), None), h, p["W"])[0]


def _nested(p: Params, h: Any) -> Any:
    """Layers of an outer scan inside a scan over others, of as many, and over themselves."""

    def outer(h: Any, B: Any) -> Any:
        h, _ = jax.lax.scan(lambda h, A: (jnp.tanh(h @ A @ B), None), h, p["A"], reverse=True)
        return jax.lax.scan(lambda h, A: (jnp.tanh(h @ A @ B), None), h, p["B"])

    return jax.lax.scan(outer, h, p["B"])[0]


def _attention(p: Params, h: Any) -> Any:
    q, k, v = (jnp.einsum("td,dhe->hte", h, p[name].reshape(D, 2, 2)) for name in "qkv")
    return h + jnp.einsum("hts,hse->the", jax.nn.softmax(q @ k.swapaxes(1, 2)), v).reshape(T, D)


def _heads(p: Params, h: Any) -> Any:
    def head(A: Any, B: Any) -> Any:
        return jax.nn.softmax(h @ A @ h.T) @ h @ B.T

    return jax.vmap(head)(p["A"], p["B"]).mean(0)


def _cast(p: Params, h: Any) -> Any:
    return jnp.tanh(h.astype("float32") @ p["W"].astype("float32")).astype(h.dtype)


def _norm(p: Params, h: Any) -> Any:
    h = h - h.mean(axis=-1, keepdims=True)
    return p["g"] * h / jnp.sqrt((h**2).mean(axis=-1, keepdims=True) + 0.1) + p["b"]


def _choice(p: Params, h: Any) -> Any:
    return jax.lax.cond(h.sum() > 0, lambda W: jnp.tanh(h @ W), lambda W: (2 * h) @ W.T, p["W"])


def _convolved(p: Params, h: Any) -> Any:
    out = jax.lax.conv_general_dilated(
        h[None], 0.5 * p["W"], (1,), "SAME", dimension_numbers=("NHC", "HIO", "NHC")
    )
    return jax.nn.relu(out[0])


@jax.custom_jvp
def _own(W: Any, h: Any) -> Any:
    return jnp.tanh(h @ W)


_own.defjvp(lambda x, t: (_own(*x), 3 * (x[1] @ t[0] + t[1] @ x[0])))

LAYERS: dict[str, Layer] = {
    "dense": (lambda p, h: jnp.tanh(h @ p["W"] / 2.0 + p["b"]), {"W": (D, D), "b": (D,)}),
    "transposed": (lambda p, h: jnp.tanh(-p["W"].T @ h.T).T, {"W": (D, D)}),
    "tied": (lambda p, h: jnp.tanh(h @ p["W"]) @ p["W"].T, {"W": (D, 5)}),
    "layers": (lambda p, h: jnp.tanh(h @ p["W"][0]) @ p["W"][1], {"W": (2, D, D)}),
    "masked": (lambda p, h: h @ (p["W"] * jnp.tri(D)), {"W": (D, D)}),
    "bent": (lambda p, h: h @ jnp.sin(p["W"]) * jnp.exp(p["s"]), {"W": (D, D), "s": ()}),
    "rematted": (lambda p, h: jax.checkpoint(jax.nn.gelu)(h @ p["W"]), {"W": (D, D)}),
    "own rule": (lambda p, h: _own(p["W"], h), {"W": (D, D)}),
    "scan": (_scan, {"W": (D, D), "U": (D, D), "b": (D,)}),
    "stack": (_stack, {"W": (3, D, D)}),
    "nested": (_nested, {"A": (2, D, D), "B": (2, D, D)}),
    "attention": (_attention, {"q": (D, 4), "k": (D, 4), "v": (D, 4)}),
    "heads": (_heads, {"A": (2, D, D), "B": (2, D, D)}),
    "norm": (_norm, {"g": (D,), "b": (D,)}),
    "cond": (_choice, {"W": (D, D)}),
    "cast": (_cast, {"W": (D, D)}),
    "convolution": (_convolved, {"W": (2, D, D)}),
}


class Composed:
    """A stack of layers on tokens or on ids, with one or three outputs."""

    def __init__(self, names: list[str], outputs: int, *, ids: bool) -> None:
        self.names, self.outputs, self.ids = names, outputs, ids

    def params(self, rng: np.random.Generator) -> Params:
        made = {
            f"{k} {name}": {key: rng.normal(size=s) for key, s in LAYERS[name][1].items()}
            for k, name in enumerate(self.names)
        }
        made["read"] = {"W": rng.normal(size=(D, self.outputs))}
        return {**made, "table": rng.normal(size=(V, D))} if self.ids else made

    def samples(self, rng: np.random.Generator, n: int) -> Any:
        mask = rng.uniform(size=(n, T)) < 0.8
        if self.ids:
            return {"ids": rng.integers(0, V, size=(n, T)), "mask": mask}
        return {"tokens": rng.normal(size=(n, T, D)), "mask": mask}

    def __call__(self, params: Params, x: Any) -> Any:
        table = params.get("table")
        if not self.ids:
            h = x["tokens"]
        elif self.outputs > 1:
            h = table[x["ids"]]
        else:  # as equinox reads it
            h = jax.vmap(lambda k: table[k])(x["ids"])
        for k, name in enumerate(self.names):
            h = LAYERS[name][0](params[f"{k} {name}"], h)
        if self.ids:  # the table reads out, too
            h = jax.nn.softmax(h @ params["table"].T / 2) @ params["table"]
        out = jnp.where(x["mask"][:, None], h, 0).sum(0) @ params["read"]["W"]
        return out if self.outputs > 1 else out[0]


def composed(seed: int) -> tuple[Composed, Params, Any, np.random.Generator]:
    """Every layer at least once over the seeds, else at random."""
    rng = np.random.default_rng(seed)
    names = [list(LAYERS)[seed % len(LAYERS)], *rng.choice(list(LAYERS), rng.integers(0, 3))]
    model = Composed([str(n) for n in names], 1 if seed % 2 else 3, ids=seed % 5 == 0)
    return model, model.params(rng), model.samples(rng, 5), rng


def by_jacobians(model: Any, params: Params, x: Any) -> dict[str, Any]:
    """The blocks, from autodiff and one product each."""
    jacobian = jax.jit(jax.vmap(jax.jacrev(lambda p, s: jnp.ravel(model(p, s))), in_axes=(None, 0)))

    def gram(block: Any) -> Any:
        rows = [leaf.reshape(leaf.shape[0] * leaf.shape[1], -1) for leaf in jax.tree.leaves(block)]
        return sum(np.asarray(row @ row.T) for row in rows)

    return {name: gram(block) for name, block in jacobian(params, x).items()}


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_have_the_kernels_of_their_jacobians(seed: int) -> None:
    model, params, x, rng = composed(seed)
    expected = by_jacobians(model, params, x)
    K = ntk(model, params, x, tile=3)
    size = float(np.max(np.abs(sum(expected.values()))))
    for name, block in K.blocks.items():
        own = block.reshape(expected[name].shape)
        error = np.max(np.abs(own - expected[name])) / size
        assert error < (1e-6 if "cast" in model.names else 1e-12), (seed, model.names, name, error)
    if seed % 6 == 0:
        operator, v = NTKOperator(model, params, x), rng.normal(size=len(K.matrix))
        np.testing.assert_allclose(operator @ v, K.matrix @ v, rtol=0, atol=1e-11 * size)
        np.testing.assert_allclose(operator.diagonal(), np.diag(K.matrix), atol=1e-12 * size)


def test_what_has_no_factors_is_told_and_only_that_is_taken_whole() -> None:
    model = Composed(["bent", "dense"], 3, ids=False)
    rng = np.random.default_rng(1)
    plan = ntk(model, model.params(rng), model.samples(rng, 4)).plan
    of = {way.split(":")[0]: way for way in plan.ways if "1 numbers" not in way}
    assert of["read"] == "read: products over 1 position, of 4 and 3 numbers"
    assert "0 bent: the gradient, 17 numbers" in plan.ways
    assert plan.ways[-1] == "no factors, as it enters otherwise than by products: 0 bent.W"
    assert str(plan).endswith(plan.ways[-1])


def test_a_wide_layer_needs_far_less_than_its_jacobian() -> None:
    def mlp(p: Params, x: Any) -> Any:
        return jnp.tanh(jnp.tanh(x @ p["a"]) @ p["b"]) @ p["c"]

    rng = np.random.default_rng(0)
    params = {
        "a": rng.normal(size=(8, 64)),
        "b": rng.normal(size=(64, 64)),
        "c": rng.normal(size=64),
    }
    x = rng.normal(size=(6, 8))
    whole, factored = (ntk(mlp, params, x, method=m).plan for m in ("jacobian", "auto"))
    assert factored.method == "structured"
    assert whole.features == 6 * 8 * (8 * 64 + 64 * 64 + 64)
    assert factored.features == 6 * 8 * (8 + 64 + 64 + 64 + 64 + 1)


def test_features_that_do_not_fit_give_way_to_vector_products() -> None:
    model, params, x, _ = composed(0)
    assert ntk(model, params, x).method == "structured"
    small = ntk(model, params, x, memory_limit=40_000)
    assert small.method == "vector-products"
    assert "eighth of the memory" in str(small.plan)
    np.testing.assert_allclose(small.total, ntk(model, params, x).total, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 4])
def test_inside_jax_and_in_a_file_the_kernel_is_the_same(seed: int, tmp_path: Any) -> None:
    model, params, x, _ = composed(seed)
    K = ntk(model, params, x)
    inside = jax.jit(lambda p, x: traced_ntk(model, p, x))(params, x)
    for name, block in K.blocks.items():
        np.testing.assert_allclose(inside[name], block.reshape(inside[name].shape), atol=1e-9)
    stored = ntk_to_file(model, params, x, file=tmp_path / "k.h5", tile=2)
    np.testing.assert_allclose(stored.read(), K.matrix, atol=1e-9)


def test_a_block_that_does_not_enter_has_a_kernel_of_zeros() -> None:
    def f(p: Params, x: Any) -> Any:
        return jnp.sin(x @ p["a"])

    K = ntk(f, {"a": np.ones(3), "idle": np.ones((2, 2))}, np.eye(3))
    assert not np.any(K.blocks["idle"])
    np.testing.assert_allclose(K.total, K.blocks["a"])


@pytest.mark.parametrize("mode", ["fill", "promise_in_bounds", "clip"])
def test_ids_that_are_out_of_range_move_what_jax_says(mode: str) -> None:
    def f(p: Params, ids: Any) -> Any:
        return jnp.sum(p["E"].at[ids].get(mode=mode, fill_value=0.5) @ p["u"])

    rng = np.random.default_rng(zlib.crc32(b"ids"))
    params = {"E": rng.normal(size=(V, D)), "u": rng.normal(size=D)}
    ids = np.array([[0, V, 2], [V, V + 3, 0], [2, 2, 1]])
    expected = by_jacobians(f, params, ids)
    np.testing.assert_allclose(ntk(f, params, ids).blocks["E"], expected["E"], rtol=1e-12)


def test_ids_in_bytes_reach_every_row_of_a_longer_table() -> None:
    def f(p: Params, ids: Any) -> Any:
        rows = jax.lax.GatherDimensionNumbers((1,), (0,), (0,))
        return jnp.tanh(jax.lax.gather(p["E"], ids[:, None], rows, (1, D), mode="clip")).sum()

    rng = np.random.default_rng(3)
    params, ids = {"E": rng.normal(size=(300, D))}, rng.integers(0, 256, (6, T))
    expected = by_jacobians(f, params, ids)["E"]
    np.testing.assert_allclose(ntk(f, params, ids.astype(np.uint8)).total, expected, rtol=1e-12)


READ: dict[str, Any] = {
    "rows": lambda E, ids: E[ids],
    "row by row": lambda E, ids: jax.vmap(lambda k: E[k])(ids),
    "in a loop": lambda E, ids: jax.lax.map(lambda k: E[k], ids),
}


@pytest.mark.parametrize("read", READ)
def test_rows_of_a_table_are_known_by_their_ids(read: str) -> None:
    def f(p: Params, ids: Any) -> Any:
        return jnp.tanh(READ[read](p["E"], ids)).mean(0)

    rng = np.random.default_rng(6)
    params, ids = {"E": rng.normal(size=(200, D))}, rng.integers(-3, 205, (6, T))
    K = ntk(f, params, ids)
    assert K.plan.ways == (f"E: products over {T} positions, of 1 and {D} numbers",)
    expected = by_jacobians(f, params, ids)["E"]
    np.testing.assert_allclose(K.matrix, expected, rtol=0, atol=1e-13)
    operator, v = NTKOperator(f, params, ids), rng.normal(size=len(expected))
    np.testing.assert_allclose(operator @ v, expected @ v, atol=1e-12)


def test_arrays_without_numbers_move_nothing() -> None:
    def f(p: Params, x: Any) -> Any:
        return jnp.tanh(x @ p["a"]) + (x @ p["none"]).sum()

    params = {"a": np.ones(3), "none": np.ones((3, 0))}
    for method in ("auto", "jacobian", "vector-products"):
        K = ntk(f, params, np.eye(3), method=method)
        np.testing.assert_allclose(K.total, K.blocks["a"])
        assert not np.any(K.blocks["none"])


def test_products_in_a_lower_precision_have_factors() -> None:
    def f(p: Params, x: Any) -> Any:
        h = jnp.tanh(x.astype("bfloat16") @ p["a"].astype("bfloat16"))
        return (h @ p["b"].astype("bfloat16")).astype("float64")

    rng = np.random.default_rng(4)
    params, x = {"a": rng.normal(size=(8, 40)), "b": rng.normal(size=40)}, rng.normal(size=(5, 8))
    K = ntk(f, params, x)
    assert K.plan.ways[0] == "a: products over 1 position, of 8 and 40 numbers"
    whole = ntk(f, params, x, method="jacobian").total
    np.testing.assert_allclose(K.total, whole, atol=0.02 * whole.max())
