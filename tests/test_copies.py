"""Whatever is registered, made of it or raised by it survives copying and the way to a worker."""

from __future__ import annotations

import copy
import importlib
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import numpy as np
import optax
import pytest

from headcount import data
from headcount.core import (
    LOGISTIC,
    BadArgument,
    HeadcountError,
    Registry,
    activations,
    normal,
    seeded_query,
    stream,
)
from headcount.data import Arrays
from headcount.kernels import ntk
from headcount.lab import CorruptFile, NewerFormat
from headcount.papers import arda2026, deora2024, wu2023
from headcount.theory import Reals, claims, lemma
from headcount.training import (
    HeadBalls,
    TrainConfig,
    from_optax,
    gd,
    optimisers,
    train,
)

LAYERS = ("core", "models", "data", "training", "kernels", "lab", "theory")
BALLS = HeadBalls((("c", 1.0), ("U", 1.0), ("W", 2.0)))


def registries() -> dict[str, Registry[Any]]:
    """Every registry that a layer shows."""
    shown = [importlib.import_module(f"headcount.{layer}") for layer in LAYERS]
    things = [getattr(layer, name) for layer in shown for name in dir(layer)]
    return {thing.kind: thing for thing in things if isinstance(thing, Registry)}


def rule(name: str) -> Any:
    batch = {"batch_size": 2} if name == "sgd" else {}
    return optimisers[name](0.1, **batch, **({"projection": BALLS} if "proj" in name else {}))


@cache
def made() -> dict[str, Any]:
    """Objects made of what is registered, with arguments of their own."""
    squashed = activations["tanh"].scaled(1 / 3, 0.7)
    model = arda2026.PooledAttention(2, 4, squashed, seeded_query(2, 1))
    x, y = normal(stream(0, "x"), (3, 2, 2)), np.ones(3)
    plain = arda2026.PooledAttention(2, 4)
    start = arda2026.paired(plain, 0)
    claim = next(c for c in claims.of_paper("arda2026") if c.hypotheses and c.families)
    config = {"model_options": {"activation": "sin"}, "data_options": {"nu": [1.0, 2.0, 3.0]}}
    return {
        **{f"rule {name}": rule(name) for name in optimisers},
        "rule of one batch": optimisers["adam"](0.2, eps=1e-6, batch_size=3),
        **{f"law {name}": data.data_models[name]() for name in ("dm1", "dm2", "ar", "digit-pair")},
        "teacher": arda2026.TransportTeacher(T=3, d=2, anchors=2, pool=8),
        "arrays": Arrays(x, y),
        "scaled activation": squashed.scaled(2.0, 3.0),
        "model": model,
        "encoder": wu2023.Encoder(2, 3, 0.4, 0.5, "mean"),
        "groups": deora2024.HeadGroups(3, 2, (2, 3)),
        "scaled claim": claim.with_bound_scaled(0.5).without_hypothesis(claim.hypotheses[0].name),
        "config": TrainConfig.of(config),
        "run": train(plain, start, x, y, rule=gd(0.1), steps=2),
        "kernel": ntk(plain, start, x),
    }  # fmt: skip


def entries() -> dict[str, Any]:
    """What is registered, by kind and name."""
    return {f"{k} {name}": entry for k, r in registries().items() for name, entry in r.items()}


def known_names() -> list[str]:
    """In a worker: what is registered without the help of other tests."""
    return list(entries())


@pytest.fixture(scope="module")
def worker() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(scope="module")
def everything(worker: ProcessPoolExecutor) -> dict[str, Any]:
    """All of it by name."""
    names = worker.submit(known_names).result(timeout=600)
    return {**{name: entries()[name] for name in names}, **made()}


def same(one: Any, other: Any) -> bool:
    """Equal; of a claim that was changed: that it says the same, for each change is a new claim."""
    if isinstance(one, type(claims["arda2026/theorem-1"])) and one is not other:
        names = ("id", "factor", "hypotheses", "sides", "families")
        return all(getattr(one, name) == getattr(other, name) for name in names)
    return bool(one == other)


def test_a_copy_equals_its_original_and_so_does_what_was_pickled(
    everything: dict[str, Any],
) -> None:
    assert len(registries()) >= 12
    again: tuple[Callable[[Any], Any], ...] = (
        copy.copy,
        copy.deepcopy,
        lambda thing: pickle.loads(pickle.dumps(thing)),
    )
    different = [name for name, one in everything.items() for f in again if not same(one, f(one))]
    assert not different


def test_equal_objects_have_equal_hashes() -> None:
    for name in ("model", "arrays", "teacher", "scaled activation", "config"):
        assert hash(made()[name]) == hash(copy.deepcopy(made()[name])), name


def test_what_differs_is_unequal() -> None:
    run, kernel, arrays = (made()[name] for name in ("run", "kernel", "arrays"))
    assert run != replace(run, seconds=-1.0)
    assert run != replace(run, loss=run.loss + 1)
    assert run != replace(run, records={"loss": run.loss})
    assert replace(run, loss=np.full(2, np.nan)) == replace(run, loss=np.full(2, np.nan))
    assert kernel != jax.tree.map(lambda leaf: leaf[..., :1], kernel)
    assert arrays != replace(arrays, y=-arrays.y)
    assert activations["tanh"].scaled(1, 2) != activations["tanh"].scaled(1, 3)


def test_a_configuration_does_not_change() -> None:
    config = made()["config"]
    for change in (
        lambda options: options.update(nu=1),
        lambda options: options.__setitem__("nu", 1),
        lambda options: options.pop("nu"),
    ):
        with pytest.raises(TypeError, match="does not change"):
            change(config.data_options)
    assert config.data_options["nu"] == (1.0, 2.0, 3.0)
    assert {config: 1}[TrainConfig.of(config.model_dump())] == 1


def test_a_claim_that_nobody_can_find_says_so() -> None:
    @lemma(z=Reals(2))
    def anybodys(z: Any) -> tuple[Any, Any]:
        return z[0], z[0]

    assert copy.deepcopy(anybodys) is anybodys
    for changed in (anybodys, replace(claims["arda2026/theorem-1"], title="another")):
        with pytest.raises(BadArgument, match="claims travel by name"):
            pickle.dumps(changed)


def test_rules_of_others_are_copied_and_not_found_by_a_name_of_ours() -> None:
    foreign = from_optax(optax.sgd(0.1), name="gd")
    assert copy.deepcopy(foreign) is foreign
    assert foreign.found_by() is None
    assert from_optax(optax.sgd(0.1), name="sgd").found_by() is None


ERRORS = (
    BadArgument("m", 7, "must be even", fix="use m=8"),
    BadArgument("loss", lambda f, y: f, "is not known", fix="use a name"),
    NewerFormat("here", 9, 3),  # type: ignore[arg-type]
    CorruptFile(importlib.import_module("pathlib").Path("a/b.nc"), "is cut short"),
    *(kind("words") for kind in HeadcountError.__subclasses__() if "__init__" not in vars(kind)),
)


def raised(error: Exception) -> None:
    """In a worker."""
    raise error


def test_errors_and_objects_reach_a_worker_and_come_back(
    worker: ProcessPoolExecutor, everything: dict[str, Any]
) -> None:
    for error in ERRORS:
        with pytest.raises(type(error)) as caught:
            worker.submit(raised, error).result(timeout=600)
        assert str(caught.value) == str(error)
    with pytest.raises(BadArgument) as wrong:
        worker.submit(gd, -1.0).result(timeout=600)
    assert (wrong.value.argument, wrong.value.value, wrong.value.where) == ("eta", -1.0, "")
    back = worker.submit(copy.copy, everything).result(timeout=600)
    assert [name for name, one in everything.items() if not same(one, back[name])] == []
    assert back["loss logistic"] is LOGISTIC
