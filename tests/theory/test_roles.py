"""Whose words a form is, and what its refutation may be called."""

import functools
import re
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from headcount.cli._explain import _told
from headcount.cli._list import _with_words
from headcount.cli._meaning import meaning
from headcount.core import BadArgument, Paper, float64, papers, stream
from headcount.theory import (
    Form,
    Kind,
    Reals,
    Record,
    Statements,
    claims,
    errata,
    errata_page,
    explain,
    false,
    refuted_page,
)
from headcount.theory._forms import quotes_in
from headcount.theory._shipped import read_shipped

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
        (TABLE.replace("statement", "step") + "edge = true", "edge = True: belongs to the role st"),
        (TABLE + "edge = 'yes'", "edge = 'yes'.*true or false"),
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
    assert called("statement", what="with 2 it holds") == "false as printed: with 2 it holds"
    at_an_edge = "false as printed at an edge that nobody means: x < 0"
    assert called("statement", edge=True, what="x < 0") == at_an_edge
    assert Form("1", role="statement", edge=True, **WORDS).briefly == "false as printed at an edge"
    step = "this step does not hold as printed; the result holds with another constant"
    assert called("step", becomes="other constant") == step
    assert called("implication") == "does not follow: the rate"
    reading = "false under this reading; 'corrected' holds"
    assert called("reading", beside=("corrected",)) == reading
    told = "false under this reading (of any x); 'corrected' holds"
    assert called("reading", beside=("corrected",), what="of any x") == told
    assert called("informal") == "informal, so never called false; the rate"
    assert called("assumption", what="Gaussian noise") == "not met by Gaussian noise"
    assert "paper" in Form("ours", fails=True).called
    for role in ("implication", "informal", "assumption"):
        assert "false as printed" not in called(role)
    assert Form("1", role="statement", **WORDS).called == ""


def test_a_claim_has_a_rival_or_a_reason():
    assert declared(no_rival="a norm is known in no other way").no_rival
    with pytest.raises(BadArgument, match=r"no_rival.*rival or the reason"):
        declared(no_rival="none", trivial=lambda k: 1.0)


REFUTED = [
    pytest.param(claim.id, name, id=f"{claim.id}:{name}")
    for claim in map(claims.__getitem__, claims)
    for name, form in claim.forms.items()
    if form.fails
]
FILES = {(c.claim, c.variant): path.name for path, c in read_shipped()}


@functools.cache
def pages():
    """The lines of the pages of errata and of refuted forms."""
    return errata_page().splitlines(), refuted_page().splitlines()


def on_screens(claim, form):
    """What the screens say of a refuted form: explain, recheck and falsify, errata, list."""
    errata = [line for line in pages()[0] if FILES[claim.id, form] in line]
    page = [line for line in pages()[1] if f"`{claim.id}`, {form} (" in line]
    told = [*_told(claim.forms[form]), *meaning(claim, form)]
    return {"told": told, "errata": errata, "refuted": page, "list": _with_words([claim.id])}


def contradicts(role, words):
    """Whether words on a screen call a form what its role forbids."""
    accused = any(re.search("false as printed|is false", line) for line in words)
    return accused != (role == "statement")


@pytest.mark.parametrize(("name", "form"), REFUTED)
def test_words_on_every_screen_are_those_of_the_role(name, form):
    claim = claims[name]
    own = claim.forms[form]
    assert own.role == "ours" or (own.defence and own.checked)
    assert own.role != "step" or own.becomes
    assert own.role in ("step", "ours") or own.what  # in the same breath
    others = {f.role for key, f in claim.forms.items() if f.fails and key != form}
    for screen, words in on_screens(claim, form).items():
        assert words, screen
        if screen != "list" or not others:
            assert not contradicts(own.role, words), (screen, words)


def test_words_that_contradict_a_role_are_seen():
    assert contradicts("step", ["psi-2 is false as printed"])
    assert contradicts("informal", ["the form is false"])
    assert contradicts("statement", ["this step does not hold as printed"])


@pytest.mark.parametrize("key", ["arda2026", "deora2024", "wu2023"])
def test_every_quotation_belongs_to_a_form(key):
    """A claim or form that is not there would be a quotation that nobody reads."""
    named = [f"{key}/{name}" for name in quotes_in(papers[key].quotes)]
    assert [name for name in named if name not in claims] == []
    assert all(claims[name].forms for name in named)


def test_the_page_of_refuted_forms_is_up_to_date():
    page = Path(__file__).resolve().parents[2] / "docs" / "refuted.md"
    assert page.read_text(encoding="utf-8") == "\n".join(pages()[1]) + "\n", (
        "python -m tools.refuted"
    )


def test_every_note_has_a_counterexample_or_was_checked_again():
    forms = {(claims[name], form) for name, form in FILES}
    certified = {f"{claim.paper}/{claim.forms[form].erratum}" for claim, form in forms}
    unchecked = [name for name in errata if not errata[name].checked]
    assert len(unchecked) < len(errata) / 2
    assert [name for name in unchecked if name not in certified] == []


def rival_of(claim):
    """The trivial rival at some point, for claims that return it beside their sides."""
    points = [*claim.targets()[:1], *(f.sample(stream(0, "rival")) for f in claim.families[:1])]
    if claim.experiment is not None:
        drawn = claim.experiment.draw(claim.experiment.cases[0], np.random.default_rng(0), 1)
        points.append(jax.tree.map(lambda leaf: leaf[0], drawn))
    with float64():
        return claim.sides(points[0], claim.default).trivial if points else None


INEQUALITIES = [n for n in claims if claims[n].kind is not Kind.IDENTITY]


@pytest.mark.parametrize("name", INEQUALITIES)
def test_every_inequality_has_a_trivial_rival_or_says_why_not(name):
    claim = claims[name]
    assert claim.has_rival or claim.no_rival or rival_of(claim) is not None
