"""The checked arguments of a training run: one clear message for each mistake, before any work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from ..core import (
    Array,
    BadArgument,
    Loss,
    check_choice,
    check_count,
    check_finite,
    check_samples,
    check_shape,
)
from ..core._checks import check_kind
from ..core._precision import DTYPES
from ..core._samples import Samples, as_samples, count_samples, sample_shapes, take_samples
from ..core._tree import blocks
from ..data import PositionalTokens
from ..models._base import check_parameters_of
from ..models._called import is_ours, name_of, output_of, shown_sample
from ._batches import Batches
from ._devices import check_split
from ._loop import Loop
from ._recorders import Recorder, recorders
from ._rules import UpdateRule, check_equal_heads
from ._tracers import Tracer, tracers

MOST_STEPS = 10**9
KEEP = ("average", "best")


def as_floats(argument: str, values: Any) -> Array:
    """`values` as a NumPy array of floating point numbers, without a copy where it is one."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise BadArgument(argument, values, "is no array", fix="use equal lengths") from error
    if array.dtype.kind not in "fiub":
        raise BadArgument(
            argument, f"array of {array.dtype}", "must hold numbers", fix="convert it"
        )
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def as_data(argument: str, x: Any, model: Any) -> Samples:
    """Samples as NumPy arrays: numbers for the models of this package, else ids and masks stay."""
    return as_floats(argument, x) if hasattr(model, "shapes") else as_samples(argument, x, None)


def as_labels(argument: str, y: Any, loss: Loss) -> Array:
    """Labels as floats; classes, and what a loss of the user's own takes, as they are."""
    if loss.labels not in ("classes", "any"):
        return as_floats(argument, y)
    labels = np.asarray(y)
    if loss.labels == "classes" and labels.dtype.kind not in "iu":
        shown = f"array of {labels.dtype}"
        raise BadArgument(argument, shown, "are no classes", fix="give whole numbers 0..k-1")
    return labels


def check_seeds(seeds: tuple[int, ...]) -> None:
    """At least one, none of them twice: the runs of equal seeds are equal."""
    if not seeds:
        raise BadArgument("seeds", seeds, "is empty", fix="for example seeds=0:5")
    for seed in seeds:
        check_count("seed", seed, least=0)
    if len(set(seeds)) < len(seeds):
        raise BadArgument("seeds", seeds, "names a seed twice", fix="for example seeds=0:5")


@dataclass(frozen=True, eq=False)
class Setup:
    """What `train` was asked to do, with the seeds as the first axis of `start`."""

    model: Any
    start: Any
    x: Samples
    y: Any
    rule: UpdateRule
    steps: int
    loss: Loss
    seeds: tuple[int, ...]
    validation: tuple[Samples, Any] | None
    recorders: tuple[Recorder, ...]
    every: int
    tracers: tuple[Tracer, ...]
    keep: tuple[str, ...]
    dtype: str
    chunk: int | None
    tokens: PositionalTokens | None
    mesh: Mesh | None = None
    batches: Batches | None = None

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        if self.steps > MOST_STEPS:
            problem = f"are more than {MOST_STEPS}: the loss of every step is kept"
            raise BadArgument("steps", self.steps, problem, fix="use fewer steps")
        if not callable(self.model) or isinstance(self.model, type):
            fix = "give a function of parameters and one sample"
            raise BadArgument("model", self.model, "is no such function", fix=fix)
        check_count("record_every", self.every)
        if self.chunk is not None:
            check_count("chunk", self.chunk)
        check_choice("dtype", self.dtype, DTYPES)
        for kept in self.keep:
            check_choice("keep", kept, KEEP)
        check_seeds(self.seeds)
        self._check_pair(self.x, self.y)
        self._check_validation()
        self._check_params()
        self._check_passes()
        check_split(self.mesh, self.n, self.rule.batch_size, bool(self.tracers))

    def _by_seed(self, x: Samples, y: Any) -> bool:
        """Whether seeds have their own samples, along a first axis.

        For models of this package the samples' rank tells, for others the axis of the labels.
        """
        if hasattr(self.model, "shapes"):
            return x.ndim == 4
        lengths = {np.shape(leaf)[:2] for leaf in jax.tree.leaves(x)}
        return y.ndim > 1 and len(y) == len(self.seeds) and lengths == {y.shape[:2]}

    @property
    def shared(self) -> bool:
        """Whether all seeds train on the same data."""
        return not self._by_seed(self.x, self.y)

    @property
    def n(self) -> int:
        """Training samples."""
        return self.y.shape[0 if self.shared else 1]

    @property
    def sample(self) -> Any:
        """One sample, as shapes and types."""
        one = self.x if self.shared else take_samples(self.x, 0)
        return sample_shapes(one, "float32")

    @property
    def T(self) -> int:
        """Tokens per sample: its longest axis but the last."""
        shapes = [leaf.shape[:-1] for leaf in jax.tree.leaves(self.sample)]
        return max([1, *(length for shape in shapes for length in shape)])

    def loop(self, alone: bool = False) -> Loop:
        """The loop that does this; a single seed's data have no axis of seeds."""
        own = self.validation is not None and self._by_seed(*self.validation)
        return Loop(
            self.model,
            self.loss,
            self.rule,
            self.n,
            self.T,
            self.chunk,
            self.keep,
            self.tokens,
            self.tracers,
            (not self.shared and not alone, own and not alone),
            self.mesh,
        )

    def held_out(self, alone: bool) -> tuple[Samples, Any] | None:
        """The validation samples; those of a single seed without a seed axis."""
        if self.validation is None or not alone or not self._by_seed(*self.validation):
            return self.validation
        found: tuple[Samples, Any] = take_samples(self.validation, 0)
        return found

    def _check_passes(self) -> None:
        """Tokens are of the form that is claimed, and tracers find a pass over all samples."""
        if self.tokens is not None:
            fix = "give a PositionalTokens, or leave it out"
            check_kind("tokens", self.tokens, PositionalTokens, fix=fix)
            self.tokens.check("x", self.x)
            if self.validation is not None:
                self.tokens.check("validation x", self.validation[0])
        if self.tracers and self.rule.batch_size is not None:
            problem = "needs gradients over all samples"
            raise BadArgument("trace", self.rule.name, problem, fix="use record")
        if self.batches is not None:
            self._check_batches()

    def _check_batches(self) -> None:
        """Batches that are given are those of all seeds, and no others are drawn."""
        if self.rule.batch_size is not None:
            problem = "draws batches of its own"
            raise BadArgument("rule", self.rule.name, problem, fix="use one without batch_size")
        if self.tracers:
            problem = "needs gradients over all samples"
            raise BadArgument("trace", "batches", problem, fix="use record")
        if not self.shared:
            problem = "has an axis of seeds, and batches have none"
            raise BadArgument("x", shown_sample(self.x), problem, fix="give all seeds the same")

    def _check_pair(self, x: Samples, y: Array) -> None:
        """Samples and labels, shared by all seeds or with the seeds as first axis."""
        if hasattr(self.model, "shapes"):
            if x.ndim == 4:
                check_shape("x", x, (len(self.seeds), None, None, None))
                check_shape("y", y, x.shape[:2])
            for one_x, one_y in zip(x, y, strict=True) if x.ndim == 4 else [(x, y)]:
                check_samples(one_x, one_y)
        else:
            as_samples("x", x, None)
            n = count_samples(x) if y.ndim else 0
            if y.ndim == 0 or len(y) != n:
                shown = f"array of shape {y.shape}"
                raise BadArgument("y", shown, f"does not fit {n} samples", fix="one row a sample")
            if y.dtype.kind == "f":
                check_finite("y", y)
        if self.loss.labels == "signs" and not np.all(np.abs(y) == 1):
            shown = f"array of shape {y.shape}"
            raise BadArgument("y", shown, "must hold only -1 and +1", fix="use sign labels")

    def _check_validation(self) -> None:
        if self.validation is None:
            if recorders["validation"] in self.recorders or tracers["validation"] in self.tracers:
                raise BadArgument("validation", None, "is needed to record it", fix="give (x, y)")
            return
        self._check_alike("validation", *self.validation)

    def _check_alike(self, name: str, x: Samples, y: Any) -> None:
        """Other samples and labels are of the kind of the training samples."""
        try:
            self._check_pair(x, y)
            if hasattr(self.model, "shapes"):
                check_shape("x", x, (*x.shape[:-2], *self.x.shape[-2:]))
            else:
                one = x if not self._by_seed(x, y) else take_samples(x, 0)
                if (seen := sample_shapes(one, "float32")) != self.sample:
                    problem = f"differ from the training samples, {shown_sample(self.sample)}"
                    raise BadArgument("x", shown_sample(seen), problem, fix="give the same kind")
        except BadArgument as error:
            argument = f"{name} {error.argument}"
            raise BadArgument(argument, error.value, error.problem, fix=error.fix) from None

    def batch(self, number: int, x: Any, y: Any) -> tuple[Samples, Array]:
        """One of the user's batches, checked like the samples themselves."""
        name = f"batch {number}"
        x, y = as_data(f"{name} x", x, self.model), as_labels(f"{name} y", y, self.loss)
        self._check_alike(name, x, y)
        if y.shape[1:] != self.y.shape[1 if self.shared else 2 :]:
            problem = f"has other labels than y, {self.y.shape}"
            raise BadArgument(f"{name} y", f"array of shape {y.shape}", problem, fix="one a sample")
        if self.tokens is not None:
            self.tokens.check(f"{name} x", x)
        check_split(self.mesh, len(y), None, False)
        return x, y

    def _check_params(self) -> None:
        check_parameters_of(self.model, self.start, "initial")
        expected = blocks(self.model.shapes()) if hasattr(self.model, "shapes") else {}
        seeds = len(self.seeds)
        fix = f"one start for each of {seeds} seeds, first axis the seeds: training.stack_seeds"
        for name, block in blocks(self.start).items():
            for leaf in jax.tree.leaves(block):
                check_shape(name, leaf, (seeds, *expected.get(name, leaf.shape[1:])), fix=fix)
                check_finite(name, leaf)
        self.rule.projection.check(self.start)
        check_equal_heads(self.rule, self.model, jax.tree.map(lambda leaf: leaf[0], self.start))
        first = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], "f4"), self.start)
        try:
            output = output_of(self.model, first, self.sample)
        except (TypeError, ValueError) as error:
            if not is_ours(self.model) or isinstance(error, BadArgument):
                raise
            shown = shown_sample(self.sample)
            problem = f"do not fit {name_of(self.model)}"
            fix = f"it was made for {self.model}: give it the T and d of the samples"
            raise BadArgument("x", f"samples of {shown}", problem, fix=fix) from error
        self._check_output(output)

    def _check_output(self, output: Any) -> None:
        """A number or a vector, which the loss takes together with the labels."""
        shape = output.shape
        if len(shape) > 1:
            problem = f"returns shape {shape}"
            raise BadArgument(
                "model", name_of(self.model), problem, fix="return a scalar or a vector"
            )
        labels = self.y.shape[1:] if self.shared else self.y.shape[2:]
        wanted = {"classes": (), "any": labels}.get(self.loss.labels, shape)
        if labels != wanted:
            fix = f"loss {self.loss.name} of outputs of shape {shape} takes labels {wanted or '()'}"
            problem = f"hold {labels} for each sample, beside outputs of shape {shape}"
            raise BadArgument("y", f"array of shape {self.y.shape}", problem, fix=fix)
        if self.loss.labels == "classes":
            if not shape:
                problem = "returns one number, where one for each class is due"
                raise BadArgument("model", name_of(self.model), problem, fix="return a vector")
            if self.y.min() < 0 or self.y.max() >= shape[0]:
                seen = f"classes from {self.y.min()} to {self.y.max()}"
                raise BadArgument("y", seen, f"do not fit {shape[0]} outputs", fix="use 0..k-1")

    def describe(self) -> dict[str, Any]:
        """What runs, in plain values."""
        return {
            "model": getattr(self.model, "name", name_of(self.model)),
            "model_settings": str(self.model),
            "loss": self.loss.name,
            "optimiser": self.rule.name,
            **{f"optimiser_{k}": v for k, v in self.rule.settings},
            "projection": str(self.rule.projection),
            "batch_size": self.rule.batch_size or (self.n if self.batches is None else "given"),
            "steps": self.steps,
            "n": self.n,
            "T": self.T,
            "dtype": self.dtype,
            "devices": 1 if self.mesh is None else self.mesh.size,
        }
