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
