"""What an audit of arda2026 looks at: one seed of a configuration, trained in float64.

The run is simulated with every term of the drift inequality; the claims about heads and models
are then asked at its last iterate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core import BadArgument, float64
from ...models import PooledAttention
from ...training import TrainConfig, build
from .fact_4 import EventInstance
from .instances import HeadInstance, ModelInstance, SoftmaxInstance
from .model import linear_outputs
from .runs import Carry, RunInstance, RunTrace, advance, start_of, trace_of
from .setting import Setting
from .theorem_1 import run_constants

_SEGMENT = 20
"""Steps between two looks at the clock."""
_SAMPLES = 128
"""Samples at which the claims about models are asked; the run itself uses all of them."""
_PAIRS = 512
"""(head, sample) pairs at which the claims about heads are asked."""

Progress = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Subject:
    """One audited run."""

    seed: int
    setting: Setting
    run: RunInstance
    trace: RunTrace
    model: ModelInstance
    """The last iterate on a subset of the samples."""
    heads: HeadInstance
    """Heads of the last iterate on samples, along a leading axis."""
    softmax: SoftmaxInstance
    event: EventInstance

    def instances(self, kind: type) -> list[Any]:
        """The instances of this type that the run offers; a leading axis is split."""
        batches = {HeadInstance: self.heads, SoftmaxInstance: self.softmax}
        if kind in batches:
            batch = batches[kind]
            count = len(jax.tree.leaves(batch)[0])
            return [jax.tree.map(lambda leaf, k=k: leaf[k], batch) for k in range(count)]
        singles = {RunInstance: self.trace, ModelInstance: self.model, EventInstance: self.event}
        return [singles[kind]] if kind in singles else []


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
        ("|nu|^2 / V(phi0)", float(np.sum(trace.nu**2)), trace.distance[0]),
        ("B_U / max |U_i|", k["B_U"], np.max(trace.values)),
    ]
    return [
        {
            "factor": name,
            "bound": float(bound),
            "measured": float(measured),
            "orders": float(np.log10(bound / max(float(measured), 1e-300))),
        }
        for name, bound, measured in pairs
    ]


def check_config(config: TrainConfig) -> None:
    """Raise unless the configuration is a ProjGD run of arda2026 on its own teacher."""
    wanted = {"model": "arda2026", "optimiser": "projgd", "data": "transport-teacher"}
    for field, value in wanted.items():
        if getattr(config, field) != value:
            problem = "is outside what arda2026's theorems speak about"
            raise BadArgument(field, getattr(config, field), problem, fix=f"use {field}={value}")
    if config.init != "paired":
        raise BadArgument("init", config.init, "is not the paper's", fix="use init=paired")


def subject(
    config: TrainConfig, seed: int, *, delta: float, progress: Progress | None = None
) -> Subject:
    """Train seed `seed` of `config` and collect what the claims ask about."""
    check_config(config)
    assert config.rho is not None
    built = build(config.model_copy(update={"seeds": (seed,)}))
    model: PooledAttention = built.model
    teacher: Any = built.data
    x, y = built.x[0], built.y[0]
    start = [leaf[0] for leaf in built.initial]
    v = teacher.transport(seed, x)(*start)
    setting = Setting(
        d=model.d,
        m=model.m,
        n=len(y),
        T=x.shape[1],
        activation=model.activation.name,
        rho=config.rho,
        nu=teacher.nu,
        delta=delta,
        delta_prime=delta,
        tau=config.steps,
        eta=config.step_size,
    )
    run = _run_instance(model, setting, x, y, start, v)
    with float64():
        trace, last = _simulate(run, progress)
        return _collect(seed, setting, run, trace, last, delta)


def _run_instance(
    model: PooledAttention, setting: Setting, x: Any, y: Any, start: list[Any], v: Any
) -> RunInstance:
    rho, nu = np.array(setting.rho), np.array(setting.nu)
    sigma = setting.sigma
    size = sigma.sigma0 * nu[0] + sigma.sigma1 * (nu[1] + nu[2])
    with float64():
        queries = np.asarray(jax.vmap(model.query)(jnp.asarray(x)))
    zeros = [np.zeros_like(leaf) for leaf in start]
    return RunInstance(
        X=x,
        q=queries,
        c0=start[0],
        U0=start[1],
        W0=start[2],
        dc=zeros[0],
        dU=zeros[1],
        dW=zeros[2],
        rho=rho,
        vc=np.asarray(v.v_c) / nu[0],
        vu=np.asarray(v.v_u) / nu[1],
        vw=np.asarray(v.v_w) / nu[2],
        nu=nu,
        labels=y / size,
        activation=setting.activation,
        eta=np.asarray(setting.step),
        tau=setting.tau,
    )


def _simulate(run: RunInstance, progress: Progress | None) -> tuple[RunTrace, Any]:
    """The trace, in segments so that progress can be shown."""
    lin_target = jax.jit(lambda i: linear_outputs(i, i.transported))(run)
    segment = jax.jit(advance, static_argnums=3)
    carry: Carry = jax.tree.map(jnp.asarray, start_of(run))
    parts = []
    for done in range(0, run.tau, _SEGMENT):
        count = min(_SEGMENT, run.tau - done)
        carry, terms = segment(run, lin_target, carry, count)
        parts.append(jax.device_get(terms))
        if progress is not None:
            progress(done + count, run.tau, float(terms["loss"][-1]))
    joined = {name: jnp.concatenate([p[name] for p in parts]) for name in parts[0]}
    trace = jax.jit(trace_of)(run, lin_target, carry, joined)
    return jax.tree.map(np.asarray, trace), jax.device_get(carry[0])


def _collect(
    seed: int, setting: Setting, run: RunInstance, trace: RunTrace, last: Any, delta: float
) -> Subject:
    m, n = run.m, len(run.X)
    some = np.unique(np.linspace(0, n - 1, min(n, _SAMPLES)).astype(int))
    root = np.sqrt(m)
    moved = [
        (after - before) * root / radius
        for after, before, radius in zip(last, run.initial, run.rho, strict=True)
    ]
    values = {f.name: getattr(run, f.name) for f in fields(ModelInstance)}
    values |= {"X": run.X[some], "q": run.q[some], "labels": run.labels[some]}
    values |= dict(zip(("dc", "dU", "dW"), moved, strict=True))
    pairs = np.unique(np.linspace(0, m * len(some) - 1, _PAIRS).astype(int))
    head, sample = pairs % m, some[pairs // m]
    heads = HeadInstance(
        X=run.X[sample],
        q=run.q[sample],
        c=last.c[head],
        U=last.U[head],
        W=last.W[head],
        v=run.vw[head],
        activation=run.activation,
    )
    logits = np.einsum("btd,bde,be->bt", heads.X, heads.W, heads.q)
    signs = np.where(np.arange(logits.shape[1]) % 2, -1.0, 1.0)
    return Subject(
        seed=seed,
        setting=setting,
        run=run,
        trace=trace,
        model=ModelInstance(**values),
        heads=heads,
        softmax=SoftmaxInstance(logits, np.broadcast_to(signs, logits.shape).copy()),
        event=EventInstance(run.U0[: m // 2], np.asarray(delta)),
    )
