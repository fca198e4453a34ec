"""The checked arguments of a training run: one clear message for each mistake, before any work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from ..core import (
    Array,
    BadArgument,
    Loss,
    cast,
    check_choice,
    check_count,
    check_samples,
    check_shape,
)
from ..core._precision import DTYPES
from ..core._tree import blocks
from ._recorders import Recorder, recorders
from ._rules import UpdateRule

KEEP = ("average", "best")


@dataclass(frozen=True, eq=False)
class Setup:
    """What `train` was asked to do, with the seeds as the first axis of `start`."""

    model: Any
    start: Any
    x: Float[Array, "... n T d"]
    y: Float[Array, "... n"]
    rule: UpdateRule
    steps: int
    loss: Loss
    seeds: tuple[int, ...]
    validation: tuple[Array, Array] | None
    recorders: tuple[Recorder, ...]
    every: int
    keep: tuple[str, ...]
    dtype: str
    chunk: int | None

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_count("record_every", self.every)
        check_choice("dtype", self.dtype, DTYPES)
        for kept in self.keep:
            check_choice("keep", kept, KEEP)
        if not self.seeds:
            raise BadArgument("seeds", self.seeds, "is empty", fix="give at least one seed")
        self._check_data()
        self._check_validation()
        self._check_params()

    @property
    def shared(self) -> bool:
        """Whether all seeds train on the same data."""
        return self.y.ndim == 1

    @property
    def n(self) -> int:
        """Training samples."""
        return self.x.shape[-3]

    @property
    def T(self) -> int:
        """Tokens per sample."""
        return self.x.shape[-2]

    def _check_data(self) -> None:
        if self.shared:
            check_samples(self.x, self.y)
        else:
            check_shape("x", self.x, (len(self.seeds), None, None, None))
            check_shape("y", self.y, (len(self.seeds), None))
            for x, y in zip(self.x, self.y, strict=True):
                check_samples(x, y)
        if self.loss.labels == "signs" and not np.all(np.abs(self.y) == 1):
            shown = f"array of shape {self.y.shape}"
            raise BadArgument("y", shown, "must hold only -1 and +1", fix="use sign labels")

    def _check_validation(self) -> None:
        if self.validation is None:
            if recorders["validation"] in self.recorders:
                raise BadArgument("validation", None, "is needed to record it", fix="give (x, y)")
            return
        x, y = self.validation
        for one_x, one_y in [(x, y)] if np.ndim(y) == 1 else zip(x, y, strict=True):
            check_samples(one_x, one_y)

    def _check_params(self) -> None:
        expected = blocks(self.model.shapes()) if hasattr(self.model, "shapes") else {}
        for name, leaf in blocks(self.start).items():
            if name in expected:
                check_shape(name, leaf, (len(self.seeds), *expected[name]))
        self.rule.projection.check(self.start)
        first = cast(jax.tree.map(lambda leaf: np.asarray(leaf)[0], self.start), "float32")
        sample = jax.ShapeDtypeStruct(self.x.shape[-2:], np.float32)
        try:
            output = jax.eval_shape(self.model, first, sample)
        except (TypeError, ValueError) as error:
            shown = f"samples of shape {self.x.shape[-2:]}"
            problem = f"do not fit {type(self.model).__name__}"
            raise BadArgument("x", shown, problem, fix="match T and d") from error
        if output.shape != ():
            problem = f"returns shape {output.shape}"
            raise BadArgument("model", self.model, problem, fix="return a scalar")

    def describe(self) -> dict[str, Any]:
        """What runs, in plain values."""
        return {
            "model": getattr(self.model, "name", type(self.model).__name__),
            "model_settings": str(self.model),
            "loss": self.loss.name,
            "optimiser": self.rule.name,
            **{f"optimiser_{k}": v for k, v in self.rule.settings},
            "projection": str(self.rule.projection),
            "batch_size": self.rule.batch_size or self.n,
            "steps": self.steps,
            "n": self.n,
            "T": self.T,
            "dtype": self.dtype,
        }
