"""How long JAX has been compiling in this thread, as JAX itself tells.

The first trial of its shape in a process compiles programs that the others then share. What a
trial will take can only be told from what one took when the two are kept apart.
"""

from __future__ import annotations

import functools
import threading
import time

_PREFIX = "/jax/core/compile/"
"""Tracing, lowering and compiling; a later JAX may name them otherwise, and then nothing counts."""


class _Spans(threading.local):
    """The time between the beginning and the end of events that may lie inside each other."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.counted: list[tuple[float, float]] = []

    def add(self, began: float, ended: float) -> None:
        """Count what is new: events inside this one have ended, and were counted, before it."""
        while self.counted and self.counted[-1][0] >= began:
            inner = self.counted.pop()
            self.seconds -= inner[1] - inner[0]
        if self.counted:
            began = max(began, self.counted[-1][1])
        self.counted.append((began, max(began, ended)))
        self.seconds += max(ended - began, 0.0)


_spans = _Spans()


def compiling_seconds() -> float:
    """Seconds that this thread has spent compiling since the first call."""
    _listen()
    _spans.counted.clear()  # nothing is under way here: what ended cannot be inside what begins
    return _spans.seconds


@functools.cache
def _listen() -> None:
    from jax import monitoring

    monitoring.register_event_duration_secs_listener(_note)


def _note(event: str, duration_secs: float, **_: object) -> None:
    if event.startswith(_PREFIX):
        now = time.monotonic()
        _spans.add(now - duration_secs, now)
