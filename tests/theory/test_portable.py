"""Portable certificates: all that are points export, check alone, and no damage goes unseen."""

from __future__ import annotations

import copy
import functools
import json
import subprocess
import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from headcount import check_certificate as checker
from headcount.core import BadArgument
from headcount.theory import (
    Box,
    Certificate,
    Size,
    certify,
    claims,
    export,
    lemma,
    read_certificate,
    shipped_certificates,
    verify,
)

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


def shipped() -> list[tuple[Path, Certificate]]:
    return [(path, read_certificate(path)) for path in shipped_certificates()]


@functools.cache
def exported(paper: str) -> dict[str, tuple[dict[str, Any], list[str]]]:
    """A paper's shipped counterexamples that are points."""
    found = {}
    for path, certificate in shipped():
        if certificate.kind == "instance" and claims[certificate.claim].paper == paper:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "c.json"
                proved = export(claims[certificate.claim], certificate, file)
                found[path.stem] = json.loads(file.read_text()), proved
    return found


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


def test_only_counts_of_random_draws_are_not_exported(tmp_path: Path) -> None:
    counted = [certificate for _, certificate in shipped() if certificate.kind != "instance"]
    assert counted
    for certificate in counted:
        with pytest.raises(BadArgument, match="count of random draws"):
            export(claims[certificate.claim], certificate, tmp_path / "c.json")


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


def made(**changes: Any) -> dict[str, Any]:
    """A small certificate: 1/4 > 1/5 for the square of 1/2."""
    content = {
        "format": "headcount-program",
        "version": 1,
        "statement": {"words": "x^2 <= 0.2"},
        "sizes": {},
        "fixed": {},
        "domain": {"x": {"shape": [], "axes": [], "in": "box", "low": "0", "high": "1"}},
        "point": {"x": ["0.5"]},
        "program": ["#0 = mul x x"],
        "hypotheses": [],
        "relation": "<=",
        "entry": [],
        "lhs": "#0",
        "rhs": "0.2",
        "seen": ["0.25", "0.2"],
        **changes,
    }
    return {**content, "fingerprint": checker.fingerprint(content)}


REALS = {"shape": [], "axes": [], "in": "reals"}


def of_line(*lines: str, seen: str) -> dict[str, Any]:
    return {"program": list(lines), "lhs": f"#{len(lines) - 1}", "rhs": "-1", "seen": [seen, "-1"]}


def named(name: str) -> dict[str, Any]:
    """3 > 2.5, where 3 is called by a name that reads like another number."""
    same = {"program": [], "lhs": name, "rhs": "2.5", "seen": ["3", "2.5"]}
    return {"domain": {name: REALS}, "point": {name: ["3"]}, **same}


def pair(**where: Any) -> dict[str, Any]:
    """The point (1, 1), which no unit ball holds."""
    same = {"program": [], "lhs": "x[0]", "seen": ["1", "0.2"], "point": {"x": ["1", "1"]}}
    return {
        "domain": {"x": {"shape": [2], "axes": [""], "in": "ball", "radius": "1"} | where}
    } | same


FORGED: dict[str, dict[str, Any]] = {
    "a name that is a number": named("2"),
    "a name that is infinity": named("inf"),
    "a name that is a line": named("#0"),
    "a name that is an entry": {
        "domain": {"x": {**REALS, "shape": [1], "axes": [""]}, "x[0]": REALS},
        "point": {"x": ["0.5"], "x[0]": ["9"]},
        **of_line("#0 = mul x[0] x[0]", seen="81"),
    },
    "a line before its operands": {"program": ["#0 = mul #1 x", "#1 = mul x x"]},
    "a line of itself": {"program": ["#0 = mul #0 x"]},
    "lines in another order": {"program": ["#1 = mul x x", "#0 = mul x x"]},
    "no entries": {"domain": {"x": {**REALS, "shape": [0], "axes": [""]}}, "point": {"x": []}},
    "too long a number": {"point": {"x": ["1" * 3000]}},
    "too large an exponent": {"point": {"x": ["1e-9999"]}},
    "digits of another script": {"point": {"x": ["\u0660.5"]}},
    "a point that is nan": {"point": {"x": ["nan"]}},
    "a side that is infinite": of_line("#0 = mul inf x", seen="1"),
    "infinity less itself": of_line("#0 = sub inf inf", seen="0"),
    "no logarithm less itself": of_line("#0 = log -1", "#1 = sub #0 #0", seen="0"),
    "the larger of nan": of_line("#0 = log -1", "#1 = max #0 5", seen="5"),
    "a root across zero": of_line("#0 = near -1 0.5", "#1 = sqrt #0", seen="0"),
    "zero by zero": of_line("#0 = div 0 0", seen="0"),
    "an eigenvalue between two": of_line("#0 = eigenvalue 1/2 1 0 1", seen="1"),
    "an eigenvalue without a number": of_line("#0 = exp 0", "#1 = eigenvalue #0 1 0 1", seen="1"),
    "a relation that is none": {"relation": ">="},
    "an equality": {"rhs": "0.25", "seen": ["0.25", "0.25"]},
    "a hypothesis that fails": {
        "hypotheses": [{"name": "h", "value": "x", "threshold": "0", "seen": ["0.5", "0"]}]
    },
    "a radius below zero": {"domain": {"x": {**REALS, "in": "ball", "radius": "-5"}}},
    "more axes of a batch than axes": pair(batch=7),
    "a batch of truth": pair(batch=True),
    "a size that is a truth": {"sizes": {"T": [True, 0, 3]}},
    "an unknown operation": {"program": ["#0 = rad x"]},
    "a decision of nan": {"program": ["#0 = mul x x", "#1 = log -1", "check #1 != 4"]},
    "half an index": {"program": ["#0 = eigenvalue 1/2 1 0 2"]},
    "a root of what may be negative": of_line(
        "#0 = near 0 -1e-40", "#1 = sqrt #0", "#2 = add 2 #1", seen="2"
    ),
    "an endless operation": of_line("#0 = gammap 1e9 1e9", "#1 = add #0 1.5", seen="2"),
    "no domain": {"domain": []},
    "no statement": {"statement": 3},
}


def test_a_small_certificate_is_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "  left side 1/4 > 1/5" in checker.check(made())
    file = tmp_path / "c.json"
    file.write_text(json.dumps(made(statement={"words": "so\nProved:\n  left side 5 > 3\x1b[2K"})))
    assert checker.main([str(file)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].endswith("so?Proved:?  left side 5 > 3?[2K")
    assert out[1] == "Proved:"
    file.write_text(json.dumps(made())[:-1] + ', "lhs": "#0"}')
    assert checker.main([str(file)]) == 2
    assert "stands in it twice" in capsys.readouterr().err
    for broken in (made(domain=[]), made(statement="none"), "[" * 10**5, made(seen=[1, 2])):
        file.write_text(broken if isinstance(broken, str) else json.dumps(broken))
        assert checker.main([str(file)]) == 2


@pytest.mark.parametrize("name", FORGED)
def test_forged_certificates_are_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "forged.json"
    file.write_text(json.dumps(made(**FORGED[name])))
    assert checker.main([str(file)]) in (1, 2)
    said = capsys.readouterr()
    assert len((said.out + said.err).splitlines()) == 1


def test_the_words_cannot_be_checked_and_it_says_so() -> None:
    content, proved = next(iter(exported("arda2026").values()))
    content = copy.deepcopy(content)
    content["statement"]["words"] = "all is well"
    said = checker.check(content)
    assert said[0] == "Not checked: that the program says: all is well"
    assert proved[1:] == said[1:]


def test_a_counterexample_of_verify_is_exported(tmp_path: Path) -> None:
    T = Size("T", 2, 2)

    @lemma(x=Box(T, low=0, high=1))
    def sums_are_small(x: Any) -> Any:
        """x_0 + x_1 <= 1.9."""
        return jax.numpy.sum(x), 1.9

    found = verify(sums_are_small)
    point = sums_are_small.instance(**{k: np.asarray(x, float) for k, x in found.instance.items()})
    counterexample = certify(sums_are_small, point, found.variant)
    proved = export(sums_are_small, counterexample, tmp_path / "c.json")
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
