"""Laws of sizes: told where they explain the worst ratios found, never where the search failed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from jaxtyping import Float

from headcount.cli import _count
from headcount.core import Array
from headcount.theory import (
    Budget,
    Claim,
    Family,
    Form,
    Kind,
    Reals,
    Sides,
    Size,
    _corpus,
    _facts,
    _recheck,
    certify,
    claims,
    falsify,
    instance_class,
    lemma,
    read_certificate,
    recheck,
    shipped_certificates,
)
from headcount.theory import _lemma_report as report
from headcount.theory import shipped_certificates as shipped
from headcount.theory._candidates import ladder, size_plan
from headcount.theory._certificate import certificate_from_json
from headcount.theory._closed_form import ClosedForm, closed_form
from headcount.theory._lemma_report import SizeRatio, growth_of
from headcount.theory._prove import prove
from headcount.theory._search import _Objective
from headcount.theory._sharpened import Best, law_of
from headcount.theory._shrink import shrink
from headcount.theory.domain import Domain, arrays_of, instance_from
from headcount.theory.slow import Arithmetic

FOUND = "of what the search found, the worst ratio"


def law(ratio: Any, values: Any = (1, 2, 4, 8), **others: int) -> tuple[str, ...]:
    return report.growth_of([SizeRatio({"T": T, **others}, ratio(T)) for T in values])


def test_powers_in_words() -> None:
    for exponent, words in (
        (0.11, "grows like T^0.11 (exponent +0.11, within 0.1 % for T = 1..8)"),
        (0.52, "grows like sqrt(T) (exponent +0.52, within 0.1 % for T = 1..8)"),
        (0.6, "grows like T^0.6 "),
        (-1.02, "falls like 1/T (exponent -1.02,"),
        (-0.7, "falls like 1/T^0.7 "),
        (2.01, "grows like T^2 "),
    ):
        (told,) = law(lambda T, e=exponent: 0.1 * T**e)
        assert told.startswith(f"{FOUND} {words}")
    assert law(lambda T: 0.7 * T**0.02) == (
        f"{FOUND} does not depend on T (within 4.3 % for T = 1..8)",
    )
    rows = [
        SizeRatio({"T": T, "d": d}, 3 * T**0.5 / d)
        for T, d in ((2, 2), (4, 2), (9, 3), (2, 7), (3, 4))
    ]
    exponents, missed = report._fit(rows, ["T", "d"])
    assert exponents == pytest.approx({"T": 0.5, "d": -1.0})
    assert missed == pytest.approx(0, abs=1e-12)
    assert ["sqrt(T)" in told for told in report.growth_of(rows)] == [True, False]
    assert "1/d" in report.growth_of(rows)[1]
    assert report.growth_of(rows[:4]) == ()
    endless = SizeRatio({"T": 1, "d": 1}, math.inf)
    assert report.growth_of([*rows, endless]) == ()
    assert report.growth_of(()) == ()


@pytest.mark.parametrize(
    ("ratios", "why"),
    [
        ({2: 0.176, 3: 0.096, 4: 0.068, 5: 0.120}, "a search that lost its way"),
        ({1: 0.373, 2: 0.476, 4: 0.483, 8: 0.486}, "a limit of 1/2"),
        ({2: 0.5, 3: 2 / 3, 5: 0.8, 8: 0.875}, "1 - 1/T"),
        ({2: 1.0, 4: 2.0, 8: 4.0}, "three points and two numbers of the law"),
        ({2: 1.0, 3: 1.0}, "two sizes"),
        ({1: 1.0, 2: 1.0, 4: 0.0, 8: 1.0}, "nothing found in between"),
        ({1: 1.0, 2: 1.0, 4: 1.0, 8: 0.0}, "nothing found at the end"),
        ({1: 1.0, 2: 1.05, 4: 1.03, 8: 1.08}, "growth of the size of its error"),
    ],
)
def test_a_law_that_does_not_explain_the_points_is_not_told(
    ratios: dict[int, float], why: str
) -> None:
    assert law(ratios.__getitem__, tuple(ratios)) == (), why


def test_small_sizes_may_be_left_out_of_a_law() -> None:
    """A lemma about differences says nothing of one token."""
    (told,) = law(lambda T: float(T > 1))
    assert told == f"{FOUND} does not depend on T (within 0.1 % for T = 2..8)"


@lemma(x=Reals(2), t=Reals(Size("k", 1, 4)))
def ignored_if_far(x, t):
    """Largest where all of t but one entry is far below zero: as large at every k."""
    length = len(t)
    most = 0.4 * jnp.exp(-jnp.sum((x - 1) ** 2))
    return jnp.where(jnp.all(t[1:] < -900), most, most / length), 1.0


def test_what_small_sizes_allow_larger_ones_allow_too():
    """Without embedding 1/k is found, a law that is not there."""
    found = falsify(ignored_if_far, budget=Budget(random=96, restarts=4, steps=40))
    assert [row.ratio for row in found.per_size] == pytest.approx([0.4] * 4, rel=2e-3)
    (law,) = found.growth
    assert "does not depend on k" in law


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


@lemma(z=Reals(2), u=Reals(2))
def cancelling(z, u):
    """A true inequality, whose sides are mere rounding where z is huge."""
    p, q = jax.nn.log_softmax(z), jax.nn.log_softmax(z + u)
    return jnp.sum(jnp.abs(jnp.exp(p) - jnp.exp(q))) ** 2 / 2, jnp.exp(p) @ (p - q)


def test_a_score_that_trembles_is_taken_for_rounding():
    tiny = cancelling.instance(z=[20.3, 19.6], u=[2e-8, 3e-9])
    calm = cancelling.instance(z=[0.3, -0.2], u=[0.5, 0.1])
    objective = _Objective.of(cancelling)
    with jax.enable_x64(True):
        plain = [float(objective._scores(i, 1.0)[0]) for i in (tiny, calm)]
        wary = [float(objective.scores(i, 1.0)[0]) for i in (tiny, calm)]
    assert wary[1] == pytest.approx(plain[1], abs=1e-6)
    assert wary[0] < plain[0] - 0.1


def decimal(value: object, digits: int = 40) -> str:
    return str(mpmath.nstr(value, digits + 10))


@pytest.fixture
def many_digits():
    with mpmath.workdps(80):
        yield


@pytest.mark.usefixtures("many_digits")
@pytest.mark.parametrize(
    "text",
    ["1/2", "32/27", "4/(3 sqrt 3)", "2 sqrt 2/sqrt (pi e)", "ln 2", "1 + 1/2 pi",
     "1/2 + 1/2 sqrt 5", "1/2 + 1/2 erf 1 + 1/(e sqrt pi)", "2^(1/3)"],
)  # fmt: skip
def test_numbers_are_called_by_their_names(text: str) -> None:
    m = mpmath
    values = {
        "1/2": m.mpf(1) / 2, "32/27": m.mpf(32) / 27, "4/(3 sqrt 3)": 4 / (3 * m.sqrt(3)),
        "2 sqrt 2/sqrt (pi e)": m.sqrt(8 / (m.pi * m.e)), "ln 2": m.ln(2),
        "1 + 1/2 pi": 1 + m.pi / 2, "1/2 + 1/2 sqrt 5": (1 + m.sqrt(5)) / 2,
        "1/2 + 1/2 erf 1 + 1/(e sqrt pi)": (1 + m.erf(1)) / 2 + 1 / (m.e * m.sqrt(m.pi)),
        "2^(1/3)": m.cbrt(2),
    }  # fmt: skip
    assert closed_form(decimal(values[text]), 40) == ClosedForm(text, 40)


@pytest.mark.usefixtures("many_digits")
def test_what_has_no_simple_name_gets_none():
    root = mpmath.findroot(lambda x: x**4 + x - 3, 1.1)
    assert closed_form(decimal(root), 40).text == "the root 1.16404 of x^4 + x - 3"
    assert closed_form(decimal(mpmath.sin(1)), 40) is None
    assert closed_form(decimal(4 / (3 * mpmath.sqrt(3)) + mpmath.mpf(10) ** -35), 40) is None
    assert closed_form("0.5", 14) is None  # too few digits to say anything


def table(lower, upper=(None,) * 5):
    sizes = [1, 2, 4, 8, 16]
    return [Best({"T": k}, a, b) for k, a, b in zip(sizes, lower, upper, strict=True)]


def test_a_law_needs_both_ends_unless_it_grows():
    falls = [1 / k for k in (1, 2, 4, 8, 16)]
    grows = [1.0 * k for k in (1, 2, 4, 8, 16)]
    ones = [1.0] * 5
    assert law_of(table(falls)) == ()
    assert law_of(table(falls, ones)) == ()
    assert "falls like 1/T" in law_of(table(falls, [1.001 * x for x in falls]))[0]
    assert "grows like T" in law_of(table(grows))[0]
    assert law_of(table(grows, [16.0] * 5)) == ()
    assert law_of(table(ones, ones)) == ()


def _corpus_file(folder: Path, patch: pytest.MonkeyPatch) -> Callable[[], Any]:
    patch.setattr(_corpus, "corpus_folder", lambda paper: folder)
    return lambda: _corpus.write_corpus(claims["arda2026/fact-1"], [])


def _facts_file(folder: Path, patch: pytest.MonkeyPatch) -> Callable[[], Any]:
    patch.setattr(_facts, "_file", lambda paper: folder / "fact-1.json")
    return lambda: _facts.record("toy", [])


def _plot_file(folder: Path, patch: pytest.MonkeyPatch) -> Callable[[], Any]:
    patch.setattr("headcount.report._count.draw_count", lambda *arguments: None)
    nothing: Any = SimpleNamespace()
    return lambda: _count._save_plot(nothing, [], 0.1, folder / "count.PNG")


@pytest.mark.parametrize(
    ("write", "name"),
    [(_corpus_file, "fact-1.json"), (_facts_file, "fact-1.json"), (_plot_file, "count.PNG")],
)
def test_a_failed_write_leaves_the_old_file(
    write: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, monkeypatch)()
    old = (tmp_path / name).read_bytes()
    assert len(old) > 2
    (tmp_path / name).write_bytes(b"old")

    def full(*paths: Any, **handles: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        with pytest.raises(OSError, match="No space"):
            write(tmp_path, patch)()
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"old"
    write(tmp_path, monkeypatch)()
    assert (tmp_path / name).read_bytes() == old


STEP = read_certificate(next(p for p in shipped() if p.stem == "arda2026-lemma-5-step-printed"))


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


SHIPPED = {path.stem: json.loads(path.read_text()) for path in shipped_certificates()}


BY_HAND = (
    "deora2024-assumption-3-gaussian",
    "deora2024-corollary-2-heads-printed",
    "deora2024-corollary-2-step-printed",
    "deora2024-eq-121-printed",
    "deora2024-eq-21-printed",
    "deora2024-eq-3-printed",
    "deora2024-fact-2-printed",
    "deora2024-lemma-12-printed",
    "deora2024-lemma-18-printed",
    "deora2024-lemma-2-printed",
    "deora2024-lemma-5-gradient-same-constant",
    "deora2024-margin-order-printed",
    "deora2024-proposition-3-printed",
    "deora2024-proposition-3-section-7",
    "deora2024-proposition-7-printed",
    "deora2024-theorem-1-step-printed",
    "wu2023-assumption-1-printed",
    "wu2023-descent-printed",
    "wu2023-eq-36-printed",
    "wu2023-eq-62-printed",
    "wu2023-lemma-1-diagonal-printed",
    "wu2023-lemma-14-smooth-printed",
    "wu2023-lemma-17-printed",
    "wu2023-lemma-18-printed",
    "wu2023-lemma-19-printed",
    "wu2023-proposition-1-printed",
    "wu2023-remark-step-size-printed",
    "wu2023-sum-of-psd-printed",
    "wu2023-theorem-3-mixed-printed",
    "wu2023-theorem-3-printed",
)
"""Counterexamples that were thought of, with a note that explains their numbers."""


READABLE = {
    "arda2026-inner-product-printed": "with tokens zero nothing would be left to see",
    **dict.fromkeys(BY_HAND, "the errata page explains these very numbers"),
}
"""Shipped certificates that are not the smallest, and why."""


@pytest.mark.parametrize("stem", [s for s in SHIPPED if SHIPPED[s]["kind"] == "instance"])
def test_shipped_certificates_are_the_shrunk_ones(stem: str) -> None:
    certificate = certificate_from_json(SHIPPED[stem])
    claim = claims[certificate.claim]
    instance = instance_from(claim.instance_class, certificate.instance)
    small = arrays_of(shrink(claim, certificate.variant, instance))
    same = all(np.array_equal(small[name], value) for name, value in certificate.instance.items())
    assert same == (stem not in READABLE), small
