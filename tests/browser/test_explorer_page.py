"""The explorer in a browser: load, move a slider, start a run, see the curve."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LONG = 120_000
"""Milliseconds: the first look compiles."""


@pytest.fixture
def address(browser: Any) -> Iterator[str]:
    pytest.importorskip("marimo", reason="no marimo: pip install '.[explore]'")
    code = "from headcount.cli import main; main(['explore', '--no-browser'])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    server = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert server.stdout is not None
    try:
        yield server.stdout.readline().split()[-1]
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)
        server.stdout.close()


def test_sliders_bounds_and_a_run(
    address: str, open_page: Any, serious: Any, tmp_path: Path
) -> None:
    without_token = open_page(address.split("?")[0])
    assert "What the theorems say" not in without_token.content()
    page = open_page(address)
    page.wait_for_selector("text=What the theorems say at width 64", timeout=LONG)
    assert "arda2026/theorem-1" in page.inner_text("table >> nth=0")
    before = page.inner_text("table >> nth=0")
    slider = page.locator("[role=slider]").first
    slider.focus()
    slider.press("ArrowRight")
    page.wait_for_selector("text=What the theorems say at width 128", timeout=LONG)
    assert page.inner_text("table >> nth=0") != before
    spent = re.search(r"Evaluated in (\d+) ms", page.inner_text("body"))
    assert spent is not None
    page.click("text=Train this model")
    page.wait_for_selector("[role=img][aria-label^='Loss against steps']", timeout=LONG)
    page.wait_for_selector("text=Finished: loss", timeout=LONG)
    page.wait_for_selector("[role=img][aria-label^='Attention map']", timeout=LONG)
    page.screenshot(path=str(tmp_path / "explorer.png"), full_page=True)
    assert page.complaints == []
