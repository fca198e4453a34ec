"""Array jobs through submitit, with a stand-in for SLURM's commands on PATH."""

from __future__ import annotations

import math
import os
import subprocess
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
import slurm_stand_in
import toy_figure
from lab_checks import Messages, assert_same, other_toy
from toy_cli import app

from headcount import core, lab
from headcount.core._owner import owner
from headcount.lab import _slurm
from headcount.lab._slurm_jobs import Call, SlurmOptions, in_chunks

pytest.importorskip("submitit", reason="the extra slurm is not installed")


@pytest.fixture
def slurm(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = slurm_stand_in.install(tmp_path_factory.mktemp("slurm"))
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_STAND_IN", str(folder))
    monkeypatch.setattr(_slurm, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(_slurm, "STATE_SECONDS", 0.2)
    return folder


def few(plan: lab.Plan) -> lab.Plan:
    """One array element."""
    return replace(plan, trials=tuple(t for t in plan.trials if t.coordinates["m"] == 8))


class Spare(Messages):
    """Stops the killing at the first death."""

    def message(self, text: str) -> None:
        """A death was told."""
        super().message(text)
        os.environ.pop("TOY_KILL", None)


def test_array_jobs_give_the_same_numbers_also_after_a_death(
    tmp_path: Path, plan: lab.Plan, slurm: Path, monkeypatch
) -> None:
    lab.run_plan(plan, tmp_path / "reference", executor="inline")
    monkeypatch.setenv("TOY_KILL", "8-2")
    reporter = Spare()
    sweep = lab.run_plan(plan, tmp_path / "out", executor="slurm:parallel=2", reporter=reporter)
    assert (sweep.run, sweep.failed) == (12, 0)
    assert_same(plan, tmp_path / "out", tmp_path / "reference")
    dead = sorted(text.split(":")[0] for text in reporter.messages if "ended as FAILED" in text)
    assert dead == ["m=8 seed=2"]  # seed 3 of the same element had not begun
    first, *others = (file.read_text() for file in sorted(slurm.glob("*.script")))
    assert "#SBATCH --array=0-2%2" in first
    assert others
    assert all("--array" not in other for other in others)
    assert "export PJRT_NPROC=1" in first
    assert list((tmp_path / "out" / "slurm").glob("*/jobs"))  # kept, as something died


def test_a_trial_that_hangs_ends_its_job_and_no_other_trial(
    tmp_path: Path, plan: lab.Plan, slurm: Path, monkeypatch
) -> None:
    monkeypatch.setenv("TOY_HANG", "8-1")
    policy = lab.Policy(time_limit=5.0, retries=0)
    sweep = lab.run_plan(few(plan), tmp_path, executor="slurm", policy=policy)
    assert (sweep.run, sweep.planned) == (4, 4)
    (problem,) = sweep.problems
    assert problem.label == "m=8 seed=1"
    assert "took longer than its time limit" in problem.reason


def test_a_dry_run_shows_the_submission(tmp_path: Path, slurm: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    place = ["--executor", "slurm:partition=short,time=30,mem_gb=2", "--out", str(tmp_path)]
    app(
        ["reproduce", "toy/mean", "--scale", "smoke", "--dry-run", *place],
        result_action="return_value",
    )
    shown = capsys.readouterr().out
    assert shown.startswith("#!/bin/bash\n")
    (command,) = (line for line in shown.splitlines() if line.startswith("srun "))
    assert command.endswith(str(tmp_path / "slurm" / "ID" / "jobs"))  # on one line, as sbatch wants
    for line in ("--array=0-2%3", "--partition=short", "--time=30", "--mem=2GB"):
        assert f"#SBATCH {line}" in shown
    assert "12 trials in 3 array elements" in shown
    assert not list(slurm.glob("*.script"))
    assert not list(tmp_path.iterdir())


def test_small_trials_share_an_element_and_groups_do_not_mix() -> None:
    calls = [
        Call({}, lab.Hint(group, seconds), Future())
        for group, seconds in [("a", 20.0), ("b", 30.0), ("a", 20.0), ("b", 500.0), ("a", 30.0)]
    ]
    chunks = [[call.hint.seconds for call in chunk] for chunk in in_chunks(calls, 60)]
    assert chunks == [[20.0, 20.0], [30.0], [30.0], [500.0]]
    slow = [Call({}, lab.Hint("a", 20.0, compiling=25.0), Future()) for _ in range(3)]
    assert [len(chunk) for chunk in in_chunks(slow, 60)] == [1, 1, 1]  # 25 s are compiling


@pytest.mark.parametrize(
    "text", ["colour=red", "time=-1", "time=1.5", "partition=", "account=x\nrm -rf y", "partition"]
)
def test_options_go_into_a_script_and_are_checked(text: str) -> None:
    with pytest.raises(core.BadArgument, match="executor"):
        SlurmOptions.from_text(text)


def test_without_slurm_it_says_so(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(core.BadArgument, match="finds no sbatch"):
        lab.run_plan(lab.make_plan(toy_figure.figure, "smoke"), tmp_path, executor="slurm")


class Meanwhile(Messages):
    """Does something once when a message with certain words comes."""

    def __init__(self, words: str, then: Callable[[], None]) -> None:
        super().__init__()
        self.words, self.then = words, then
        self.stalled: list[bool] = []

    def message(self, text: str) -> None:
        """Kept, and the moment noticed."""
        super().message(text)
        if self.words in text:
            self.words = "\0"
            self.then()

    def tick(self, sweep: lab.Sweep) -> None:
        """Whether the sweep says that it waits, and no time left."""
        if sweep.stalled:
            assert math.isnan(sweep.seconds_left()[0])
        self.stalled.append(sweep.stalled)


@pytest.mark.parametrize("remembers", [True, False])
def test_without_accounts_a_dead_job_is_noticed(
    tmp_path: Path, plan: lab.Plan, slurm: Path, monkeypatch, remembers: bool
) -> None:
    """All jobs wait, one is cancelled, and the folder has lost what is only there for Dask."""
    plan = few(plan)
    lab.run_plan(plan, tmp_path / "reference", executor="inline")
    (slurm / "no-accounts").touch()
    (slurm / "hold").touch()
    if not remembers:
        (slurm / "forgets").touch()
    monkeypatch.setattr(_slurm, "IDLE_SECONDS", 0.3)

    def cancel_one() -> None:
        subprocess.run([slurm / "scancel", "100"], check=True)
        for probe in (tmp_path / "out" / "running").glob("*.probe"):
            probe.unlink()
        (slurm / "hold").unlink()

    reporter = Meanwhile("all jobs wait in SLURM's queue (Resources)", cancel_one)
    sweep = lab.run_plan(plan, tmp_path / "out", executor="slurm", reporter=reporter)
    assert "SLURM keeps no accounts here" in reporter.messages[0]
    assert True in reporter.stalled
    assert (sweep.run, sweep.failed) == (4, 0)
    assert sum("trying once more" in text for text in reporter.messages) == 0  # no trial died
    assert_same(plan, tmp_path / "out", tmp_path / "reference")


def test_a_controller_that_is_away_is_waited_for(
    tmp_path: Path, plan: lab.Plan, slurm: Path, monkeypatch
) -> None:
    monkeypatch.setattr(_slurm, "AGAIN_SECONDS", 0.1)
    (slurm / "away").touch()
    reporter = Meanwhile("SLURM takes no jobs now", (slurm / "away").unlink)
    sweep = lab.run_plan(few(plan), tmp_path / "out", executor="slurm", reporter=reporter)
    assert (sweep.run, sweep.failed) == (4, 0)
    monkeypatch.setattr(_slurm, "AWAY_SECONDS", 0.2)
    (slurm / "away").touch()
    with pytest.raises(lab.ExecutionError, match="run the same command again"):
        lab.run_plan(few(plan), tmp_path / "other", executor="slurm")


def test_what_sbatch_refuses_is_not_waited_for(tmp_path: Path, plan: lab.Plan, slurm: Path) -> None:
    with pytest.raises(lab.ExecutionError, match=r"sbatch did not take the jobs: .*nowhere"):
        lab.run_plan(plan, tmp_path, executor="slurm:partition=nowhere")


def test_a_node_with_other_code_is_left_out(
    tmp_path: Path, plan: lab.Plan, slurm: Path, monkeypatch
) -> None:
    plan = few(plan)
    lab.run_plan(plan, tmp_path / "reference", executor="inline")
    monkeypatch.setenv("PATH_ON_n1", other_toy(tmp_path))
    reporter = Messages()
    sweep = lab.run_plan(plan, tmp_path / "out", executor="slurm", reporter=reporter)
    assert (sweep.run, sweep.failed) == (4, 0)
    (told,) = (text for text in reporter.messages if "left out" in text)
    assert told.startswith("the node n1 does not fit and is left out: toy_figure:measure is ")
    _, *later = (file.read_text() for file in sorted(slurm.glob("*.script")))
    assert all("--exclude=n1" in script for script in later)
    assert_same(plan, tmp_path / "out", tmp_path / "reference")


def test_jobs_and_folder_of_a_killed_client_are_ended(
    tmp_path: Path, plan: lab.Plan, slurm: Path
) -> None:
    """What is not surely left by a dead client of ours stays."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    machine = owner().partition("-")[0]
    dead = f"sweep.{machine}-{gone.pid}-"
    stay = [f"{dead}00000002.jobs", f"{dead}00000003.jobs", f"sweep.{owner()}-00000004.jobs"]
    for name in (f"{dead}00000001.jobs", *stay, "notes"):
        (tmp_path / "slurm" / name / "answers").mkdir(parents=True)
    (tmp_path / "slurm" / stay[0] / "kept").touch()
    (tmp_path / "slurm" / stay[1] / "answers").rmdir()
    (slurm / "hold").touch()
    (slurm / "job.sh").write_text("#SBATCH --job-name=headcount-00000001\n")
    subprocess.run([slurm / "sbatch", slurm / "job.sh"], check=True)
    _slurm._end_abandoned(tmp_path / "slurm")
    assert (slurm / "100.state").read_text() == "CANCELLED"
    assert sorted(path.name for path in (tmp_path / "slurm").iterdir()) == sorted([*stay, "notes"])
