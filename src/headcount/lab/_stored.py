"""A finished trial as it is stored, and whether what a file says can be one."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..core import HeadcountError
from ._address import content_address
from ._errors import CorruptFile

DONE = ("ok", "diverged", "nonfinite", "failed")
"""How a trial can have ended."""
Signature: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """A finished trial: its numbers, and the record of how they came about."""

    payload: dict[str, np.ndarray]
    record: dict[str, Any]

    @property
    def outcome(self) -> str:
        """ "ok", "diverged", "nonfinite" or "failed"."""
        return str(self.record["outcome"])

    @property
    def reason(self) -> str:
        """Why it is not ok; empty when it is."""
        return str(self.record.get("reason") or "")


def signature(path: str | Path) -> Signature | None:
    """What changes whenever a file does: size, both times and its number; None without a file."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def checked(path: Path, address: str, trial: StoredTrial) -> StoredTrial:
    """The trial, or CorruptFile where its record is none or tells of other numbers."""
    try:
        problem = _problem(address, trial.record, trial.payload)
    except (KeyError, TypeError, ValueError, AttributeError, HeadcountError) as error:
        problem = f"its record makes no sense ({type(error).__name__}: {error})"
    if problem:
        raise CorruptFile(path, problem)
    return trial


def _problem(address: str, record: dict[str, Any], payload: Mapping[str, np.ndarray]) -> str:
    outcome, seconds, versions = record["outcome"], record["seconds"], record["versions"]
    if outcome not in DONE or type(seconds) not in (int, float) or not math.isfinite(seconds):
        return f"says that it ended as {outcome!r} after {seconds!r} seconds"
    if not all(isinstance(part, str) for part in (*versions.keys(), *versions.values())):
        return "names no versions"
    if content_address(record["measurement"], record["version"], record["config"]) != address:
        return "its configuration belongs to another trial"
    if not payload and outcome == "failed":
        return ""
    return unlike(payload, record["outputs"])


def unlike(payload: Mapping[str, np.ndarray], outputs: Mapping[str, Sequence[str]]) -> str:
    """In what the numbers differ from the declared outputs, in words; empty where they do not."""
    if set(payload) != set(outputs):
        return f"holds {sorted(payload)} instead of {sorted(outputs)}"
    lengths: dict[str, int] = {}
    for name, dims in outputs.items():
        shape = payload[name].shape
        if len(shape) != len(dims):
            return f"{name} has shape {shape} but dimensions {list(dims)}"
        for dim, length in zip(dims, shape, strict=True):
            if lengths.setdefault(dim, length) != length:
                return f"{name} has {length} entries along {dim}, others {lengths[dim]}"
    return ""
