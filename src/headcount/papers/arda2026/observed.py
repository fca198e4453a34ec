"""The instances that an audited run offers: its start, its last iterate, some of its heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...theory import Batch
from ...training import Built
from .constants import label_envelope
from .fact_4 import EventInstance
from .instances import HeadInstance, ModelInstance, SoftmaxInstance, TargetInstance
from .model import PooledAttentionParams
from .runs import RunInstance, RunTrace
from .setting import Setting
from .transport import Goal

_SAMPLES = 128
"""Samples at which the claims about models are asked; the run itself uses all of them."""
_PAIRS = 512
"""(head, sample) pairs at which the claims about heads are asked."""


@dataclass(frozen=True)
class Offers:
    """Instances of one run, in JAX arrays: verdicts, not constructors, say what is wrong."""

    start: RunInstance
    last: TargetInstance
    heads: HeadInstance
    softmax: SoftmaxInstance
    event: EventInstance

    def table(self, trace: RunTrace) -> dict[type, Any]:
        """Instance class -> instances; the claims about runs get the trace."""
        model = {name: value for name, value in vars(self.last).items() if name != "delta"}
        return {
            RunInstance: [trace],
            TargetInstance: [self.last],
            ModelInstance: [ModelInstance(**model)],
            HeadInstance: Batch(self.heads),
            SoftmaxInstance: Batch(self.softmax),
            EventInstance: [self.event],
        }


def offers_of(
    built: Built,
    start: PooledAttentionParams,
    last: PooledAttentionParams,
    goal: Goal,
    setting: Setting,
) -> Offers:
    """Start and last iterate on up to 128 samples, and up to 512 (head, sample) pairs."""
    x, y = built.x[0], built.y[0]
    some = np.unique(np.linspace(0, len(y) - 1, min(len(y), _SAMPLES)).astype(int))
    X = jnp.asarray(x[some])
    q = jax.vmap(built.model.query)(X)
    root, rho, nu = np.sqrt(setting.m), jnp.asarray(setting.rho), jnp.asarray(setting.nu)
    phi0, phi = (PooledAttentionParams(*map(jnp.asarray, p)) for p in (start, last))
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
    eta = jnp.asarray(setting.step)
    heads = _heads(shared, phi)
    logits = jnp.einsum("btd,bde,be->bt", heads.X, heads.W, heads.q)
    signs = jnp.where(jnp.arange(logits.shape[1]) % 2, -1.0, 1.0)
    return Offers(
        RunInstance(**shared, **still, eta=eta, tau=setting.tau),
        TargetInstance(**shared, **moved),
        heads,
        SoftmaxInstance(logits, jnp.broadcast_to(signs, logits.shape)),
        EventInstance(phi0.U[: setting.m // 2], jnp.asarray(setting.delta_prime)),
    )


def _heads(shared: dict[str, Any], phi: PooledAttentionParams) -> HeadInstance:
    """Heads of the last iterate on samples, along a leading axis."""
    m = len(phi.c)
    count = m * len(shared["X"])
    pairs = np.unique(np.linspace(0, count - 1, min(count, _PAIRS)).astype(int))
    head, sample = pairs % m, pairs // m
    return HeadInstance(
        X=shared["X"][sample],
        q=shared["q"][sample],
        c=phi.c[head],
        U=phi.U[head],
        W=phi.W[head],
        v=shared["vw"][head],
        activation=shared["activation"],
    )
