"""Losses: what one sample contributes, and how samples are added up.

Outputs are numbers f: (n,), or vectors f: (n, k), over which a loss adds up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ._checks import check_kind
from ._named import Call, Named
from ._precision import own_precision
from ._registry import Registry
from ._types import Array

Vector = Float[Array, "n"]
Outputs = Float[Array, "n *k"]
Labels = Any
"""Numbers like the outputs, or the class of each sample."""


@dataclass(frozen=True)
class Loss(Named):
    """L = weight(n) * sum_j pointwise(f_j, y_j); slope is the derivative in f.

    `labels` are "real" (numbers like the outputs), "signs" (-1 and +1) or "classes" (0..k-1).
    """

    name: str
    pointwise: Callable[[Outputs, Labels], Vector]
    slope: Callable[[Outputs, Labels], Outputs]
    weight: Callable[[int], float]
    labels: str = "real"

    def found_by(self) -> Call | None:
        """By its name if it is registered."""
        known = self.name in losses and losses[self.name] is self
        return (loss_of, (self.name,)) if known else None


losses: Registry[Loss] = Registry("loss")
"""Losses by name."""


def _added(parts: Float[Array, "..."]) -> Float[Array, "..."]:
    """The sum over the outputs of each sample; a number is one sample with one output."""
    return parts if parts.ndim < 2 else jnp.sum(parts.reshape(len(parts), -1), axis=1)


MEAN_SQUARED = losses.register(
    "mean-squared",
    Loss(
        "mean-squared",
        pointwise=lambda f, y: _added((f - y) ** 2),
        slope=lambda f, y: 2 * (f - y),
        weight=lambda n: 1 / n,
    ),
)
"""(1/n) sum_j (f_j - y_j)^2, without a half."""

HALF_SQUARED_SUM = losses.register(
    "half-squared-sum",
    Loss(
        "half-squared-sum",
        pointwise=lambda f, y: _added(0.5 * (f - y) ** 2),
        slope=lambda f, y: f - y,
        weight=lambda n: 1.0,
    ),
)
"""(1/2) sum_j (f_j - y_j)^2."""

LOGISTIC = losses.register(
    "logistic",
    Loss(
        "logistic",
        pointwise=lambda f, y: _added(jax.nn.softplus(-y * f)),
        slope=lambda f, y: -y * jax.nn.sigmoid(-y * f),
        weight=lambda n: 1 / n,
        labels="signs",
    ),
)
"""(1/n) sum_j log(1 + exp(-y_j f_j)), labels +-1."""


def _cross_entropy(f: Float[Array, "n k"], y: Labels) -> Vector:
    """log sum_k exp(f_jk - f_j y_j)."""
    chosen = jnp.take_along_axis(f, y[:, None], axis=1)[:, 0]
    return jax.nn.logsumexp(f, axis=1) - chosen


CROSS_ENTROPY = losses.register(
    "cross-entropy",
    Loss(
        "cross-entropy",
        pointwise=_cross_entropy,
        slope=lambda f, y: jax.nn.softmax(f) - jax.nn.one_hot(y, f.shape[-1], dtype=f.dtype),
        weight=lambda n: 1 / n,
        labels="classes",
    ),
)
"""(1/n) sum_j log sum_k exp(f_jk - f_j y_j), classes y_j in 0..k-1."""


def loss_of(loss: Loss | str | Callable[[Any, Any], Any]) -> Loss:
    """The loss itself, the registered one of this name, or the mean of a function of (f_j, y_j)."""
    if isinstance(loss, str):
        return losses[loss]
    if callable(loss) and not isinstance(loss, Loss):
        return _own_loss(loss)
    fix = f"use {', '.join(losses)} or a function of one output and one label"
    return check_kind("loss", loss, Loss, fix=fix)


@lru_cache(maxsize=64)
def _own_loss(function: Callable[[Any, Any], Any]) -> Loss:
    name = getattr(function, "__name__", type(function).__name__)
    slope = jax.vmap(jax.grad(function))
    return Loss(f"own ({name})", jax.vmap(function), slope, lambda n: 1 / n, labels="any")


@own_precision
def total(loss: Loss | str, f: Outputs, y: Labels) -> Float[Array, ""]:
    """The loss of outputs f on labels y."""
    chosen = loss_of(loss)
    return chosen.weight(f.shape[0]) * jnp.sum(chosen.pointwise(f, y))
