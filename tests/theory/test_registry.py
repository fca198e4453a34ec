"""Claims are found by every name that their paper gives them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headcount.core import BadArgument
from headcount.theory import claims


def test_another_name_of_the_paper_leads_to_the_claim() -> None:
    assert claims["deora2024/lemma-4"] is claims["deora2024/lemma-1"]


def test_a_statement_in_parts_lists_them() -> None:
    with pytest.raises(BadArgument, match="corollary-1-1, deora2024/corollary-1-2"):
        claims["deora2024/lemma-6"]


def test_an_own_id_comes_before_another_name() -> None:
    assert claims["deora2024/lemma-2"].id == "deora2024/lemma-2"


def test_every_display_that_the_page_of_deora2024_lists_leads_to_its_claims() -> None:
    page = (Path(__file__).parents[2] / "docs" / "deora2024.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \((\d+)\) \| ([^|]*) \|", page, re.MULTILINE)
    numbers = [int(number) for number, _ in rows]
    asked = [*range(6, 25), *range(67, 72), *range(106, 112), 119, 121, 122, 129, 132]
    assert numbers == asked
    for number, cell in rows:
        listed = set(re.findall(r"`([^`]+)`", cell))
        assert listed == claims.meant_by("deora2024", f"eq-{number}"), number
