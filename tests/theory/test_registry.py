"""Claims are found by every name that their paper gives them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headcount.core import BadArgument
from headcount.theory import claims
from headcount.theory._registry import names_in


@pytest.mark.parametrize(
    ("equations", "names"),
    [
        ("Lemma 1 = Lemma 4", {"lemma-1", "lemma-4"}),
        ("Lemmas 14 and 15", {"lemma-14", "lemma-15"}),
        (
            "Lemmas 2, 16, 17, Eqs. (6), (102)",
            {"lemma-2", "lemma-16", "lemma-17", "eq-6", "eq-102"},
        ),
        ("Proposition 2 (P1)", {"proposition-2"}),
        ("Corollaries 3 and 4", {"corollary-3", "corollary-4"}),
        ("(7)-(9)", {"eq-7", "eq-8", "eq-9"}),
        ("Secs. 5.3 and 7", set()),
    ],
)
def test_names_in_a_place(equations: str, names: set[str]) -> None:
    assert names_in(equations) == names


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
        name = f"eq-{number}"
        own = {
            claim.id.split("/")[1]
            for claim in claims.of_paper("deora2024")
            if name in {claim.id.split("/")[1], *names_in(claim.equations)}
        }
        assert listed == own, number
