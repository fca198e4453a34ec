"""Tokens whose position is written in fixed channels: what such data spare a computation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from ..core import Array, BadArgument, check_choice, check_count, check_shape

FREQUENCIES = ("dyadic", "geometric")
"""How frequencies of positional channels fall: by halves, or geometrically as is usual."""
_SLACK = 64
"""Roundings, in the precision of the data, that a channel may be away from its multiple."""


def positional_channels(
    T: int, pairs: int, frequencies: str = "dyadic"
) -> Float[Array, "T channels"]:
    """sin(w_k t) for k = 0..pairs-1, then cos(w_k t), t = 0..T-1; w_k = 2 pi / (32 2^k), or,
    usual in Transformers, 10000^(-k/pairs) ("geometric")."""
    check_choice("frequencies", frequencies, FREQUENCIES)
    k = np.arange(pairs)
    dyadic = frequencies == "dyadic"
    w = 2 * math.pi / (32 * 2.0**k) if dyadic else 1e4 ** (-k / max(pairs, 1))
    angles = np.arange(T)[:, None] * w
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


@dataclass(frozen=True)
class PositionalTokens:
    """x_t = (xi_t, s_t p_t): a free feature, and a multiple of channels that the position fixes.

    Only xi_t and s_t differ between samples: 2 numbers for a token of d = 1 + 2 pairs. Clipping a
    token radially changes both and keeps the form.
    """

    T: int
    pairs: int

    def __post_init__(self) -> None:
        check_count("T", self.T)
        check_count("pairs", self.pairs)

    @property
    def channels(self) -> Float[Array, "T channels"]:
        """p_t, row by row; each has the squared norm `pairs`."""
        return positional_channels(self.T, self.pairs)

    def split(self, x: Float[Array, "*n T d"]) -> tuple[Float[Array, "*n T"], Float[Array, "*n T"]]:
        """(xi, s) of the samples; arrays of NumPy or of JAX."""
        p = self.channels.astype(x.dtype)[(None,) * (x.ndim - 2)]
        return x[..., 0], (x[..., 1:] * p).sum(axis=-1) / self.pairs

    def check(self, argument: str, x: Float[Array, "*n T d"]) -> None:
        """Refuse samples that are not of this form."""
        check_shape(argument, x, (*x.shape[:-2], self.T, 1 + 2 * self.pairs))
        scale = self.split(x)[1]
        off = max(
            float(np.max(np.abs(x[..., 1 + k] - scale * channel)))
            for k, channel in enumerate(self.channels.T)
        )
        if off > _SLACK * np.finfo(x.dtype).eps * max(1.0, float(np.max(np.abs(scale)))):
            problem = f"is up to {off:.2g} away from tokens (xi_t, s_t p_t) of {self}"
            raise BadArgument(argument, _shown(x), problem, fix="leave out tokens")


def _shown(x: Any) -> str:
    return f"array of shape {x.shape}"
