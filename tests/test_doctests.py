"""The examples in docstrings run, and print what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
MODULES = [
    ".".join(file.relative_to(SOURCE).with_suffix("").parts)
    for file in sorted(SOURCE.rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("module", MODULES)
def test_examples(module):
    done = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS)
    assert done.attempted > 0
    assert done.failed == 0


@pytest.mark.parametrize("layer", ["core", "kernels", "lab", "theory", "training"])
def test_every_layer_of_mathematics_has_some(layer):
    assert any(module.startswith(f"headcount.{layer}.") for module in MODULES)
