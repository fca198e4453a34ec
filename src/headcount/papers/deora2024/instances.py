"""Instances of deora2024: one head on one sample, and groups of equal heads on a data set.

Groups carry multiplicities, so that H may be as large as the theorems ask for. R is realised: the
largest token norm, and at least 1, as Assumption 1 asks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Family, instance_class
from ...theory.domain import Domain
from ...theory.families import into_ball, log_uniform, safe_norm, shaped
from .model import READOUTS

MOST_HEADS = 1e12
"""The largest multiplicity that a search visits."""


@instance_class
@dataclass(frozen=True)
class HeadInstance(Domain):
    """One head (U, W) on one sample X, and directions a, b, c for second derivatives."""

    X: Float[Array, "T d"]
    U: Float[Array, "T d"]
    W: Float[Array, "d d"]
    a: Float[Array, "T"]
    b: Float[Array, "d"]
    c: Float[Array, "d"]


@instance_class
@dataclass(frozen=True)
class ModelInstance(Domain):
    """G groups of k_g equal heads on n labelled samples; r is T for a full read-out, else 1."""

    X: Float[Array, "n T d"]
    y: Float[Array, "n"]
    k: Float[Array, "G"]
    U: Float[Array, "G r d"]
    W: Float[Array, "G d d"]
    readout: str = "full"

    positive: ClassVar[tuple[str, ...]] = ("k",)

    @property
    def T(self) -> int:
        """Tokens per sample."""
        return int(self.X.shape[-2])

    @property
    def d(self) -> int:
        """Features per token."""
        return int(self.X.shape[-1])

    @property
    def H(self) -> Float[Array, ""]:
        """The number of heads."""
        return jnp.sum(self.k)

    @property
    def R(self) -> Float[Array, ""]:
        """The realised bound on token norms, at least 1 [deora2024, Assumption 1]."""
        return jnp.maximum(1.0, jnp.max(safe_norm(self.X)))

    @property
    def rows(self) -> Float[Array, "G p"]:
        """(U_g, W_g) of every group as one vector."""
        return as_rows(self.U, self.W)

    def outside(self) -> str | None:
        """Labels are signs, multiplicities whole numbers, the read-out is one of the three."""
        if self.readout not in READOUTS:
            return f"readout = {self.readout!r} is not one of {', '.join(READOUTS)}"
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


def project_head(head: HeadInstance) -> HeadInstance:
    """Sizes that float64 can hold; the bounds themselves ask for nothing."""
    return replace(
        head, X=into_ball(head.X, 30.0), U=into_ball(head.U, 1e3, 2), W=into_ball(head.W, 30.0, 2)
    )


def project_model(model: ModelInstance) -> ModelInstance:
    """Labels +-1, whole multiplicities, and sizes that float64 can hold."""
    return replace(
        model,
        X=into_ball(model.X, 30.0),
        y=signs(model.y),
        k=counts(model.k),
        U=into_ball(model.U, 1e3, 2),
        W=into_ball(model.W, 30.0, 2),
    )


def signs(y: Float[Array, "n"]) -> Float[Array, "n"]:
    """Labels: +1 where an entry is not negative."""
    return jnp.where(y >= 0, 1.0, -1.0).astype(y.dtype)


def counts(k: Float[Array, "G"]) -> Float[Array, "G"]:
    """Whole multiplicities from 1 to MOST_HEADS."""
    return jnp.clip(jnp.round(jnp.abs(k)), 1.0, MOST_HEADS)


def draw_tokens(rng: np.random.Generator, count: int, *shape: int) -> Array:
    """Random tokens; in a third of the draws opposite ones, in a sixth on one line."""
    X = rng.normal(size=(count, *shape)) * log_uniform(rng, 0.1, 5.0, count, *[1] * len(shape))
    kind = rng.integers(0, 6, count).reshape(-1, *[1] * len(shape))
    alternate = np.where(np.arange(shape[-2]) % 2, -1.0, 1.0)[:, None]
    opposite = X[..., :1, :] * alternate
    line = X[..., :1, :] * rng.uniform(-1, 1, (*X.shape[:-1], 1))
    return np.where(kind < 2, opposite, np.where(kind == 2, line, X))


def draw_heads(rng: np.random.Generator, count: int, *, d: int, T: int) -> HeadInstance:
    """Random heads with U and W over orders of magnitude."""
    return HeadInstance(
        X=draw_tokens(rng, count, T, d),
        U=rng.normal(size=(count, T, d)) * log_uniform(rng, 1e-3, 1e3, count, 1, 1),
        W=rng.normal(size=(count, d, d)) * log_uniform(rng, 1e-2, 5.0, count, 1, 1),
        a=rng.normal(size=(count, T)),
        b=rng.normal(size=(count, d)),
        c=rng.normal(size=(count, d)),
    )


def draw_models(
    rng: np.random.Generator, count: int, *, n: int, d: int, T: int, G: int, readout: str
) -> ModelInstance:
    """Random groups of heads, from one head to many."""
    r = T if readout == "full" else 1
    return ModelInstance(
        X=draw_tokens(rng, count, n, T, d),
        y=rng.choice([-1.0, 1.0], (count, n)),
        k=np.round(log_uniform(rng, 1.0, 1e3, count, G)),
        U=rng.normal(size=(count, G, r, d)) * log_uniform(rng, 1e-3, 10.0, count, 1, 1, 1),
        W=rng.normal(size=(count, G, d, d)) * log_uniform(rng, 1e-2, 5.0, count, 1, 1, 1),
        readout=readout,
    )


def head_family(d: int = 2, T: int = 2) -> Family:
    """Heads of one shape."""
    return shaped("head", draw_heads, project_head, d=d, T=T)


def model_family(n: int = 2, d: int = 1, T: int = 2, G: int = 2, readout: str = "full") -> Family:
    """Groups of heads of one shape."""
    return shaped("model", draw_models, project_model, n=n, d=d, T=T, G=G, readout=readout)


HEADS = (head_family(), head_family(1, 3))
MODELS = (
    model_family(),
    model_family(readout="pooling"),
    model_family(n=1, d=2, G=1, readout="last"),
)


def opposite_tokens(size: float = 1.0, U: float = 0.0) -> HeadInstance:
    """Two opposite tokens on one line, attention at rest: where the sharp Hessian is attained."""
    X = np.array([[size], [-size]])
    one = np.ones(1)
    return HeadInstance(X, U * X / size, np.zeros((1, 1)), np.ones(2), one, one)


def opposite_model(readout: str = "full", k: float = 1.0) -> ModelInstance:
    """The same as a model of k equal heads."""
    r = 2 if readout == "full" else 1
    X = np.array([[[1.0], [-1.0]]])
    zeros = np.zeros((1, r, 1)), np.zeros((1, 1, 1))
    return ModelInstance(X, np.ones(1), np.array([k]), *zeros, readout)
