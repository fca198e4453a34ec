"""`headcount doctor`: what this machine has, what that unlocks, and how to get the rest."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib import metadata
from typing import TYPE_CHECKING, Any

from ._flags import Flag
from ._output import print_json, say_command

if TYPE_CHECKING:
    from rich.console import Console

    from ..data._files import FileSet

UNWELL = 1
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {
    "text": (("safetensors>=0.5", "tokenizers>=0.21"), "pretrained encoders, reviews as tokens"),
    "explore": (("marimo>=0.23",), "headcount explore"),
    "dask": (("distributed>=2025.1",), "reproduce --executor dask://HOST:PORT"),
    "slurm": (("submitit>=1.5",), "reproduce --executor slurm"),
}
"""What can be installed beside the rest, and what it is for."""


def doctor_command(*, json: Flag = False) -> int:
    """Tell what is installed and at hand, what each part unlocks, and the command to get it.

    Exit code 0: all that Headcount needs works, whatever else is missing; 1: something that it
    needs does not.

    Parameters
    ----------
    json
        Print one JSON object on standard output.
    """
    found = examined()
    if json:
        print_json(found)
    else:
        _show(found)
    return UNWELL if found["problems"] else 0


def examined() -> dict[str, Any]:
    """Everything that is looked at, in plain values; nothing is downloaded."""
    from .. import __version__

    problems: list[str] = []
    packages = _packages(problems)
    return {
        "headcount": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "cores": os.cpu_count(),
        "packages": packages,
        **_arithmetic(problems),
        "extras": {name: _extra(*extra) for name, extra in EXTRAS.items()},
        "data": _data(problems),
        "problems": problems,
    }


def _packages(problems: list[str]) -> dict[str, dict[str, Any]]:
    """What Headcount needs: the version that is there, and the least that will do."""
    try:
        required = metadata.requires("headcount") or []
    except metadata.PackageNotFoundError:
        required = []  # a checkout on the path
    rows = {}
    for line in (line for line in required if "extra ==" not in line):
        name, needs = _parsed(line)
        rows[name] = {"version": _version(name), "needs": needs}
        if not _new_enough(rows[name]["version"], needs):
            problems.append(f"{name} {rows[name]['version'] or 'is missing'}: needs {needs}")
    return rows


def _parsed(requirement: str) -> tuple[str, str]:
    """The name and the least version."""
    found = re.match(r"([\w.-]+)\s*(?:>=\s*([\w.]+))?", requirement)
    assert found is not None, requirement
    return found[1], found[2] or ""


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _new_enough(version: str | None, least: str) -> bool:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text)[:3]]

    return version is not None and numbers(version) >= numbers(least)


def _arithmetic(problems: list[str]) -> dict[str, Any]:
    """The devices, and whether sums in float64 have its digits."""
    try:
        import jax
        import jax.numpy as jnp

        from ..core import float64

        with float64():
            exact = float(jnp.asarray(1.0) + 1e-12) == 1 + 1e-12
        devices = [f"{device.platform}: {device.device_kind}" for device in jax.devices()]
    except Exception as error:  # whatever a broken installation raises
        problems.append(f"JAX does not compute: {str(error).splitlines()[0]}")
        return {"devices": [], "float64": False}
    if not exact:
        problems.append("float64 has not the digits of float64 here")
    return {"devices": devices, "float64": exact}


def _extra(needs: tuple[str, ...], unlocks: str) -> dict[str, Any]:
    parsed = [_parsed(line) for line in needs]
    there = [_new_enough(_version(name), least) for name, least in parsed]
    command = f"{_pip()} {' '.join(repr(line) for line in needs)}"
    versions = {name: _version(name) for name, _ in parsed}
    return {"installed": all(there), "versions": versions, "unlocks": unlocks, "command": command}


def _pip() -> str:
    return f"{os.path.basename(sys.executable) or 'python'} -m pip install"


def _data(problems: list[str]) -> dict[str, dict[str, Any]]:
    """Data sets and the encoder: where they are, which figures use them, how to get them."""
    from ..core import HeadcountError
    from ..data._checkpoints import MINILM_PACKAGE, MINILM_VERSION, _minilm
    from ..data._images import MNIST
    from ..data._reviews import REVIEW_SETS

    rows = {
        "mnist": _set(MNIST, "mnist", problems),
        "sst2": _set(REVIEW_SETS["sst2-sentences"].files, "sst2-sentences", problems),
        "imdb": _set(REVIEW_SETS["imdb"].files, "imdb", problems),
    }
    try:
        place = str(_minilm())
    except HeadcountError:
        place = None
    command = f"{_pip()} --no-deps {MINILM_PACKAGE}=={MINILM_VERSION}"
    rows["encoder"] = {"at_hand": place is not None, "where": place, **_unlocked("minilm")}
    rows["encoder"]["command"] = command
    return rows


def _set(source: FileSet, name: str, problems: list[str]) -> dict[str, Any]:
    from ..core import HeadcountError
    from ..data._files import data_folder, find

    found = None
    try:
        found = find(source)
    except HeadcountError as error:
        folder = os.environ.get("HEADCOUNT_DATA")
        named = error.__dict__.get("argument") == "HEADCOUNT_DATA"
        if folder is None or named or data_folder() is None:  # else it lacks this set, no more
            problems += [] if str(error) in problems else [str(error)]
    where = str(next(iter(found.values())).parent) if found else None
    unlocked = _unlocked(name)
    first = unlocked["unlocks"][0] if unlocked["unlocks"] else "FIGURE"
    if source.mirrors:
        command = f"headcount reproduce {first} --option {unlocked.pop('option')}={name}"
    else:
        choice = f"--option {unlocked.pop('option')}={name}"
        command = f"headcount reproduce {first} {choice} --data-dir FOLDER"
        unlocked["files"] = list(source.files)
    return {"at_hand": found is not None, "where": where, **unlocked, "command": command}


def _unlocked(choice: str) -> dict[str, Any]:
    """The figures that can be made with this choice, and what the choice is called there."""
    from ..lab import figures

    having = {
        name: option
        for name, figure in figures.items()
        for option, values in figure.options.items()
        if choice in values
    }
    return {"unlocks": list(having), "option": next(iter(having.values()), "data")}


def _show(found: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console()

    def line(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    line(f"headcount {found['headcount']}, Python {found['python']}, {found['platform']}")
    shown = [f"{name} {row['version']}" for name, row in found["packages"].items()]
    main = [text for text in shown if text.split()[0] in ("jax", "numpy", "scipy", "optax")]
    line(f"{len(shown)} packages, among them {', '.join(main)}" if shown else "from a checkout")
    line(f"devices: {', '.join(found['devices'])}; {found['cores']} cores")
    line(f"float64: {'works' if found['float64'] else 'does not work'}")
    for title, rows in (("Extras", found["extras"]), ("Data", found["data"])):
        line(f"\n{title}")
        for name, row in rows.items():
            _row(console, name, row)
    for problem in found["problems"]:
        line(f"\nProblem: {problem}")
    if not found["problems"]:
        line("\nAll that Headcount needs works.")


def _row(console: Console, name: str, row: dict[str, Any]) -> None:
    """One part: whether it is there, what it unlocks, and how to get it on a line to paste."""
    there = row.get("installed", row.get("at_hand"))
    unlocks = row["unlocks"] if isinstance(row["unlocks"], str) else ", ".join(row["unlocks"])
    mark = "yes" if there else "no"
    console.print(f"  {name:<8} {mark:<4} {unlocks}", highlight=False, markup=False)
    if not there:
        if "files" in row:
            say_command(console, f"with {' and '.join(row['files'])} in a folder:", indent=15)
        say_command(console, row["command"], indent=15)
