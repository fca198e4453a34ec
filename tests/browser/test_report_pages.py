"""The report in a browser: no complaints, readable on a phone, accessible, filters that filter."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from headcount import lab, report, theory
from headcount.report.site import build_site

sys.path.insert(0, str(Path(__file__).parents[1] / "lab"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import toy_figure

    results = tmp_path_factory.mktemp("results")
    plan = lab.make_plan(toy_figure.figure, "smoke")
    lab.run_plan(plan, results, workers=0)
    store = lab.Store(results)
    report.write_files(lab.collect(plan, store), store)
    asked = [
        {"id": c.id, "variant": c.default, "outcome": "holds", "ratio": 10.0**-k, "message": "m"}
        for k, c in enumerate(theory.claims.of_paper("wu2023")[:6])
    ]
    slack = [{"factor": "c", "bound": 10.0, "measured": 1.0, "orders": 1.0}]
    audit = {"command": "headcount audit", "claims": asked, "slack": slack}
    (results / "audits").mkdir()
    (results / "audits" / "wu2023.json").write_text(json.dumps(audit))
    return build_site(results, tmp_path_factory.mktemp("site")).folder


PAGES = [
    "index.html",
    "claims.html",
    "claims-wu2023.html",
    "errata.html",
    "heads.html",
    "figures/toy-mean-smoke.html",
]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_pages_read_well(site: Path, reads_well: Any, page: str, width: int, scheme: str) -> None:
    reads_well((site / page).as_uri(), width, scheme)


def test_filters_and_keys_of_claims(site: Path, open_page: Any) -> None:
    page = open_page((site / "claims-wu2023.html").as_uri())
    page.select_option("select[name=outcome]", "holds")
    assert page.inner_text("#count") == f"6 of {len(theory.claims.of_paper('wu2023'))} claims"
    assert page.locator(".claim:visible").count() == 6
    page.select_option("select[name=outcome]", "")
    page.select_option("select[name=mark]", "false as printed")
    assert page.locator(".claim:visible").count() == theory.refuted_by_role("wu2023")["statement"]
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.name") == "words"
    assert page.input_value("input[name=words]") == ""
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**/claims-deora2024.html")
    page.goto((site / "claims-wu2023.html").as_uri() + "#mark=refuted")
    assert page.input_value("select[name=mark]") == "refuted"


def test_numbers_can_be_downloaded(site: Path, open_page: Any) -> None:
    page = open_page((site / "index.html").as_uri())
    page.click("text=toy/mean")
    with page.expect_download() as download:
        page.click("text=plotted.csv")
    assert Path(download.value.path()).read_text().startswith("quantity,")
