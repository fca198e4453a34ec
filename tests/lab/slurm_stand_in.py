"""A stand-in for SLURM's commands, which runs jobs at once on this machine.

`install(folder)` makes sbatch, srun, sacct and scancel there; each is this file under that name.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

COMMANDS = ("sbatch", "srun", "sacct", "scancel")


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
    (here / f"{job}.script").write_text(text)
    array = re.search(r"^#SBATCH --array=0-(\d+)", text, re.MULTILINE)
    elements = [f"{job}_{k}" for k in range(int(array[1]) + 1)] if array else [job]
    for element in elements:
        (here / f"{element}.state").write_text("RUNNING")
        subprocess.Popen(
            [sys.executable, "-S", __file__, "element", str(here), element, script],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    print(f"Submitted batch job {job}")


def element(here: Path, name: str, script: str) -> None:
    """Run one element to its end, then note its state."""
    job, _, index = name.partition("_")
    settings = {"SLURM_JOB_ID": job, "SLURM_NTASKS": "1", "SLURM_PROCID": "0"}
    if index:
        settings |= {"SLURM_ARRAY_JOB_ID": job, "SLURM_ARRAY_TASK_ID": index}
    code = subprocess.call(["bash", script], env={**os.environ, **settings})
    (here / f"{name}.state").write_text("FAILED" if code else "COMPLETED")


def srun(*command: str) -> None:
    """Run the command that follows the options."""
    start = next(i for i, word in enumerate(command) if word.endswith(Path(sys.executable).name))
    os.execvp(command[start], command[start:])


def sacct(here: Path) -> None:
    """All states that are known."""
    print("JobID|State|NodeList")
    for file in sorted(here.glob("*.state")):
        print(f"{file.stem}|{file.read_text()}|here")


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    here = Path(os.environ["SLURM_STAND_IN"])
    if name == "sbatch":
        sbatch(here, arguments[0])
    elif name == "element":
        element(Path(arguments[0]), *arguments[1:])
    elif name == "srun":
        srun(*arguments)
    elif name == "sacct":
        sacct(here)
