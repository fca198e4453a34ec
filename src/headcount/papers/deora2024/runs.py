"""What a run of gradient descent did, as the training lemmas of deora2024 ask for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Array
from ...theory import instance_class
from . import constants, quantities
from .segments import Segment

if TYPE_CHECKING:
    from .records import Run


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


def step_terms(i: Run, moved: Any) -> tuple[Any, dict[str, Any]]:
    """theta_{k+1} - theta_0, and the terms of step k, from theta_k - theta_0.

    A run is followed by what it moved: beside theta_0, short moves would be all rounding.
    """
    rows, target = i.rows + moved, i.target
    g = quantities.loss_gradient(i, rows)
    rise = jnp.vdot(i.k[:, None] * g, i.aim - moved)
    terms = {
        "tangent": quantities.loss(i, rows) + rise - quantities.loss(i, target),
        "loss": quantities.loss(i, rows),
        "gradient": quantities.length(i, g) ** 2,
        "away": quantities.length(i, moved - i.aim),
        "moved": quantities.length(i, moved),
        "widths": quantities.widest(rows),
        "highest": Segment(i, target, moved - i.aim).highest(),
    }
    return moved - i.eta * g, terms


def simulate(i: Run) -> RunTrace:
    """Run gradient descent and write down every term."""
    start = jnp.zeros_like(i.rows)
    last, terms = jax.lax.scan(lambda moved, _: step_terms(i, moved), start, None, length=i.K)
    return trace_of(i, last, terms)


def trace_of(i: Run, moved: Any, terms: dict[str, Any]) -> RunTrace:
    """The trace of a finished run that moved so far."""
    end = {
        "loss": quantities.loss(i, i.rows + moved),
        "away": quantities.length(i, moved - i.aim),
        "moved": quantities.length(i, moved),
        "widths": quantities.widest(i.rows + moved),
    }
    joined = {
        name: jnp.append(terms[name], end[name]) if name in end else terms[name] for name in terms
    }
    return RunTrace(
        **joined,
        D=i.D,
        N=i.N,
        L_theta=quantities.loss(i, i.target),
        R=i.R,
        H=i.H,
        eta=jnp.asarray(i.eta),
        T=i.T,
        d=i.d,
        K=i.K,
        readout=i.readout,
    )
