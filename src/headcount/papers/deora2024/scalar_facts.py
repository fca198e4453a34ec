"""Facts about the logistic loss behind deora2024, proved on their whole domain by `verify`.

With x = exp(-z) the loss is log(1 + x), its slope -x/(1 + x) = -p and its curvature p (1 - p).
"""

from typing import Any

import jax.numpy as jnp

from ...theory import Box, facts, lemma


@facts.named("deora2024/loss-bounds-its-slope")
@lemma(x=Box(low=0, high=1024))
def loss_bounds_its_slope(x: Any) -> tuple[Any, Any]:
    """|l'| <= l, the self-boundedness of Eq. (24), for z >= -6.93."""
    return x / (1 + x), jnp.log1p(x)


@facts.named("deora2024/slope-at-most-one")
@lemma(x=Box(low=0, high=1024))
def slope_at_most_one(x: Any) -> tuple[Any, Any]:
    """|l'| <= 1 for z >= -6.93."""
    return x / (1 + x), 1.0


@facts.named("deora2024/curvature-at-most-a-quarter")
@lemma(p=Box(low=0, high=1))
def curvature_at_most_a_quarter(p: Any) -> tuple[Any, Any]:
    """l'' = p (1 - p) <= 1/4."""
    return p * (1 - p), 0.25


@facts.named("deora2024/slope-bounds-curvature")
@lemma(p=Box(low=0, high=1))
def slope_bounds_curvature(p: Any) -> tuple[Any, Any]:
    """l'' = p (1 - p) <= p = |l'|."""
    return p * (1 - p), p
