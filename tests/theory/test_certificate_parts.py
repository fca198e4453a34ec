"""Certificates, claims and rechecks part by part: what is read, refused and compared."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toy_points import Point, point, toy

from headcount.core import BadArgument
from headcount.theory import (
    Batch,
    Bound,
    Certificate,
    Check,
    Form,
    Hypothesis,
    Kind,
    Observed,
    Sides,
)
from headcount.theory import _certificate as certificates
from headcount.theory import _recheck as rechecks
from headcount.theory import slow_sides as slow_sides
from headcount.theory._certificate import certificate_from_json, decode, encode
from headcount.theory._prove import Evaluation, Status
from headcount.theory._subject import slack_table
from headcount.theory.domain import arrays_of, axes_of, instance_from
from headcount.theory.numbers import exp, largest, log, smallest
from headcount.theory.slow import FLOATS


def test_arrays_are_written_to_the_last_bit() -> None:
    x = np.array([[0.1, -1e-300], [math.pi, 0.0]])
    again = decode("x", json.loads(json.dumps(encode(x))))
    np.testing.assert_array_equal(again, x)
    assert decode("x", encode(np.float64(0.1))).shape == ()
    assert (encode("tanh"), encode(3), decode("x", "tanh"), decode("x", 3)) == (
        "tanh",
        3,
        "tanh",
        3,
    )
    for bad in (
        {"shape": [2], "values": [1.0]},
        {"shape": [-1], "values": []},
        {"shape": [-1, -1], "values": [1.0]},
        {"shape": "2", "values": [1.0, 2.0]},
        {"shape": [True], "values": [1.0]},
        {"shape": [1], "values": "1"},
        {"shape": [1], "values": [True]},
        {"shape": [1], "values": ["1_0"]},
        {"shape": [1], "values": ["\u0661"]},
        {"shape": [1], "values": [None]},
        {"values": [1.0]},
    ):
        with pytest.raises(BadArgument, match="is not an array"):
            decode("x", bad)
    assert decode("x", {"shape": [0, 2], "values": []}).shape == (0, 2)


CONTENT = Certificate(
    "toy/order",
    "printed",
    "instance",
    {"lhs": 3.0, "rhs": 2.0, "ratio": 1.5},
    arrays_of(point(3, 2, 0, 0)),
    (Check("third", 0.0, 1.0),),
).to_json()


def test_a_certificate_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = certificate_from_json(json.loads(json.dumps(CONTENT)))
    assert found.claimed == {"lhs": 3.0, "rhs": 2.0, "ratio": 1.5}
    assert found.hypotheses == (Check("third", 0.0, 1.0),)
    assert found.instance["u"].tolist() == [3, 2, 0, 0]
    assert found.file_name == "toy-order-printed.json"
    assert Certificate("a.py:f", "stated", "instance", {}).file_name == "a-f-stated.json"
    path = found.write(tmp_path / "c.json")
    assert certificates.read_certificate(path).claimed == found.claimed
    frequency = Certificate("toy/p", "printed", "frequency", {}, case={"delta": 0.1}).to_json()
    assert frequency["case"] == {"delta": 0.1}
    assert "instance" not in frequency
    assert "case" not in CONTENT


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 2},
        {"version": 1.0},
        {"version": True},
        {"kind": "proof"},
        {"claim": 3},
        {"variant": ["printed"]},
        {"extra": 1},
        {"instance": []},
        {"claimed": []},
        {"case": []},
        {"note": 3},
        {"claimed": {"lhs": True}},
        {"claimed": {"lhs": "one"}},
        {"hypotheses": [{"name": "third", "value": 0.0}]},
        {"hypotheses": [{"name": "third", "value": 0.0, "threshold": 1.0, "holds": False}]},
        {"hypotheses": [3]},
    ],
)
def test_a_garbled_certificate_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(BadArgument):
        certificate_from_json({**CONTENT, **change})


def test_files_that_are_no_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "c.json"
    twice = json.dumps(CONTENT)[:-1] + ', "note": "again"}'
    for text, problem in ((twice, "occurs twice"), ("{", "cannot be read"), ("3", "is not a Head")):
        file.write_text(text)
        with pytest.raises(BadArgument, match=problem):
            certificates.read_certificate(file)
    file.write_text(json.dumps(CONTENT))
    monkeypatch.setattr(certificates, "LARGEST_FILE", file.stat().st_size)
    certificates.read_certificate(file)
    monkeypatch.setattr(certificates, "LARGEST_FILE", file.stat().st_size - 1)
    with pytest.raises(BadArgument, match="bytes exceed"):
        certificates.read_certificate(file)
    for other in (Path("/dev/zero"), tmp_path):
        with pytest.raises(BadArgument, match="no regular file"):
            certificates.read_certificate(other)


@pytest.mark.parametrize("place", ["", "instance", "claimed", "case"])
def test_a_table_of_endlessly_many_names_is_refused(place: str, tmp_path: Path) -> None:
    """Before anything is made of it: each of them costs some work."""
    more = dict.fromkeys(map(str, range(certificates.MOST_NAMES)), "1")
    changed = {**CONTENT, **more} if not place else {**CONTENT, place: {"own": 1, **more}}
    (tmp_path / "c.json").write_text(json.dumps(changed))
    with pytest.raises(BadArgument, match=r"a table has \d+ entries, more than 1000"):
        certificates.read_certificate(tmp_path / "c.json")
    check = {"name": "a", "value": "1", "threshold": "2"}
    with pytest.raises(BadArgument, match="hypotheses, of which it has more than 1000"):
        certificate_from_json({**CONTENT, "hypotheses": [check] * 1001})


def disagreement(claimed: dict[str, float], checks: Any = (), stated: Any = (), **more: Any) -> Any:
    certificate = Certificate("toy/order", "printed", "instance", claimed, hypotheses=stated)
    values = {"lhs": 3.0, "rhs": 2.0, "ratio": 1.5, **more}
    found = (values["lhs"], values["rhs"], values["ratio"])
    return rechecks._disagreement(certificate, *found, toy(), checks)


def test_numbers_of_a_file_agree_to_six_digits() -> None:
    fine = {"lhs": 3.0, "rhs": 2.0, "ratio": 1.5}
    assert disagreement(fine) is None
    for name, value in fine.items():
        assert disagreement({**fine, name: value * (1 + 0.9e-6)}) is None
        for wrong in (value * (1 + 1.1e-6), value * (1 - 1.1e-6), -value, math.nan, math.inf):
            assert f"states {name}" in disagreement({**fine, name: wrong})
        assert f"states {name} = nan" in disagreement({k: v for k, v in fine.items() if k != name})
    endless = {"lhs": 3.0, "rhs": 0.0, "ratio": math.inf}
    assert disagreement(endless, rhs=0.0, ratio=2e15) is None
    assert disagreement({**endless, "ratio": 2e15}, rhs=0.0, ratio=math.inf) is None
    assert disagreement({**endless, "ratio": 1e15}, rhs=0.0, ratio=math.inf) is not None
    tiny = {**fine, "rhs": 0.9e-15}
    assert disagreement(tiny, rhs=0.0) is None
    assert disagreement({**fine, "rhs": 1.1e-15}, rhs=0.0) is not None


def test_hypotheses_of_a_file_are_those_of_the_claim() -> None:
    fine, own = {"lhs": 3.0, "rhs": 2.0, "ratio": 1.5}, (Check("third", 0.5, 1.0),)
    assert disagreement(fine, own, own) is None
    assert "other hypotheses" in disagreement(fine, own, ())
    assert "other hypotheses" in disagreement(fine, own, (*own, *own))
    assert "states third" in disagreement(fine, own, (Check("third", 0.6, 1.0),))
    assert "threshold of third" in disagreement(fine, own, (Check("third", 0.5, 2.0),))


def test_ratios_and_amounts() -> None:
    def seen(lhs: float, rhs: float, **more: Any) -> Evaluation:
        return Evaluation("slow twin", Status.PROVED, "", 96, lhs, rhs, **more)

    identity = toy(kind=Kind.IDENTITY)
    assert rechecks._ratio(identity, seen(3.0, 2.0)) == pytest.approx(1 / 3)
    assert rechecks._ratio(identity, seen(-2.0, 3.0)) == pytest.approx(5 / 3)
    assert rechecks._ratio(identity, seen(0.0, 0.0)) == 0.0
    assert rechecks._ratio(toy(), seen(3.0, 2.0)) == 1.5
    assert rechecks._amount(toy(), seen(3.0, 2.0), 1.5) == "3 > 2, ratio 1.5"
    assert "3 on one side and 2 on the other" in rechecks._amount(identity, seen(3.0, 2.0), 0.3)
    # Sides that float64, or nine digits of it, cannot tell apart.
    assert rechecks._ratio(toy(), seen(1e-320, 2e-321, ratio=5.0)) == 5.0
    near = 1 + 2e-12
    assert rechecks._amount(toy(), seen(near, 1.0), near).startswith(
        "1.000000000002 > 1, ratio 1 + "
    )
    equal = seen(1.0, 1.0, excess="1.25e-40")
    assert rechecks._amount(toy(), equal, 1.0) == "1 exceeds 1 by 1.25e-40"
    assert rechecks._amount(identity, equal, 0.0).endswith("and differs by 1.25e-40")


@pytest.mark.parametrize(
    ("claimed", "problem"),
    [
        ({"repetitions": 0, "exceedances": 0}, "repetitions = 0"),
        ({"repetitions": 2.5, "exceedances": 0}, "no count"),
        ({"repetitions": 10, "exceedances": -1}, "exceedances = -1"),
        ({"repetitions": math.nan, "exceedances": 1}, "no count"),
        ({"repetitions": 10}, "exceedances = nan"),
        ({"repetitions": 20_001, "exceedances": 0}, "20001 repetitions"),
        ({"repetitions": 10, "exceedances": 11}, "more than it repeats"),
    ],
)
def test_counts_that_are_refused(claimed: dict[str, float], problem: str) -> None:
    with pytest.raises(BadArgument, match=problem):
        rechecks._counts(toy(), Certificate("toy/order", "printed", "frequency", claimed))


def test_counts_at_their_limits() -> None:
    for claimed in (
        {"repetitions": 1, "exceedances": 0},
        {"repetitions": 20_000, "exceedances": 20_000},
    ):
        found = rechecks._counts(toy(), Certificate("toy/order", "printed", "frequency", claimed))
        assert found == tuple(claimed.values())


def test_checks_and_hypotheses() -> None:
    assert Check("a", 1.0, 3.0).margin == 2.0
    for threshold, slack in ((0.0, 1e-12), (1000.0, 1e-9), (-1000.0, 1e-9)):
        assert Check("a", threshold + 0.9 * slack, threshold).holds
        assert not Check("a", threshold + 1.1 * slack, threshold).holds
    assert not Check("a", math.nan, 1.0).holds
    own = Hypothesis("h", lambda p: p.u[0], None, lambda p, variant: p.u[1])
    assert own.check(point(1, 2)) == Check("h", 1.0, 2.0)
    with pytest.raises(RuntimeError, match="come together"):
        Hypothesis("h", lambda p: p.u[0], lambda num, data: 0, lambda p, variant: 1.0)
    with pytest.raises(RuntimeError, match="come together"):
        Hypothesis("h", lambda p: p.u[0], lambda num, data: 0, 1.0, lambda num, data, v: 1)


def test_claims_and_their_forms() -> None:
    claim = toy(
        bound=lambda setting, variant: Bound(4.0), requires=lambda s, v: (Check("r", 0, 1),)
    )
    assert claim.variant(None) == "printed"
    with pytest.raises(BadArgument, match="use printed, wide"):
        claim.variant("x")
    assert (
        claim.with_bound_scaled(0.5).with_bound_scaled(0.5).promise(None, "printed")[0].rhs == 1.0
    )
    assert claim.promise(None, "printed") == (Bound(4.0), (Check("r", 0, 1),))
    assert claim.scaled(Sides(1, 2)) == Sides(1, 2)
    assert claim.with_bound_scaled(3).scaled(Sides(1, 2)).rhs == 6
    assert claim.without_hypothesis("third").hypotheses == ()
    with pytest.raises(BadArgument, match="none of this name"):
        claim.without_hypothesis("fourth")
    with pytest.raises(BadArgument, match="no a priori bound"):
        toy().promise(None, "printed")
    with pytest.raises(RuntimeError, match="is not a variant"):
        toy(default="x")
    assert claim.instance_class is Point
    assert toy(families=()).instance_class is None
    assert Form("text").fails is False


def test_sides_by_the_slow_twin() -> None:
    fields = {"u": np.array([3.0, 2.0, 0.0, 0.0]), "A": np.zeros((4, 2))}
    assert slow_sides.slow_sides(toy(), FLOATS, fields, "printed") == ([3.0], [2.0])
    scaled = toy().with_bound_scaled(0.5)
    assert slow_sides.slow_sides(scaled, FLOATS, fields, "printed") == ([3.0], [1.0])
    several = toy(naive=lambda num, data, variant: ([1.0, 2.0, 3.0], 4.0))
    assert slow_sides.slow_sides(several, FLOATS, fields, "printed") == ([1, 2, 3], [4.0] * 3)
    pairs_of_two = toy(naive=lambda num, data, variant: ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0]))
    assert slow_sides.slow_sides(pairs_of_two, FLOATS, fields, "printed")[1] == [5, 6, 5, 6]
    pairs = (
        (0.0, 1.0, 0),
        (0.0, -1.0, math.inf),
        (3.0, 2.0, 1.5),
        (-3.0, -2.0, 2 / 3),
        (1.0, -1.0, math.inf),
        (-2.0, 4.0, -0.5),
        (0.0, 0.0, 0),
        (1.0, 0.0, math.inf),
    )
    for lhs, rhs, ratio in pairs:
        assert slow_sides._ratio(FLOATS, lhs, rhs) == pytest.approx(ratio)
    identity = toy(kind=Kind.IDENTITY, naive=lambda num, data, variant: ([1.0, 4.0], [1.5, -4.0]))
    assert slow_sides.slow_ratio(identity, FLOATS, fields, "p") == pytest.approx(8 / (1e-9 * 4))
    (check,) = slow_sides.slow_checks(toy(), FLOATS, fields, "printed")
    assert (check.value, check.limit, check.strictly) == (0.0, 1.0, True)
    assert not check._replace(value=1.0 + 1e-15).strictly
    assert check._replace(value=1.0).strictly


def test_instances_from_their_fields() -> None:
    fields = {"u": np.ones(2), "A": np.ones((2, 3))}
    assert axes_of(Point) == {"u": ("k",), "A": ("k", "T")}
    assert instance_from(Point, fields).A.shape == (2, 3)
    for change, problem in (
        ({"A": np.ones((3, 3))}, "entries along k, not 2|where k is 2"),
        ({"A": np.ones(2)}, "axes|shape"),
        ({"u": "name"}, "must be a number array"),
        ({"u": 3}, "must be a number array"),
        ({"b": np.ones(1)}, "is no field"),
        ({"u": np.ones(0), "A": np.ones((0, 3))}, "is empty|where k is 0"),
    ):
        with pytest.raises(BadArgument, match=problem):
            instance_from(Point, {**fields, **change})
    with pytest.raises(BadArgument, match="is missing"):
        instance_from(Point, {"u": np.ones(2)})
    batch = Batch(Point(np.arange(6.0).reshape(3, 2), np.zeros((3, 2, 1))))
    assert len(batch) == 3
    assert batch[2].u.tolist() == [4, 5]
    for outside in (3, -1):
        with pytest.raises(IndexError):
            batch[outside]


def test_small_tables() -> None:
    rows = slack_table([("a", 100.0, 1.0), ("b", 1.0, 0.0)])
    assert rows[0] == {"factor": "a", "bound": 100.0, "measured": 1.0, "orders": 2.0}
    assert rows[1]["orders"] == pytest.approx(300)
    for bound, measured in ((1.0, math.inf), (0.0, 1.0), (math.nan, 1.0)):  # of a run that diverged
        (row,) = slack_table([("c", bound, measured)])
        assert math.isnan(float(row["orders"]))
    observed = Observed(0, None, {Point: [1, 2]})
    assert observed.instances(Point) == [1, 2]
    assert observed.instances(int) == ()
    assert (largest(1, 2.5), smallest(1, 2.5)) == (2.5, 1)
    assert largest(np.array([1.0, 5.0]), 2).tolist() == [2, 5]
    assert smallest(2, np.array([1.0, 5.0])).tolist() == [1, 2]
    assert (log(math.e), exp(0)) == (1.0, 1.0)
    assert float(log(np.float32(1.0))) == 0.0
    assert float(exp(np.array(0.0))) == 1.0
