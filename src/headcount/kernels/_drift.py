"""How far training has moved the kernel and the weights: a dial for laziness."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from ..core import (
    Array,
    BadArgument,
    cast,
    check_count,
    check_shape,
    float64,
    own_precision,
)
from ..core._precision import traced
from ..core._samples import Samples, count_samples
from ..core._tree import blocks
from ..models import over_heads
from ..models._module import as_model
from ._generic import kept_blocks
from ._ntk import traced_ntk
from ._source import check_inputs, check_params

Record = dict[str, Any]


@own_precision
def kernel_distance(K: Float[Array, "n k"], K0: Float[Array, "n k"]) -> Float[Array, ""]:
    """1 - <K, K0> / (|K| |K0|) with Frobenius inner products.

    Written as |K/|K| - K0/|K0||^2 / 2, which is the same number without the cancellation.

    >>> round(float(kernel_distance(np.eye(2), np.ones((2, 2)))), 6)  # 1 - 2 / (sqrt(2) 2)
    0.292893
    """
    if np.shape(K) != np.shape(K0):
        check_shape("K", K, np.shape(K0))
    difference = K / jnp.linalg.norm(K) - K0 / jnp.linalg.norm(K0)
    return jnp.sum(difference**2) / 2


@own_precision
def relative_change(K: Float[Array, "n k"], K0: Float[Array, "n k"]) -> Float[Array, ""]:
    """|K - K0| / |K0| in the Frobenius norm."""
    return jnp.linalg.norm(K - K0) / jnp.linalg.norm(K0)


@own_precision
def weight_movement(initial: Any, params: Any, *, model: Any = None) -> Record:
    """|theta_b - theta0_b| of every block and in all, each also divided by |theta0_b|.

    Keys: movement, relative_movement, and movement/<block>, relative_movement/<block>. A block
    that starts at zero has relative movement infinity once it moves, and nan before. Give the
    model if it has groups of equal heads: lengths are then over all heads.
    """
    start = over_heads(model, initial)
    moved = optax.tree.sub(over_heads(model, params), start)
    record: Record = {}
    for label, size, change in [
        ("", start, moved),
        *((f"/{name}", block, blocks(moved)[name]) for name, block in blocks(start).items()),
    ]:
        record[f"movement{label}"] = optax.tree.norm(change)
        record[f"relative_movement{label}"] = record[f"movement{label}"] / optax.tree.norm(size)
    return record


def drift(
    model: Any,
    initial: Any,
    params: Any,
    x: Samples,
    *,
    frozen: Sequence[str] = (),
    eigenvalues: int = 1,
) -> Record:
    """Kernel and weight drift from initial to params on the samples x, as a dict of scalars.

    kernel_distance, relative_change (total and /<block>), eigenvalue/1.. from the largest and
    eigenvalue/-1.. from the smallest, `eigenvalues` of each, and `weight_movement`. With concrete
    arguments everything is float64 numbers; inside a JAX program it is traced, in the precision
    of the arguments.
    """
    return drift_from(model, initial, x, frozen=frozen, eigenvalues=eigenvalues)(params)


def drift_from(
    model: Any,
    initial: Any,
    x: Samples,
    *,
    frozen: Sequence[str] = (),
    eigenvalues: int = 1,
) -> Callable[[Any], Record]:
    """`drift` as a function of params alone: the kernel at initial is computed once."""
    check_count("eigenvalues", eigenvalues, least=0)
    model, initial = as_model(model, initial)
    if traced(initial, x):
        start = _state(model, initial, x, tuple(frozen))
        return lambda params: _measure(model, initial, start, params, x, frozen, eigenvalues)
    kept_blocks(initial, frozen)
    check_params(model, initial)
    samples = check_inputs("x", x, model, "float64")
    if eigenvalues > count_samples(samples):
        problem = f"is above n = {count_samples(samples)}"
        raise BadArgument("eigenvalues", eigenvalues, problem, fix="ask for fewer")
    base = cast(initial, "float64")
    with float64():
        origin = jax.jit(lambda p: _state(model, p, samples, tuple(frozen)))(base)
        measure = jax.jit(lambda p: _measure(model, base, origin, p, samples, frozen, eigenvalues))

    def record(params: Any) -> Record:
        if traced(params):
            return _measure(model, initial, origin, params, x, frozen, eigenvalues)
        check_params(model, params)
        with float64():
            return {key: float(value) for key, value in measure(cast(params, "float64")).items()}

    return record


def tangent_kernel(now: Any) -> Record:
    """A training recorder: the kernel on the training samples, (n, n), for `margin_path` and co.

    In the precision of the run: margins and eigenvalues to be quoted want dtype="float64".
    """
    return {"tangent_kernel": sum(traced_ntk(now.model, now.params, now.x).values())}


def _state(model: Any, params: Any, x: Any, frozen: Sequence[str]) -> Any:
    kernels = traced_ntk(model, params, x, frozen=frozen)
    return {"total": sum(kernels.values()), **kernels}


def _measure(
    model: Any,
    initial: Any,
    start: Any,
    params: Any,
    x: Any,
    frozen: Sequence[str],
    eigenvalues: int,
) -> Record:
    now = _state(model, params, x, frozen)
    record: Record = {
        "kernel_distance": kernel_distance(now["total"], start["total"]),
        "relative_change": relative_change(now["total"], start["total"]),
    }
    for name in now:
        if name != "total":
            record[f"relative_change/{name}"] = relative_change(now[name], start[name])
    if eigenvalues:
        spectrum = jnp.linalg.eigvalsh(now["total"])
        for k in range(1, eigenvalues + 1):
            record[f"eigenvalue/{k}"] = spectrum[-k]
            record[f"eigenvalue/-{k}"] = spectrum[k - 1]
    return {**record, **weight_movement(initial, params, model=model)}
