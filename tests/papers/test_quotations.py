"""What we quote is what the papers print, word for word: forms of claims, and figures' sources."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

from headcount import papers as rooms
from headcount.core import papers
from headcount.core._entries import read_tables
from headcount.lab import Source
from headcount.theory import claims

KEYS = ["arda2026", "deora2024", "wu2023"]
TEXTS = [up / "shared" / "papers" for up in Path(__file__).resolve().parents]
"""Beside the clone, or further up."""


def folded(text: str) -> str:
    """Without white space, LaTeX's own spaces, and the stars of Markdown's italics."""
    return re.sub(r"\\[,;!]|\s|(?<![\^_{])\*", "", text)


@pytest.fixture(scope="module", params=KEYS)
def paper(request: pytest.FixtureRequest) -> tuple[str, dict[str, str]]:
    """A key, and the folded texts of that paper by file name."""
    files = [f for folder in TEXTS if folder.is_dir() for f in folder.glob(f"{request.param}*")]
    if not files:
        pytest.skip("the papers' texts are not at hand in ../shared/papers")
    return request.param, {f.name: folded(f.read_text(encoding="utf-8")) for f in files}


def missing(quotations: dict[str, tuple[str, str]], texts: dict[str, str]) -> list[str]:
    """Those (words, place) that no text has; a place in v1 or v2 is looked up in that version."""
    version = {"v1": "deora2024-plain.txt", "v2": "deora2024.md"}

    def found(says: str, where: str) -> bool:
        named = next((file for v, file in version.items() if v in where), None)
        return any(folded(says) in text for file, text in texts.items() if named in (None, file))

    return [name for name, quotation in quotations.items() if not found(*quotation)]


def forms(key: str) -> dict[str, tuple[str, str]]:
    return {
        f"{claim.id} {name}": (form.says, form.where)
        for claim in claims.of_paper(key)
        for name, form in claim.forms.items()
        if form.says
    }


def sources(key: str) -> dict[str, tuple[str, str]]:
    """Every sentence that a figure of this paper judges."""
    package = import_module(f"{rooms.__name__}.{key}.figures")
    found = {}
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for name, value in vars(import_module(module.name)).items():
            if isinstance(value, Source) and value.kind == "paper":
                found[f"{module.name}.{name}"] = (value.says, value.where)
    return found


def test_every_form_quotes_its_paper(paper: tuple[str, dict[str, str]]) -> None:
    key, texts = paper
    quoted = forms(key)
    assert len(quoted) > 50
    assert missing(quoted, texts) == []


def test_every_sentence_that_a_figure_judges_is_in_its_paper(
    paper: tuple[str, dict[str, str]],
) -> None:
    key, texts = paper
    judged = sources(key)
    assert len({says for says, _ in judged.values()}) > 9
    assert missing(judged, texts) == []


STYLE = r"\\(mathbf|mathcal|mathrm|text|rm)(?![a-z])"
"""Commands of LaTeX that name no symbol."""


def plainly(text: str) -> str:
    """Letters, digits and relations alone: open choices quote formulas as a terminal shows them."""
    text = re.sub(STYLE, "", text).replace(r"\leq", "<=")
    return re.sub(r"[^a-z0-9<=]", "", text.lower())


def test_every_open_choice_quotes_its_paper(paper: tuple[str, dict[str, str]]) -> None:
    """Each part between dots, up to how formulas are written."""
    key, _ = paper
    files = [f for folder in TEXTS if folder.is_dir() for f in folder.glob(f"{key}*")]
    texts = [plainly(f.read_text(encoding="utf-8")) for f in files]
    tables = read_tables(f"headcount.papers.{key}:choices.toml")["axis"]
    parts = [part for table in tables for words in re.findall('"([^"]+)"', table["says"])
             for part in words.split("...")]  # fmt: skip
    assert len(parts) > 5
    assert [part for part in parts if not any(plainly(part) in text for text in texts)] == []
    said = [table["says"] for table in tables]
    assert [says for says in said if not re.search('"|silent|Sec\\.', says)] == []


def test_a_changed_quotation_is_seen(paper: tuple[str, dict[str, str]]) -> None:
    key, texts = paper
    for name, (says, where) in [*forms(key).items()][:5]:
        words = says[: len(says) // 2] + "?" + says[len(says) // 2 :]
        assert missing({name: (words, where)}, texts) == [name]


def test_folding_keeps_the_stars_of_formulas() -> None:
    assert folded(r"*let* $\Phi^* \, \theta_* A^{*\top}$ and **that**") == (
        r"let$\Phi^*\theta_*A^{*\top}$andthat"
    )


@pytest.mark.parametrize("key", KEYS)
def test_a_form_called_printed_is_a_quotation(key: str) -> None:
    """And what is ours quotes nobody."""
    for claim in claims.of_paper(key):
        for name, form in claim.forms.items():
            assert (form.role == "ours") == (not form.says), (claim.id, name)
            assert form.says or name != "printed", (claim.id, name)


def test_papers_of_ours_are_all_looked_at() -> None:
    assert sorted(key for key in papers if claims.of_paper(key) and key in papers.ours) == KEYS
