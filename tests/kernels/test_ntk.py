"""The empirical tangent kernel against jax.jacrev, its symmetries and limits, and bad input."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument, normal, seeded_query, stream
from headcount.kernels import ntk, ntk_vector_product, traced_ntk
from headcount.papers import arda2026, deora2024, wu2023

from .ntk_cases import ALL, STRUCTURED, D, T, random_params, samples, slow_blocks

ONE_OF_A_KIND = ("arda2026", "groups-pooling", "wu2023-sum", "two-layer")
FEW = ("arda2026", "groups-full", "wu2023-sum", "linear")


def close(a, b, rtol=1e-10):
    scale = max(np.max(np.abs(b)), 1e-300)
    np.testing.assert_allclose(np.asarray(a) / scale, np.asarray(b) / scale, rtol=0, atol=rtol)


@pytest.mark.parametrize("case", ALL)
def test_every_path_is_the_jacobian_contraction(case):
    model, x1, x2 = ALL[case], samples(4), samples(3, "other")
    params = random_params(model)
    want = slow_blocks(model, params, x1, x2)
    methods = ["structured" if case in STRUCTURED else "jacobian"]
    # The generic paths differ between models only in how they are called: one model of a kind.
    methods += ["jacobian", "vector-products"] * (case in ONE_OF_A_KIND)
    for method in dict.fromkeys(methods):
        K = ntk(model, params, x1, x2, method=method)
        assert K.total.dtype == np.float64
        assert list(K.blocks) == list(params._fields)
        for name, block in K.blocks.items():
            close(block, want[name])
        close(K.total, sum(want.values()))


@pytest.mark.parametrize("rank", [0, 2])
def test_attention_weights_without_full_rank(rank):
    """A Gram matrix without a Cholesky factor takes the other square root."""
    model, x = STRUCTURED["wu2023-sum"], samples(4)
    params = random_params(model)
    low = np.asarray(params.W_Q)[:, :rank] @ normal(stream(0, "mix"), (rank, D))
    params = params._replace(W_Q=low, W_K=np.flip(low))
    want = slow_blocks(model, params, x, x)
    for name, block in ntk(model, params, x).blocks.items():
        close(block, want[name])


@pytest.mark.parametrize("case", FEW)
def test_gram_is_symmetric_psd_and_the_sum_of_its_blocks(case):
    model, x = ALL[case], samples(9)
    params = random_params(model)
    K = ntk(model, params, x, tile=4)
    close(K.total, ntk(model, params, x, x.copy()).total, 1e-13)
    for matrix in (K.total, *K.blocks.values()):
        assert np.array_equal(matrix, matrix.T)
        values = np.linalg.eigvalsh(matrix)
        assert values[0] >= -1e-13 * max(values[-1], 1e-300)
    close(K.total, sum(K.blocks.values()), 1e-14)
    close(ntk(model, params, x, blocks="total").total, K.total, 1e-14)
    assert ntk(model, params, x, blocks="total").blocks == {}


@pytest.mark.parametrize("case", ["arda2026", "wu2023-sum", "indrnn"])
def test_traced_kernel_is_the_same_under_jit(case):
    model, x = ALL[case], samples(4)
    params = random_params(model)
    blocks = jax.jit(lambda p, z: traced_ntk(model, p, z))(params, x)
    K = ntk(model, params, x)
    for name, block in K.blocks.items():
        close(blocks[name], block, 1e-12)


@pytest.mark.parametrize("case", FEW)
def test_frozen_blocks_are_left_out(case):
    model, x = ALL[case], samples(3)
    params = random_params(model)
    whole = ntk(model, params, x)
    if len(params._fields) == 1:
        with pytest.raises(BadArgument, match="leaves no block"):
            ntk(model, params, x, frozen=params._fields)
        return
    part = ntk(model, params, x, frozen=params._fields[:1])
    assert tuple(part.blocks) == params._fields[1:] == part.trained
    close(part.total, whole.total - whole.blocks[params._fields[0]], 1e-12)


@pytest.mark.parametrize("tile", [1, 3, 100])
@pytest.mark.parametrize("case", ["arda2026", "deora2024-pooling", "wu2023-sum"])
def test_tiles_are_the_whole(case, tile):
    model, x = ALL[case], samples(7)
    params = random_params(model)
    whole, cut = ntk(model, params, x, tile=7), ntk(model, params, x, tile=tile)
    for name in whole.blocks:
        close(cut.blocks[name], whole.blocks[name], 1e-13)
    close(ntk(model, params, x, x[:3], tile=tile).total, whole.total[:, :3], 1e-13)


def test_chunks_and_recomputed_features_are_the_whole(monkeypatch):
    model, x = STRUCTURED["arda2026"], samples(11)
    params = random_params(model)
    whole = ntk(model, params, x)
    monkeypatch.setattr("headcount.kernels._source._CHUNK_BYTES", 20_000)
    chunked = ntk(model, params, x)
    close(chunked.total, whole.total, 1e-13)
    need = 4 * x.shape[0] ** 2 * 8
    tight = ntk(model, params, x, tile=2, memory_limit=need + 60_000)
    assert whole.plan.stored_features
    close(tight.total, whole.total, 1e-13)


def test_permuting_heads_or_tokens_changes_nothing():
    x = samples(4)
    pooled = arda2026.PooledAttention(D, 6, query=seeded_query(D, 0))
    params = random_params(pooled)
    K = ntk(pooled, params, x).total
    heads = np.array([3, 0, 5, 1, 4, 2])
    tokens = np.array([2, 0, 4, 1, 3])
    close(ntk(pooled, type(params)(*(leaf[heads] for leaf in params)), x).total, K, 1e-13)
    close(ntk(pooled, params, x[:, tokens]).total, K, 1e-12)
    encoder = STRUCTURED["wu2023-sum"]
    theta = random_params(encoder)
    close(ntk(encoder, theta, x[:, tokens]).total, ntk(encoder, theta, x).total, 1e-12)


def test_one_token_has_no_attention_to_train():
    x = samples(4, tokens=1)
    pooled, encoder = arda2026.PooledAttention(D, 6), wu2023.Encoder(D, 8, 0.3, 0.5, "sum")
    many = deora2024.MultiHeadAttention(1, D, 3, "full")
    for model, silent in ((pooled, "W"), (many, "W"), (encoder, "W_Q"), (encoder, "W_K")):
        assert np.max(np.abs(ntk(model, random_params(model), x).blocks[silent])) == 0
    # With one token the encoder is the two-layer network on that token.
    theta = random_params(encoder)
    twin = ntk(wu2023.TwoLayerReLU(D, 8, 0.5), wu2023.TwoLayerParams(theta.W_V, theta.w_O), x)
    close(ntk(encoder, theta, x).total, twin.total)


def test_deviation_from_a_wide_kernel_falls_like_the_root_of_the_width():
    x = samples(6) / 3

    def kernel(m, seed):
        model = arda2026.PooledAttention(D, m)
        return ntk(model, arda2026.unpaired(model, seed), x, blocks="total").total

    wide = 16384
    reference = kernel(wide, 99)
    squared = {
        m: np.array([np.sum((kernel(m, s) - reference) ** 2) for s in range(12)])
        for m in (64, 1024)
    }
    mean = {m: np.log2(np.mean(e)) for m, e in squared.items()}
    spread = [np.std(e, ddof=1) / np.mean(e) / np.sqrt(len(e)) for e in squared.values()]
    standard_error = np.hypot(*spread) / np.log(2)
    # Independent kernels: the squared distance is proportional to 1/m + 1/wide.
    want = np.log2((1 / 64 + 1 / wide) / (1 / 1024 + 1 / wide))
    assert standard_error < 1
    assert abs(mean[64] - mean[1024] - want) < 4 * standard_error


@pytest.mark.parametrize("enabled", [False, True])
def test_float64_whatever_the_global_setting_and_without_touching_it(enabled):
    model = STRUCTURED["wu2023-sum"]
    x, params = samples(4), random_params(model)
    want = ntk(model, params, x)
    with jax.enable_x64(enabled):
        for method in ("structured", "jacobian", "vector-products"):
            K = ntk(model, params, x, method=method)
            assert K.total.dtype == np.float64
            close(K.total, want.total, 1e-13)
        assert jnp.zeros(1).dtype == (jnp.float64 if enabled else jnp.float32)


@pytest.mark.parametrize("case", FEW)
def test_float32_on_request(case, relative):
    model, x = ALL[case], samples(4)
    params = random_params(model)
    K = ntk(model, params, x, dtype="float32")
    assert K.total.dtype == np.float32
    close(K.total, ntk(model, params, x).total, 10 * relative["float32"])


def test_mixed_precision_arguments_are_brought_to_one():
    model = STRUCTURED["arda2026"]
    params, x = random_params(model), samples(3).astype(np.float32)
    half = params._replace(c=params.c.astype(np.float32), W=jnp.asarray(params.W))
    same = params._replace(c=half.c.astype(np.float64))
    assert np.array_equal(ntk(model, half, x).total, ntk(model, same, x.astype(float)).total)
    whole = np.ones((2, T, D), int)
    assert np.array_equal(ntk(model, params, whole).total, ntk(model, params, 1.0 * whole).total)


def test_one_sample_and_equal_samples_are_fine():
    model = STRUCTURED["arda2026"]
    params, x = random_params(model), samples(1)
    one = ntk(model, params, x).total
    assert one.shape == (1, 1)
    assert one[0, 0] > 0
    twice = ntk(model, params, np.concatenate([x, x])).total
    close(twice, np.full((2, 2), one[0, 0]), 1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x1": np.zeros((0, T, D))}, "holds no sample"),
        ({"x1": np.zeros((3, D))}, "must have shape"),
        ({"x1": np.zeros((3, T, D + 1))}, "must have shape"),
        ({"x2": np.zeros((3, T, D + 1))}, "x2"),
        ({"x1": np.full((3, T, D), np.nan)}, "NaN"),
        ({"x1": np.ones((3, T, D), complex)}, "not real"),
        ({"params": (1.0,)}, "PooledAttentionParams"),
        ({"frozen": ("V",)}, "not a block"),
        ({"frozen": "c"}, "sequence of names"),
        ({"dtype": "float16"}, "dtype"),
        ({"method": "magic"}, "method"),
        ({"blocks": "some"}, "blocks"),
        ({"tile": 0}, "tile"),
    ],
)
@pytest.mark.usefixtures("wrong_shapes")
def test_bad_input_is_named(change, message):
    model = STRUCTURED["arda2026"]
    call = {"params": random_params(model), "x1": samples(3), **change}
    with pytest.raises(BadArgument, match=message):
        ntk(model, call.pop("params"), call.pop("x1"), **call)


def test_parameters_of_the_wrong_shape_or_not_finite_are_named():
    model = STRUCTURED["arda2026"]
    params = random_params(model)
    with pytest.raises(BadArgument, match=r"params\.U"):
        ntk(model, params._replace(U=params.U[:, :2]), samples(2))
    with pytest.raises(BadArgument, match="NaN"):
        ntk(model, params._replace(c=params.c * np.inf), samples(2))


def network(params, x):
    """Three outputs, parameters in a dict of a list and an array."""
    hidden = jnp.tanh(params["in"][0] @ jnp.ravel(x) + params["in"][1])
    return params["out"] @ hidden


def network_point():
    shapes = {"W": (6, T * D), "b": (6,), "out": (3, 6)}
    draw = {k: normal(stream(4, k), s) / 3 for k, s in shapes.items()}
    return {"in": [draw["W"], draw["b"]], "out": draw["out"]}


def test_multi_output_kernel_has_named_axes():
    params, x1, x2 = network_point(), samples(4), samples(2, "other")
    K = ntk(network, params, x1, x2)
    assert K.total.shape == (4, 3, 2, 3)
    J1, J2 = (jax.vmap(jax.jacrev(network), (None, 0))(params, x) for x in (x1, x2))
    want = jnp.einsum("iahd,jbhd->iajb", J1["out"], J2["out"])
    close(K.blocks["out"], want)
    close(ntk(network, params, x1, x2, method="vector-products").total, K.total)
    data = K.to_xarray()
    assert data.total.dims == ("sample_1", "output_1", "sample_2", "output_2")
    assert list(data.name.values) == ["in", "out"]
    gram = ntk(network, params, x1, tile=3)
    assert np.array_equal(gram.matrix, gram.matrix.T)


def test_vector_products_are_the_kernel_times_the_vector():
    x1, x2 = samples(4), samples(3, "other")
    for f, params, v in (
        (network, network_point(), normal(stream(5, "v"), (3, 3))),
        (ALL["groups-full"], random_params(ALL["groups-full"]), normal(stream(5, "v"), (3,))),
    ):
        K = ntk(f, params, x1, x2)
        want = (K.matrix @ v.reshape(-1)).reshape(4, *v.shape[1:])
        close(jax.jit(lambda w, f=f, p=params: ntk_vector_product(f, p, x1, w, x2))(v), want)


def test_result_is_frozen_and_describes_itself(tmp_path):
    model = STRUCTURED["deora2024-last"]
    K = ntk(model, random_params(model), samples(3))
    with pytest.raises(ValueError, match="read-only"):
        K.total[0, 0] = 1
    data = K.to_xarray()
    data.to_netcdf(tmp_path / "k.nc", engine="h5netcdf")
    assert data.attrs["model"] == "deora2024"
    np.testing.assert_array_equal(data.block.sel(name="W"), K.blocks["W"])


def test_a_subclass_that_changes_f_does_not_inherit_the_fast_path():
    class Doubled(arda2026.PooledAttention):
        def __call__(self, params, x):
            return 2 * super().__call__(params, x)

    base, doubled = arda2026.PooledAttention(D, 4), Doubled(D, 4)
    params = random_params(base)
    K = ntk(doubled, params, samples(3))
    assert K.method == "structured"
    close(K.total, 4 * ntk(base, params, samples(3)).total)
