"""One training split over devices: the samples sharded over a mesh, the parameters on each.

Every device runs the same loop on its own samples; loss and gradient are added up over the mesh
in each step. The devices may belong to several processes (`jax.distributed`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..core import Array, BadArgument, check_count

SAMPLES = "samples"
"""The one axis of the mesh."""


def sample_mesh(devices: int | Sequence[jax.Device] | None) -> Mesh | None:
    """The mesh of the first so many devices, or of these; None where one device does it all."""
    if devices is None:
        return None
    if isinstance(devices, (int, np.integer)):  # True is refused by the check
        wanted = check_count("devices", devices)
        devices = jax.devices()[:wanted]
        if len(devices) < wanted:
            problem = f"are more than the {len(devices)} that JAX sees"
            flag = f"XLA_FLAGS=--xla_force_host_platform_device_count={wanted}"
            raise BadArgument("devices", wanted, problem, fix=f"on CPU, {flag} makes so many")
    ours = isinstance(devices, (list, tuple)) and all(isinstance(d, jax.Device) for d in devices)
    if not ours:
        raise BadArgument(
            "devices", devices, "are no devices", fix="give a number or jax.devices()"
        )
    return Mesh(np.array(devices), (SAMPLES,)) if len(devices) > 1 else None


def check_split(mesh: Mesh | None, n: int, batch_size: int | None, traced: bool) -> None:
    """Refuse what cannot be split over the mesh."""
    if mesh is None:
        return
    if n % mesh.size:
        problem = f"does not divide into {mesh.size} equal parts"
        raise BadArgument("n", n, problem, fix=f"use {n - n % mesh.size} samples")
    if batch_size is not None:
        problem = "needs gradients over all samples"
        raise BadArgument("devices", mesh.size, problem, fix="use gd, projgd, momentum or adam")
    if traced:
        raise BadArgument("devices", mesh.size, "does not go with trace", fix="use record")


def place(tree: Any, dtype: str, mesh: Mesh, *, axis: int | None = None) -> Any:
    """NumPy arrays on the mesh, cut along `axis` or whole on each device.

    Every device gets its own part straight from the host: no device ever holds the whole.
    """
    spec = PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, SAMPLES)
    sharding = NamedSharding(mesh, spec)

    def leaf(value: Array) -> Array:
        wanted = dtype if value.dtype.kind == "f" else value.dtype
        return jax.make_array_from_callback(
            value.shape, sharding, lambda index: np.asarray(value[index], wanted)
        )

    return jax.tree.map(lambda value: leaf(np.asarray(value)), tree)


def spread(program: Callable[..., Any], mesh: Mesh | None, axis: int) -> Callable[..., Any]:
    """`program(problem, *rest)` on every device with its own samples; the answer is the same.

    `axis` is that of the samples.
    """
    if mesh is None:
        return program

    def called(problem: Any, *rest: Any) -> Any:
        whole = PartitionSpec()
        own = PartitionSpec(*[None] * axis, SAMPLES)
        parts = type(problem)(start=whole, x=own, y=own, key=whole, validation=whole)
        return jax.shard_map(
            program,
            mesh=mesh,
            in_specs=(parts, *[whole for _ in rest]),
            out_specs=whole,
            check_vma=False,  # a loop's sums begin equal everywhere and differ from then on
        )(problem, *rest)

    return called
