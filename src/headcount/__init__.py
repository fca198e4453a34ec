"""Headcount: the theory of shallow Transformers, executable.

Sub-packages are imported on first use, so that `import headcount` does not load JAX.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__version__ = "0.1.0"

_LAYERS = (
    "core",
    "models",
    "data",
    "training",
    "kernels",
    "theory",
    "lab",
    "papers",
    "report",
    "explore",
    "cli",
)

__all__ = ["__version__", *_LAYERS]


def __getattr__(name: str) -> ModuleType:
    if name in _LAYERS:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
