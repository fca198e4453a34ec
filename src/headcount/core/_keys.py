"""Named key streams.

A trial's randomness depends on its seed and on the names of what it draws, never on the order,
the batch or the process: `stream(3, "teacher", "anchors")` is the same key everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from ._checks import check_count
from ._errors import BadArgument
from ._precision import float64
from ._types import Array

_LARGEST_SEED = 2**31 - 1


def stream(seed: int, *names: str | int) -> PRNGKeyArray:
    """The key of the stream `names` under `seed`.

    Each name is hashed (not added), so that streams of different names or seeds cannot collide
    by arithmetic.
    """
    check_count("seed", seed, least=0)
    if seed > _LARGEST_SEED:
        raise BadArgument(
            "seed", seed, f"must be at most {_LARGEST_SEED}", fix="use a smaller seed"
        )
    return substream(jax.random.key(seed), *names)


def substream(key: PRNGKeyArray, *names: str | int) -> PRNGKeyArray:
    """A stream below `key`; `substream(stream(s, "a"), "b")` is `stream(s, "a", "b")`."""
    for name in names:
        digest = hashlib.sha256(f"{type(name).__name__}:{name}".encode()).digest()
        key = jax.random.fold_in(key, int.from_bytes(digest[:4], "big"))
    return key


def normal(key: PRNGKeyArray, shape: Sequence[int]) -> Float[Array, "..."]:
    """Standard normal draws as a float64 NumPy array, whatever the caller's precision.

    Drawing in double and rounding afterwards gives float32 and float64 runs the same problem.
    """
    with float64():
        return np.asarray(jax.random.normal(key, tuple(shape), dtype=jnp.float64))


def uniform(
    key: PRNGKeyArray, shape: Sequence[int], low: float = 0.0, high: float = 1.0
) -> Float[Array, "..."]:
    """Uniform draws as a float64 NumPy array, whatever the caller's precision."""
    with float64():
        draws = jax.random.uniform(key, tuple(shape), jnp.float64, minval=low, maxval=high)
        return np.asarray(draws)


def rademacher(key: PRNGKeyArray, shape: Sequence[int]) -> Float[Array, "..."]:
    """Fair signs +-1 as a float64 NumPy array."""
    with float64():
        return np.asarray(jax.random.rademacher(key, tuple(shape), dtype=jnp.float64))


def integers(key: PRNGKeyArray, shape: Sequence[int], below: int) -> Int[Array, "..."]:
    """Uniform whole numbers in [0, below)."""
    return np.asarray(jax.random.randint(key, tuple(shape), 0, below))
