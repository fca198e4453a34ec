"""Audits of finished runs: a file that holds every iterate is not trained again, in any paper."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headcount.cli import run as command
from headcount.core import papers
from headcount.theory import _iterates, claims
from headcount.training import Run, TrainConfig, build, read_run, run_config

TINY = {
    "deora2024": {"n": 5, "data_options": {"T": 4, "zeta": 0.25}, "eta": 0.2},
    "wu2023": {"n": 3, "data_options": {"T": 2, "d": 3}},
}
COMPLETE = {"dtype": "float64", "record": ("iterates",), "record_every": 1}
NOTHING = "nothing was trained: every iterate is in the run"
AGAIN = "trained again from its configuration"


def config(paper: str, **changes: object) -> TrainConfig:
    return TrainConfig.of({"model": paper, "width": 4, "steps": 3, **TINY[paper], **changes})


def losses_of(subject: Any) -> np.ndarray:
    """What the subject read off the iterates."""
    return (subject.history if hasattr(subject, "history") else subject.trace).loss


def never(*_: object, **__: object) -> None:
    raise AssertionError("trained")


@pytest.fixture(scope="module", params=list(TINY))
def stored(request, tmp_path_factory) -> tuple[str, object, Run]:
    """A paper, the path of a complete file of two of its seeds, and the run that it holds."""
    path = tmp_path_factory.mktemp("runs") / "run.nc"
    run_config(config(request.param, seeds=(0, 1), **COMPLETE)).save(path)
    return request.param, path, read_run(path)


def test_a_complete_file_is_not_trained_again(stored, monkeypatch) -> None:
    paper, _, run = stored
    subject = papers[paper].part("subject")
    wanted = subject(config(paper), 1, delta=0.05)
    assert NOTHING not in wanted.note
    monkeypatch.setattr(_iterates, "run_config", never)
    found = subject(config(paper), 1, delta=0.05, run=run)
    assert NOTHING in found.note
    np.testing.assert_allclose(losses_of(found), losses_of(wanted), rtol=1e-11)


def test_what_a_file_lacks_is_said_and_trained(stored) -> None:
    paper, _, run = stored
    subject = papers[paper].part("subject")
    found = subject(config(paper), 1, delta=0.05, run=replace(run, records={}))
    assert "does not hold the iterate of every step" in found.note
    assert AGAIN in found.note
    assert len(losses_of(found)) == 4


def test_a_run_without_an_axis_of_seeds_is_read_too(stored) -> None:
    paper, _, run = stored
    one = config(paper, seeds=(0,))
    alone = run_config(config(paper, **COMPLETE)).without_seeds()
    path, note = _iterates.stored_iterates(alone, 0, one, build(one))
    assert note == NOTHING
    for name, block in path._asdict().items():
        stored_block = run.records[f"iterate_{name}"][0]
        np.testing.assert_allclose(block, stored_block, rtol=1e-11, atol=1e-14)


def test_the_command_reads_it(stored, monkeypatch, capsys) -> None:
    paper, path, _ = stored
    some = claims.of_paper(paper)[:1]
    monkeypatch.setattr(type(claims), "of_paper", lambda self, key: some)
    monkeypatch.setattr(_iterates, "run_config", never)
    assert command(["audit", str(path), "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any(note.startswith(NOTHING) for note in notes)


def test_a_start_on_fresh_samples_is_that_of_the_file() -> None:
    """deora2024's two-phase start takes samples beyond those for validation: n_val moves it."""
    two_phase = config("deora2024", init="two-phase", n_val=3)
    run = run_config(two_phase.model_copy(update=COMPLETE))
    found = papers["deora2024"].part("subject")(two_phase, 0, delta=0.05, run=run)
    assert NOTHING in found.note
