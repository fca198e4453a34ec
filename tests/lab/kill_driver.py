"""Run as a script: sweeps over the toy figure that are killed at random moments.

Children are forked from this process, which has imported everything but never started JAX, so
that twenty kills do not cost twenty start-ups.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import warnings
from pathlib import Path

import toy_figure

from headcount import lab


def kill_many(folder: Path, kills: int) -> int:
    """Start a sweep and kill it, `kills` times; returns how many were killed at work."""
    plan = lab.make_plan(toy_figure.figure, "smoke", seeds=range(8))
    draw = random.Random(0)
    killed = 0
    for _ in range(kills):
        child = os.fork()
        if child == 0:
            lab.run_plan(plan, folder, workers=0, checkpoint_seconds=0.0)
            os._exit(0)
        time.sleep(draw.uniform(0.02, 0.45))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed += os.WIFSIGNALED(status)
    return killed


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # JAX warns of forks; this process never started it
    print(kill_many(Path(sys.argv[1]), int(sys.argv[2])))
