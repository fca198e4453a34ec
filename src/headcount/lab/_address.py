"""Content addresses: a trial is named by what it computes, not by who asked for it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from ..core import BadArgument


def plain(value: Any, where: str = "config") -> Any:
    """`value` as JSON would give it back; anything but plain finite values is refused.

    NumPy scalars are refused as well: a configuration is what a person could type.
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        if not math.isfinite(value):
            raise BadArgument(where, value, "must be finite", fix="leave it out or use None")
        return value
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise BadArgument(where, key, "keys must be strings", fix="name every entry")
        return {key: plain(item, f"{where}.{key}") for key, item in value.items()}
    raise BadArgument(
        where,
        value,
        f"is a {type(value).__name__}, not a plain value",
        fix="use numbers, strings, booleans, None, lists and dicts (float(x), int(x), x.tolist())",
    )


def canonical_json(value: Any) -> str:
    """One text per value: sorted keys, no spaces, no NaN."""
    return _WRITTEN.encode(plain(value))


_WRITTEN = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def content_address(measurement: str, version: int, config: Mapping[str, Any]) -> str:
    """sha256 of the canonical JSON of (measurement, version, config), in hexadecimal.

    The figure's name is left out on purpose: figures that need the same trial share it.
    """
    return address_of(measurement, version, plain(config))


def address_of(measurement: str, version: int, config: Mapping[str, Any]) -> str:
    """The same of a configuration that is `plain` already."""
    named = {"config": config, "measurement": measurement, "version": version}
    return hashlib.sha256(_WRITTEN.encode(named).encode()).hexdigest()
