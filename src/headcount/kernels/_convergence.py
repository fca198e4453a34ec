"""How fast the kernel of a finite network approaches its limit, in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from ..core import Array, BadArgument, check_count, check_fraction
from ..core._papers import bring_rooms
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


class Limit(NamedTuple):
    """The limit of a kind of model: `kernel(model, x1, x2, **options)` is its limiting kernel.

    `at_width(model, width, seed)` is the model of a width with the start whose kernel tends there;
    `options` are those with which a rate of convergence asks for the limit.
    """

    kernel: Callable[..., LimitKernel]
    at_width: Callable[[Any, int, int], tuple[Any, Any]]
    options: Mapping[str, Any] = {}


_LIMITS: dict[type, Limit] = {}


def register_limit(kind: type, limit: Limit) -> None:
    """Say what the kernels of models of type `kind` tend to."""
    _LIMITS[kind] = limit


def limit_of(model: Any) -> Limit:
    """The limit of a model's kind."""
    bring_rooms(type(model))
    if type(model) not in _LIMITS:
        known = ", ".join(kind.__name__ for kind in _LIMITS) or "a model with register_limit"
        raise BadArgument("model", type(model).__name__, "has no known limit", fix=f"use {known}")
    return _LIMITS[type(model)]


def limit_ntk(
    model: Any,
    x1: Float[Array, "n1 T d"],
    x2: Float[Array, "n2 T d"] | None = None,
    **options: Any,
) -> LimitKernel:
    """The limiting kernel of a model, with the options of its own limit.

    The width, and scalings that depend on it, are those of the limit, not of `model`.
    """
    return limit_of(model).kernel(model, x1, x2, **options)


def kernel_rate(
    model: Any,
    x: Float[Array, "n T d"],
    *,
    widths: Sequence[int],
    seeds: Sequence[int],
    limit: LimitKernel | None = None,
    confidence: float = 0.95,
) -> KernelRate:
    """Errors |K_width - K| / |K| over widths and seeds, and their slope in log-log.

    Which start a width has, and how the limit is estimated if it is not given, is said where the
    limit of the model's kind is registered.
    """
    if len(widths) < 2 or len(set(widths)) != len(widths):
        raise BadArgument("widths", widths, "needs two or more different widths", fix="[64, 256]")
    if len(seeds) < 2 or len(set(seeds)) != len(seeds):
        raise BadArgument("seeds", seeds, "needs two or more different seeds", fix="range(5)")
    for width in widths:
        check_count("widths", width)
    check_fraction("confidence", confidence)
    if limit is None:
        limit = limit_ntk(model, x, **limit_of(model).options)
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
    model: Any, width: int, seed: int, x: Float[Array, "n T d"]
) -> dict[str, Float[Array, "n n"]]:
    """The kernel blocks at initialisation of the model at this width, and their total."""
    result = ntk(*limit_of(model).at_width(model, width, seed), x)
    return {**result.blocks, "total": result.total}


def fit_slope(
    widths: Sequence[int], errors: Float[Array, "seeds widths"], confidence: float = 0.95
) -> Slope:
    """The mean over seeds of the slope of log error in log width, with Student's interval.

    >>> widths = np.array([10, 100, 1000])
    >>> found = fit_slope(widths, np.outer([1.0, 3.0], widths**-0.75))
    >>> [round(float(end), 12) for end in (found.value, found.lower, found.upper)]
    [-0.75, -0.75, -0.75]
    >>> bool(np.isnan(fit_slope(widths, np.zeros((2, 3))).value))
    True
    """
    from scipy import stats

    if not np.all(errors > 0):
        return Slope(np.nan, np.nan, np.nan)
    log_width = np.log(np.asarray(widths, np.float64))
    centred = log_width - np.mean(log_width)
    slopes = np.log(errors) @ centred / (centred @ centred)
    value = float(np.mean(slopes))
    half = stats.t.ppf((1 + confidence) / 2, len(slopes) - 1) * stats.sem(slopes)
    return Slope(value, value - float(half), value + float(half))
