"""The report: complete, linked, escaped, without a network."""

from __future__ import annotations

import json
import math
import re
import shlex
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pytest
import toy_figure
from rich.console import Console

from headcount import lab, report, theory
from headcount.cli import _everything, app, run
from headcount.cli._everything import COUNTED, SHARE, SIZES, Ended
from headcount.core import BadArgument, papers
from headcount.report.site import build_site, figure_results
from headcount.report.site._build import _shipped
from headcount.report.site._claims import ClaimRow, LogAxis, claim_rows, prose, shown
from headcount.theory._compare import Compared
from headcount.training import TrainConfig

PAPERS = [key for key in papers if theory.claims.of_paper(key)]
HOSTILE = "<script>alert('x')</script>\" onload=\"alert(1)"


class Page(HTMLParser):
    """What a page refers to, its ids, and its tags."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.tags: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attributes:
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "src") and value:
                self.links.append(value)
            if name == "id" and value:
                self.ids.add(value)


def verdict(claim: theory.Claim, ratio: float | None, outcome: str = "holds") -> dict:
    return {"id": claim.id, "variant": claim.default, "outcome": outcome, "ratio": ratio,
            "message": HOSTILE}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy figure, one of an unknown package with hostile words, an audit and both tables."""
    folder = tmp_path_factory.mktemp("results")
    plan = lab.make_plan(toy_figure.figure, "smoke")
    lab.run_plan(plan, folder, workers=0)
    store = lab.Store(folder)
    report.write_files(lab.collect(plan, store), store)
    content = json.loads(
        (store.figure_folder(plan.figure.id, "smoke") / "verdicts.json").read_text()
    )
    content |= {"figure": f"nobody/{HOSTILE}", "notes": HOSTILE, "options": {HOSTILE: HOSTILE}}
    content["verdicts"][0] |= {"claim": HOSTILE, "sentence": HOSTILE, "outcome": HOSTILE}
    other = folder / "figures" / "nobody-fig1" / "paper" / "a=b c&d"
    other.mkdir(parents=True)
    (other / "verdicts.json").write_text(json.dumps(content))
    (other / "plotted.csv").write_text(f'quantity,value\n"{HOSTILE.replace(chr(34), "")}",1\n')
    asked = [
        verdict(theory.claims["arda2026/fact-2"], 0.01),
        verdict(theory.claims["arda2026/fact-1"], 0.5, "holds vacuously"),
        verdict(theory.claims["arda2026/eq-18"], 0.2),  # an identity
        verdict(theory.claims["arda2026/eq-16"], None, "not applicable"),
    ]
    slack = [{"factor": HOSTILE, "bound": 10.0, "measured": 1.0, "orders": 1.0}]
    audit = {"command": HOSTILE, "claims": asked, "slack": slack}
    table = {
        "command": HOSTILE,
        "share": 0.1,
        "answers": [HOSTILE],
        "rows": [[HOSTILE, "lemma", "8", "8", "4"]],
    }
    counts = [
        {"paper": HOSTILE, "loss": 0.1, "command": HOSTILE, "answer": HOSTILE,
         "rows": [[HOSTILE, "", "8", ""]]}
    ]  # fmt: skip
    for name, stored in {
        "audits/arda2026.json": audit,
        "comparison.json": table,
        "counts.json": {"command": "", "counts": counts},
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(stored))
    return folder


@pytest.fixture(scope="module")
def site(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(results, tmp_path_factory.mktemp("site")).folder


def test_every_link_leads_somewhere_and_nothing_needs_a_network(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html")}
    assert len(pages) == 6 + len(PAPERS)
    for path, page in pages.items():
        for link in page.links:
            if link.startswith("data:"):
                continue
            assert ":" not in link, link
            file, _, anchor = link.partition("#")
            target = (path.parent / unquote(file)).resolve() if file else path
            assert target.exists(), (path, link)
            if anchor and "=" not in anchor:  # else it is a filter
                assert anchor in pages[target].ids, (path, link)


def test_everything_shown_is_escaped(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "<script>alert" not in text
        assert 'onload="alert' not in text
        assert Page(path).tags.count("script") == 1  # ours
    assert "&lt;script&gt;" in (site / "claims-arda2026.html").read_text()


def test_the_front_page_has_every_figure_with_its_verdicts(site: Path, results: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert all(f"headcount reproduce {name}" in text for name in lab.figures if "toy" not in name)
    toy = next(r for r in figure_results(lab.Store(results)) if r.id == toy_figure.figure.id)
    for outcome, number in toy.tally["ours"].items():
        assert (f"{number} {outcome}" in text) == bool(number)
    assert "would decide wrongly by chance" in text
    assert text.index("Finite-Time Analysis") < text.index("One question, several answers")


def test_a_figure_page_offers_all_numbers(site: Path, results: Path) -> None:
    toy = next(r for r in figure_results(lab.Store(results)) if r.id == toy_figure.figure.id)
    files = site / "figures" / toy.slug
    assert (files / "plotted.csv").read_bytes() == (toy.folder / "plotted.csv").read_bytes()
    heading, rows = toy.rows()
    assert json.loads((files / "plotted.json").read_text()) == {"columns": heading, "rows": rows}
    text = (site / "figures" / f"{toy.slug}.html").read_text(encoding="utf-8")
    assert toy.command in text
    for name, here, paper in toy.smaller_than_paper:
        assert f"<td>{name}</td><td>{shown(here)}</td><td>{shown(paper)}</td>" in text
    assert "jax 0." in text  # what the trials were made with


def test_claims_stand_beside_their_audit(results: Path) -> None:
    audits = {"arda2026": json.loads((results / "audits" / "arda2026.json").read_text())}
    rows = {row.claim.id: row for row in claim_rows(audits)}
    assert rows.keys() == set(theory.claims)
    assert rows["arda2026/fact-2"].looseness == pytest.approx(100)
    assert rows["arda2026/eq-18"].looseness is None  # an identity has no ratio
    assert rows["arda2026/eq-16"].looseness is None
    assert rows["arda2026/lemma-5"].outcome == "not asked"
    assert rows["arda2026/lemma-5"].refuted == ["false as printed"]
    assert rows["arda2026/psi-2"].refuted == ["a step does not hold"]
    assert all(row.formula.startswith("<math") for row in rows.values())


def test_every_counterexample_is_on_the_errata_page(site: Path) -> None:
    text = (site / "errata.html").read_text(encoding="utf-8")
    for path in theory.shipped_certificates():
        assert theory.read_certificate(path).file_name in text
    assert all(f'id="{name.replace("/", "-").lower()}"' in text for name in theory.errata)


def test_the_axis_is_logarithmic_in_whole_decades() -> None:
    axis = LogAxis.over([1.0 - 1e-12, 3e4])
    assert (axis.low, axis.high) == (0, 5)
    assert [axis.at(10.0**k) for k in range(6)] == [0, 20, 40, 60, 80, 100]
    assert axis.ticks[-1] == (100, 5)
    assert LogAxis.over([]) == LogAxis(0, 1)


def test_claims_have_a_page_for_each_paper_with_what_they_are_filtered_by(site: Path) -> None:
    for key in PAPERS:
        text = (site / f"claims-{key}.html").read_text(encoding="utf-8")
        own = theory.claims.of_paper(key)
        marks = re.findall(r'<article class="claim" id="([^"]+)"[^>]* data-marks="([^"]*)"', text)
        assert len(marks) == len(own)
        wrong = [c.id for c in own if any(f.fails for f in c.forms.values())]
        assert sum("refuted" in found.split("|") for _, found in marks) == len(wrong)
        listed = (site / "claims.html").read_text(encoding="utf-8")
        assert f'href="claims-{key}.html#mark=refuted">{len(wrong)} refuted<' in listed
    first, last = (site / f"claims-{key}.html" for key in (PAPERS[0], PAPERS[-1]))
    for page, rel, other in ((first, "next", "prev"), (last, "prev", "next")):
        assert f'rel="{rel}"' in page.read_text()
        assert f'rel="{other}"' not in page.read_text()


def test_marks_of_a_claim() -> None:
    def marks(outcome: str, ratio: float) -> tuple[str, ...]:
        claim = theory.claims["arda2026/lemma-5"]
        verdict = {"outcome": outcome, "ratio": ratio}
        return ClaimRow(claim, verdict, (), "").marks

    assert marks("holds", 0.01) == ("refuted", "false as printed")
    assert marks("holds", 0.9)[2:] == ("tight",)
    assert marks("holds vacuously", 0.01)[2:] == ("vacuous",)


def test_how_many_heads_is_filled_without_a_run(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    text = (build_site(tmp_path / "results", tmp_path / "site").folder / "heads.html").read_text()
    assert "as it came with this version" in text
    assert text.count("<h3>") == len(PAPERS)
    for key in PAPERS:
        assert f"{key}: the least width" in text


def test_what_ships_of_the_theorems_is_what_they_say() -> None:
    """Of the paper that is cheapest to ask; `python -m tools.theory_counts` writes all again."""
    (stored,) = (c for c in _shipped("counts.json")["counts"] if c["paper"] == "deora2024")
    size = SIZES["quick"] | {"n": COUNTED["quick"], "seeds": [0]}
    (now,) = theory.compare(size, share=SHARE, theory_only=True, keys=["deora2024"])
    assert stored["loss"] == pytest.approx(now.target, rel=1e-3)
    assert {(a.source, a.variant, a.shown) for a in now.required} == {
        tuple(row[:3]) for row in stored["rows"]
    }


def test_mathematics_of_words_is_typeset_and_nothing_else_is_let_through() -> None:
    assert prose("m^(-1/2) <= d_m") == "m<sup>-1/2</sup> ≤ d<sub>m</sub>"
    assert prose("min_loss, `a_b^2`") == "min_loss, <code>a_b^2</code>"
    assert prose(r"of $m^{-1/2}$").startswith("of <math")
    assert "<math" in prose(r"$\|\mathbf{H}(\theta^t)\|_2 \leq \mathcal{O}(d_m^{-1/2})$")
    for evil in (r"$\href{javascript:alert(1)}{x}$", "$<b>$", "<b>^(<i>)", r"$\frac$"):
        typeset = prose(evil)
        assert "<b>" not in typeset
        assert "<i>" not in typeset
        assert "href=" not in typeset


def test_numbers_and_words_for_people() -> None:
    assert [shown(v) for v in (None, 3, 1e20, 0.123456, [1, 2], "a", True)] == [
        "–", "3", "1e+20", "0.1235", "1, 2", "a", "True",
    ]  # fmt: skip
    assert prose("`a<b` & c") == "<code>a&lt;b</code> &amp; c"


def test_a_second_report_leaves_nothing_of_the_first(results: Path, tmp_path: Path) -> None:
    folder, outside = tmp_path / "site", tmp_path / "mine.txt"
    outside.write_text("")
    build_site(results, folder)
    (folder / "old.html").write_text("")
    marker = folder / "headcount-report.json"
    listed = json.loads(marker.read_text())
    listed["files"] |= dict.fromkeys(("old.html", "../mine.txt"), sha256(b"").hexdigest())
    marker.write_text(json.dumps(listed))
    build_site(results, folder)
    assert not (folder / "old.html").exists()
    assert outside.exists()


def test_files_of_earlier_versions_are_read_and_damaged_ones_named(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "figures" / "arda2026-fig1" / "quick"
    folder.mkdir(parents=True)
    (tmp_path / "results" / "headcount-results.json").touch()
    content = {"figure": "arda2026/fig1", "scale": "quick", "verdicts": []}
    (folder / "verdicts.json").write_text(json.dumps(content))
    build_site(tmp_path / "results", tmp_path / "site")
    assert (tmp_path / "site" / "figures" / "arda2026-fig1-quick.html").exists()
    (folder / "verdicts.json").write_text("{")
    with pytest.raises(BadArgument, match="is no JSON file"):
        build_site(tmp_path / "results", tmp_path / "site")


def test_a_folder_of_somebody_else_is_left_alone(results: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(BadArgument, match="exists and is no report"):
        build_site(results, tmp_path)
    assert run(["report", "--out", str(tmp_path / "nothing"), "--to", str(tmp_path / "s")]) == 2
    assert "run first: headcount reproduce --all" in capsys.readouterr().err


def test_the_command_says_where_the_index_is(results: Path, tmp_path: Path, capsys) -> None:
    assert run(["report", "--out", str(results), "--to", str(tmp_path / "s"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert Path(answer["index"]).exists()
    assert answer["pages"] == 6 + len(PAPERS)


def test_everything_runs_all_figures_and_stores_what_the_report_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Audits and comparisons are tested elsewhere: here, that all are asked and kept."""
    asked: list[TrainConfig] = []

    def audit(config: TrainConfig, **given: object) -> SimpleNamespace:
        asked.append(config)
        return SimpleNamespace(to_json=lambda: {"claims": [], "slack": []})

    answer = theory.Answer("width", "arda2026/theorem-1", "printed", 8.0, "a note", taken="more")
    never = theory.Answer("width", "arda2026/theorem-1", "printed", None, "at 400 steps")
    twice = (never, answer, never)
    compared = Compared("arda2026", "arda2026", "l", 8, 400, 0.1, 1.0, twice, {}, answer)
    monkeypatch.setattr(theory, "audit", audit)
    monkeypatch.setattr(theory, "compare", lambda problem, **given: [compared])
    ends = iter([Ended(3), Ended(1, "the disk is full"), *([Ended(0)] * len(lab.figures))])
    figures: list[str] = []
    run = lambda name, among: figures.append(name) or next(ends)  # noqa: E731
    assert everything(run, tmp_path, notes := Console(record=True, width=200)) == 3
    assert figures == list(lab.figures)
    assert f"{figures[1]} cannot run: the disk is full" in notes.export_text()
    assert [config.model for config in asked] == ["arda2026", "deora2024", "wu2023"]
    compared_rows = json.loads((tmp_path / "comparison.json").read_text())["rows"]
    assert compared_rows == [["arda2026", "theorem-1 (printed)", "never", "8", "8"]]
    counts = json.loads((tmp_path / "counts.json").read_text())["counts"]
    commands = [json.loads(f.read_text())["command"] for f in (tmp_path / "audits").iterdir()]
    commands += [
        counts[0]["command"],
        json.loads((tmp_path / "comparison.json").read_text())["command"],
    ]
    for command in commands:
        app.parse_args(shlex.split(command)[1:], exit_on_error=False, print_error=False)
    assert everything(lambda name, among: Ended(0), tmp_path, Console(record=True)) == 0
    assert len(asked) == 3  # what is stored is not asked again
    assert [row[2] for row in counts[0]["rows"]] == ["never", "8"]  # each answer once
    assert commands[-1].endswith("--most-width 64")
    (tmp_path / "audits" / "wu2023.json").write_text('{"command": ')  # damaged: asked again
    assert everything(lambda name, among: Ended(0), tmp_path, Console(record=True)) == 0
    assert len(asked) == 4
    build_site(tmp_path, tmp_path / "site")
    assert everything(lambda name, among: Ended(130), tmp_path, Console(record=True)) == 130


def test_an_audit_that_cannot_run_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def audit(config: TrainConfig, **given: object) -> SimpleNamespace:
        if config.model == "deora2024":
            raise BadArgument("n", 3, "is too small", fix="use n=4")
        return SimpleNamespace(to_json=lambda: {"claims": [], "slack": []})

    monkeypatch.setattr(theory, "audit", audit)
    monkeypatch.setattr(theory, "compare", lambda problem, **given: [])
    assert everything(lambda name, among: Ended(0), tmp_path, notes := Console(record=True)) == 1
    assert "the audit of deora2024 cannot run: n = 3: is too small" in notes.export_text()
    assert {path.stem for path in (tmp_path / "audits").iterdir()} == {"arda2026", "wu2023"}
    assert (tmp_path / "counts.json").exists()


def everything(run: Any, out: Path, notes: Console) -> int:
    """All figures by `run`, which gets a name where the command gives a plan."""
    plans = {name: name for name in lab.figures}
    among = _everything.Among(dict.fromkeys(plans, 1.0))
    return _everything.run_everything("quick", out, notes, plans, {}, among, run)


def test_all_and_one_figure_exclude_each_other(capsys) -> None:
    assert run(["reproduce", "arda2026/fig1", "--all"]) == 2
    assert run(["reproduce"]) == 2
    assert "--all" in capsys.readouterr().err


def test_sizes_are_finite_numbers() -> None:
    assert all(math.isfinite(size["n"]) for size in _everything.SIZES.values())
    assert set(_everything.SIZES) == set(lab.SCALES)
    assert {key for key, paper in papers.items() if paper.subject} == {
        "arda2026",
        "deora2024",
        "wu2023",
    }
