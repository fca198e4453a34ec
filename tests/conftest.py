"""Every test process computes in float64 on one thread."""

from __future__ import annotations

import os

# One thread per test process, as in the lab's workers; JAX reads this when it starts.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("PJRT_NPROC", "1")

import jax
import pytest

jax.config.update("jax_enable_x64", True)

RELATIVE = {"float32": 1e-5, "float64": 1e-10}
"""The one table of tolerances for a fast path against its slow twin."""


@pytest.fixture
def relative() -> dict[str, float]:
    """Tolerances by dtype."""
    return RELATIVE
