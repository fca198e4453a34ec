"""Runs of `headcount train` that end early: their checkpoint, and where what ran is saved."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core import Array
    from ..training import Run, TrainConfig

SECONDS = 30.0
"""Between two checkpoints: what a kill can cost."""


class RunCheckpoint:
    """The state of an unfinished run, in a file beside the one that the run will be in.

    It is saved now and then, and once more when the run is asked to stop.
    """

    def __init__(self, target: Path, config: TrainConfig, devices: int | None) -> None:
        self.path = target.with_name(f"{target.name}.checkpoint")
        named = json.dumps([config.model_dump(mode="json"), devices], sort_keys=True)
        self._address = hashlib.sha256(named.encode()).hexdigest()
        self.asked: Callable[[], bool] = lambda: False
        self._stop = False
        self._saved = time.monotonic()

    def restore(self) -> Mapping[str, Array] | None:
        """The state saved last; one that would not give the same run is refused."""
        from ..lab._errors import CorruptFile, NewerFormat
        from ..lab._files import read_file
        from ..lab._record import origin

        if not self.path.exists():
            return None
        try:
            state, _, header = read_file(self.path, "checkpoint", self._address)
        except CorruptFile as error:
            other = error.problem.startswith("is about")  # it names a checksum of the flags
            raise self._refused("is of another run" if other else error.problem) from None
        except NewerFormat:
            raise self._refused("is of a later Headcount") from None
        if header.origin != origin():
            raise self._refused(f"was made with {header.origin}, here is {origin()}")
        return state

    def save(self, arrays: Callable[[], Mapping[str, Array]]) -> None:
        """Keep the state if it is time, or the end."""
        from ..lab._files import write_file

        self._stop = self.asked()
        if self._stop or time.monotonic() - self._saved >= SECONDS:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self.path, "checkpoint", self._address, arrays(), {})
            self._saved = time.monotonic()

    def stop(self) -> bool:
        """Whether the run was asked to end before its state was saved last."""
        return self._stop

    def remove(self) -> None:
        """The run is complete and saved."""
        self.path.unlink(missing_ok=True)

    def check(self, *, resume: bool) -> None:
        """Before the work: a checkpoint is never begun anew, nor continued as another run."""
        if resume:
            self.restore()
        elif self.path.exists():
            raise self._refused("is that of an interrupted run", "go on with --resume")

    def _refused(
        self, problem: str, fix: str = "use the flags and versions it was made with"
    ) -> Exception:
        from ..core import BadArgument

        return BadArgument("checkpoint", str(self.path), problem, fix=f"{fix}, or delete it")


def place_for(run: Run, target: Path, *, cut: bool) -> Path:
    """`target`, unless a run there has more to lose: then the first free name beside it."""
    place, name = target, f"{target.stem}-{run.settings['steps']}-steps"
    for number in itertools.count(2):
        if not place.exists() or _gives_way(place, run, cut):
            return place
        place, name = (
            target.with_stem(name),
            f"{target.stem}-{run.settings['steps']}-steps-{number}",
        )
    raise AssertionError("numbers do not end")


def _gives_way(there: Path, run: Run, cut: bool) -> bool:
    """A cut run replaces what it continues; a whole one all but the same run of more steps."""
    from ..core import BadArgument
    from ..training import TrainConfig, config_of_run

    new = TrainConfig.of(json.loads(run.settings["config"]))
    try:
        old = config_of_run(there)
    except BadArgument:
        return not cut
    same = old.model_copy(update={"steps": new.steps}) == new
    return old.steps <= new.steps if same else not cut
