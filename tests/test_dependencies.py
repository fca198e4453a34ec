"""Every package that is declared is used."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
MODULES = {"python-flint": "flint"}
SOURCE = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.py"))


@pytest.mark.parametrize("requirement", DECLARED)
def test_is_imported(requirement):
    package = re.split(r"[<>=~!\[]", requirement)[0]
    module = MODULES.get(package, package)
    imported = re.search(rf"^\s*(import|from) {module}\b", SOURCE, flags=re.MULTILINE)
    assert imported or f'engine="{module}"' in SOURCE  # xarray imports its engines
