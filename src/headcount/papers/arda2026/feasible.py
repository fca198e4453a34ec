"""The feasible sets of arda2026: what ProjGD projects onto."""

from __future__ import annotations

from ...training import HeadBalls


def omega(rho_c: float, rho_u: float, rho_w: float) -> HeadBalls:
    """Omega_rho of arda2026 Def. 2 for `PooledAttention`, rho = (rho_c, rho_u, rho_w).

    >>> omega(1, 2, 3).radii
    (('c', 1), ('U', 2), ('W', 3))
    """
    return HeadBalls((("c", rho_c), ("U", rho_u), ("W", rho_w)))


def omega_indrnn(rho_c: float, rho_u: float, rho_w: float) -> HeadBalls:
    """The feasible set of the IndRNN [arda2026, App. B]."""
    return HeadBalls((("c", rho_c), ("U", rho_u), ("w", rho_w)))
