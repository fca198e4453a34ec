"""Tiles in blocks through XLA equal tiles by NumPy, and both equal a sum over token pairs."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from headcount.kernels import _contract

CPU = jax.devices("cpu")[0]


def factors(n: int, R: int, sizes: tuple[int, ...], seed: int, dtype: str = "float64") -> Any:
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=(n, R, p)).astype(dtype) for p in sizes)


def slow(left: Any, right: Any) -> Any:
    tile = np.zeros((len(left[0]), len(right[0])))
    for i, j in np.ndindex(tile.shape):
        for t, s in np.ndindex(left[0].shape[1], right[0].shape[1]):
            tile[i, j] += np.prod([a[i, t] @ b[j, s] for a, b in zip(left, right, strict=True)])
    return tile


@pytest.mark.parametrize("sizes", [(5,), (6, 3)])
@pytest.mark.parametrize("R", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_blocks_and_the_whole_are_the_sum_over_token_pairs(
    sizes: tuple[int, ...], R: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_contract, "_BLOCK_ROWS", 12)
    left, right = factors(37, R, sizes, 0, dtype), factors(23, R, sizes, 1, dtype)
    rtol = 1e-12 if dtype == "float64" else 2e-4
    for a, b in ((left, right), (left, left)):
        expected = slow(a, b)
        assert len(_contract._ranges(a)) > 1
        for found in (_contract.contract_whole(a, b), _contract.contract_in_blocks(a, b, CPU)):
            assert found.dtype == dtype
            atol = rtol * float(np.max(np.abs(expected)))
            np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)


def test_float64_stays_float64_where_jax_is_set_to_float32() -> None:
    a = factors(30, 2, (7, 4), 2)
    with jax.enable_x64(False):
        found = _contract.contract_in_blocks(a, a, CPU)
    np.testing.assert_allclose(found, slow(a, a), rtol=1e-11, atol=1e-11)


def test_large_tiles_go_through_blocks_and_small_ones_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(_contract, "_cpu", lambda: CPU)
    monkeypatch.setattr(_contract, "_block", lambda a, b: seen.append(a) or np.zeros((8, 8)))
    a = factors(4, 2, (3,), 3)
    _contract.contract(a, a)
    assert not seen
    monkeypatch.setattr(_contract, "_LARGE", 8 * 8 * 3)
    _contract.contract(a, a)
    assert len(seen) == 1
    monkeypatch.setattr(_contract, "_cpu", lambda: None)
    _contract.contract(a, a)
    assert len(seen) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_block_begins_where_jax_need_not_copy(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_contract, "_BLOCK_ROWS", 12)
    whole = _contract.empty_aligned((40, 3, 5), dtype)
    assert whole.shape == (40, 3, 5)
    assert whole.dtype == dtype
    ranges = _contract._ranges((whole,))
    assert len(ranges) > 1
    for at in ranges:
        assert whole[at].ctypes.data % 64 == 0


@pytest.mark.parametrize("symmetric", [True, False])
def test_a_gram_matrix_that_is_known_is_used_again(
    symmetric: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bias beside its matrix: two outputs of a sample share the matrix's first factor."""
    shared, other = factors(4, 1, (5,), 0), factors(3, 1, (5,), 1)
    flows, more = factors(8, 1, (6,), 2)[0], factors(6, 1, (6,), 3)[0]
    nearly = flows.copy()
    nearly[-1] += 1
    left = {"W": (*shared, flows), "b": (flows.copy(),), "c": (nearly,), "read": (nearly, flows)}
    right = {
        "W": (*other, more), "b": (more.copy(),), "c": (more[::-1],), "read": (more, more[::-1])
    }  # fmt: skip
    right = left if symmetric else right
    seen: list[Any] = []
    contract = _contract.contract
    monkeypatch.setattr(_contract, "contract", lambda a, b: seen.append(len(a)) or contract(a, b))
    tiles = dict(_contract.contract_parts(left, right))
    assert sorted(seen) == [1, 1, 1, 1] if symmetric else [1, 1, 1, 2]
    for part, a in left.items():
        rows = [tuple(np.repeat(f, 8 // len(f), axis=0) for f in a)]
        rows.append(tuple(np.repeat(f, (8 if symmetric else 6) // len(f), 0) for f in right[part]))
        np.testing.assert_allclose(tiles[part], slow(*rows), rtol=1e-12, atol=1e-13)
    assert len({id(tile) for tile in tiles.values()}) == 4
