"""The multi-head attention of deora2024, its read-outs, its exact head groups, its linear model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array, BadArgument, check_choice, check_count, own_precision, self_attention
from ...core._attention import attention_head
from ...models import models

READOUTS = ("full", "pooling", "last")
"""How the rows of attention are read: all of them, their mean, or the last."""


class MultiHeadParams(NamedTuple):
    """theta_h = (U_h, W_h), h = 1..H; U_h is (T, d) for the full read-out, else (d,)."""

    U: Float[Array, "H *readout"]
    W: Float[Array, "H d d"]


@dataclass(frozen=True)
class MultiHeadAttention:
    """Phi~(X) = H^{-1/2} sum_h <U_h, softmax(X W_h X^T) X> [deora2024, Eqs. (1), (2)]."""

    T: int
    d: int
    H: int
    readout: str = "full"
    name: ClassVar[str] = "deora2024"

    def __post_init__(self) -> None:
        for argument in ("T", "d", "H"):
            check_count(argument, getattr(self, argument))
        check_choice("readout", self.readout, READOUTS)

    @property
    def multiplicities(self) -> tuple[int, ...]:
        """Every entry of the parameters stands for one head."""
        return (1,) * self.H

    def head(
        self, U: Float[Array, "*readout"], W: Float[Array, "d d"], x: Float[Array, "T d"]
    ) -> Float[Array, ""]:
        """Phi(X; W, U), one head [deora2024, Eq. (1)]; last and pooling never build U."""
        if self.readout == "full":
            return attention_head(x, W, U)
        if self.readout == "pooling":
            return jnp.sum(self_attention(x, W) @ (x @ U))
        return jax.nn.softmax(x @ (W.T @ x[-1])) @ (x @ U)

    def __call__(self, params: MultiHeadParams, x: Float[Array, "T d"]) -> Float[Array, ""]:
        """Phi~(X; theta) [deora2024, Eq. (2)]."""
        heads = jax.vmap(self.head, in_axes=(0, 0, None))(params.U, params.W, x)
        return jnp.sum(heads) / math.sqrt(self.H)

    def shapes(self) -> MultiHeadParams:
        """Shapes of (U, W)."""
        u = (self.T, self.d) if self.readout == "full" else (self.d,)
        return MultiHeadParams((self.H, *u), (self.H, self.d, self.d))


@dataclass(frozen=True)
class HeadGroups:
    """Groups of equal heads: Phi~ = H^{-1/2} sum_g k_g Phi(X; theta_g), sum_g k_g = H.

    Heads that start equal stay equal under gradient descent, momentum and Adam, so a run of H
    heads from zero initialisation is one group, and from the two-phase scheme two groups. The
    multiplicities k_g may be as large as 10^17. Parameters hold one representative per group;
    gradients for training are those of one head (the group's gradient divided by k_g).
    """

    T: int
    d: int
    multiplicities: tuple[int, ...]
    readout: str = "full"
    name: ClassVar[str] = "deora2024-groups"

    def __post_init__(self) -> None:
        check_count("T", self.T)
        check_count("d", self.d)
        check_choice("readout", self.readout, READOUTS)
        if not self.multiplicities:
            raise BadArgument("multiplicities", (), "is empty", fix="give one count per group")
        for k in self.multiplicities:
            check_count("multiplicities", k)

    @property
    def H(self) -> int:
        """The number of heads stood for."""
        return sum(self.multiplicities)

    @property
    def representative(self) -> MultiHeadAttention:
        """The plain model with one head per group."""
        return MultiHeadAttention(self.T, self.d, len(self.multiplicities), self.readout)

    @property
    def head(self) -> Callable[..., Float[Array, ""]]:
        """Phi(X; W, U), one head of any group."""
        return self.representative.head

    @property
    def plain(self) -> MultiHeadAttention:
        """The slow twin with all H heads."""
        return MultiHeadAttention(self.T, self.d, self.H, self.readout)

    def __call__(self, params: MultiHeadParams, x: Float[Array, "T d"]) -> Float[Array, ""]:
        """Phi~(X) = H^{-1/2} sum_g k_g Phi(X; theta_g)."""
        heads = jax.vmap(self.head, in_axes=(0, 0, None))(params.U, params.W, x)
        weights = [k / math.sqrt(self.H) for k in self.multiplicities]
        return jnp.vdot(jnp.asarray(weights, x.dtype), heads)

    def expand(self, params: MultiHeadParams) -> MultiHeadParams:
        """The parameters of all H heads, in the order of the groups."""
        return _repeated(params, self.multiplicities)

    def split(self, params: MultiHeadParams) -> tuple[HeadGroups, MultiHeadParams]:
        """The same heads with one of every group on its own: k > 1 becomes 1 and k - 1.

        What H plain heads can do and equal heads cannot is then possible: to move one alone.
        """
        parts = [(1, k - 1) if k > 1 else (1,) for k in self.multiplicities]
        return (
            replace(self, multiplicities=tuple(itertools.chain(*parts))),
            _repeated(params, tuple(len(part) for part in parts)),
        )

    def shapes(self) -> MultiHeadParams:
        """Shapes of (U, W), one entry per group."""
        return self.representative.shapes()


@own_precision
def _repeated(params: MultiHeadParams, counts: tuple[int, ...]) -> MultiHeadParams:
    index = np.repeat(np.arange(len(counts)), counts)
    return MultiHeadParams(*(leaf[index] for leaf in params))


class LinearParams(NamedTuple):
    """U of the linear model."""

    U: Float[Array, "T d"]


@dataclass(frozen=True)
class LinearModel:
    """Phi_lin(X; U) = <U, X> [deora2024, App. F]."""

    T: int
    d: int
    name: ClassVar[str] = "deora2024-linear"

    def __post_init__(self) -> None:
        check_count("T", self.T)
        check_count("d", self.d)

    def __call__(self, params: LinearParams, x: Float[Array, "T d"]) -> Float[Array, ""]:
        """<U, X>."""
        return jnp.vdot(params.U, x)

    def shapes(self) -> LinearParams:
        """Shape of U."""
        return LinearParams((self.T, self.d))


models.register("deora2024", MultiHeadAttention)
models.register("deora2024-groups", HeadGroups)
models.register("deora2024-linear", LinearModel)
