"""The faults of `tools.chaos`, each a function of the bench; it returns how many it injected."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import psutil

from headcount import lab
from headcount.lab import _locks
from tools import chaos_dask
from tools.chaos_bench import COMPLETE, STORAGE, Bench, Lost, children_of

PAUSE = "0.01"


def kill_parent(bench: Bench) -> None:
    """kill -9 at a random moment of a sweep in one process."""
    store = bench.folder(0.3)
    child = bench.start(store, TOY_PAUSE=PAUSE)
    time.sleep(bench.draw.uniform(0.01, 0.6))
    os.kill(child, signal.SIGKILL)
    bench.judge(store, bench.wait(child))


def interrupt(bench: Bench) -> None:
    """Ctrl-C, SIGTERM or SIGHUP at a random moment, once or twice."""
    store = bench.folder(0.3)
    child = bench.start(store, TOY_PAUSE=PAUSE)
    number = bench.draw.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    wait_for_start(store)
    for _ in range(bench.draw.choice((1, 1, 2))):
        time.sleep(bench.draw.uniform(0.0, 0.4))
        os.kill(child, number)
    bench.judge(store, bench.wait(child))


def wait_for_start(store: lab.Store) -> None:
    """Until the sweep has noted its plan: before that signals do what they always do."""
    deadline = time.monotonic() + 60
    while not list(store.plan_folder().glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(0.02)


def kill_workers(bench: Bench) -> int:
    """kill -9 of random worker processes, again and again, while the sweep goes on."""
    store = bench.folder(0.0)
    child = bench.start(store, workers=2, TOY_PAUSE="0.1")
    killed = 0
    deadline = time.monotonic() + 300
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        time.sleep(bench.draw.uniform(0.2, 1.0))
        workers = children_of(child)
        if workers and killed < 5:
            with contextlib.suppress(psutil.NoSuchProcess):
                bench.draw.choice(workers).kill()
                killed += 1
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            raise Lost("the sweep did not end")
    code = os.waitstatus_to_exitcode(ended[1])
    if code != COMPLETE:
        raise Lost(f"{killed} killed workers ended the sweep with code {code}")
    bench.judge(store, code)
    return killed


def kill_parent_of_workers(bench: Bench) -> None:
    """kill -9 of a parent whose workers are at work, or stopped: they go with it."""
    store = bench.folder(0.0)
    child = bench.start(store, workers=2, TOY_PAUSE="0.1")
    deadline = time.monotonic() + 100
    while not list(store.folder.glob("trials/*/*.h5")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(bench.draw.uniform(0.0, 0.5))
    workers = children_of(child)
    if bench.draw.random() < 0.5:
        for worker in workers:
            worker.suspend()
    os.kill(child, signal.SIGKILL)
    bench.wait(child)
    _, alive = psutil.wait_procs(workers, timeout=60)
    if alive:
        raise Lost(f"{len(alive)} workers outlived their parent")
    bench.judge(store, -signal.SIGKILL)


def _damage(bench: Bench, path: Path, kind: str, others: list[Path]) -> None:
    data = path.read_bytes()
    if kind == "truncated":
        path.write_bytes(data[: bench.draw.randrange(max(len(data), 1))])
    elif kind == "flipped" and data:
        bad = bytearray(data)
        bad[bench.draw.randrange(len(bad))] ^= 1 << bench.draw.randrange(8)
        path.write_bytes(bytes(bad))
    elif kind == "swapped":
        shutil.copy2(bench.draw.choice([p for p in others if p != path] or [path]), path)
    else:
        path.unlink()


def at_rest(kind: str, *patterns: str) -> Callable[[Bench], None]:
    """Files of a finished or half-finished folder are damaged between two sweeps."""

    def fault(bench: Bench) -> None:
        store = bench.folder(0.0)
        unfinished = "checkpoints" in patterns[0]
        child = bench.start(store, TOY_PAUSE=PAUSE if unfinished else "0")
        if unfinished:
            time.sleep(bench.draw.uniform(0.2, 0.5))
            os.kill(child, signal.SIGKILL)
        bench.wait(child)
        with contextlib.suppress(Exception):  # an index, where the sweep came this far
            lab.collect(bench.plan, lab.Store(store.folder))
        files = [path for pattern in patterns for path in store.folder.glob(pattern)]
        if files:
            # For a checkpoint: a sound state, of another trial.
            others = [*files, *other_states(bench)] if unfinished else files
            _damage(bench, bench.draw.choice(files), kind, others)
        bench.judge(store, STORAGE)

    return fault


def other_states(bench: Bench) -> list[Path]:
    """A sound checkpoint of some trial, left by a sweep that was killed."""
    kept = bench.root / "states"
    if not kept.exists():
        kept.mkdir()
        while not list(kept.glob("*.h5")):
            store = bench.folder(0.0)
            child = bench.start(store, TOY_PAUSE=PAUSE)
            time.sleep(0.3)
            os.kill(child, signal.SIGKILL)
            bench.wait(child)
            for path in store.folder.glob("checkpoints/*.h5"):
                shutil.copyfile(path, kept / path.name)
            shutil.rmtree(store.folder)
    return list(kept.glob("*.h5"))


def in_the_run(bench: Bench) -> None:
    """Files are deleted, truncated, flipped or swapped while a sweep runs."""
    store = bench.folder(0.3)
    child = bench.start(store, TOY_PAUSE=PAUSE)
    for _ in range(3):
        time.sleep(bench.draw.uniform(0.02, 0.2))
        files = [path for path in store.folder.rglob("*.h5") if "index" not in path.parts]
        if files:
            kind = bench.draw.choice(("truncated", "flipped", "swapped", "deleted"))
            with contextlib.suppress(FileNotFoundError):
                _damage(bench, bench.draw.choice(files), kind, files)
    bench.judge(store, bench.wait(child))


def folder_gone(bench: Bench) -> None:
    """A folder, or all of it, is removed while a sweep runs."""
    store = bench.folder(0.3)
    child = bench.start(store, TOY_PAUSE=PAUSE)
    wait_for_start(store)
    time.sleep(bench.draw.uniform(0.02, 0.5))
    name = bench.draw.choice(("trials", "trials", "running", "checkpoints", "."))
    shutil.rmtree(store.folder / name, ignore_errors=True)
    bench.judge(store, bench.wait(child))


def full_disk(bench: Bench) -> None:
    """The disk is full in the middle of a sweep; then there is room again."""
    store = bench.folder(0.0)
    if not _mounted(store.folder):
        raise Lost("no small disk could be mounted: run as root, or use --only for other faults")
    try:
        store = lab.Store(store.folder)
        store.prepare()
        ballast = store.folder / "ballast"
        free = shutil.disk_usage(store.folder).free
        keep = bench.draw.randrange(60_000, 260_000)
        ballast.write_bytes(b"\0" * max(free - keep, 0))
        code = bench.wait(bench.start(store))
        ballast.unlink()
        if code not in (COMPLETE, STORAGE):
            raise Lost(f"a full disk ended the sweep with code {code}")
        bench.resume(store)
    finally:
        subprocess.run(["umount", str(store.folder)], check=True)


def _mounted(folder: Path) -> bool:
    shutil.rmtree(folder)
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    try:
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def two_clients(bench: Bench) -> None:
    """Two or three sweeps on one folder, with and without locks; sometimes one is killed."""
    store = bench.folder(0.2)
    locks = _locks.fcntl
    if bench.draw.random() < 0.5:
        _locks.fcntl = None  # type: ignore[assignment]
    try:
        children = [bench.start(store, TOY_PAUSE="0.002") for _ in range(bench.draw.choice((2, 3)))]
    finally:
        _locks.fcntl = locks
    if bench.draw.random() < 0.5:
        time.sleep(bench.draw.uniform(0.05, 0.3))
        os.kill(children[0], signal.SIGKILL)
    codes = [bench.wait(child) for child in children]
    if any(code not in (COMPLETE, -signal.SIGKILL) for code in codes):
        raise Lost(f"sweeps on one folder ended with {codes}")
    bench.judge(store, STORAGE)


def misbehaving(variable: str) -> Callable[[Bench], None]:
    """A trial that raises, asks for more memory than there is, or gives NaN."""

    def fault(bench: Bench) -> None:
        store = bench.folder(0.3)
        config = bench.draw.choice(bench.plan.trials).config
        place = f"{config['m']}-{config['seed']}"
        value = f"{place}=inf" if variable == "TOY_SPOIL" else place
        code = bench.wait(bench.start(store, CHAOS_LIMIT="60", **{variable: value}))
        if code != COMPLETE:
            raise Lost(f"one bad trial ended the sweep with code {code}")
        bench.judge(store, code, failures=True)

    return fault


def hanging(bench: Bench) -> None:
    """A trial that never ends, in a worker process."""
    store = bench.folder(0.9)
    config = bench.draw.choice(bench.plan.trials).config
    place = f"{config['m']}-{config['seed']}"
    code = bench.wait(bench.start(store, workers=1, CHAOS_LIMIT="1.0", TOY_HANG=place))
    if code != COMPLETE:
        raise Lost(f"a hanging trial ended the sweep with code {code}")
    bench.judge(store, code, failures=True)


Faults: TypeAlias = dict[str, tuple[Callable[[Bench], int | None], int]]

IN_ONE_PROCESS: Faults = {
    "parent killed": (kill_parent, 100),
    "Ctrl-C, SIGTERM, SIGHUP": (interrupt, 50),
    **{
        f"{where} {kind}": (at_rest(kind, *patterns), count)
        for where, patterns, count in (
            ("trial", ("trials/*/*.h5",), 25),
            ("checkpoint", ("checkpoints/*.h5",), 12),
            ("plan, marker or index", ("plans/*.json", "index/*.sqlite3", "*.json"), 8),
        )
        for kind in ("truncated", "flipped", "swapped", "deleted")
    },
    "files damaged in the run": (in_the_run, 30),
    "folder removed in the run": (folder_gone, 30),
    "two or three sweeps at once": (two_clients, 30),
    "trial raises": (misbehaving("TOY_FAIL"), 15),
    "trial out of memory": (misbehaving("TOY_MEMORY"), 15),
    "trial gives infinity": (misbehaving("TOY_SPOIL"), 10),
}
"""Kind of fault -> (the fault, how often)."""

FAULTS: Faults = {
    **IN_ONE_PROCESS,
    "disk full": (full_disk, 25),
    "trial hangs": (hanging, 4),
    "workers killed": (kill_workers, 6),
    "parent of two workers killed, some stopped": (kill_parent_of_workers, 6),
    **(
        {
            "Dask workers killed": (chaos_dask.workers_killed, 4),
            "Dask scheduler killed and restarted": (chaos_dask.scheduler_killed, 3),
        }
        if importlib.util.find_spec("distributed")
        else {}
    ),
}
"""All of them: also those that need workers, a small disk or Dask. Worker kills count several."""
