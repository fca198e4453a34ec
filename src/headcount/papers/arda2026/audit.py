"""What an audit of arda2026 looks at: one seed of a configuration, trained in float64.

The run is the one that `training` trains, with every term of the drift inequality written down; the
claims about heads and models are asked at its last iterate. Where the data have no teacher, the
smallest transport takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from ...core import MEAN_SQUARED, Array, BadArgument, float64
from ...data import DataModel
from ...kernels import Linearised
from ...theory import Batch, Check, Observed, stored_iterates
from ...theory._subject import slack_table
from ...training import Run as TrainedRun
from ...training import Snapshot, TrainConfig, build, gradient_path, replay, run_config
from ...training._build import Built
from ...training._paths import map_over_chunks
from ...training._rules import UpdateRule
from .constants import Constants, label_envelope
from .model import PooledAttentionParams
from .needed_transport import Goal, goal_of
from .records import LABELS, TOKENS_AND_QUERY, Head, Near, Softmax, Target
from .runs import Run, RunTrace, head_summary, sample_terms, step_terms
from .setting import Setting, into_ball, rule_of

BLOCKS = ("c", "U", "W")
PER_STEP = ("loss", "gradient", "excess", "cross", "residual", "output", "e_lin", "e_cof", "values")
_SAME = 1e-9
"""Two distances that differ by less than this part of them are the same up to rounding."""


@dataclass(frozen=True, eq=False)
class DriftTerms:
    """Every term of Eqs. (24)-(44) at one iterate, towards the transported point `target`.

    `predicted` is V after one gradient step of the mean squared loss and the rule's projection: it
    tells whether the run took that step. `moved_b` is the largest sqrt(m) |displacement| of a head.
    """

    target: PooledAttentionParams
    rule: UpdateRule
    eta: float

    def __call__(self, now: Snapshot) -> dict[str, Array]:
        """The terms at the parameters of this snapshot."""
        phi, n, T = now.params, now.x.shape[0], now.x.shape[1]
        target = jax.tree.map(lambda leaf: jnp.asarray(leaf, now.x.dtype), self.target)
        path = gradient_path(now.model, MEAN_SQUARED, n=n, T=T, chunk=now.chunk)
        _, grad = path.loss_and_gradient(phi, path.prepare(now.x, now.y))
        raw = optax.tree.add(phi, optax.tree.scale(-self.eta, grad))
        after = self.rule.projection(raw, now.initial, now.model)
        f, lin, lin_target, slope = self._outputs(now, target)
        return {
            **sample_terms(f, now.y, lin, slope, lin_target),
            **step_terms(phi, grad, raw, after, target),
            "predicted": optax.tree.norm(optax.tree.sub(after, target), squared=True),
            "e_app": jnp.max(jnp.abs(lin_target - now.y)),
            **moved(phi, now.initial),
        }

    def _outputs(self, now: Snapshot, target: Any) -> tuple[Array, ...]:
        """f and f_lin at phi, f_lin at phi~ and <grad f(phi), phi~ - phi>, of every sample."""
        phi, towards = now.params, optax.tree.sub(target, now.params)
        linear = Linearised(now.model, now.initial)

        def one(x: Float[Array, "T d"]) -> Float[Array, "4"]:
            f, slope = jax.jvp(lambda p: now.model(p, x), (phi,), (towards,))
            return jnp.stack([f, linear(phi, x), linear(target, x), slope])

        values = map_over_chunks(lambda s: jax.vmap(one)(s.x), now.chunks())
        return values[:, 0], values[:, 1], values[:, 2], values[:, 3]


def moved(phi: PooledAttentionParams, start: PooledAttentionParams) -> dict[str, Array]:
    """sqrt(m) times the largest displacement of any head, for each block."""
    m = start.c.shape[0]
    lengths = {
        f"moved_{name}": jnp.max(jnp.sqrt(jnp.sum(block.reshape(m, -1) ** 2, axis=1)))
        for name, block in zip(BLOCKS, optax.tree.sub(phi, start), strict=True)
    }
    return {name: np.sqrt(m) * length for name, length in lengths.items()}


@dataclass(frozen=True)
class History:
    """The drift terms of every step (last axis: 0..tau), the last and the average iterate."""

    records: dict[str, Any]
    last: PooledAttentionParams
    average: dict[str, Any]
    note: str

    def trace(self, start: Run, y: Array, *, projects: bool) -> RunTrace:
        """The trace of the run; `projects` says whether its rule does."""
        records, average = self.records, self.average
        distance = np.asarray(records["distance"])
        tau = len(distance) - 1
        with np.errstate(invalid="ignore"):  # a run that diverged: NaN is not "the same"
            gap = np.abs(distance[1:] - np.asarray(records["predicted"])[:-1])
            astray = np.sum(~(gap <= _SAME * (distance[1:] + distance[:-1])))
        moves = [np.max(records[f"moved_{name}"]) for name in BLOCKS]
        per_step: dict[str, Any] = {name: np.asarray(records[name])[:tau] for name in PER_STEP}
        trace = RunTrace(
            **per_step,
            **head_summary(start),
            distance=distance,
            e_app=records["e_app"][0],
            average_loss=average["loss"],
            average_e_lin=average["e_lin"],
            label=np.max(np.abs(y)),
            moved=np.max(np.asarray(moves) / np.asarray(start.rho)),
            astray=astray.astype(float),
            unprojected=astray.astype(float) if projects else float(tau),
            n=len(y),
            tau=tau,
        )
        return jax.tree.map(np.asarray, trace)


_SAMPLES = 128
"""Samples at which the claims about models are asked; the run itself uses all of them."""
_PAIRS = 512
"""(head, sample) pairs at which the claims about heads are asked."""


class Seen(NamedTuple):
    """Points by their class, the trace, and how far out the run is by the words of hypotheses."""

    offers: dict[type, Sequence[Any]]
    trace: RunTrace
    measured: dict[str, float]


def offers_of(
    built: Built,
    start: PooledAttentionParams,
    history: History,
    goal: Goal,
    setting: Setting,
    *,
    projects: bool,
) -> Seen:
    """Start and last iterate on up to 128 samples, and up to 512 (head, sample) pairs.

    In JAX arrays: verdicts, not constructors, say what is wrong.
    """
    x, y = built.x[0], built.y[0]
    some = np.unique(np.linspace(0, len(y) - 1, min(len(y), _SAMPLES)).astype(int))
    X = jnp.asarray(x[some])
    q = jax.vmap(built.model.query)(X)
    root, rho, nu = np.sqrt(setting.m), jnp.asarray(setting.rho), jnp.asarray(setting.nu)
    phi0, phi = (PooledAttentionParams(*map(jnp.asarray, p)) for p in (start, history.last))
    size = label_envelope(setting.sigma, setting.nu, setting.d, "sharp")
    shared: dict[str, Any] = {
        **{"X": X, "q": q, "c0": phi0.c, "U0": phi0.U, "W0": phi0.W, "rho": rho, "nu": nu},
        "vc": jnp.asarray(goal.v.v_c) / nu[0],
        "vu": jnp.asarray(goal.v.v_u) / nu[1],
        "vw": jnp.asarray(goal.v.v_w) / nu[2],
        "labels": jnp.asarray(y[some]) / size,
        "delta": jnp.asarray(setting.delta),
        "activation": setting.activation,
    }
    names = ("dc", "dU", "dW")
    away = [root * (b - a) / r for a, b, r in zip(phi0, phi, rho, strict=True)]
    moved: dict[str, Any] = dict(zip(names, away, strict=True))
    still: dict[str, Any] = {name: jnp.zeros_like(block) for name, block in moved.items()}
    run = Run(**shared, **still, eta=jnp.asarray(setting.step), tau=setting.tau)
    trace = history.trace(run, y, projects=projects)
    queries = jax.vmap(built.model.query)(jnp.asarray(x))
    measured = {h.name: float(h.value(run)) for h in Run.hypotheses(tuple(Run.spaces))} | {
        TOKENS_AND_QUERY: max(np.max(np.linalg.norm(rows, axis=-1)) for rows in (x, queries)),
        LABELS: float(np.max(np.abs(y)) / size),
    }
    heads = _heads(shared, phi)
    logits = jnp.einsum("btd,bde,be->bt", heads.X, heads.W, heads.q)
    signs = jnp.where(jnp.arange(logits.shape[1]) % 2, -1.0, 1.0)
    model = {name: value for name, value in shared.items() if name != "delta"}
    offers: dict[type, Sequence[Any]] = {
        Run: [Run.seen(measured=measured, trace=trace)],
        Target: [Target(**shared, **moved)],
        Near: [Near(**model, **moved)],
        Head: Batch(heads),
        Softmax: Batch(Softmax(z=logits, u=jnp.broadcast_to(signs, logits.shape))),
    }
    return Seen(offers, trace, measured)


def _heads(shared: dict[str, Any], phi: PooledAttentionParams) -> Head:
    """Heads of the last iterate on samples, along a leading axis."""
    m = len(phi.c)
    count = m * len(shared["X"])
    pairs = np.unique(np.linspace(0, count - 1, min(count, _PAIRS)).astype(int))
    head, sample = pairs % m, pairs // m
    return Head(
        X=shared["X"][sample],
        q=shared["q"][sample],
        c=phi.c[head],
        U=phi.U[head],
        W=phi.W[head],
        v=shared["vw"][head],
        activation=shared["activation"],
    )


@dataclass(frozen=True, kw_only=True)
class Subject(Observed):
    """One audited run: what it offers, its trace, and the transport map it is measured against.

    `measured` says how far out the run is, by the words of the hypotheses.
    """

    trace: RunTrace
    measured: dict[str, float]
    goal: Goal


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
    run: TrainedRun | None = None,
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
        seen = offers_of(built, start, history, goal, setting, projects=one.rho is not None)
    return Subject(
        seed=seed,
        setting=setting,
        offers=seen.offers,
        findings=goal.findings,
        note="; ".join(filter(None, (history.note, _outside_ball(config, setting)))),
        trace=seen.trace,
        measured=seen.measured,
        goal=goal,
    )


def _history(
    config: TrainConfig,
    built: Built,
    start: PooledAttentionParams,
    recorder: DriftTerms,
    run: TrainedRun | None,
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
        clip=into_ball(config),
        rule=rule_of(config),
    )


def _outside_ball(config: TrainConfig, setting: Setting) -> str:
    """That tokens are longer than the theorems allow, and how to bring them there."""
    longest = setting.largest_token or 0.0
    if Check(TOKENS_AND_QUERY, longest, 1.0).holds:
        return ""
    told = f"the longest token has norm {longest:.3g}, the theorems ask at most 1"
    return f"{told}; {setting.clip}"


def slack(subject: Subject, variant: str) -> list[dict[str, float | str]]:
    """Where the closed bounds lose: each factor beside what it stands for on the run."""
    trace = subject.trace
    with float64():
        k = Constants(trace, variant)
    pairs = [
        ("B_app / max e_app", k.B_app, trace.e_app),
        ("B_lin / max e_lin", k.B_lin, np.max(trace.e_lin)),
        ("B_CoF / max e_CoF", k.B_CoF, np.max(trace.e_cof)),
        ("(f_max + y_max) / max |f - y|", k.f_max + k.y_max, np.max(trace.residual)),
        ("f_max / max |f|", k.f_max, np.max(trace.output)),
        ("y_max / max |y|", k.y_max, trace.label),
        ("B_grad / max |grad L|^2", k.B_grad, np.max(trace.gradient)),
        ("|nu|^2 / V(phi0)", float(np.sum(np.asarray(trace.nu) ** 2)), trace.distance[0]),
        ("B_U / max |U_i|", k.B_U, np.max(trace.values)),
    ]
    return slack_table(pairs)
