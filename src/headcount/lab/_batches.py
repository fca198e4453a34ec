"""Small trials together: several of one group in one program, where a measurement declares it.

A trial keeps its own file, record and outcome; only the computing is shared. The declaration
promises that a trial gets the very numbers together that it gets alone, so that whether a sweep
batches is nobody's business but the clock's.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from ._compiling import compiling_seconds
from ._context import Context, PlainContext, TrialContext
from ._executors import Hint, TrialExecutor
from ._figure import Trial
from ._trial import find, run_trial

SMALL_SECONDS = 1.0
"""A trial expected to take longer runs alone."""
BATCH = 16
"""Trials per program: one number, as every other one would be another program to compile."""
WORTH = 2 * BATCH
"""Fewer trials of a group are not worth the compiling of a second program."""


class _Member(Future[dict[str, Any]]):
    """The answer of a trial that another executor computes, perhaps together with others."""

    inner: Future[dict[str, Any]] | None = None

    def cancel(self) -> bool:
        """Possible as long as the other executor has not begun."""
        return (self.inner is None or self.inner.cancel()) and super().cancel()


Waiting = tuple[dict[str, Any], Hint, _Member]


class BatchingExecutor(TrialExecutor):
    """Hands trials on to another executor, small ones of one group together."""

    def __init__(self, inner: TrialExecutor) -> None:
        self.inner = inner
        self.window = inner.window
        self.replaces_workers = inner.replaces_workers
        self._functions: dict[str, str] = {}
        self._waiting: dict[tuple[str, str], list[Waiting]] = defaultdict(list)

    def begin(self, folder: Path, trials: Sequence[Trial]) -> None:
        """Note which trials may go together."""
        self.inner.begin(folder, trials)
        for trial in trials:
            if trial.measurement.batch is not None:
                self._functions[trial.address] = trial.measurement.batch_location

    def submit_trial(self, task: Mapping[str, Any], hint: Hint) -> Future[dict[str, Any]]:
        """Keep a small trial for `flush`; once it has been in a batch it runs alone."""
        function = self._functions.pop(task["address"], None)
        if function is None or hint.seconds > SMALL_SECONDS:
            return self.inner.submit_trial(task, hint)
        future = _Member()
        self._waiting[function, hint.group].append((dict(task), hint, future))
        return future

    def flush(self) -> None:
        """Submit what waits: full batches, and the rest one by one."""
        waiting, self._waiting = self._waiting, defaultdict(list)
        for (function, _), group in waiting.items():
            group = [entry for entry in group if not entry[2].cancelled()]
            full = len(group) // BATCH * BATCH if len(group) >= WORTH else 0
            for first in range(0, full, BATCH):
                self._submit_batch(function, group[first : first + BATCH])
            for task, hint, future in group[full:]:
                _follow([future], self.inner.submit_trial(task, hint))
        self.inner.flush()

    def close(self, *, gently: bool) -> None:
        """Close the other."""
        self.inner.close(gently=gently)

    def _submit_batch(self, function: str, batch: list[Waiting]) -> None:
        tasks, hints, futures = zip(*batch, strict=True)
        together = {"batch": list(tasks), "function": function, "address": tasks[0]["address"]}
        hint = Hint(
            f"{hints[0].group}, together",  # another program than that of a trial alone
            sum(hint.seconds for hint in hints),
            sum(hint.bytes for hint in hints),
            hints[0].compiling,
        )
        _follow(futures, self.inner.submit_trial(together, hint))


def _follow(futures: Sequence[_Member], inner: Future[dict[str, Any]]) -> None:
    for future in futures:
        future.inner = inner
    inner.add_done_callback(partial(_hand_on, futures))


def _hand_on(futures: Sequence[_Member], done: Future[dict[str, Any]]) -> None:
    """Every trial gets its own answer, or the death that all of them shared."""
    if done.cancelled():
        return
    error = done.exception()
    answers = [] if error is not None else done.result().get("answers", [done.result()])
    for k, future in enumerate(futures):
        if future.cancelled():
            continue
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(answers[k])


def run_batch(task: Mapping[str, Any]) -> dict[str, Any]:
    """Compute trials together, then store each as if it had been alone.

    Where that fails, each runs alone: only the one at fault fails. The first is said to have
    compiled the program.
    """
    tasks = task["batch"]
    ready: list[Callable[..., Mapping[str, Any]] | None] = [None] * len(tasks)
    contexts = [PlainContext() for _ in tasks]
    began, compiled = time.monotonic(), compiling_seconds()
    try:
        together = find(task["function"])
        payloads = list(together([dict(each["config"]) for each in tasks], contexts))
        compiling = compiling_seconds() - compiled
        share = max(time.monotonic() - began - compiling, 0.0) / len(tasks)
        ready = [
            _computed(payload, context.divergence, share, compiling if k == 0 else 0.0)
            for k, (payload, context) in enumerate(zip(payloads, contexts, strict=True))
        ]
    except Exception:
        pass  # the trial at fault tells it, when each is run alone
    return {"answers": [run_trial(each, own) for each, own in zip(tasks, ready, strict=True)]}


def _computed(
    payload: Mapping[str, Any], divergence: str | None, seconds: float, compiling: float
) -> Callable[[dict[str, Any], Context], Mapping[str, Any]]:
    """A measuring function whose numbers are there already."""

    def function(config: dict[str, Any], context: Context) -> Mapping[str, Any]:
        if isinstance(context, TrialContext):
            context.resumed_after = seconds + compiling
            context.compiled_before = compiling
        if divergence is not None:
            context.diverged(divergence)
        return payload

    return function
