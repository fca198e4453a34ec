"""The audit of wu2023: the trained run itself, any optimiser, the user's data."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import jax
import numpy as np
import pytest

from headcount.core import BadArgument, float64
from headcount.data import Arrays
from headcount.papers.wu2023 import audit as module
from headcount.papers.wu2023.audit import History, history_of, instance_at, slack, subject, trained
from headcount.papers.wu2023.records import Move, Network
from headcount.papers.wu2023.runs import Run
from headcount.papers.wu2023.setting import measure_start
from headcount.theory import Outcome, ask, claims
from headcount.theory.domain import NotFinite
from headcount.training import TrainConfig, build, run_config

VALUES = {"model": "wu2023", "n": 3, "width": 6, "steps": 4, "data_options": {"T": 2, "d": 3}}
CONFIG = TrainConfig.of(VALUES)


def config(**changes: object) -> TrainConfig:
    return TrainConfig.of({**VALUES, **changes})


@pytest.fixture(scope="module")
def audited():
    return subject(CONFIG, 0, delta=0.05)


def test_an_audited_run_is_measured(audited) -> None:
    history = audited.history
    first, second = history.pairs[0]
    x = audited.instances(Move)[0].X
    one, two = (
        np.stack([np.asarray(jax.nn.softmax(s @ (W.W_Q.T @ W.W_K) @ s.T / 6**0.5)) @ s for s in x])
        @ W.W_V.T
        for W in (first, second)
    )
    assert history.flips[0] == np.sum((one > 0) != (two > 0))
    assert history.loss[-1] < history.loss[0]
    assert len(history.loss) == len(history.alpha) == len(history.flips) + 1 == 5
    tables = audited.findings
    assert tables["along the run"]["(4) fails first at step"] == "never"
    assert tables["at the start"]["alpha"] == pytest.approx(history.alpha[0], rel=1e-6)
    assert tables["at the start"]["(2): right over left side"] > 1
    kernels = tables["kernels and Hessian at the start"]
    assert kernels["lambda_min of K, w_O"] == pytest.approx(history.alpha[0] ** 2, rel=1e-6)
    json.dumps(tables)


@pytest.mark.parametrize(
    "changes", [{"model": "two-layer-relu"}, {"model_options": {"residual": True}}]
)
def test_an_audit_refuses_what_the_theorems_do_not_cover(changes: dict) -> None:
    with pytest.raises(BadArgument):
        subject(config(data_options={}, **changes), 0, delta=0.05)


def recorded(**changes: object) -> TrainConfig:
    """A configuration whose iterates are recorded, with its eta named."""
    record = {"dtype": "float64", "record": ("iterates",), "record_every": 1}
    return config(**{"eta": 0.5, "loss": "mean-squared", **record, **changes})


def slow_history(i: Network, gamma: float, steps: int) -> dict[str, np.ndarray]:
    """Descent on (1/2)|f - y|^2 in NumPy loops over samples; the slope by jax.grad."""

    def hidden(theta, s):
        weights = jax.nn.softmax(s @ (i.tau[0] * theta[0].T @ theta[1]) @ s.T, axis=-1)
        return weights @ s @ theta[2].T

    def loss(theta):
        return sum(
            (i.tau[1] * jax.nn.relu(hidden(theta, s)).sum(0) @ theta[3] - y) ** 2 / 2
            for s, y in zip(i.X, i.y, strict=True)
        )

    theta, rows, signs = tuple(i.theta), [], []
    for _ in range(steps + 1):
        h = np.stack([np.asarray(hidden(theta, s)) for s in i.X])
        F = i.tau[1] * np.maximum(h, 0).sum(axis=1)
        lengths = [np.linalg.norm(W, 2) for W in theta]
        rows.append([float(loss(theta)), np.linalg.svd(F, compute_uv=False)[-1], *lengths])
        signs.append(h > 0)
        slope = jax.grad(loss)(theta)
        theta = tuple(a - gamma * np.asarray(g) for a, g in zip(theta, slope, strict=True))
    table = np.array(rows)
    flips = [np.sum(a != b) for a, b in pairwise(signs)]
    return {"loss": table[:, 0], "alpha": table[:, 1], "norms": table[:, 2:], "flips": flips}


@pytest.mark.parametrize("kept", [None, 1], ids=["whole", "in pieces"])
def test_the_history_is_that_of_slow_descent(kept: int | None, monkeypatch) -> None:
    """However the iterates are cut, and whatever multiple of the paper's loss is trained on."""
    if kept:
        monkeypatch.setattr(module, "MOST_KEPT", kept)
        monkeypatch.setattr(module, "_AT_ONCE", 1)
    one = recorded(steps=5, eta=2.0, width=10, seeds=(2,))
    built = build(one)
    instance = instance_at(built, type(built.initial)(*(block[0] for block in built.initial)))
    told: list[tuple[int, int]] = []
    pieces = list(trained(one, built, lambda done, steps, loss: told.append((done, steps))))
    assert [len(piece.w_O) for piece in pieces] == ([2] * 5 if kept else [6])
    assert told[-1] == (5, 5)
    found: History = history_of(instance, pieces)
    with float64():
        slow = slow_history(instance, 2.0 * 2 / 3, 5)
    assert np.sum(slow["flips"]) > 0
    for name, values in slow.items():
        np.testing.assert_allclose(getattr(found, name), values, rtol=1e-10, err_msg=name)
    assert [float(pair[1].w_O[0]) for pair in found.pairs] == [
        pieces[0].w_O[1, 0],
        pieces[-1].w_O[-1, 0],
    ]


def test_rules_with_a_memory_are_never_cut(monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 1)
    one = recorded(optimiser="momentum", eta=0.1)
    (piece,) = trained(one, build(one))
    np.testing.assert_array_equal(piece.w_O[-1], run_config(one).parameters().w_O)


def test_after_another_rule_the_claims_about_instances_are_asked() -> None:
    adam = config(optimiser="adam", eta=0.01)
    found = subject(adam, 0, delta=0.05)
    assert found.note == "adam is no gradient descent: no claim about runs"
    assert found.instances(Run) == []
    assert ask(claims["wu2023/proposition-1"], found, "corrected") is None
    for kind in (Network, Move):
        assert len(found.instances(kind)) > 0
    verdict = ask(claims["wu2023/lemma-13"], found, claims["wu2023/lemma-13"].default)
    assert verdict is not None
    assert verdict.outcome is Outcome.HOLDS
    last = run_config(adam.model_copy(update={"dtype": "float64"})).parameters()
    np.testing.assert_allclose(found.history.last.W_V, last.W_V, rtol=1e-12, atol=1e-15)
    assert not {"gamma", "(4) fails first at step"} & {
        k for t in found.findings.values() for k in t
    }
    assert slack(found, "printed")


def test_data_of_the_user_take_the_place_of_the_configurations() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(4, 3, 2)) / 2, rng.normal(size=4)
    found = subject(config(n=4), 0, delta=0.05, data=Arrays(x, y))
    (run,) = found.instances(Run)
    np.testing.assert_array_equal(run.X, x)
    np.testing.assert_allclose(found.history.loss[0], np.sum(run.residual**2) / 2, rtol=1e-12)
    setting = found.setting
    assert (setting.n, setting.T, setting.d) == (4, 3, 2)
    built = build(config(n=4), Arrays(x, y))
    start = type(built.initial)(*(block[0] for block in built.initial))
    assert setting.start == measure_start(built.model, start, x, y)
    assert setting.start.loss == pytest.approx(found.history.loss[0], rel=1e-12)
    assert ask(claims["wu2023/proposition-1"], found, "corrected") is not None
    assert setting.resized(width=6, steps=9).start == setting.start
    for other in (lambda: setting.resized(width=12), setting.required_width):
        with pytest.raises(BadArgument, match="not those of the configuration"):
            other()


def test_the_configurations_own_data_given_as_data_change_nothing(audited) -> None:
    again = subject(CONFIG, 0, delta=0.05, data=build(CONFIG).data)
    assert again.findings == audited.findings
    assert replace(again.setting, measured=None) == audited.setting


def test_a_run_that_diverges_is_not_finite() -> None:
    wild = config(n=4, width=8, data_options={}, eta=30.0, steps=9)
    with pytest.raises(NotFinite, match="loss"):
        subject(wild, 0, delta=0.05)


def test_a_wide_encoder_is_audited_without_pairs(monkeypatch) -> None:
    """An instance may hold so many numbers: one iterate fits, two neighbouring ones do not."""
    inputs, weights, labels = 3 * 2 * 3, 3 * 6 * 3 + 6, 2 * 16
    for room, pairs in ((0, 2), (-1, 0)):
        monkeypatch.setattr(module, "MOST_ENTRIES", inputs + 2 * weights + labels + room)
        found = subject(CONFIG, 0, delta=0.05)
        assert len(found.instances(Move)) == pairs
        assert ("too wide for claims about two iterates" in found.note) == (pairs == 0)
        assert len(found.instances(Network)) == 1
