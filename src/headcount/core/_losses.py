"""Losses: what one sample contributes, and how samples are added up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ._checks import check_kind
from ._named import Call, Named
from ._precision import own_precision
from ._registry import Registry
from ._types import Array

Vector = Float[Array, "n"]


@dataclass(frozen=True)
class Loss(Named):
    """L = weight(n) * sum_j pointwise(f_j, y_j); slope is the derivative in f."""

    name: str
    pointwise: Callable[[Vector, Vector], Vector]
    slope: Callable[[Vector, Vector], Vector]
    weight: Callable[[int], float]
    labels: str = "real"

    def found_by(self) -> Call | None:
        """By its name if it is registered."""
        known = self.name in losses and losses[self.name] is self
        return (loss_of, (self.name,)) if known else None


losses: Registry[Loss] = Registry("loss")
"""Losses by name."""

MEAN_SQUARED = losses.register(
    "mean-squared",
    Loss(
        "mean-squared",
        pointwise=lambda f, y: (f - y) ** 2,
        slope=lambda f, y: 2 * (f - y),
        weight=lambda n: 1 / n,
    ),
)
"""(1/n) sum_j (f_j - y_j)^2, without a half."""

HALF_SQUARED_SUM = losses.register(
    "half-squared-sum",
    Loss(
        "half-squared-sum",
        pointwise=lambda f, y: 0.5 * (f - y) ** 2,
        slope=lambda f, y: f - y,
        weight=lambda n: 1.0,
    ),
)
"""(1/2) sum_j (f_j - y_j)^2."""

LOGISTIC = losses.register(
    "logistic",
    Loss(
        "logistic",
        pointwise=lambda f, y: jax.nn.softplus(-y * f),
        slope=lambda f, y: -y * jax.nn.sigmoid(-y * f),
        weight=lambda n: 1 / n,
        labels="signs",
    ),
)
"""(1/n) sum_j log(1 + exp(-y_j f_j)), labels +-1."""


def loss_of(loss: Loss | str) -> Loss:
    """The loss itself, or the registered one of this name."""
    fix = f"use {', '.join(losses)}"
    return losses[loss] if isinstance(loss, str) else check_kind("loss", loss, Loss, fix=fix)


@own_precision
def total(loss: Loss | str, f: Vector, y: Vector) -> Float[Array, ""]:
    """The loss of outputs f on labels y."""
    chosen = loss_of(loss)
    return chosen.weight(f.shape[0]) * jnp.sum(chosen.pointwise(f, y))
