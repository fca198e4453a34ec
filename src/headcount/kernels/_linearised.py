"""Gradient descent on the linearised model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ..core import (
    MEAN_SQUARED,
    Array,
    BadArgument,
    Loss,
    cast,
    check_count,
    check_finite,
    check_positive,
    float64,
    loss_of,
    total,
)
from ..core._checks import check_finite_leaves, check_samples
from ..core._results import mappable
from ..core._samples import Samples, as_samples, count_samples, sample_shapes, take_samples
from ..core._shown import Shown
from ..models import over_heads
from ..models._module import as_model
from ._generic import as_trained

if TYPE_CHECKING:
    import xarray

Function = Callable[[Any, Any], Float[Array, "*k"]]


@mappable("loss_name")
@dataclass(frozen=True, repr=False)
class LinearisedRun(Shown):
    """Gradient descent on f_lin: outputs and losses at steps 0, every, 2 every, ..., `steps`."""

    steps: Int[Array, "t"]
    train: Float[Array, "t n *k"]
    test: Float[Array, "t n_test *k"] | None
    loss: Float[Array, "t"]
    params: Any
    loss_name: str

    def to_xarray(self) -> xarray.Dataset:
        """Outputs and loss over the recorded steps."""
        import xarray

        more = ("output",) * (self.train.ndim - 2)
        variables: dict[str, Any] = {"train": (("step", "sample", *more), self.train)}
        variables["loss"] = (("step",), self.loss)
        if self.test is not None:
            variables["test"] = (("step", "test_sample", *more), self.test)
        return xarray.Dataset(
            variables, coords={"step": self.steps}, attrs={"loss": self.loss_name}
        )


def train_linearised(
    model: Function,
    initial: Any,
    x: Samples,
    y: Any,
    *,
    eta: float,
    steps: int,
    loss: Loss | str = MEAN_SQUARED,
    x_test: Samples | None = None,
    radius: float | None = None,
    record_every: int = 1,
) -> LinearisedRun:
    """`steps` steps of gradient descent of size eta on the loss of f_lin, started at initial.

    radius: after each step project onto |params - initial| <= radius (Euclidean, all blocks and
    heads).
    The derivative at initial is traced once; each step costs one product with the Jacobian and one
    with its transpose, which is never formed. Always in float64.
    """
    model, initial = as_model(model, initial)
    check_pair(model, x, y)
    seen = as_samples("x", x, "float64")
    unseen = take_samples(seen, slice(0)) if x_test is None else _unseen(x_test, seen)
    check_finite_leaves("initial", initial)
    loss = loss_of(loss)
    check_labels(loss, y)
    labels = np.asarray(y) if loss.labels in ("classes", "any") else np.asarray(y, np.float64)
    check_schedule(eta, steps, record_every, radius)
    with float64():
        start = cast(initial, "float64")
        moved, outputs, test_outputs, losses = _descend(
            model, loss, steps // record_every, record_every, start, seen, unseen,
            labels, float(eta), np.inf if radius is None else float(radius),
        )  # fmt: skip
        params = jax.tree.map(np.asarray, jax.tree.map(jnp.add, start, moved))
    return LinearisedRun(
        steps=record_every * np.arange(steps // record_every + 1),
        train=np.asarray(outputs),
        test=None if x_test is None else np.asarray(test_outputs),
        loss=np.asarray(losses),
        params=params,
        loss_name=loss.name,
    )


@partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _descend(
    model: Function,
    loss: Loss,
    records: int,
    every: int,
    initial: Any,
    x: Samples,
    x_test: Samples,
    y: Any,
    eta: Float[Array, ""],
    radius: Float[Array, ""],
) -> tuple[Any, Float[Array, "t n *k"], Float[Array, "t n_test *k"], Float[Array, "t"]]:
    """How far the parameters moved, and train outputs, test outputs and losses as recorded."""
    n = len(y)
    f_of, start = as_trained(model, initial)
    f0, forward = jax.linearize(lambda p: jax.vmap(f_of, (None, 0))(p, x), start)
    g0, forward_test = jax.linearize(lambda p: jax.vmap(f_of, (None, 0))(p, x_test), start)
    backward = jax.linear_transpose(forward, start)

    def step(moved: Any, _: None) -> tuple[Any, None]:
        f = f0 + forward(moved)
        (gradient,) = backward(loss.weight(n) * loss.slope(f, y))
        moved = jax.tree.map(lambda m, g: m - eta * g, moved, gradient)
        length = jnp.sqrt(sum(jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves(moved)))
        shrink = jnp.where(length > radius, radius / jnp.where(length > 0, length, 1.0), 1.0)
        return jax.tree.map(lambda m: shrink * m, moved), None

    def record(moved: Any, _: None) -> tuple[Any, tuple[Array, Array, Array]]:
        moved, _ = jax.lax.scan(step, moved, length=every)
        f = f0 + forward(moved)
        return moved, (f, g0 + forward_test(moved), total(loss, f, y))

    zero = jax.tree.map(jnp.zeros_like, initial)
    moved, recorded = jax.lax.scan(record, zero, length=records)
    first = (f0, g0, total(loss, f0, y))
    outputs, test, losses = (
        jnp.concatenate([at_start[None], later])
        for at_start, later in zip(first, recorded, strict=True)
    )
    return over_heads(model, moved, power=-1), outputs, test, losses


def _unseen(x_test: Samples, seen: Samples) -> Samples:
    """Samples of the same kind as those of training; there may be none."""
    found = jax.tree.map(np.asarray, x_test)
    shapes = [sample_shapes(part, "float64") for part in (found, seen)]
    if shapes[0] != shapes[1]:
        shown, wanted = (", ".join(str(s.shape) for s in jax.tree.leaves(part)) for part in shapes)
        problem = f"must have shape {wanted}"
        raise BadArgument("x_test", f"samples of shape {shown}", problem, fix="give the same kind")
    return as_samples("x_test", found, "float64") if count_samples(found) else found


def check_pair(model: Any, x: Samples, y: Any) -> None:
    """Samples with as many labels; (n, T, d) and numbers for the models of this package."""
    if hasattr(model, "shapes"):
        check_samples(x, y)
        return
    n = count_samples(as_samples("x", x, "float64"))
    if np.ndim(y) == 0 or len(y) != n:
        shown = f"array of shape {np.shape(y)}"
        raise BadArgument("y", shown, f"does not fit {n} samples", fix="one row a sample")
    check_finite("y", y)


def check_labels(loss: Loss, y: Any) -> None:
    """Labels +-1 where the loss asks for signs."""
    if loss.labels == "signs":
        check_signs(y)


def check_signs(y: Any) -> None:
    """Every label is -1 or +1."""
    values = np.asarray(y)
    bad = values[(values != 1) & (values != -1)]
    if bad.size:
        raise BadArgument(
            "y", bad.ravel()[0].item(), "is not -1 or 1", fix="map the two classes to -1 and 1"
        )


def check_schedule(eta: float, steps: int, record_every: int, radius: float | None) -> None:
    """Step size, number of steps, recording interval and optional radius of a descent."""
    check_positive("eta", eta)
    check_count("steps", steps)
    check_count("record_every", record_every)
    if steps % record_every:
        problem = f"does not divide steps = {steps}"
        raise BadArgument("record_every", record_every, problem, fix="use record_every=1")
    if radius is not None:
        check_positive("radius", radius)
