"""Every test runs in float64 with strict promotion, so that silent conversions fail."""

from __future__ import annotations

import jax
import pytest

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "allow")
jax.config.update("jax_numpy_dtype_promotion", "standard")

RELATIVE = {"float32": 1e-5, "float64": 1e-10}
"""The one table of tolerances for a fast path against its slow twin."""


@pytest.fixture
def relative() -> dict[str, float]:
    """Tolerances by dtype."""
    return RELATIVE
