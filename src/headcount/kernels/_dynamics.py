"""What training does under a constant kernel: gradient flow, discrete steps, and the comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Num

from ..core import MEAN_SQUARED, Array, BadArgument, Loss, check_shape, float64, loss_of, total
from ..core._results import mappable
from ..core._shown import Shown
from ._linearised import check_labels, check_schedule
from ._regression import Kernel, applied, check_cross, check_kernel, check_targets, spectrum_of

if TYPE_CHECKING:
    import xarray


@mappable("kind", "loss_name")
@dataclass(frozen=True, repr=False)
class KernelTrajectory(Shown):
    """Outputs on train and test points at recorded times (flow) or steps (descent).

    `coefficients` are the dual ones at each record: f = f0 + K(., x_train) coefficients, so that
    `predict` gives the function anywhere.
    """

    times: Num[Array, "t"]
    train: Float[Array, "t n *k"]
    test: Float[Array, "t n_test *k"] | None
    loss: Float[Array, "t"]
    coefficients: Float[Array, "t n *k"]
    kind: str
    loss_name: str

    def predict(
        self, kernel: Kernel, f0: Float[Array, "n_new *k"] | float = 0.0
    ) -> Float[Array, "t n_new *k"]:
        """The outputs at new points, at every recorded time."""
        K = check_cross("kernel", kernel, self.coefficients.shape[1:])
        return np.asarray(f0) + np.stack([applied(K, one) for one in self.coefficients])

    def to_xarray(self) -> xarray.Dataset:
        """Outputs, loss and coefficients over the recorded times."""
        import xarray

        axis = "time" if self.kind == "flow" else "step"
        more = ("output",) * (self.train.ndim - 2)
        variables: dict[str, Any] = {
            "train": ((axis, "sample", *more), self.train),
            "coefficients": ((axis, "sample", *more), self.coefficients),
            "loss": ((axis,), self.loss),
        }
        if self.test is not None:
            variables["test"] = ((axis, "test_sample", *more), self.test)
        attributes = {"loss": self.loss_name, "kind": self.kind}
        return xarray.Dataset(variables, coords={axis: self.times}, attrs=attributes)


@dataclass(frozen=True)
class _Problem:
    K: Float[Array, "..."]
    y: Any
    f0: Float[Array, "n *k"]
    K_test: Float[Array, "..."] | None
    f0_test: Float[Array, "n_test *k"]


def _problem(kernel: Any, y: Any, f0: Any, kernel_test: Any, f0_test: Any, loss: Loss) -> _Problem:
    check_kernel("kernel", kernel)
    K = np.asarray(kernel, np.float64)
    if loss.labels == "classes":
        if K.ndim != 4:
            problem = "is no kernel of several outputs"
            raise BadArgument(
                "kernel", f"array of shape {K.shape}", problem, fix="use (n, k, n, k)"
            )
        targets: Any = np.asarray(y)
        check_shape("y", targets, (len(K),))
        shape = K.shape[:2]
    else:
        targets = check_targets("y", y, K)
        shape = targets.shape
    check_labels(loss, targets)
    start = check_targets("f0", np.broadcast_to(np.asarray(f0, np.float64), shape), K)
    if kernel_test is None:
        return _Problem(K, targets, start, None, np.zeros((0, *shape[1:])))
    K_test = check_cross("kernel_test", kernel_test, shape)
    start_test = np.broadcast_to(np.asarray(f0_test, np.float64), (len(K_test), *shape[1:]))
    return _Problem(K, targets, start, K_test, start_test)


def kernel_flow(
    kernel: Kernel,
    y: Any,
    times: Num[Array, "k"] | Sequence[int | float],
    *,
    loss: Loss | str = MEAN_SQUARED,
    f0: Float[Array, "n *k"] | float = 0.0,
    kernel_test: Kernel | None = None,
    f0_test: Float[Array, "n_test *k"] | float = 0.0,
    cutoff: float | None = None,
) -> KernelTrajectory:
    """Gradient flow of a squared loss in closed form, at any times in [0, infinity].

    df/dt = -kappa K (f - y), kappa = 2/n for the mean squared loss and 1 for half the sum, so
    f(t) = f0 + K V diag((1 - e^{-kappa lambda t}) / lambda) V^T (y - f0) with K = V diag(lambda)
    V^T; the test points use the same coefficients. t = 0 is f0, t = infinity ridgeless regression.
    Eigenvalues of at most cutoff times the largest (default n eps) never move.
    """
    loss = loss_of(loss)
    at = np.atleast_1d(np.asarray(times, np.float64))
    if at.ndim != 1 or not np.all(at >= 0):
        raise BadArgument("times", times, "must be numbers >= 0 (infinity allowed)", fix="use [0.]")
    problem = _problem(kernel, y, f0, kernel_test, f0_test, loss)
    rate = loss.weight(len(problem.y)) * _curvature(loss)
    spectrum = spectrum_of(kernel, cutoff)
    values = np.where(spectrum.kept, spectrum.values, 1.0)
    learned = np.where(spectrum.kept, -np.expm1(-rate * np.outer(at, values)), 0.0)
    gap = spectrum.vectors.T @ (problem.y - problem.f0).reshape(len(values), -1)

    def over_time(shares: Any) -> Any:
        moved = np.einsum("jv,tv,vk->tjk", spectrum.vectors, shares, gap, optimize=True)
        return moved.reshape(len(at), *problem.y.shape)

    coefficients, train = over_time(learned / values), problem.f0 + over_time(learned)
    return _trajectory(problem, at, train, coefficients, "flow", loss)


def _curvature(loss: Loss) -> float:
    """kappa of a squared loss, whose slope is kappa (f - y); other losses have no closed form."""
    with float64():
        f, y = jnp.asarray([0.0, 1.0, 5.0, -2.0]), jnp.asarray([0.0, -1.0, 2.0, 1.0])
        slopes = np.asarray(loss.slope(f, y))
    kappa = float(slopes[1]) / 2
    if not np.allclose(slopes, kappa * np.array([0.0, 2.0, 3.0, -3.0]), rtol=1e-12):
        raise BadArgument(
            "loss",
            loss.name,
            "is not a squared loss: its gradient flow has no closed form",
            fix="use kernel_descent with a small step",
        )
    return kappa


def kernel_descent(
    kernel: Kernel,
    y: Any,
    *,
    eta: float,
    steps: int,
    loss: Loss | str = MEAN_SQUARED,
    f0: Float[Array, "n *k"] | float = 0.0,
    kernel_test: Kernel | None = None,
    f0_test: Float[Array, "n_test *k"] | float = 0.0,
    radius: float | None = None,
    record_every: int = 1,
) -> KernelTrajectory:
    """Gradient descent of step size eta under a constant kernel, for any loss.

    f_{k+1} = f_k - eta w K slope(f_k, y), w the loss's weight(n): step for step what gradient
    descent does to the linearised model. radius: after each step shrink f - f0 to the ball
    |f - f0|_H <= radius of the kernel's space, which is the projection of the linearised model's
    parameters onto |params - initial| <= radius. A step size beyond 2/(kappa lambda_max) diverges,
    and the result shows it.
    """
    loss = loss_of(loss)
    check_schedule(eta, steps, record_every, radius)
    problem = _problem(kernel, y, f0, kernel_test, f0_test, loss)
    with float64():
        coefficients, train = _descend(
            loss, steps // record_every, record_every, problem.K, problem.y, problem.f0, float(eta),
            np.inf if radius is None else float(radius),
        )  # fmt: skip
    at = record_every * np.arange(steps // record_every + 1)
    return _trajectory(problem, at, np.asarray(train), np.asarray(coefficients), "descent", loss)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _descend(
    loss: Loss,
    records: int,
    every: int,
    K: Float[Array, "..."],
    y: Any,
    f0: Float[Array, "n *k"],
    eta: Float[Array, ""],
    radius: Float[Array, ""],
) -> tuple[Float[Array, "t n *k"], Float[Array, "t n *k"]]:
    weight = loss.weight(len(y))

    def step(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        coefficients, change = carry
        coefficients = coefficients - eta * weight * loss.slope(f0 + change, y)
        change = jnp.tensordot(K, coefficients, axes=K.ndim // 2)
        length = jnp.sqrt(jnp.maximum(jnp.vdot(coefficients, change), 0.0))
        shrink = jnp.where(length > radius, radius / jnp.where(length > 0, length, 1.0), 1.0)
        return (shrink * coefficients, shrink * change), None

    def record(carry: tuple[Array, Array], _: None) -> tuple[Any, Any]:
        carry, _ = jax.lax.scan(step, carry, length=every)
        return carry, carry

    zero = (jnp.zeros_like(f0), jnp.zeros_like(f0))
    _, (coefficients, change) = jax.lax.scan(record, zero, length=records)
    return (
        jnp.concatenate([zero[0][None], coefficients]),
        f0[None] + jnp.concatenate([zero[1][None], change]),
    )


def _trajectory(
    problem: _Problem,
    times: Num[Array, "t"],
    train: Float[Array, "t n *k"],
    coefficients: Float[Array, "t n *k"],
    kind: str,
    loss: Loss,
) -> KernelTrajectory:
    test = None
    if problem.K_test is not None:
        test = problem.f0_test + np.stack([applied(problem.K_test, one) for one in coefficients])
    with float64():
        losses = jax.vmap(lambda f: total(loss, f, problem.y))(jnp.asarray(train))
    return KernelTrajectory(
        times=times,
        train=train,
        test=test,
        loss=np.asarray(losses),
        coefficients=coefficients,
        kind=kind,
        loss_name=loss.name,
    )


@dataclass(frozen=True, repr=False)
class TrajectoryGap(Shown):
    """How far a network's run is from its kernel prediction, at the steps that both recorded.

    `relative` is the root mean square gap over the root mean square distance that the network has
    moved from its first record (NaN at the start, where nothing has moved).
    """

    times: Num[Array, "k"]
    largest: Float[Array, "k"]
    rms: Float[Array, "k"]
    relative: Float[Array, "k"]


def compare_runs(
    predicted: KernelTrajectory,
    outputs: Float[Array, "t n *k"],
    times: Num[Array, "k"] | Sequence[int | float],
    *,
    on: str = "train",
) -> TrajectoryGap:
    """Compare recorded network outputs, one row per entry of `times`, with a kernel trajectory.

    on: "train" or "test". Records that only one of the two has are left out.
    """
    ours = predicted.train if on == "train" else predicted.test
    if on not in ("train", "test") or ours is None:
        raise BadArgument("on", on, "has no predicted outputs", fix='use "train", or kernel_test=')
    at = np.asarray(times)
    check_shape("outputs", outputs, (len(at), *ours.shape[1:]))
    run = np.asarray(outputs, np.float64)
    common, i, j = np.intersect1d(predicted.times, at, return_indices=True)
    if not len(common):
        raise BadArgument("times", times, "no record in common", fix="record at the same steps")
    gap = (ours[i] - run[j]).reshape(len(i), -1)
    rms = np.sqrt(np.mean(gap**2, axis=1))
    moved = np.sqrt(np.mean((run[j] - run[0]).reshape(len(j), -1) ** 2, axis=1))
    relative = np.divide(rms, moved, out=np.full_like(rms, np.nan), where=moved > 0)
    return TrajectoryGap(common, np.max(np.abs(gap), axis=1), rms, relative)
