"""Recheck a certificate with arithmetic that shares nothing with the search that found it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core import BadArgument
from ._certificate import Certificate, read_certificate
from ._claim import Check, Claim, Kind
from ._frequency import frequency_of
from ._registry import claims
from ._verdict import ROUNDING
from .slow import FLOATS, Arithmetic, precise

NEAR_ONE = 1e-6
"""Within this of 1, float64 does not decide: mpmath does."""
AGREEMENT = 1e-6
"""The certificate's own ratio must agree with the recheck to this, relatively."""
_SLACK = 1e-12


@dataclass(frozen=True)
class Recheck:
    """What the independent evaluation says about a certificate."""

    claim: str
    variant: str
    confirmed: bool
    ratio: float
    arithmetic: str
    message: str
    hypotheses: tuple[Check, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The keys that `recheck --json` prints."""
        return {
            "claim": self.claim,
            "variant": self.variant,
            "confirmed": self.confirmed,
            "ratio": self.ratio,
            "arithmetic": self.arithmetic,
            "hypotheses": [check.to_json() for check in self.hypotheses],
            "message": self.message,
        }


def _numbers(num: Arithmetic, value: Any) -> Any:
    if isinstance(value, (str, int)):
        return value
    if isinstance(value, (list, tuple)):
        return [_numbers(num, entry) for entry in value]
    return num.number(value)


def naive_data(num: Arithmetic, instance: dict[str, Any]) -> dict[str, Any]:
    """The instance's arrays as nested lists of `num` numbers; names and counts as they are."""
    return {
        name: value if isinstance(value, (str, int)) else _numbers(num, np.asarray(value).tolist())
        for name, value in instance.items()
    }


def naive_ratio(claim: Claim, num: Arithmetic, data: dict[str, Any], variant: str) -> Any:
    """lhs/rhs by the slow path; for an identity the relative difference over ROUNDING."""
    lhs, rhs = claim.naive(num, data, variant)
    if claim.kind is Kind.IDENTITY:
        size = max(max(abs(x) for x in lhs), max(abs(x) for x in rhs), num.number(1e-300))
        gap = max(abs(x - y) for x, y in zip(lhs, rhs, strict=True))
        return gap / (num.number(ROUNDING) * size)
    if lhs == 0:
        return num.number(0)
    return lhs / rhs if rhs != 0 else num.number("inf")


def recheck(certificate: Certificate | Path | str) -> Recheck:
    """Confirm or reject a certificate: hypotheses, both sides, and agreement with its numbers."""
    if not isinstance(certificate, Certificate):
        certificate = read_certificate(Path(certificate))
    claim = claims[certificate.claim]
    variant = claim.variant(certificate.variant)
    if certificate.kind == "frequency":
        return _recheck_frequency(claim, certificate, variant)
    return _recheck_instance(claim, certificate, variant)


def _recheck_instance(claim: Claim, certificate: Certificate, variant: str) -> Recheck:
    try:
        data = naive_data(FLOATS, dict(certificate.instance))
        checks = tuple(
            Check(h.name, float(h.naive(FLOATS, data)), h.threshold) for h in claim.hypotheses
        )
        ratio = float(naive_ratio(claim, FLOATS, data, variant))
        arithmetic = "float64 loops"
        if claim.kind is not Kind.IDENTITY and abs(ratio - 1) < NEAR_ONE:
            num = precise()
            exact = naive_ratio(claim, num, naive_data(num, dict(certificate.instance)), variant)
            ratio, arithmetic = float(exact), "mpmath, 50 digits"
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        if isinstance(error, BadArgument):
            raise
        raise BadArgument(
            "file", certificate.claim, f"does not fit the claim: {error!r}", fix="write it again"
        ) from error
    confirmed, message = _decide(checks, ratio, certificate.claimed.get("ratio", float("nan")))
    return Recheck(claim.id, variant, confirmed, ratio, arithmetic, message, checks)


def _decide(checks: tuple[Check, ...], ratio: float, claimed: float) -> tuple[bool, str]:
    failed = [check for check in checks if check.margin < -_SLACK * max(1, abs(check.threshold))]
    if failed:
        worst = failed[0]
        return False, f"rejected: {worst.name} fails, {worst.value!r} > {worst.threshold!r}"
    if not abs(ratio - claimed) <= AGREEMENT * abs(claimed):
        return (
            False,
            f"rejected: the file claims the ratio {claimed!r}, the recheck gives {ratio!r}",
        )
    if not ratio > 1 + ROUNDING:
        return False, f"rejected: the ratio {ratio!r} does not exceed 1 beyond rounding"
    return True, f"confirmed: ratio {ratio:.9g}"


def _recheck_frequency(claim: Claim, certificate: Certificate, variant: str) -> Recheck:
    arithmetic = "NumPy loops, own random numbers"
    if claim.experiment is None:
        raise BadArgument("file", claim.id, "is not tested by frequency", fix="write it again")
    claimed, case = certificate.claimed, certificate.case
    try:
        repetitions, seed = int(claimed["repetitions"]), int(claimed["seed"])
        delta = claim.experiment.delta(case)
        count = claim.experiment.exceeds_naively(case, variant, seed, repetitions)
        stated = int(claimed["exceedances"])
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, BadArgument):
            raise
        raise BadArgument(
            "file", claim.id, f"does not fit the claim: {error!r}", fix="write it again"
        ) from error
    result = frequency_of(count, repetitions, delta)
    ratio = result.rate / delta
    if count != stated:
        message = f"rejected: the file counts {stated} exceedances, the recheck {count}"
    elif result.interval.low <= delta:
        message = (
            f"rejected: the interval of {count}/{repetitions} does not exclude delta={delta:g}"
        )
    else:
        low = result.interval.low
        message = (
            f"confirmed: failed {count} of {repetitions} times, at least {low:.4g} > {delta:g}"
        )
        return Recheck(claim.id, variant, True, ratio, arithmetic, message)
    return Recheck(claim.id, variant, False, ratio, arithmetic, message)
