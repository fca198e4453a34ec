"""Asymptotic statements of wu2023 as fitted exponents: Lemma 1, Theorems 1 to 3, Lemma 16.

A point is a table of measured values, widths by seeds. The exponent is the slope of log value
against log width, seed by seed; its interval is Student's over the seeds.
"""

from __future__ import annotations

import math

import numpy as np

from ....theory import Kind, Sides
from ....theory.slow import dot
from ..constants import state
from ..records import WidthTable

CONFIDENCE = 0.99
ALLOWED = 0.05
"""Judged with an allowance: finite widths have lower-order terms."""


def exponents(table):
    """The slope of log value against log width for every seed."""
    x = np.log(np.asarray(table.widths, np.float64))
    x = x - np.mean(x)
    return np.log(np.asarray(table.values, np.float64)) @ x / np.sum(x**2)


def on_tables(name, title, where, says, statement, forms, notes=(), claimed=-0.5):
    """A quantity grows at most with the exponent `claimed`, a number or one for each form."""

    def claimed_by(form):
        return ALLOWED + (claimed[form] if isinstance(claimed, dict) else claimed)

    def exponent(table, form):
        from scipy import stats  # what only reads the claim need not wait for it

        slopes, bound = exponents(table), claimed_by(form)
        half = stats.t.ppf((1 + CONFIDENCE) / 2, len(slopes) - 1) / math.sqrt(len(slopes))
        mean, spread = float(np.mean(slopes)), float(half * np.std(slopes, ddof=1))
        return Sides(mean, bound, {"exponent": mean, "claimed": bound}, spread=spread)

    def slow_exponent(num, widths, values, form):
        """The mean slope."""
        x = [num.log(width) for width in widths]
        centre = num.total(x) / len(x)
        x = [value - centre for value in x]
        slopes = [dot(x, [num.log(v) for v in row]) / dot(x, x) for row in values]
        return num.total(slopes) / len(slopes), num.number(claimed_by(form))

    judged = f"Judged on measured tables, with an allowance of {ALLOWED:g} for the exponent."
    exponent.__doc__ = f"{statement} {judged}"
    claim = state.claim(
        name,
        title,
        where=where,
        proved="measured",
        says=says,
        on=WidthTable,
        forms=forms if isinstance(forms, dict) else {"measured": forms},
        notes=notes,
        kind=Kind.RATE,
        searched=False,
        no_rival="a rate",
    )(exponent)
    claim.twin(slow_exponent)
    return claim


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
on_tables(
    "theorem-1-samples",
    "How the conditions get harder with N at the LeCun initialisation",
    "Theorem 1, (45), (46), (49), (50)",
    r"d_m=\tilde\Omega(N^3)",
    "With C_* = 1, tau0 = d_m^{-1/2}, a fixed width and samples at right angles, the worse "
    "ratio of (2) and (3) grows at most like N^{3/2}; it falls like d_m^{-1/2}: N^3 is enough.",
    ("the conditions themselves, as measured", "E2"),
    claimed=1.5,
)
on_tables(
    "theorem-2-samples",
    "How the conditions get harder with N at the NTK initialisation",
    "Theorem 2, (60), (61)",
    r"d_m=\tilde\Omega(N)",
    "With C_* = sqrt(d_m), tau0 = d_m^{-1}, a fixed width and samples at right angles, the worse "
    "ratio of (2) and (3) grows at most like N^{3/2}; it falls like d_m^{-1/2}: widths of order "
    "N^3 do. Were widths of order N enough, it would grow like N^{1/2}.",
    {
        "measured": ("the conditions themselves, as measured", "E15"),
        "printed": ("growth like N^{1/2}, for which widths of order N are enough", "E15"),
    },
    claimed={"measured": 1.5, "printed": 0.5},
)
