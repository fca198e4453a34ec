"""Asymptotic statements of wu2023 as fitted exponents: Lemma 1, Theorems 1 to 3, Lemma 16.

An instance is a table of measured values, widths by seeds. The exponent is the slope of log value
against log width, seed by seed; its interval is Student's over the seeds.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from scipy import stats

from ...core import Array
from ...theory import Claim, Kind, Sides, instance_class
from ...theory.domain import Domain
from ...theory.slow import Arithmetic, dot
from .declare import claim
from .naive import Data

CONFIDENCE = 0.99


@instance_class
@dataclass(frozen=True)
class WidthTable(Domain):
    """A quantity measured at several widths for several seeds."""

    widths: Float[Array, "k"]
    values: Float[Array, "seeds k"]

    positive: ClassVar[tuple[str, ...]] = ("widths", "values")

    def outside(self) -> str | None:
        """A slope needs two widths, an interval two seeds."""
        enough = len(np.unique(self.widths)) >= 2 and len(self.values) >= 2
        return None if enough else "needs two widths and two seeds"


def exponents(table: WidthTable) -> Float[Array, "seeds"]:
    """The slope of log value against log width for every seed."""
    x = np.log(np.asarray(table.widths, np.float64))
    x = x - np.mean(x)
    return np.log(np.asarray(table.values, np.float64)) @ x / np.sum(x**2)


def _fitted(exponent: float) -> Any:
    def sides(table: WidthTable, variant: str) -> Sides:
        slopes = exponents(table)
        half = stats.t.ppf((1 + CONFIDENCE) / 2, len(slopes) - 1) / math.sqrt(len(slopes))
        mean, spread = float(np.mean(slopes)), float(half * np.std(slopes, ddof=1))
        constants = {"exponent": mean, "claimed": exponent}
        return Sides(mean, exponent, constants, spread=spread)

    return sides


def _fitted_naively(exponent: str) -> Any:
    def slow(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
        x = [num.log(width) for width in data["widths"]]
        centre = num.total(x) / len(x)
        x = [value - centre for value in x]
        slopes = [dot(x, [num.log(v) for v in row]) / dot(x, x) for row in data["values"]]
        return num.total(slopes) / len(slopes), num.number(exponent)

    return slow


def _rate(
    name: str, title: str, equations: str, statement: str, latex: str, claimed: float, **more: Any
) -> Claim:
    return claim(
        name,
        title,
        equations,
        f"{statement} Judged on measured tables: the fitted exponent is at most {claimed:g}.",
        latex,
        kind=Kind.RATE,
        sides=_fitted(claimed),
        naive=_fitted_naively(repr(claimed)),
        **more,
    )


_ALLOWANCE = 0.05
"""Exponents are judged with this allowance: finite widths have lower-order terms."""

on_tables = functools.partial(_rate, where="measured")

on_tables(
    "lemma-1",
    "The tangent kernel converges to its limit",
    "Lemma 1",
    "At the NTK initialisation with tau0 = 1/d_m the relative Frobenius distance of the empirical "
    "kernel from K falls like d_m^{-1/2}.",
    r"\|K_{d_m}-K\|_F/\|K\|_F=O(d_m^{-1/2})",
    -0.5 + _ALLOWANCE,
    forms={"measured": ("with the entry-wise product", "E14")},
)

on_tables(
    "theorem-3-rate",
    "The Hessian norm falls like d_m^{-1/2}",
    "Theorem 3",
    "At the NTK initialisation with tau0 = 1/d_m, ||H(theta)|| falls like d_m^{-1/2} at theta^0 "
    "and within a fixed radius of it.",
    r"\|H(\theta)\|_2=O(d_m^{-1/2})",
    -0.5 + _ALLOWANCE,
    forms={"measured": ("for the NTK initialisation", "E21")},
)

on_tables(
    "theorem-1-rate",
    "Conditions (2) and (3) at the LeCun initialisation",
    "Theorem 1, (45), (46), (51), (52)",
    "With C_* = 1 and N fixed, right over left side of (2) falls like d_m^{-1/2}, and that of (3) "
    "like d_m^{-1/2} for tau0 = d_m^{-1/2}, faster for d_m^{-1}. Judged on the worse of the two.",
    r"d_m=\tilde\Omega(N^3)",
    -0.5 + _ALLOWANCE,
    forms={"measured": ("the conditions themselves, as measured", "E22")},
    errata=("E2",),
)

on_tables(
    "theorem-2-rate",
    "Condition (2) at the NTK initialisation with C_* of order sqrt(d_m)",
    "Theorem 2",
    "With C_* = sqrt(d_m), right over left side of (2) and (3) fall like d_m^{-1/2}; with C_* = 1 "
    "that of (2) stays constant.",
    r"d_m=\tilde\Omega(N)",
    -0.5 + _ALLOWANCE,
    forms={"measured": ("C_* = sqrt(d_m)", "E15")},
)

on_tables(
    "lemma-16-rate",
    "Attention becomes uniform for tau0 = 1/d_m",
    "Lemma 16, (66)-(68)",
    "The largest |beta_i - 1/d_s| falls like d_m^{-1/2}.",
    r"\|\beta_i-1/d_s\|_2=O(d_m^{-1/2})",
    -0.5 + _ALLOWANCE,
    forms={"measured": ("as measured", "E24")},
)
