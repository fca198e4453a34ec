"""audit, count, falsify and recheck as a user calls them."""

from __future__ import annotations

import json

import pytest

from headcount.cli import run

TINY = ["--width", "4", "--n", "6", "--steps", "5", "--data-option", "T=3"]
TINY += ["--data-option", "d=2", "--data-option", "pool=16", "--data-option", "anchors=3"]


def test_an_audit_asks_every_kind_of_claim(capsys):
    assert run(["audit", *TINY, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    outcomes = {c["id"] + " " + c["variant"]: c["outcome"] for c in shown["claims"]}
    assert set(outcomes.values()) <= {"holds", "holds vacuously"}
    assert outcomes["arda2026/mean-loss measured"] == "holds"
    assert outcomes["arda2026/theorem-1 printed"] == "holds vacuously"
    wanted = {"drift", "theorem-1", "theorem-1-average", "lemma-2a", "lemma-2b", "lemma-3"}
    wanted |= {"lemma-5", "lemma-6a", "definition-1", "fact-3", "eq-38", "eq-42"}
    assert {f"arda2026/{name}" for name in wanted} <= {c["id"] for c in shown["claims"]}
    for entry in shown["claims"]:
        assert {"id", "variant", "outcome", "lhs", "rhs", "ratio", "hypotheses"} <= set(entry)
        for check in entry["hypotheses"]:
            assert set(check) == {"name", "value", "threshold", "holds", "margin", "failing"}
    assert all(row["orders"] >= 0 for row in shown["slack"])


def test_compare_wants_signs_and_says_where_they_are(capsys):
    assert run(["compare", "--data", "ar", "--n", "5", "--papers", "deora2024"]) == 2
    shown = capsys.readouterr().err
    assert "--data ar: has labels other than -1 and +1; use dm1" in shown
    assert "--data-option labels=direction" in shown


def test_count_lists_every_theorem(capsys):
    assert run(["count", "--loss", "0.05", "--n", "5000", "--theory-only", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    sources = {a["source"] for a in shown["theorems"]}
    assert {"arda2026/theorem-1", "arda2026/theorem-1-average"} <= sources
    assert any(a["value"] is None for a in shown["theorems"])
    assert any((a["value"] or 0) > 1e12 for a in shown["theorems"])


def test_count_searches_real_runs(tmp_path, capsys):
    plot = tmp_path / "count.png"
    flags = ["--loss", "0.002", "--n", "20", "--d", "2", "--T", "3", "--steps", "30"]
    flags += ["--pool", "32", "--seeds", "0:2", "--most-width", "8", "--plot", str(plot)]
    assert run(["count", *flags]) == 0
    assert "training" in capsys.readouterr().out
    assert plot.stat().st_size > 0


BAD = {
    "delta": (["audit", *TINY, "--delta", "1.5"], "delta"),
    "model": (["audit", "--model", "wu203"], "wu2023"),
    "diverged": (
        [
            "audit",
            "--model",
            "wu2023",
            "--n",
            "4",
            "--width",
            "8",
            "--steps",
            "9",
            "--eta",
            "1e300",
        ],
        "--eta 1e+300: makes the run diverge",
    ),
    "run file": (["audit", "nowhere.nc"], "is not a run"),
    "loss": (["count", "--loss", "-1"], "loss"),
    "no target": (["count", "--theory-only"], "or --gap, and not both"),
    "two targets": (["count", "--loss", "1", "--gap", "1"], "or --gap, and not both"),
    "nu": (["count", "--loss", "1", "--nu", "3"], "is not three numbers"),
    "odd width": (["count", "--loss", "1", "--width", "7"], "must be even"),
    "claim": (["falsify", "arda2026/lema-3"], "arda2026/lemma-3"),
    "certificate": (["recheck", "nowhere.json"], "nowhere.json"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_2(case, capsys):
    arguments, message = BAD[case]
    assert run(arguments) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1
