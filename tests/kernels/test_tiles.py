"""Kernels on disk: equal to the kernel in memory, resumed bit for bit, never half trusted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

from headcount.core import BadArgument, activations
from headcount.kernels import ntk, ntk_to_file
from headcount.papers import arda2026

from .ntk_cases import D, random_params, samples

MODEL = arda2026.PooledAttention(D, 6)
PARAMS = random_params(MODEL)
X = samples(10)


class Killed(RuntimeError):
    pass


def stop_after(count):
    def progress(done, _total):
        if done == count:
            raise Killed

    return progress


def test_file_is_the_kernel_in_memory(tmp_path):
    K = ntk(MODEL, PARAMS, X, tile=3)
    disk = ntk_to_file(MODEL, PARAMS, X, file=tmp_path / "k.nc", blocks="each", tile=3)
    assert np.array_equal(disk.read(), K.total)
    for name, block in K.blocks.items():
        assert np.array_equal(disk.read(block=name), block)
    assert np.array_equal(disk.diagonal(block="W"), np.diag(K.blocks["W"]))
    assert np.array_equal(disk.read(slice(2, 5), slice(0, 4)), K.total[2:5, :4])
    data = xr.load_dataset(tmp_path / "k.nc", engine="h5netcdf")
    assert data.total.dims == ("sample_1", "sample_2")
    assert np.array_equal(disk.to_xarray().total, K.total)
    assert disk.computed == disk.plan.tiles == 10


def test_rectangular_kernel_goes_to_disk_too(tmp_path):
    disk = ntk_to_file(MODEL, PARAMS, X, X[:4] + 1, file=tmp_path / "k.nc", tile=3)
    assert disk.shape == (10, 4)
    np.testing.assert_allclose(disk.read(), ntk(MODEL, PARAMS, X, X[:4] + 1).total, rtol=1e-12)


@pytest.mark.parametrize("stop", [1, 4, 9])
def test_resumed_is_uninterrupted_bit_for_bit(tmp_path, stop):
    whole, cut = tmp_path / "whole.nc", tmp_path / "cut.nc"
    ntk_to_file(MODEL, PARAMS, X, file=whole, tile=3)
    with pytest.raises(Killed):
        ntk_to_file(MODEL, PARAMS, X, file=cut, tile=3, progress=stop_after(stop))
    resumed = ntk_to_file(MODEL, PARAMS, X, file=cut, tile=3)
    assert resumed.computed == 10 - stop
    assert cut.read_bytes() == whole.read_bytes()
    assert ntk_to_file(MODEL, PARAMS, X, file=cut, tile=3).computed == 0


def test_a_half_written_tile_is_computed_again(tmp_path):
    path = tmp_path / "k.nc"
    want = ntk_to_file(MODEL, PARAMS, X, file=path, tile=3).read()
    for place in ((0, 1), (9, 0)):  # above the diagonal, and below it
        with h5py.File(path, "r+") as file:
            file["total"][place] += 1e-9
        with pytest.warns(UserWarning, match="1 damaged tiles are computed again"):
            again = ntk_to_file(MODEL, PARAMS, X, file=path, tile=3)
        assert again.computed == 1
        assert np.array_equal(again.read(), want)


def test_damage_around_the_tiles_is_told(tmp_path):
    whole, path = tmp_path / "whole.nc", tmp_path / "k.nc"
    ntk_to_file(MODEL, PARAMS, X, file=whole, tile=3)
    changes = (
        lambda file: file.attrs.modify("outputs", 2),
        lambda file: file.attrs.modify("headcount_x1", "other"),
        lambda file: file["sample_1"].write_direct(np.zeros(10, int)),
        lambda file: file.move("total", "other"),
        lambda file: file.create_dataset("x", (10**9,), "f8"),
        lambda file: file.create_dataset("x", (4,), "f8", external=[("/etc/passwd", 0, 32)]),
    )
    for change in changes:
        path.write_bytes(whole.read_bytes())
        with h5py.File(path, "r+") as file:
            change(file)
        with pytest.raises(
            BadArgument, match=r"is damaged|holds another|cannot be read as a kernel"
        ):
            ntk_to_file(MODEL, PARAMS, X, file=path, tile=3)
    path.write_bytes(whole.read_bytes()[:1000])
    with pytest.raises(BadArgument, match="cannot be read as a kernel"):
        ntk_to_file(MODEL, PARAMS, X, file=path, tile=3)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"x": X + 1e-12}, "x1"),
        ({"params": PARAMS._replace(c=-PARAMS.c)}, "params"),
        ({"tile": 4}, "tile"),
        ({"dtype": "float32"}, "dtype"),
        ({"blocks": "each"}, "blocks"),
        ({"frozen": ("c",)}, "trained"),
        ({"model": arda2026.PooledAttention(D, 6, activations["sin"])}, "model"),
    ],
)
def test_a_file_of_another_kernel_is_refused(tmp_path, change, part):
    path = tmp_path / "k.nc"
    ntk_to_file(MODEL, PARAMS, X, file=path, tile=3)
    call = {"model": MODEL, "params": PARAMS, "x": X, "tile": 3, **change}
    with pytest.raises(BadArgument, match=f"different: .*{part}"):
        ntk_to_file(call.pop("model"), call.pop("params"), call.pop("x"), file=path, **call)


KILLED = """
import os, signal, sys
from headcount.kernels import ntk_to_file
from kernels.test_tiles import MODEL, PARAMS, X
def progress(done, total):
    if done == 5:
        os.kill(os.getpid(), signal.SIGKILL)
ntk_to_file(MODEL, PARAMS, X, file=sys.argv[1], tile=3, progress=progress)
"""


def test_a_killed_process_is_resumed(tmp_path):
    path = tmp_path / "k.nc"
    found = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": found}
    child = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)], env=environment, capture_output=True
    )
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    resumed = ntk_to_file(MODEL, PARAMS, X, file=path, tile=3)
    assert resumed.computed == 5
    assert np.array_equal(resumed.read(), ntk(MODEL, PARAMS, X, tile=3).total)
