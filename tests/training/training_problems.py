"""Small asymmetric problems that the training tests share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from headcount.core import losses
from headcount.papers.arda2026 import PooledAttention, PooledAttentionParams
from headcount.papers.deora2024.model import LinearModel, LinearParams
from headcount.training import HeadBalls, Run, from_optax, naive_path


def pooled(
    n: int = 7, T: int = 5, d: int = 3, m: int = 4, seed: int = 0, **settings: Any
) -> tuple[PooledAttention, PooledAttentionParams, np.ndarray, np.ndarray]:
    """A pooled attention with unpaired, asymmetric parameters, and its data."""
    rng = np.random.default_rng(seed)
    params = PooledAttentionParams(
        rng.normal(size=m), rng.normal(size=(m, d)), rng.normal(size=(m, d, d))
    )
    model = PooledAttention(d, m, **settings)
    return model, params, rng.normal(size=(n, T, d)), rng.normal(size=n)


def linear(
    n: int = 5, T: int = 3, d: int = 2, seed: int = 0
) -> tuple[LinearModel, LinearParams, np.ndarray, np.ndarray]:
    """The linear model <U, X>: its loss and gradient have a closed form."""
    rng = np.random.default_rng(seed)
    params = LinearParams(rng.normal(size=(T, d)))
    return LinearModel(T, d), params, rng.normal(size=(n, T, d)), rng.normal(size=n)


def linear_loss(U: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
    """(1/n) sum_j (<U, x_j> - y_j)^2 by a loop."""
    return sum((float(np.sum(U * xj)) - yj) ** 2 for xj, yj in zip(x, y, strict=True)) / len(y)


def linear_gradient(U: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(2/n) sum_j (<U, x_j> - y_j) x_j by a loop."""
    grad = np.zeros_like(U)
    for xj, yj in zip(x, y, strict=True):
        grad += 2 / len(y) * (float(np.sum(U * xj)) - yj) * xj
    return grad


class CubicParams(NamedTuple):
    """The one block of `Cubic`."""

    a: np.ndarray


@dataclass(frozen=True)
class Cubic:
    """f = sum_t (a . x_t)^3: a model without a fast path, which counts its Python calls."""

    d: int
    name: ClassVar[str] = "cubic"
    calls: ClassVar[list[int]] = [0]

    def __call__(self, params: CubicParams, x: Any) -> Any:
        """f(params, x)."""
        self.calls[0] += 1
        return jnp.sum((x @ params.a) ** 3)

    def shapes(self) -> CubicParams:
        """The shape of a."""
        return CubicParams((self.d,))


class MemoryCheckpoint:
    """Keeps what the run saves; interrupts it after a chosen number of saves."""

    def __init__(self, interrupt_after: int | None = None) -> None:
        self.kept: dict[str, np.ndarray] | None = None
        self.saves = 0
        self.interrupt_after = interrupt_after

    def restore(self) -> dict[str, np.ndarray] | None:
        """What was saved last."""
        return self.kept

    def save(self, arrays: Any) -> None:
        """Keep it, then perhaps interrupt."""
        self.kept = arrays()
        self.saves += 1
        if self.saves == self.interrupt_after:
            self.interrupt_after = None
            raise KeyboardInterrupt


def agree(got: Any, want: Any, tolerance: float) -> None:
    """Each leaf to a relative error, measured against the largest entry of its block."""
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * max(np.max(np.abs(b)), 1e-300))


def compare_with_twin(
    build: Any, model: Any, params: Any, x: Any, y: Any, loss: str, chunk: int, tolerance: float
) -> None:
    """Loss, gradient and outputs by a fast path and by its twin, compiled together."""
    if losses[loss].labels == "signs":
        y = np.where(y > 0, 1.0, -1.0)

    @jax.jit
    def both(params: Any, x: Any, y: Any) -> list:
        paths = [build(model, loss, chunk), naive_path(model, loss)]
        prepared = [(path, path.prepare(x, y)) for path in paths]
        return [
            (p.loss_and_gradient(params, data), p.outputs(params, data)) for p, data in prepared
        ]

    agree(*both(params, x, y), tolerance)


EVERYTHING = from_optax(optax.sgd(0.1, momentum=0.6), HeadBalls((("U", 2.0),)), batch_size=3)
"""Momentum, a projection and random batches: all the state that a run can have."""
STATEFUL: dict[str, Any] = {
    "rule": EVERYTHING,
    "steps": 9,
    "keep": ("average", "best"),
    "record": ["distance"],
    "record_every": 4,
}


def arrays_of(run: Run) -> list[np.ndarray]:
    trees = (run.loss, run.final_loss, run.records, run.params, run.average, run.best)
    return jax.tree.leaves((trees, run.diverged_at, run.recorded_steps))


def assert_same(a: Run, b: Run) -> None:
    """Bit for bit."""
    assert len(arrays_of(a)) == len(arrays_of(b))
    for ours, theirs in zip(arrays_of(a), arrays_of(b), strict=True):
        np.testing.assert_array_equal(ours, theirs)
