"""The closed right sides of (43)-(50) in slow arithmetic: the twin of `theorem_1`."""

from __future__ import annotations

from ...theory.slow import Arithmetic, dot
from .naive import Data, Number
from .naive_constants import table


def error_term(k: dict[str, Number]) -> Number:
    """(f_max + y_max)(B_app + B_lin + B_CoF)."""
    size = k["f_max"] + k["y_max"]
    return size * k["B_app"] + size * k["B_lin"] + size * k["B_CoF"]


def mean_loss(num: Arithmetic, data: Data, tier: str, start: Number) -> Number:
    """The right side of (44), where start is V(phi0), or of (48), where it is |nu|^2."""
    k, tau = table(num, data, tier), int(data["tau"])
    return (start / (data["eta"] * tau) + data["eta"] * k["B_grad"]) / 4 + error_term(k)


def average_loss(num: Arithmetic, data: Data, tier: str, start: Number) -> Number:
    """(44) in (46)."""
    B_lin = table(num, data, tier)["B_lin"]
    return 4 * mean_loss(num, data, tier, start) + 6 * B_lin * B_lin


def nu_squared(data: Data) -> Number:
    """|nu|^2."""
    return dot(data["nu"], data["nu"])
