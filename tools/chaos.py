"""Faults thrown at the lab, one after another: `make chaos`, or `python -m tools.chaos --help`.

Every fault hits a sweep over the toy figure of tests/lab in a folder of its own. A sweep that says
it is complete must have every number right; afterwards it is resumed, and every number is compared
bit for bit with those of an undisturbed sweep. Whatever is lost, altered, missing without a word
or a traceback counts against us. Prints how many faults were injected and survived, by kind.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tools.chaos_bench import Bench, Lost
from tools.chaos_faults import FAULTS, IN_ONE_PROCESS

Fault = Callable[[Bench], int | None]


def run(
    faults: dict[str, tuple[Fault, int]], *, seed: int = 0, scale: float = 1.0
) -> tuple[Counter[str], Counter[str], list[str]]:
    """(injected, survived, what went wrong); a fault may inject more than one and says so."""
    injected: Counter[str] = Counter()
    survived: Counter[str] = Counter()
    wrong: list[str] = []
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as root:
        bench = Bench(Path(root), seed)
        for name, (fault, count) in faults.items():
            began = time.monotonic()
            for _ in range(max(round(count * scale), 1) if count else 0):
                try:
                    told = fault(bench)
                    number = 1 if told is None else told
                    survived[name] += number
                except Lost as error:
                    number = 1
                    wrong.append(f"{name}: {error}")
                injected[name] += number
            if injected[name]:
                line = f"{name:45} {survived[name]:4} of {injected[name]:4} survived"
                print(f"{line}  {time.monotonic() - began:6.1f} s", flush=True)
    return injected, survived, wrong


def main() -> int:
    """Run all faults; 1 when one was not survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="times the usual 500 faults")
    parser.add_argument("--only", default="", help="kinds of faults whose name holds this text")
    parser.add_argument("--short", action="store_true", help="one of each kind that is quick")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")  # JAX warns of forks; this process never started it
    faults = {name: fault for name, fault in FAULTS.items() if chosen.only in name}
    if chosen.short:
        faults = {name: (fault, 1) for name, (fault, _) in IN_ONE_PROCESS.items()}
    injected, survived, wrong = run(faults, seed=chosen.seed, scale=chosen.scale)
    for text in wrong:
        print(text, file=sys.stderr)
    print(f"{injected.total()} faults injected, {survived.total()} survived")
    return int(injected != survived)


if __name__ == "__main__":
    sys.exit(main())
