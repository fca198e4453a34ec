"""One training over two devices: the same numbers, half of the data on each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest

from headcount import core, training


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """JAX fixes the number of host devices when it starts: a process of its own."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("two_devices.py"))],
        env={**os.environ, "XLA_FLAGS": flags.strip(), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", ["arda2026", "deora2024", "half-squared-sum"])
def test_two_devices_train_like_one(answers: dict[str, Any], case: str) -> None:
    answer = answers["runs"][case]
    assert answer["devices"] == [2, 1]
    assert answer["moved"] > 1e-6  # otherwise equal numbers would say nothing
    assert answer["gap"] < 1e-12


@pytest.mark.parametrize("case", ["arda2026", "deora2024", "half-squared-sum"])
def test_each_device_holds_half_of_the_samples(answers: dict[str, Any], case: str) -> None:
    shards = answers["runs"][case]["shards"]
    assert len(shards) == 2
    assert all(2 * part == whole for whole, part in shards)


def test_what_cannot_be_split_is_refused(answers: dict[str, Any]) -> None:
    uneven, batches = answers["refused"]
    assert "n = 25: does not divide into 2 equal parts; use 24 samples" in uneven
    assert "needs gradients over all samples" in batches


def test_more_devices_than_there_are() -> None:
    count = len(jax.devices())
    with pytest.raises(core.BadArgument, match=f"more than the {count} that JAX sees"):
        training.run_config(training.TrainConfig(n=8, steps=1, width=4), devices=count + 1)
