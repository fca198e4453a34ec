"""What runs on a worker that somebody else started, perhaps on another machine.

Before a trial is computed there, the worker's environment is compared with the client's: other
code or other versions could give other numbers under the same address.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..core._inside import read_inside
from ..core._owner import owner
from ._closure import code_behind
from ._executors import thread_settings
from ._files import write_atomically
from ._leftovers import STOP
from ._record import versions
from ._store import Store
from ._trial import DONE, run_trial

_DATA_FOLDER = "HEADCOUNT_DATA"
_settled: dict[str, str] = {}


def _hash_of_files(folder: Path, files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(folder).as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


_PACKAGE = Path(__file__).resolve().parents[1]
_CODE = _hash_of_files(_PACKAGE, _PACKAGE.rglob("*.py"))  # as it was when it was loaded


@functools.cache
def _measurement_code(location: str) -> str:
    """A hash of the code behind a measuring function and its libraries, or why there is none."""
    name, _, function = location.partition(":")
    try:
        module = importlib.import_module(name)
        getattr(module, function)
    except (ImportError, AttributeError) as error:
        return f"not there ({error})"
    code = code_behind(name)
    return ", ".join([code.hash, *(f"{each} {v}" for each, v in code.libraries.items())])


def environment(locations: Iterable[str]) -> dict[str, str]:
    """All that the numbers of these measurements depend on, beyond a trial's configuration."""
    return {
        **versions(),
        "headcount's code": _CODE,
        "XLA_FLAGS": thread_settings()["XLA_FLAGS"],
        **{location: _measurement_code(location) for location in locations},
    }


def client_settings() -> dict[str, str]:
    """Environment variables that a worker takes over from the client."""
    data = {_DATA_FOLDER: os.environ[_DATA_FOLDER]} if _DATA_FOLDER in os.environ else {}
    return {**thread_settings(), **data}


def differences(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    """What a worker has otherwise than the client, in words; empty when nothing."""
    return "; ".join(
        f"{name} is {found.get(name)} there, {value} here"
        for name, value in expected.items()
        if found.get(name) != value
    )


def describe_worker(locations: list[str], settings: Mapping[str, str]) -> dict[str, str]:
    """The environment of this worker, after it took over the client's settings.

    The first client decides: XLA reads its flags once in the life of a process.
    """
    for name, value in settings.items():
        if name == _DATA_FOLDER or name not in _settled:
            os.environ[name] = _settled[name] = value
    return {**environment(locations), "XLA_FLAGS": _settled["XLA_FLAGS"]}


def make_probe(folder: Path) -> tuple[str, str]:
    """A file in the results folder, and its content, by which workers know that they share it."""
    running = folder.resolve() / "running"
    token = f"{STOP.decode()} {secrets.token_hex(16)}"
    path = running / f"sweep.{owner()}-{secrets.token_hex(4)}.probe"
    write_atomically(path, token.encode(), sync=False)
    return str(path), token


def run_remote(
    task: Mapping[str, Any],
    expected: Mapping[str, str],
    settings: Mapping[str, str],
    probe: tuple[str, str] | None = None,
    scratch: str = "",
) -> dict[str, Any]:
    """Run a trial here; where the results folder is not seen, its numbers travel in the answer.

    Without a probe the caller knows that it is seen. What goes wrong around a trial is not the
    trial's failure.
    """
    try:
        return _run(task, expected, settings, probe, scratch)
    except Exception as error:
        reason = f"a worker cannot run trials ({type(error).__name__}: {error})"
        return {"status": "unusable", "reason": reason, "messages": []}


def _run(
    task: Mapping[str, Any],
    expected: Mapping[str, str],
    settings: Mapping[str, str],
    probe: tuple[str, str] | None,
    scratch: str,
) -> dict[str, Any]:
    location = task["location"]
    wanted = {name: value for name, value in expected.items() if ":" not in name}
    wanted[location] = expected[location]
    problem = differences(wanted, describe_worker([location], settings))
    if problem:
        return {"status": "mismatch", "reason": problem, "messages": []}
    if task["stop_path"] is not None and Path(task["stop_path"]).exists():
        return {"status": "stopped", "reason": "", "messages": []}
    if probe is None or _sees(probe):
        return run_trial(task)
    store = Store(Path(scratch))
    store.prepare()
    answer = run_trial({**task, "folder": scratch, "stop_path": None})
    if answer["status"] in (*DONE, "cached"):
        stored = store.read(task["address"])
        if stored is not None:
            answer["payload"], answer["record"] = stored.payload, stored.record
        store.trial_path(task["address"]).unlink(missing_ok=True)
    return answer


def take_over(store: Store, task: Mapping[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Store the numbers that came with an answer."""
    if "record" in answer:
        store.write(task["address"], answer.pop("payload"), answer.pop("record"))
    return answer


def _sees(probe: tuple[str, str]) -> bool:
    try:
        return read_inside(Path(probe[0])) == probe[1].encode()
    except OSError:
        return False
