"""The tail of Assumption 3, P(|X_n X_m^T|_F^2 >= t), drawn and judged; for text and images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ....core import Array
from ....lab import COLOURS, Finding, Source, over_seeds, threshold
from .curves import by_seed, finish

if TYPE_CHECKING:
    import xarray as xr


QUANTILES = 400
"""Points of the tail that are kept."""
TAIL_OUTPUTS: dict[str, tuple[str, ...]] = {
    "products": ("tail_point",),
    "largest_product": (),
    "tail_exponent": (),
}


def tail_of(tokens: Float[Array, "n T d"]) -> dict[str, Any]:
    """Quantiles of the pair products of samples divided by |X|_F, largest, and fitted exponent."""
    from ..data import pair_products, tail_exponent

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


def tail_statistics(data: xr.Dataset, suffixes: Sequence[str]) -> xr.Dataset:
    """Mean quantiles of the products, largest product and exponent, with intervals over runs."""
    import xarray as xr

    names = ("products", "largest_product", "tail_exponent")
    return xr.merge([over_seeds(data[name + end]) for end in suffixes for name in names])


def excess(products: Any, exponent: Any) -> Any:
    """max over t of P(product >= t) - exp(-t^c), with each run's own fitted c."""
    with np.errstate(invalid="ignore"):
        bound = np.exp(-(products ** exponent[:, None]))
    return np.max(tail_levels()[None, :] - bound, axis=1)


def tail_verdicts(data: xr.Dataset, suffix: str, words: str, source: Source) -> list[Finding]:
    """At least exponential decay; and the assumption as printed, without a scale."""
    exponent = data[f"tail_exponent{suffix}"].values
    products = by_seed(data[f"products{suffix}"], "tail_point")
    return [
        threshold(
            f"{words}the tail decays at least exponentially (fitted exponent c above 1)",
            exponent,
            above=1.0,
            source=source,
        ),
        threshold(
            f"{words}as printed, the tail is below exp(-t^c) at every t with the fitted c (excess)",
            excess(products, exponent),
            below=0.0,
        ),
        threshold(
            f"{words}no pair reaches t = 1, where exp(-t^c) is 1/e for every c: large c always fit",
            data[f"largest_product{suffix}"].values,
            below=1.0,
        ),
    ]


def draw_tail(axes: Sequence[Any], data: xr.Dataset, suffix: str, label: str, index: int) -> None:
    """Left: the tail against t, logarithmic; right: log(-log tail) against log t and the fit."""
    t, level = data[f"mean_products{suffix}"].values, tail_levels()
    ends = ("low", "high")
    low, high = (data[f"mean_products{suffix}_{end}"].values.clip(0.0) for end in ends)
    colour = COLOURS[index]
    axes[0].plot(t, level, color=colour, label=label)
    axes[0].fill_betweenx(level, low, high, color=colour, alpha=0.15, linewidth=0)
    finish(axes[0], "$t$", "$P(|X_n X_m^T|_F^2 \\geq t)$", log_y=True)
    c, c_low, c_high = (
        float(data[f"mean_tail_exponent{suffix}{end}"]) for end in ("", "_low", "_high")
    )
    upper = level <= 0.5
    x, y = np.log(t[1:]), np.log(-np.log(level[1:]))
    axes[1].plot(x, y, color=colour, label=label)
    centre = np.mean(np.log(t[upper])), np.mean(np.log(-np.log(level[upper])))
    ends_of_fit = np.log(t[upper])[[0, -1]]
    text = f"c = {c:.2f} [{c_low:.2f}, {c_high:.2f}]"
    fitted = centre[1] + c * (ends_of_fit - centre[0])
    axes[1].plot(ends_of_fit, fitted, "--", color=colour, label=text)
    finish(axes[1], "$\\log t$", "$\\log(-\\log P)$")
