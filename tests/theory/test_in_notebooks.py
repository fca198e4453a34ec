"""What claims, verdicts, findings and certificates show at the prompt and in a notebook."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from headcount.core import papers
from headcount.core._shown import LINE, html_curve, html_table, one_line
from headcount.lab import Finding, Source, figures
from headcount.theory import Certificate, Outcome, Verdict, claims
from headcount.theory._audit import Audit
from headcount.theory._claim import Check
from headcount.theory._count import Answer
from headcount.theory._falsify import Falsification
from headcount.theory._in_notebooks import Answers
from headcount.theory._prove import Status
from headcount.theory._recheck import Recheck

EVIL = '<script>alert("1")</script> & more'
CHECKS = (Check(EVIL, 2.0, 1.0),)
VERDICT = Verdict(EVIL, EVIL, Outcome.HOLDS, EVIL, 1.0, 2.0, 0.5, CHECKS)
CERTIFICATE = Certificate(EVIL, EVIL, "instance", {"ratio": 2.0}, {EVIL: 1}, CHECKS, note=EVIL)
RESULTS = [
    VERDICT,
    CERTIFICATE,
    Audit(EVIL, None, (0, 1), (VERDICT,), (), 1.0),  # type: ignore[arg-type]
    Answer("width", EVIL, EVIL, 1e9, EVIL, trivial=1.0),
    Falsification(EVIL, EVIL, 2.0, True, 10, EVIL, 1.0, certificate=CERTIFICATE),
    Recheck(EVIL, EVIL, Status.PROVED, 2.0, EVIL, EVIL),
    Finding(EVIL, "confirmed", 1.0, (0.5, 1.5), (0.0, 2.0), EVIL, Source(EVIL, EVIL)),
]


def parsed(html: str) -> ElementTree.Element:
    """HTML that is also XML: every tag is closed, every character that matters escaped."""
    return ElementTree.fromstring(f"<div>{html}</div>")


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_one_line_at_the_prompt_and_escaped_in_a_notebook(result) -> None:
    text = repr(result)
    assert text.startswith(f"{type(result).__name__}(")
    assert len(text) <= LINE
    assert "\n" not in text
    page = parsed(result._repr_html_())
    assert not list(page.iter("script"))
    assert EVIL in "".join(page.itertext())


def test_every_claim_is_one_line_and_typeset() -> None:
    for name, claim in claims.items():
        assert repr(claim).startswith(f"Claim({name}")
        assert len(repr(claim)) <= LINE
        page = parsed(claim._repr_html_())
        rows = ["".join(row.itertext()) for row in page.iter("tr")][1:]
        assert len(rows) == len(claim.variants)
        for row, (form, variant) in zip(rows, claim.forms.items(), strict=True):
            assert row.startswith(form)
            assert variant.called in row
        assert claim._repr_latex_() == f"$$ {claim.latex} $$"
        assert page.find("{http://www.w3.org/1998/Math/MathML}math") is not None


def test_a_claim_of_somebody_else_is_escaped() -> None:
    _, ours = next(claims.items())
    theirs = replace(ours, title=EVIL, statement=EVIL, latex="")
    page = parsed(theirs._repr_html_())
    assert not list(page.iter("script"))
    assert EVIL in "".join(page.itertext())
    assert theirs._repr_latex_() is None


def test_what_was_refuted_is_told_at_the_prompt() -> None:
    assert "refuted: printed" in repr(claims["arda2026/lemma-5-step"])


def test_answers_are_a_list_and_a_table() -> None:
    answers = Answers([Answer("width", "smith2030/a", "printed", None, EVIL)])
    assert isinstance(answers, list)
    heads, row = parsed(answers._repr_html_()).iter("tr")
    assert [cell.text for cell in heads] == ["theorem", "form", "width", "note"]
    assert [cell.text for cell in row] == ["smith2030/a", "printed", "never", EVIL]


@pytest.mark.parametrize("registry", [claims, figures, papers])
def test_registries_are_tables(registry) -> None:
    assert len(repr(registry)) <= LINE
    rows = list(parsed(registry._repr_html_()).iter("tr"))
    assert len(rows) == len(registry) + 1
    assert rows[1][0].text == next(iter(registry))
    assert rows[1][1].text


def test_a_figure_is_one_line() -> None:
    assert all(len(repr(figure)) <= LINE for _, figure in figures.items())


def test_a_line_keeps_the_parts_that_fit() -> None:
    assert one_line("Run", ["a=1", "b=\n2"]) == "Run(a=1, b= 2)"
    assert one_line("Run", ["a=1", "b" * LINE]) == "Run(a=1, ...)"
    assert len(one_line("Run", ["a" * 500, "b"])) <= LINE


def test_cells_are_escaped_with_and_without_heads() -> None:
    assert html_table([["<", "&"]]) == "<table><tr><th>&lt;</th><td>&amp;</td></tr></table>"
    assert "<td>&lt;</td>" in html_table([["<"]], ["<i>"])
    assert "<th>&lt;i&gt;</th>" in html_table([["<"]], ["<i>"])


def test_a_curve_goes_down_where_the_numbers_do() -> None:
    def heights(html: str) -> list[float]:
        line = re.search(r'points="([^"]+)"', html)
        assert line is not None
        return [float(point.split(",")[1]) for point in line[1].split()]

    down = heights(html_curve([100.0, 10.0, 1.0], "loss"))
    assert down == [2.0, 30.0, 58.0]  # pixels count from above; equal ratios, equal steps
    assert len(heights(html_curve(range(10_000), "steps"))) <= 130
    assert html_curve([1.0], "one") == ""
    assert heights(html_curve([1.0, float("nan"), 1.0], "flat")) == [58.0, 58.0]
    assert "&lt;b&gt;" in html_curve([1, 2], "<b>")
