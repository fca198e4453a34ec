"""Every test process computes in float64 on one thread."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# One thread per test process, as in the lab's workers; JAX reads this when it starts.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("PJRT_NPROC", "1")

import jax
import jaxtyping
import pytest

# Shapes and dtypes of annotations are checked at every call. Of the papers only the measurements:
# elsewhere there an instance stands for a batch of itself (a leading axis that its annotations do
# not name), and the slow sides are loops over numbers. The layers above have no annotated arrays.
ROOMS = tuple(
    f"papers/*/{part}"
    for part in ("model", "indrnn", "vit", "starts", "fast*", "kernel", "limit", "teacher",
                 "transport_map", "ar", "dm1", "dm2", "regression", "digit_pair")
)  # fmt: skip
"""What rooms bring to the engines."""
CHECKED = (
    "core",
    "models",
    "data",
    "training",
    "kernels",
    "theory",
    "lab",
    "papers/*/measurements",
    *ROOMS,
)
SOURCE = Path(__file__).resolve().parents[1] / "src"


def _files_of(layer: str) -> str:
    return f"{layer}.py" if layer in ROOMS else f"{layer}/**/*.py"


def _annotated_modules() -> list[str]:
    """Modules with annotated arrays; the hook would slow down every call in the others, too."""
    return [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for layer in CHECKED
        for path in sorted(
            (SOURCE / "headcount").glob(f"{layer}.py" if layer in ROOMS else f"{layer}/**/*.py")
        )
        if "jaxtyping" in path.read_text()
    ]


jaxtyping.install_import_hook(_annotated_modules(), "shape_checks.only_shapes")

jax.config.update("jax_enable_x64", True)

RELATIVE = {"float32": 1e-5, "float64": 1e-10}
"""The one table of tolerances for a fast path against its slow twin."""


@pytest.fixture
def relative() -> dict[str, float]:
    """Tolerances by dtype."""
    return RELATIVE


@pytest.fixture(autouse=True)
def no_silent_promotion() -> Iterator[None]:
    """In no test may anything promote ranks or dtypes silently."""
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        yield


@pytest.fixture(scope="module", autouse=True)
def programs_do_not_pile_up() -> Iterator[None]:
    """What the tests of a file compiled is forgotten: gigabytes in all, of little use to others."""
    yield
    jax.clear_caches()


@pytest.fixture
def wrong_shapes() -> Iterator[None]:
    """For tests that pass wrong arrays on purpose: the message must be our own."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def as_users_write() -> Iterator[None]:
    """Ranks and types promote, as they do for users."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield
