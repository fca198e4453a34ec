"""The checks of annotated shapes are on: a wrong array is refused in every layer they cover."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jaxtyping import TypeCheckError

from headcount import core, data, kernels, training
from headcount.papers import arda2026
from headcount.theory import families

FLAT = np.ones(6)
MODEL = arda2026.PooledAttention(2, 4)
PARAMS = arda2026.paired(MODEL, 0)
WRONG: dict[str, Callable[[], Any]] = {
    "core": lambda: core.self_attention(FLAT, np.eye(2)),
    "models": lambda: MODEL(PARAMS, FLAT),
    "data": lambda: data.clip_to_ball(np.ones(3, int)),
    "papers": lambda: arda2026.TransportTeacher(T=3, d=2, pool=8).transport(0, FLAT),
    "training": lambda: training.cross_entropy(np.ones((2, 3)), np.int32(1)),
    "kernels": lambda: kernels.smallest_eigenvalue(FLAT),
    "theory": lambda: families.into_ball(np.ones(3, int)),
}


@pytest.mark.parametrize("layer", WRONG)
def test_a_wrong_shape_is_refused(layer: str) -> None:
    with pytest.raises(TypeCheckError):
        WRONG[layer]()
