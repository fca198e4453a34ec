"""Registries that papers fill: what is added while somebody looks, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headcount.core import BadArgument, Paper, Registry, _papers
from headcount.core._outside import (
    PaperLeftOut,
    left_out_if_broken,
    load_object,
    one_line_if_broken,
)
from headcount.core._papers import PaperRegistry
from headcount.theory import Erratum, claims
from headcount.theory._errata import add_notes


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> PaperRegistry[str]:
    """A registry beside an empty list of papers; importing module m registers "m/note"."""
    known = _papers.Papers()
    known._fill = None
    monkeypatch.setattr(_papers, "papers", known)
    registry: PaperRegistry[str] = PaperRegistry("note", lambda paper: paper.claims, str)
    monkeypatch.setattr(
        _papers.importlib, "import_module", lambda name: registry.register(f"{name}/note", name)
    )
    return registry


def paper(key: str, **fields: Any) -> Paper:
    return Paper(key, "", "", **fields)


def test_who_looks_may_import_what_registers_more() -> None:
    registry: Registry[int] = Registry("number")
    registry.register("one", 1)
    for name, value in registry.items():
        registry.register(f"{name}-more", value)
    for name in registry:
        registry.register(f"{name}-again", 0)
    assert len(registry) == 4


def test_a_paper_added_after_the_first_look_brings_its_entries(notes: PaperRegistry[str]) -> None:
    assert list(notes) == []
    _papers.papers.add(paper("late", claims=("late",)))
    assert list(notes) == ["late/note"]
    assert list(notes) == ["late/note"]  # and only once


@pytest.mark.parametrize(
    ("name", "entry", "problem"),
    [
        (3, "", "note = 3: is a int"),
        ("plain", "", "does not name its paper"),
        ("a/b", 1, "a/b = 1"),
    ],
)
def test_an_entry_of_another_kind_is_refused(
    name: Any, entry: Any, problem: str, notes: PaperRegistry[str]
) -> None:
    with pytest.raises(BadArgument, match=problem):
        notes.register(name, entry)


def test_what_a_manifest_registers_gives_way_to_the_paper_it_belongs_to(
    notes: PaperRegistry[str],
) -> None:
    _papers.papers.loading = "paper 'x'"
    notes.register("fox/note", "taken")
    _papers.papers.loading = ""
    _papers.papers.add(paper("fox", claims=("fox",)))
    with pytest.warns(PaperLeftOut, match="note 'fox/note' of paper 'x' is left out"):
        assert notes["fox/note"] == "fox"
    with pytest.raises(RuntimeError, match="registered twice"):
        notes.register("fox/note", "again")


def test_a_model_belongs_to_one_paper(notes: PaperRegistry[str]) -> None:
    _papers.papers.add(paper("fox", models={"m": "a:b"}))
    with pytest.raises(RuntimeError, match="model 'm' is one of paper 'fox' already"):
        _papers.papers.add(paper("hen", models={"m": "a:b"}))


def test_mistakes_of_ours_and_interruptions_are_seen() -> None:
    for error in (ZeroDivisionError(), SystemExit(3)):
        with pytest.raises(type(error)), left_out_if_broken("x", ours=True):
            raise error
        with pytest.raises(type(error)), one_line_if_broken("x", "y", ours=True):
            raise error
        with pytest.warns(PaperLeftOut, match="x is left out"), left_out_if_broken("x"):
            raise error
    for guard in (left_out_if_broken("x"), one_line_if_broken("x", "y")):
        with pytest.raises(KeyboardInterrupt), guard:
            raise KeyboardInterrupt
    with pytest.raises(ModuleNotFoundError):
        load_object("headcount.papers.nobody:x")
    with pytest.raises(BadArgument, match="'nobody:x': is broken: ModuleNotFoundError"):
        load_object("nobody:x")


def test_one_entry_imports_the_modules_that_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim loads its own module; all of its paper where no module names it; no other paper."""
    known, imported = _papers.Papers(), []
    known._fill = None
    monkeypatch.setattr(_papers, "papers", known)
    registry: PaperRegistry[str] = PaperRegistry("note", lambda paper: paper.claims, str)

    def load(key: str, reference: str) -> None:
        imported.append(reference)
        registry.register(f"{key}/{reference[-1]}", reference)

    monkeypatch.setattr(registry, "_load", load)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("a", "b", "c"):
        (tmp_path / f"notes_{name}.py").write_text(f"state.claim('{name}', 'is not {name}b')")
    modules = tuple(f"notes_{name}" for name in ("a", "b", "c"))
    known.add(paper("fox", claims=modules))
    known.add(paper("hen", claims=("notes_c",)))
    assert registry["fox/b"] == "notes_b"
    assert imported == ["notes_b"]
    assert "fox/b" in registry
    assert "fox/x" not in registry  # nothing names it: everything is looked through
    assert imported == ["notes_b", "notes_a", "notes_c", "notes_c"]
    assert registry.of_paper("hen") == ["notes_c"]


@pytest.mark.parametrize(
    ("ask", "own"),
    [
        ("theory.claims['arda2026/lemma-3']", "arda2026.claims.lemma_3"),
        ("theory.claims['deora2024/lemma-1']", "deora2024.claims.lemma_1"),
        ("lab.figures['deora2024/fig2']", "deora2024.figures.fig2"),
    ],
)
def test_one_claim_and_one_figure_load_one_module(ask: str, own: str) -> None:
    """Nothing of other papers but their manifests, and of their own no statement or figure else."""
    code = (
        f"import sys; from headcount import {ask.partition('.')[0]}; {ask}\n"
        "print(*[m for m in sys.modules if m.startswith('headcount.papers.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    loaded = [name.removeprefix("headcount.papers.") for name in done.stdout.split()]
    key, _, folder = own.rpartition(".")[0].partition(".")
    others = [name for name in loaded if name.split(".")[0] != key]
    assert all(name.count(".") == 0 or name.endswith(".paper") for name in others), others
    assert own in loaded
    siblings = [n for n in loaded if n.startswith(f"{key}.{folder}.") and n != own]
    manifest = _papers.papers[key]
    declared = {*manifest.claims, *manifest.figures}
    assert not [n for n in siblings if f"headcount.papers.{n}" in declared], siblings


@pytest.mark.parametrize("name", ["arda2026/lemma-5", "deora2024/lemma-1", "wu2023/proposition-1"])
def test_a_claim_is_found_without_what_only_training_and_proofs_need(name: str) -> None:
    code = (
        f"import sys; from headcount.theory import claims, explain; claims[{name!r}]\n"
        "heavy = {'optax', 'scipy', 'mpmath', 'flint', 'pydantic', 'xarray'}\n"
        "heavy.add('headcount.training')\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_module_that_is_tried_first_is_the_claim_s_own() -> None:
    """Names that a loop makes are in no source: their whole paper is imported."""
    elsewhere = {
        name
        for name, claim in claims.items()
        if claim.function.__module__  # type: ignore[attr-defined]
        != next(iter(_papers.naming(_papers.papers[claim.paper].claims, name.split("/")[1])), "")
    }
    assert elsewhere <= {f"wu2023/lemma-12-{block}" for block in "QKVO"}


NOTE = '[E1]\nwhere = "(1)"\nprinted = "a"\nproblem = "b"\nused = "c"\n'


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "notes_of_2030"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    sys.modules.pop("notes_of_2030", None)


@pytest.mark.parametrize(
    "text",
    ["[E1\n", "E1 = 3\n", NOTE.replace('"b"', "2"), NOTE + "more = 1\n", NOTE + "harmless = 1\n"],
)
def test_a_note_that_is_none_is_one_line(package: Path, text: str) -> None:
    (package / "notes.toml").write_text(text)
    with pytest.raises(BadArgument):
        add_notes("smith2030", "notes_of_2030:notes.toml")


def test_a_missing_file_is_one_line(package: Path) -> None:
    with pytest.raises(BadArgument, match="cannot be read"):
        add_notes("smith2030", "notes_of_2030:notes.toml")
    assert Erratum("smith2030/E1", "(1)", "a", "b", "c").harmless
