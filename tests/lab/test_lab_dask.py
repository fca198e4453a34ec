"""A real Dask scheduler and two workers: same numbers, deaths, other environments."""

from __future__ import annotations

import math
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import toy_figure
from dask_cluster import MOST_SECONDS, Cluster
from lab_checks import Messages, assert_same, other_toy

from headcount import core, lab
from headcount.lab import _dask, _remote

pytest.importorskip("distributed", reason="the extra dask is not installed")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("dask")) as cluster:
        cluster.start_worker()
        cluster.start_worker()
        cluster.wait_for_workers(2)
        yield cluster


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference")
    lab.run_plan(lab.make_plan(toy_figure.figure, "smoke"), folder, executor="inline")
    return folder


def test_same_numbers_through_the_shared_folder(
    tmp_path: Path, plan: lab.Plan, reference: Path, cluster: Cluster
) -> None:
    sweep = lab.run_plan(plan, tmp_path, executor=f"dask://{cluster.address}")
    assert (sweep.run, sweep.failed) == (12, 0)
    assert_same(plan, tmp_path, reference)
    assert not list((tmp_path / "running").iterdir())


def test_same_numbers_through_the_scheduler(
    tmp_path: Path, plan: lab.Plan, reference: Path, cluster: Cluster, monkeypatch
) -> None:
    """A worker that does not see the probe file writes nothing into the folder by itself."""
    probe = (str(tmp_path / "running" / "gone.probe"), "token")
    monkeypatch.setattr(_dask, "make_probe", lambda folder: probe)
    arrived: list[dict[str, Any]] = []
    original = _dask.take_over

    def counted(store: lab.Store, task: Any, answer: dict[str, Any]) -> dict[str, Any]:
        arrived.append(answer["record"])
        return original(store, task, answer)

    monkeypatch.setattr(_dask, "take_over", counted)
    sweep = lab.run_plan(plan, tmp_path, executor=f"dask://{cluster.address}")
    assert (sweep.run, sweep.failed, len(arrived)) == (12, 0, 12)
    assert_same(plan, tmp_path, reference)
    assert not list(cluster.folder.rglob("trials/*/*.h5"))  # nothing is left on the workers


def test_another_environment_is_refused(
    tmp_path: Path, plan: lab.Plan, cluster: Cluster, monkeypatch
) -> None:
    ours = _remote.environment([toy_figure.toy.location])
    monkeypatch.setattr(_dask, "environment", lambda _: {**ours, "numpy": "1.2.3"})
    with pytest.raises(lab.ExecutionError, match=r"does not fit: numpy is .* there, 1\.2\.3 here"):
        lab.run_plan(plan, tmp_path, executor=f"dask://{cluster.address}")
    assert not lab.Store(tmp_path).read(plan.trials[0].address)


def test_the_list_of_workers_is_never_empty_in_between(cluster: Cluster) -> None:
    """A timer of the client's empties what the client itself knows of workers."""
    dask = pytest.importorskip("dask")
    with dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}):
        executor = _dask.DaskExecutor(cluster.address)
    assert {len(executor._workers()) for _ in range(300)} == {2}
    executor.close(gently=True)


def test_a_worker_with_other_code_is_left_out(
    tmp_path: Path, plan: lab.Plan, reference: Path, cluster: Cluster, monkeypatch
) -> None:
    """Asked at the start; and with every trial, as it may join later."""
    odd = cluster.start_worker(PYTHONPATH=other_toy(tmp_path))
    place = f"dask://{cluster.address}"
    try:
        cluster.wait_for_workers(3)
        reporter = Messages()
        sweep = lab.run_plan(plan, tmp_path / "out", executor=place, reporter=reporter)
        assert (sweep.run, sweep.failed) == (12, 0)
        (told,) = (text for text in reporter.messages if "left out" in text)
        assert re.search(r"toy_figure:measure is \w+, .* there, .*; it is left out", told)
        assert_same(plan, tmp_path / "out", reference)
        monkeypatch.setattr(_dask.DaskExecutor, "_check_workers", lambda self: None)
        sweep = lab.run_plan(plan, tmp_path / "late", executor=place)
        assert (sweep.run, sweep.failed) == (12, 0)
        assert_same(plan, tmp_path / "late", reference)
    finally:
        odd.terminate()
        odd.wait()


def test_without_workers_it_says_so_and_tells_no_time_left(
    tmp_path: Path, plan: lab.Plan, reference: Path, monkeypatch
) -> None:
    monkeypatch.setattr(_dask, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(_dask, "IDLE_SECONDS", 0.5)
    log = tmp_path / "calls.log"
    with Cluster(tmp_path, allowed_failures=0) as alone:
        victim = alone.start_worker(TOY_PAUSE="60", TOY_LOG=str(log))
        alone.wait_for_workers(1)
        reporter = Restart(log.exists, victim, alone.start_worker)
        place = f"dask://{alone.address}"
        sweep = lab.run_plan(plan, tmp_path / "out", executor=place, reporter=reporter)
    assert (sweep.run, sweep.failed) == (12, 0)
    assert True in reporter.stalled
    assert_same(plan, tmp_path / "out", reference)


def test_a_dying_worker_is_replaced_like_an_own_one(
    tmp_path: Path, plan: lab.Plan, reference: Path, cluster: Cluster
) -> None:
    log = tmp_path / "calls.log"
    victim = cluster.start_worker(TOY_PAUSE="60", TOY_LOG=str(log))
    cluster.wait_for_workers(3)
    reporter = KillWhen(log.exists, victim)
    place = f"dask://{cluster.address}"
    sweep = lab.run_plan(plan, tmp_path / "out", executor=place, reporter=reporter)
    assert victim.wait(MOST_SECONDS) == -signal.SIGKILL
    assert any("Dask workers that computed it died" in text for text in reporter.messages)
    assert (sweep.run, sweep.failed) == (12, 0)
    assert_same(plan, tmp_path / "out", reference)


@pytest.mark.parametrize(
    ("workers", "limited"),
    [
        ([{"nthreads": 1, "nanny": "tcp://a"}] * 2, True),
        ([{"nthreads": 1, "nanny": "tcp://a"}, {"nthreads": 1, "nanny": None}], False),
        ([{"nthreads": 2, "nanny": "tcp://a"}], False),
    ],
)
def test_time_limits_hold_where_the_end_of_a_process_takes_one_trial_along(
    workers: list[dict[str, object]], limited: bool
) -> None:
    assert _dask.replaces_workers(workers) is limited


class KillWhen(Messages):
    """Kills a process once it has begun a trial."""

    def __init__(self, begun: Callable[[], bool], victim: subprocess.Popen[bytes]) -> None:
        super().__init__()
        self.begun, self.victim = begun, victim

    def tick(self, sweep: lab.Sweep) -> None:
        """Look, and kill."""
        if self.begun():
            self.victim.kill()


class Restart(KillWhen):
    """Starts another worker when it is said that there is none."""

    def __init__(self, begun: Any, victim: Any, start: Callable[[], Any]) -> None:
        super().__init__(begun, victim)
        self.start, self.stalled = start, list[bool]()

    def message(self, text: str) -> None:
        """Do as told."""
        super().message(text)
        if "has no worker; start some with: dask worker 127.0.0.1:" in text:
            self.start()

    def tick(self, sweep: lab.Sweep) -> None:
        """Kill once; while it stands still no time left is told."""
        super().tick(sweep)
        if sweep.stalled:
            assert math.isnan(sweep.seconds_left()[0])
        self.stalled.append(sweep.stalled)


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1", "127.0.0.1:x", "a b:1", ""])
def test_an_address_without_a_port_is_bad_input(address: str) -> None:
    with pytest.raises(core.BadArgument, match="HOST:PORT"):
        lab.open_executor(f"dask://{address}", None)


def test_no_scheduler_is_bad_input(monkeypatch) -> None:
    monkeypatch.setattr(_dask, "CONNECT_SECONDS", 0.2)
    with pytest.raises(core.BadArgument, match="no Dask scheduler answers"):
        lab.open_executor("dask://127.0.0.1:1", None)
