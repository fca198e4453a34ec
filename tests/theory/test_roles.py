"""Whose words a form is, and what its refutation may be called."""

import sys

import pytest

from headcount.core import BadArgument, Paper, papers
from headcount.theory import Form, Reals, Record, Statements, claims, explain, false
from headcount.theory._forms import quotes_in

WORDS = {"says": "x is at most one", "where": "Lemma 1"}


class Number(Record):
    """One number."""

    x = Reals()
    shapes = ({},)


def declared(**more):
    """A claim of a paper from outside."""
    state = Statements("brown2031")
    forms = {"printed": false("x <= 1", "E1"), "corrected": "x <= x^2 + 1"}
    return state.claim(
        "small", "A small number", where="Lemma 1", on=Number, says=r"x\le1", forms=forms, **more
    )(lambda x: (x, 1.0))


@pytest.fixture(autouse=True)
def nothing_stays():
    """Claims and files of quotations are forgotten behind each test."""
    quotes_in.cache_clear()
    yield
    quotes_in.cache_clear()
    claims._entries.pop("brown2031/small", None)


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """Make a paper from outside whose quotations are this text, and give a claim of it."""

    def make(text):
        folder = tmp_path / "brown2031"
        folder.mkdir()
        (folder / "__init__.py").touch()
        (folder / "quotes.toml").write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        entry = Paper("brown2031", "T", "Brown (2031)", quotes="brown2031:quotes.toml")
        monkeypatch.setitem(papers._entries, "brown2031", entry)
        monkeypatch.delitem(sys.modules, "brown2031", raising=False)
        return declared()

    return make


TABLE = "[small.printed]\nrole = 'statement'\nwhere = 'Lemma 1'\nsays = 'x is at most one'\n"


def test_quotations_of_a_paper_from_outside_are_joined_to_its_forms(paper):
    claim = paper(TABLE + "defence = 'none'\n")
    assert claim.forms["printed"].called == "false as printed"
    assert claim.forms["printed"].erratum == "E1"
    assert claim.forms["corrected"].role == "ours"
    told = explain(claim).to_json()["forms"]["printed"]
    assert told["refuted"]
    assert (told["role"], told["says"], told["where"], told["called"], told["defence"]) == (
        "statement", "x is at most one", "Lemma 1", "false as printed", "none",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TABLE.replace("statement", "theorem"), r"role = 'theorem'.*small\.printed.*choose from"),
        (TABLE.replace("says", "say"), r"key = 'say'.*small\.printed.*use role, says"),
        (TABLE.replace("x is at most one", " "), r"says = '': is missing.*small\.printed"),
        (TABLE.replace("where = 'Lemma 1'", ""), "where = '': is missing"),
        (TABLE.replace("printed", "sharpest"), "form = 'sharpest'.*use printed, corrected"),
        (TABLE + "becomes = 'untouched'", "becomes = 'untouched': belongs to the role step"),
        (TABLE.replace("statement", "step") + "becomes = 'wrong'", "becomes = 'wrong'.*untouched"),
        (TABLE.replace("statement", "reading") + "beside = ['x']", "beside = 'x': is no form"),
        (TABLE.replace("statement", "reading") + "beside = 'corrected'", "beside"),
        (TABLE.replace("statement", "ours"), "role = 'ours'.*leave the table out"),
        ("role = 'statement'", r"write tables \[claim\.form\]"),
        ("[small]\nprinted = 'statement'", r"write tables \[claim\.form\]"),
    ],
)
def test_a_wrong_table_of_quotations_names_place_and_fix(paper, text, message):
    claim = paper(text)
    with pytest.raises(BadArgument, match=message):
        _ = claim.forms


def test_a_refutation_is_called_by_its_role():
    def called(role, **more):
        return Form("the rate", fails=True, role=role, **WORDS, **more).called

    assert called("statement") == "false as printed"
    step = "this step does not hold as printed; the result: other constant"
    assert called("step", becomes="other constant") == step
    assert called("implication") == "does not follow: the rate"
    assert called("reading", beside=("corrected",)) == ("false under this reading; corrected holds")
    assert called("informal") == "informal, never false; the rate"
    assert called("assumption", what="Gaussian noise") == "not met by Gaussian noise"
    assert "paper" in Form("ours", fails=True).called
    for role in ("implication", "informal", "assumption"):
        assert "false as printed" not in called(role)
    assert Form("1", role="statement", **WORDS).called == ""


def test_a_claim_has_a_rival_or_a_reason():
    assert declared(no_rival="a norm is known in no other way").no_rival
    with pytest.raises(BadArgument, match=r"no_rival.*rival or the reason"):
        declared(no_rival="none", trivial=lambda k: 1.0)
