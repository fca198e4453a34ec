"""A small ProjGD run as a point, and the terms of its drift inequality, step by step.

Everything is computed from the run itself, in float64: the errors of approximation, linearisation
and change of features are realised, not bounded. The loop here is the one that the falsifier
differentiates; the runs that users train leave the same trace through `audit.DriftTerms`.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from ...core import Activation, Array, activation_named
from ...theory import Fraction, Positive, Static, Tokens, instance_class
from ...theory._record import Shape
from ...theory.families import into_ball
from ...training._projections import nearest_in_ball
from .model import PooledAttentionParams
from .quantities import linear_outputs, outputs
from .records import LONGEST, TOKENS_AND_QUERY, Mirrored, Near, Target


class Run(Target):
    """ProjGD from phi0 for `tau` steps of size `eta` onto Omega_rho; phi is phi0 here."""

    X = Tokens("n", "T", "d", says=TOKENS_AND_QUERY)
    q = Tokens("n", "d", says=TOKENS_AND_QUERY)
    U0 = Mirrored("m", "d", radius=LONGEST)
    delta = Fraction(high=0.5)
    eta = Positive(low=1e-3, high=3.0)
    tau = Static(3)

    shapes: ClassVar[tuple[Shape, ...]] = (
        {"n": 2, "T": 2, "d": 2, "m": 2, "tau": 3},
        {"n": 1, "T": 2, "d": 1, "m": 4, "tau": 2, "activation": "sin"},
    )
    largest = 120

    def within(self) -> Self:
        """rho >= nu, and phi is phi0."""
        zero = {name: jnp.zeros_like(getattr(self, name)) for name in ("dc", "dU", "dW")}
        return self.changed(rho=jnp.maximum(self.rho, self.nu), **zero)

    @functools.cached_property
    def trace(self) -> RunTrace:
        """What the run did."""
        return simulate(self)

    @property
    def symbols(self) -> RunTrace:
        """The trace holds what the constants are made of, also of a run that was only seen."""
        return self.trace


def of_theorem(run: Run) -> Run:
    """With the theorem's step size tau^{-1/2}, short U_i0 and a small delta.

    |U_i0| <= 2 keeps every admissible run inside the event E_app: e_app <= 3 y_max* < B_app there.
    """
    eta, delta = jnp.full_like(run.eta, 1 / math.sqrt(run.tau)), jnp.minimum(run.delta, 0.04)
    return run.within().changed(eta=eta, delta=delta, U0=into_ball(run.U0, radius=2.0))


MOST_SEQUENCES = 10**4


class StochasticRun(Run):
    """A small problem for ProjSGD with one index per step: all n^tau sequences are run."""

    shapes = ({"n": 2, "T": 2, "d": 1, "m": 2, "tau": 3, "within": of_theorem},)
    largest = 45

    def outside(self) -> str | None:
        """Every sequence of indices is run, so there must not be too many."""
        if self.tau * math.log(self.n) > math.log(MOST_SEQUENCES):
            return f"{self.n}^{self.tau} sequences of indices are too many ({MOST_SEQUENCES})"
        return super().outside()

    @functools.cached_property
    def traces(self) -> RunTrace:
        """What each did, along a leading axis; they are equally likely."""
        lin_target = linear_outputs(self, self.transported)

        def one(indices: Array) -> RunTrace:
            carry, terms = advance(self, lin_target, start_of(self), self.tau, indices)
            return trace_of(self, lin_target, carry, terms)

        sequences = list(itertools.product(range(self.n), repeat=self.tau))
        return jax.vmap(one)(jnp.asarray(np.array(sequences, dtype=np.float64)))

    @property
    def trace(self) -> RunTrace:
        """Of the first sequence: what is the same for all."""
        return jax.tree.map(lambda leaf: leaf[0], self.traces)


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

    @property
    def sigma(self) -> Activation:
        """The activation with its bounds."""
        return activation_named(self.activation)

    @property
    def step(self) -> Float[Array, ""]:
        """eta."""
        return self.eta

    @property
    def V0(self) -> Float[Array, ""]:
        """V(phi0)."""
        return self.distance[0]

    @property
    def loss_at_start(self) -> Float[Array, ""]:
        """L(phi0)."""
        return self.loss[0]


def simulate(i: Run) -> RunTrace:
    """Run ProjGD and write down every term of Eqs. (24)-(44)."""
    lin_target = linear_outputs(i, i.transported)
    carry, terms = advance(i, lin_target, start_of(i), i.tau)
    return trace_of(i, lin_target, carry, terms)


Carry = tuple[PooledAttentionParams, PooledAttentionParams]
"""The current iterate, and the sum of the iterates before it."""


def start_of(i: Run) -> Carry:
    """Before the first step."""
    return i.initial, jax.tree.map(jnp.zeros_like, i.initial)


def advance(
    i: Run,
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
    i: Run, lin_target: Float[Array, "n"], carry: Carry, terms: dict[str, Array]
) -> RunTrace:
    """The trace of a finished run."""
    last, total = carry
    end = optax.tree.norm(optax.tree.sub(last, i.transported), squared=True)
    terms = {**terms, "distance": jnp.append(terms["distance"], end)}
    return RunTrace(**terms, **_summary(i, optax.tree.scale(1 / i.tau, total), lin_target))


def omega_of(i: Near) -> Any:
    """The exact projection onto Omega_rho, with radii that may be traced."""
    root = math.sqrt(i.m)

    def project(phi: PooledAttentionParams) -> PooledAttentionParams:
        heads = jax.vmap(nearest_in_ball, (0, 0, None))
        radii = PooledAttentionParams(*(i.rho / root))
        return jax.tree.map(heads, phi, i.initial, radii)

    return project


def reach_of(i: Near) -> Float[Array, ""]:
    """The largest displacement of phi~ in units of rho."""
    sizes = [
        jnp.max(jnp.sqrt(jnp.sum(block.reshape(i.m, -1) ** 2, axis=1))) * math.sqrt(i.m) / radius
        for block, radius in zip(optax.tree.sub(i.transported, i.initial), i.rho, strict=True)
    ]
    return jnp.max(jnp.stack(sizes))


def _summary(
    i: Run, average: PooledAttentionParams, lin_target: Float[Array, "n"]
) -> dict[str, Any]:
    """What a trace holds once per run."""
    f = outputs(i, average)
    return {
        "e_app": jnp.max(jnp.abs(lin_target - i.y)),
        "average_loss": jnp.mean((f - i.y) ** 2),
        "average_e_lin": jnp.max(jnp.abs(f - linear_outputs(i, average))),
        "label": jnp.max(jnp.abs(i.y)),
        "moved": jnp.zeros(()),
        "astray": jnp.zeros(()),
        "unprojected": jnp.zeros(()),
        **head_summary(i),
        "n": i.n,
        "tau": i.tau,
    }


def head_summary(i: Run) -> dict[str, Any]:
    """What a trace holds of the start, the target and the radii: no sample enters."""
    return {
        "B_U": i.B_U,
        "rho": i.rho,
        "nu": i.nu,
        "eta": jnp.asarray(i.eta),
        "delta": jnp.asarray(i.delta),
        "reach": reach_of(i),
        "activation": i.activation,
        "d": i.d,
        "m": i.m,
    }
