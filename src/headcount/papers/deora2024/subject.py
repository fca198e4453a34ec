"""What an audit of deora2024 looks at: one seed of a configuration, trained in float64.

DM1, DM2 or the user's arrays. The target theta is the witness of Proposition 7 for this start and
data. Three levels are shown: whether the paper's hypotheses hold, whether its inequalities do, and
the same inequalities with measured constants, which alone say something at everyday sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ...core import BadArgument, float64
from ...data import DataModel, Dataset
from ...theory import Observed, iterates_of, slack_table
from ...training import Built, TrainConfig, build
from ...training import Run as Trained
from . import constants
from .dm1 import DM1
from .mixture_samples import offered_mixtures
from .observed import (
    MOST_LEFT_OUT,
    MOST_SAMPLES,
    Groups,
    left_out_cost,
    measured_rows,
    merged,
    offers_of,
    run_instances,
)
from .records import LeftOut, Run
from .runs import RunTrace
from .setting import Setting
from .start import GoodStart, check_labels, check_model, good_start, mixture_margins


@dataclass(frozen=True, kw_only=True)
class Subject(Observed):
    """One audited run, its start, and its trace where it is gradient descent."""

    start: GoodStart
    trace: RunTrace | None


def check_config(config: TrainConfig, model: Any) -> None:
    """Raise unless the configuration trains the model of the theorems with their loss."""
    check_model(model)
    if config.loss != "logistic":
        problem = "is not the loss of deora2024's theorems"
        raise BadArgument("loss", config.loss, problem, fix="use loss=logistic")


def subject(
    config: TrainConfig,
    seed: int,
    *,
    delta: float,
    run: Trained | None = None,
    data: DataModel | None = None,
    progress: Any = None,
) -> Subject:
    """Train seed `seed` of `config`, unless `run` holds it, and collect what the claims ask."""
    changes = {"seeds": (seed,), "dtype": "float64", "record": ("iterates",), "record_every": 1}
    one = config.model_copy(update=changes)  # n_val stays: two-phase draws its samples beyond
    built = build(one, data)
    check_config(one, built.model)
    x, y = built.x[0], built.y[0]
    check_labels(y)
    start = jax.tree.map(lambda leaf: np.asarray(leaf[0]), built.initial)
    found = good_start(built.model, start, x, y)
    groups = merged(built.model, start)
    iterates, source = iterates_of(one, built, run=run, progress=progress)
    path = measured_rows(groups, iterates._asdict())
    descent = one.optimiser == "gd" and one.batch_size is None
    runs = run_instances(built.model, groups, path, found, (x, y), float(one.step_size))
    offers = dict(offers_of(runs, path, found, descent))
    traces = [one.trace for one in offers.get(Run, ())]
    setting = _setting(one, built, found, runs[-1])
    note = "" if descent else f"{one.optimiser} is no gradient descent: no claim about runs"
    if descent and LeftOut not in offers:
        cost = left_out_cost(runs[-1])
        note = f"leave-one-out runs too many to audit: n^2 K G T^2 = {cost:.2g} > {MOST_LEFT_OUT:g}"
    if isinstance(built.data, DM1):
        mixtures, said = offered_mixtures(built.data, Dataset(x, y), MOST_SAMPLES)
        offers |= mixtures
        note = "; ".join(filter(None, (note, said)))
    return Subject(
        seed=seed,
        setting=setting,
        offers=offers,
        findings=_findings(built, found, setting, groups),
        note="; ".join(filter(None, (source, note))),
        start=found,
        trace=traces[-1] if traces else None,
    )


def _setting(config: TrainConfig, built: Built, found: GoodStart, run: Run) -> Setting:
    """Measured numbers; without a tangent margin the target is the last iterate."""
    model = built.model
    with float64():
        D, N, L = (float(v) for v in (run.D, run.N, run.L_theta))
    return Setting(
        T=model.T,
        d=model.d,
        H=model.H,
        n=len(built.y[0]),
        R=found.R,
        K=config.steps,
        eta=config.step_size,
        B_2=found.B_2,
        B_Phi=found.B_Phi,
        gamma=max(found.gamma, 1e-300),
        L_0=found.loss,
        target_distance=max(D, 1e-300),
        target_width=N,
        target_loss=L,
        readout=model.readout,
    )


def _findings(
    built: Built, found: GoodStart, setting: Setting, groups: Groups
) -> dict[str, dict[str, Any]]:
    tables: dict[str, dict[str, Any]] = {
        "assumptions": _assumptions(built, found),
        "good start (Definition 1)": _start_table(found, setting.K, len(groups.k)),
        "heads that the theorems ask for": _required(setting),
    }
    if isinstance(built.data, DM1):
        dataset = Dataset(built.x[0], built.y[0])
        tables["margins on DM1"] = mixture_margins(built.data, dataset)
    return tables


def _start_table(found: GoodStart, K: int, groups: int) -> dict[str, Any]:
    table: dict[str, Any] = {"B_2": found.B_2, "B_Phi": found.B_Phi}
    if found.direction is None:
        table["P3"] = f"fails: {found.status} by the tangent features"
    else:
        table["gamma, largest tangent margin"] = found.gamma
        table["g_0(1/K) printed"] = found.g_0(1 / K, "printed")
        table["g_0(1/K) corrected"] = found.g_0(1 / K)
    return {**table, "groups of equal heads": groups}


def _assumptions(built: Built, found: GoodStart) -> dict[str, Any]:
    table: dict[str, Any] = {"Assumption 1: realised R": found.R}
    if isinstance(built.data, DM1):
        unbounded = built.data.noise == "gaussian" and built.data.noise_sd > 0
        table["Assumption 3: sure noise bounds"] = (
            "fails: Gaussian noise is unbounded" if unbounded else "holds"
        )
    else:
        table["Assumption 3 (DM1)"] = "not about these data"
    return table


def _required(s: Setting) -> dict[str, Any]:
    table: dict[str, Any] = {"H": float(s.H)}
    for tier in constants.TIERS:
        first = constants.required_root(s.D, s.N, s.R, s.T, s.d, tier, s.readout)
        second = constants.required_root(s.D, s.N, s.R, s.T, s.d, tier, s.readout, factor=128)
        table[f"Theorem 3, {tier}"] = float(first) ** 2
        table[f"Theorem 4, {tier}"] = float(second) ** 2
        table[f"largest eta, {tier}"] = s.largest_step(tier)
    return table


def slack(subject: Subject, variant: str) -> list[dict[str, float | str]]:
    """Where the bounds lose: each factor beside what it stands for on the run."""
    t = subject.trace
    if t is None:
        return []
    N = float(np.max(t.widths))
    shape = (t.T, t.d)
    tau = t.beta_3("v2") / np.sqrt(t.H) * t.highest * t.away[:-1] ** 2 / 2
    pairs = [
        ("beta_1 / max |grad L|/L", constants.beta_1(N, t.R, t.T, t.readout),
         np.max(np.sqrt(t.gradient) / t.loss[:-1])),
        ("beta_3 v2 / sharp", constants.beta_3(N, t.R, *shape, "v2", t.readout),
         constants.beta_3(N, t.R, *shape, "sharp", t.readout)),
        ("tau_k |theta - theta_k|^2/2 / realised", np.max(tau), np.max(t.tangent)),
        ("3 D / max |theta_k - theta|", 3 * t.D, np.max(t.away)),
        ("4 D / |theta_K - theta_0|", 4 * t.D, t.moved[-1]),
    ]  # fmt: skip
    return slack_table(pair for pair in pairs if pair[-1] > 0)
