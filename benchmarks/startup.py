"""How long `import headcount`, `headcount --help` and `headcount explain ID` take.

The first two do not load JAX; the third is compared with what JAX itself takes to load.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

from benchmarks._timing import target

REPEATS = 7
_IMPORT = "import sys; sys.path.pop(0); import headcount; print('jax' in sys.modules)"
_EXPLAIN = """
import sys
sys.argv = ["headcount", "explain", "deora2024/theorem-4"]
from headcount.cli import main
main()
"""
_HELP = """
import sys
sys.argv = ["headcount", "--help"]
from headcount.cli import main
try:
    main()
finally:
    print("jax" in sys.modules, file=sys.stderr)
"""


def measure(code: str) -> dict[str, Any]:
    """Best wall and processor time of a fresh interpreter that runs `code`."""
    wall, cpu, loads_jax = [], [], False
    for _ in range(REPEATS):
        before, began = os.times(), time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        wall.append(time.perf_counter() - began)
        after = os.times()
        cpu.append(
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        loads_jax = "True" in (done.stdout + done.stderr).split()
    return {"wall_seconds": min(wall), "cpu_seconds": min(cpu), "loads_jax": loads_jax}


def run() -> dict[str, Any]:
    """The bare interpreter, the import, the help page and a claim, each in fresh processes."""
    imported, shown = measure(_IMPORT), measure(_HELP)
    jax, explained = measure("import jax, numpy"), measure(_EXPLAIN)
    return {
        "name": "startup",
        "bare_python": measure("print()"),
        "import_headcount": imported,
        "headcount_help": shown,
        "import_jax": jax,
        "headcount_explain": explained,
        "targets": [
            target("seconds of import headcount", imported["cpu_seconds"], at_most=0.3),
            target("seconds of headcount --help", shown["cpu_seconds"], at_most=0.5),
            target(
                "explain of a claim, in imports of JAX",
                explained["cpu_seconds"] / jax["cpu_seconds"],
                at_most=1.3,
            ),
            target("the import loads JAX", imported["loads_jax"], at_most=0),
            target("the help page loads JAX", shown["loads_jax"], at_most=0),
        ],
    }
