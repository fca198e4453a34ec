"""Signals: what a scheduler or a closed terminal sends acts like Ctrl-C; no worker is orphaned."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing.connection import wait
from typing import Any

_NAMES = ("SIGTERM", "SIGHUP")
_PR_SET_PDEATHSIG = 1


@contextlib.contextmanager
def like_ctrl_c() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt in the block.

    Only where nobody chose otherwise: nohup stays nohup, and a caller's own handler stays his.
    """
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
            if signal.getsignal(number) == signal.SIG_DFL:
                before[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def begin_worker() -> None:
    """Called first in a worker process: signals are for the parent, and its death is ours.

    A group of processes is often signalled as a whole; the parent then asks its workers to save.
    On Linux the kernel itself kills the worker when the parent dies, also one that is stopped or
    hangs in a library; elsewhere a thread watches.
    """
    for name in ("SIGINT", *_NAMES):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is None:
        return
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent.pid:
            os._exit(1)  # it died before we asked
    threading.Thread(target=_die_with, args=(parent.sentinel,), daemon=True).start()


def _die_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
