"""The tests that depend on versions, with the lowest declared ones and with the newest.

    python -m tools.versions [lowest] [newest] [--python EXE] [--only TESTS ...]

Each row gets a scratch environment in the temporary folder: lowest has exactly the lower bounds of
pyproject.toml on the lowest Python that it names, newest what the package index has today on the
newest one. All certificates recheck, the interpreter of balls encloses, kernels and training agree
with their slow twins, and objects are pickled.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROWS = ("lowest", "newest")
RUNNERS = ("beartype", "hypothesis", "pytest")
"""What runs the tests, of the development extra; its newest version in both rows."""
TESTS = (
    *("test_copies.py", "core", "theory/test_shipped.py", "theory/test_recheck.py"),
    *("theory/test_ball*.py", "theory/test_every_rule.py", "theory/test_slopes.py"),
    *("theory/test_odd_lemmas.py", "theory/test_lemmas.py"),
    *("kernels/test_ntk.py", "kernels/test_hessian.py", "kernels/test_mapped.py"),
    *("training/test_path*.py", "training/test_rules.py", "training/test_run.py"),
    "training/test_train.py",
)
VERSIONS = (
    "import sys; from importlib.metadata import version as v;"
    "print('Python', sys.version.split()[0], *(f'{n} {v(n)}' for n in sys.argv[1:]), flush=True)"
)


def declared() -> dict[str, object]:
    """The project's table in pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(row: str) -> list[str]:
    """What an environment holds."""
    project = declared()
    extras = project["optional-dependencies"]
    used = [*project["dependencies"], *extras["text"]]
    if row == "lowest":
        used = [requirement.replace(">=", "==") for requirement in used]
    return [*used, *(r for r in extras["dev"] if re.split("[<>=]", r)[0] in RUNNERS)]


def python_of(row: str) -> str:
    """The interpreter of a row: that of the lowest or of the newest Python that is declared."""
    known = re.findall(r"Python :: (3\.\d+)", "\n".join(declared()["classifiers"]))
    wanted = f"python{known[0 if row == 'lowest' else -1]}"
    found = shutil.which(wanted)
    if (
        found
        and subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0
    ):
        return found
    print(f"{wanted} is not here: {row} versions on {sys.executable}", flush=True)
    return sys.executable


def environment(row: str, python: str) -> Path:
    """The interpreter of a scratch environment with the versions of a row."""
    folder = Path(tempfile.gettempdir()) / f"headcount-versions-{row}"
    subprocess.run([python, "-m", "venv", folder], check=True)
    inside = folder / "bin" / "python"
    install = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--upgrade", *requirements(row)], check=True)
    return inside


def run(row: str, python: str, tests: Sequence[str]) -> bool:
    """Whether the tests pass in a row."""
    inside = environment(row, python)
    subprocess.run([inside, "-c", VERSIONS, "jax", "numpy", "scipy", "optax"], check=True)
    files = [str(path) for name in tests for path in sorted((ROOT / "tests").glob(name))]
    paths = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    # Libraries of another age deprecate other things.
    command = [inside, "-m", "pytest", "-p", "no:cacheprovider", "-W", "default", *files]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **paths}, check=False)
    print(f"{row} versions: {'pass' if done.returncode == 0 else 'FAIL'}", flush=True)
    return done.returncode == 0


def main() -> int:
    """1 if a row fails."""
    parser = argparse.ArgumentParser(prog="python -m tools.versions", description=__doc__)
    parser.add_argument("rows", nargs="*", help="lowest, newest; both if none is given")
    parser.add_argument("--python", help="the interpreter, in place of the row's own")
    parser.add_argument("--only", nargs="+", default=TESTS, help="files in tests/")
    given = parser.parse_args()
    rows = given.rows or ROWS
    if not set(rows) <= set(ROWS):
        parser.error(f"rows are {' and '.join(ROWS)}")
    passed = [run(row, given.python or python_of(row), given.only) for row in rows]
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main())
