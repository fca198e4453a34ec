"""Named key streams.

A trial's randomness depends on its seed and on the names of what it draws, never on the order,
the batch or the process: `stream(3, "teacher", "anchors")` is the same key everywhere.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence

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


_LARGEST_ROUNDED = 2**20


def _drawn(sampler: Callable[[tuple[int, ...]], Array], shape: Sequence[int]) -> Array:
    """Draws of any shape from a sampler that is compiled for few sizes.

    A draw depends on its key and its flat index alone, so a longer vector cut to size holds the
    same numbers; rounding its length up to a power of two saves a compilation per shape.
    """
    size = math.prod(shape)
    rounded = max(1024, 1 << (size - 1).bit_length()) if size else 0
    with float64():
        flat = np.asarray(sampler((rounded if rounded <= _LARGEST_ROUNDED else size,)))
    return flat[:size].reshape(tuple(shape))


def normal(key: PRNGKeyArray, shape: Sequence[int]) -> Float[Array, "..."]:
    """Standard normal draws as a float64 NumPy array, whatever the caller's precision.

    Drawing in double and rounding afterwards gives float32 and float64 runs the same problem.
    """
    return _drawn(lambda flat: jax.random.normal(key, flat, dtype=jnp.float64), shape)


def uniform(
    key: PRNGKeyArray, shape: Sequence[int], low: float = 0.0, high: float = 1.0
) -> Float[Array, "..."]:
    """Uniform draws as a float64 NumPy array, whatever the caller's precision."""
    return _drawn(
        lambda flat: jax.random.uniform(key, flat, jnp.float64, minval=low, maxval=high), shape
    )


def rademacher(key: PRNGKeyArray, shape: Sequence[int]) -> Float[Array, "..."]:
    """Fair signs +-1 as a float64 NumPy array."""
    return _drawn(lambda flat: jax.random.rademacher(key, flat, dtype=jnp.float64), shape)


def integers(key: PRNGKeyArray, shape: Sequence[int], below: int) -> Int[Array, "..."]:
    """Uniform whole numbers in [0, below), whatever the caller's precision."""
    return _drawn(lambda flat: jax.random.randint(key, flat, 0, below, dtype=jnp.int64), shape)
