"""Running one trial, in whatever process an executor chose.

Nothing is raised across processes: the answer is a plain dict whose `status` tells what happened.
"""

from __future__ import annotations

import contextlib
import datetime
import faulthandler
import importlib
import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core import BadArgument
from ..core._inside import open_inside, remove_inside
from ._closure import code_behind
from ._context import TrialContext
from ._errors import NewerFormat, StorageError, TrialStopped
from ._figure import Trial
from ._files import FORMAT, numeric
from ._record import describe_run
from ._store import Store
from ._stored import DONE as DONE

_is_first = True
"""Whether this process has computed no trial yet: the first one imports what it needs."""


def make_task(
    trial: Trial,
    folder: Path,
    *,
    stop_path: Path | None = None,
    retry_failed: bool = False,
    checkpoint_seconds: float = 30.0,
    time_limit: float | None = None,
) -> dict[str, Any]:
    """All that a worker needs to run `trial`, as plain values.

    A `time_limit` ends the process in which the trial runs: only for workers that are replaced.
    """
    return {
        "address": trial.address,
        "measurement": trial.measurement.name,
        "version": trial.measurement.version,
        "outputs": {name: list(dims) for name, dims in trial.measurement.outputs.items()},
        "may_be_nan": list(trial.measurement.may_be_nan),
        "location": trial.measurement.location,
        "config": trial.config,
        "label": trial.label,
        "folder": str(folder),
        "stop_path": None if stop_path is None else str(stop_path),
        "retry_failed": retry_failed,
        "checkpoint_seconds": checkpoint_seconds,
        "time_limit": time_limit,
    }


def run_trial(
    task: Mapping[str, Any], function: Callable[..., Mapping[str, Any]] | None = None
) -> dict[str, Any]:
    """Compute and store one trial, unless it is stored already or another process is at it.

    `function` takes the place of the measurement's own, e.g. when the numbers are there already.
    """
    messages: list[str] = []
    try:
        function = function or find(task["location"])
    except (ImportError, AttributeError) as error:
        return {"status": "unusable", "reason": f"{task['location']}: {error}", "messages": []}
    answer: dict[str, Any]
    try:
        store = Store(Path(task["folder"]), messages.append)
        with store.claim(task["address"]) as mine:
            if mine:
                answer = _run_claimed(store, function, task)
            else:
                answer = {"status": "busy", "reason": str(store.holder(task["address"]) or "")}
    except NewerFormat as error:
        answer = {"status": "unusable", "reason": str(error)}
    except StorageError as error:
        answer = {"status": "storage", "reason": str(error)}
    except OSError as error:
        reason = str(StorageError.at(Path(task["folder"]), error))
        answer = {"status": "storage", "reason": reason}
    except BadArgument as error:  # the marker went first of all that is in the folder
        answer = {"status": "storage", "reason": str(error)}
    return {"reason": "", "seconds": 0.0, **answer, "messages": messages + answer.get("notes", [])}


def failure_record(task: Mapping[str, Any], reason: str, trace: str = "") -> dict[str, Any]:
    """The record of a trial that gave no numbers."""
    return _record(task, {}, "failed", reason) | {"traceback": trace}


def _run_claimed(
    store: Store, function: Callable[..., Mapping[str, Any]], task: Mapping[str, Any]
) -> dict[str, Any]:
    address = task["address"]
    stored = store.read_or_set_aside(address)
    if stored is not None and not (task["retry_failed"] and stored.outcome != "ok"):
        return {"status": "cached", "outcome": stored.outcome, "reason": stored.reason}
    context = TrialContext(
        address=address,
        label=task["label"],
        checkpoint_path=store.checkpoint_path(address),
        progress_path=store.progress_path(address),
        stop_path=None if task["stop_path"] is None else Path(task["stop_path"]),
        checkpoint_seconds=task["checkpoint_seconds"],
    )
    finished = False
    try:
        with _time_limit(task["time_limit"], store.trace_path(address)):
            answer = _measure(store, function, task, context)
        finished = answer["status"] in DONE
    finally:
        context.close(finished=finished)
    return {**answer, "notes": context.messages}


def _measure(
    store: Store,
    function: Callable[..., Mapping[str, Any]],
    task: Mapping[str, Any],
    context: TrialContext,
) -> dict[str, Any]:
    global _is_first
    first, _is_first = _is_first, False
    try:
        payload = _checked(function(dict(task["config"]), context), task["outputs"])
        reason = context.divergence or _not_finite(payload, task["may_be_nan"])
        outcome = "diverged" if context.divergence else "nonfinite" if reason else "ok"
        record = _record(task, payload, outcome, reason)
    except TrialStopped:
        return {"status": "stopped"}
    except StorageError:
        raise
    except Exception as error:  # a failed trial is data: whatever went wrong is recorded
        if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
            return {"status": "memory", "reason": f"{type(error).__name__}: {error}"}
        payload, outcome, reason = {}, "failed", f"{type(error).__name__}: {error}"
        record = failure_record(task, reason, traceback.format_exc())
    times = {"seconds": context.seconds, "compiling": min(context.compiling, context.seconds)}
    store.write(task["address"], payload, {**record, **times, "first_in_process": first})
    return {"status": outcome, "reason": reason, **times}


def _record(
    task: Mapping[str, Any],
    payload: Mapping[str, np.ndarray],
    outcome: str,
    reason: str,
    seconds: float = 0.0,
) -> dict[str, Any]:
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {
        "format": FORMAT,
        "address": task["address"],
        "measurement": task["measurement"],
        "version": task["version"],
        "config": task["config"],
        "outputs": task["outputs"],
        "outcome": outcome,
        "reason": reason,
        "seconds": seconds,
        "finished": now,
        **describe_run(task["config"], payload),
        "libraries": code_behind(task["location"].partition(":")[0]).libraries,
    }


def _checked(payload: Mapping[str, Any], outputs: Mapping[str, list[str]]) -> dict[str, np.ndarray]:
    """The payload as arrays, exactly the declared outputs with the declared dimensions."""
    if set(payload) != set(outputs):
        raise ValueError(
            f"the measurement returned {sorted(payload)} but declares {sorted(outputs)}"
        )
    arrays = {name: numeric(name, value) for name, value in payload.items()}
    for name, array in arrays.items():
        if array.ndim != len(outputs[name]):
            raise ValueError(f"{name} has shape {array.shape} but dimensions {outputs[name]}")
    return arrays


def _not_finite(payload: Mapping[str, np.ndarray], may_be_nan: list[str]) -> str:
    """Which outputs hold NaN or infinity, in words; NaN may also say that there is no number."""
    found = []
    for name, array in payload.items():
        if array.dtype.kind != "f" or np.isfinite(array).all():
            continue
        nans, infinities = int(np.isnan(array).sum()), int(np.isinf(array).sum())
        if infinities or name not in may_be_nan:
            what = "infinite" if infinities else "NaN"
            found.append(f"{name} is {what} ({nans + infinities} of {array.size})")
    return "; ".join(found)


@contextlib.contextmanager
def _time_limit(seconds: float | None, trace_path: Path) -> Iterator[None]:
    """End this process when the block takes longer; what it was doing is in the file then.

    The watchdog is a thread of C that needs no lock of Python's: it also ends a call that hangs
    in a library.
    """
    if seconds is None:
        yield
        return
    with open(open_inside(trace_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as trace:
        faulthandler.dump_traceback_later(seconds, exit=True, file=trace)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            remove_inside(trace_path)


def find(location: str) -> Callable[..., Any]:
    """The function at "package.module:name"."""
    module, _, name = location.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function
