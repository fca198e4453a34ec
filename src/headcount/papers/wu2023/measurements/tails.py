"""The tail of Assumption 3: P(|X_n X_m^T|_F^2 >= t) over pairs of samples [wu2023, Sec. 4.1]."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from ....core import Array

QUANTILES = 400
"""Points of the tail that are kept."""
TAIL_OUTPUTS: dict[str, tuple[str, ...]] = {
    "products": ("tail_point",),
    "largest_product": (),
    "tail_exponent": (),
}


def tail_of(tokens: Float[Array, "n T d"]) -> dict[str, Any]:
    """Quantiles of the pair products of samples divided by |X|_F, largest, and fitted exponent."""
    from ..regression import pair_products, tail_exponent

    if not np.isfinite(tokens).all():
        nothing = np.full(QUANTILES, np.nan)
        return {"products": nothing, "largest_product": np.nan, "tail_exponent": np.nan}
    unit = tokens / np.linalg.norm(tokens, axis=(1, 2), keepdims=True)
    products = pair_products(unit)
    return {
        "products": np.quantile(products, np.arange(QUANTILES) / QUANTILES),
        "largest_product": products[-1],
        "tail_exponent": tail_exponent(products),
    }


def tail_levels() -> Float[Array, "tail_point"]:
    """P(product >= t) at the quantiles that `tail_of` keeps."""
    return 1 - np.arange(QUANTILES) / QUANTILES
