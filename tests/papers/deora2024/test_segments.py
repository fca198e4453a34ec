"""The largest loss on a segment, bounded above: never below a fine grid, seldom far above it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import float64, stream
from headcount.papers.deora2024 import constants, segments, twins_segments
from headcount.papers.deora2024 import quantities as model
from headcount.theory import claims
from headcount.theory.domain import arrays_of
from headcount.theory.slow import FLOATS
from headcount.theory.slow_sides import slow_data

FINE = 50 * segments.CELLS
SHAPES = [
    {"n": 2, "d": 1, "T": 2, "r": 2, "G": 1, "readout": "full"},
    {"n": 2, "d": 2, "T": 3, "r": 3, "G": 2, "readout": "full"},
    {"n": 3, "d": 2, "T": 3, "r": 1, "G": 1, "readout": "pooling"},
    {"n": 1, "d": 3, "T": 2, "r": 1, "G": 2, "readout": "last"},
]
"""Shapes with every read-out, and with 0.95 quantiles of the excess that come from 300 draws."""


def compared(i):
    """Ratios of (highest, expansion) to what a fine grid sees, and the smallest of the cells'."""
    segment = segments.Segment(i, i.rows, i.move)
    points = i.rows[None] + jnp.linspace(0.0, 1.0, FINE + 1)[:, None, None] * i.move[None]
    losses = jax.vmap(lambda rows: model.loss(i, rows))(points)
    inside = jnp.max(losses[:-1].reshape(segments.CELLS, -1), axis=1)
    cells = jnp.where(inside > 1e-280, segment.tops / inside, 1.0)  # beyond: subnormal numbers
    sizes = (i.R, i.T, i.d, "sharp", i.readout)
    N = jax.vmap(model.widest)(points)
    grown = 1 + i.eta / jnp.sqrt(i.H) * constants.beta_3(N, *sizes) * losses
    smooth = i.eta * constants.beta_2(N, i.R, i.H, *sizes[1:])
    printed = jnp.max(jnp.maximum(grown, smooth))
    factor = segment.expansion(i.eta, "sharp") / printed
    return segment.highest() / jnp.maximum(jnp.max(losses), 1e-300), factor, jnp.min(cells)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_largest_loss_is_enclosed_and_nearly_attained(shape):
    draws = claims["deora2024/eq-16"].on.draw(np.random.default_rng(1), 200, shape)
    with float64():
        inside = jax.vmap(lambda two: two.inside())(jax.tree.map(jnp.asarray, draws))
        found = jax.jit(jax.vmap(compared))(inside)
    highest, factor, cells = (np.asarray(part) for part in found)
    assert np.min(cells) >= 1 - 1e-11
    assert np.min(factor) >= 1 - 1e-11
    for ratio in (highest, factor):
        assert np.median(ratio) < 1.001
        assert np.quantile(ratio, 0.95) < 1.05


@pytest.mark.parametrize("name", ["eq-16", "eq-19", "eq-20", "eq-21", "lemma-8"])
def test_the_right_side_is_hardly_more_than_printed(name, monkeypatch):
    """With ten times as many cells the slow twin's right side stays where it is."""
    claim = claims[f"deora2024/{name}"]
    drawn = [claim.families[0].sample(stream(k, "cells", name)) for k in range(4)]
    tables = [slow_data(FLOATS, arrays_of(one)) for one in drawn]
    coarse = [np.ravel(claim.naive(FLOATS, data, "sharp")[1]) for data in tables]
    monkeypatch.setattr(twins_segments, "CELLS", 10 * segments.CELLS)
    fine = [np.ravel(claim.naive(FLOATS, data, "sharp")[1]) for data in tables]
    for few, many in zip(coarse, fine, strict=True):
        np.testing.assert_array_less(many, few * (1 + 1e-9))
        np.testing.assert_array_less(few, many * 1.02)
