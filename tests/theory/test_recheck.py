"""A certificate is believed in nothing: its numbers must be right, and almost is not enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Float

from headcount.core import Array
from headcount.theory import (
    Certificate,
    Claim,
    Family,
    Form,
    Kind,
    Sides,
    _recheck,
    certify,
    claims,
    instance_class,
    read_certificate,
    recheck,
)
from headcount.theory import shipped_certificates as shipped
from headcount.theory._prove import prove
from headcount.theory.domain import Domain
from headcount.theory.slow import Arithmetic

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


@instance_class
@dataclass(frozen=True)
class Many(Domain):
    """Several numbers."""

    x: Float[Array, "k"]


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> Claim:
    """x_k <= 1, or -1/x_k <= -1, entry by entry: false where an entry exceeds 1."""

    def sides(many: Many, variant: str) -> Sides:
        ones = jnp.ones_like(many.x)
        return Sides(many.x, ones) if variant == "upper" else Sides(-1 / many.x, -ones)

    def naive(num: Arithmetic, data: Any, variant: str) -> tuple[Any, Any]:
        one = num.number(1)
        if variant == "upper":
            return data["x"], [one for _ in data["x"]]
        return [-one / x for x in data["x"]], [-one for _ in data["x"]]

    claim = Claim(
        id="toy/entries",
        title="Entries",
        kind=Kind.DETERMINISTIC,
        equations="none",
        statement="x_k <= 1",
        latex="x_k \\le 1",
        sides=sides,
        naive=naive,
        families=(Family("three", lambda rng, n: Many(rng.normal(size=(n, 3))), lambda i: i),),
        variants={"upper": Form("as it is"), "lower": Form("both sides negative")},
        default="upper",
    )
    monkeypatch.setattr(_recheck, "claims", {claim.id: claim})
    return claim


@pytest.mark.parametrize("variant", ["upper", "lower"])
def test_judge_and_recheck_look_at_the_same_entry(entries: Claim, variant: str) -> None:
    """The worst, which here is neither the first nor the first that is violated."""
    certificate = certify(entries, Many(np.array([0.5, 1.25, 4.0, 2.0])), variant)
    result = recheck(certificate)
    assert result.status == "proved", result.message
    assert result.ratio == pytest.approx(4.0)
    assert result.ratio == certificate.claimed["ratio"]
    sides = {"lhs": 1.25, "rhs": 1.0} if variant == "upper" else {"lhs": -0.8, "rhs": -1.0}
    other = {**sides, "ratio": 1.25}
    forged = recheck(replace(certificate, claimed=other))
    assert forged.status == "refuted"
    assert "the file states lhs" in forged.message


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


def test_a_hypothesis_that_float64_cannot_tell_from_its_threshold() -> None:
    """|q|^2 = 1 + 2^-80: both numbers read 1."""
    entries = np.array([1.0, 2.0**-40])
    instance = {**STEP.instance, "q": entries, "X": np.array([[1.0, 0.0], [-1.0, 0.0]])}
    wider = {"U": np.zeros(2), "W": np.zeros((2, 2)), "v": np.eye(2)[:, :1] * np.eye(2)[:1]}
    result = recheck(replace(STEP, instance={**instance, **wider}))
    assert result.status == "refuted"
    (line,) = [line for line in hypothesis_lines(result) if line.startswith("query")]
    assert line == "query in the unit ball: 1 <= 1 fails by 4.14e-25"
    assert "1.0 > 1.0 by 4.14e-25" in result.message


@pytest.mark.parametrize(
    ("x", "told"),
    [
        (1 + 2.0**-52, "1.0000000000000002 > 1, ratio 1 + 2.22e-16"),
        (1 + 1e-10, "1.0000000001 > 1, ratio 1 + 1e-10"),
        (1.5, "1.5 > 1, ratio 1.5"),
    ],
)
def test_a_proved_violation_is_seen_in_its_numbers(entries: Claim, x: float, told: str) -> None:
    result = recheck(certify(entries, Many(np.array([0.5, x, 0.25])), "upper"))
    assert result.status == "proved", result.message
    assert result.message == f"the violation is proved: {told}"


@pytest.mark.parametrize("variant", ["upper", "lower"])
def test_what_cannot_be_evaluated_is_not_refuted(entries: Claim, variant: str) -> None:
    """A violation on which the slow twin fails is one all the same."""
    certificate = certify(entries, Many(np.array([0.5, 4.0])), variant)

    def failing(num: Arithmetic, data: Any, variant: str) -> tuple[Any, Any]:
        raise ValueError("number = nan")

    for naive, status in ((entries.naive, "proved"), (failing, "undecided")):
        proof = prove(replace(entries, naive=naive), variant, Many(np.array([0.5, 4.0])))
        assert proof.status == status
    assert recheck(certificate).status == "proved"
