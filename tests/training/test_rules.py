"""Update rules against recursions written out in NumPy, on the linear model <U, X>."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headcount.core import BadArgument
from headcount.training import (
    NoProjection,
    adam,
    from_optax,
    momentum,
    optimisers,
    projgd,
    projsgd,
    sgd,
)

STEPS, SEED, RHO = 6, 11, 0.2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: projgd(0.1, NoProjection()), "projection = .*is missing, and projgd projects"),
        (lambda: projsgd(0.1, None), "projection = None: is missing, and projsgd projects"),
        (lambda: sgd(0.1, 0), "batch_size = 0: must be a whole number >= 1"),
        (lambda: adam(0.1, batch_size=0), "batch_size = 0: must be"),
        (lambda: momentum(0.1, batch_size=1.5), "batch_size = 1.5: must be"),
        (lambda: momentum(0.1, beta=1.0), "beta = 1.0: must be below 1"),
        (lambda: momentum(0.1, beta=-0.1), "beta = -0.1: must be"),
        (lambda: adam(0.1, b2=1.0), "b2 = 1.0: must be below 1"),
        (lambda: adam(0.1, eps=0.0), "eps = 0.0: must be a finite number > 0"),
        (lambda: from_optax("adam"), "transform = 'adam': is no optax transformation"),
        (lambda: optimisers["adan"], "optimiser = 'adan': is not known; did you mean adam"),
    ],
)
def test_bad_rules_are_named(make: Callable[[], object], message: str) -> None:
    with pytest.raises(BadArgument, match=message):
        make()
