"""Points moved into hypotheses that only some statements of deora2024 have: `within` of shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Float

from ...core import Array
from ...theory.families import into_ball
from . import constants, quantities
from .constants import Constants
from .records import Population, Run, Start, TwoPoints, as_rows

MOST_ROOT = 1e9
"""The largest sqrt(H) that a search visits: beyond, float64 blurs the outputs."""
_BELOW = 1 - 1e-9
"""A little below what is allowed."""


def close(i: TwoPoints, form: str) -> TwoPoints:
    """Two points that are as close as (18) asks."""
    longest = quantities.widest(i.rows) + quantities.widest(i.move)
    beta = constants.beta_3(longest, i.R, i.T, i.d, form, i.readout)
    allowed = jnp.sqrt(jnp.sqrt(i.H) / (2 * beta)) * _BELOW
    factor = jnp.minimum(1.0, allowed / jnp.maximum(quantities.length(i, i.move), 1e-300))
    return i.changed(dU=factor * i.dU, dW=factor * i.dW)


def _wide_enough(i: Run, root: Any) -> Float[Array, "G"]:
    """Multiplicities in the proportion of k with sqrt(H) just above `root`."""
    shares = jnp.clip(i.k, 1.0, 4.0)
    size = jnp.clip(root, 1.0, MOST_ROOT) ** 2 * (1 + 1e-9)
    return shares * jnp.maximum(jnp.ceil(size / jnp.sum(shares)), 1.0)


def fit(i: Any, form: str, factor: int = 18) -> Any:
    """A run inside every hypothesis of Theorem 3 (factor 128: of Lemma 11)."""
    near = {name: into_ball(getattr(i, name), 1.0, 2) for name in ("U", "W", "dU", "dW")}
    small = i.changed(X=into_ball(i.X, 1.5), k=jnp.clip(i.k, 1.0, 4.0), **near)
    longest = quantities.widest(small.rows) + quantities.widest(as_rows(small.dU, small.dW))
    shape = (small.R, small.T, small.d, form, small.readout)
    k = _wide_enough(small, constants.required_root(small.D, longest, *shape, factor=factor))
    # Read-outs of size 1/sqrt(H) keep the outputs of order one, whatever H is.
    wide = small.changed(k=k, U=into_ball(small.U, 2.0 / jnp.sqrt(jnp.sum(k)), 2))
    step = Constants(wide, form).longest_step
    return wide.changed(eta=jnp.clip(i.eta, 1e-30, jnp.maximum(step, 1e-30)))


def _shorter(i: Any, step: Any) -> Any:
    return i.changed(eta=jnp.minimum(i.eta, _BELOW * step))


def relabelled(inside: Any) -> Any:
    """The target labels the data, so that L(theta) <= log 2 <= 1/K for K = 1."""
    above = quantities.outputs(inside, inside.target) >= 0
    return inside.changed(y=jnp.where(above, 1.0, -1.0))


def fit_labelled(i: Run, form: str) -> Run:
    """A run inside Corollary 3's hypotheses; g_0 is 2 D in its corrected form."""
    if form == "corrected":  # four times the distance in the conditions covers g_0 = 2 D
        wide = fit(i.changed(dU=2 * i.dU, dW=2 * i.dW), "v2")
        inside = wide.changed(dU=wide.dU / 2, dW=wide.dW / 2)
    else:
        inside = fit(i, form)
    one = relabelled(inside)
    return _shorter(one, Constants(one, form).stretched_step)


def fit_surely(i: Population, form: str) -> Population:
    """Theorem 4's hypotheses for every training set: eta by the largest sample loss."""
    inside = fit(i, form, 128)
    return _shorter(inside, Constants(inside, form).sure_step)


def fit_surely_labelled(i: Population, form: str) -> Population:
    """A population that the target labels: L(theta) <= log 2 <= 1/K surely."""
    one = relabelled(fit_surely(i, form))
    return _shorter(one, jnp.minimum(Constants(one, form).sure_step, one.D**2))


Number = Callable[[Constants], Any]


def fit_start(i: Start, form: str, root: Number, step: Number | None = None) -> Start:
    """Data of one sign per label, heads in opposite pairs, sqrt(H) just above `root`."""
    U, W = jnp.clip(i.U[:1], -0.3, 0.3), jnp.clip(i.W[:1], -1.0, 1.0)
    vU, vW = 0.2 + jnp.clip(jnp.abs(i.vU), 0.0, 3.0), jnp.clip(i.vW, -0.2, 0.2)
    scale = jnp.sqrt(2 * len(i.k) / (jnp.sum(vU**2) + jnp.sum(vW**2)))
    near = i.changed(
        X=i.y[:, None, None] * jnp.clip(jnp.abs(i.X), 0.5, 1.2),
        k=jnp.ones_like(i.k),
        U=jnp.concatenate([U, -U]),
        W=jnp.concatenate([W, W]),
        vU=scale * vU,
        vW=scale * vW,
        eps=i.eps if step is None else jnp.full_like(i.eps, 1 / i.K),
    )
    size = root(Constants(near, form)) ** 2 * (1 + 1e-9)
    wide = near.changed(k=jnp.broadcast_to(jnp.ceil(size / 2), i.k.shape))
    return wide if step is None else wide.changed(eta=step(Constants(wide, form)) * _BELOW)


def shape(
    within: Callable[..., Any], form: str, n: int = 2, d: int = 2, G: int = 1, **more: Any
) -> dict[str, Any]:
    """Two tokens and a full read-out, moved by `within` for one form."""
    moved = functools.partial(within, form=form, **more.pop("by", {}))
    return {"n": n, "d": d, "T": 2, "r": 2, "G": G, **more, "within": moved}


_TEXTS = (shape(fit, "v2", K=3), shape(fit, "v1", K=3))
"""With as few heads as each text allows, and features enough for the two to differ."""
RUNS = (*_TEXTS, shape(fit, "sharp", n=1, d=1, G=2, K=2))
"""Inside Theorem 3."""
STEPS = (shape(fit, "sharp", K=3), shape(fit, "sharp", n=1, d=1, G=2, K=2), *_TEXTS)
"""With steps as long as the sharp constants allow."""
