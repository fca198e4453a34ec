"""What the statements of arda2026 speak about: a softmax, a head, a model near its start.

Displacements are kept in units of their radii, so that radii can vary freely.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Ball, Box, Choice, Fraction, Positive, Reals, Record, Tokens
from ...theory._record import Shape
from ...theory.domain import activation_problem
from ...theory.families import safe_norm
from ...theory.slow import Arithmetic, flattened
from .constants import label_envelope
from .model import PooledAttentionParams

LONGEST = 1e4
"""The largest |U| that a search visits."""

TOKENS, QUERY = "tokens in the unit ball", "query in the unit ball"
TOKENS_AND_QUERY = "tokens and query in the unit ball"
PAIRED = "paired initialisation with |c| = 1"
FEASIBLE, TRANSPORT = "phi in Omega_rho", "v in V_nu"
LABELS = "labels of a target in F_nu"


def _activation(*names: str) -> Choice:
    return Choice(*names, others=activation_problem)


class Softmax(Record):
    """Logits z and a direction u with |u|_inf <= 1."""

    z = Reals("T", largest=40.0)
    u = Box("T", says="direction u in the unit cube")

    shapes = ({"T": 4}, {"T": 2}, {"T": 9})


class Head(Record):
    """One head (c, U, W) on one sample X with query q, and a direction v, ||v||_F <= 1."""

    X = Tokens("T", "d", says=TOKENS)
    q = Ball("d", says=QUERY)
    c = Reals()
    U = Reals("d", largest=LONGEST)
    W = Reals("d", "d")
    v = Ball("d", "d", says="direction v in the unit ball")
    activation = _activation("tanh", "erf")

    shapes = (
        {"T": 3, "d": 2},
        {"T": 2, "d": 1},
        {"T": 4, "d": 3, "activation": "erf"},
    )

    @classmethod
    def structured(cls, rng: np.random.Generator, drawn: dict[str, Array]) -> dict[str, Array]:
        return with_structure(rng, drawn, "U", "W")

    @property
    def B_U(self) -> Float[Array, ""]:
        """|U|, the smallest bound on it."""
        return safe_norm(self.U)


class Mirrored(Reals):
    """Heads in equal pairs, k and k + m/2, each of norm at most `radius`."""

    asks = "in equal pairs: an entry is off by"
    free = False

    def __init__(self, *shape: str, radius: float = math.inf, sign: float = 1.0) -> None:
        super().__init__(*shape, says=PAIRED)
        self.radius, self.sign = radius, sign

    @property
    def limit(self) -> float:
        return 0.0

    def value(self, x: Any) -> Any:
        half = x[: x.shape[0] // 2]
        both = jnp.concatenate([half, self.sign * half])
        if self.radius < math.inf:
            both = both / jnp.maximum(safe_norm(both) / self.radius, 1.0)[:, None]
        return both

    def measure(self, x: Any) -> Any:
        half = x.shape[0] // 2
        if x.shape[0] % 2:
            return jnp.inf
        return jnp.max(jnp.abs(x[:half] - self.sign * x[half:]))

    def measure_slowly(self, num: Arithmetic, x: Any) -> Any:
        half = len(x) // 2
        if len(x) % 2:
            return num.number("inf")
        pairs = zip(flattened(x[:half]), flattened(x[half:]), strict=True)
        return num.largest([abs(a - b if self.sign > 0 else a + b) for a, b in pairs])


class PairedSigns(Mirrored):
    """Signs in opposite pairs."""

    def __init__(self, *shape: str) -> None:
        super().__init__(*shape, sign=-1.0)

    def value(self, x: Any) -> Any:
        return super().value(jnp.where(x >= 0, 1.0, -1.0).astype(x.dtype))

    def measure(self, x: Any) -> Any:
        off = jnp.max(jnp.abs(jnp.abs(x) - 1.0))
        return jnp.maximum(super().measure(x), off)

    def measure_slowly(self, num: Arithmetic, x: Any) -> Any:
        off = [abs(abs(entry) - 1) for entry in x]
        return num.largest([super().measure_slowly(num, x), *off])


class Near(Record):
    """A model near its initialisation: data, phi0, phi in Omega_rho, phi~ and labels.

    dc, dU, dW are (phi - phi0) sqrt(m) in units of rho; vc, vu, vw the transport map at each head
    in units of nu; `labels` are in units of y_max*, the sharp bound on |f*|.
    """

    X = Tokens("n", "T", "d", says=TOKENS)
    q = Tokens("n", "d", says=QUERY)
    c0 = PairedSigns("m")
    U0 = Mirrored("m", "d", radius=LONGEST)
    W0 = Mirrored("m", "d", "d")
    dc = Box("m", says=FEASIBLE)
    dU = Tokens("m", "d", says=FEASIBLE)
    dW = Ball("m", "d", "d", batch=1, says=FEASIBLE)
    rho = Positive(3, low=1e-3, high=100.0)
    vc = Box("m", says=TRANSPORT)
    vu = Tokens("m", "d", says=TRANSPORT)
    vw = Ball("m", "d", "d", batch=1, says=TRANSPORT)
    nu = Positive(3, low=1e-3, high=100.0)
    labels = Box("n", says=LABELS)
    activation = _activation("tanh", "sin", "erf")

    shapes: ClassVar[tuple[Shape, ...]] = (
        {"n": 2, "T": 3, "d": 2, "m": 2},
        {"n": 1, "T": 2, "d": 1, "m": 4, "activation": "sin"},
        {"n": 3, "T": 4, "d": 3, "m": 2, "activation": "erf"},
    )

    @classmethod
    def structured(cls, rng: np.random.Generator, drawn: dict[str, Array]) -> dict[str, Array]:
        return with_structure(rng, drawn, "U0", "W0")

    @property
    def n(self) -> int:
        """Samples."""
        return int(self.X.shape[-3])

    @property
    def m(self) -> int:
        """The width."""
        return int(self.c0.shape[-1])

    @property
    def d(self) -> int:
        """Features per token."""
        return int(self.X.shape[-1])

    @property
    def initial(self) -> PooledAttentionParams:
        """phi0."""
        return PooledAttentionParams(self.c0, self.U0, self.W0)

    @property
    def params(self) -> PooledAttentionParams:
        """phi = phi0 + displacement [arda2026, Definition 2]."""
        root = math.sqrt(self.m)
        return PooledAttentionParams(
            self.c0 + self.rho[0] / root * self.dc,
            self.U0 + self.rho[1] / root * self.dU,
            self.W0 + self.rho[2] / root * self.dW,
        )

    @property
    def transported(self) -> PooledAttentionParams:
        """phi~ [arda2026, Eq. (10)]."""
        root = math.sqrt(self.m)
        return PooledAttentionParams(
            self.c0 + self.nu[0] / root * self.vc,
            self.U0 + self.nu[1] / root * self.c0[:, None] * self.vu,
            self.W0 + self.nu[2] / root * self.c0[:, None, None] * self.vw,
        )

    @property
    def transport(self) -> Float[Array, "m p"]:
        """(v_c, v_u, vec v_w) of every head, as one vector each."""
        rows = jnp.reshape(self.vw, (self.m, -1))
        blocks = [self.nu[0] * self.vc[:, None], self.nu[1] * self.vu, self.nu[2] * rows]
        return jnp.concatenate(blocks, axis=-1)

    @property
    def B_U(self) -> Float[Array, ""]:
        """max_i |U_i^(0)| + rho_u / sqrt(m), the realised bound of Remark 7."""
        return jnp.max(safe_norm(self.U0, axis=-1)) + self.rho[1] / math.sqrt(self.m)

    @property
    def y_max_sharp(self) -> Float[Array, ""]:
        """s0 nu_c + s1 nu_u + s1 nu_w, which bounds every |f*(X)| for f* in F_nu."""
        return label_envelope(self.sigma, self.nu, self.d, "sharp")

    @property
    def y(self) -> Float[Array, "n"]:
        """The labels."""
        return self.labels * self.y_max_sharp


class Target(Near):
    """A model near its start, with the probability delta at which the event E_app may fail.

    |U_i0| <= 1 keeps e_app <= 2 y_max* < B_app: every point that is drawn lies inside E_app.
    """

    U0 = Mirrored("m", "d", radius=1.0)
    delta = Fraction(low=1e-6, high=0.05)


class Approximation(Record):
    """Half a paired start with transport values (in units of nu), data and the target's values.

    The two heads of a pair share U and W; a map that does not read c gives them equal g_i.
    """

    X = Reals("n", "T", "d")
    q = Reals("n", "d")
    U0 = Reals("half", "d")
    W0 = Reals("half", "d", "d")
    vc = Reals("half")
    vu = Reals("half", "d")
    vw = Reals("half", "d", "d")
    nu = Positive(3)
    target = Reals("n")
    delta = Fraction()
    activation = _activation("tanh")

    @property
    def n(self) -> int:
        """Samples."""
        return int(self.X.shape[-3])

    @property
    def m(self) -> int:
        """The width."""
        return 2 * int(self.U0.shape[-2])

    @property
    def d(self) -> int:
        """Features per token."""
        return int(self.U0.shape[-1])

    @property
    def B_U(self) -> Float[Array, ""]:
        """The largest |U|."""
        return jnp.max(safe_norm(self.U0, axis=-1))


def with_structure(
    rng: np.random.Generator, drawn: dict[str, Array], U_name: str, W_name: str
) -> dict[str, Array]:
    """Structure in half of the draws.

    Tokens that agree, that are opposite (with U on their line and U.a of order one), on one line,
    or unit vectors; attention that is uniform; U = 0.
    """
    X, q, U, W = (drawn[name] for name in ("X", "q", U_name, W_name))
    draws, T, d = X.shape[0], X.shape[-2], X.shape[-1]
    kind = rng.integers(0, 12, draws)

    def pick(chosen: int, new: Array, old: Array) -> Array:
        return np.where((kind == chosen).reshape(-1, *[1] * (old.ndim - 1)), new, old)

    line = X[..., :1, :] / np.linalg.norm(X[..., :1, :], axis=-1, keepdims=True)
    signs = np.where(np.arange(T) % 2, -1.0, 1.0)[:, None]
    X = pick(0, line, X)
    X = pick(1, signs * line, X)
    X = pick(2, rng.uniform(-1, 1, (*X.shape[:-1], 1)) * line, X)
    X = pick(3, np.eye(d)[np.arange(T) % d] * rng.choice([-1.0, 1.0], (*X.shape[:-1], 1)), X)
    first = line.reshape(draws, -1, d)[:, :1].reshape(draws, *[1] * (U.ndim - 2), d)
    lengths = np.linalg.norm(U, axis=-1, keepdims=True)
    for chosen in (1, 2):
        q, U = pick(chosen, line[..., 0, :], q), pick(chosen, lengths * first, U)
    logit = (rng.uniform(0.1, 2.0, lengths.shape) / lengths)[..., None]
    W = pick(1, logit * first[..., :, None] * first[..., None, :], W)
    return {**drawn, "X": X, "q": q, U_name: pick(5, 0.0, U), W_name: pick(4, 0.0, W)}
