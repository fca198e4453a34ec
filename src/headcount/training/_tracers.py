"""Tracers: numbers that a run notes before every step, from the pass its gradient makes anyway.

A recorder computes what it likes from the parameters, every k steps; a tracer gets what the
gradient has in hand, so that a trace of norms over all samples costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import optax
from jaxtyping import Float

from ..core import Array, BadArgument, Registry
from ..core._tree import blocks
from ._paths import BlockJacobian


@dataclass(frozen=True)
class Pass:
    """What the pass over all samples before a step has in hand."""

    gradient: Any
    jacobian: BlockJacobian | None
    """Of one block; None where the model's gradient path does not give it."""
    validation_loss: Callable[[], Float[Array, ""]]


Tracer = Callable[[Pass], dict[str, Float[Array, ""]]]
"""A function of one gradient pass that returns named numbers, at every step."""
tracers: Registry[Tracer] = Registry("tracer")
"""Tracers by name."""


def _register(name: str) -> Callable[[Tracer], Tracer]:
    return lambda tracer: tracers.register(name, tracer)


@_register("jacobian")
def block_jacobian(now: Pass) -> dict[str, Float[Array, ""]]:
    """Norms for the attention or recurrent weights b, as the recorders "jacobian" and "gradient".

    of_mean: ||(1/n) sum_j grad_b f(x_j)||; mean, max: over samples of ||grad_b f(x_j)||.
    """
    if now.jacobian is None:
        problem = "needs a model whose gradient path gives a Jacobian"
        raise BadArgument("trace", "jacobian", problem, fix='use record="jacobian"')
    b, total, lengths = now.jacobian
    return {
        f"jacobian_of_mean_{b}": optax.tree.norm(total) / len(lengths),
        f"jacobian_mean_{b}": jnp.mean(lengths),
        f"jacobian_max_{b}": jnp.max(lengths),
        f"gradient_{b}": optax.tree.norm(blocks(now.gradient)[b]),
    }


@_register("validation")
def validation(now: Pass) -> dict[str, Float[Array, ""]]:
    """The loss on the validation samples."""
    return {"validation_loss": now.validation_loss()}
