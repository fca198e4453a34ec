"""What an audit writes down at every iterate of a run of the encoder.

The iterates come in pieces, so that those of a wide encoder need not be held at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ...core import Array, float64
from ...theory import iterates_of
from ...theory.domain import NotFinite
from ...training import Built, TrainConfig
from . import quantities as model
from .model import EncoderParams
from .records import Network

MOST_KEPT = 2**25
"""Numbers in the iterates of gradient descent that are held at a time: 256 MiB."""
_AT_ONCE = 20
"""Iterates that one call of the compiled program looks at."""


@dataclass(frozen=True)
class History:
    """One run: values at theta^0 .. theta^t, sign changes between neighbours, some iterates."""

    loss: Float[Array, "points"]
    """(1/2)|f - y|^2."""
    alpha: Float[Array, "points"]
    """sigma_min(F_pre)."""
    norms: Float[Array, "points 4"]
    flips: Int[Array, "steps"]
    """Units, counted per sample and token, that change sign from one step to the next."""
    units: int
    pairs: tuple[tuple[EncoderParams, EncoderParams], ...]
    """The first and the last two neighbouring iterates."""
    last: EncoderParams
    top_of_kernel: float
    """lambda_max of the tangent kernel at the start."""
    largest_feature: float
    """max_n |f_pre(X_n)| at the start."""


def trained(config: TrainConfig, built: Built, progress: Any = None) -> Iterator[EncoderParams]:
    """The iterates of the one seed of `config`, in pieces whose ends are shared.

    Gradient descent has no memory: it is stopped and taken up again where a piece is full. Other
    rules have, and are one piece. `config` names its eta: by default that depends on the steps.
    """
    size = sum(leaf.size for leaf in jax.tree.leaves(built.initial))
    most = max(1, MOST_KEPT // size) if config.optimiser == "gd" else config.steps
    for done in range(0, config.steps, most):
        part = config.model_copy(update={"steps": min(most, config.steps - done)})
        told = progress and _shifted(progress, done, config.steps)
        piece, _ = iterates_of(part, built, progress=told)
        yield piece
        built = replace(built, initial=_some(piece, slice(-1, None)))


def _shifted(progress: Any, done: int, steps: int) -> Any:
    """Progress of a piece as that of the run."""
    return lambda count, _, loss: progress(done + count, steps, loss)


def history_of(i: Network, pieces: Iterable[EncoderParams]) -> History:
    """What was seen along a run from i.theta: its iterates in pieces whose ends are shared."""
    look = jax.jit(_looked_at)
    parts: list[dict[str, Any]] = []
    pairs: list[tuple[EncoderParams, EncoderParams]] = []
    with float64():
        signs = jax.jit(_signs)(i, i.theta)
        for piece in pieces:
            for begin in range(1 if pairs else 0, len(piece.w_O), _AT_ONCE):  # shared ends once
                signs, seen = look(i, signs, _some(piece, slice(begin, begin + _AT_ONCE)))
                parts.append(jax.device_get(seen))
            neighbours = [(_some(piece, at), _some(piece, at + 1)) for at in (0, -2)]
            pairs = [pairs[0] if pairs else neighbours[0], neighbours[1]]
        top, largest = jax.jit(_sizes_at_start)(i)
    seen_all = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if not np.all(np.isfinite(seen_all["loss"])):
        raise NotFinite("run", "loss", "is not finite at every step", fix="use a smaller eta")
    return History(
        **{name: seen_all[name] for name in ("loss", "alpha", "norms")},
        flips=seen_all["flips"][1:],
        units=int(np.prod(i.X.shape[:2])) * len(i.w_O),
        pairs=tuple(pairs),
        last=pairs[-1][-1],
        top_of_kernel=float(top),
        largest_feature=float(largest),
    )


def _some(piece: EncoderParams, at: Any) -> EncoderParams:
    """One iterate of a piece, or some; a copy, so that the piece can go."""
    return EncoderParams(*(np.array(block[at]) for block in piece))


def _signs(i: Network, theta: EncoderParams) -> Any:
    return model.hidden(i, theta) > 0


def _looked_at(i: Network, before: Any, thetas: EncoderParams) -> tuple[Any, dict[str, Any]]:
    """One iterate after the other: what is seen there, and the units that changed sign since."""

    def look(signs: Any, theta: EncoderParams) -> tuple[Any, dict[str, Any]]:
        now = _signs(i, theta)
        return now, {**_observed(i, theta), "flips": jnp.sum(now != signs)}

    return jax.lax.scan(look, before, thetas)


def _observed(i: Network, theta: EncoderParams) -> dict[str, Any]:
    F = model.features(i, theta)
    residual = F @ theta.w_O - i.y
    lowest = jnp.linalg.eigvalsh(F @ F.T)[0] if F.shape[0] <= F.shape[1] else 0.0
    return {
        "loss": jnp.sum(residual**2) / 2,
        "alpha": jnp.sqrt(jnp.maximum(lowest, 0.0)),
        "norms": jnp.stack(list(model.norms(theta))),
    }


def _sizes_at_start(i: Network) -> tuple[Any, Any]:
    F, J = model.features(i, i.theta), model.jacobian(i, i.theta)
    return jnp.linalg.eigvalsh(J @ J.T)[-1], jnp.max(jnp.linalg.norm(F, axis=1))
