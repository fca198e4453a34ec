"""Instances of wu2023: one softmax, an encoder at one point or at two, features of samples.

Widths, lambda-bars and C_x are realised: the smallest that the hypotheses allow, so that a bound
is met in its strictest form. `tau` holds (tau0, tau1); pooling is the sum over tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Family, instance_class
from ...theory.domain import Domain
from ...theory.families import shaped
from .model import EncoderParams

LARGEST = 1e6
"""The largest entry that a search visits."""


@instance_class
@dataclass(frozen=True)
class SoftmaxInstance(Domain):
    """Logits u and a direction v."""

    u: Float[Array, "T"]
    v: Float[Array, "T"]


@instance_class
@dataclass(frozen=True)
class ModelInstance(Domain):
    """Data, an encoder at theta, and its scales (tau0, tau1)."""

    X: Float[Array, "n T d"]
    y: Float[Array, "n"]
    W_Q: Float[Array, "d_m d"]
    W_K: Float[Array, "d_m d"]
    W_V: Float[Array, "d_m d"]
    w_O: Float[Array, "d_m"]
    tau: Float[Array, "2"]

    positive: ClassVar[tuple[str, ...]] = ("tau",)

    @property
    def theta(self) -> EncoderParams:
        """The point."""
        return EncoderParams(self.W_Q, self.W_K, self.W_V, self.w_O)


@instance_class
@dataclass(frozen=True)
class PairInstance(ModelInstance):
    """The same with a second point theta' = theta + (d_Q, d_K, d_V, d_O)."""

    d_Q: Float[Array, "d_m d"]
    d_K: Float[Array, "d_m d"]
    d_V: Float[Array, "d_m d"]
    d_O: Float[Array, "d_m"]

    @property
    def step(self) -> EncoderParams:
        """theta^{t'} - theta^t."""
        return EncoderParams(self.d_Q, self.d_K, self.d_V, self.d_O)

    @property
    def after(self) -> EncoderParams:
        """theta^{t'}."""
        return EncoderParams(*(a + b for a, b in zip(self.theta, self.step, strict=True)))


@instance_class
@dataclass(frozen=True)
class FeatureInstance(Domain):
    """Rows phi_n, one vector per sample: Phi, or Phi* of Lemma 1."""

    Phi: Float[Array, "n d"]


def bounded(instance: Any) -> Any:
    """Entries at most `LARGEST`, scales between 1e-6 and 1e6."""
    clipped = jax.tree.map(lambda leaf: jnp.clip(leaf, -LARGEST, LARGEST), instance)
    return replace(clipped, tau=jnp.clip(instance.tau, 1e-6, 1e6))


def nonnegative(instance: Any) -> Any:
    """The same with tokens and values at both points nonnegative: no unit changes sign."""
    inside = bounded(instance)
    changed = {"X": jnp.abs(inside.X), "W_V": jnp.abs(inside.W_V)}
    if isinstance(instance, PairInstance):
        changed["d_V"] = jnp.abs(inside.d_V)
    return replace(inside, **changed)


def draw_model(
    rng: np.random.Generator, count: int, *, n: int, T: int, d: int, d_m: int
) -> dict[str, Array]:
    """Data and parameters at scales from e^-2 to e^2, a third of them with opposite tokens."""

    def block(*shape: int) -> Array:
        scale = np.exp(rng.uniform(-2, 2, (count, *[1] * len(shape))))
        return scale * rng.normal(size=(count, *shape))

    X = block(n, T, d)
    signs = np.where(np.arange(T) % 2, -1.0, 1.0)[:, None]
    opposite = (rng.random(count) < 1 / 3)[:, None, None, None]
    return {
        "X": np.where(opposite, X[:, :, :1] * signs, X),
        "y": block(n),
        "W_Q": block(d_m, d),
        "W_K": block(d_m, d),
        "W_V": block(d_m, d),
        "w_O": block(d_m),
        "tau": np.exp(rng.uniform(-2, 2, (count, 2))),
    }


def _draw_models(rng: np.random.Generator, count: int, **shape: int) -> ModelInstance:
    return ModelInstance(**draw_model(rng, count, **shape))


def _draw_pairs(rng: np.random.Generator, count: int, **shape: int) -> PairInstance:
    here, away = (draw_model(rng, count, **shape) for _ in range(2))
    near = np.exp(rng.uniform(-6, 1, count))
    moves = {f"d_{name[-1]}": away[name] for name in ("W_Q", "W_K", "W_V", "w_O")}
    scaled = {k: near.reshape(-1, *[1] * (v.ndim - 1)) * v for k, v in moves.items()}
    return PairInstance(**here, **scaled)


def _draw_softmax(rng: np.random.Generator, count: int, *, T: int) -> SoftmaxInstance:
    scale = np.exp(rng.uniform(-5, 3.4, (count, 1)))
    return SoftmaxInstance(scale * rng.normal(size=(count, T)), rng.normal(size=(count, T)))


def _project_softmax(i: SoftmaxInstance) -> SoftmaxInstance:
    return replace(i, u=jnp.clip(i.u, -40.0, 40.0), v=jnp.clip(i.v, -LARGEST, LARGEST))


def _draw_features(rng: np.random.Generator, count: int, *, n: int, d: int) -> FeatureInstance:
    scale = np.exp(rng.uniform(-2, 2, (count, n, 1)))
    return FeatureInstance(scale * rng.normal(size=(count, n, d)))


def _project_features(i: FeatureInstance) -> FeatureInstance:
    return FeatureInstance(jnp.clip(i.Phi, -LARGEST, LARGEST))


SHAPES: tuple[dict[str, Any], ...] = (
    {"n": 2, "T": 3, "d": 2, "d_m": 3},
    {"n": 1, "T": 2, "d": 1, "d_m": 1},
    {"n": 3, "T": 2, "d": 3, "d_m": 2},
)


def _families(name: str, draw: Any, project: Callable[[Any], Any]) -> tuple[Family, ...]:
    return tuple(shaped(name, draw, project, **shape) for shape in SHAPES)


MODELS = _families("encoder", _draw_models, bounded)
PAIRS = _families("two encoders", _draw_pairs, bounded)
SMOOTH_PAIRS = _families("two encoders without kinks", _draw_pairs, nonnegative)
LOGITS = tuple(shaped("logits", _draw_softmax, _project_softmax, T=T) for T in (4, 2, 9))
FEATURES = tuple(
    shaped("features", _draw_features, _project_features, n=n, d=d)
    for n, d in ((3, 2), (2, 1), (2, 3))
)
