"""What the statements of wu2023 speak about: a softmax, an encoder at one point or two, a run.

Widths, lambda-bars and C_x are realised: the smallest that the hypotheses allow, so that a bound
is met in its strictest form. `tau` holds (tau0, tau1); pooling is the sum over tokens.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Self

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Choice, Fraction, Positive, Reals, Record
from ...theory._record import Shape
from ...theory.domain import MOST_ENTRIES
from . import quantities as of
from .constants import Norms, Sizes
from .model import EncoderParams

DRAWN = (math.exp(-2), math.exp(2))


def _sized(*shape: str) -> Reals:
    return Reals(*shape, drawn=DRAWN)


class Softmax(Record):
    """Logits u and a direction v."""

    u = Reals("T", largest=40.0)
    v = Reals("T")

    shapes = ({"T": 4}, {"T": 2}, {"T": 9})


class Samples(Record):
    """Samples X_n, and logits whose softmax weighs the tokens."""

    X = _sized("n", "T", "d")
    u = Reals("T", largest=30.0)

    ranges = (("n", 2, MOST_ENTRIES),)  # Assumption 3 is about pairs
    shapes = ({"n": 2, "T": 2, "d": 3}, {"n": 3, "T": 3, "d": 2}, {"n": 2, "T": 2, "d": 1})


class Rows(Record):
    """Rows phi_n, one vector per sample: Phi, or Phi* of Lemma 1."""

    Phi = _sized("n", "d")

    shapes: ClassVar[tuple[Shape, ...]] = (
        {"n": 3, "d": 2},
        {"n": 2, "d": 1},
        {"n": 2, "d": 3},
    )

    @classmethod
    def structured(cls, rng: np.random.Generator, drawn: dict[str, Array]) -> dict[str, Array]:
        """Rows of different lengths."""
        lengths = np.exp(rng.uniform(-1, 1, (*drawn["Phi"].shape[:2], 1)))
        return {"Phi": lengths * drawn["Phi"]}


class ManyRows(Rows):
    """Rows of N >= d^4 samples, as Lemmas 17 to 19 ask."""

    shapes = ({"n": 16, "d": 2}, {"n": 3, "d": 1})

    def outside(self) -> str | None:
        """Fewer samples are no case of these lemmas."""
        n, d = self.Phi.shape
        return super().outside() if n >= d**4 else f"N = {n} is below d^4 = {d**4}"


class Network(Record):
    """Data, an encoder at theta, and its scales (tau0, tau1)."""

    X = _sized("n", "T", "d")
    y = _sized("n")
    W_Q = _sized("d_m", "d")
    W_K = _sized("d_m", "d")
    W_V = _sized("d_m", "d")
    w_O = _sized("d_m")
    tau = Positive(2, low=1e-6, high=1e6, drawn=DRAWN)

    shapes: ClassVar[tuple[Shape, ...]] = (
        {"n": 2, "T": 3, "d": 2, "d_m": 3},
        {"n": 1, "T": 2, "d": 1, "d_m": 1},
        {"n": 3, "T": 2, "d": 3, "d_m": 2},
    )

    @classmethod
    def structured(cls, rng: np.random.Generator, drawn: dict[str, Array]) -> dict[str, Array]:
        """A third of the draws with opposite tokens."""
        X = drawn["X"]
        signs = np.where(np.arange(X.shape[2]) % 2, -1.0, 1.0)[:, None]
        opposite = (rng.random(len(X)) < 1 / 3)[:, None, None, None]
        return {**drawn, "X": np.where(opposite, X[:, :, :1] * signs, X)}

    @property
    def theta(self) -> EncoderParams:
        """The point."""
        return EncoderParams(self.W_Q, self.W_K, self.W_V, self.w_O)

    @property
    def sizes(self) -> Sizes:
        """N, d_s, tau0, tau1 and the smallest C_x."""
        return of.sizes(self)

    @property
    def lam(self) -> Norms:
        """lambda-bar: the norms at theta."""
        return of.norms(self.theta)


class ScalarTokens(Network):
    """An encoder on tokens of one feature."""

    ranges = (("d", 1, 1),)
    shapes = ({"n": 3, "T": 3, "d": 1, "d_m": 3}, {"n": 4, "T": 2, "d": 1, "d_m": 5})


class OneToken(Network):
    """An encoder on samples of one token."""

    ranges = (("T", 1, 1),)
    shapes = ({"n": 2, "T": 1, "d": 3, "d_m": 3}, {"n": 3, "T": 1, "d": 2, "d_m": 2})


class WideNetwork(Network):
    """An encoder with d_m >= d: tokens are padded with zeros."""

    shapes = Network.shapes[:2]

    def outside(self) -> str | None:
        """X + A_1 must make sense."""
        d_m, d = self.W_V.shape
        return super().outside() if d_m >= d else f"d_m = {d_m} is below d = {d}"


class Move(Network):
    """A second point theta' = theta + (d_Q, d_K, d_V, d_O); lambda-bar bounds the norms at both."""

    d_Q = _sized("d_m", "d")
    d_K = _sized("d_m", "d")
    d_V = _sized("d_m", "d")
    d_O = _sized("d_m")

    @classmethod
    def structured(cls, rng: np.random.Generator, drawn: dict[str, Array]) -> dict[str, Array]:
        """Steps from tiny to large, alike for all blocks."""
        found = super().structured(rng, drawn)
        near = np.exp(rng.uniform(-6, 1, len(found["y"])))
        for name in ("d_Q", "d_K", "d_V", "d_O"):
            found[name] = near.reshape(-1, *[1] * (found[name].ndim - 1)) * found[name]
        return found

    @property
    def step(self) -> EncoderParams:
        """theta^{t'} - theta^t."""
        return EncoderParams(self.d_Q, self.d_K, self.d_V, self.d_O)

    @property
    def after(self) -> EncoderParams:
        """theta^{t'}."""
        return EncoderParams(*(a + b for a, b in zip(self.theta, self.step, strict=True)))

    @property
    def lam(self) -> Norms:
        """lambda-bar: the larger norm of the two points, block by block."""
        return of.larger(of.norms(self.theta), of.norms(self.after))


class SmoothMove(Move):
    """Tokens and values at both points nonnegative: no unit changes sign."""

    def within(self) -> Self:
        """Their absolute values."""
        return self.changed(**{name: jnp.abs(getattr(self, name)) for name in ("X", "W_V", "d_V")})


class Values(Record):
    """Rows Phi that attention has made, and standard normals for W_V; d_m >= N and d_m >= d."""

    Phi = _sized("n", "d")
    W_V = Reals("d_m", "d", drawn=(1.0, 1.5))

    shapes = ({"n": 2, "d": 2, "d_m": 3}, {"n": 1, "d": 3, "d_m": 3})

    def outside(self) -> str | None:
        """alpha needs d_m >= N, the theorems d_m >= d."""
        return "d_m is below N or d" if len(self.W_V) < max(self.Phi.shape) else None


class SumOfProducts(Record):
    """sum_k s_k g_k h_k with independent standard normals, and the argument l of its mgf."""

    s = Positive("n", drawn=DRAWN)
    l = Reals()

    shapes = ({"n": 3},)

    def within(self) -> Self:
        """|l| below 1/a."""
        most = (1 - 1e-6) * 0.5**0.5 / jnp.max(self.s)
        return self.changed(l=jnp.clip(self.l, -most, most))


class OneProduct(SumOfProducts):
    """The same from one product."""

    shapes = ({"n": 1},)


class ScalarWeights(Record):
    """One sample with d = 1 and standard normals for every weight of d_m units."""

    x = Reals("T", largest=30.0, drawn=(0.4, 2.7))
    g_Q = Reals("d_m", largest=30.0, drawn=(1.0, 1.5))
    g_K = Reals("d_m", largest=30.0, drawn=(1.0, 1.5))
    g_V = Reals("d_m", largest=30.0, drawn=(1.0, 1.5))
    g_O = Reals("d_m", largest=30.0, drawn=(1.0, 1.5))
    initialisation = Choice("ntk", "lecun", "he")

    # Third derivatives take long to compile and help little: the ratio hardly varies.
    slopes = False
    shapes = tuple({"T": 3, "d_m": 1, "initialisation": name} for name in ("ntk", "lecun", "he"))


class SwitchedOn(ScalarWeights):
    """Tokens and values positive, so that every unit is on and b is not zero."""

    def within(self) -> Self:
        """Their absolute values and a little more."""
        return self.changed(**{n: jnp.abs(getattr(self, n)) + 0.1 for n in ("x", "g_V", "g_O")})


class GaussianMatrix(Record):
    """A matrix of independent N(0, 1) entries, and zeta."""

    W = Reals("d1", "d2")
    zeta = Reals()


class InitialWeights(Record):
    """A Gaussian weight matrix at the start, and a vector within R of its first column."""

    W = Reals("d_m", "d")
    shift = Reals("d_m")


class Products(Record):
    """Two columns of independent normals, their scale eta and delta."""

    first = Reals("d_m")
    second = Reals("d_m")
    eta = Positive()
    delta = Fraction()


class FirstToken(Record):
    """Fixed data and random W_Q, W_K, W_V; Phi has rows X_n^T beta_{1,n} of the first token."""

    X = Reals("N", "T", "d")
    W_Q = Reals("d_m", "d")
    W_K = Reals("d_m", "d")
    W_V = Reals("d_m", "d")
    tau = Positive(2)
    delta = Fraction()

    @property
    def Phi(self) -> Float[Array, "N d"]:
        """What the first token attends to."""
        theta: Any = self  # the blocks that are read have the names of an encoder's
        return (of.attention(self, theta)[:, :1] @ self.X)[:, 0]

    @property
    def F_pre(self) -> Float[Array, "N d_m"]:
        """The last hidden layer, of all tokens."""
        theta: Any = self
        return of.features(self, theta)


class WidthTable(Record):
    """A quantity measured at several widths for several seeds."""

    widths = Positive("k")
    values = Positive("seeds", "k")

    def outside(self) -> str | None:
        """A slope needs two widths, an interval two seeds."""
        enough = len(np.unique(self.widths)) >= 2 and len(self.values) >= 2
        return None if enough else "needs two widths and two seeds"
