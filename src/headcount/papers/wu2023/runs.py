"""A short run of gradient descent as a point: Prop. 1 of wu2023 and its conditions.

y is given through the residual f(theta^0) - y, so that an initialisation of any size can be made
to meet (2) and (3): both ask for a small loss at the start.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
from jaxtyping import Float

from ...core import Array
from ...theory import Positive, Reals, Record, Static
from . import quantities as of
from .constants import Constants, Norms, Sizes
from .model import EncoderParams
from .records import DRAWN, Network

LARGE = 100.0
"""The largest root mean square of a run that a search visits: the digits of a loss stay visible."""
MARGIN = 1 - 1e-6
"""Draws stay this far inside the hypotheses: outside by rounding is outside."""


def _sized(*shape: str) -> Reals:
    return Reals(*shape, drawn=DRAWN, largest=LARGE)


class Run(Record):
    """theta^0, the residual at the start, the free constants C_* (room), and gamma."""

    X = _sized("n", "T", "d")
    residual = Reals("n", drawn=DRAWN, largest=LARGE, smallest=1e-12)
    W_Q = _sized("d_m", "d")
    W_K = _sized("d_m", "d")
    W_V = _sized("d_m", "d")
    w_O = _sized("d_m")
    tau = Positive(2, low=1 / LARGE, high=LARGE, drawn=DRAWN)
    room = Positive(4, low=1e-3, high=LARGE, drawn=(math.exp(-3), math.exp(3)))
    gamma = Positive(low=1e-12, high=1e12, drawn=(math.exp(-3), math.exp(6)))
    steps = Static(3, largest=10**4)

    # Slopes through a run take long to compile and help little.
    slopes = False
    shapes = ({"n": 2, "T": 2, "d": 2, "d_m": 4}, {"n": 1, "T": 2, "d": 1, "d_m": 2})
    structured = Network.structured

    def outside(self) -> str | None:
        """Prop. 1 is about d_m >= N, and short runs are enough to search."""
        if self.W_V.shape[0] < self.X.shape[0]:
            return f"d_m = {self.W_V.shape[0]} is below N = {self.X.shape[0]}"
        return super().outside()

    @property
    def theta(self) -> EncoderParams:
        """theta^0."""
        return EncoderParams(self.W_Q, self.W_K, self.W_V, self.w_O)

    @property
    def y(self) -> Float[Array, "n"]:
        """The labels."""
        return of.outputs(self, self.theta) - self.residual

    @property
    def start_loss(self) -> Float[Array, ""]:
        """l(theta^0)."""
        return jnp.sum(self.residual**2) / 2

    @property
    def loss_scale(self) -> float:
        """The paper's loss."""
        return 1.0

    @property
    def times(self) -> Float[Array, "steps"]:
        """1 .. steps."""
        return jnp.arange(1, self.steps + 1, dtype=self.gamma.dtype)

    @property
    def sizes(self) -> Sizes:
        """N, d_s, tau0, tau1 and the smallest C_x."""
        return of.sizes(self)

    @property
    def extra(self) -> Norms:
        """C_* by block."""
        return Norms(*self.room)

    @property
    def lam(self) -> Norms:
        """lambda-bar = norm + C_*."""
        return of.norms(self.theta) + self.room

    @property
    def alpha(self) -> Float[Array, ""]:
        """sigma_min(F_pre) at the start."""
        return of.smallest_singular(of.features(self, self.theta))

    @property
    def gradient(self) -> EncoderParams:
        """grad l(theta^0)."""
        return jax.grad(lambda theta: of.loss(self, theta))(self.theta)

    def watched(self, observe: Callable[[EncoderParams], Any]) -> Any:
        """observe(theta^t) for t = 1 .. steps along a leading axis [wu2023, Algorithm 1]."""
        y = self.y

        def step(theta: EncoderParams, _: None) -> tuple[EncoderParams, Any]:
            f, pull_back = jax.vjp(lambda t: of.outputs(self, t), theta)
            (slope,) = pull_back(f - y)
            after = EncoderParams(*(a - self.gamma * g for a, g in zip(theta, slope, strict=True)))
            return after, observe(after)

        return jax.lax.scan(step, self.theta, None, length=self.steps)[1]

    @property
    def losses(self) -> Float[Array, "steps"]:
        """l(theta^t)."""
        y = self.y
        return self.watched(lambda theta: jnp.sum((of.outputs(self, theta) - y) ** 2) / 2)

    def within(self) -> Self:
        """Inside (2), (3) and the step size: the residual is shrunk until both conditions hold.

        Values come in opposite pairs, so that no sample has all units off and alpha = 0. w_O is
        then shrunk, too, until f is at most 1000 residuals, which makes (2) and (3) easier: where a
        residual is lost in the rounding of f there is nothing to compare.
        """
        half = self.W_V[: self.W_V.shape[0] // 2]
        paired = self.changed(W_V=jnp.concatenate([half, -half]))
        k = Constants(paired, "printed")
        worst = jnp.maximum(jnp.maximum(k.condition_2, k.condition_3), 1.0)
        residual = paired.residual * MARGIN / worst
        size = jnp.linalg.norm(of.outputs(paired, paired.theta))
        share = 1e3 * jnp.linalg.norm(residual) / jnp.where(size > 0, size, 1.0)
        w_O = paired.w_O * jnp.minimum(share, 1.0)
        return paired.changed(residual=residual, w_O=w_O).slowed()

    def slowed(self) -> Self:
        """gamma at most 1/C in both forms."""
        limits = [1 / Constants(self, form).C for form in ("printed", "corrected")]
        return self.changed(gamma=jnp.minimum(self.gamma, MARGIN * jnp.minimum(*limits)))


def room_used(run: Run) -> Float[Array, ""]:
    """gamma |grad| over C_* at the worst block: at most 1 if one step stays within lambda-bar."""
    sizes = jnp.stack([jnp.linalg.norm(jnp.ravel(block)) for block in run.gradient])
    return jnp.max(run.gamma * sizes / run.room)


class Step(Run):
    """One step within lambda-bar and with gamma <= 1/C; (2) and (3) need not hold."""

    steps = Static(1, largest=10**4)

    shapes = ({"n": 2, "T": 2, "d": 2, "d_m": 3}, {"n": 1, "T": 2, "d": 1, "d_m": 1})

    def within(self) -> Self:
        """With a residual of at least 1/1000 of 1 + |f|, and gamma within both limits."""
        least = 1e-3 * (1 + jnp.linalg.norm(of.outputs(self, self.theta)))
        size = jnp.linalg.norm(self.residual)
        grown = jnp.where(size > 0, self.residual / jnp.where(size > 0, size, 1.0), 1.0) * least
        heard = self.changed(residual=jnp.where(size < least, grown, self.residual)).slowed()
        return heard.changed(gamma=heard.gamma / jnp.maximum(room_used(heard) / MARGIN, 1.0))


class SmoothStep(Step):
    """The same for nonnegative tokens and values, which stay nonnegative after the step."""

    def within(self) -> Self:
        """Values at least as large as the step."""
        positive = self.changed(X=jnp.abs(self.X), W_V=jnp.abs(self.W_V))
        inside = Step.within(positive)
        floor = jnp.abs(inside.gamma * inside.gradient.W_V) * (1 + 1e-9)
        return Step.within(inside.changed(W_V=jnp.maximum(inside.W_V, floor)))
