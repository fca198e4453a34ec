"""What ran: versions, commit, device, precision, collected in the process that computed."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

_ORIGIN_LENGTH = 180  # has to fit a file's header
_PACKAGES = (
    *("headcount", "jax", "jaxlib", "numpy", "scipy", "optax", "matfree"),
    *("python-flint", "mpmath", "tokenizers"),
)


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python and of all packages here that numbers come from."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):  # an extra
            found[name] = metadata.version(name)
    return found


@functools.cache
def commit() -> str | None:
    """The commit of Headcount's own checkout, "+changes" when edited; None when installed."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1]
    if not (checkout / ".git").exists():
        return None
    head = _git(checkout, "rev-parse", "HEAD")
    changes = _git(checkout, "status", "--porcelain", "--", str(package))
    return None if head is None else head + ("+changes" if changes else "")


def device() -> str:
    """The device on which JAX computes, such as "cpu" or "gpu: NVIDIA A100"."""
    jax = sys.modules.get("jax")
    if jax is None:
        return "cpu"
    first = jax.devices()[0]
    kind = "" if first.device_kind == first.platform else f": {first.device_kind}"
    return f"{first.platform}{kind}"


@functools.cache
def cpu() -> str:
    """Architecture and a fingerprint of the CPU's instruction sets: they decide the last digit."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = {line.partition(":")[2] for line in lines if line.startswith(("flags", "Features"))}
    words = " ".join(sorted(flags.pop().split())) if flags else platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"


@functools.cache
def origin() -> str:
    """Versions and CPU in one word: a state goes on bit for bit only where this is the same."""
    words = [*(f"{name}-{v}" for name, v in versions().items()), f"cpu-{cpu()}"]
    text = ",".join(words)
    return text if len(text) <= _ORIGIN_LENGTH else hashlib.sha256(text.encode()).hexdigest()


def describe_run(config: Mapping[str, Any], payload: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """The part of a trial's record that tells how it was computed; no host or user names."""
    return {
        "versions": versions(),
        "commit": commit(),
        "device": device(),
        "cpu": cpu(),
        "dtype": config.get("dtype", "float64"),
        "payload_dtypes": {name: str(array.dtype) for name, array in payload.items()},
        "seeds": {name: value for name, value in config.items() if "seed" in name},
    }


def _git(checkout: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(checkout), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
