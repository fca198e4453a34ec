"""Batches that the user brings, one a step: data need not fit into memory."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..core import BadArgument

Batches = Iterable[tuple[Any, Any]] | Callable[[int], Iterable[tuple[Any, Any]]]
"""Pairs (x, y) of samples and labels, or a function of the batch number that begins there."""


class BatchesEnded(UserWarning):
    """There were fewer batches than steps: the run ends with the steps that it has."""


class Feed:
    """The batches from number `position` on, as a resumed run needs them.

    What can be iterated again (a list, a loader) begins anew at its end; an iterator does not.
    What is no function of the position is read up to it.
    """

    def __init__(self, batches: Batches, position: int) -> None:
        if callable(batches):
            found = batches(position)
        elif isinstance(batches, Iterable):
            again = itertools.repeat(batches) if iter(batches) is not batches else [batches]
            found = itertools.islice(_chained(again), position, None)
        else:
            fix = "give an iterable of (x, y), or a function of the position that gives one"
            raise BadArgument("batches", type(batches).__name__, "is no iterable", fix=fix)
        self._rest, self.position = iter(found), position

    def take(self, steps: int) -> tuple[Any, Any] | None:
        """The next one; None, with a warning, if there is none for one of `steps` steps."""
        batch = next(self._rest, None)
        if batch is None:
            if self.position == 0:
                raise BadArgument("batches", 0, "hold no batch", fix="give one for each step")
            text = f"batches ended after {self.position} of {steps} steps"
            warnings.warn(f"{text}; a list of them would begin anew", BatchesEnded, stacklevel=4)
            return None
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            what = f"batch {self.position}: {type(batch).__name__}"
            raise BadArgument(
                "batches", what, "is no pair of samples and labels", fix="give (x, y)"
            )
        self.position += 1
        return batch[0], batch[1]


def _chained(rounds: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """One round after another, until one is empty."""
    for one in rounds:
        empty = True
        for batch in one:
            empty = False
            yield batch
        if empty:
            return
