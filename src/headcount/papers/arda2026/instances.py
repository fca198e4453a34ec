"""Instances of arda2026: one softmax, one head, one model near its initialisation.

Each comes with families: how to draw one, at every scale and with structured tokens, and how to
map array values into the hypotheses. Displacements are kept in units of their radii, so that radii
can vary freely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array, activation_named, check_positive
from ...theory import Family, instance_class
from ...theory.domain import Domain
from ...theory.families import into_ball, log_uniform, safe_norm, shaped
from .constants import label_envelope
from .model import PooledAttentionParams

LONGEST = 1e4
"""The largest |U| that a search visits."""


@instance_class
@dataclass(frozen=True)
class SoftmaxInstance(Domain):
    """Logits z and a direction u with |u|_inf <= 1."""

    z: Float[Array, "T"]
    u: Float[Array, "T"]


@instance_class
@dataclass(frozen=True)
class HeadInstance(Domain):
    """One head (c, U, W) on one sample X with query q, and a direction v, ||v||_F <= 1."""

    X: Float[Array, "T d"]
    q: Float[Array, "d"]
    c: Float[Array, ""]
    U: Float[Array, "d"]
    W: Float[Array, "d d"]
    v: Float[Array, "d d"]
    activation: str = "tanh"


@instance_class
@dataclass(frozen=True)
class ModelInstance(Domain):
    """A model near its initialisation: data, phi0, phi in Omega_rho, phi~ and labels.

    dc, dU, dW are (phi - phi0) sqrt(m) in units of rho; vc, vu, vw the transport map at each head
    in units of nu; `labels` are in units of y_max*, the sharp bound on |f*|.
    """

    X: Float[Array, "n T d"]
    q: Float[Array, "n d"]
    c0: Float[Array, "m"]
    U0: Float[Array, "m d"]
    W0: Float[Array, "m d d"]
    dc: Float[Array, "m"]
    dU: Float[Array, "m d"]
    dW: Float[Array, "m d d"]
    rho: Float[Array, "3"]
    vc: Float[Array, "m"]
    vu: Float[Array, "m d"]
    vw: Float[Array, "m d d"]
    nu: Float[Array, "3"]
    labels: Float[Array, "n"]
    activation: str = "tanh"

    positive: ClassVar[tuple[str, ...]] = ("rho", "nu")

    @property
    def n(self) -> int:
        """Samples."""
        return int(self.X.shape[-3])

    @property
    def m(self) -> int:
        """The width."""
        return int(self.c0.shape[-1])

    @property
    def d(self) -> int:
        """Features per token."""
        return int(self.X.shape[-1])

    @property
    def initial(self) -> PooledAttentionParams:
        """phi0."""
        return PooledAttentionParams(self.c0, self.U0, self.W0)

    @property
    def params(self) -> PooledAttentionParams:
        """phi = phi0 + displacement [arda2026, Definition 2]."""
        root = math.sqrt(self.m)
        return PooledAttentionParams(
            self.c0 + self.rho[0] / root * self.dc,
            self.U0 + self.rho[1] / root * self.dU,
            self.W0 + self.rho[2] / root * self.dW,
        )

    @property
    def transported(self) -> PooledAttentionParams:
        """phi~ [arda2026, Eq. (10)]."""
        root = math.sqrt(self.m)
        return PooledAttentionParams(
            self.c0 + self.nu[0] / root * self.vc,
            self.U0 + self.nu[1] / root * self.c0[:, None] * self.vu,
            self.W0 + self.nu[2] / root * self.c0[:, None, None] * self.vw,
        )

    @property
    def transport(self) -> Float[Array, "m p"]:
        """(v_c, v_u, vec v_w) of every head, as one vector each."""
        rows = jnp.reshape(self.vw, (self.m, -1))
        blocks = [self.nu[0] * self.vc[:, None], self.nu[1] * self.vu, self.nu[2] * rows]
        return jnp.concatenate(blocks, axis=-1)

    @property
    def B_U(self) -> Float[Array, ""]:
        """max_i |U_i^(0)| + rho_u / sqrt(m), the realised bound of Remark 7."""
        longest = jnp.max(safe_norm(self.U0, axis=-1))
        return longest + self.rho[1] / math.sqrt(self.m)

    @property
    def y_max_sharp(self) -> Float[Array, ""]:
        """s0 nu_c + s1 nu_u + s1 nu_w, which bounds every |f*(X)| for f* in F_nu."""
        return label_envelope(self.sigma, self.nu, self.d, "sharp")

    @property
    def y(self) -> Float[Array, "n"]:
        """The labels."""
        return self.labels * self.y_max_sharp


@instance_class
@dataclass(frozen=True)
class TargetInstance(ModelInstance):
    """As `ModelInstance`, with the probability delta at which the event E_app may fail."""

    delta: Float[Array, ""] = 0.05

    fractions: ClassVar[tuple[str, ...]] = ("delta",)


def _mirrored(x: Float[Array, "m ..."], sign: float = 1.0) -> Float[Array, "m ..."]:
    half = x[: x.shape[0] // 2]
    return jnp.concatenate([half, sign * half])


def project_head(head: HeadInstance) -> HeadInstance:
    """Tokens, query and direction into their unit balls; |U| at most `LONGEST`."""
    return replace(
        head,
        X=into_ball(head.X),
        q=into_ball(head.q),
        v=into_ball(head.v, axes=2),
        U=into_ball(head.U, radius=LONGEST),
    )


def project_model(model: ModelInstance) -> ModelInstance:
    """Everything that Sections 3 and 5.2 and Definition 2 ask for."""
    return replace(
        model,
        X=into_ball(model.X),
        q=into_ball(model.q),
        c0=_mirrored(jnp.where(model.c0 >= 0, 1.0, -1.0).astype(model.c0.dtype), -1.0),
        U0=into_ball(_mirrored(model.U0), radius=LONGEST),
        W0=_mirrored(model.W0),
        dc=jnp.clip(model.dc, -1.0, 1.0),
        dU=into_ball(model.dU),
        dW=into_ball(model.dW, axes=2),
        rho=jnp.clip(model.rho, 1e-3, 100.0),
        vc=jnp.clip(model.vc, -1.0, 1.0),
        vu=into_ball(model.vu),
        vw=into_ball(model.vw, axes=2),
        nu=jnp.clip(model.nu, 1e-3, 100.0),
        labels=jnp.clip(model.labels, -1.0, 1.0),
    )


def structured(rng: np.random.Generator, X: Array, q: Array, U: Array, W: Array) -> list[Array]:
    """X, q, U, W (leading axis: draws) with structure in half of the draws.

    Tokens that agree, that are opposite (with U on their line and U.a of order one), on one line,
    or unit vectors; attention that is uniform; U = 0.
    """
    draws, T, d = X.shape[0], X.shape[-2], X.shape[-1]
    kind = rng.integers(0, 12, draws)

    def pick(chosen: int, new: Array, old: Array) -> Array:
        return np.where((kind == chosen).reshape(-1, *[1] * (old.ndim - 1)), new, old)

    line = X[..., :1, :] / np.linalg.norm(X[..., :1, :], axis=-1, keepdims=True)
    signs = np.where(np.arange(T) % 2, -1.0, 1.0)[:, None]
    X = pick(0, line, X)
    X = pick(1, signs * line, X)
    X = pick(2, rng.uniform(-1, 1, (*X.shape[:-1], 1)) * line, X)
    X = pick(3, np.eye(d)[np.arange(T) % d] * rng.choice([-1.0, 1.0], (*X.shape[:-1], 1)), X)
    first = line.reshape(draws, -1, d)[:, :1].reshape(draws, *[1] * (U.ndim - 2), d)
    lengths = np.linalg.norm(U, axis=-1, keepdims=True)
    for chosen in (1, 2):
        q, U = pick(chosen, line[..., 0, :], q), pick(chosen, lengths * first, U)
    logit = (rng.uniform(0.1, 2.0, lengths.shape) / lengths)[..., None]
    W = pick(1, logit * first[..., :, None] * first[..., None, :], W)
    return [X, q, pick(5, 0.0, U), pick(4, 0.0, W)]


def draw_heads(
    rng: np.random.Generator, count: int, *, d: int, T: int, activation: str
) -> HeadInstance:
    """Random heads: tokens inside and on the ball, |U| and ||W|| over orders of magnitude."""
    X, q, U, W = structured(
        rng,
        rng.normal(size=(count, T, d)) * log_uniform(rng, 0.2, 5.0, count, T, 1),
        rng.normal(size=(count, d)),
        rng.normal(size=(count, d)) * log_uniform(rng, 1e-3, LONGEST, count, 1),
        rng.normal(size=(count, d, d)) * log_uniform(rng, 0.05, 8.0, count, 1, 1),
    )
    c, v = rng.normal(size=count), rng.normal(size=(count, d, d))
    return HeadInstance(X, q, c, U, W, v, activation)


def draw_models(
    rng: np.random.Generator, count: int, *, n: int, d: int, T: int, m: int, activation: str
) -> ModelInstance:
    """Random models near a random start, with radii over orders of magnitude."""

    def heads() -> tuple[Array, Array, Array]:
        shapes = ((count, m), (count, m, d), (count, m, d, d))
        c, U, W = (rng.normal(size=shape) for shape in shapes)
        return c, U, W

    (c0, U0, W0), (dc, dU, dW), (vc, vu, vw) = heads(), heads(), heads()
    X, q, U0, W0 = structured(
        rng,
        rng.normal(size=(count, n, T, d)) * log_uniform(rng, 0.2, 5.0, count, n, T, 1),
        rng.normal(size=(count, n, d)),
        U0 * log_uniform(rng, 1e-2, 1e2, count, 1, 1),
        W0 * log_uniform(rng, 0.1, 3.0, count, 1, 1, 1),
    )
    return ModelInstance(
        X=X,
        q=q,
        c0=c0,
        U0=U0,
        W0=W0,
        dc=3.0 * dc,
        dU=3.0 * dU,
        dW=3.0 * dW,
        rho=log_uniform(rng, 1e-2, 10.0, count, 3),
        vc=3.0 * vc,
        vu=3.0 * vu,
        vw=3.0 * vw,
        nu=log_uniform(rng, 1e-2, 10.0, count, 3),
        labels=rng.uniform(-1.0, 1.0, (count, n)),
        activation=activation,
    )


def draw_targets(rng: np.random.Generator, count: int, **shape: Any) -> TargetInstance:
    """As `draw_models`, with delta over orders of magnitude."""
    models = draw_models(rng, count, **shape)
    return TargetInstance(**vars(models), delta=log_uniform(rng, 1e-6, 0.5, count))


def model_instance(
    initial: PooledAttentionParams,
    params: PooledAttentionParams,
    X: Float[Array, "n T d"],
    q: Float[Array, "n d"],
    *,
    rho: tuple[float, float, float],
    nu: tuple[float, float, float],
    transported: PooledAttentionParams | None = None,
    y: Float[Array, "n"] | None = None,
    activation: str = "tanh",
) -> ModelInstance:
    """A ModelInstance from parameters as a run has them; radii must be positive.

    Without `transported` the transport map is zero; without `y` the labels are zero.
    """
    for argument, radii in (("rho", rho), ("nu", nu)):
        for radius in radii:
            check_positive(argument, radius)
    c0, U0, W0 = (np.asarray(block, dtype=np.float64) for block in initial)
    root, goal = math.sqrt(len(c0)), initial if transported is None else transported
    dc, dU, dW = (np.asarray(b) - np.asarray(b0) for b, b0 in zip(params, initial, strict=True))
    tc, tU, tW = (np.asarray(b) - np.asarray(b0) for b, b0 in zip(goal, initial, strict=True))
    y_max = label_envelope(activation_named(activation), nu, U0.shape[1], "sharp")
    labels = np.zeros(len(X)) if y is None else np.asarray(y, dtype=np.float64)
    return ModelInstance(
        X=np.asarray(X, dtype=np.float64),
        q=np.asarray(q, dtype=np.float64),
        c0=c0,
        U0=U0,
        W0=W0,
        dc=root / rho[0] * dc,
        dU=root / rho[1] * dU,
        dW=root / rho[2] * dW,
        rho=np.array(rho),
        vc=root / nu[0] * tc,
        vu=root / nu[1] * tU / c0[:, None],
        vw=root / nu[2] * tW / c0[:, None, None],
        nu=np.array(nu),
        labels=labels / y_max,
        activation=activation,
    )


def head_family(d: int = 2, T: int = 3, activation: str = "tanh") -> Family:
    """Heads of one shape."""
    return shaped("head", draw_heads, project_head, d=d, T=T, activation=activation)


def model_family(
    n: int = 2, d: int = 2, T: int = 3, m: int = 2, activation: str = "tanh"
) -> Family:
    """Models of one shape near a paired initialisation."""
    shape: dict[str, Any] = {"n": n, "d": d, "T": T, "m": m, "activation": activation}
    return shaped("model", draw_models, project_model, **shape)


HEADS = (head_family(), head_family(1, 2), head_family(3, 4, "erf"))
MODELS = (
    model_family(),
    model_family(n=1, d=1, T=2, m=4, activation="sin"),
    model_family(n=3, d=3, T=4, m=2, activation="erf"),
)
