"""Both sides of (19)-(22), Lemma 11 and Theorem 4 for a measured leave-one-out study."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import optax
from jaxtyping import Float

from ...core import LOGISTIC, Array, float64, total
from ...models import outputs, over_heads
from .constants import beta_1, beta_2, beta_3, gap_bound, reach
from .model import MultiHeadParams
from .stability import Heads, LeftOut, largest_head


class Sides(NamedTuple):
    """What an inequality compares, entry by entry."""

    left: Float[Array, "..."]
    right: Float[Array, "..."]

    @property
    def ratio(self) -> Float[Array, "..."]:
        """left/right, zero where both are: at most one where the inequality holds."""
        left, right = np.asarray(self.left), np.asarray(self.right)
        return np.divide(left, right, out=np.zeros(np.shape(left)), where=left > 0)


class Target(NamedTuple):
    """A point theta to compare with: D = |theta - theta_0|, N = |theta|_{2,inf}, L(theta)."""

    D: float
    N: float
    loss: float

    @property
    def B(self) -> float:
        """3 D + N, which replaces N in the constants with a tilde."""
        return reach(self.D, self.N)


def target(
    model: Heads,
    start: MultiHeadParams,
    theta: MultiHeadParams,
    x: Float[Array, "n T d"],
    y: Float[Array, "n"],
) -> Target:
    """The numbers of `theta` that the bounds depend on."""
    with float64():
        moved = over_heads(model, optax.tree.sub(theta, start))
        loss = total(LOGISTIC, outputs(model, theta, np.asarray(x, np.float64)), y)
        return Target(float(optax.tree.norm(moved)), float(largest_head(theta)), float(loss))


def expansiveness(run: LeftOut, tier: str = "v2") -> Sides:
    """(19), (85) for L^{-i} between theta_k and theta_k^{-i}.

    |GD(theta) - GD(theta')| <= max{1 + eta beta_3 L^{-i}/sqrt(H), eta beta_2} |theta - theta'|;
    the betas are taken at the larger end, the loss at the largest of both ends and the middle.
    From k = 1 on: at k = 0 both points are the start.
    """
    return Sides(run.expanded[1:], (_expansion(run, tier) * run.distance[:-1])[1:])


def one_step(run: LeftOut, tier: str = "v2") -> Sides:
    """(20), (86): as `expansiveness`, and sample i adds eta beta_1(theta_k) l_i(theta_k)/n."""
    grown = _expansion(run, tier) * run.distance[:-1]
    return Sides(run.distance[1:], grown + _own_share(run))


def one_small_step(run: LeftOut, theta: Target, tier: str = "v2") -> Sides:
    """(21), (89), as it must be read: (1 + (eta beta_3~/sqrt(H)) max L^{-i}) |.| + ... .

    It asks for eta <= 1/beta_2~, see `small_step`.
    """
    lead = run.eta * _beta_3_tilde(run, theta, tier) / math.sqrt(run.model.H)
    growth = 1 + lead * _largest_loss(run)
    return Sides(run.distance[1:], growth * run.distance[:-1] + _own_share(run))


def growth_rates(run: LeftOut, theta: Target, tier: str = "v2") -> Float[Array, "K n"]:
    """alpha_{k,i} = (4 eta beta_3~/(3 sqrt(H))) (L^{-i}(theta_k) + L^{-i}(theta_k^{-i}))."""
    lead = 4 * run.eta * _beta_3_tilde(run, theta, tier) / (3 * math.sqrt(run.model.H))
    return lead * (run.without_own + run.left_out_loss)


def unrolled_step(run: LeftOut, theta: Target, tier: str = "v2") -> Sides:
    """(22): (1 + alpha_{k,i}) |theta_k - theta_k^{-i}| + (eta beta_1~/n) l_i(theta_k)."""
    growth = 1 + growth_rates(run, theta, tier)
    added = run.eta * _beta_1_tilde(run, theta) / run.n * run.own_loss
    return Sides(run.distance[1:], growth * run.distance[:-1] + added)


def summed_growth(run: LeftOut, theta: Target, tier: str = "v2") -> Sides:
    """sum_{l=1}^{K-1} alpha_{l,i} <= 1/10 for every i [proof of Lemma 11]."""
    sums = np.sum(growth_rates(run, theta, tier)[1:], axis=0)
    return Sides(sums, np.full(run.n, 0.1))


def from_losses(run: LeftOut, theta: Target) -> Sides:
    """(1/n) sum_i |theta_k - theta_k^{-i}| <= (2 eta beta_1~/n) sum_{l<k} L(theta_l), k = 1..K."""
    lead = 2 * run.eta * _beta_1_tilde(run, theta) / run.n
    return Sides(run.on_average[1:], lead * np.cumsum(run.loss))


def lemma_11(run: LeftOut, theta: Target) -> Sides:
    """On-average stability after k steps <= (2 eta/n) beta_1~ (2 k L(theta) + 9 D^2/(4 eta))."""
    k = np.arange(1, run.steps + 1)
    inner = 2 * k * theta.loss + 9 * theta.D**2 / (4 * run.eta)
    return Sides(run.on_average[1:], 2 * run.eta / run.n * _beta_1_tilde(run, theta) * inner)


def theorem_4(run: LeftOut, theta: Target) -> Float[Array, "K"]:
    """The bound (4/n) (2 k L(theta) + 9 D^2/(4 eta)) on the expected gap after k = 1..K steps."""
    k = np.arange(1, run.steps + 1)
    return np.asarray(gap_bound(theta.loss, theta.D, run.eta, k, run.n))


def small_step(run: LeftOut, theta: Target, tier: str = "v2") -> Sides:
    """eta <= 1/beta_2~, what (21) and (22) ask of the step size."""
    T, d = run.model.T, run.model.d
    largest = 1 / beta_2(theta.B, _R(run), run.model.H, T, d, tier, run.model.readout)
    return Sides(np.asarray(run.eta), np.asarray(largest))


def _R(run: LeftOut) -> float:
    """The paper's R is at least one."""
    return max(run.R, 1.0)


def _larger_end(run: LeftOut) -> Float[Array, "K n"]:
    return np.maximum(run.size[:, None], run.left_out_size)


def _expansion(run: LeftOut, tier: str) -> Float[Array, "K n"]:
    """max{1 + eta beta_3 L^{-i}/sqrt(H), eta beta_2} along the segment."""
    model, N = run.model, _larger_end(run)
    constant = beta_3(N, _R(run), model.T, model.d, tier, model.readout)
    curved = run.eta * np.asarray(constant) / math.sqrt(model.H) * _largest_loss(run)
    smooth = beta_2(N, _R(run), model.H, model.T, model.d, tier, model.readout)
    return np.maximum(1 + curved, run.eta * np.asarray(smooth))


def _largest_loss(run: LeftOut) -> Float[Array, "K n"]:
    """The largest of L^{-i} at theta_k, at theta_k^{-i} and half-way."""
    return np.maximum(np.maximum(run.without_own, run.left_out_loss), run.middle_loss)


def _own_share(run: LeftOut) -> Float[Array, "K n"]:
    """eta beta_1(theta_k) l_i(theta_k)/n."""
    constant = np.asarray(beta_1(run.size, _R(run), run.model.T, run.model.readout))
    return run.eta * constant[:, None] * run.own_loss / run.n


def _beta_1_tilde(run: LeftOut, theta: Target) -> float:
    return float(beta_1(theta.B, _R(run), run.model.T, run.model.readout))


def _beta_3_tilde(run: LeftOut, theta: Target, tier: str) -> float:
    model = run.model
    return float(beta_3(theta.B, _R(run), model.T, model.d, tier, model.readout))
