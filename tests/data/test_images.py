"""Image files: readers, checksums, folders, downloads; on files that the tests make themselves."""

from __future__ import annotations

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.data import load_images, patches


def test_the_digits_that_ship_are_the_published_ones():
    train, test = load_images("digits"), load_images("digits", "test")
    assert train.images.shape == (1500, 8, 8)
    assert test.images.shape == (297, 8, 8)
    assert train.images.min() == 0
    assert train.images.max() == 1
    np.testing.assert_array_equal(train.digits[:10], range(10))
    whole = np.concatenate([train.images, test.images]) * 16
    assert int(whole.sum()) == 561718
    assert np.bincount(np.concatenate([train.digits, test.digits])).tolist() == [
        178, 182, 177, 183, 181, 182, 181, 179, 174, 180,
    ]  # fmt: skip


def test_patches_by_loop(tmp_path):
    images = np.random.default_rng(0).random((2, 4, 6))
    tokens = patches(images, 2)
    assert tokens.shape == (2, 6, 4)
    for row in range(2):
        for column in range(3):
            block = images[1, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            np.testing.assert_array_equal(tokens[1, 3 * row + column], block.ravel())
    with pytest.raises(BadArgument, match="size = 4: does not divide 4 x 6"):
        patches(images, 4)
