"""Algorithmic stability, measured: leave-one-out descent for all i in one compiled program.

theta_k^{-i} follows the gradient of L^{-i} = (1/n) sum_{j != i} l_j from the same start with the
same step: the weight 1/n stays [deora2024, App. C]. The full run and the n others advance side by
side. What is carried is the move theta_k - theta_0: with 10^12 heads a head moves by 10^-7, and
differences of moves keep their digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from ...core import LOGISTIC, Array, check_count, check_positive, check_samples, float64
from ...models import over_heads
from .definition_1 import Heads, check_labels
from .model import MultiHeadParams

_WEIGHTS_IN_FLIGHT = 2**18
"""Attention weights (runs x samples x groups x queries x tokens) of one batch of runs: 2 MiB."""


class _Step(NamedTuple):
    """What is written down before step k: of the full run, and of every run i."""

    loss: Float[Array, ""]
    own_loss: Float[Array, "n"]
    own_gradient: Float[Array, "n"]
    left_out_loss: Float[Array, "n"]
    middle_loss: Float[Array, "n"]
    distance: Float[Array, "n"]
    expanded: Float[Array, "n"]
    size: Float[Array, ""]
    left_out_size: Float[Array, "n"]
    test_loss: Float[Array, ""]


@dataclass(frozen=True)
class LeftOut:
    """A run of K steps beside its n leave-one-out runs; distances are over all H heads.

    Arrays over k have K entries (before step k = 0..K-1) unless they say K + 1.
    """

    model: Heads
    eta: float
    steps: int
    R: float
    """The largest token norm of the training samples."""
    loss: Float[Array, "K"]
    """L(theta_k)."""
    own_loss: Float[Array, "K n"]
    """l_i(theta_k)."""
    own_gradient: Float[Array, "K n"]
    """|grad l_i(theta_k)|."""
    left_out_loss: Float[Array, "K n"]
    """L^{-i}(theta_k^{-i})."""
    middle_loss: Float[Array, "K n"]
    """L^{-i} half-way between theta_k and theta_k^{-i}."""
    distance: Float[Array, "iterates n"]
    """|theta_k - theta_k^{-i}|, k = 0..K."""
    expanded: Float[Array, "K n"]
    """|(theta_k - eta grad L^{-i}(theta_k)) - theta_{k+1}^{-i}|, the left side of (19)."""
    size: Float[Array, "K"]
    """|theta_k|_{2,inf}, the largest norm of a head."""
    left_out_size: Float[Array, "K n"]
    """|theta_k^{-i}|_{2,inf}."""
    test_loss: Float[Array, "K"]
    """The loss of theta_k on the test samples; NaN without any."""
    final: MultiHeadParams
    """theta_K."""
    final_loss: float
    final_test_loss: float
    moved: float
    """|theta_K - theta_0|."""

    @property
    def n(self) -> int:
        """Training samples."""
        return self.own_loss.shape[1]

    @property
    def on_average(self) -> Float[Array, "iterates"]:
        """(1/n) sum_i |theta_k - theta_k^{-i}|, the on-average model stability."""
        return np.mean(self.distance, axis=1)

    @property
    def gap(self) -> Float[Array, "iterates"]:
        """Test loss minus training loss of theta_k, k = 0..K."""
        gap: Float[Array, "iterates"] = np.append(
            self.test_loss - self.loss, self.final_test_loss - self.final_loss
        )
        return gap

    @property
    def without_own(self) -> Float[Array, "K n"]:
        """L^{-i}(theta_k) = L(theta_k) - l_i(theta_k)/n."""
        return self.loss[:, None] - self.own_loss / self.n


def leave_one_out(
    model: Heads,
    start: MultiHeadParams,
    x: Float[Array, "n T d"],
    y: Float[Array, "n"],
    *,
    eta: float,
    steps: int,
    test: tuple[Float[Array, "m T d"], Float[Array, "m"]] | None = None,
) -> LeftOut:
    """Gradient descent on L and on every L^{-i} from `start`, in float64.

    Time grows with n^2 K. `start` holds one head per group of equal heads, which stay equal.
    With fresh samples as `test` the full run's loss on them is followed, too.
    """
    n, T, _ = check_samples(x, y)
    check_positive("eta", eta)
    check_count("steps", steps)
    check_labels(y)
    with float64():
        theta_0 = MultiHeadParams(*(jnp.asarray(leaf, jnp.float64) for leaf in start))
        fresh = (np.zeros((0, *np.shape(x)[1:])), np.zeros(0)) if test is None else test
        data = [jnp.asarray(part, jnp.float64) for part in (x, y, *fresh)]
        together = max(1, _WEIGHTS_IN_FLIGHT // (n * len(model.multiplicities) * T * T))
        program = _program(model, steps, min(together, n + 1))
        seen, moves, last, ends = jax.tree.map(np.asarray, program(theta_0, *data, eta))
    full = jax.tree.map(lambda leaf: leaf[0], moves)
    fields = seen._asdict()
    fields["distance"] = np.concatenate([fields["distance"], last[None]])
    return LeftOut(
        model=model,
        eta=eta,
        steps=steps,
        R=float(np.max(np.linalg.norm(x, axis=2))),
        final=MultiHeadParams(*(np.asarray(a) + b for a, b in zip(start, full, strict=True))),
        final_loss=float(ends[0]),
        final_test_loss=float(ends[1]),
        moved=float(_length(model, full)),
        **fields,
    )


@lru_cache(maxsize=16)
def _program(model: Heads, steps: int, together: int) -> Callable[..., Any]:
    """Start, data, eta -> what is seen before every step; moves, distances, losses at the end."""

    @jax.jit
    def run(
        theta_0: MultiHeadParams, x: Array, y: Array, test_x: Array, test_y: Array, eta: Array
    ) -> tuple[_Step, MultiHeadParams, Array, tuple[Array, Array]]:
        runs = _Runs(model, theta_0, x, y, test_x, test_y, together)
        n = y.shape[0]
        moves = jax.tree.map(lambda leaf: jnp.zeros((n + 1, *leaf.shape)), theta_0)

        def step(now: MultiHeadParams, _: None) -> tuple[MultiHeadParams, _Step]:
            return runs.step(now, eta)

        moves, seen = jax.lax.scan(step, moves, length=steps)
        full = _entry(moves, 0)
        ends = jnp.mean(runs.losses(full)), runs.test_loss(full)
        return seen, moves, runs.distances(moves), ends

    return run


@dataclass(frozen=True, eq=False)
class _Runs:
    """The full run (entry 0) and the n leave-one-out runs (entries 1..n) at their moves."""

    model: Heads
    theta_0: MultiHeadParams
    x: Float[Array, "n T d"]
    y: Float[Array, "n"]
    test_x: Float[Array, "m T d"]
    test_y: Float[Array, "m"]
    together: int

    def step(self, moves: MultiHeadParams, eta: Array) -> tuple[MultiHeadParams, _Step]:
        """One step of all runs."""
        n = self.y.shape[0]
        kept = jnp.concatenate([jnp.ones((1, n)), 1 - jnp.eye(n)]) / n
        losses, gradients = self._each(self._losses_and_gradient, moves, kept)
        after = optax.tree.sub(moves, optax.tree.scale(eta, gradients))
        own = jax.vmap(self._own_gradient, in_axes=(None, 0, 0))(_entry(moves, 0), self.x, self.y)
        # One step of L^{-i} from the full run's place: its step without the share of sample i.
        onward = jax.tree.map(lambda a, g: a[:1] + eta / n * g, after, own)
        expanded = optax.tree.sub(onward, jax.tree.map(lambda leaf: leaf[1:], after))
        middle = jax.tree.map(lambda leaf: (leaf[:1] + leaf[1:]) / 2, moves)
        sizes = jax.vmap(self._size)(moves)
        lengths = jax.vmap(lambda tree: _length(self.model, tree))
        seen = _Step(
            loss=jnp.mean(losses[0]),
            own_loss=losses[0],
            own_gradient=lengths(own),
            left_out_loss=jnp.sum(kept[1:] * losses[1:], axis=1),
            middle_loss=jnp.sum(kept[1:] * self._each(self.losses, middle), axis=1),
            distance=self.distances(moves),
            expanded=lengths(expanded),
            size=sizes[0],
            left_out_size=sizes[1:],
            test_loss=self.test_loss(_entry(moves, 0)),
        )
        return after, seen

    def distances(self, moves: MultiHeadParams) -> Float[Array, "n"]:
        """|theta - theta^{-i}| for every i."""
        apart = jax.tree.map(lambda leaf: leaf[1:] - leaf[:1], moves)
        return jax.vmap(lambda tree: _length(self.model, tree))(apart)

    def _each(self, one_run: Callable[..., Any], *arguments: Any) -> Any:
        """`one_run` for every run, a few at a time: what they hold at once stays in cache."""
        return jax.lax.map(lambda a: one_run(*a), arguments, batch_size=self.together)

    def _outputs(self, move: MultiHeadParams) -> Float[Array, "n"]:
        theta = optax.tree.add(self.theta_0, move)
        return jax.vmap(self.model, in_axes=(None, 0))(theta, self.x)

    def test_loss(self, move: MultiHeadParams) -> Float[Array, ""]:
        """The loss on the test samples, NaN without any."""
        if self.test_y.shape[0] == 0:
            return jnp.asarray(jnp.nan)
        theta = optax.tree.add(self.theta_0, move)
        f = jax.vmap(self.model, in_axes=(None, 0))(theta, self.test_x)
        return jnp.mean(LOGISTIC.pointwise(f, self.test_y))

    def losses(self, move: MultiHeadParams) -> Float[Array, "n"]:
        """l_j for every j."""
        return LOGISTIC.pointwise(self._outputs(move), self.y)

    def _losses_and_gradient(
        self, move: MultiHeadParams, weights: Float[Array, "n"]
    ) -> tuple[Float[Array, "n"], MultiHeadParams]:
        """l_j for every j, and the gradient of sum_j weights_j l_j in one head of each group."""
        f, back = jax.vjp(self._outputs, move)
        (gradient,) = back(weights * LOGISTIC.slope(f, self.y))
        return LOGISTIC.pointwise(f, self.y), over_heads(self.model, gradient, power=-2)

    def _own_gradient(self, move: MultiHeadParams, x: Array, y: Array) -> MultiHeadParams:
        """grad l_i in one head of each group."""
        theta = optax.tree.add(self.theta_0, move)
        gradient = jax.grad(lambda p: LOGISTIC.pointwise(self.model(p, x), y))(theta)
        return over_heads(self.model, gradient, power=-2)

    def _size(self, move: MultiHeadParams) -> Float[Array, ""]:
        return largest_head(optax.tree.add(self.theta_0, move))


def largest_head(theta: MultiHeadParams) -> Float[Array, ""]:
    """|theta|_{2,inf} = max_h |theta_h| [deora2024, Sec. 2]."""
    squares = [jnp.sum(leaf.reshape(leaf.shape[0], -1) ** 2, axis=1) for leaf in theta]
    return jnp.sqrt(jnp.max(sum(squares)))


def _entry(tree: Any, index: int) -> Any:
    return jax.tree.map(lambda leaf: leaf[index], tree)


def _length(model: Heads, tree: MultiHeadParams) -> Float[Array, ""]:
    """The norm over all heads, groups counted with their multiplicities."""
    return optax.tree.norm(over_heads(model, tree))
