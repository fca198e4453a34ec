"""Recheck a certificate, trusting nothing in it: domain, hypotheses, both sides, its own numbers.

An instance is decided in ball arithmetic by two evaluations that share nothing with the search
or with each other. A frequency is counted again with the recheck's own draws and an exact
binomial interval.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core import BadArgument, float64
from ..core._checks import check_kind
from ..core._rounding import ordered
from ._certificate import Certificate, read_certificate
from ._claim import Claim, Kind
from ._frequency import Frequency, frequency_of
from ._in_notebooks import RecheckShown
from ._lemma_problems import check_instance
from ._prove import EnclosedCheck, Evaluation, Proof, Status, prove
from ._pytree import instance_from
from ._registry import claims
from ._verdict import above_one, summarise, worst_entry
from .slow import FLOATS
from .slow_sides import slow_sides

AGREEMENT = 1e-6
"""The certificate's own numbers must agree with the recheck to this, relatively."""
ENDLESS = 1e15
"""Ratios beyond this say that the right side is zero: float64 may give one, balls another."""
CONFIDENCE = 1 - 1e-9
"""Of the binomial interval that a frequency must exceed delta with."""
MOST_REPETITIONS = 20_000
MOST_NUMBERS, MOST_STEPS = 2_000, 200
"""A certificate that asks for more work than this is refused before any is done."""


@dataclass(frozen=True, repr=False)
class Recheck(RecheckShown):
    """What the independent evaluations say about a certificate."""

    claim: str
    variant: str
    status: Status
    ratio: float
    arithmetic: str
    message: str
    hypotheses: tuple[EnclosedCheck, ...] = ()
    proof: Proof | None = None

    @property
    def confirmed(self) -> bool:
        """Whether the violation is established."""
        return self.status is Status.PROVED

    def to_json(self) -> dict[str, Any]:
        """The keys that `recheck --json` prints."""
        return {
            "claim": self.claim,
            "variant": self.variant,
            "confirmed": self.confirmed,
            "outcome": str(self.status),
            "ratio": self.ratio,
            "arithmetic": self.arithmetic,
            "hypotheses": [check.to_json() for check in self.hypotheses],
            "message": self.message,
        }


def recheck(certificate: Certificate | Path | str, lemma: Claim | None = None) -> Recheck:
    """Decide a certificate: the violation is proved, refuted, or stays undecided.

    A certificate about a lemma needs the lemma itself: no file that it names is ever run.
    """
    fix = "give a certificate or its file"
    check_kind("certificate", certificate, (Certificate, Path, str), fix=fix)
    if not isinstance(certificate, Certificate):
        certificate = read_certificate(Path(certificate))
    claim = lemma if lemma is not None else _registered(certificate.claim)
    if lemma is not None and lemma.id != certificate.claim:
        problem = f"is not the lemma of the certificate, {certificate.claim}"
        raise BadArgument("lemma", lemma.id, problem, fix="name the lemma that it is about")
    variant = claim.variant(certificate.variant)
    if certificate.kind == "frequency":
        return _recheck_frequency(claim, certificate, variant)
    return _recheck_instance(claim, certificate, variant)


def _registered(name: str) -> Claim:
    if ".py:" in name or (name not in claims and "/" not in name):
        fix = f"name its file yourself, as --lemma {name}; a file that is only named is never run"
        raise BadArgument("file", name, "is a certificate about a lemma", fix=fix)
    return claims[name]


def _recheck_instance(claim: Claim, certificate: Certificate, variant: str) -> Recheck:
    kind = claim.instance_class
    if kind is None or not claim.families:
        problem = "is not decided by an instance"
        raise BadArgument("file", claim.id, problem, fix="give a frequency certificate")
    _check_work(claim, certificate)
    instance = instance_from(kind, certificate.instance)
    if claim.raw:
        check_instance(claim, variant, instance)
    proof = prove(claim, variant, instance)
    twin = proof.decisive
    checks = twin.hypotheses
    ratio = _ratio(claim, twin)
    arithmetic = f"balls: {twin.name} at {twin.bits} bits"
    if twin is proof.twin:
        arithmetic += f", {proof.traced.name} " + (
            f"at {proof.traced.bits} bits"
            if proof.traced.status is not Status.UNAVAILABLE
            else f"not available ({proof.traced.reason})"
        )
    status, message = proof.status, f"{proof.status}: {proof.reason}"
    if proof.proved:
        differs = _disagreement(certificate, twin.lhs, twin.rhs, ratio, claim, checks)
        if differs is not None:
            status, message = Status.REFUTED, f"refuted: {differs}"
        else:
            message = f"{claim.forms[variant].proved}: {_amount(claim, twin, ratio)}"
    return Recheck(claim.id, variant, status, ratio, arithmetic, message, checks, proof)


def _check_work(claim: Claim, certificate: Certificate) -> None:
    """Ball arithmetic takes its time: large instances are refused before it starts."""
    values = certificate.instance.values()
    numbers = sum(np.size(value) for value in values)
    steps = max((value for value in values if isinstance(value, int)), default=0)
    if numbers > MOST_NUMBERS or steps > MOST_STEPS:
        problem = f"has {numbers} numbers and asks for {steps} steps"
        fix = f"at most {MOST_NUMBERS} and {MOST_STEPS} are rechecked; make it smaller"
        raise BadArgument("file", claim.id, problem, fix=fix)


def _ratio(claim: Claim, seen: Evaluation) -> float:
    lhs, rhs = seen.lhs, seen.rhs
    if claim.kind is Kind.IDENTITY:
        return abs(lhs - rhs) / max(abs(lhs), abs(rhs), 1e-300)
    ratio = worst_entry(lhs, rhs)[2]
    if seen.status is Status.PROVED and not ratio > 1:  # sides that float64 cannot hold apart
        return seen.ratio
    return ratio


def _amount(claim: Claim, seen: Evaluation, ratio: float) -> str:
    """Both sides, with as many digits as show which is larger, or else their difference."""
    left, right = ordered(seen.lhs, seen.rhs, 9)
    apart = "" if left != right else f" by {seen.excess.removeprefix('-')}"
    if claim.kind is Kind.IDENTITY:
        differ = f" and differs{apart}" if apart else ""
        return f"an entry is {left} on one side and {right} on the other{differ}"
    if apart:
        return f"{left} exceeds {right}{apart}"
    if not math.isfinite(ratio):  # nothing over zero
        return f"{left} > {right}"
    size = f"{ratio:.9g}" if not 1 <= ratio < 1.00001 else above_one(ratio)
    return f"{left} > {right}, ratio {size}"


def _disagreement(
    certificate: Certificate, lhs: float, rhs: float, ratio: float, claim: Claim, checks: Any
) -> str | None:
    """The first number of the file that is not what the recheck finds."""
    numbers = [("lhs", lhs), ("rhs", rhs), ("ratio", ratio)]
    if claim.kind is Kind.IDENTITY:  # the file's sides are norms, the proof is by entries
        numbers = [*zip(("lhs", "rhs"), _norms(claim, certificate), strict=True)]
    pairs = [(name, certificate.claimed.get(name, math.nan), found) for name, found in numbers]
    stated = {check.name: check for check in certificate.hypotheses}
    named = sorted(check.name for check in certificate.hypotheses)
    if named != sorted(check.name for check in checks):
        return "the file lists other hypotheses than the claim has"
    for check in checks:
        pairs.append((check.name, stated[check.name].value, check.value))
        pairs.append((f"threshold of {check.name}", stated[check.name].threshold, check.threshold))
    for name, said, found in pairs:
        size = max(abs(found), 1e-9)  # hypotheses may be zero up to rounding
        close = math.isfinite(found) and abs(said - found) <= AGREEMENT * size
        if name == "ratio":  # of a right side that is zero up to rounding
            close = close or min(said, found) > ENDLESS
        if not (said == found or close):
            return f"the file states {name} = {said!r}, the recheck finds {found!r}"
    return None


def _norms(claim: Claim, certificate: Certificate) -> tuple[float, float]:
    """The norms of an identity's sides, by the slow twin where there is one."""
    if claim.naive is not None:
        left, right = slow_sides(claim, FLOATS, certificate.instance, certificate.variant)
        return math.hypot(*left), math.hypot(*right)
    kind = claim.instance_class
    assert kind is not None
    with float64():
        sides = claim.evaluate(instance_from(kind, certificate.instance), certificate.variant)
        return summarise(claim.kind, sides)


def _recheck_frequency(claim: Claim, certificate: Certificate, variant: str) -> Recheck:
    experiment = claim.experiment
    if experiment is None:
        raise BadArgument("file", claim.id, "is not tested by frequency", fix="write it again")
    case = dict(certificate.case)
    problem = experiment.case_problem(case)
    arithmetic = "slow twin, own random numbers, exact binomial interval"
    if problem is not None:
        message = f"refuted: outside the domain: {problem}"
        return Recheck(claim.id, variant, Status.REFUTED, math.nan, arithmetic, message)
    repetitions, stated = _counts(claim, certificate)
    try:
        delta = experiment.delta(case)
        differs = _other_frequency(certificate, frequency_of(stated, repetitions, delta))
        if differs is not None:
            message = f"refuted: {differs}"
            return Recheck(claim.id, variant, Status.REFUTED, math.nan, arithmetic, message)
        # The recheck's own stream: a file cannot choose the draws that suit it.
        count = experiment.exceeds_naively(case, variant, _SEED, repetitions)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, BadArgument):
            raise
        problem = f"does not fit the claim: {error!r}"
        raise BadArgument("file", claim.id, problem, fix="write it again") from error
    result = frequency_of(count, repetitions, delta, CONFIDENCE)
    status, message = _judge_count(result, frequency_of(stated, repetitions, delta, CONFIDENCE))
    return Recheck(claim.id, variant, status, result.rate / delta, arithmetic, message)


def _other_frequency(certificate: Certificate, stated: Frequency) -> str | None:
    """The first number of the file that does not follow from its own counts and its case."""
    own = {"delta": stated.delta, "low": stated.interval.low, "ratio": stated.rate / stated.delta}
    for name, found in own.items():
        said = certificate.claimed.get(name, math.nan)
        if not abs(said - found) <= AGREEMENT * abs(found):
            return f"the file states {name} = {said!r}, its counts give {found!r}"
    seed = certificate.claimed.get("seed", math.nan)
    return None if seed >= 0 and seed == round(seed) else f"the file states seed = {seed!r}"


_SEED = 0x5EED
"""Of the recheck's own draws."""


def _counts(claim: Claim, certificate: Certificate) -> tuple[int, int]:
    numbers = {}
    for name, least in (("repetitions", 1), ("exceedances", 0)):
        value = certificate.claimed.get(name, math.nan)
        if not (math.isfinite(value) and value == int(value) and value >= least):
            problem = f"{name} = {value} is no count"
            raise BadArgument("file", claim.id, problem, fix="write it again")
        numbers[name] = int(value)
    if numbers["repetitions"] > MOST_REPETITIONS:
        problem = f"asks for {numbers['repetitions']} repetitions"
        fix = f"at most {MOST_REPETITIONS} are done"
        raise BadArgument("file", claim.id, problem, fix=fix)
    if numbers["exceedances"] > numbers["repetitions"]:
        raise BadArgument("file", claim.id, "counts more than it repeats", fix="write it again")
    return numbers["repetitions"], numbers["exceedances"]


def _judge_count(found: Frequency, stated: Frequency) -> tuple[Status, str]:
    times = f"{found.exceedances} of {found.repetitions} times"
    if stated.interval.low > found.interval.high or stated.interval.high < found.interval.low:
        return Status.REFUTED, (
            f"refuted: the file counts {stated.exceedances} exceedances, the recheck "
            f"{found.exceedances}: more than chance can explain"
        )
    if found.interval.low > found.delta:
        low, delta = ordered(found.interval.low, found.delta, 4)
        return Status.PROVED, (
            f"the violation is established: failed {times}, so with probability above "
            f"{low} > {delta} (error probability below 1e-9)"
        )
    if found.interval.high <= found.delta:
        return Status.REFUTED, f"refuted: failed only {times}, allowed {found.delta:g}"
    return Status.UNDECIDED, (
        f"undecided: failed {times}, whose interval does not exclude delta = {found.delta:g}"
    )
