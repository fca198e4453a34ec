"""The models of deora2024: multi-head attention, the same by groups of equal heads, linear."""

import math
from collections.abc import Callable

from jaxtyping import Float

from ...core import Array, check_count, normal, stream
from ...data import Dataset
from ...training import Recipe
from .model import HeadGroups, LinearModel, MultiHeadAttention, MultiHeadParams
from .starts import two_phase, two_phase_groups

Fresh = Callable[[int], Dataset]


def _heads(T: int, d: int, width: int, *, init: str, readout: str = "full") -> MultiHeadAttention:
    return MultiHeadAttention(T, d, width, readout)


def _groups(T: int, d: int, width: int, *, init: str, readout: str = "full") -> HeadGroups:
    return HeadGroups(T, d, (width,), readout)


def _linear(T: int, d: int, width: int, *, init: str) -> LinearModel:
    return LinearModel(T, d)


def _two_phase(
    model: MultiHeadAttention, seed: int, fresh: Fresh, *, n_init: int = 100
) -> tuple[MultiHeadAttention, MultiHeadParams]:
    """The first phase on n_init fresh samples [deora2024, Sec. 5.1]."""
    check_count("n_init", n_init)
    x, y = fresh(n_init)
    return model, two_phase(model, seed, x=x, y=y)


def _two_phase_groups(
    model: HeadGroups, seed: int, fresh: Fresh, *, n_init: int = 100
) -> tuple[HeadGroups, MultiHeadParams]:
    """The same as its two sign classes, whose sizes depend on the seed."""
    check_count("n_init", n_init)
    x, y = fresh(n_init)
    return two_phase_groups(model.T, model.d, model.H, seed, x=x, y=y, readout=model.readout)


def _gaussian(
    model: MultiHeadAttention, seed: int, fresh: Fresh, *, scale: float = 1.0
) -> tuple[MultiHeadAttention, MultiHeadParams]:
    """Independent heads, not in the paper: E|U_h|^2 = E|W_h|^2 = scale^2 for every H.

    Phi~ is then a sum of H independent terms over sqrt(H), of order scale for tokens of norm
    sqrt(d).
    """
    shapes = model.shapes()

    def block(name: str, shape: tuple[int, ...]) -> Float[Array, "H ..."]:
        draws = normal(stream(seed, "student", name), shape)
        return scale / math.sqrt(math.prod(shape[1:])) * draws

    return model, MultiHeadParams(block("U", shapes.U), block("W", shapes.W))


def _one(steps: int, n: int, loss: str) -> float:
    """eta = 1, as in Fig. 2 [deora2024, App. G]."""
    return 1.0


HEADS = Recipe(
    _heads,
    "zero",
    "logistic",
    "dm1",
    step_size=_one,
    starts={"two-phase": _two_phase, "gaussian": _gaussian},
)
GROUPS = Recipe(
    _groups, "zero", "logistic", "dm1", step_size=_one, starts={"two-phase": _two_phase_groups}
)
LINEAR = Recipe(_linear, "zero", "logistic", "dm1", step_size=_one)
