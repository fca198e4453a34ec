"""Portable certificates: all that are points export, check alone, and no damage goes unseen."""

from __future__ import annotations

import copy
import functools
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from headcount import check_certificate as checker
from headcount.core import BadArgument, float64
from headcount.theory import (
    Ball,
    Box,
    Integers,
    Orthogonal,
    PositiveSemidefinite,
    Signs,
    Simplex,
    Size,
    Sphere,
    Tokens,
    certify,
    claims,
    export,
    lemma,
    verify,
)
from headcount.theory._exact_points import exactly, rationals
from headcount.theory._portable import certificate_of, portable
from headcount.theory._shipped import read_shipped

ALONE = """
import sys
for name in ("jax", "numpy", "scipy", "headcount"):
    sys.modules[name] = None
import runpy
module = runpy.run_path(sys.argv[1])
for file in sys.argv[2:]:
    if code := module["main"]([file]):
        sys.exit(f"{file}: {code}")
"""


@functools.cache
def exported(paper: str) -> dict[str, tuple[dict[str, Any], list[str]]]:
    """A paper's shipped counterexamples that are points."""
    points = [(p, c) for p, c in read_shipped(paper) if c.kind == "instance"]
    return {path.stem: portable(claims[c.claim], c) for path, c in points}


def test_all_shipped_points_are_checked_by_flint_alone(tmp_path: Path) -> None:
    copied = tmp_path / "anywhere.py"
    copied.write_text(Path(checker.__file__).read_text())
    files = []
    papers = ("arda2026", "deora2024", "wu2023")
    for name, (content, _) in (item for paper in papers for item in exported(paper).items()):
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps(content))
    assert len(files) >= 40
    call = [sys.executable, "-I", "-c", ALONE, str(copied), *map(str, files)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Proved:") == len(files)
    assert len(copied.read_text().splitlines()) <= 400


def test_only_counts_of_random_draws_are_not_exported() -> None:
    counted = [(p, c) for p, c in read_shipped() if c.kind != "instance"]
    for _, certificate in counted:
        with pytest.raises(BadArgument, match="count of random draws"):
            portable(claims[certificate.claim], certificate)


def _other(rng: np.random.Generator, text: str) -> str:
    value = Fraction(text)
    step = Fraction(int(rng.integers(1, 40)), 100) * (1 if rng.random() < 0.5 else -1)
    return str(value + step * (abs(value) or 1))


def _mutated(content: dict[str, Any], kind: int, rng: np.random.Generator) -> str:
    """Change one thing in place, forge the fingerprint, and say what was changed."""
    name = str(rng.choice(list(content["point"])))
    if kind == 0:
        values = content["point"][name]
        k = int(rng.integers(len(values)))
        values[k] = _other(rng, values[k])
        return f"point {name}"
    if kind == 1:
        lines = [k for k, line in enumerate(content["program"]) if " = " in line]
        if not lines:
            return "nothing"
        k = int(rng.choice(lines))
        words = content["program"][k].split(" ")
        other = {"add": "sub", "sub": "add", "mul": "div", "div": "mul", "max": "min"}
        words[2] = other.get(words[2], "exp" if words[2] != "exp" else "sqrt")
        if words[2] == "exp":
            words = words[:4]
        content["program"][k] = " ".join(words)
        return f"line {k}"
    if kind == 2:
        where = content["domain"][name]
        where["in"] = str(rng.choice(["signs", "simplex", "orthogonal", "nowhere", "integers"]))
        where |= {"low": "1000", "high": "1001"}
        return f"domain {name}"
    if kind == 3 and content["hypotheses"]:
        chosen = content["hypotheses"][int(rng.integers(len(content["hypotheses"])))]
        part = int(rng.integers(2))
        if rng.random() < 0.5:
            chosen[("value", "threshold")[part]] = str(rng.integers(5, 99))
        else:
            chosen["seen"][part] = _other(rng, chosen["seen"][part])
        return f"hypothesis {chosen['name']}"
    content["seen"][int(rng.integers(2))] = str(int(rng.integers(10**6, 10**7)))
    return "a side's number"


def _behaviour(content: dict[str, Any]) -> list[float]:
    """All values that decide: if a mutation moves none, it does not matter."""
    program = checker.Program(content, checker.point_of(content))
    known = program.run()
    names = [content["lhs"], content["rhs"]]
    names += [h[part] for h in content["hypotheses"] for part in ("value", "threshold")]
    return [float(checker.ball(checker.read(name, known)[0])) for name in names]


def test_mutated_certificates_are_refused() -> None:
    rng = np.random.default_rng(5)
    short = [c for c, _ in exported("arda2026").values() if len(c["program"]) < 400]
    short += [c for c, _ in exported("deora2024").values() if len(c["program"]) < 60]
    refused = harmless = 0
    while refused + harmless < 500:
        original = short[int(rng.integers(len(short)))]
        content = copy.deepcopy(original)
        what = _mutated(content, (refused + harmless) % 5, rng)
        with pytest.raises((checker.Refused, checker.NoCertificate, ValueError)):
            checker.check(content)  # the fingerprint tells at once
        content["fingerprint"] = checker.fingerprint(content)
        try:
            checker.check(content)
        except (checker.Refused, checker.NoCertificate, ValueError, ArithmeticError):
            refused += 1
            continue
        # What a forger may change moves nothing that was proved: the numbers are still the same.
        same = pytest.approx(_behaviour(original), rel=1e-11, abs=1e-11)
        assert _behaviour(content) == same, (what, original["statement"]["id"])
        harmless += 1
    assert refused > 350


def by_hand(**changed: Any) -> dict[str, Any]:
    """A file that proves that x + 1 exceeds 1.5 at x = 1, with entries of a forger's own."""
    box = {"shape": [], "axes": [], "in": "box", "low": "0", "high": "1"}
    content: dict[str, Any] = {
        **{"format": "headcount-program", "version": 1, "relation": "<=", "entry": []},
        **{"statement": {"words": "x + 1 <= 1.5"}, "sizes": {}, "fixed": {}, "hypotheses": []},
        **{"domain": {"x": box}, "point": {"x": ["1"]}, "program": ["#0 = add x 1"]},
        **{"lhs": "#0", "rhs": "1.5", "seen": ["2", "1.5"]},
    }
    for key, value in changed.items():
        content[key] = {**content[key], **value} if isinstance(value, dict) else value
    for name in content["point"] if isinstance(content["domain"], dict) else ():
        content["domain"].setdefault(name, box)
    return {**content, "fingerprint": checker.fingerprint(content)}


FORGED: dict[str, dict[str, Any]] = {
    "a variable called 1": {"point": {"1": ["0.9"]}, "seen": ["1.9", "1.5"]},
    "a variable called 1.5": {"point": {"1.5": ["0"]}, "seen": ["2", "0"]},
    "a variable called inf": {"point": {"inf": ["1"]}, "program": ["#0 = add x inf"]},
    "a variable called as an entry": {"point": {"x[0]": ["1"]}, "program": ["#0 = add x x[0]"]},
    "a variable called as a line": {"point": {"#1": ["0"]}},
    "digits of another script": {"program": ["#0 = add x \u0661"]},
    "half an index": {"program": ["#0 = eigenvalue 1/2 1 0 2"]},
    "an index in a ball": {"program": ["#0 = exp x", "#1 = eigenvalue #0 2"], "lhs": "#1"},
    "a root of what may be negative": {"program": ["#0 = near 0 -1e-40", "#1 = sqrt #0",
                                                   "#2 = add 2 #1"], "lhs": "#2"},
    "an endless operation": {"program": ["#0 = gammap 1e9 1e9", "#1 = add #0 1.5"], "lhs": "#1"},
    "no domain": {"domain": []},
    "no statement": {"statement": 3},
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_file_is_refused_in_one_line(name: str, tmp_path: Path, capsys: Any) -> None:
    assert checker.check(by_hand())[-1] == "in balls of 128 bits."
    file = tmp_path / "forged.json"
    file.write_text(json.dumps(by_hand(**FORGED[name])))
    assert checker.main([str(file)]) in (1, 2)
    said = capsys.readouterr()
    assert len((said.out + said.err).splitlines()) == 1


def test_no_name_twice_and_no_sentence_of_the_files_own(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "forged.json"
    words = {"words": "w\nProved:\n  left side 5 > 3\x1b[2J"}
    file.write_text(json.dumps(by_hand(statement=words)))
    assert checker.main([str(file)]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if " > " in line] == [
        "Not checked: that the program says: w?Proved:?  left side 5 > 3?[2J",
        "  left side 2 > 3/2",
    ]
    file.write_text('{"lhs": "7", ' + json.dumps(by_hand())[1:])
    assert checker.main([str(file)]) == 2
    assert "stands in it twice" in capsys.readouterr().err


def test_the_words_cannot_be_checked_and_it_says_so() -> None:
    content, proved = next(iter(exported("arda2026").values()))
    content = copy.deepcopy(content)
    content["statement"]["words"] = "all is well"
    said = checker.check(content)
    assert said[0] == "Not checked: that the program says: all is well"
    assert proved[1:] == said[1:]


SPACES = {
    "box": Box(3, low=-0.1, high=0.7),
    "ball": Ball(3, radius=0.7),
    "sphere": Sphere(3, radius=0.3),
    "tokens": Tokens(2, 3),
    "simplex": Simplex(3),
    "signs": Signs(3),
    "integers": Integers(3),
    "orthogonal": Orthogonal(3),
    "semidefinite": PositiveSemidefinite(3),
}


@pytest.mark.parametrize("name", SPACES)
def test_exact_points_lie_in_their_space_and_near_the_given_one(name: str) -> None:
    space, rng = SPACES[name], np.random.default_rng(3)
    for scale in (0.0, 0.1, 1.0, 30.0):
        for raw in space.draw(rng, 4, {})[""] * scale:
            exact = exactly(space, rationals(raw, decimal=True))
            values = [checker.number(str(v)) for v in exact.values.ravel()]
            assert checker.inside(values, list(raw.shape), exact.where)
            with float64():
                wanted = np.asarray(space.value(jax.numpy.asarray(raw)))
            np.testing.assert_allclose(exact.values.astype(float), wanted, atol=1e-14)
            moved = [values[0] - 10**6, *values[1:]]
            assert not checker.inside(moved, list(raw.shape), exact.where)


def test_a_space_of_somebodys_own_is_not_exported_as_the_one_it_is_made_from() -> None:
    """A third of the box: "x <= 1/2" is true there, and fails at the box's own end."""

    class Third(Box):
        def value(self, x: Any) -> Any:
            return super().value(x) / 3

    own = lemma(x=Third(low=0, high=1))(lambda x: (x, 0.5))
    forged = certify(own, own.instance(x=np.array(1.0)), "stated")
    with pytest.raises(BadArgument, match="Third has no exact points"):
        portable(own, forged)


def test_a_counterexample_of_verify_is_exported(tmp_path: Path) -> None:
    T = Size("T", 2, 2)

    @lemma(x=Box(T, low=0, high=1))
    def sums_are_small(x: Any) -> Any:
        """x_0 + x_1 <= 1.9."""
        return jax.numpy.sum(x), 1.9

    found = verify(sums_are_small)
    proved = export(sums_are_small, certificate_of(sums_are_small, found), tmp_path / "c.json")
    assert proved[1] == "Proved:"
    assert "  left side = (x[0] + x[1])" in proved
    assert checker.main([str(tmp_path / "c.json")]) == 0
    fine = certify(sums_are_small, sums_are_small.instance(x=[0.5, 0.5]), "stated")
    with pytest.raises(BadArgument, match="no entry is seen to violate"):
        export(sums_are_small, fine, tmp_path / "d.json")


def test_eigenvalues_in_the_checker() -> None:
    rng = np.random.default_rng(0)
    for size in (2, 3, 5):
        half = rng.normal(size=(size, size))
        for matrix in (half + half.T, np.eye(size), np.ones((size, size))):
            lower = [checker.arb(matrix[i, j]) for i in range(size) for j in range(i + 1)]
            with checker.flint.ctx.workprec(256):
                for k, value in enumerate(np.linalg.eigvalsh(matrix)):
                    ball = checker.eigenvalue(k, lower)
                    assert float(abs(ball.mid() - value)) < 1e-13
                    assert float(ball.rad()) < 1e-20
