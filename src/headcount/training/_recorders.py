"""Recorders: what a run writes down every k steps, chosen by the user.

A recorder maps a `Snapshot` to named arrays. It is compiled with the others into one program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Bool, Float

from ..core import (
    Array,
    BadArgument,
    Loss,
    Registry,
    check_shape,
    pooled_attention,
    self_attention,
    total,
)
from ..core._tree import blocks, named_leaves
from ..models import over_heads
from ..models._linearised import Linearised
from ._paths import Chunks, GradientPath, Samples, fold_chunks, into_chunks, map_over_chunks


@dataclass(frozen=True)
class Snapshot:
    """What a recorder sees at one step of one seed."""

    model: Any
    loss: Loss
    path: GradientPath
    params: Any
    initial: Any
    x: Any
    y: Any
    validation: tuple[Any, Any] | None
    chunk: int

    def outputs(self) -> Float[Array, "n *k"]:
        """f(x_j) on the training samples."""
        return self.path.outputs(self.params, self.path.prepare(self.x, self.y))

    def chunks(self) -> Chunks:
        """The training samples in chunks."""
        return into_chunks(self.x, self.y, self.loss, self.chunk)


Recorder = Callable[[Snapshot], dict[str, Array]]
"""A function of a snapshot that returns named arrays."""
recorders: Registry[Recorder] = Registry("recorder")
"""Recorders by name."""


_JACOBIAN_ENTRIES = 2**22
"""Most numbers in the gradients of one chunk of samples: 16 MiB in float32."""


def _register(name: str) -> Callable[[Recorder], Recorder]:
    return lambda recorder: recorders.register(name, recorder)


@_register("loss")
def training_loss(now: Snapshot) -> dict[str, Array]:
    """The loss on all training samples (the trace of a mini-batch run holds batch losses)."""
    return {"loss": total(now.loss, now.outputs(), now.y)}


@_register("validation")
def validation_loss(now: Snapshot) -> dict[str, Array]:
    """The loss on the validation samples."""
    if now.validation is None:
        raise BadArgument(
            "validation", None, "is needed by the recorder 'validation'", fix="give it"
        )
    x, y = now.validation
    f = now.path.outputs(now.params, now.path.prepare(x, y))
    return {"validation_loss": total(now.loss, f, y)}


@_register("distance")
def parameter_distance(now: Snapshot) -> dict[str, Array]:
    """||theta_b - theta_b(0)|| for every block b, and over all blocks."""
    moved = over_heads(now.model, optax.tree.sub(now.params, now.initial))
    by_block = {f"distance_{b}": optax.tree.norm(leaf) for b, leaf in blocks(moved).items()}
    return {**by_block, "distance": optax.tree.norm(moved)}


@_register("gradient")
def gradient_norm(now: Snapshot) -> dict[str, Array]:
    """The norm of the loss gradient for every block, and over all blocks."""
    _, grad = now.path.loss_and_gradient(now.params, now.path.prepare(now.x, now.y))
    grad = over_heads(now.model, grad)
    by_block = {f"gradient_{b}": optax.tree.norm(leaf) for b, leaf in blocks(grad).items()}
    return {**by_block, "gradient": optax.tree.norm(grad)}


@_register("jacobian")
def jacobian_norms(now: Snapshot) -> dict[str, Array]:
    """Three readings of "the Jacobian norm", for every block b.

    of_mean: ||(1/n) sum_j grad_b f(x_j)||, where samples may cancel;
    mean, max: over samples of ||grad_b f(x_j)||.
    """
    f = jax.eval_shape(now.outputs)
    one = jax.grad(now.model) if f.ndim == 1 else jax.jacrev(now.model)
    gradient = jax.vmap(one, in_axes=(None, 0))
    n, outputs = f.shape[0], f.size // f.shape[0]
    chunk = min(now.chunk, max(1, _JACOBIAN_ENTRIES // (outputs * optax.tree.size(now.params))))
    chunks = into_chunks(now.x, now.y, now.loss, chunk)

    def jacobian(samples: Samples) -> dict[str, Array]:
        return blocks(over_heads(now.model, gradient(now.params, samples.x), power=-1, axis=1))

    def sums_and_norms(samples: Samples) -> tuple[dict[str, Any], dict[str, Array]]:
        fresh = (samples.weight > 0).astype(samples.weight.dtype)
        found = jacobian(samples)
        summed = jax.tree.map(lambda g: jnp.tensordot(fresh, g, axes=1), found)
        return summed, {b: _sample_norms(g) for b, g in found.items()}

    sums, each = fold_chunks(sums_and_norms, chunks)
    result = {}
    for b in sums:
        result[f"jacobian_of_mean_{b}"] = optax.tree.norm(sums[b]) / n
        result[f"jacobian_mean_{b}"] = jnp.mean(each[b])
        result[f"jacobian_max_{b}"] = jnp.max(each[b])
    return result


def _sample_norms(gradients: Any) -> Float[Array, "b"]:
    """The norm over all leaves, for every sample."""
    squares = [jnp.sum(g.reshape(g.shape[0], -1) ** 2, axis=1) for g in jax.tree.leaves(gradients)]
    return jnp.sqrt(jnp.sum(jnp.stack(squares), axis=0))


@_register("margin")
def margins(now: Snapshot) -> dict[str, Array]:
    """min_j y_j f(x_j), and divided by ||U|| where the model has a block U.

    For classes: the least output of the class above the largest of the others.
    """
    f = now.outputs()
    if now.loss.labels == "classes":
        own = jax.nn.one_hot(now.y, f.shape[-1], dtype=bool)
        others = jnp.max(jnp.where(own, -jnp.inf, f), axis=-1)
        smallest = jnp.min(jnp.sum(jnp.where(own, f, 0), axis=-1) - others)
    else:
        smallest = jnp.min(now.y * f)
    result = {"margin": smallest}
    if "U" in (parts := blocks(over_heads(now.model, now.params))):
        length = optax.tree.norm(parts["U"])
        result["normalised_margin"] = smallest / jnp.where(length > 0, length, jnp.nan)
    return result


@_register("outputs")
def sample_outputs(now: Snapshot) -> dict[str, Array]:
    """f(x_j) for every training sample."""
    return {"outputs": now.outputs()}


@_register("iterates")
def iterates(now: Snapshot) -> dict[str, Array]:
    """The parameters themselves: with record_every=1 and float64 an audit need not train again."""
    return {f"iterate_{name}": leaf for name, leaf in named_leaves(now.params).items()}


@_register("linearised")
def linearised_outputs(now: Snapshot) -> dict[str, Array]:
    """f_lin(x_j) = f(x_j; start) + <grad f(x_j; start), params - start>, and max_j |f - f_lin|."""
    linear = jax.vmap(Linearised(now.model, now.initial), in_axes=(None, 0))
    f_lin = map_over_chunks(lambda s: linear(now.params, s.x), now.chunks())
    gap = jnp.abs(now.outputs() - f_lin)
    return {"linearised_outputs": f_lin, "linearisation_error": jnp.max(gap)}


@dataclass(frozen=True, eq=False)
class AttentionMass:
    """Mean attention on chosen tokens: over samples, heads and query rows.

    `relevant` marks the tokens of every training sample, (n, T).
    """

    relevant: Bool[Array, "n T"]

    def __call__(self, now: Snapshot) -> dict[str, Array]:
        """The mean mass on the relevant tokens."""
        check_shape("relevant", self.relevant, tuple(now.x.shape[:2]))
        rows = jax.vmap(attention_rows(now.model), in_axes=(None, 0))
        counts = getattr(now.model, "multiplicities", None)
        shares = None if counts is None else [k / sum(counts) for k in counts]

        def per_token(samples: Samples) -> Float[Array, "b T"]:
            over_rows = jnp.mean(rows(now.params, samples.x), axis=2)
            weights = None if shares is None else jnp.asarray(shares, over_rows.dtype)
            return jnp.average(over_rows, axis=1, weights=weights)

        mass = map_over_chunks(per_token, now.chunks())
        return {"attention_mass": jnp.sum(jnp.where(self.relevant, mass, 0)) / len(mass)}


def attention_rows(model: Any) -> Callable[[Any, Array], Float[Array, "heads rows T"]]:
    """The attention weights of a model on one sample, heads first, one row per query it uses."""
    if hasattr(model, "query"):
        over_heads = jax.vmap(pooled_attention, in_axes=(None, 0, None))
        return lambda params, x: over_heads(x, params.W, model.query(x))[:, None, :]
    if hasattr(model, "readout"):
        used = slice(-1, None) if model.readout == "last" else slice(None)
        each_head = jax.vmap(self_attention, in_axes=(None, 0))
        return lambda params, x: each_head(x, params.W)[:, used]
    if hasattr(model, "logits_matrix"):
        return lambda params, x: self_attention(x, model.logits_matrix(params))[None]
    raise BadArgument("model", type(model).__name__, "has no attention", fix="use another recorder")
