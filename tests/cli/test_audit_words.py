"""What an audit says: bounds on their side, no ratio of an equality, hypotheses in their words."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from headcount.papers.arda2026.setting import Setting, into_ball
from headcount.papers.deora2024.setting import Setting as HeadsSetting
from headcount.theory import Check, audit, claims
from headcount.training import TrainConfig

ASKED = [
    "eq-132",
    "lemma-5-gradient",
    "lemma-1",
    "theorem-3",
    "theorem-3-last",
    "lemma-3",
    "theorem-4",
    "fact-2",
]


@pytest.fixture(scope="module")
def audited() -> dict[str, Any]:
    """An audit of deora2024 on DM1 that asks a few claims, as JSON."""
    some = [claims[f"deora2024/{name}"] for name in ASKED]
    small = {"model": "deora2024", "data": "dm1", "n": 6, "width": 2, "steps": 3}
    options = {"T": 4, "zeta": 0.25}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(claims), "of_paper", lambda self, key: some)
        report = audit(TrainConfig.of({**small, "data_options": options}))
    return json.loads(json.dumps(report.to_json(), default=float), parse_constant=lambda _: None)


def of(audited: dict[str, Any], name: str) -> dict[str, Any]:
    return next(c for c in audited["claims"] if c["id"] == f"deora2024/{name}")


def test_a_lower_bound_stands_in_the_column_of_bounds(audited: dict[str, Any]) -> None:
    """gamma_lin = -392 used to stand under "measured"."""
    one = of(audited, "eq-132")
    assert one["direction"] == "lower"
    assert (one["measured"], one["bound"]) == (one["rhs"], one["lhs"])
    shown = of(audited, "lemma-5-gradient")
    assert (shown["measured"], shown["bound"]) == (shown["lhs"], shown["rhs"])


def test_an_equality_has_a_difference_and_no_ratio(audited: dict[str, Any]) -> None:
    """Its ratio used to be the difference over what rounding allows."""
    one = of(audited, "lemma-1")
    assert one["ratio"] is None
    assert 0 <= one["difference"] < 1e-9
    assert of(audited, "lemma-5-gradient")["difference"] is None


def test_one_audit_has_one_target_and_names_it(audited: dict[str, Any]) -> None:
    assert any("target theta: the last iterate (the witness" in note for note in audited["notes"])
    # The lower end of (74) is that of the setting's D for every claim about the target.
    told = {of(audited, name)["message"] for name in ("theorem-3", "theorem-3-last")}
    assert len(told) == 1
    assert next(iter(told)).startswith("H = 2, (74) asks H >= ")


def test_claims_that_were_not_asked_are_named_with_the_reason(audited: dict[str, Any]) -> None:
    silent = {one: reason for reason, ids in audited["not_asked"].items() for one in ids}
    for name in ("lemma-3", "theorem-4"):
        assert "every training set" in silent[f"deora2024/{name}"]
    asked = {c["id"] for c in audited["claims"]}
    assert not asked & set(silent)
    assert asked | set(silent) == {f"deora2024/{name}" for name in ASKED}


def test_a_start_without_margin_is_told_so() -> None:
    """It used to be "gamma = 1e-300"."""
    shown = HeadsSetting(gamma=0.0, target_distance=0.0).describe()
    assert "no tangent margin" in shown
    assert "gamma" not in shown


def failing(setting: Setting, name: str) -> list[str]:
    claim = claims[f"arda2026/{name}"]
    return [check.failing for check in claim.promise(setting, "printed")[1] if not check.holds]


def test_hypotheses_fail_in_their_own_words() -> None:
    """Never "0.4 exceeds 1e-09"."""
    sizes: dict[str, Any] = {"d": 2, "m": 8, "tau": 500}
    assert failing(Setting(**sizes, eta=0.05), "theorem-1") == [
        "eta = 0.05, the theorem asks tau^(-1/2) = 0.04472; (44) is for any step size"
    ]
    assert failing(Setting(**sizes), "theorem-1") == []
    assert failing(Setting(**sizes, rho=(3, 3, 1)), "theorem-1") == [
        "rho_w = 1 < nu_w = 3: the theorem asks rho >= nu in every block"
    ]
    long = Setting(**sizes, largest_token=5.3, clip="data option clip=true brings them there")
    assert failing(long, "eq-44") == [
        "the longest token has norm 5.3, the theorem asks at most 1; "
        "data option clip=true brings them there"
    ]
    plain = Check("radii", 3.0, 1.0)
    assert plain.failing == "radii: 3 where at most 1 is allowed"
    assert Check("a", math.nan, 0.0).failing == "a: not a finite number (nan)"


@pytest.mark.parametrize(
    ("data", "words"),
    [("series", "clip=true"), ("ar", "normalise_tokens=true"), ("dm1", "dm1 has no option")],
)
def test_how_tokens_get_into_the_unit_ball(data: str, words: str) -> None:
    assert words in into_ball(TrainConfig.of({}).model_copy(update={"data": data}))
