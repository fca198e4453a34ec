"""A real browser, where one is installed: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="no Playwright: pip install '.[browser]'"
    )
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium on this machine: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """Opens an address at a width and in a colour scheme; complaints of the page are collected."""
    contexts = []

    def open_at(address: str, width: int = 1200, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda m: m.type == "error" and page.complaints.append(m.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(address)
        return page

    yield open_at
    for context in contexts:
        context.close()


@pytest.fixture
def reads_well(open_page: Any, serious: Any) -> Any:
    """Opens a page and asserts: no wider than the window, no complaint, nothing serious by axe."""

    def check(address: str, width: int, scheme: str) -> None:
        opened = open_page(address, width, scheme)
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
        assert opened.complaints == []  # before axe, which reads style sheets in ways files refuse
        assert serious(opened) == []

    return check


@pytest.fixture
def serious() -> Any:
    """What axe finds on a page, of serious or critical impact."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()

    def found(page: Any) -> list[str]:
        violations = axe.run(page).response["violations"]
        return [
            f"{v['id']}: {v['help']}: {v['nodes'][0]['html'][:200]}"
            for v in violations
            if v["impact"] in ("serious", "critical")
        ]

    return found
