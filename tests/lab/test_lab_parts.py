"""The code behind a measurement: what its module imports, and the versions of libraries."""

from __future__ import annotations

import ast
import importlib
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_figure
from lab_checks import assert_same

from headcount import core, lab
from headcount.core._files import json_text
from headcount.lab import _batches, _closure, _record, _remote
from headcount.lab._closure import Code, code_behind
from headcount.lab._collect import to_dataset
from headcount.lab._findings import KINDS
from headcount.lab._plan import Cost, survey
from headcount.lab._stored import StoredTrial

FILES = {
    "smith/__init__.py": "",
    "smith/figure.py": "import numpy\nfrom . import parts\ndef measure(): from smith.deep import a",
    "smith/parts.py": "import flat_helper, json\nfrom headcount import core\n",
    "smith/deep/__init__.py": "from .. import constants as k\n",
    "smith/deep/a.py": "from .b import value\n",
    "smith/deep/b.py": "value = 1.0\n",
    "smith/constants.py": "",
    "smith/unused.py": "",
    "flat_helper.py": "import scipy.optimize\n",
    "flat_unused.py": "",
}


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Code]:
    """The code behind smith.figure as a fresh process would see it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def fresh() -> Code:
        importlib.invalidate_caches()
        code_behind.cache_clear()
        _closure._hash.cache_clear()
        return code_behind("smith.figure")

    return fresh


def test_a_change_of_anything_imported_changes_the_hash(
    tmp_path: Path, look: Callable[[], Code]
) -> None:
    before = look()
    versions = {name: metadata.version(name) for name in ("numpy", "scipy")}
    assert before.libraries == versions
    for name in FILES:
        (tmp_path / name).write_text(f"{FILES[name]}\nchanged = 1\n")
        assert (look().hash != before.hash) is ("unused" not in name), name
        (tmp_path / name).write_text(FILES[name])
    assert look() == before
    assert "smith" not in sys.modules  # nothing of it has run


def test_a_worker_with_another_helper_differs(tmp_path: Path, look: Callable[[], Code]) -> None:
    def found() -> dict[str, str]:
        look()
        _remote._measurement_code.cache_clear()
        return _remote.environment(["smith.figure:measure"])

    here = found()
    assert {"optax", "scipy", "matfree", "numpy", "jax", "jaxlib"} < set(here)
    (tmp_path / "smith" / "deep" / "b.py").write_text("value = 2.0\n")
    told = _remote.differences(here, found())
    assert told.startswith("smith.figure:measure is ")
    for name in [name for name in sys.modules if name.startswith(("smith", "flat_"))]:
        del sys.modules[name]


NO_NUMBERS = {
    *("beartype", "distributed", "h5py", "jaxtyping", "matplotlib", "pooch", "pydantic"),
    *("requests", "rich", "safetensors", "submitit", "xarray"),
}
"""Libraries that check, read, fetch, carry or draw."""
LAYERS = ("core", "models", "data", "kernels", "training", "theory", "lab", "papers")


def test_every_library_of_ours_that_computes_is_compared() -> None:
    modules = {name.replace("python-", "") for name in _record._PACKAGES}
    source = Path(_record.__file__).parents[1]
    found = set[str]()
    for layer in LAYERS:
        for file in source.glob(f"{layer}/**/*.py"):
            tree = ast.parse(file.read_text())
            for node in ast.walk(tree):
                if isinstance(node, ast.Import):
                    found |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    found.add(str(node.module).partition(".")[0])
    libraries = found - set(sys.stdlib_module_names)
    assert libraries - modules - NO_NUMBERS == set()
    assert modules - libraries <= {"jaxlib", "headcount"}


def measure_together(
    configs: Sequence[dict[str, Any]], contexts: Sequence[lab.Context]
) -> list[dict[str, Any]]:
    """Notes how many came together, then one after another."""
    with Path(os.environ["TOY_LOG"]).open("a") as log:
        log.write(f"together:{len(configs)}\n")
    return [toy_figure.measure(c, context) for c, context in zip(configs, contexts, strict=True)]


together = replace(toy_figure.toy, batch=measure_together)


@pytest.fixture
def plan() -> lab.Plan:
    """Two widths, 18 seeds each, that may go together."""
    plain = lab.make_plan(toy_figure.figure, "smoke", seeds=range(18))
    trials = [replace(t, measurement=together) for t in plain.trials if t.coordinates["m"] < 100]
    return replace(plain, trials=tuple(trials))


@pytest.fixture
def fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_batches, "BATCH", 8)
    monkeypatch.setattr(_batches, "WORTH", 16)


def batching() -> lab.TrialExecutor:
    return _batches.BatchingExecutor(lab.InlineExecutor())


@pytest.mark.usefixtures("fewer")
def test_together_and_alone_are_the_same(tmp_path: Path, plan: lab.Plan, calls) -> None:
    executor = batching()
    executor.window = 1000
    sweep = lab.run_plan(plan, tmp_path / "together", executor=executor)
    assert (sweep.run, sweep.failed) == (36, 0)
    assert [call for call in calls() if "together" in call] == ["together:8"] * 4
    assert len(calls()) == 36 + 4  # two of each width were left for running alone
    lab.run_plan(plan, tmp_path / "alone", executor="inline")
    assert_same(plan, tmp_path / "together", tmp_path / "alone")
    record = lab.Store(tmp_path / "together").read(plan.trials[0].address)
    assert record is not None
    assert 0 < record.record["seconds"] < 5


@pytest.mark.usefixtures("fewer")
@pytest.mark.parametrize(("kind", "outcome"), [("FAIL", "failed"), ("DIVERGE", "diverged")])
def test_one_bad_trial_spoils_no_other(
    tmp_path: Path, plan: lab.Plan, calls, monkeypatch, kind: str, outcome: str
) -> None:
    monkeypatch.setenv(f"TOY_{kind}", "8-3")
    executor = batching()
    executor.window = 1000
    sweep = lab.run_plan(plan, tmp_path, executor=executor)
    assert [(p.label, p.outcome) for p in sweep.problems] == [("m=8 seed=3", outcome)]


class Deadly(lab.InlineExecutor):
    """A worker dies of every batch with the trial 8-3, and of that trial alone."""

    def submit_trial(self, task: Mapping[str, Any], hint: lab.Hint) -> Future[dict[str, Any]]:
        """Run it, unless it is deadly."""
        configs = [each["config"] for each in task.get("batch", [task])]
        if not any((config["m"], config["seed"]) == (8, 3) for config in configs):
            return super().submit_trial(task, hint)
        future: Future[dict[str, Any]] = Future()
        future.set_exception(lab.WorkerDied("killed"))
        return future


@pytest.mark.usefixtures("fewer")
def test_who_dies_with_others_is_tried_again_alone(tmp_path: Path, plan: lab.Plan, calls) -> None:
    executor = _batches.BatchingExecutor(Deadly())
    executor.window = 1000
    sweep = lab.run_plan(plan, tmp_path, executor=executor)
    assert [(p.label, p.outcome) for p in sweep.problems] == [("m=8 seed=3", "failed")]
    assert sweep.run == 36
    assert [call for call in calls() if "together" in call] == ["together:8"] * 3


class Noting(lab.InlineExecutor):
    """Notes what each program is said to cost, and runs nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.hints: list[lab.Hint] = []

    def submit_trial(self, task: Mapping[str, Any], hint: lab.Hint) -> Future[dict[str, Any]]:
        """Note the hint."""
        self.hints.append(hint)
        return Future()


@pytest.mark.usefixtures("fewer")
def test_trials_together_cost_what_they_cost_one_by_one(tmp_path: Path, plan: lab.Plan) -> None:
    """In seconds and in bytes: a batch holds all of its trials at once."""
    noting = Noting()
    executor = _batches.BatchingExecutor(noting)
    trials = [trial for trial in plan.trials if trial.coordinates["m"] == 8]
    executor.begin(tmp_path, trials)
    for k, trial in enumerate(trials):
        task = {"address": trial.address, "config": trial.config}
        executor.submit_trial(task, lab.Hint("m=8", (k + 1) / 64, 2**k, 3.0))
    executor.flush()
    own = range(len(trials))
    parts = [own[:8], own[8:16], *([k] for k in own[16:])]
    assert [hint.bytes for hint in noting.hints] == [sum(2**k for k in part) for part in parts]
    seconds = [sum(k + 1 for k in part) / 64 for part in parts]
    assert [hint.seconds for hint in noting.hints] == seconds
    assert {hint.compiling for hint in noting.hints} == {3.0}


@pytest.mark.usefixtures("fewer")
def test_a_papers_seeds_train_together_as_alone(tmp_path: Path, monkeypatch) -> None:
    """The one measurement of ours that declares it, bit for bit."""
    monkeypatch.setattr(_batches, "BATCH", 2)
    monkeypatch.setattr(_batches, "WORTH", 2)
    from headcount.papers.arda2026.figures.training import training

    config = {"n": 20, "steps": 5, "width": 4, "keep": ["average"], "dtype": "float32"}
    trials = tuple(
        lab.Trial(training, {**TRAINING, **config, "seeds": [s]}, {"seed": s}, "g") for s in (3, 7)
    )
    plan = lab.Plan(toy_figure.figure, "smoke", (3, 7), {}, {}, trials)
    executor = batching()
    executor.window = 10
    monkeypatch.setattr(_batches, "SMALL_SECONDS", 100.0)
    for name, place in (("together", executor), ("alone", "inline")):
        assert lab.run_plan(plan, tmp_path / name, executor=place).failed == 0
    assert_same(plan, tmp_path / "together", tmp_path / "alone")


TRAINING = {"batch_size": None, "data_options": {"T": 4, "d": 3, "pool": 32}}


def test_cost_packs_longest_first() -> None:
    seconds = {8: 3.0, 32: 2.0, 128: 2.0}
    measurement = lab.Measurement(
        "c",
        1,
        toy_figure.measure,
        {},
        lambda config: (seconds[config["m"]], 10.0 * config["m"]),
        0.0,
    )
    trials = [lab.Trial(measurement, {"m": m}, {"m": m}) for m in seconds]
    assert lab.cost(trials, 2) == Cost(4.0, 1600.0, 2)
    assert lab.cost(trials, 1) == Cost(7.0, 1280.0, 1)
    assert lab.cost([], 2).seconds == 0


def stored(**payload: Any) -> StoredTrial:
    arrays = {name: np.asarray(value) for name, value in payload.items()}
    return StoredTrial(arrays, {"outcome": "ok", "seconds": 1.0})


def test_ragged_trials_fall_into_place() -> None:
    """Own step coordinates are united, uncoordinated entries counted, gaps are NaN."""
    outputs = {"loss": ("step",), "step": ("step",), "grid": ("step", "k"), "best": ()}
    measurement = lab.Measurement("r", 1, toy_figure.measure, outputs)
    trials = [
        lab.Trial(measurement, {"model": a, "seed": s}, {"model": a, "seed": s})
        for a in ("t", "rnn")
        for s in (3, 1)
    ]
    found: dict[str, StoredTrial | None] = {t.address: None for t in trials}
    found[trials[0].address] = stored(loss=[1.0, 2.0], step=[0, 10], grid=[[1.0], [2.0]], best=0.5)
    found[trials[3].address] = stored(
        loss=[5.0, 6.0], step=[5, 10], grid=[[1.0, 2], [3, 4]], best=0.25
    )
    failed = StoredTrial({}, {"outcome": "failed", "reason": "r", "seconds": 2.0})
    found[trials[1].address] = failed
    data = to_dataset(trials, found)
    assert data["loss"].dims == ("model", "seed", "step")
    assert data["step"].values.tolist() == [0, 5, 10]
    np.testing.assert_array_equal(data["loss"].sel(model="t", seed=3), [1, np.nan, 2])
    np.testing.assert_array_equal(data["loss"].sel(model="rnn", seed=1), [np.nan, 5, 6])
    np.testing.assert_array_equal(
        data["grid"].sel(model="rnn", seed=1), [[np.nan, np.nan], [1, 2], [3, 4]]
    )
    np.testing.assert_array_equal(data["best"], [[0.5, np.nan], [np.nan, 0.25]])
    assert data["r_outcome"].values.tolist() == [["ok", "failed"], ["missing", "ok"]]
    assert float(data["r_seconds"].sel(model="t", seed=1)) == 2.0


C, N, I = lab.CONFIRMED, lab.NOT_CONFIRMED, lab.INCONCLUSIVE


@pytest.mark.parametrize(
    ("low", "high", "expected", "outcome"),
    [
        (0.2, 0.4, (0.0, 1.0), C),
        (0.0, 1.0, (0.0, 1.0), C),
        (-0.1, 0.4, (0.0, 1.0), I),
        (0.5, 1.1, (0.0, 1.0), I),
        (-1.0, 2.0, (0.0, 1.0), I),
        (-0.4, -0.2, (0.0, 1.0), N),
        (1.1, 1.2, (0.0, 1.0), N),
        (1e9, 2e9, (0.0, math.inf), C),
        (0.0, 0.0, (0.0, math.inf), I),
        (1.0, 1.0, (1.0, 1.0), C),
        (math.nan, math.nan, (0.0, 1.0), I),
    ],
)
def test_where_the_interval_lies(low, high, expected, outcome) -> None:
    estimate = lab.Estimate((low + high) / 2, low, high, 5)
    verdict = lab.inside("c", estimate, expected)
    assert verdict.outcome == outcome
    assert (verdict.interval, verdict.expected) == ((low, high), expected) or math.isnan(low)
    json.loads(json_text(verdict.to_json()), parse_constant=pytest.fail)


def test_a_source_is_quoted_with_its_place() -> None:
    source = lab.Source("more heads are faster", "App. G")
    found = lab.threshold("c", np.ones(5), above=0.5, source=source)
    said = {"kind": "paper", "says": "more heads are faster", "where": "App. G"}
    assert found.to_json()["source"] == said
    assert lab.threshold("c", np.ones(5), above=0.5).source == lab.OURS != lab.SANITY
    assert [s.kind for s in (source, lab.OURS, lab.SANITY)] == list(KINDS)
    with pytest.raises(core.BadArgument, match="has a place"):
        lab.Source("more heads are faster")


def test_what_stands_in_is_never_judged_and_only_a_run_may_prepare(tmp_path: Path) -> None:
    import dataclasses

    import toy_figure

    prepared: list[int] = []
    figure = dataclasses.replace(
        toy_figure.figure,
        prepare=lambda trials: prepared.append(len(trials)),
        stand_in=lambda trials: f"{len(trials)} made-up numbers",
    )
    plan = lab.make_plan(figure, "smoke")
    survey(plan, lab.Store(tmp_path))
    assert prepared == []
    for _ in range(2):  # the second run finds everything stored
        lab.run_plan(plan, tmp_path, workers=0)
    assert prepared == [len(plan.unique)]
    count = len(plan.trials)
    for verdict in lab.collect(plan, lab.Store(tmp_path)).verdicts:
        assert verdict.outcome == lab.NOT_JUDGED
        assert verdict.sentence.startswith(f"not judged: {count} made-up numbers; ")
    judged = lab.collect(lab.make_plan(toy_figure.figure, "smoke"), lab.Store(tmp_path)).verdicts
    assert lab.NOT_JUDGED not in {verdict.outcome for verdict in judged}
