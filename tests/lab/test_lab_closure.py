"""The code behind a measurement: what its module imports, and the versions of libraries."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from headcount.lab import _closure, _record, _remote
from headcount.lab._closure import Code, code_behind

FILES = {
    "smith/__init__.py": "",
    "smith/figure.py": "import numpy\nfrom . import parts\ndef measure(): from smith.deep import a",
    "smith/parts.py": "import flat_helper, json\nfrom headcount import core\n",
    "smith/deep/__init__.py": "from .. import constants as k\n",
    "smith/deep/a.py": "from .b import value\n",
    "smith/deep/b.py": "value = 1.0\n",
    "smith/constants.py": "",
    "smith/unused.py": "",
    "flat_helper.py": "import scipy.optimize\n",
    "flat_unused.py": "",
}


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Code]:
    """The code behind smith.figure as a fresh process would see it."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    def fresh() -> Code:
        importlib.invalidate_caches()
        code_behind.cache_clear()
        _closure._hash.cache_clear()
        return code_behind("smith.figure")

    return fresh


def test_a_change_of_anything_imported_changes_the_hash(
    tmp_path: Path, look: Callable[[], Code]
) -> None:
    before = look()
    versions = {name: metadata.version(name) for name in ("numpy", "scipy")}
    assert before.libraries == versions
    for name in FILES:
        (tmp_path / name).write_text(f"{FILES[name]}\nchanged = 1\n")
        assert (look().hash != before.hash) is ("unused" not in name), name
        (tmp_path / name).write_text(FILES[name])
    assert look() == before
    assert "smith" not in sys.modules  # nothing of it has run


def test_a_worker_with_another_helper_differs(tmp_path: Path, look: Callable[[], Code]) -> None:
    def found() -> dict[str, str]:
        look()
        _remote._measurement_code.cache_clear()
        return _remote.environment(["smith.figure:measure"])

    here = found()
    assert {"optax", "scipy", "matfree", "numpy", "jax", "jaxlib"} < set(here)
    (tmp_path / "smith" / "deep" / "b.py").write_text("value = 2.0\n")
    told = _remote.differences(here, found())
    assert told.startswith("smith.figure:measure is ")
    for name in [name for name in sys.modules if name.startswith(("smith", "flat_"))]:
        del sys.modules[name]


NO_NUMBERS = {
    *("beartype", "distributed", "h5py", "jaxtyping", "latex2mathml", "matplotlib", "pooch"),
    *("pydantic", "requests", "rich", "safetensors", "submitit", "xarray"),
}
"""Libraries that check, read, fetch, carry or draw."""
LAYERS = ("core", "models", "data", "kernels", "training", "theory", "lab", "papers")


def test_every_library_of_ours_that_computes_is_compared() -> None:
    modules = {name.replace("python-", "") for name in _record._PACKAGES}
    source = Path(_record.__file__).parents[1]
    found = set[str]()
    for layer in LAYERS:
        for file in source.glob(f"{layer}/**/*.py"):
            tree = ast.parse(file.read_text())
            for node in ast.walk(tree):
                if isinstance(node, ast.Import):
                    found |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    found.add(str(node.module).partition(".")[0])
    libraries = found - set(sys.stdlib_module_names)
    assert libraries - modules - NO_NUMBERS == set()
    assert modules - libraries <= {"jaxlib", "headcount"}
