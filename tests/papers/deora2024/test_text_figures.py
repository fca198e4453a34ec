"""The figures on text: smoke runs, options, resuming, and the kernel against one by hand."""

from __future__ import annotations

import importlib.metadata
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "models"))
from reference_encoder import write_roberta

from headcount import lab, report
from headcount.core import BadArgument
from headcount.data import pad
from headcount.models.text import LayerwiseMargin, load_checkpoint, random_encoder
from headcount.papers.deora2024.figures import text, text_kernel
from headcount.papers.wu2023.figures.fig1 import pretrained_tokens

OWN = {"model": "tiny", "data": "templates"}
CONFIG = {
    "sentences": 40, "validated": 20, "epochs": 2, "batch_size": 16, "records": 3, "longest": 128,
    "model": "tiny", "data": "templates", "head_rule": "mask", "pooling": "auto", "eta": 1e-3,
    "weight_decay": 0.01, "h": 3, "seed": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("figure", "rule"),
    [("deora2024/fig6", "mask"), ("deora2024/fig6", "resplit"), ("deora2024/text-kernel", "mask")],
)
def test_smoke_scale_runs_to_verdicts_and_files(figure: str, rule: str, tmp_path: Path) -> None:
    plan = lab.make_plan(figure, "smoke", [0], {**OWN, "heads": rule})
    sweep = lab.run_plan(plan, tmp_path, workers=0)
    assert sweep.problems == []
    collection = lab.collect(plan, lab.Store(tmp_path))
    assert len({verdict.claim for verdict in collection.verdicts}) == len(collection.verdicts)
    assert all(np.isfinite(verdict.value) for verdict in collection.verdicts)
    drawn = report.render(collection, "svg")["svg"].decode()
    assert "RANDOM" in drawn  # its face says that nothing was pretrained
    for verdict in collection.verdicts:  # and so does every verdict, whatever the scale
        assert verdict.outcome == lab.NOT_JUDGED
        assert verdict.sentence.startswith("not judged: a tiny RANDOM encoder")
        assert "made-up sentences" in verdict.sentence


def not_installed(name: str) -> Any:
    raise importlib.metadata.PackageNotFoundError(name)


def states(plan: lab.Plan, folder: Path) -> set[str]:
    """What has become of the trials."""
    store = lab.Store(folder)
    return {store.state(address)[0] for address in plan.unique}


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """No data folder, an empty cache, no pretrained model, no network; what was asked of it."""
    import pooch
    import requests

    for name in ("HEADCOUNT_MODEL", "HEADCOUNT_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(importlib.metadata, "distribution", not_installed)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    asked: list[str] = []

    def refuse(address: str, *_: Any, **__: Any) -> str:
        asked.append(address)
        raise requests.ConnectionError("no network")

    monkeypatch.setattr(pooch, "retrieve", refuse)
    return asked


@pytest.mark.parametrize("figure", ["deora2024/fig6", "deora2024/text-kernel"])
def test_on_a_bare_machine_auto_takes_what_ships_and_says_so(
    figure: str, bare_machine: list[str]
) -> None:
    for scale in lab.SCALES:
        plan = lab.make_plan(figure, scale)
        taken = {(trial.config["model"], trial.config["data"]) for trial in plan.trials}
        assert taken == {("tiny", "templates")}
        assert "RANDOM" in plan.stand_in
        assert "made-up" in plan.stand_in
        plan.figure.prepare(plan.trials)
    assert bare_machine == []


@pytest.mark.parametrize(
    ("figure", "asked"),
    [
        ("deora2024/fig6", {"model": "tiny", "data": "sst2-sentences"}),
        ("deora2024/fig6", {"model": "roberta-base", "data": "templates"}),
        ("wu2023/fig8", {"dataset": "mnist"}),
    ],
)
def test_what_is_asked_for_by_name_is_fetched_by_the_run_and_not_by_its_plan(
    figure: str, asked: dict[str, str], bare_machine: list[str], tmp_path: Path
) -> None:
    plan = lab.make_plan(figure, "quick", [0], asked)
    assert states(plan, tmp_path / "out") == {"missing"}
    assert bare_machine == []
    with pytest.raises(BadArgument, match="could not be downloaded"):
        lab.run_plan(plan, tmp_path / "out", workers=0)
    assert len(bare_machine) > 0
    assert "failed" not in states(plan, tmp_path / "out")


def test_a_bad_checkpoint_stops_the_run_before_its_first_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").mkdir()
    folder = write_roberta(tmp_path / "model")
    monkeypatch.setenv("HEADCOUNT_MODEL", str(folder))
    plan = lab.make_plan("deora2024/fig6", "smoke", [0], {"model": "folder", "data": "templates"})
    assert {trial.config["h"] for trial in plan.trials} == {1, 3}  # not 12: it has three heads
    assert plan.stand_in == "made-up sentences that ship with Headcount"
    plan.figure.prepare(plan.trials)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    plan = lab.make_plan("deora2024/fig6", "smoke", [0], {"model": "folder", "data": "templates"})
    with pytest.raises(BadArgument, match="is not a safetensors file"):
        lab.run_plan(plan, tmp_path / "out", workers=0)
    assert states(plan, tmp_path / "out") == {"missing"}


def test_what_no_address_is_known_of_is_not_even_planned(bare_machine: list[str]) -> None:
    with pytest.raises(BadArgument, match="no address is known"):
        lab.make_plan("deora2024/fig6", "quick", options={"model": "tiny", "data": "imdb"})
    with pytest.raises(BadArgument, match="no pretrained encoder is at hand"):
        lab.make_plan("deora2024/fig6", "quick", options={"model": "minilm"})
    with pytest.raises(BadArgument, match="no pretrained encoder is at hand"):
        lab.make_plan("wu2023/fig1", "quick", options={"vectors": "pretrained"})
    assert lab.make_plan("wu2023/fig1", "quick").trials[0].config["text"] == "sample"


def test_real_sentences_and_weights_are_no_stand_in() -> None:
    plan = lab.make_plan("deora2024/fig6", "smoke", [0], {"model": "minilm", "data": "templates"})
    (trial, *_) = plan.trials
    assert plan.stand_in == "made-up sentences that ship with Headcount"
    real = replace(trial, config={**trial.config, "data": "imdb"})
    assert plan.figure.stand_in([real]) == ""


def test_the_papers_numbers_and_the_options_reach_the_trials() -> None:
    own = {**OWN, "model": "minilm"}
    (first, *_) = lab.make_plan("deora2024/fig6", "paper", options=own).unique.values()
    wanted = {"eta": 5e-6, "epochs": 5, "batch_size": 32, "model": "minilm", "head_rule": "mask"}
    assert {name: first.config[name] for name in wanted} == wanted
    own |= {"rate": "2e-5", "heads": "resplit", "pooling": "first"}
    (first, *_) = lab.make_plan("deora2024/fig6", "paper", options=own).unique.values()
    assert (first.config["eta"], first.config["head_rule"]) == (2e-5, "resplit")
    assert first.config["pooling"] == "first"


class Stopped(Exception):
    """The trial was interrupted after its checkpoint."""


class StopAtFirst(lab.PlainContext):
    """Saves one state and stops, or goes on from one."""

    def __init__(self, state: Any = None) -> None:
        super().__init__()
        self.state = state

    def restore(self) -> Any:
        return self.state

    def checkpoint_due(self) -> bool:
        return self.state is None

    def checkpoint(self, state: Any) -> bool:
        self.state = {name: np.array(value) for name, value in state.items()}
        raise Stopped


def test_a_resumed_run_is_the_uninterrupted_one() -> None:
    whole = text.measure_finetuning(CONFIG, lab.PlainContext())
    context = StopAtFirst()
    with pytest.raises(Stopped):
        text.measure_finetuning(CONFIG, context)
    rest = text.measure_finetuning(CONFIG, StopAtFirst(context.state))
    for name, values in whole.items():
        np.testing.assert_array_equal(rest[name], values, err_msg=name)
    assert np.isnan(whole["train_loss"][0])
    assert np.isfinite(whole["train_loss"][1:]).all()
    np.testing.assert_allclose(whole["epoch"], [0, 2 / 3, 4 / 3, 2])


def test_a_run_that_diverges_says_so() -> None:
    context = lab.PlainContext()
    found = text.measure_finetuning({**CONFIG, "eta": 1e38}, context)
    assert context.divergence is not None
    assert np.isnan(found["validation_loss"][-1])


def test_more_records_than_steps_are_refused() -> None:
    with pytest.raises(BadArgument, match="exceeds the 6 steps"):
        text.measure_finetuning({**CONFIG, "records": 7}, lab.PlainContext())


def test_the_kernel_is_that_of_gradients_by_hand() -> None:
    model, params = random_encoder(seed=3)
    model = model.with_heads(5, "mask")
    x = pad([[3, 8, 1], [2, 2, 9, 40, 7]], 6)
    got = text_kernel.kernels_of(model, params, x)

    def logit(theta: Any, sample: Any) -> Any:
        f = model(theta, sample)
        return f[1] - f[0]

    gradient = jax.jit(jax.grad(logit))
    rows = [gradient(params, jnp.asarray(sample)) for sample in x]
    flat = {
        name: np.stack(
            [
                np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(getattr(row, name))])
                for row in rows
            ]
        ).astype(np.float64)
        for name in ("readout", "attention")
    }
    for name, G in flat.items():
        np.testing.assert_allclose(got[name], G @ G.T, rtol=2e-4)
    np.testing.assert_allclose(got["total"], got["readout"] + got["attention"])
    margin = LayerwiseMargin(model)
    value = margin(margin.split(params), jnp.asarray(x[1], jnp.float32))
    np.testing.assert_allclose(value, logit(params, jnp.asarray(x[1])), rtol=1e-5)


def test_the_kernel_does_not_change_while_nothing_moves() -> None:
    still = {**CONFIG, "eta": 1e-12, "weight_decay": 0.0, "kernel_samples": 6, "records": 1}
    found = text_kernel.measure_text_kernel(still, lab.PlainContext())
    for name in text_kernel.CURVES:
        if name.startswith(("kernel", "movement")):
            np.testing.assert_allclose(found[name], 0, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("kind", ["pretrained", "hidden"])
def test_tokens_of_a_pretrained_encoder_for_assumption_3(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headcount.data import find_checkpoint

    monkeypatch.setenv("HEADCOUNT_MODEL", str(write_roberta(tmp_path)))
    x = pretrained_tokens(
        [["w5", "w9"], ["w7", "w6", "w5", "w4"]], find_checkpoint("folder").identity, 3, kind
    )
    model, params = load_checkpoint(tmp_path)
    assert x.shape == (2, 3, 12)
    if kind == "pretrained":
        want = params.embedding.words[[5, 9]], params.embedding.words[[7, 6, 5]]
    else:
        hidden = jax.jit(model.hidden)
        want = tuple(
            np.asarray(hidden(params, jnp.asarray(pad([[0, *line, 2]], 5)[0])))[1 : 1 + len(line)]
            for line in ([5, 9], [7, 6, 5])
        )
    np.testing.assert_allclose(x[0], [*want[0], np.zeros(12)], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(x[1], want[1], rtol=1e-4, atol=1e-5)
