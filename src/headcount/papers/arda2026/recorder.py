"""The terms of the drift inequality, written down while any run of the model trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from ...core import MEAN_SQUARED, Array
from ...kernels import Linearised
from ...training import Built, Snapshot, UpdateRule, gradient_path, map_over_chunks
from .model import PooledAttentionParams
from .runs import RunInstance, RunTrace, head_summary, sample_terms, step_terms

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


def trace_of_records(
    start: RunInstance,
    records: dict[str, Any],
    average: dict[str, Any],
    built: Built,
    *,
    rule_projects: bool,
) -> RunTrace:
    """The trace of a run from what `DriftTerms` wrote at steps 0..tau and at the average."""
    x, y = built.x[0], built.y[0]
    distance = np.asarray(records["distance"])
    tau = len(distance) - 1
    with np.errstate(invalid="ignore"):  # a run that diverged: NaN is not "the same"
        gap = np.abs(distance[1:] - np.asarray(records["predicted"])[:-1])
        astray = np.sum(~(gap <= _SAME * (distance[1:] + distance[:-1])))
    queries = jax.vmap(built.model.query)(jnp.asarray(x))
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
        tokens=np.max([np.max(np.linalg.norm(block, axis=-1)) for block in (x, queries)]),
        labels=np.max(np.abs(y)) / start.y_max_sharp,
        moved=np.max(np.asarray(moves) / np.asarray(start.rho)),
        astray=astray.astype(float),
        unprojected=astray.astype(float) if rule_projects else float(tau),
        n=len(y),
        tau=tau,
    )
    return jax.tree.map(np.asarray, trace)
