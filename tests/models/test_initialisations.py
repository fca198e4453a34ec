"""Initialisations: exact zeros, closed forms, identities, independent streams, clear errors."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument, activations, normal, rademacher, stream
from headcount.models import initialisations, outputs
from headcount.papers.arda2026 import IndRNN, PooledAttention, paired, paired_indrnn, unpaired
from headcount.papers.deora2024.model import HeadGroups, LinearModel, MultiHeadAttention
from headcount.papers.deora2024.starts import (
    first_step_row,
    two_phase,
    two_phase_groups,
    zero,
)
from headcount.papers.wu2023.model import Encoder, TwoLayerReLU, output_scale, softmax_scale
from headcount.papers.wu2023.starts import he, lecun, ntk_normal

ENCODER = Encoder(d=3, d_m=5, tau0=0.5, tau1=1.0, pooling="sum")
POOLED = PooledAttention(d=3, m=6)
RNN = IndRNN(d=3, m=6)
HEADS = MultiHeadAttention(T=4, d=3, H=5)
compiled = jax.jit(outputs, static_argnums=0)
X, Y = normal(stream(0, "x"), (7, 4, 3)), rademacher(stream(0, "y"), (7,))

CALLS = {
    "paired": (POOLED, {}),
    "unpaired": (POOLED, {}),
    "paired-indrnn": (RNN, {"gamma": 1.5}),
    "zero": (HEADS, {}),
    "two-phase": (HEADS, {"x": X, "y": Y}),
    "lecun": (ENCODER, {}),
    "he": (ENCODER, {}),
    "ntk": (ENCODER, {}),
}


def test_every_registered_initialisation_is_covered():
    assert set(CALLS) == set(initialisations)


@pytest.mark.parametrize("name", CALLS)
def test_shapes_types_and_seeds(name):
    model, options = CALLS[name]
    first = initialisations[name](model, 3, **options)
    shapes = model.shapes()
    assert type(first) is type(shapes)
    for leaf, shape in zip(first, shapes, strict=True):
        assert isinstance(leaf, np.ndarray)
        assert leaf.shape == tuple(shape)
        assert leaf.dtype == np.float64
    initialisations[name](model, 4, **options)
    with jax.enable_x64(False):
        again = initialisations[name](model, 3, **options)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", [n for n in CALLS if n not in ("zero", "two-phase")])
def test_seeds_differ(name):
    model, options = CALLS[name]
    first, other = (initialisations[name](model, seed, **options) for seed in (3, 4))
    for block, leaf in first._asdict().items():
        if block not in ("c", "w"):  # Signs of few heads may agree by chance.
            assert not np.array_equal(leaf, getattr(other, block))


@pytest.mark.parametrize("activation", ["tanh", "gaussian"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [2, 6, 30])
def test_paired_students_start_at_exactly_zero(activation, dtype, m):
    student = PooledAttention(3, m, activations[activation])
    recurrent = IndRNN(3, m, activations[activation])
    for model, params in [
        (student, paired(student, 1)),
        (recurrent, paired_indrnn(recurrent, 1, gamma=1.5)),
    ]:
        values = compiled(model, *jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), (params, X)))
        np.testing.assert_array_equal(values, 0)


def test_paired_heads_are_mirrored_with_flipped_signs():
    p = paired(POOLED, 0)
    np.testing.assert_array_equal(p.c[3:], -p.c[:3])
    np.testing.assert_array_equal(p.U[3:], p.U[:3])
    np.testing.assert_array_equal(p.W[3:], p.W[:3])
    assert set(np.abs(p.c)) == {1.0}
    assert len(np.unique(p.U[:3])) == 9
    r = paired_indrnn(RNN, 0, gamma=1.5)
    assert set(np.abs(r.w)) == {1.5}
    u = unpaired(POOLED, 0)
    assert len(np.unique(u.U)) == u.U.size


@pytest.mark.parametrize("block", ["U", "W"])
def test_paired_blocks_are_standard_normal(block):
    leaf = getattr(paired(PooledAttention(4, 2000), 0), block)
    half = leaf[: len(leaf) // 2]
    assert abs(np.mean(half)) < 5 / math.sqrt(half.size)
    assert abs(np.var(half) - 1) < 5 * math.sqrt(2 / half.size)


def logistic_loss(model, params):
    return jnp.mean(jax.nn.softplus(-Y * outputs(model, params, X)))


@pytest.mark.parametrize("readout", ["full", "pooling", "last"])
def test_two_phase_is_one_signed_gradient_step(readout, relative):
    """theta_h = -alpha_h sqrt(H) grad_h L(0) [deora2024, Sec. 5.1], by autodiff."""
    model = MultiHeadAttention(T=4, d=3, H=5, readout=readout)
    params = two_phase(model, 2, x=X, y=Y)
    gradient = jax.grad(lambda p: logistic_loss(model, p))(zero(model))
    np.testing.assert_allclose(gradient.W, 0, atol=1e-16)
    np.testing.assert_array_equal(params.W, 0)
    step = -math.sqrt(5) * np.asarray(gradient.U)
    alpha = np.sign(np.sum(params.U * step, axis=tuple(range(1, step.ndim))))
    assert set(alpha) == {-1.0, 1.0}
    expected = alpha.reshape(-1, *[1] * (step.ndim - 1)) * step
    np.testing.assert_allclose(params.U, expected, rtol=relative["float64"], atol=1e-15)


def test_first_step_row_by_loop():
    expected = sum(0.5 * y * sum(x) / len(x) for x, y in zip(X, Y, strict=True)) / len(Y)
    np.testing.assert_allclose(first_step_row(X, Y), expected, rtol=1e-13)


@pytest.mark.parametrize("H", [1, 2, 9])
@pytest.mark.parametrize("readout", ["full", "pooling"])
def test_two_phase_groups_are_the_plain_start_up_to_the_order_of_heads(H, readout, relative):
    plain = MultiHeadAttention(4, 3, H, readout)
    params = two_phase(plain, 5, x=X, y=Y)
    groups, grouped = two_phase_groups(4, 3, H, 5, x=X, y=Y, readout=readout)
    assert isinstance(groups, HeadGroups)
    assert groups.H == H
    np.testing.assert_allclose(
        outputs(groups, grouped, X), outputs(plain, params, X), rtol=relative["float64"], atol=1e-14
    )


def test_two_phase_groups_of_very_many_heads():
    H = 10**12
    groups, _ = two_phase_groups(4, 3, H, 0, x=X, y=Y)
    assert groups.H == H
    assert abs(groups.multiplicities[0] - H / 2) < 5 * 0.5 * math.sqrt(H)


def test_the_number_of_positive_signs_has_the_spread_of_a_binomial():
    """Mean H/2, standard deviation sqrt(H)/2, drawn head by head and by the normal limit."""
    for H in (2**10, 10**12):
        drawn = [
            two_phase_groups(4, 3, H, seed, x=X, y=Y)[0].multiplicities[0] for seed in range(60)
        ]
        assert all(0 <= count <= H for count in drawn)
        scaled = (np.array(drawn) - H / 2) / (math.sqrt(H) / 2)
        assert abs(scaled.mean()) < 0.5
        assert 0.7 < scaled.std() < 1.4


def test_schemes_share_their_normals(relative):
    """He = sqrt 2 LeCun and NTK without the 1/sqrt of the widths [wu2023, Table 1]."""
    small, large, unit = lecun(ENCODER, 1), he(ENCODER, 1), ntk_normal(ENCODER, 1)
    for block, width in [("W_Q", 3), ("W_K", 3), ("W_V", 3), ("w_O", 5)]:
        a, b, c = (getattr(p, block) for p in (small, large, unit))
        np.testing.assert_allclose(b, math.sqrt(2) * a, rtol=1e-14)
        np.testing.assert_allclose(c, math.sqrt(width) * a, rtol=1e-14)
    net = TwoLayerReLU(D=3, d_m=5, tau1=1.0)
    np.testing.assert_array_equal(lecun(net, 1).W, small.W_V)


def test_he_is_twice_lecun_for_the_same_attention(relative):
    """f_He = 2 f_LeCun and f_NTK = sqrt(d) f_LeCun when the attention pattern is the same."""
    x = X[:, :1]  # One token: the attention is constant.
    base = outputs(ENCODER, lecun(ENCODER, 1), x)
    np.testing.assert_allclose(outputs(ENCODER, he(ENCODER, 1), x), 2 * base, rtol=1e-13)
    wide = Encoder(d=3, d_m=5, tau0=0.5, tau1=output_scale("ntk", 5), pooling="sum")
    np.testing.assert_allclose(
        outputs(wide, ntk_normal(wide, 1), x), math.sqrt(3) * base, rtol=1e-13
    )


def test_scales():
    assert softmax_scale("realistic", 16) == 0.25
    assert softmax_scale("ntk", 16) == 1 / 16
    assert output_scale("ntk", 16) == 0.25
    assert output_scale("lecun", 16) == output_scale("he", 16) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired(PooledAttention(3, 7), 0), "m = 7: must be even"),
        (lambda: paired_indrnn(IndRNN(3, 5), 0, gamma=1.0), "m = 5: must be even"),
        (lambda: paired_indrnn(RNN, 0, gamma=0.0), "gamma = 0.0"),
        (lambda: paired(ENCODER, 0), "init = 'paired': is not for wu2023, but for PooledAttention"),
        (lambda: zero(ENCODER), "init = 'zero': is not for wu2023"),
        (lambda: lecun(POOLED, 0), "init = 'lecun': is not for arda2026"),
        (lambda: two_phase(POOLED, 0, x=X, y=Y), "init = 'two-phase': is not for arda2026"),
        (lambda: two_phase(HEADS, 0, x=X[:0], y=Y[:0]), "is empty"),
        (lambda: two_phase(HEADS, 0, x=X * np.nan, y=Y), "NaN"),
        (lambda: paired(POOLED, -1), "seed = -1"),
        (lambda: initialisations["pared"], "did you mean paired"),
        (lambda: PooledAttention(0, 4), "d = 0"),
        (lambda: PooledAttention(3, 4, query=lambda: 0) and PooledAttention(3, 0), "m = 0"),
        (lambda: MultiHeadAttention(4, 3, 0), "H = 0"),
        (lambda: MultiHeadAttention(4, 3, 2, "first"), "readout = 'first'"),
        (lambda: HeadGroups(4, 3, ()), "multiplicities = (): is empty"),
        (lambda: HeadGroups(4, 3, (2, 0)), "multiplicities = 0"),
        (lambda: LinearModel(0, 3), "T = 0"),
        (lambda: Encoder(3, 5, 0.0, 1.0, "sum"), "tau0 = 0.0"),
        (lambda: Encoder(3, 5, 1.0, -1.0, "sum"), "tau1 = -1.0"),
        (lambda: Encoder(3, 5, 1.0, 1.0, "max"), "pooling = 'max'"),
        (lambda: Encoder(3, 2, 1.0, 1.0, "sum", True), "d_m = 2: is below d with residual=True"),
        (lambda: TwoLayerReLU(0, 5, 1.0), "D = 0"),
        (lambda: softmax_scale("mup", 5), "scaling = 'mup'"),
    ],
)
def test_bad_input_has_one_clear_message(call, message):
    with pytest.raises(BadArgument) as caught:
        call()
    assert message in str(caught.value)


def test_zero_gives_zero_models():
    for model in (HEADS, HeadGroups(4, 3, (2, 3)), LinearModel(4, 3)):
        np.testing.assert_array_equal(outputs(model, zero(model), X), 0)
