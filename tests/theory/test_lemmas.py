"""Anybody's lemma: declared, searched over its sizes, shrunk, proved, printed to paste."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.cli import run
from headcount.core import BadArgument
from headcount.theory import (
    Ball,
    Box,
    Budget,
    Constants,
    Reals,
    Size,
    Sphere,
    equality,
    falsify,
    given,
    judge,
    lemma,
    recheck,
)
from headcount.theory._candidates import ladder, size_plan
from headcount.theory._lemma_report import SizeRatio, growth_of
from headcount.theory._search import _Objective
from headcount.theory.lemma_files import lemmas_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "lemmas"
LITTLE = Budget(random=96, restarts=4, steps=40)

ISSUE = """
from headcount.theory import Ball, Reals, Size, lemma
import jax, jax.numpy as jnp

T = Size("T", 1, 8)

@lemma(z=Reals(T), u=Reals(T))
def softmax_is_half_lipschitz(z, u):
    \"\"\"|softmax(z+u) - softmax(z)| <= |u|/2.\"\"\"
    return jnp.linalg.norm(jax.nn.softmax(z + u) - jax.nn.softmax(z)), jnp.linalg.norm(u) / 2
"""


def written(folder: Path, text: str, name: str = "my_lemma.py") -> Path:
    file = folder / name
    file.write_text(textwrap.dedent(text))
    return file


def test_the_example_works_as_a_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, ISSUE)
    assert run(["falsify", "my_lemma.py", "--json", "--strict", "--budget", "2000"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    keys = {"claim", "variant", "worst_ratio", "violated", "instances", "certificate"}
    assert keys | {"proved", "sizes", "instance", "per_size", "growth", "called"} == set(found)
    assert found["claim"] == "my_lemma.py:softmax_is_half_lipschitz"
    assert not found["violated"]
    assert 0.99 < found["worst_ratio"] <= 1 + 1e-9
    assert [row["T"] for row in found["per_size"]] == [1, 2, 4, 8]
    assert found["growth"] == [found["growth"][0]]
    law = "of what the search found, the worst ratio does not depend on T (within"
    assert found["growth"][0].startswith(law)
    assert found["growth"][0].endswith("for T = 2..8)")
    assert "outside the current folder" not in printed.err


FALSE = ISSUE.replace("jnp.linalg.norm(u) / 2", "0.48 * jnp.linalg.norm(u)").replace(
    '"T", 1, 8)', '"T", 2, 3)'
)


def test_a_false_one_is_shrunk_proved_printed_and_rechecked(tmp_path, monkeypatch, capsys):
    """The whole way: exit code 3, a counterexample to paste that runs, a certificate."""
    written(tmp_path, FALSE)
    beside = tmp_path / "elsewhere"
    beside.mkdir()
    monkeypatch.chdir(beside)
    name = "../my_lemma.py:softmax_is_half_lipschitz"
    assert run(["falsify", name, "--strict", "--budget", "2000"]) == 3
    printed = capsys.readouterr()
    notes = " ".join(printed.err.split())
    assert "my_lemma.py is outside the current folder: testing its lemmas runs its code" in notes
    shown = printed.out
    assert "the violation is proved: ratio 1.0416" in shown
    assert "T=2, z=[0, 0]" in shown
    assert "$T=2$, $z=(0,0)^\\top$" in shown
    code = shown.split("Python:\n")[1].split("  certificate")[0]
    monkeypatch.syspath_prepend(tmp_path)
    names: dict[str, Any] = {}
    exec(textwrap.dedent(code), names)
    assert names["lhs"] > names["rhs"]

    (file,) = (beside / "certificates").glob("*.json")
    monkeypatch.setattr("headcount.theory.lemma_files._run", _never)
    assert run(["recheck", str(file)]) == 2
    assert "a file that is only named is never run" in capsys.readouterr().err
    monkeypatch.undo()
    monkeypatch.chdir(beside)
    assert run(["recheck", str(file), "--lemma", name, "--trust"]) == 0
    checked = capsys.readouterr()
    assert "the violation is proved" in checked.out
    assert not checked.err


def _never(file: Path) -> Any:
    raise AssertionError(f"{file} was run")


def test_a_certificate_of_another_lemma_is_refused(tmp_path):
    false = written(tmp_path, FALSE.replace("2, 3)", "2, 2)"))
    true = written(tmp_path, ISSUE, "other.py")
    found = falsify(lemmas_of(str(false))[0], budget=LITTLE)
    with pytest.raises(BadArgument, match="is not the lemma of the certificate"):
        recheck(found.certificate, lemmas_of(str(true))[0])
    assert recheck(found.certificate, lemmas_of(str(false))[0]).confirmed


n = Size("n", 1, 9)


@lemma(x=Sphere(n))
def sum_of_entries(x):
    """sum |x| <= 1 grows like sqrt(n)."""
    return jnp.sum(jnp.abs(x)), 1.0


def test_the_worst_ratio_grows_with_the_size():
    found = falsify(sum_of_entries, budget=LITTLE)
    assert found.violated
    assert "grows like sqrt(n)" in found.growth[0]
    ratios = {row.sizes["n"]: row.ratio for row in found.per_size}
    assert ratios == pytest.approx({k: k**0.5 for k in ratios}, rel=1e-3)
    # The smallest sizes in which it fails by half as much as at most, then fewer entries.
    assert found.sizes["n"] < 9
    assert found.proved


def test_powers_are_read_from_the_table():
    table = [SizeRatio({"T": T, "d": d}, T**0.5 / d) for T in (1, 2, 4) for d in (1, 3, 9)]
    assert growth_of(table) == (
        "of what the search found, the worst ratio grows like sqrt(T) "
        "(exponent +0.50, within 0.1 % for T = 1..4)",
        "of what the search found, the worst ratio falls like 1/d "
        "(exponent -1.00, within 0.1 % for d = 1..9)",
    )
    assert growth_of([SizeRatio({"T": 2}, 0.5), SizeRatio({"T": 3}, 0.0)]) == ()


def test_low_high_and_middle_come_first():
    assert ladder(Size("T", 1, 8)) == [1, 2, 4, 8]
    assert ladder(Size("T", 3, 3)) == [3]
    plan = size_plan({"T": Size("T", 1, 8), "d": Size("d", 2, 3)})
    assert plan[:3] == [{"T": 1, "d": 2}, {"T": 8, "d": 3}, {"T": 2, "d": 2}]
    assert len(plan) == len({tuple(sizes.items()) for sizes in plan})


@lemma(
    given("x is not longer than y", lambda x, y: jnp.sum(x**2), lambda y: jnp.sum(y**2)),
    given("y is short", lambda y: jnp.sum(y**2), 1.0),
    x=Reals(2),
    y=Reals(2),
    c=Constants(printed=1.5, corrected=2.0),
)
def two_short_vectors(x, y, c):
    """|x + y| <= c."""
    return jnp.linalg.norm(x + y), c


def test_hypotheses_are_met_and_every_constant_is_a_variant():
    printed = falsify(two_short_vectors, "printed", budget=LITTLE)
    assert printed.proved
    x, y = np.array(printed.points["x"]), np.array(printed.points["y"])
    assert x @ x <= y @ y <= 1
    assert "c=1.5" in printed.shown.python
    corrected = falsify(two_short_vectors, "corrected", budget=LITTLE)
    assert not corrected.violated
    assert corrected.worst_ratio > 0.95
    assert two_short_vectors.default == "printed"


@equality(A=Reals(2, 2), B=Reals(2, 2))
def product_commutes(A, B):
    """A B = B A."""
    return A @ B, B @ A


@equality(A=Reals(2, 2), B=Reals(2, 2))
def trace_commutes(A, B):
    """tr(A B) = tr(B A)."""
    return jnp.trace(A @ B), jnp.trace(B @ A)


def test_equalities():
    assert falsify(product_commutes, budget=LITTLE).proved
    assert not falsify(trace_commutes, budget=LITTLE).violated


@lemma(x=Ball(3), y=Ball(3))
def loose(x, y):
    """|<x, y>| <= 4."""
    return jnp.abs(x @ y), 4.0


def test_a_loose_bound_is_told_so_with_its_instance():
    found = falsify(loose, budget=LITTLE)
    assert not found.violated
    assert "could be tightened by up to a factor of 4" in found.message
    assert "x=[" in found.message


@lemma(z=Reals(2), u=Reals(2))
def cancelling(z, u):
    """A true inequality, whose sides are mere rounding where z is huge."""
    p, q = jax.nn.log_softmax(z), jax.nn.log_softmax(z + u)
    return jnp.sum(jnp.abs(jnp.exp(p) - jnp.exp(q))) ** 2 / 2, jnp.exp(p) @ (p - q)


def test_rounding_is_no_violation():
    found = falsify(cancelling, budget=LITTLE)
    assert not found.violated
    assert found.worst_ratio <= 1 + 1e-9


def test_a_score_that_trembles_is_taken_for_rounding():
    tiny = cancelling.instance(z=[20.3, 19.6], u=[2e-8, 3e-9])
    calm = cancelling.instance(z=[0.3, -0.2], u=[0.5, 0.1])
    objective = _Objective.of(cancelling)
    with jax.enable_x64(True):
        plain = [float(objective._scores(i, 1.0)[0]) for i in (tiny, calm)]
        wary = [float(objective.scores(i, 1.0)[0]) for i in (tiny, calm)]
    assert wary[1] == pytest.approx(plain[1], abs=1e-6)
    assert wary[0] < plain[0] - 0.1


@pytest.mark.parametrize(
    ("name", "violated"),
    [("true_orthogonal_distance", False), ("false_induced_is_frobenius", True)],
)
def test_examples(name, violated):
    (own,) = lemmas_of(str(EXAMPLES / f"{name}.py"))
    found = falsify(own, budget=LITTLE)
    assert found.violated is violated
    assert found.proved is violated
    assert found.worst_ratio > 0.99


def test_there_are_fifteen_of_each():
    files = [file.name for file in EXAMPLES.glob("*.py")]
    assert sum(name.startswith("true_") for name in files) == 15
    assert sum(name.startswith("false_") for name in files) == 15


def test_a_lemma_is_a_claim_that_can_be_judged_and_called():
    verdict = judge(loose, loose.instance(x=[0.6, 0.8, 0], y=[1.0, 0, 0]))
    assert verdict.lhs == pytest.approx(0.6)
    assert loose(jnp.ones(3), jnp.ones(3)) == (3.0, 4.0)


PROBLEMS = {
    "raises": ("raise KeyError('lost')", "raises KeyError at T=1: 'lost'"),
    "value in Python": ("return (1.0, 2.0) if x[0] > 0 else (1.0, 1.0)", "needs the value of a"),
    "nan": ("return jnp.log(-1 - x @ x), 1.0", "the left side is nan at T=1, x=[0]"),
    "undefined at zero": ("return 1.0, jnp.sum(x / x)", "the right side is nan at T=1, x=[0]"),
    "array": ("return x, jnp.linalg.norm(x)", "the left side has shape (1,) at T=1"),
    "negative right side": ("return x @ x, -1.0", "the right side is -1, below zero, at T=1, x="),
    "negative left side": ("return -1 - x @ x, 1.0", "the left side is -1, below zero, at T=1"),
    "one side": ("return 1.0", "raises TypeError at T=1"),
    "boolean": ("return x @ x > 1, 1.0", "the left side is of type bool"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_lemma_that_cannot_be_tested_is_one_line(name, tmp_path, monkeypatch, capsys):
    body, problem = PROBLEMS[name]
    monkeypatch.chdir(tmp_path)
    head = "import jax.numpy as jnp\nfrom headcount.theory import Reals, Size, lemma\n"
    head += 'T = Size("T", 1, 2)\n\n@lemma(x=Reals(T))\ndef mine(x):\n    '
    written(tmp_path, head + body)
    assert run(["falsify", "my_lemma.py", "--budget", "small"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("headcount: lemma = 'my_lemma.py:mine': ")
    assert problem in line


FILES = {
    "no lemma": ("x = 1", "declares no lemma"),
    "broken": ("x = (", "raises SyntaxError in line 1"),
    "raises": ("\n1 / 0", "raises ZeroDivisionError in line 2: division by zero"),
    "other names": (
        "from headcount.theory import Reals, lemma\n@lemma(x=Reals(2))\ndef f(y): return 1, 2",
        "declares other variables than it takes",
    ),
    "two ranges": (
        "from headcount.theory import *\nfrom headcount.theory import Reals, Size, lemma\n"
        "@lemma(x=Reals(Size('T', 1, 2)), y=Reals(Size('T', 1, 3)))\ndef f(x, y): return 1, 2",
        "has two ranges",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_does_not_load_is_one_line(name, tmp_path):
    text, problem = FILES[name]
    file = written(tmp_path, text)
    with pytest.raises(BadArgument, match=problem):
        lemmas_of(str(file))
    with pytest.raises(BadArgument, match="does not exist"):
        lemmas_of(str(tmp_path / "nowhere.py"))


def test_on_a_terminal_we_ask_first(tmp_path, monkeypatch, capsys):
    file = written(tmp_path, ISSUE)
    beside = tmp_path / "elsewhere"
    beside.mkdir()
    monkeypatch.chdir(beside)
    monkeypatch.setattr("headcount.theory.lemma_files._run", _never)
    monkeypatch.setattr("sys.stdin", _Terminal("n\n"))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert run(["falsify", str(file)]) == 2
    assert "was not run" in capsys.readouterr().err


class _Terminal:
    def __init__(self, line: str) -> None:
        self.line = line

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self.line


@lemma(x=Box(low=-2, high=2))
def unprovable(x):
    """|det| of a matrix that balls cannot factor."""
    return jnp.abs(jnp.linalg.det(x * jnp.eye(4))), 0.9


def test_without_an_enclosure_a_violation_is_reported_as_not_proved():
    found = falsify(unprovable, budget=LITTLE)
    assert found.violated
    assert not found.proved
    assert found.message.startswith("violated")
