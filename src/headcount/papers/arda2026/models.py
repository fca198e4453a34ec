"""The models of arda2026: pooled attention and the recurrent network it is compared with."""

from ...core import BadArgument, activation_named
from ...core import Query as Query
from ...models import IndRNN, LastToken, PooledAttention, seeded_query
from ...training import Recipe, omega, omega_indrnn


def _query(text: str, d: int) -> Query:
    kind, _, seed = text.partition(":")
    if kind == "last" and not seed:
        return LastToken()
    if kind == "seeded" and seed.isdigit():
        return seeded_query(d, int(seed))
    raise BadArgument("query", text, "is not known", fix='use "last" or "seeded:K"')


def _pooled(
    T: int, d: int, width: int, *, init: str, activation: str = "tanh", query: str = "last"
) -> PooledAttention:
    return PooledAttention(d, width, activation_named(activation), _query(query, d))


def _indrnn(T: int, d: int, width: int, *, init: str, activation: str = "tanh") -> IndRNN:
    return IndRNN(d, width, activation_named(activation))


POOLED = Recipe(_pooled, "paired", "mean-squared", omega)
INDRNN = Recipe(_indrnn, "paired-indrnn", "mean-squared", omega_indrnn)
