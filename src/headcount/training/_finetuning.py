"""Fine-tuning of a text classifier on sentences of different lengths.

A step sees a batch padded to one of few widths, so that few programs are compiled. Which heads
speak is an input of the program: all numbers of heads of one model share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from ..core import Array, BadArgument, cast, precision
from ..data import batches
from ..data._tokens import Batch
from ..models.text import TextClassifier, TextParams
from ._epochs import cross_entropy
from ._rules import UpdateRule

_EVALUATED = 64
"""Sentences at a time where nothing is trained."""


class FineTuningState(NamedTuple):
    """All that the rest of a run depends on, besides the data and the seed."""

    params: TextParams
    optimiser: Any
    step: Int[Array, ""]


@dataclass(frozen=True)
class FineTuning:
    """Cross-entropy of a classifier, minimised by `rule` on shuffled batches, in float32."""

    model: TextClassifier
    rule: UpdateRule

    def __post_init__(self) -> None:
        if self.rule.batch_size is None:
            raise BadArgument(
                "rule", self.rule.name, "has no batch size", fix="e.g. batch_size=32 in the rule"
            )

    def start(self, params: TextParams) -> FineTuningState:
        """Before the first step."""
        with precision("float32"):
            own = cast(params, "float32")
            return FineTuningState(own, self.rule.transform.init(own), jnp.int32(0))

    def order(
        self, numbers: Sequence[Sequence[int]], key: PRNGKeyArray, epochs: int
    ) -> Iterator[Batch]:
        """The batches of all epochs, each epoch's order from `key` and its number."""
        size = self.rule.batch_size
        assert size is not None
        for epoch in range(epochs):
            shuffle = jax.random.fold_in(key, epoch)
            yield from batches(numbers, size, self.model.longest, shuffle)

    def step(
        self, state: FineTuningState, batch: Batch, labels: Int[Array, "n"]
    ) -> tuple[FineTuningState, Float[Array, ""], Float[Array, ""]]:
        """One update; the batch's mean loss and share of right answers before it.

        The old state's memory is used for the new one.
        """
        with precision("float32"):
            return _step(
                _program(self.model), self.rule.transform, state, batch.x,
                labels[batch.index].astype(np.int32), batch.weight, self.model.gates,
            )  # fmt: skip

    def outputs(
        self, params: TextParams, numbers: Sequence[Sequence[int]]
    ) -> Float[np.ndarray, "n classes"]:
        """f of every sentence."""
        classes = params.readout.out.b.shape[0]
        found = np.empty((len(numbers), classes), np.float32)
        size = min(_EVALUATED, len(numbers))
        with precision("float32"):
            for batch in batches(numbers, size, self.model.longest):
                f = _outputs(_program(self.model), params, batch.x, self.model.gates)
                found[batch.index] = np.asarray(f)
        return found


def losses_and_hits(
    outputs: Float[Array, "n classes"], labels: Int[Array, "n"]
) -> tuple[Float[Array, "n"], Bool[Array, "n"]]:
    """Cross-entropy of every sentence, and whether its largest output is the label's."""
    losses = jax.vmap(cross_entropy)(outputs, labels)
    return losses, jnp.argmax(outputs, axis=1).astype(labels.dtype) == labels


def _program(model: TextClassifier) -> TextClassifier:
    """The model that the compiled programs know: which heads speak is told as they run."""
    return replace(model, kept=model.heads)


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
def _step(
    model: TextClassifier,
    transform: optax.GradientTransformation,
    state: FineTuningState,
    x: Int[Array, "b T 2"],
    labels: Int[Array, "b"],
    weight: Float[Array, "b"],
    gates: Float[Array, "heads"],
) -> tuple[FineTuningState, Float[Array, ""], Float[Array, ""]]:
    share = weight / jnp.sum(weight)

    def loss(params: TextParams) -> tuple[Float[Array, ""], Float[Array, ""]]:
        outputs = jax.vmap(model, in_axes=(None, 0, None))(params, x, gates)
        each, hits = losses_and_hits(outputs, labels)
        return share @ each, share @ hits.astype(each.dtype)

    (value, right), gradient = jax.value_and_grad(loss, has_aux=True)(state.params)
    with jax.numpy_dtype_promotion("standard"):  # optax counts its steps in int32
        update, optimiser = transform.update(gradient, state.optimiser, state.params)
    params = optax.apply_updates(state.params, update)
    return FineTuningState(params, optimiser, state.step + 1), value, right


@partial(jax.jit, static_argnums=0)
def _outputs(
    model: TextClassifier,
    params: TextParams,
    x: Int[Array, "b T 2"],
    gates: Float[Array, "heads"],
) -> Float[Array, "b classes"]:
    return jax.vmap(model, in_axes=(None, 0, None))(params, x, gates)
