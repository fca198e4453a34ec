"""Which sizes are possible: those that no space refuses, such as an even number of paired heads."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping

from ..core import BadArgument
from ._spaces import Size, Sizes, Space

_LOOKED_AT = 1000
"""Choices of sizes among which one must be possible."""


def refusal(spaces: Iterable[Space], sizes: Sizes) -> str | None:
    """Why one of the spaces has no point at these sizes; None if all have."""
    return next(filter(None, (space.refuses(sizes) for space in spaces)), None)


def first_possible(spaces: Collection[Space], named: Mapping[str, Size]) -> dict[str, int]:
    """The lowest sizes that no space refuses; where all are refused, the first refusal is told."""
    ranges = [range(size.low, size.high + 1) for size in named.values()]
    refusals = []
    for values in itertools.islice(itertools.product(*ranges), _LOOKED_AT):
        sizes = dict(zip(named, values, strict=True))
        refusals.append(refusal(spaces, sizes))
        if refusals[-1] is None or not named:  # without a range the space itself will complain
            return sizes
    problem = f"is not possible: {refusals[0]}"
    raise BadArgument("size", ", ".join(named), problem, fix="change the range")


def check_sizes(named: Mapping[str, Size], sizes: Mapping[str, int]) -> dict[str, int]:
    """One choice of sizes, each from its range: sizes are part of the domain."""
    if set(sizes) != set(named):
        raise BadArgument("sizes", dict(sizes), "names other sizes", fix=f"give {list(named)}")
    for name, size in named.items():
        if sizes[name] not in range(size.low, size.high + 1):
            problem = f"{name} = {sizes[name]} is not from {size.low} to {size.high}"
            raise BadArgument("sizes", dict(sizes), problem, fix="take a size that is declared")
    return dict(sizes)
