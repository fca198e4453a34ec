"""A stand-in for SLURM's commands, which runs jobs at once on this machine.

`install(folder)` makes them there; each is this file under its name. A file in the folder changes
what they do: `away` (nobody answers), `no-accounts` (sacct fails), `forgets` (squeue no longer
lists what has ended), `hold` (nothing starts until it is gone).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = ("sbatch", "srun", "sacct", "squeue", "scancel")


def install(folder: Path) -> Path:
    """Put the commands into a folder for PATH."""
    for name in COMMANDS:
        script = folder / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -S {__file__} {name} "$@"\n')
        script.chmod(0o755)
    return folder


def sbatch(here: Path, script: str) -> None:
    """Start every element of the array in the background and tell the job's number."""
    job = str(100 + len(list(here.glob("*.script"))))
    text = Path(script).read_text()
    if "--partition=nowhere" in text:
        sys.exit("sbatch: error: invalid partition specified: nowhere")
    (here / f"{job}.script").write_text(text)
    array = re.search(r"^#SBATCH --array=0-(\d+)", text, re.MULTILINE)
    elements = [f"{job}_{k}" for k in range(int(array[1]) + 1)] if array else [job]
    for element in elements:
        put(here / f"{element}.state", "PENDING")
        process = subprocess.Popen(
            [sys.executable, "-S", __file__, "element", str(here), element, script],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        put(here / f"{element}.pid", str(process.pid))
    print(f"Submitted batch job {job}")


def element(here: Path, name: str, script: str) -> None:
    """Run one element to its end, then note its state."""
    job, _, index = name.partition("_")
    state = here / f"{name}.state"
    while (here / "hold").exists():
        time.sleep(0.05)
    settings = {"SLURM_JOB_ID": job, "SLURM_NTASKS": "1", "SLURM_PROCID": "0"}
    if index:
        settings |= {"SLURM_ARRAY_JOB_ID": job, "SLURM_ARRAY_TASK_ID": index}
    excluded = re.search(r"--exclude=(\S+)", Path(script).read_text())
    nodes = sorted({"n1", "n2"} - set(excluded[1].split(",") if excluded else []))
    settings["SLURMD_NODENAME"] = nodes[0]
    settings["PYTHONPATH"] = os.environ.get(f"PATH_ON_{nodes[0]}", os.environ["PYTHONPATH"])
    put(state, "RUNNING")
    code = subprocess.call(["bash", script], env={**os.environ, **settings})
    put(state, "FAILED" if code else "COMPLETED")


def srun(*command: str) -> None:
    """Run the command that follows the options."""
    start = next(i for i, word in enumerate(command) if word.endswith(Path(sys.executable).name))
    os.execvp(command[start], command[start:])


def put(path: Path, text: str) -> None:
    """Whoever reads the file sees all of its text, or that of before."""
    new = path.with_name(f"new.{path.name}.{os.getpid()}")
    new.write_text(text)
    new.replace(path)


def states(here: Path) -> dict[str, str]:
    """Of every element."""
    return {file.stem: file.read_text() for file in sorted(here.glob("*.state"))}


def sacct(here: Path) -> None:
    """All states that are known."""
    if (here / "no-accounts").exists():
        sys.exit("Slurm accounting storage is disabled")
    for name, state in states(here).items():
        print(f"{name}|{state}")


def squeue(here: Path) -> None:
    """All states, of what has ended only if it is not forgotten."""
    for name, state in states(here).items():
        if not (here / "forgets").exists() or state in ("PENDING", "RUNNING"):
            print(f"{name}|{state}|{'Resources' if state == 'PENDING' else 'None'}")


def scancel(here: Path, what: str) -> None:
    """End the elements of a job, or of all jobs of a name."""
    named = what.removeprefix("--name=")
    for script in here.glob("*.script"):
        if script.stem != what and f"--job-name={named}\n" not in script.read_text():
            continue
        for pid in here.glob(f"{script.stem}*.pid"):
            state = pid.with_suffix(".state")
            if state.read_text() in ("PENDING", "RUNNING"):
                with contextlib.suppress(ProcessLookupError):  # it has ended just now
                    os.killpg(int(pid.read_text()), signal.SIGKILL)
                put(state, "CANCELLED")


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    here = Path(os.environ["SLURM_STAND_IN"])
    if (here / "away").exists() and name not in ("element", "srun"):
        sys.exit(f"{name}: error: Unable to contact slurm controller (connect failure)")
    if name == "sbatch":
        sbatch(here, arguments[0])
    elif name == "element":
        element(Path(arguments[0]), *arguments[1:])
    elif name == "srun":
        srun(*arguments)
    elif name == "sacct":
        sacct(here)
    elif name == "squeue":
        squeue(here)
    elif name == "scancel":
        scancel(here, arguments[0])
