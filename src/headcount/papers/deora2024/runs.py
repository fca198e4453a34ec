"""A run of gradient descent as an instance, and what the training lemmas of deora2024 ask of it.

The target theta lies at theta_0 + (dU, dW)/sqrt(H), head by head: |theta - theta_0| then does not
depend on H, and a family can choose H as large as a theorem wants it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Family, instance_class
from ...theory.families import into_ball, log_uniform
from . import constants
from . import quantities as model
from .along import Segment
from .instances import ModelInstance, as_rows, draw_models, signs

MOST_ROOT = 1e9
"""The largest sqrt(H) that a search visits: beyond, float64 blurs the outputs."""


@instance_class
@dataclass(frozen=True)
class RunInstance(ModelInstance):
    """Gradient descent from theta_0 = (U, W) for `K` steps of size `eta`, and a target theta."""

    dU: Float[Array, "G r d"] = 0.0
    dW: Float[Array, "G d d"] = 0.0
    eta: Float[Array, ""] = 0.1
    K: int = 2

    positive: ClassVar[tuple[str, ...]] = ("k", "eta")

    @property
    def aim(self) -> Float[Array, "G p"]:
        """theta - theta_0."""
        return as_rows(self.dU, self.dW) / jnp.sqrt(self.H)

    @property
    def target(self) -> Float[Array, "G p"]:
        """theta."""
        return self.rows + self.aim

    @property
    def D(self) -> Float[Array, ""]:
        """|theta - theta_0|."""
        return model.length(self, self.aim)

    @property
    def N(self) -> Float[Array, ""]:
        """|theta|_{2,inf}."""
        return model.widest(self.target)


@instance_class
@dataclass(frozen=True)
class RunTrace:
    """What one run did; arrays run over k = 0..K or, where said so, over k = 0..K-1."""

    loss: Float[Array, "K+1"]
    gradient: Float[Array, "K"]
    """|grad L(theta_k)|^2."""
    away: Float[Array, "K+1"]
    """|theta_k - theta|."""
    moved: Float[Array, "K+1"]
    """|theta_k - theta_0|."""
    widths: Float[Array, "K+1"]
    """|theta_k|_{2,inf}."""
    highest: Float[Array, "K"]
    """An upper bound of the loss on [theta, theta_k]."""
    tangent: Float[Array, "K"]
    """L(theta_k) + <grad L(theta_k), theta - theta_k> - L(theta): what curvature must make up."""
    D: Float[Array, ""]
    N: Float[Array, ""]
    L_theta: Float[Array, ""]
    R: Float[Array, ""]
    H: Float[Array, ""]
    eta: Float[Array, ""]
    T: int = 1
    d: int = 1
    K: int = 1
    readout: str = "full"

    def beta_3(self, tier: str) -> Float[Array, "K"]:
        """beta_3(theta) v beta_3(theta_k), k = 0..K-1."""
        N = jnp.maximum(self.N, self.widths[:-1])
        return constants.beta_3(N, self.R, self.T, self.d, tier, self.readout)

    def beta_2(self, tier: str) -> Float[Array, "K"]:
        """beta_2(theta_k) v beta_2(theta_{k+1}), k = 0..K-1."""
        N = jnp.maximum(self.widths[:-1], self.widths[1:])
        return constants.beta_2(N, self.R, self.H, self.T, self.d, tier, self.readout)


def as_trace(instance: RunInstance | RunTrace) -> RunTrace:
    """The trace of a run that is given as an instance; a trace stays as it is."""
    return instance if isinstance(instance, RunTrace) else simulate(instance)


def step_terms(i: RunInstance, moved: Any) -> tuple[Any, dict[str, Any]]:
    """theta_{k+1} - theta_0, and the terms of step k, from theta_k - theta_0.

    A run is followed by what it moved: beside theta_0, short moves would be all rounding.
    """
    rows, target = i.rows + moved, i.target
    g = model.loss_gradient(i, rows)
    rise = jnp.vdot(i.k[:, None] * g, i.aim - moved)
    terms = {
        "tangent": model.loss(i, rows) + rise - model.loss(i, target),
        "loss": model.loss(i, rows),
        "gradient": model.length(i, g) ** 2,
        "away": model.length(i, moved - i.aim),
        "moved": model.length(i, moved),
        "widths": model.widest(rows),
        "highest": Segment(i, target, moved - i.aim).highest(),
    }
    return moved - i.eta * g, terms


def simulate(i: RunInstance) -> RunTrace:
    """Run gradient descent and write down every term."""
    start = jnp.zeros_like(i.rows)
    last, terms = jax.lax.scan(lambda moved, _: step_terms(i, moved), start, None, length=i.K)
    return trace_of(i, last, terms)


def trace_of(i: RunInstance, moved: Any, terms: dict[str, Any]) -> RunTrace:
    """The trace of a finished run that moved so far."""
    end = {
        "loss": model.loss(i, i.rows + moved),
        "away": model.length(i, moved - i.aim),
        "moved": model.length(i, moved),
        "widths": model.widest(i.rows + moved),
    }
    joined = {
        name: jnp.append(terms[name], end[name]) if name in end else terms[name] for name in terms
    }
    return RunTrace(
        **joined,
        D=i.D,
        N=i.N,
        L_theta=model.loss(i, i.target),
        R=i.R,
        H=i.H,
        eta=jnp.asarray(i.eta),
        T=i.T,
        d=i.d,
        K=i.K,
        readout=i.readout,
    )


def ends(i: RunInstance | RunTrace) -> tuple[Any, Any]:
    """(L(theta), L(theta_0)); no run is needed to know them."""
    if isinstance(i, RunTrace):
        return i.L_theta, i.loss[0]
    return model.loss(i, i.target), model.loss(i, i.rows)


def wide_enough(i: RunInstance, root: Any) -> Float[Array, "G"]:
    """Multiplicities in the proportion of k with sqrt(H) just above `root`."""
    shares = jnp.clip(jnp.round(jnp.abs(i.k)), 1.0, 4.0)
    size = jnp.clip(root, 1.0, MOST_ROOT) ** 2 * (1 + 1e-9)
    return shares * jnp.maximum(jnp.ceil(size / jnp.sum(shares)), 1.0)


def project_run(i: RunInstance, tier: str, factor: int = 18) -> RunInstance:
    """Every hypothesis of Theorem 3 with this Hessian bound (factor 128: of Lemma 11)."""
    small = replace(
        i,
        X=into_ball(i.X, 1.5),
        y=signs(i.y),
        U=into_ball(i.U, 1.0, 2),
        W=into_ball(i.W, 1.0, 2),
        dU=into_ball(i.dU, 1.0, 2),
        dW=into_ball(i.dW, 1.0, 2),
        k=jnp.clip(jnp.round(jnp.abs(i.k)), 1.0, 4.0),
    )
    longest = model.widest(small.rows) + model.widest(as_rows(small.dU, small.dW))
    shape = (small.R, small.T, small.d, tier, small.readout)
    root = constants.required_root(small.D, longest, *shape, factor=factor)
    k = wide_enough(small, root)
    # Read-outs of size 1/sqrt(H) keep the outputs of order one, whatever H is.
    wide = replace(small, k=k, U=into_ball(small.U, 2.0 / jnp.sqrt(jnp.sum(k)), 2))
    B = constants.reach(wide.D, wide.N)
    rho = constants.rho(B, wide.R, wide.H, wide.T, wide.d, tier, wide.readout)
    step = constants.largest_step(rho, wide.D, wide.K, *ends(wide))
    return replace(wide, eta=jnp.clip(jnp.abs(i.eta), 1e-30, jnp.maximum(step, 1e-30)))


def draw_runs(rng: np.random.Generator, count: int, *, K: int, **shape: Any) -> RunInstance:
    """Random small runs; targets at every distance."""
    models = draw_models(rng, count, **shape)
    values = {f.name: getattr(models, f.name) for f in fields(ModelInstance)}
    values["U"] = rng.normal(size=models.U.shape) * log_uniform(rng, 1e-3, 1.0, count, 1, 1, 1)
    far = log_uniform(rng, 1e-2, 1.0, count, 1, 1, 1)
    return RunInstance(
        **values,
        dU=rng.normal(size=models.U.shape) * far,
        dW=rng.normal(size=models.W.shape) * far,
        eta=np.full(count, 1.0),
        K=K,
    )


def run_family(
    project: Any, name: str, *, n: int = 2, d: int = 1, T: int = 2, G: int = 1, K: int = 2
) -> Family:
    """Runs of one shape inside the hypotheses that `project` enforces."""
    draw = functools.partial(draw_runs, n=n, d=d, T=T, G=G, K=K, readout="full")
    return Family(f"run {name} n={n} d={d} T={T} G={G} K={K}", draw, project)


V2 = functools.partial(project_run, tier="v2")
V1 = functools.partial(project_run, tier="v1")
SHARP = functools.partial(project_run, tier="sharp")
_TEXTS = tuple(run_family(project, name, d=2, K=3) for project, name in ((V2, "v2"), (V1, "v1")))
"""With as few heads as each text allows, and features enough for the two to differ."""
RUNS = (*_TEXTS, run_family(SHARP, "sharp", G=2, n=1))
"""Inside Theorem 3."""
STEPS = (run_family(SHARP, "sharp", d=2, K=3), run_family(SHARP, "sharp", G=2, n=1), *_TEXTS)
"""With steps as long as the sharp constants allow."""
