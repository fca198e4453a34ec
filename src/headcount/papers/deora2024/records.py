"""What the statements of deora2024 speak about.

A head, a model, two points, a run, a good start. Groups carry multiplicities: H may be as large as
the theorems ask for. R is realised: the largest token norm, and at least 1, as Assumption 1 asks.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Choice, Positive, Record, Static, quantity
from ...theory._record import Shape
from ...theory.families import safe_norm
from . import constants, quantities
from .model import READOUTS
from .runs import simulate
from .segments import Segment
from .spaces import Counts, Entries, Labels, Longest, Words


class Head(Record):
    """One head (U, W) on one sample X, and directions a, b, c for second derivatives."""

    X = Words("T", "d")
    U = Entries("T", "d", low=1e-3, high=1e3)
    W = Entries("d", "d", low=1e-2, high=5.0, largest=30.0)
    a = Entries("T")
    b = Entries("d")
    c = Entries("d")

    shapes = ({"d": 2, "T": 2}, {"d": 1, "T": 3})
    readout = "full"

    @property
    def T(self) -> int:
        """Tokens."""
        return int(self.X.shape[-2])

    @property
    def d(self) -> int:
        """Features per token."""
        return int(self.X.shape[-1])

    @property
    def R(self) -> Float[Array, ""]:
        """The longest token, at least 1."""
        return jnp.maximum(1.0, jnp.max(safe_norm(self.X)))

    @property
    def N(self) -> Float[Array, ""]:
        """|U|_F."""
        return safe_norm(self.U, axis=(-2, -1))


SMALL_HEADS = ({"d": 1, "T": 2}, {"d": 2, "T": 2})
"""Hessians have (Td + d^2)^2 entries."""


class Model(Record):
    """G groups of k_g equal heads on n labelled samples; r is T for a full read-out, else 1."""

    X = Words("n", "T", "d")
    y = Labels("n")
    k = Counts("G")
    U = Entries("G", "r", "d", low=1e-3, high=10.0)
    W = Entries("G", "d", "d", low=1e-2, high=5.0, largest=30.0)
    readout = Choice(*READOUTS)

    shapes: ClassVar[tuple[Shape, ...]] = (
        {"n": 2, "d": 1, "T": 2, "r": 2, "G": 2},
        {"n": 2, "d": 1, "T": 2, "r": 1, "G": 2, "readout": "pooling"},
        {"n": 1, "d": 2, "T": 2, "r": 1, "G": 1, "readout": "last"},
    )

    @quantity
    def T(self) -> int:
        """Tokens per sample."""
        return int(self.X.shape[-2])

    @quantity
    def d(self) -> int:
        """Features per token."""
        return int(self.X.shape[-1])

    @quantity
    def H(self) -> Float[Array, ""]:
        """The number of heads."""
        return jnp.sum(self.k)

    @quantity
    def R(self) -> Float[Array, ""]:
        """The realised bound on token norms, at least 1 [deora2024, Assumption 1]."""
        return jnp.maximum(1.0, jnp.max(safe_norm(self.X)))

    @quantity
    def N(self) -> Float[Array, ""]:
        """max_h |U_h|_F, which the derivative bounds may use for |theta|_{2,inf}."""
        return quantities.longest_readout(self)

    @property
    def samples(self) -> int:
        """n."""
        return len(self.y)

    @property
    def rows(self) -> Float[Array, "G p"]:
        """(U_g, W_g) of every group as one vector."""
        return as_rows(self.U, self.W)

    def outside(self) -> str | None:
        """Labels are signs, multiplicities whole numbers, the read-out is one of the three."""
        if (problem := super().outside()) is not None:
            return problem
        if np.any(np.abs(self.y) != 1):
            return "labels must be -1 or 1"
        if np.any(np.asarray(self.k) != np.round(self.k)):
            return "multiplicities must be whole numbers"
        wanted = self.T if self.readout == "full" else 1
        if self.U.shape[-2] != wanted:
            return f"U has {self.U.shape[-2]} rows, a {self.readout} read-out has {wanted}"
        return None


def as_rows(U: Float[Array, "G r d"], W: Float[Array, "G d d"]) -> Float[Array, "G p"]:
    """One vector per group."""
    return jnp.concatenate([U.reshape(len(U), -1), W.reshape(len(W), -1)], axis=-1)


SMALL_MODELS = (
    {"n": 1, "d": 1, "T": 2, "r": 2, "G": 2},
    {"n": 2, "d": 1, "T": 2, "r": 1, "G": 1, "readout": "pooling"},
    {"n": 1, "d": 2, "T": 2, "r": 1, "G": 1, "readout": "last"},
)
"""Hessians of the loss have (G p)^2 entries."""


class TwoPoints(Model):
    """theta_1 = (U, W) and theta_2 = theta_1 + (dU, dW), head by head; eta is a step size."""

    U = Entries("G", "r", "d", low=1e-3, high=10.0, largest=10.0)
    dU = Entries("G", "r", "d", low=1e-3, high=3.0, largest=10.0)
    dW = Entries("G", "d", "d", low=1e-3, high=3.0, largest=10.0)
    eta = Positive(low=1e-4, high=10.0)

    shapes = ({"n": 2, "d": 2, "T": 2, "r": 2, "G": 1},)

    @property
    def move(self) -> Float[Array, "G p"]:
        """theta_2 - theta_1."""
        return as_rows(self.dU, self.dW)

    @functools.cached_property
    def segment(self) -> Segment:
        """What is measured between the two."""
        return Segment(self, self.rows, self.move)


class Run(Model):
    """Gradient descent from theta_0 = (U, W) for `K` steps of size `eta`, and a target theta.

    The target lies at theta_0 + (dU, dW)/sqrt(H), head by head: |theta - theta_0| then does not
    depend on H, and H can be as large as a theorem wants it.
    """

    U = Entries("G", "r", "d", low=1e-3, high=1.0)
    dU = Entries("G", "r", "d", low=1e-2, high=1.0)
    dW = Entries("G", "d", "d", low=1e-2, high=1.0)
    eta = Longest(low=1e-30, high=10.0)
    K = Static(2)

    @property
    def aim(self) -> Float[Array, "G p"]:
        """theta - theta_0."""
        return as_rows(self.dU, self.dW) / jnp.sqrt(self.H)

    @property
    def target(self) -> Float[Array, "G p"]:
        """theta."""
        return self.rows + self.aim

    @quantity
    def D(self) -> Float[Array, ""]:
        """|theta - theta_0|."""
        return quantities.length(self, self.aim)

    @quantity
    def N(self) -> Float[Array, ""]:
        """|theta|_{2,inf}."""
        return quantities.widest(self.target)

    @quantity
    def L_theta(self) -> Float[Array, ""]:
        """L(theta)."""
        return quantities.loss(self, self.target)

    @quantity
    def L_0(self) -> Float[Array, ""]:
        """L(theta_0)."""
        return quantities.loss(self, self.rows)

    @functools.cached_property
    def trace(self) -> Any:
        """What the run did."""
        return simulate(self)


class LeftOut(Run):
    """A run beside its leave-one-out runs."""


class Population(Run):
    """A run on every training set of `m` draws from the n equally likely points of (X, y)."""

    m = Static(2)

    @property
    def samples(self) -> int:
        """m."""
        return self.m

    @property
    def worst_loss(self) -> Float[Array, ""]:
        """The largest L(theta) of a training set."""
        return jnp.max(quantities.losses(self, self.target))

    @property
    def first_loss(self) -> Float[Array, ""]:
        """The largest L(theta_0)."""
        return jnp.max(quantities.losses(self, self.rows))


class Start(Model):
    """A start (U, W), a direction theta_* = (vU, vW)/sqrt(H), eps, and K steps of size eta."""

    vU = Entries("G", "r", "d")
    vW = Entries("G", "d", "d")
    eps = Positive(low=1e-3, high=1.0)
    eta = Longest(low=1e-6, high=1.0)
    K = Static(1)

    @property
    def direction(self) -> Float[Array, "G p"]:
        """theta_*."""
        return as_rows(self.vU, self.vW) / jnp.sqrt(self.H)

    @quantity
    def B_2(self) -> Float[Array, ""]:
        """P1: the largest head, at least 1."""
        return jnp.maximum(1.0, quantities.widest(self.rows))

    @quantity
    def B_Phi(self) -> Float[Array, ""]:
        """P2: the largest output, at least 1."""
        return jnp.maximum(1.0, jnp.max(jnp.abs(quantities.outputs(self, self.rows))))

    @quantity
    def gamma(self) -> Float[Array, ""]:
        """P3: the margin min_i y_i <grad Phi~(X_i; theta_0), theta_*> of this direction."""
        g = quantities.head_gradients(self, self.rows) / jnp.sqrt(self.H)
        return jnp.min(self.y * jnp.einsum("ngp,gp,g->n", g, self.direction, self.k))

    @property
    def G(self) -> Float[Array, ""]:
        """(2 B_Phi + log(1/eps))/gamma."""
        return constants.spread(self.B_Phi, self.gamma, self.eps)


class PopulationStart(Start):
    """A good start for every training set of `m` draws from the n points of (X, y)."""

    m = Static(2)

    @property
    def samples(self) -> int:
        """m."""
        return self.m


def opposite_tokens(size: float = 1.0, U: float = 0.0) -> Head:
    """Two opposite tokens on one line, attention at rest: where the sharp Hessian is attained."""
    X, one = np.array([[size], [-size]]), np.ones(1)
    return Head(X=X, U=U * X / size, W=np.zeros((1, 1)), a=np.ones(2), b=one, c=one)


def opposite_model(readout: str = "full", k: float = 1.0) -> Model:
    """The same as a model of k equal heads."""
    X, r = np.array([[[1.0], [-1.0]]]), 2 if readout == "full" else 1
    zeros = {"U": np.zeros((1, r, 1)), "W": np.zeros((1, 1, 1))}
    return Model(X=X, y=np.ones(1), k=np.array([k]), **zeros, readout=readout)
