"""The falsifier part by part: which candidate is reported, what is said, how lemmas are ordered."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import arb
from toy_points import PLAIN, Point, point, toy

from headcount.core import BadArgument
from headcount.theory import Budget, Form, Kind, Outcome, Size
from headcount.theory import _candidates as lemmas
from headcount.theory import _falsify as falsifier
from headcount.theory import _lemma_report as report
from headcount.theory._embeddings import embedded, fitted
from headcount.theory._falsify import Falsification
from headcount.theory._lemma_report import SizeRatio
from headcount.theory._prove import Evaluation, Proof, Status, _at_most, _decide
from headcount.theory._search import Candidate

ONE = toy(variants={"printed": Form("as printed")}, hypotheses=())


def seen(ratio: float, where: str = "x") -> Candidate:
    return Candidate(np.log([ratio]), point(ratio, 1.0, 0.0, 0.0), where, PLAIN)


@pytest.fixture
def balls(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What balls say: true ratios, and which candidates are proved or refuted."""
    told: dict[str, Any] = {"truth": {}, "asked": []}
    told |= {"proved": set(), "unproved": set(), "undecided": set()}

    def truth(claim: Any, found: Falsification) -> float:
        return told["truth"].get(found.where, found.worst_ratio)

    def violation(claim: Any, name: str, found: Falsification) -> Any:
        told["asked"].append(found.where)
        if found.where in told["proved"]:
            return falsifier.replace(found, violated=True, proof=PROVED), False
        if found.where in told["unproved"]:
            return falsifier.replace(found, violated=True, proof=NOTHING), False
        return None, found.where not in told["undecided"]

    monkeypatch.setattr(falsifier, "_true_ratio", truth)
    monkeypatch.setattr(falsifier, "_violation", violation)
    return told


def settled(*found: Candidate) -> Falsification:
    return falsifier.settle(ONE, "printed", list(found))


def test_the_worst_candidate_that_is_true(balls: dict[str, Any]) -> None:
    best = settled(seen(0.5, "a"), seen(0.9, "b"), seen(0.7, "c"))
    assert (best.where, best.violated) == ("b", False)
    assert best.worst_ratio == pytest.approx(0.9)
    balls["truth"] = {"b": 0.2}
    assert settled(seen(0.5, "a"), seen(0.9, "b"), seen(0.7, "c")).where == "c"
    balls["truth"] = {"b": 0.5}
    assert settled(seen(0.9, "b"), seen(0.8, "c")).where == "c"
    balls["truth"] = {"b": 1.5}
    assert settled(seen(0.5, "a"), seen(0.9, "b")).where == "a"
    assert (settled().where, settled().instances) == ("nothing evaluated", 0)


def test_a_violation_is_the_first_that_is_proved(balls: dict[str, Any]) -> None:
    balls["proved"] = {"b", "c"}
    found = settled(seen(2.0, "b"), seen(3.0, "a"), seen(1.5, "c"), seen(0.5, "d"))
    assert (found.where, found.violated) == ("b", True)
    assert balls["asked"] == ["a", "b"]
    balls["truth"] = {"a": 0.3, "e": 0.4}
    refuted = settled(seen(3.0, "a"), seen(2.0, "e"), seen(0.35, "d"))
    assert (refuted.where, refuted.violated, refuted.worst_ratio) == ("e", False, 0.4)


def test_a_violation_that_nothing_encloses_gives_way_to_one_that_is_proved(
    balls: dict[str, Any],
) -> None:
    found = [seen(3.0, "a"), seen(2.5, "e"), seen(2.0, "b"), seen(0.5, "d")]
    balls["unproved"] = {"a", "e"}
    for proved, expected in (({"b"}, "b"), (set(), "a")):
        balls["proved"] = proved
        told = settled(*found)
        assert (told.where, told.violated, told.proved) == (expected, True, bool(proved))
    assert "violated in float64, not proved: jaxpr: so: ratio 3 (a)" in told.message


def test_what_is_not_decided_is_told_only_where_nothing_else_is(balls: dict[str, Any]) -> None:
    balls["undecided"] = {"a", "b"}
    alone = settled(seen(2.0, "b"), seen(3.0, "a"))
    assert alone.where == "a, not decided"
    assert settled(seen(2.0, "b"), seen(0.5, "c")).where == "c"


def test_few_of_those_that_look_like_rounding_are_proved(balls: dict[str, Any]) -> None:
    balls["undecided"] = set("abcd")
    just_above = [seen(1 + 5e-7, name) for name in "abcd"]
    settled(*just_above)
    assert balls["asked"] == ["a", "b"]
    balls["asked"].clear()
    settled(*[seen(1 + 1.5e-6, name) for name in "abcd"])
    assert balls["asked"] == ["a", "b", "c", "d"]
    balls["asked"].clear()
    settled(seen(1 + 5e-10, "a"), seen(1 + 2e-9, "b"))
    assert balls["asked"] == ["b"]


def proof(twin: Status, traced: Status, lhs: float = 3.0, rhs: float = 2.0) -> Proof:
    return Proof(
        Evaluation("slow twin", twin, "why", 96, lhs, rhs), Evaluation("jaxpr", traced, "so", 96)
    )


PROVED = proof(Status.PROVED, Status.PROVED)
REFUTED = proof(Status.REFUTED, Status.PROVED)
OPEN = proof(Status.UNDECIDED, Status.PROVED)
NOTHING = proof(Status.UNAVAILABLE, Status.UNAVAILABLE)


def violation(
    monkeypatch: pytest.MonkeyPatch, *answers: Proof, ratio: float = 1.7, **changes: Any
) -> Any:
    """`prove` answers in turn; shrinking gives another instance."""
    told = iter(answers)
    monkeypatch.setattr(falsifier, "prove", lambda claim, name, worst: next(told))
    monkeypatch.setattr(falsifier, "shrink", lambda claim, name, worst: point(9.0, 1.0, 0.0, 0.0))
    monkeypatch.setattr(falsifier, "certify", lambda claim, small, name: float(small.u[0]))
    found = Falsification("toy/order", "printed", ratio, False, 0, "x", 0.0, point(3, 2, 0, 0))
    return falsifier._violation(toy(**changes), "printed", found)


def test_a_violation_is_shrunk_and_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    found, refuted = violation(monkeypatch, PROVED, PROVED)
    assert (found.violated, refuted, found.certificate) == (True, False, 9.0)
    assert found.worst_ratio == 1.5  # 3/2 in balls, below the 1.7 that float64 saw
    assert violation(monkeypatch, PROVED, PROVED, ratio=1.2)[0].worst_ratio == 1.2
    kept = violation(monkeypatch, PROVED, OPEN)[0]
    assert (kept.certificate, kept.proof) == (3.0, PROVED)
    fewer_bits = violation(monkeypatch, OPEN, PROVED, PROVED)[0]
    assert fewer_bits.violated
    assert violation(monkeypatch, PROVED, PROVED, factor=0.5)[0].certificate is None
    zero = proof(Status.PROVED, Status.PROVED, 3.0, 0.0)
    assert violation(monkeypatch, zero, PROVED)[0].worst_ratio == 1.7
    assert violation(monkeypatch, PROVED, PROVED, kind=Kind.IDENTITY)[0].worst_ratio == 1.7


def test_what_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert violation(monkeypatch, OPEN, OPEN) == (None, False)
    assert violation(monkeypatch, OPEN, REFUTED) == (None, True)
    stands, refuted = violation(monkeypatch, NOTHING, NOTHING)
    assert (stands.violated, stands.proved, refuted) == (True, False, False)
    assert violation(monkeypatch, NOTHING, NOTHING, ratio=1 + 5e-7) == (None, False)
    assert violation(monkeypatch, NOTHING, NOTHING, ratio=1 + 1.5e-6)[0].violated
    half = proof(Status.UNAVAILABLE, Status.UNDECIDED)
    assert violation(monkeypatch, half, half) == (None, False)


def test_the_status_of_two_evaluations() -> None:
    for twin, traced, expected in (
        (Status.PROVED, Status.PROVED, Status.PROVED),
        (Status.PROVED, Status.UNAVAILABLE, Status.PROVED),
        (Status.UNAVAILABLE, Status.PROVED, Status.PROVED),
        (Status.PROVED, Status.REFUTED, Status.REFUTED),
        (Status.PROVED, Status.UNDECIDED, Status.UNDECIDED),
        (Status.UNAVAILABLE, Status.UNAVAILABLE, Status.UNDECIDED),
    ):
        both = proof(twin, traced)
        assert both.status is expected
        assert (both.proved, both.refuted) == (expected == "proved", expected == "refuted")
    assert proof(Status.UNAVAILABLE, Status.PROVED).decisive.name == "jaxpr"
    assert PROVED.decisive.name == "slow twin"
    assert REFUTED.reason == "slow twin: why"
    assert proof(Status.PROVED, Status.REFUTED).reason == "jaxpr: so"
    assert NOTHING.reason == "jaxpr: so"


def test_decisions_on_enclosures() -> None:
    wide = arb(1).union(arb(3))
    assert [_at_most(*pair) for pair in ((1, 1), (2, 1), (wide, 2), (wide, 3.5))] == [
        True,
        False,
        None,
        True,
    ]

    def decided(checks: Any, left: Any, right: Any, kind: Kind = Kind.DETERMINISTIC) -> Any:
        found = _decide(toy(kind=kind), checks, lambda: (left, right))
        return str(found.status), found.reason

    one, two = arb(1), arb(2)
    assert decided([], [one, two], [two, one])[0] == "proved"
    assert decided([], [one, one], [one, two])[0] == "refuted"
    assert decided([], [wide], [two])[1] == "left and right side do not separate"
    assert decided([("h", two, one)], [two], [one]) == ("refuted", "h fails: 2.0 > 1.0")
    assert decided([("h", wide, two)], [two], [one]) == (
        "undecided",
        "h: value and threshold do not separate",
    )
    identity = Kind.IDENTITY
    assert decided([], [one, one], [one, two], identity)[0] == "proved"
    assert decided([], [two, one], [one, one], identity)[0] == "proved"
    assert decided([], [one], [one], identity)[0] == "refuted"
    assert decided([], [wide], [two], identity)[0] == "undecided"


def test_what_is_said_of_a_search() -> None:
    def said(**changes: Any) -> Falsification:
        values = {"worst_ratio": 0.9, "violated": False, "instances": 7, "where": "here"}
        return Falsification("toy/order", "printed", seconds=1.0, **{**values, **changes})

    table = (SizeRatio({"T": 2}, 0.9),)
    assert said().message == "survived 7 instances: worst ratio 0.9 (here)"
    assert said(violated=True, worst_ratio=1.25).message == "violated: ratio 1.25 (here)"
    assert said(violated=True, worst_ratio=1 + 2e-8).message == "violated: ratio 1 + 2e-08 (here)"
    equal = said(identity=True, worst_ratio=0.25)
    assert (
        equal.message == "survived 7 instances: the two sides agree to 2.5e-10 of their size (here)"
    )
    close = said(per_size=table, worst_ratio=1 + 1e-12)  # rounding, and no violation
    assert "worst ratio 1 (here)" in close.message
    untested = said(worst_ratio=math.nan, where="nothing evaluated").message
    assert untested.startswith("nothing is tested: none of 7 instances")
    rounding = said(worst_ratio=math.nan, where="nothing but rounding").message
    assert rounding == "survived 7 instances: no ratio to tell (nothing but rounding)"
    assert said(violated=True, worst_ratio=2.0, proof=PROVED).message.startswith(
        "the violation is proved: ratio"
    )
    assert "worst ratio 0.9 (here)" in said(per_size=table).message
    assert "factor of 2.5" in said(per_size=table, worst_ratio=0.4).message
    assert "worst ratio 0.5" in said(per_size=table, worst_ratio=0.5).message
    assert "worst ratio 0 " in said(per_size=table, worst_ratio=0.0).message
    assert "per_size" not in said().to_json()
    assert said(per_size=table).to_json()["per_size"] == [{"T": 2, "worst_ratio": 0.9}]


def test_other_sizes_are_searched_while_no_violation_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    score = {"value": -0.1}

    def family(claim: Any, own: Any, plan: Any, rng: Any, also: Any) -> Any:
        asked.append(own.name)
        return [Candidate(np.array([score["value"]]), point(1, 1, 0, 0), own.name, own)], 5

    def other(claim: Any, found: Any, plan: Any, rng: Any) -> Any:
        asked.append("sizes")
        return [seen(0.3, "other")], 11

    monkeypatch.setattr(lemmas, "search_family", family)
    monkeypatch.setattr(lemmas, "search_sizes", other)
    monkeypatch.setattr(lemmas, "_on_file", lambda claim, cold: iter([] if cold else [seen(0.2)]))
    plan = Budget(8, 1, 1, sizes=1)

    def candidates(plan: Budget, cold: bool) -> Any:
        asked.clear()
        return lemmas.candidates(ONE, "printed", plan, 0, cold, lambda line: None)[:2]

    found, count = candidates(plan, False)
    assert asked == ["points", "sizes"]
    assert (len(found), count) == (3, 5 + 11 + 1)
    assert candidates(Budget(8, 1, 1), True)[1] == 5
    score["value"] = 1e-3
    candidates(plan, True)
    assert asked == ["points"]
    score["value"] = 5e-10  # within rounding of 1
    candidates(plan, True)
    assert asked == ["points", "sizes"]


def test_a_claim_with_nothing_to_search() -> None:
    with pytest.raises(BadArgument, match="nothing to search"):
        falsifier.falsify(toy(families=()), cold=True, budget=Budget(8, 1, 1))


def test_sizes_and_points_are_described() -> None:
    found = Falsification(
        "toy/order", "printed", 0.5, False, 1, "x", 0.0, Point(np.arange(2.0), np.ones((2, 3)))
    )
    described = falsifier._described(toy(), found)
    assert described.sizes == {"k": 2, "T": 3}
    assert described.points == {"u": [0.0, 1.0], "A": [[1.0] * 3] * 2}
    nothing = falsifier.replace(found, worst=None)
    assert falsifier._described(toy(), nothing) is nothing


def test_the_sizes_of_a_lemma() -> None:
    assert lemmas.ladder(Size("T", 1, 8)) == [1, 2, 4, 8]
    assert lemmas.ladder(Size("T", 3, 3)) == [3]
    assert lemmas.ladder(Size("T", 2, 4)) == [2, 3, 4]
    plan = lemmas.size_plan({"T": Size("T", 1, 8), "d": Size("d", 2, 4)})
    assert plan[:3] == [{"T": 1, "d": 2}, {"T": 8, "d": 4}, {"T": 2, "d": 3}]
    assert len(plan) == 3 + 3 + 2
    assert lemmas.size_plan({}) == [{}]


def test_instances_are_fitted_to_other_sizes() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    square = np.full((3, 3), 7.0)
    assert fitted(x, square[:, :1], 0).tolist() == [[1], [3], [0]]
    wanted = {
        0: [[1, 2, 0], [3, 4, 0], [0, 0, 0]],
        1: [[1, 2, 1], [3, 4, 3], [1, 2, 1]],
        2: [[1, 2, -1], [3, 4, -3], [-1, -2, -1]],
        3: [[1, 2, -1e3], [3, 4, -3e3], [-1e3, -2e3, -1e3]],
        4: [[1, 2, -4e3], [3, 4, -4e3], [-4e3, -4e3, -4e3]],
        5: [[1, 2, 7], [3, 4, 7], [7, 7, 7]],
        6: [[1, 2, 0], [3, 4, 0], [0, 0, 1]],
    }
    assert {fill: fitted(x, square, fill).tolist() for fill in wanted} == wanted
    assert fitted(x, square, 1, source=1).tolist() == [[1, 2, 2], [3, 4, 4], [3, 4, 4]]
    assert fitted(np.array(5.0), np.array(7.0), 1) == 5.0
    batch = Point(np.ones((2, 3)), np.ones((2, 3, 1)))
    ways = embedded(Point(np.array([2.0]), np.array([[5.0]])), batch, np.random.default_rng(0), 60)
    assert [way.u.tolist() for way in ways[:3]] == [[2, 0, 0], [2, 2, 2], [2, -2, -2]]
    assert [way.A.ravel().tolist() for way in ways[:2]] == [[5, 0, 0], [5, 5, 5]]
    assert any(way.u[1] == 0 and way.A[1, 0] < -100 for way in ways[7:]), "each in its own way"


def test_smaller_sizes_come_first_among_bad_ones() -> None:
    def sized(ratio: float, count: int) -> Candidate:
        return Candidate(np.log([ratio]), np.zeros(count), str(ratio), None)

    order = [sized(9.0, 1), sized(4.0, 5), sized(3.0, 2), sized(1.5, 1), sized(0.5, 1)]
    table = [SizeRatio({}, 4.0), SizeRatio({}, 2.0)]
    found = lemmas.preferred(order, 0, 1e-9, table)
    assert [c.where for c in found] == ["3.0", "4.0", "9.0", "1.5", "0.5"]
    below = lemmas.preferred([sized(0.9, 1), sized(0.5, 1)], 0, 1e-9, [SizeRatio({}, 0.9)])
    assert [c.where for c in below] == ["0.9", "0.5"]


def test_ratios_that_balls_confirm(monkeypatch: pytest.MonkeyPatch) -> None:
    exact: dict[float, float | None] = {}
    monkeypatch.setattr(
        lemmas, "ratio_in_balls", lambda lemma, variant, p: exact.get(round(float(p.u[0]), 6))
    )
    worst = lambda *ratios: lemmas._worst_ratio(ONE, "printed", [seen(r) for r in ratios], 0)  # type: ignore[arg-type]  # noqa: E731
    assert worst(0.5, 0.9) == pytest.approx(0.9)
    exact.update({0.9: 0.2, 0.5: 0.5 + 1e-8})
    assert worst(0.5, 0.9) == 0.5 + 1e-8
    exact.update({0.9: math.nan})
    assert worst(0.9) == -math.inf  # both sides may be zero: that says nothing
    assert worst(0.9, 0.4) == pytest.approx(0.4)
    exact.update({0.9: 0.2, 0.8: 0.3, 0.7: 0.1, 0.6: 0.25})
    assert worst(0.9, 0.8, 0.7, 0.6, 0.5) == 0.3
    assert worst(1e-250, 1e-220) == 0.0


def test_points_in_brief() -> None:
    assert report._brief([1.0, [2.5, 1 / 3]]) == "[1, [2.5, 0.333333]]"
    assert report._brief({"a": 2.0}) == "{a: 2}"


def test_the_worst_frequency_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = {0.1: 0.4, 0.2: 0.9, 0.3: 0.7}
    experiment = SimpleNamespace(searched=lambda rng, count: [{"delta": d} for d in ratios])
    outcomes: dict[float, Outcome] = {}

    def judged(claim: Any, case: Any, name: str, *, repetitions: int, seed: int) -> Any:
        assert repetitions == 16
        outcome = outcomes.get(case["delta"], Outcome.HOLDS)
        return SimpleNamespace(outcome=outcome, ratio=ratios[case["delta"]])

    monkeypatch.setattr(falsifier, "judge_frequency", judged)
    monkeypatch.setattr(falsifier, "certify_frequency", lambda *a, **k: "written")
    claim: Any = SimpleNamespace(id="toy/p", experiment=experiment, factor=1.0)
    nothing = Falsification("toy/p", "printed", 0.5, False, 3, "x", 0.0)

    def found() -> Falsification:
        plan = Budget(8, 2, 1)
        return falsifier._with_frequencies(claim, "printed", plan, 0, lambda line: None, nothing)

    result = found()
    assert (result.worst_ratio, result.where, result.violated) == (0.9, "delta=0.2", False)
    assert result.instances == 3 + 3 * 16
    assert result.certificate is None
    outcomes[0.1] = Outcome.VIOLATED
    result = found()
    assert (result.worst_ratio, result.violated, result.certificate) == (0.4, True, "written")
    claim.factor = 0.5
    assert found().certificate is None
