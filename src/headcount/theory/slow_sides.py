"""A claim seen through its slow twin, for any kind of number."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ._claim import Claim, Kind
from ._verdict import ROUNDING
from .slow import Arithmetic

Data = Mapping[str, Any]


def slow_data(num: Arithmetic, fields: Data) -> dict[str, Any]:
    """The instance's arrays as nested lists of `num` numbers; names and counts as they are."""
    return {
        name: value if isinstance(value, (str, int)) else _numbers(num, np.asarray(value).tolist())
        for name, value in fields.items()
    }


def _numbers(num: Arithmetic, value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(num, entry) for entry in value]
    return num.number(value)


class SlowCheck(NamedTuple):
    """One hypothesis in slow arithmetic: it holds when value <= limit."""

    name: str
    value: Any
    limit: Any

    @property
    def strictly(self) -> bool:
        """Whether value <= limit with no allowance for rounding; NaN does not."""
        return bool(self.value <= self.limit)


def slow_checks(claim: Claim, num: Arithmetic, fields: Data, variant: str) -> list[SlowCheck]:
    """The hypotheses of a claim that have slow twins, measured by them."""
    data = slow_data(num, fields)
    return [
        SlowCheck(h.name, h.naive(num, data), h.slow_limit(num, data, variant))
        for h in claim.asked(variant)
        if h.naive is not None
    ]


def slow_sides(
    claim: Claim, num: Arithmetic, fields: Data, variant: str
) -> tuple[list[Any], list[Any]]:
    """Both sides by the slow twin, as lists of equal length, the claim's factor included."""
    assert claim.naive is not None
    lhs, rhs = claim.naive(num, slow_data(num, fields), variant)
    left = list(lhs) if isinstance(lhs, (list, tuple)) else [lhs]
    right = list(rhs) if isinstance(rhs, (list, tuple)) else [rhs]
    if claim.factor != 1.0:
        right = [num.number(claim.factor) * entry for entry in right]
    return left, right * (len(left) // len(right)) if len(right) < len(left) else right


def slow_ratio(claim: Claim, num: Arithmetic, fields: Data, variant: str) -> Any:
    """The ratio as `ratio_of` defines it, by the slow twin."""
    left, right = slow_sides(claim, num, fields, variant)
    if claim.kind is Kind.IDENTITY:
        sizes = [num.absolute(x) for x in (*left, *right)]
        size = num.largest([*sizes, num.number(1e-300)])
        gap = num.largest([num.absolute(x - y) for x, y in zip(left, right, strict=True)])
        return gap / (num.number(ROUNDING) * size)
    return num.largest([_ratio(num, x, y) for x, y in zip(left, right, strict=True)])


def _ratio(num: Arithmetic, lhs: Any, rhs: Any) -> Any:
    if lhs == 0:
        return num.number(0 if rhs >= 0 else "inf")
    if rhs > 0:
        return lhs / rhs
    return rhs / lhs if lhs < 0 else num.number("inf")
