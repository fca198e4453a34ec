"""A small ProjGD run as an instance, and the terms of its drift inequality, step by step.

Everything is computed from the run itself, in float64: the errors of approximation, linearisation
and change of features are realised, not bounded. The loop here is the one that the falsifier
differentiates; the runs that users train leave the same trace through `recorder.DriftTerms`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from ...core import Array
from ...theory import Family, instance_class
from ...theory.families import into_ball, shaped
from ...training import nearest_in_ball
from .hypotheses import LABELS, PAIRED, TRANSPORT
from .instances import ModelInstance, TargetInstance, draw_targets, project_model
from .model import PooledAttentionParams
from .quantities import linear_outputs, outputs


@instance_class
@dataclass(frozen=True)
class RunInstance(TargetInstance):
    """ProjGD from phi0 for `tau` steps of size `eta` onto Omega_rho; phi is phi0 here."""

    eta: Float[Array, ""] = 0.5
    tau: int = 3

    positive = ("rho", "nu", "eta")


@instance_class
@dataclass(frozen=True)
class RunTrace:
    """What one run did; scalars per step s = 0..tau-1 unless said otherwise."""

    loss: Float[Array, "tau"]
    gradient: Float[Array, "tau"]
    """|grad L(phi_s)|^2."""
    distance: Float[Array, "tau+1"]
    """V(s) = |phi_s - phi~|^2, s = 0..tau."""
    excess: Float[Array, "tau"]
    """|phi'_s - Proj phi'_s|^2: what the projection cut off."""
    cross: Float[Array, "tau"]
    """mean_j (f_j - y_j)(e_app + e_lin + e_CoF)_j."""
    residual: Float[Array, "tau"]
    """max_j |f_j - y_j|."""
    output: Float[Array, "tau"]
    """max_j |f_j|."""
    e_lin: Float[Array, "tau"]
    """max_j |f - f_lin| at phi_s."""
    e_cof: Float[Array, "tau"]
    """max_j |<grad f(phi_s) - grad f(phi0), phi~ - phi_s>|."""
    values: Float[Array, "tau"]
    """max_i |U_i| at phi_s."""
    e_app: Float[Array, ""]
    """max_j |f_lin(phi~) - y|."""
    average_loss: Float[Array, ""]
    """L at the mean of phi_0..phi_{tau-1}."""
    average_e_lin: Float[Array, ""]
    """max_j |f - f_lin| at the average iterate."""
    label: Float[Array, ""]
    """max_j |y_j|."""
    B_U: Float[Array, ""]
    """max_i |U_i0| + rho_u/sqrt m, the realised bound of Remark 7."""
    rho: Float[Array, "3"]
    nu: Float[Array, "3"]
    eta: Float[Array, ""]
    delta: Float[Array, ""]
    """The probability at which E_app may fail."""
    reach: Float[Array, ""]
    """Largest displacement of phi~ in units of rho: at most 1 when phi~ lies in Omega_rho."""
    tokens: Float[Array, ""]
    """Largest token or query norm."""
    pairing: Float[Array, ""]
    """How far the start is from paired heads with |c| = 1."""
    transport: Float[Array, ""]
    """Largest |v| of any head and block, in units of nu."""
    labels: Float[Array, ""]
    """max_j |y_j| in units of y_max*."""
    moved: Float[Array, ""]
    """Largest displacement of any iterate's head and block in units of rho."""
    astray: Float[Array, ""]
    """Steps that are no gradient step of the mean squared loss (with the rule's projection)."""
    unprojected: Float[Array, ""]
    """Steps that are no such step followed by the projection onto Omega_rho."""
    activation: str = "tanh"
    n: int = 1
    d: int = 1
    m: int = 2
    tau: int = 1


def as_trace(instance: RunInstance | RunTrace) -> RunTrace:
    """The trace of a run that is given as an instance; a trace stays as it is."""
    return instance if isinstance(instance, RunTrace) else simulate(instance)


def simulate(i: RunInstance) -> RunTrace:
    """Run ProjGD and write down every term of Eqs. (24)-(44)."""
    lin_target = linear_outputs(i, i.transported)
    carry, terms = advance(i, lin_target, start_of(i), i.tau)
    return trace_of(i, lin_target, carry, terms)


Carry = tuple[PooledAttentionParams, PooledAttentionParams]
"""The current iterate, and the sum of the iterates before it."""


def start_of(i: RunInstance) -> Carry:
    """Before the first step."""
    return i.initial, jax.tree.map(jnp.zeros_like, i.initial)


def advance(
    i: RunInstance,
    lin_target: Float[Array, "n"],
    carry: Carry,
    steps: int,
    indices: Float[Array, "steps"] | None = None,
) -> tuple[Carry, dict[str, Float[Array, "steps"]]]:
    """`steps` steps of ProjGD with the terms of each; of ProjSGD where indices are given."""
    project = omega_of(i)
    target = i.transported
    n = i.X.shape[0]
    samples = jnp.arange(n, dtype=i.X.dtype)  # as the drawn indices, which are data of the instance

    def step(carry: Carry, chosen: Any) -> tuple[Carry, dict[str, Array]]:
        phi, total = carry
        f, pull_back = jax.vjp(lambda p: outputs(i, p), phi)
        share = 1 / n if chosen is None else jnp.where(samples == chosen, 1.0, 0.0)
        (grad,) = pull_back(2 * share * (f - i.y))
        lin = linear_outputs(i, phi)
        _, slope = jax.jvp(lambda p: outputs(i, p), (phi,), (optax.tree.sub(target, phi),))
        raw = optax.tree.add(phi, optax.tree.scale(-i.eta, grad))
        after = project(raw)
        terms = {
            **sample_terms(f, i.y, lin, slope, lin_target),
            **step_terms(phi, grad, raw, after, target),
        }
        return (after, optax.tree.add(total, phi)), terms

    return jax.lax.scan(step, carry, indices, length=steps)


def sample_terms(
    f: Float[Array, "n"],
    y: Float[Array, "n"],
    lin: Float[Array, "n"],
    slope: Float[Array, "n"],
    lin_target: Float[Array, "n"],
) -> dict[str, Float[Array, ""]]:
    """The terms of one step that are means or maxima over samples.

    lin and lin_target are f_lin at phi and phi~, slope is <grad f(phi), phi~ - phi>.
    """
    e_cof = slope - (lin_target - lin)
    errors = (lin_target - y) + (f - lin) + e_cof
    return {
        "loss": jnp.mean((f - y) ** 2),
        "cross": jnp.mean((f - y) * errors),
        "residual": jnp.max(jnp.abs(f - y)),
        "output": jnp.max(jnp.abs(f)),
        "e_lin": jnp.max(jnp.abs(f - lin)),
        "e_cof": jnp.max(jnp.abs(e_cof)),
    }


def step_terms(phi: Any, grad: Any, raw: Any, after: Any, target: Any) -> dict[str, Any]:
    """The terms of one step phi -> raw = phi - eta grad -> after = Proj(raw)."""
    return {
        "gradient": optax.tree.norm(grad, squared=True),
        "distance": optax.tree.norm(optax.tree.sub(phi, target), squared=True),
        "excess": optax.tree.norm(optax.tree.sub(raw, after), squared=True),
        "values": jnp.max(jnp.linalg.norm(phi.U, axis=-1)),
    }


def trace_of(
    i: RunInstance, lin_target: Float[Array, "n"], carry: Carry, terms: dict[str, Array]
) -> RunTrace:
    """The trace of a finished run."""
    last, total = carry
    end = optax.tree.norm(optax.tree.sub(last, i.transported), squared=True)
    terms = {**terms, "distance": jnp.append(terms["distance"], end)}
    return RunTrace(**terms, **_summary(i, optax.tree.scale(1 / i.tau, total), lin_target))


def omega_of(i: ModelInstance) -> Any:
    """The exact projection onto Omega_rho, with radii that may be traced."""
    root = math.sqrt(i.m)

    def project(phi: PooledAttentionParams) -> PooledAttentionParams:
        heads = jax.vmap(nearest_in_ball, (0, 0, None))
        radii = PooledAttentionParams(*(i.rho / root))
        return jax.tree.map(heads, phi, i.initial, radii)

    return project


def reach_of(i: ModelInstance | RunTrace) -> Float[Array, ""]:
    """The largest displacement of phi~ in units of rho; no run is needed to know it."""
    if isinstance(i, RunTrace):
        return i.reach
    sizes = [
        jnp.max(jnp.sqrt(jnp.sum(block.reshape(i.m, -1) ** 2, axis=1))) * math.sqrt(i.m) / radius
        for block, radius in zip(optax.tree.sub(i.transported, i.initial), i.rho, strict=True)
    ]
    return jnp.max(jnp.stack(sizes))


def tokens_of(i: ModelInstance | RunTrace) -> Float[Array, ""]:
    """The largest token or query norm."""
    if isinstance(i, RunTrace):
        return i.tokens
    norms = [jnp.max(jnp.linalg.norm(block, axis=-1)) for block in (i.X, i.q)]
    return jnp.max(jnp.stack(norms))


def _summary(
    i: RunInstance, average: PooledAttentionParams, lin_target: Float[Array, "n"]
) -> dict[str, Any]:
    """What a trace holds once per run."""
    f = outputs(i, average)
    return {
        "e_app": jnp.max(jnp.abs(lin_target - i.y)),
        "average_loss": jnp.mean((f - i.y) ** 2),
        "average_e_lin": jnp.max(jnp.abs(f - linear_outputs(i, average))),
        "label": jnp.max(jnp.abs(i.y)),
        "tokens": tokens_of(i),
        "labels": LABELS.value(i),
        "moved": jnp.zeros(()),
        "astray": jnp.zeros(()),
        "unprojected": jnp.zeros(()),
        **head_summary(i),
        "n": i.n,
        "tau": i.tau,
    }


def head_summary(i: RunInstance) -> dict[str, Any]:
    """What a trace holds of the start, the target and the radii: no sample enters."""
    return {
        "B_U": i.B_U,
        "rho": i.rho,
        "nu": i.nu,
        "eta": jnp.asarray(i.eta),
        "delta": jnp.asarray(i.delta),
        "reach": reach_of(i),
        "pairing": PAIRED.value(i),
        "transport": TRANSPORT.value(i),
        "activation": i.activation,
        "d": i.d,
        "m": i.m,
    }


def project_run(run: RunInstance) -> RunInstance:
    """The hypotheses of Theorem 1: those of a model, rho >= nu, and a positive step."""
    model = project_model(run)
    changed: dict[str, Any] = {
        "rho": jnp.maximum(model.rho, model.nu),
        "eta": jnp.clip(run.eta, 1e-3, 3.0),
        "delta": jnp.clip(run.delta, 1e-9, 0.5),
        **{name: jnp.zeros_like(getattr(run, name)) for name in ("dc", "dU", "dW")},
    }
    inside: Any = replace(model, **changed)
    return inside


def project_theorem_run(run: RunInstance) -> RunInstance:
    """As `project_run`, with the theorem's step size tau^{-1/2}, |U_i0| <= 2 and a small delta.

    Short U_i0 keep every admissible run inside the event E_app: e_app <= 3 y_max* < B_app there.
    """
    inside = project_run(run)
    return replace(
        inside,
        U0=2.0 * into_ball(inside.U0 / 2.0),
        eta=jnp.full_like(run.eta, 1 / math.sqrt(run.tau)),
        delta=jnp.minimum(inside.delta, 0.04),
    )


def draw_runs(rng: np.random.Generator, count: int, *, tau: int, **shape: Any) -> RunInstance:
    """Random small runs."""
    drawn = draw_targets(rng, count, **shape)
    return RunInstance(**vars(drawn), eta=np.exp(rng.uniform(-4.0, 1.0, count)), tau=tau)


def run_family(
    project: Any,
    *,
    n: int = 2,
    d: int = 2,
    T: int = 2,
    m: int = 2,
    tau: int = 3,
    activation: str = "tanh",
) -> Family:
    """Runs of one shape inside the hypotheses that `project` enforces."""
    shape: dict[str, Any] = {"n": n, "d": d, "T": T, "m": m, "tau": tau, "activation": activation}
    return shaped("run", draw_runs, project, largest=120, **shape)


RUNS = (run_family(project_run), run_family(project_run, n=1, d=1, m=4, tau=2, activation="sin"))
THEOREM_RUNS = (run_family(project_theorem_run), run_family(project_theorem_run, d=1, m=4, tau=4))
