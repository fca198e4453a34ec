"""Where faults are tried: a reference, fresh folders, sweeps in child processes, a judge."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import traceback
import warnings
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "lab"))

import psutil
import toy_figure

from headcount import lab

SEEDS = range(8)
COMPLETE, STORAGE, EXECUTION, INTERRUPTED, SURPRISE = 0, 1, 2, 3, 9


class Lost(AssertionError):
    """A promise of the lab was broken."""


class Bench:
    """Where faults are tried: a reference, fresh folders, sweeps in child processes."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.draw = random.Random(seed)
        self.plan = lab.make_plan(toy_figure.figure, "smoke", seeds=SEEDS)
        self.reference = root / "reference"
        lab.run_plan(self.plan, self.reference, workers=0)
        self.expected = digest(self.plan, lab.Store(self.reference))
        self.count = 0

    def folder(self, share: float) -> lab.Store:
        """A new results folder that holds about this share of the trials already."""
        self.count += 1
        store = lab.Store(self.root / f"run-{self.count}")
        store.prepare()
        for address in self.plan.unique:
            if self.draw.random() < share:
                self._copy(address, store)
        return store

    def _copy(self, address: str, store: lab.Store) -> None:
        target = store.trial_path(address)
        target.parent.mkdir(exist_ok=True)
        shutil.copyfile(lab.Store(self.reference).trial_path(address), target)

    def start(
        self, store: lab.Store, workers: int = 0, executor: str | None = None, **environment: str
    ) -> int:
        """A sweep in a child process, forked so that it does not import everything again."""
        child = os.fork()
        if child:
            return child
        code = SURPRISE
        try:
            warnings.simplefilter("ignore")
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.environ.update(environment)
            code = self._sweep(store.folder, workers, executor)
        except BaseException:
            (store.folder.parent / f"{store.folder.name}.error").write_text(traceback.format_exc())
        finally:
            os._exit(code)

    def _sweep(self, folder: Path, workers: int, executor: str | None) -> int:
        """Sweep and collect, as the command does; what it claims is left beside the folder."""
        policy = lab.Policy(retries=1000, time_limit=30.0)
        if "CHAOS_LIMIT" in os.environ:
            policy = lab.Policy(retries=0, time_limit=float(os.environ["CHAOS_LIMIT"]))
        try:
            sweep = lab.run_plan(
                self.plan,
                folder,
                workers=None if executor else workers,
                executor=executor,
                checkpoint_seconds=0.0,
                policy=policy,
            )
            if sweep.interrupted:
                return INTERRUPTED
            assert sweep.store is not None
            found = digest(self.plan, sweep.store)
        except lab.StorageError:
            return STORAGE
        except lab.ExecutionError:
            return EXECUTION
        except KeyboardInterrupt:
            return INTERRUPTED
        if found is None:
            return STORAGE
        failed = sorted(problem.label for problem in sweep.problems)
        claim = {"digest": found, "failed": failed}
        (folder.parent / f"{folder.name}.claim").write_text(json.dumps(claim))
        return COMPLETE

    def wait(self, child: int) -> int:
        """The exit code of a child; minus the signal that ended it."""
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def judge(self, store: lab.Store, code: int, *, failures: bool = False) -> None:
        """What a disturbed sweep claimed must be true; then resume and compare every bit."""
        error = store.folder.with_name(f"{store.folder.name}.error")
        if code == SURPRISE:
            raise Lost(error.read_text() if error.exists() else "an unknown error")
        if code == COMPLETE:
            claim = json.loads(store.folder.with_name(f"{store.folder.name}.claim").read_text())
            if not failures and (claim["failed"] or claim["digest"] != self.expected):
                raise Lost(f"a sweep called itself complete with {claim['failed']} failed")
        self.resume(store)
        shutil.rmtree(store.folder)

    def resume(self, store: lab.Store) -> None:
        """The same command again, undisturbed; a marker that is lost is made, as it asks for."""
        if store.folder.is_dir() and any(store.folder.iterdir()):
            (store.folder / "headcount-results.json").touch()
        sweep = lab.run_plan(self.plan, store.folder, workers=0, retry_failed=True)
        found = digest(self.plan, lab.Store(store.folder))
        if sweep.failed or found != self.expected:
            raise Lost(f"after the resume {sweep.failed} failed, numbers as expected: "
                       f"{found == self.expected}")  # fmt: skip
        left = [p.name for p in store.folder.rglob("*") if p.suffix in (".tmp", ".lock", ".stop")]
        if left or list((store.folder / "checkpoints").iterdir()):
            raise Lost(f"left behind: {left}")


def digest(plan: lab.Plan, store: lab.Store) -> str | None:
    """One name for all numbers of a plan; None when one is missing."""
    found = hashlib.sha256()
    for address in sorted(plan.unique):
        trial = store.read(address)
        if trial is None:
            return None
        for name, array in sorted(trial.payload.items()):
            found.update(f"{address} {name} {array.dtype} {array.shape}".encode())
            found.update(array.tobytes())
    return found.hexdigest()


def children_of(parent: int) -> list[psutil.Process]:
    """The worker processes that a process has started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [
            process
            for process in psutil.Process(parent).children()
            if "spawn_main" in " ".join(process.cmdline())
        ]
    return []
