"""What an audit of arda2026 looks at: one seed of a configuration, trained in float64.

The run is the one that `training` trains, with every term of the drift inequality written down; the
claims about heads and models are asked at its last iterate. Where the data have no teacher, the
smallest transport takes its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ...core import BadArgument, float64
from ...data import DataModel
from ...theory import Observed, slack_table, stored_iterates
from ...training import Built, Run, TrainConfig, build, replay, run_config
from .model import PooledAttentionParams
from .observed import offers_of
from .recorder import DriftTerms, trace_of_records
from .runs import RunTrace
from .setting import Setting
from .theorem_1 import run_constants
from .transport import Goal, goal_of


@dataclass(frozen=True, kw_only=True)
class Subject(Observed):
    """One audited run: what it offers, its trace, and the transport map it is measured against."""

    trace: RunTrace
    goal: Goal


@dataclass(frozen=True)
class History:
    """The drift terms of every step (last axis: 0..tau), the last and the average iterate."""

    records: dict[str, Any]
    last: PooledAttentionParams
    average: dict[str, Any]
    note: str


def check_config(config: TrainConfig) -> None:
    """Raise unless the configuration trains the model that arda2026's theorems speak about."""
    if config.model != "arda2026":
        problem = "is not the model of arda2026's theorems"
        raise BadArgument("model", config.model, problem, fix="use model=arda2026")


def subject(
    config: TrainConfig,
    seed: int,
    *,
    delta: float,
    run: Run | None = None,
    data: DataModel | None = None,
    progress: Any = None,
) -> Subject:
    """Train seed `seed` of `config`, unless `run` holds it, and collect what the claims ask."""
    check_config(config)
    changes = {"seeds": (seed,), "dtype": "float64", "record": (), "record_every": 1}
    one = config.model_copy(update={**changes, "keep": ("average",), "n_val": 0})
    built = build(one, data)
    start = PooledAttentionParams(*(np.asarray(leaf[0]) for leaf in built.initial))
    goal = goal_of(built, start, seed, delta)
    recorder = DriftTerms(goal.transported(start), built.rule, one.step_size)
    history = _history(one, built, start, recorder, run, seed, progress)
    setting = _setting(one, built, goal, delta, history.records)
    with float64():
        offers = offers_of(built, start, history.last, goal, setting)
        trace = trace_of_records(
            offers.start, history.records, history.average, built, rule_projects=one.rho is not None
        )
    return Subject(
        seed=seed,
        setting=setting,
        offers=offers.table(trace),
        findings=goal.findings,
        note=history.note,
        trace=trace,
        goal=goal,
    )


def _history(
    config: TrainConfig,
    built: Built,
    start: PooledAttentionParams,
    recorder: DriftTerms,
    run: Run | None,
    seed: int,
    progress: Any,
) -> History:
    """From the run where it holds every iterate in float64; else by training."""
    x, y = built.x[0], built.y[0]
    path, note = stored_iterates(run, seed, config, built)
    if path is None:
        done = run_config(config, built=built, record=(recorder,), progress=progress)
        records = {name: values[0] for name, values in done.records.items()}
        last, average = (jax.tree.map(lambda leaf: leaf[0], p) for p in (done.params, done.average))
    else:
        records = replay(built.model, start, x, y, path, (recorder,))
        last = jax.tree.map(lambda leaf: leaf[-1], path)
        average = jax.tree.map(lambda leaf: np.mean(leaf[:-1], axis=0), path)
    mean = jax.tree.map(lambda leaf: np.asarray(leaf)[None], average)
    at_mean = replay(built.model, start, x, y, mean, (recorder,))
    return History(records, last, {name: at_mean[name][0] for name in ("loss", "e_lin")}, note)


def _setting(
    config: TrainConfig, built: Built, goal: Goal, delta: float, records: dict[str, Any]
) -> Setting:
    """The numbers of the right sides; without projection the radii are those of the run."""
    rho = config.rho
    if rho is None:
        reached = [float(np.max(records[f"moved_{name}"])) for name in ("c", "U", "W")]
        known = zip(np.nan_to_num(reached, nan=np.inf, posinf=np.inf), goal.nu, strict=True)
        c, u, w = (float(min(max(pair), 1e300)) for pair in known)
        rho = (c, u, w)
    return Setting(
        d=built.model.d,
        m=built.model.m,
        n=built.y.shape[1],
        T=built.x.shape[2],
        activation=built.model.activation.name,
        rho=rho,
        nu=goal.nu,
        delta=delta,
        delta_prime=delta,
        tau=config.steps,
        eta=config.step_size,
        largest_label=float(np.max(np.abs(built.y))),
        largest_token=float(np.max(np.linalg.norm(built.x, axis=-1))),
    )


def slack(subject: Subject, variant: str) -> list[dict[str, float | str]]:
    """Where the closed bounds lose: each factor beside what it stands for on the run."""
    trace = subject.trace
    with float64():
        k = {name: float(value) for name, value in run_constants(trace, variant).items()}
    pairs = [
        ("B_app / max e_app", k["B_app"], trace.e_app),
        ("B_lin / max e_lin", k["B_lin"], np.max(trace.e_lin)),
        ("B_CoF / max e_CoF", k["B_CoF"], np.max(trace.e_cof)),
        ("(f_max + y_max) / max |f - y|", k["f_max"] + k["y_max"], np.max(trace.residual)),
        ("f_max / max |f|", k["f_max"], np.max(trace.output)),
        ("y_max / max |y|", k["y_max"], trace.label),
        ("B_grad / max |grad L|^2", k["B_grad"], np.max(trace.gradient)),
        ("|nu|^2 / V(phi0)", float(np.sum(np.asarray(trace.nu) ** 2)), trace.distance[0]),
        ("B_U / max |U_i|", k["B_U"], np.max(trace.values)),
    ]
    return slack_table(pairs)
