"""kill -9 and Ctrl-C at any moment: nothing is lost, nothing half-written is read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import toy_figure
from lab_checks import Messages, assert_same

from headcount import lab

HERE = Path(__file__).parent
SEEDS = range(8)


def start(script: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """A Python process that can import the toy figure."""
    return subprocess.Popen(
        [sys.executable, script, *arguments],
        env={**os.environ, "PYTHONPATH": str(HERE), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition, seconds: float = 180.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the sweep did not come this far"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def plan() -> lab.Plan:
    return lab.make_plan(toy_figure.figure, "smoke", seeds=SEEDS)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory, plan: lab.Plan) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    lab.run_plan(plan, folder, workers=0)
    return folder


def test_twenty_kills_then_resume(tmp_path: Path, plan: lab.Plan, reference: Path) -> None:
    process = start(str(HERE / "kill_driver.py"), str(tmp_path), "20", TOY_PAUSE="0.05")
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    assert int(output) == 20
    reporter = Messages()
    before = len(list((tmp_path / "trials").rglob("*.h5")))
    sweep = lab.run_plan(plan, tmp_path, workers=0, reporter=reporter)
    assert sweep.cached == before > 0
    assert sweep.run > 0
    assert sweep.failed == 0
    assert reporter.messages == []  # no file was ever found damaged
    assert_same(plan, tmp_path, reference)
    assert not list(tmp_path.rglob("*.corrupt-*"))
    assert not list((tmp_path / "checkpoints").glob("*"))


def finished(folder: Path) -> int:
    return len(list((folder / "trials").rglob("*.h5")))


def test_killing_the_sweep_ends_its_workers(tmp_path: Path, plan, reference) -> None:
    process = start(
        str(HERE / "toy_cli.py"), "reproduce", "toy/mean", "--scale", "smoke", "--seeds", "0:8",
        "--out", str(tmp_path), "--workers", "2", TOY_PAUSE="0.3",
    )  # fmt: skip
    wait_for(lambda: finished(tmp_path) >= 2)
    workers = psutil.Process(process.pid).children(recursive=True)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    _, alive = psutil.wait_procs(workers, timeout=120)
    assert alive == []
    assert finished(tmp_path) < len(plan.unique)
    assert lab.run_plan(plan, tmp_path, workers=0).failed == 0
    assert_same(plan, tmp_path, reference)


@pytest.mark.parametrize(("workers", "number"), [("0", signal.SIGINT), ("2", signal.SIGTERM)])
def test_ctrl_c_says_what_is_saved_and_how_to_go_on(
    tmp_path: Path, plan: lab.Plan, reference: Path, workers: str, number: int
) -> None:
    """SIGTERM goes to all processes of the group, workers too, as SLURM sends it."""
    process = start(
        str(HERE / "toy_cli.py"), "reproduce", "toy/mean", "--scale", "smoke", "--seeds", "0:8",
        "--out", str(tmp_path), "--workers", workers, TOY_PAUSE="0.3" if workers == "2" else "0.05",
    )  # fmt: skip
    wait_for(lambda: finished(tmp_path) >= 2)
    if workers == "2":  # both end at once: the next trials must have begun
        wait_for(lambda: len(list((tmp_path / "running").glob("*.json"))) >= 1)
        time.sleep(0.5)
    os.killpg(process.pid, number)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    saved = finished(tmp_path)
    assert f"{saved} of 24 trials are saved in {tmp_path}" in errors
    command = f"headcount reproduce toy/mean --scale smoke --seeds 0:8 --out {tmp_path}"
    assert command in errors
    assert 2 <= saved < 24
    if workers == "2":  # trials in workers were asked to save, not only their last checkpoint kept
        assert list((tmp_path / "checkpoints").glob("*.h5"))
    assert not list((tmp_path / "running").glob("*"))
    assert lab.run_plan(plan, tmp_path, workers=0).cached == saved
    assert_same(plan, tmp_path, reference)
