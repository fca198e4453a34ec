"""What a configuration will take, known before anything is allocated: memory and time."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import jax
from rich.filesize import decimal

from ..core import HeadcountError, losses
from ..core._memory import available_memory
from ..core._tree import blocks
from ._build import build_data, build_model
from ._config import ProblemConfig, TrainConfig
from ._paths import gradient_path

_FLOPS = 50e9
"""Operations per second of one core; with `_BYTES` within a factor of four of six measured runs."""
_BYTES = 50e9
"""Bytes that one core reads and writes per second."""
_START = 3.0
"""Seconds to import and compile."""


@dataclass(frozen=True)
class TrainingPlan:
    """Tokens, features and parameters (of all seeds), bytes by purpose, and seconds.

    `data_bytes` are the samples in float64, `memory_bytes` everything at its peak. The seconds
    come from counting operations: they are a guess, good within a factor of a few.
    """

    T: int
    d: int
    parameters: int
    data_bytes: int
    memory_bytes: int
    available_bytes: int
    seconds: float | None

    @property
    def fits(self) -> bool:
        """Whether the peak stays below the available memory."""
        return self.memory_bytes <= self.available_bytes

    def to_dict(self) -> dict[str, Any]:
        """Every field."""
        return asdict(self)


def plan_training(config: ProblemConfig) -> TrainingPlan:
    """The plan of a configuration; only shapes are looked at.

    >>> plan = plan_training(TrainConfig(n=10**12))
    >>> plan.fits
    False
    """
    data = build_data(config)
    model = build_model(config, data)
    seeds = len(config.seeds)
    parameters = seeds * sum(math.prod(shape) for shape in blocks(model.shapes()).values())
    numbers = seeds * (config.n + config.n_val) * (data.T * data.d + 1)
    memory, seconds, available = 8 * (numbers + parameters), None, available_memory()
    if isinstance(config, TrainConfig):
        memory += _training_bytes(config, numbers, parameters)
        if memory <= available:  # XLA cannot count the operations of sizes beyond 64 bits
            seconds = _START + config.steps * seeds * _step_seconds(config, model, data)
            drawing = getattr(data, "operations", lambda n: 0)
            seconds += seeds * drawing(config.n + config.n_val) / _FLOPS
    return TrainingPlan(data.T, data.d, parameters, 8 * numbers, memory, available, seconds)


def require_memory(plan: TrainingPlan) -> None:
    """Refuse what does not fit, before any work."""
    if not plan.fits:
        raise HeadcountError(
            f"this run does not fit into memory: it needs {decimal(plan.memory_bytes)} "
            f"({decimal(plan.data_bytes)} of data, {plan.parameters} parameters), and "
            f"{decimal(plan.available_bytes)} are available; use fewer samples, steps, seeds or a "
            "smaller width"
        )


def _training_bytes(config: TrainConfig, numbers: int, parameters: int) -> int:
    """Copies in the run's dtype, the loss at every step, and what recorders keep."""
    item = 8 if config.dtype == "float64" else 4
    copies = 4 + len(config.keep) + {"adam": 2, "momentum": 1}.get(config.optimiser, 0)
    records = 1 + config.steps // (config.record_every or config.steps or 1)
    kept = records * parameters if "iterates" in config.record else 0
    trace = len(config.seeds) * (config.steps + 1)
    return item * (numbers + copies * parameters + trace + kept)


def _step_seconds(config: TrainConfig, model: Any, data: Any) -> float:
    """Operations of one gradient, counted for one and two samples, and what follows for all."""
    one, two = (_operations(config, model, data, count) for count in (1, 2))
    more = (config.batch_size or config.n) - 1
    flops, moved = (a + (b - a) * more for a, b in zip(one, two, strict=True))
    return max(flops / _FLOPS, moved / _BYTES)


def _operations(config: TrainConfig, model: Any, data: Any, count: int) -> tuple[float, float]:
    """Operations and bytes of the loss and its gradient on so many samples, as XLA counts them."""
    tokens = getattr(data, "token_form", None)
    path = gradient_path(model, losses[config.loss], n=count, T=data.T, tokens=tokens)

    def shaped(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, "float32")

    params = jax.tree.map(
        lambda shape: shaped(*shape), model.shapes(), is_leaf=lambda leaf: type(leaf) is tuple
    )
    program = jax.jit(lambda p, x, y: path.loss_and_gradient(p, path.prepare(x, y)))
    counted = (
        program.lower(params, shaped(count, data.T, data.d), shaped(count)).cost_analysis() or {}
    )
    return counted.get("flops", 0.0), counted.get("bytes accessed", 0.0)
