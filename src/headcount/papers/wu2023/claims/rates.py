"""Asymptotic statements of wu2023 as fitted exponents: Lemma 1, Theorems 1 to 3, Lemma 16.

A point is a table of measured values, widths by seeds. The exponent is the slope of log value
against log width, seed by seed; its interval is Student's over the seeds.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from ....theory import Kind, Sides
from ....theory.slow import dot
from ..constants import state
from ..records import WidthTable

CONFIDENCE = 0.99
CLAIMED = -0.5 + 0.05
"""Judged with an allowance: finite widths have lower-order terms."""


def exponents(table):
    """The slope of log value against log width for every seed."""
    x = np.log(np.asarray(table.widths, np.float64))
    x = x - np.mean(x)
    return np.log(np.asarray(table.values, np.float64)) @ x / np.sum(x**2)


def on_tables(name, title, where, says, statement, form, notes=()):
    """A quantity falls like d_m^{-1/2}."""

    def exponent(table):
        slopes = exponents(table)
        half = stats.t.ppf((1 + CONFIDENCE) / 2, len(slopes) - 1) / math.sqrt(len(slopes))
        mean, spread = float(np.mean(slopes)), float(half * np.std(slopes, ddof=1))
        return Sides(mean, CLAIMED, {"exponent": mean, "claimed": CLAIMED}, spread=spread)

    judged = f"Judged on measured tables: the fitted exponent is at most {CLAIMED:g}."
    exponent.__doc__ = f"{statement} {judged}"
    claim = state.claim(
        name,
        title,
        where=where,
        proved="measured",
        says=says,
        on=WidthTable,
        forms={"measured": form},
        notes=notes,
        kind=Kind.RATE,
        searched=False,
    )(exponent)
    claim.twin(slow_exponent)
    return claim


def slow_exponent(num, widths, values):
    """The mean slope."""
    x = [num.log(width) for width in widths]
    centre = num.total(x) / len(x)
    x = [value - centre for value in x]
    slopes = [dot(x, [num.log(v) for v in row]) / dot(x, x) for row in values]
    return num.total(slopes) / len(slopes), num.number(CLAIMED)


on_tables(
    "lemma-1",
    "The tangent kernel converges to its limit",
    "Lemma 1",
    r"\|K_{d_m}-K\|_F/\|K\|_F=O(d_m^{-1/2})",
    "At the NTK initialisation with tau0 = 1/d_m the relative Frobenius distance of the empirical "
    "kernel from K falls like d_m^{-1/2}.",
    ("with the entry-wise product", "E14"),
)
on_tables(
    "theorem-3-rate",
    "The Hessian norm falls like d_m^{-1/2}",
    "Theorem 3",
    r"\|H(\theta)\|_2=O(d_m^{-1/2})",
    "At the NTK initialisation with tau0 = 1/d_m, ||H(theta)|| falls like d_m^{-1/2} at theta^0 "
    "and within a fixed radius of it.",
    ("for the NTK initialisation", "E21"),
)
on_tables(
    "theorem-1-rate",
    "Conditions (2) and (3) at the LeCun initialisation",
    "Theorem 1, (45), (46), (51), (52)",
    r"d_m=\tilde\Omega(N^3)",
    "With C_* = 1 and N fixed, right over left side of (2) falls like d_m^{-1/2}, and that of (3) "
    "like d_m^{-1/2} for tau0 = d_m^{-1/2}, faster for d_m^{-1}. Judged on the worse of the two.",
    ("the conditions themselves, as measured", "E22"),
    ("E2",),
)
on_tables(
    "theorem-2-rate",
    "Condition (2) at the NTK initialisation with C_* of order sqrt(d_m)",
    "Theorem 2",
    r"d_m=\tilde\Omega(N)",
    "With C_* = sqrt(d_m), right over left side of (2) and (3) fall like d_m^{-1/2}; with C_* = 1 "
    "that of (2) stays constant.",
    ("C_* = sqrt(d_m)", "E15"),
)
on_tables(
    "lemma-16-rate",
    "Attention becomes uniform for tau0 = 1/d_m",
    "Lemma 16, (66)-(68)",
    r"\|\beta_i-1/d_s\|_2=O(d_m^{-1/2})",
    "The largest |beta_i - 1/d_s| falls like d_m^{-1/2}.",
    ("as measured", "E24"),
)
