"""How fast the kernel of a finite network approaches its limit, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ..core import Array, BadArgument, check_count, check_fraction
from ..models import ntk_normal, paired
from ..papers.arda2026.limit import limit_arda2026
from ..papers.arda2026.model import PooledAttention
from ..papers.wu2023.limit import limit_wu2023
from ..papers.wu2023.model import Encoder, output_scale, softmax_scale
from ._limit_kernel import LimitKernel
from ._ntk import ntk

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class Slope:
    """A power of the width: error ~ width^value, with a confidence interval over seeds."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True)
class KernelRate:
    """Relative Frobenius distances of empirical kernels from their limit, by block and "total".

    A block is measured against its own limit, or against the total where that limit vanishes.
    `slopes` are means over seeds of least-squares slopes of log error in log width, with Student's
    interval at level `confidence`; NaN where an error is exactly zero. `limit_error` is the same
    distance due to the limit's own standard errors: widths whose error is near it measure noise.
    """

    widths: tuple[int, ...]
    seeds: tuple[int, ...]
    errors: dict[str, Float[Array, "seeds widths"]]
    slopes: dict[str, Slope]
    limit_error: dict[str, float]
    confidence: float
    limit: LimitKernel

    def to_xarray(self) -> xarray.Dataset:
        """Errors over (block, seed, width), slopes and their intervals over block."""
        import xarray

        slopes = list(self.slopes.values())
        return xarray.Dataset(
            {
                "error": (("block", "seed", "width"), np.stack(list(self.errors.values()))),
                "limit_error": ("block", list(self.limit_error.values())),
                "slope": ("block", [s.value for s in slopes]),
                "slope_lower": ("block", [s.lower for s in slopes]),
                "slope_upper": ("block", [s.upper for s in slopes]),
            },
            coords={
                "block": list(self.errors),
                "seed": list(self.seeds),
                "width": list(self.widths),
            },
            attrs={"confidence": self.confidence, "limit": self.limit.method},
        )


def limit_ntk(
    model: PooledAttention | Encoder,
    x1: Float[Array, "n1 T d"],
    x2: Float[Array, "n2 T d"] | None = None,
    **options: Any,
) -> LimitKernel:
    """The limiting kernel of a model: `limit_arda2026` (with its options) or `limit_wu2023`.

    The width, and for wu2023 tau0 and tau1, are those of the limit, not of `model`.
    """
    if isinstance(model, PooledAttention):
        return limit_arda2026(model, x1, x2, **options)
    if isinstance(model, Encoder) and not model.residual:
        if options:
            raise BadArgument("options", options, "wu2023 has a closed form", fix="give none")
        return limit_wu2023(x1, x2, pooling=model.pooling)
    raise BadArgument(
        "model", type(model).__name__, "has no known limit", fix="use PooledAttention or Encoder"
    )


def kernel_rate(
    model: PooledAttention | Encoder,
    x: Float[Array, "n T d"],
    *,
    widths: Sequence[int],
    seeds: Sequence[int],
    limit: LimitKernel | None = None,
    confidence: float = 0.95,
) -> KernelRate:
    """Errors |K_width - K| / |K| over widths and seeds, and their slope in log-log.

    arda2026: paired initialisation at width m [Lemma 4]; its limit, if not given, is estimated with
    2^14 heads of a stream of its own. wu2023: NTK initialisation, tau0 = 1/d_m, tau1 = d_m^{-1/2}
    [Lemma 1]. Both predict slope -1/2; wu2023's blocks W_Q and W_K vanish like 1/d_m.
    """
    if len(widths) < 2 or len(set(widths)) != len(widths):
        raise BadArgument("widths", widths, "needs two or more different widths", fix="[64, 256]")
    if len(seeds) < 2 or len(set(seeds)) != len(seeds):
        raise BadArgument("seeds", seeds, "needs two or more different seeds", fix="range(5)")
    for width in widths:
        check_count("widths", width)
    check_fraction("confidence", confidence)
    if limit is None:
        limit = limit_ntk(
            model, x, **({"heads": 2**14} if isinstance(model, PooledAttention) else {})
        )
    kernels = [[_empirical(model, width, seed, x) for width in widths] for seed in seeds]
    targets = {**limit.blocks, "total": limit.total}
    spread = {**limit.errors, "total": limit.total_error}
    errors, noise = {}, {}
    for name, target in targets.items():
        scale = np.linalg.norm(target) or np.linalg.norm(limit.total) or 1.0
        gaps = [[np.linalg.norm(k[name] - target) / scale for k in row] for row in kernels]
        errors[name] = np.array(gaps)
        noise[name] = float(np.linalg.norm(spread[name]) / scale)
    return KernelRate(
        widths=tuple(int(w) for w in widths),
        seeds=tuple(int(s) for s in seeds),
        errors=errors,
        slopes={name: fit_slope(widths, error, confidence) for name, error in errors.items()},
        limit_error=noise,
        confidence=confidence,
        limit=limit,
    )


def _empirical(
    model: PooledAttention | Encoder, width: int, seed: int, x: Float[Array, "n T d"]
) -> dict[str, Float[Array, "n n"]]:
    """The kernel blocks at initialisation of the model at this width, and their total."""
    if isinstance(model, PooledAttention):
        wide: Any = replace(model, m=width)
        params: Any = paired(wide, seed)
    else:
        tau0, tau1 = softmax_scale("ntk", width), output_scale("ntk", width)
        wide = replace(model, d_m=width, tau0=tau0, tau1=tau1)
        params = ntk_normal(wide, seed)
    result = ntk(wide, params, x)
    return {**result.blocks, "total": result.total}


def fit_slope(
    widths: Sequence[int], errors: Float[Array, "seeds widths"], confidence: float = 0.95
) -> Slope:
    """The mean over seeds of the slope of log error in log width, with Student's interval."""
    from scipy import stats

    if not np.all(errors > 0):
        return Slope(np.nan, np.nan, np.nan)
    log_width = np.log(np.asarray(widths, np.float64))
    centred = log_width - np.mean(log_width)
    slopes = np.log(errors) @ centred / (centred @ centred)
    value = float(np.mean(slopes))
    half = stats.t.ppf((1 + confidence) / 2, len(slopes) - 1) * stats.sem(slopes)
    return Slope(value, value - float(half), value + float(half))
