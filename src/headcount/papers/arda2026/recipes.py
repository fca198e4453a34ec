"""How the models of arda2026 are made and trained, and the feasible sets of ProjGD."""

from typing import Any

from headcount.core import LastToken, seeded_query

from ...core import BadArgument
from ...core._activations import activation_of
from ...core._queries import Query
from ...training import HeadBalls, Recipe
from .model import IndRNN, IndRNNParams, PooledAttention
from .starts import paired_indrnn


def omega(rho_c: float, rho_u: float, rho_w: float) -> HeadBalls:
    """Omega_rho of arda2026 Def. 2 for `PooledAttention`, rho = (rho_c, rho_u, rho_w).

    >>> omega(1, 2, 3).radii
    (('c', 1), ('U', 2), ('W', 3))
    """
    return HeadBalls((("c", rho_c), ("U", rho_u), ("W", rho_w)))


def omega_indrnn(rho_c: float, rho_u: float, rho_w: float) -> HeadBalls:
    """The feasible set of the IndRNN [arda2026, App. B]."""
    return HeadBalls((("c", rho_c), ("U", rho_u), ("w", rho_w)))


def _query(text: str, d: int) -> Query:
    kind, _, seed = str(text).partition(":")
    if kind == "last" and not seed:
        return LastToken()
    if kind == "seeded" and seed.isdecimal() and len(seed) < 20:
        return seeded_query(d, int(seed))
    raise BadArgument("query", text, "is not known", fix='use "last" or "seeded:K"')


def _pooled(
    T: int, d: int, width: int, *, init: str, activation: str = "tanh", query: str = "last"
) -> PooledAttention:
    return PooledAttention(d, width, activation_of(activation), _query(query, d))


def _indrnn(T: int, d: int, width: int, *, init: str, activation: str = "tanh") -> IndRNN:
    return IndRNN(d, width, activation_of(activation))


def _paired_indrnn(
    model: IndRNN, seed: int, fresh: Any, *, gamma: float = 1.0
) -> tuple[IndRNN, IndRNNParams]:
    """|w| = gamma at the start; the paper gives none, and Proposition 2 changes at 1."""
    return model, paired_indrnn(model, seed, gamma=gamma)


POOLED = Recipe(
    _pooled,
    init="paired",
    loss="mean-squared",
    data="transport-teacher",
    optimiser="projgd",
    rho=(3.0, 3.0, 3.0),
    projection=omega,
)
"""As in Sec. 6.1: ProjGD, eta = 1/sqrt(tau), rho = (3, 3, 3)."""

INDRNN = Recipe(
    _indrnn,
    init="paired-indrnn",
    loss="mean-squared",
    data="ar",
    projection=omega_indrnn,
    starts={"paired-indrnn": _paired_indrnn},
)
"""As in Sec. 6.2: gradient descent without a projection, eta = 1/sqrt(tau), AR(L) windows."""
