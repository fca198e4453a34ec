"""Run files: what is damaged or dishonest is told before it is used, in one line."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest

from headcount.cli import run
from headcount.core import BadArgument
from headcount.training import TrainConfig, config_of_run, read_run, run_config

CONFIG = {"width": 4, "n": 6, "steps": 3, "seeds": [0, 1]}
CONFIG |= {"data_options": {"T": 3, "d": 2, "pool": 8}}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "run.nc"
    return run_config(TrainConfig.of(CONFIG)).save(path)


def flipped(data, place):
    changed = bytearray(data)
    changed[place] ^= 4
    return bytes(changed)


def test_a_flipped_bit_is_told_wherever_it_is(whole, tmp_path, capsys):
    data = whole.read_bytes()
    stored = read_run(whole)
    wanted = [np.asarray(stored.params.W).tobytes(), stored.loss.tobytes()]
    wanted += [b'"width": 4', b"seconds", b"diverged_at", b"\x89HDF"]
    for text in wanted:
        bad = tmp_path / "bad.nc"
        bad.write_bytes(flipped(data, data.index(text) + len(text) // 2))
        with pytest.raises(BadArgument, match=r"is damaged|is not a run|another version") as caught:
            read_run(bad)
        assert "\n" not in str(caught.value)
        assert run(["audit", str(bad)]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_half_a_file_is_told(whole, tmp_path):
    bad = tmp_path / "bad.nc"
    for size in (0, 100, 3000, len(whole.read_bytes()) - 1):
        bad.write_bytes(whole.read_bytes()[:size])
        with pytest.raises(BadArgument, match="it cannot be read"):
            config_of_run(bad)


def external(file):
    file.create_dataset("x", (4,), "f8", external=[("/etc/passwd", 0, 32)])


def virtual(file):
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "x", shape=(4,))
    file.create_virtual_dataset("x", layout)


def link(file):
    file["x"] = h5py.ExternalLink("other.h5", "x")


def bomb(file):
    file.create_dataset("x", (10**11,), "f8", chunks=(10**6,))


def words(file):
    file["x"] = ["a", "b"]


def group(file):
    file.create_group("x")


@pytest.mark.parametrize("change", [external, virtual, link, bomb, words, group])
def test_a_file_that_holds_something_else_is_not_opened(change, whole, tmp_path):
    bad = tmp_path / "bad.nc"
    bad.write_bytes(whole.read_bytes())
    with h5py.File(bad, "a") as file:
        change(file)
    with pytest.raises(BadArgument, match=r"it cannot be read .'x' "):
        config_of_run(bad)


CONFIGS = ["3", "[]", "null", "{", '{"a":' * 10**5, '{"width": 4, "width": 5}', '{"width": NaN}']
BAD = [
    *CONFIGS,
    json.dumps({**CONFIG, "width": True}),
    json.dumps({**CONFIG, "steps": 4}),
    json.dumps({**CONFIG, "seeds": [0, 2]}),
    json.dumps({**CONFIG, "width": 6}),
    json.dumps({**CONFIG, "model": "none"}),
]


@pytest.mark.filterwarnings("ignore::headcount.training._runfile.UncheckedRun")
@pytest.mark.parametrize("config", BAD, ids=range(len(BAD)))
def test_odd_metadata_of_a_file_without_checksum_are_told(config, whole, tmp_path):
    bad = tmp_path / "bad.nc"
    bad.write_bytes(whole.read_bytes())
    with h5py.File(bad, "a") as file:
        del file.attrs["checksum"]
        del file.attrs["config"]
        file.attrs["config"] = config
    with pytest.raises(BadArgument):
        read_run(bad)
