"""The models of deora2024: multi-head attention, the same by groups of equal heads, linear."""

from ...models import HeadGroups, LinearModel, MultiHeadAttention
from ...training import Recipe


def _heads(T: int, d: int, width: int, *, init: str, readout: str = "full") -> MultiHeadAttention:
    return MultiHeadAttention(T, d, width, readout)


def _groups(T: int, d: int, width: int, *, init: str, readout: str = "full") -> HeadGroups:
    return HeadGroups(T, d, (width,), readout)


def _linear(T: int, d: int, width: int, *, init: str) -> LinearModel:
    return LinearModel(T, d)


HEADS = Recipe(_heads, "zero", "logistic")
GROUPS = Recipe(_groups, "zero", "logistic")
LINEAR = Recipe(_linear, "zero", "logistic")
