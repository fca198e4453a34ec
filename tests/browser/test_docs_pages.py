"""The documentation site in a browser: no complaints, readable on a phone, accessible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    "index.html", "tutorials/deora2024.html", "architecture.html", "performance.html",
    "reference/claims/arda2026/theorem-1.html", "reference/figures/wu2023/fig2.html",
    "reference/api/lab.html",
]  # fmt: skip


@pytest.fixture(scope="module")
def site(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("docs")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return folder


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")])
def test_pages_read_well(site: Path, reads_well: Any, page: str, width: int, scheme: str) -> None:
    reads_well((site / page).as_uri(), width, scheme)
