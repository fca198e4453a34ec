"""The explorer in a browser: load, move a slider, start a run, see the curve."""

from __future__ import annotations

import os
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
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 130
        server.stdout.close()


def test_sliders_curves_and_a_run(address: str, open_page: Any, serious: Any) -> None:
    without_token = open_page(address.split("?")[0])
    assert "Training loss at width" not in without_token.content()
    page = open_page(address, 1280)
    page.wait_for_selector("text=Training loss at width 64", timeout=LONG)
    page.wait_for_selector(".lamps", timeout=LONG)
    before = page.inner_html(".plot >> nth=0")
    slider = page.locator("[role=slider]").first
    slider.focus()
    slider.press("ArrowRight")
    page.wait_for_selector("text=Training loss at width 128", timeout=LONG)
    assert page.inner_html(".plot >> nth=0") != before
    page.wait_for_url("**width=128**", timeout=LONG)  # the state is in the address
    page.click("text=Train this model")
    page.wait_for_selector("text=Finished: loss", timeout=LONG)
    page.wait_for_selector("[role=img][aria-label^='Loss against steps at width 128']")
    page.wait_for_selector("[role=img][aria-label^='Attention of head 1']")
    page.wait_for_selector(".dot.ran")
    slider.focus()
    slider.press("ArrowRight")
    page.wait_for_selector("text=Training loss at width 256", timeout=LONG)
    assert page.locator(".dot.ran").count() == 1  # it stays
    assert page.complaints == []
    assert serious(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_address_brings_its_state_and_it_fits_a_phone(
    address: str, open_page: Any, serious: Any, scheme: str
) -> None:
    page = open_page(f"{address}&paper=deora2024&width=4096&n=20", 390, scheme)
    page.wait_for_selector("text=Training loss at width 4,096", timeout=LONG)
    page.wait_for_selector(".lamps", timeout=LONG)
    assert page.locator("[role=main]").count() == 1
    for part in (".plot", ".lamps", ".controls", ".paper"):
        box = page.locator(part).first.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    assert page.complaints == []
    assert serious(page) == []
