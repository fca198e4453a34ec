"""What the statements of deora2024 speak about, and what they ask of a run or of a start.

A head, a model, two points, a run, a good start. Groups carry multiplicities: H may be as large as
the theorems ask for. R is realised: the largest token norm, and at least 1, as Assumption 1 asks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Check, Choice, Positive, Record, Static, given, quantity
from ...theory._arguments import Given
from ...theory._record import Shape
from ...theory.families import safe_norm
from . import constants, quantities
from .constants import Constants
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


Number = Callable[[Constants], Any]


def asks_heads(name: str, H: Any, root: Any) -> str:
    """How a condition on the number of heads fails, in words."""
    return f"H = {float(H):.4g}, {name} asks H >= {float(root) ** 2:.3g}"


def asks_step(eta: Any, limit: Any, of: str = "the condition on the step size") -> str:
    """How a condition on the step size fails, in words."""
    return f"eta = {float(eta):.4g} where at most {float(limit):.3g} is allowed: {of}"


def heads_and_step(name: str, k: Any, root: Any, eta: Any, most: Any) -> tuple[Check, ...]:
    """The two conditions that a setting decides: sqrt(H) >= root and eta <= most."""
    H = float(k.H)
    return (
        Check(f"{name}: required sqrt(H) over sqrt(H)", root / H**0.5, 1.0,
              asks_heads(name, H, root)),
        Check("eta over its largest value", eta / most, 1.0, asks_step(eta, most)),
    )  # fmt: skip


DESCENT = given(
    "descent (68): L(theta_{k+1}) + (eta/2)|grad L|^2 <= L(theta_k)",
    lambda trace: jnp.max((trace.loss[1:] + trace.eta / 2 * trace.gradient) / trace.loss[:-1]),
    1.0,
    lambda trace: "the loss does not fall at every step as descent (68) asks",
)
REACHABLE = given(
    "(73): eta max(K L(theta), L(theta_0)) <= D^2",
    lambda eta, K, L_theta, L_0, D: eta * jnp.maximum(K * L_theta, L_0) / D**2,
    1.0,
)


def wide(name: str, factor: int) -> Given:
    """sqrt(H) >= factor beta_3[N -> B] D^2, written as a bound on D^2."""
    return given(
        f"{name}: D^2 <= sqrt(H)/({factor} beta_3(B))",
        lambda D: D**2,
        lambda H, k: jnp.sqrt(H) / (factor * k.tilde_3),
        lambda H, D, k: asks_heads(name, H, factor * k.tilde_3 * D**2),
    )


WIDE = wide("(74)", 18)
WIDER = wide("(84)", 128)
"""The condition of Lemma 11 and Theorem 4."""
WIDE_STRETCHED = given(
    "(74) with g_0 for D, as a bound on D^2",
    lambda D: D**2,
    lambda H, D, k: jnp.sqrt(H) * D**2 / k.stretched_root,
    lambda H, k: asks_heads("(74) with g_0 for D", H, k.stretched_root),
)


def reached(name: str, root: Number) -> Given:
    """sqrt(H) >= root, written as 1 <= sqrt(H)/root."""
    return given(
        f"{name}: 1 <= sqrt(H)/(what it must reach)",
        1.0,
        lambda H, k: jnp.sqrt(H) / root(k),
        lambda H, k: asks_heads(name, H, root(k)),
    )


def short_step(name: str, limit: Number) -> Given:
    """eta <= limit, written as 1 <= limit/eta: limits of 1e-13 would drown in a check's slack."""
    return given(
        f"{name}, as 1 <= limit/eta",
        1.0,
        lambda k, eta: limit(k) / eta,
        lambda k, eta: asks_step(eta, limit(k), name),
    )


SHORT_STEP = short_step(
    "eta <= min(1, 1/rho, D^2/(K L(theta)), D^2/L(theta_0))", lambda k: k.longest_step
)
STRETCHED_STEP = short_step(
    "eta <= min(1, 1/rho(K), g_0^2, g_0^2/L(theta_0))", lambda k: k.stretched_step
)
SURE_STEP = short_step(
    "eta as in Theorem 3, eta beta_1(B)^2 <= 1, for every training set", lambda k: k.sure_step
)
SMOOTH_STEP = given(
    "eta <= 1/rho_k, as 1 <= limit/eta",
    1.0,
    lambda trace, form, eta: 1 / jnp.max(trace.beta_2(form)) / eta,
    lambda trace, form, eta: asks_step(eta, 1 / jnp.max(trace.beta_2(form)), "eta <= 1/rho_k"),
)
NEAR = given(
    "sqrt(H) >= 2 beta_3 |theta - theta_k|^2, as a bound on D^2",
    lambda D: D**2,
    lambda trace, form: jnp.min(
        jnp.sqrt(trace.H) / (2 * trace.beta_3(form) * (trace.away[:-1] / trace.D) ** 2)
    ),
    lambda trace, form: asks_heads(
        "sqrt(H) >= 2 beta_3 |theta - theta_k|^2",
        trace.H,
        jnp.max(2 * trace.beta_3(form) * trace.away[:-1] ** 2),
    ),
)
REALIZED = given("Assumption 2 at 1/K: K L(theta) <= 1", lambda K, L_theta: K * L_theta, 1.0)
SURELY_REALIZED = given(
    "Assumption 2 surely: K max_i l_i(theta) <= 1", lambda K, worst_loss: K * worst_loss, 1.0
)

SEPARABLE = given(
    "P3: a margin above 0, as -gamma",
    lambda gamma: -gamma,
    -1e-6,
    lambda gamma: f"the tangent margin is {float(gamma):.3g}, P3 asks for one above 0",
)
DIRECTION = given(
    "|theta_*|^2 = 2",
    lambda i: jnp.abs(quantities.length(i, i.direction) ** 2 - 2),
    1e-9,
    lambda i: f"|theta_*|^2 = {float(quantities.length(i, i.direction) ** 2):.4g}, P3 asks for 2",
)
AT_HORIZON = given(
    "eps = 1/K",
    lambda eps, K: jnp.abs(eps * K - 1),
    1e-9,
    lambda eps, K: f"eps = {float(eps):.4g}, the corollary takes 1/K = {1 / float(K):.4g}",
)
_GOOD_START = (
    SEPARABLE, DIRECTION, AT_HORIZON, reached("Corollary 5", lambda k: k.start_root)
)  # fmt: skip
TRAINING = (
    *_GOOD_START,
    short_step(
        "eta <= min(1, 1/rho(K), (4 B_Phi^2/gamma^2)/log(1 + e^B_Phi))", lambda k: k.start_step
    ),
)
STABLE_TRAINING = (
    *_GOOD_START,
    short_step(
        "eta <= min(1, 1/rho(K), 1/beta_1(B)^2, (4 B_Phi^2/gamma^2)/log(1 + e^B_Phi))",
        lambda k: k.stable_start_step,
    ),
)
