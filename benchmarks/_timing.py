"""How the benchmarks measure: processor time, one thread, best of several, taken in turns."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

SINGLE_THREADED = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "PJRT_NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
}
"""Set before JAX is imported; in a running process it has no effect."""

_ROOT = Path(__file__).resolve().parent.parent
_CALL = (
    "import importlib, json, sys\n"
    "module, function, arguments = json.loads(sys.argv[1])\n"
    "print(json.dumps(getattr(importlib.import_module(module), function)(**arguments)))\n"
)


def target(
    name: str,
    value: float,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    aim: float | None = None,
) -> dict[str, Any]:
    """A measured value beside the limits it must keep; `aim` is what we hope for and not judged.

    Every benchmark returns a list of these under the key "targets".
    """
    if at_least is None and at_most is None:
        raise ValueError(f"target {name!r} has no limit")
    limits = {"at_least": at_least, "at_most": at_most, "aim": aim}
    low = at_least is None or value >= at_least
    high = at_most is None or value <= at_most
    given = {key: limit for key, limit in limits.items() if limit is not None}
    return {"name": name, "value": float(value), **given, "met": bool(low and high)}


def interleaved(
    functions: Mapping[Any, Callable[[], Any]], *, repeats: int = 7, warm_up: int = 1
) -> dict[Any, float]:
    """The least processor time in seconds of each function; they take turns.

    Each function must return only when its work is done (`jax.block_until_ready`).
    """
    for function in functions.values():
        for _ in range(warm_up):
            function()
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            began = time.process_time()
            function()
            best[name] = min(best[name], time.process_time() - began)
    return best


def peak_bytes() -> int:
    """The most memory that this process has held.

    From Linux's own account of the process: ru_maxrss starts at the size of whoever started it.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def slope(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The least-squares slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def start_process(function: Callable[..., Any], **arguments: Any) -> subprocess.Popen[str]:
    """Call a module's function in a fresh single-threaded process; it prints its result."""
    call = json.dumps([function.__module__, function.__name__, arguments])
    return subprocess.Popen(
        [sys.executable, "-c", _CALL, call],
        cwd=_ROOT,
        env={**os.environ, **SINGLE_THREADED},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def in_new_process(function: Callable[..., Any], **arguments: Any) -> Any:
    """The result of `function(**arguments)` from a fresh single-threaded process."""
    process = start_process(function, **arguments)
    printed, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"{function.__name__}({arguments}) failed; its message is above")
    return json.loads(printed.splitlines()[-1])
