"""A certificate is believed in nothing: its numbers must be right, and almost is not enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headcount.theory import (
    Certificate,
    certify,
    claims,
    read_certificate,
    recheck,
)
from headcount.theory import shipped_certificates as shipped

STEP = read_certificate(next(p for p in shipped() if p.stem == "arda2026-lemma-5-step-printed"))


def altered(certificate: Certificate, factor: float) -> Iterator[tuple[str, Certificate]]:
    """The certificate with each of its numbers multiplied, one at a time."""
    for name, value in certificate.claimed.items():
        claimed = {**certificate.claimed, name: factor * value}
        yield name, replace(certificate, claimed=claimed)
    for k, check in enumerate(certificate.hypotheses):
        for field in ("value", "threshold"):
            changed: Any = check._replace(**{field: factor * getattr(check, field)})
            checks = (*certificate.hypotheses[:k], changed, *certificate.hypotheses[k + 1 :])
            yield f"{field} of {check.name}", replace(certificate, hypotheses=checks)


def test_every_number_of_a_certificate_must_be_right() -> None:
    names = []
    for name, wrong in altered(STEP, 1 + 1e-4):
        result = recheck(wrong)
        assert result.status == "refuted", (name, result.message)
        names.append(name)
    assert {"lhs", "rhs", "ratio"} < set(names)
    assert len(names) == 3 + 2 * len(STEP.hypotheses)


def test_a_number_may_differ_by_rounding() -> None:
    for name, rounded in altered(STEP, 1 + 1e-12):
        result = recheck(rounded)
        assert result.status == "proved", (name, result.message)


@pytest.mark.parametrize(("size", "status"), [(0.95, "proved"), (0.94, "refuted")])
def test_almost_a_violation_is_none(size: float, status: str) -> None:
    """With tokens +-size the ratio is 2/sqrt(pi) size^2, which is 1 at size 0.9414."""
    (tight,) = claims["arda2026/lemma-5-step"].targets()
    certificate = certify(
        claims["arda2026/lemma-5-step"], replace(tight, X=size * np.asarray(tight.X)), "printed"
    )
    assert certificate.claimed["ratio"] == pytest.approx(2 / np.sqrt(np.pi) * size**2)
    result = recheck(certificate)
    assert result.status == status, result.message


def hypothesis_lines(result: Any) -> list[str]:
    """What `headcount recheck` prints about the hypotheses."""
    return [check.shown for check in result.hypotheses]


@pytest.mark.parametrize("q", [1 + 2.0**-52, 1 + 1e-13])
def test_a_hypothesis_is_shown_as_it_was_decided(q: float) -> None:
    """A query an ulp too long refutes the file: no line may say that it holds."""
    result = recheck(replace(STEP, instance={**STEP.instance, "q": np.array([q])}))
    assert result.status == "refuted"
    (line,) = [line for line in hypothesis_lines(result) if line.startswith("query")]
    assert line.endswith(f"{q!r} <= 1 fails")
    stated = {check["name"]: check["holds"] for check in result.to_json()["hypotheses"]}
    assert stated == {
        "tokens in the unit ball": True,
        "query in the unit ball": False,
        "direction v in the unit ball": True,
    }
