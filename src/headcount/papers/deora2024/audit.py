"""What an audit of deora2024 looks at: one seed of a configuration, trained in float64.

DM1, DM2 or the user's arrays. The target theta is the witness of Proposition 7 for this start and
data. Three levels are shown: whether the paper's hypotheses hold, whether its inequalities do, and
the same inequalities with measured constants, which alone say something at everyday sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core import BadArgument, float64
from ...data import DataModel, Dataset
from ...theory import Observed, iterates_of
from ...theory._subject import slack_table
from ...training import Run as Trained
from ...training import TrainConfig, build
from ...training._build import Built
from . import constants
from .definition_1 import GoodStart, Heads, check_labels, check_model, good_start, mixture_margins
from .dm1 import DM1
from .mixture import offered_mixtures
from .model import MultiHeadParams
from .records import Head, LeftOut, Model, Run, Start, TwoPoints
from .runs import RunTrace, step_terms, trace_of
from .setting import Setting

MOST_SAMPLES = 64
"""Samples at which the claims about models are asked; the run itself uses all of them."""
_PAIRS = 32
"""(head, sample) pairs at which the claims about heads are asked."""
_LARGEST = 400
"""Entries G p of the parameters up to which Hessians of the loss are formed."""
MOST_LEFT_OUT = 2e7
"""n^2 K G T^2, the attention weights of all leave-one-out runs, up to which they are run."""


@dataclass(frozen=True)
class Groups:
    """Heads that start equal, merged: representatives and how many heads each stands for."""

    index: Any
    k: Any

    def of(self, params: MultiHeadParams, r: int) -> dict[str, Any]:
        """U (G, r, d) and W (G, d, d) of the representatives."""
        U, W = (np.asarray(leaf, np.float64)[self.index] for leaf in params)
        return {"U": U.reshape(len(U), r, -1), "W": W}


def merged(heads: Heads, start: MultiHeadParams) -> Groups:
    """Groups of equal heads; they stay equal under every deterministic rule."""
    flat = [np.reshape(leaf, (len(leaf), -1)) for leaf in start]
    rows = np.concatenate(flat, axis=1)
    _, index, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    weights = np.asarray(heads.multiplicities, np.float64)
    return Groups(index, np.bincount(inverse.ravel(), weights=weights))


def witness(groups: Groups, found: GoodStart, r: int, root: float, K: int) -> Any:
    """sqrt(H) (theta - theta_0) for the target of Proposition 7, theta = theta_0 + G theta_*."""
    assert found.direction is not None
    G = (2 * found.B_Phi + np.log(K)) / found.gamma
    move = groups.of(found.direction, r)
    return {"dU": root * G * move["U"], "dW": root * G * move["W"]}


def run_towards(
    heads: Heads, groups: Groups, path: Any, found: GoodStart, data: tuple[Any, Any], eta: float
) -> tuple[Run, str]:
    """The run with one target, and which: that of Prop. 7 where (74) holds, or theta_K."""
    r, d = (heads.T if heads.readout == "full" else 1), heads.d
    G, K, root = path.shape[1], len(path) - 1, float(np.sqrt(float(heads.H)))

    def cut(rows: Any, names: tuple[str, str]) -> dict[str, Any]:
        blocks = rows[:, : r * d].reshape(G, r, d), rows[:, r * d :].reshape(G, d, d)
        return dict(zip(names, blocks, strict=True))

    X, y = (np.asarray(part, np.float64) for part in data)
    shared = {"X": X, "y": y, "k": groups.k, **cut(path[0], ("U", "W")), "readout": heads.readout}
    end = Run(**shared, **cut(root * (path[-1] - path[0]), ("dU", "dW")), eta=np.asarray(eta), K=K)
    if found.direction is None:
        return end, "target theta: the last iterate, as there is no tangent margin (P3 fails)"
    far = Run(**shared, **witness(groups, found, r, root, K), eta=np.asarray(eta), K=K)
    with float64():
        D, N = float(far.D), float(far.N)
    asks = constants.required_root(D, N, found.R, heads.T, d, "sharp", heads.readout) ** 2
    if asks <= float(heads.H):
        return far, "target theta: the witness of Proposition 7 for eps = 1/K"
    told = f"the witness of Proposition 7, D = {D:.3g}, asks for {float(asks):.2g} heads or more"
    return end, f"target theta: the last iterate ({told})"


def trace(run: Run, path: Any) -> RunTrace:
    """The terms of every step, from the iterates (K+1, G, p) that training recorded."""
    with float64():
        moved = jnp.asarray(path) - path[:1]
        terms = jax.jit(lambda i, p: jax.lax.map(lambda x: step_terms(i, x)[1], p))(run, moved[:-1])
        return jax.tree.map(np.asarray, jax.jit(trace_of)(run, moved[-1], terms))


def seen(run: Run, done: RunTrace) -> Run:
    """The run as its statements see it: what it did, and the numbers of its target."""
    names = ("D", "N", "L_theta", "R", "H", "eta", "T", "d", "K", "readout")
    known = {name: getattr(done, name) for name in names}
    return Run.seen(measured={}, trace=done, L_0=done.loss[0], **known)


def offers_of(run: Run, path: Any, found: GoodStart, descent: bool) -> dict[type, Sequence[Any]]:
    """Instance class to instances; runs only where they are plain gradient descent."""
    n, _, d = run.X.shape
    G, p = path.shape[1:]
    some = np.unique(np.linspace(0, n - 1, min(n, MOST_SAMPLES)).astype(int))
    data = {"X": run.X[some], "y": run.y[some], "k": run.k, "readout": run.readout}
    r = run.U.shape[1]

    def blocks(rows: Any) -> dict[str, Any]:
        return {"U": rows[:, : r * d].reshape(G, r, d), "W": rows[:, r * d :].reshape(G, d, d)}

    offers: dict[type, Sequence[Any]] = {Head: _heads(run, blocks(path[-1]), some)}
    if G * p <= _LARGEST:
        offers[Model] = [Model(**data, **blocks(at)) for at in (path[0], path[-1])]
        goal = path[0] + np.concatenate([b.reshape(G, -1) for b in _shift(run)], axis=1)
        ends = [(path[-1], goal), (path[0], path[len(path) // 2])]
        offers[TwoPoints] = [_segment(data, blocks, a, b, run.eta) for a, b in ends]
    if descent:
        offers[Run] = [seen(run, trace(run, path))]
        if found.direction is not None:
            offers[Start] = [_start(run, found)]
        if left_out_cost(run) <= MOST_LEFT_OUT:
            offers[LeftOut] = [LeftOut(**run.fields())]
    return offers


def left_out_cost(run: Run) -> float:
    """n^2 K G T^2."""
    n, T, _ = run.X.shape
    return float(n) ** 2 * run.K * len(run.k) * T**2


def _shift(run: Run) -> tuple[Any, Any]:
    root = np.sqrt(np.sum(run.k))
    return np.asarray(run.dU) / root, np.asarray(run.dW) / root


def _segment(data: dict[str, Any], blocks: Any, a: Any, b: Any, eta: Any) -> TwoPoints:
    move = blocks(b - a)
    return TwoPoints(**data, **blocks(a), dU=move["U"], dW=move["W"], eta=eta)


def _heads(run: Run, last: dict[str, Any], some: Any) -> list[Head]:
    """Heads of the last iterate on samples; read-outs with one row are written as a full U."""
    T, d = run.X.shape[1:]
    G = len(run.k)
    pairs = np.unique(np.linspace(0, G * len(some) - 1, _PAIRS).astype(int))
    found = []
    for pair in pairs:
        g, X = pair % G, run.X[some[pair // G]]
        U = np.zeros((T, d))
        U[slice(None) if run.readout != "last" else slice(-1, None)] = last["U"][g]
        ones = np.ones(d)
        found.append(Head(X=X, U=U, W=last["W"][g], a=np.ones(T), b=ones, c=ones))
    return found


def _start(run: Run, found: GoodStart) -> Start:
    vU, vW = (run.dU, run.dW)
    G = (2 * found.B_Phi + np.log(run.K)) / found.gamma
    own = {name: getattr(run, name) for name in ("X", "y", "k", "U", "W", "readout", "eta", "K")}
    return Start(**own, vU=vU / G, vW=vW / G, eps=np.asarray(1 / run.K))


def measured_rows(groups: Groups, records: dict[str, Any]) -> Any:
    """The iterates (K+1, G, p) of the representatives."""
    U, W = (np.asarray(records[name], np.float64)[:, groups.index] for name in ("U", "W"))
    return np.concatenate([U.reshape(*U.shape[:2], -1), W.reshape(*W.shape[:2], -1)], axis=-1)


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
    towards, target = run_towards(built.model, groups, path, found, (x, y), float(one.step_size))
    offers = dict(offers_of(towards, path, found, descent))
    traces = [one.trace for one in offers.get(Run, ())]
    setting = _setting(one, built, found, towards)
    note = "" if descent else f"{one.optimiser} is no gradient descent: no claim about runs"
    if descent and LeftOut not in offers:
        cost = left_out_cost(towards)
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
        note="; ".join(filter(None, (source, target, note))),
        start=found,
        trace=traces[-1] if traces else None,
    )


def _setting(config: TrainConfig, built: Built, found: GoodStart, run: Run) -> Setting:
    """Measured numbers, with the target of the run."""
    with float64():
        D, N, L = (float(v) for v in (run.D, run.N, run.L_theta))
    target = {"target_distance": D, "target_width": N, "target_loss": L}
    gamma = max(found.gamma, 0.0)
    return Setting.measured(built, config.steps, found, eta=config.step_size, gamma=gamma, **target)


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
