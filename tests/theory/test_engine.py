"""The engine: verdicts, intervals, rounding, certificates, recheck, errors, errata page."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from headcount.cli import run
from headcount.core import BadArgument, activation_named
from headcount.papers.arda2026 import Setting
from headcount.papers.arda2026.constants import constants, event_radius, event_radius_exact
from headcount.theory import (
    Certificate,
    Check,
    Kind,
    Outcome,
    certify,
    claims,
    errata,
    errata_page,
    falsify,
    judge,
    judge_frequency,
    read_certificate,
    recheck,
    shipped_certificates,
)
from headcount.theory.slow import FLOATS, activation, precise

ROOT = Path(__file__).parents[2]
LEDGER = Setting(d=8, m=256, n=5000, T=16, tau=4000)


def test_constants_reproduce_the_ledgers_example() -> None:
    printed, sharp = constants(LEDGER), constants(LEDGER, "sharp")
    expected = {
        "B_U": (6.98, 6.98),
        "L1": (7.05, 6.98),
        "L2": (94.6, 45.9),
        "B_app": (5.56, 4.47),
        "B_lin": (112, 31.4),
        "B_CoF": (294, 159),
        "f_max": (32.9, 32.6),
        "y_max": (14.5, 9.0),
        "B_grad": (7.9e5, 4.8e5),
    }
    for name, (loose, tight) in expected.items():
        assert getattr(printed, name) == pytest.approx(loose, rel=7e-3), name
        assert getattr(sharp, name) == pytest.approx(tight, rel=7e-3), name


def test_a_realised_value_bound_replaces_the_a_priori_one() -> None:
    realised = constants(replace(LEDGER, B_U=2.0))
    assert math.isclose(realised.L1, math.sqrt(5))


def test_the_exact_event_radius_has_the_stated_probability() -> None:
    radius = event_radius_exact(8, 64, 0.1)
    assert stats.chi.cdf(radius, 8) ** 32 == pytest.approx(0.9, rel=1e-10)
    assert radius == pytest.approx(4.80, abs=5e-3)
    assert event_radius(8, 64, 0.1) == pytest.approx(6.225, abs=5e-4)


@pytest.mark.parametrize(
    "name", ["tanh", "sin", "erf", "erf-normal", "arctan", "centred-logistic", "50*tanh(0.02*x)"]
)
def test_slow_activations_agree_with_the_fast_ones_in_both_arithmetics(name: str) -> None:
    fast = activation_named(name)
    for num in (FLOATS, precise()):
        slow = activation(num, name)
        assert [float(b) for b in slow.bounds] == pytest.approx(
            [fast.sigma0, fast.sigma1, fast.sigma2], rel=1e-14
        )
        for x in (-1.7, 0.3, 2.2):
            values = (slow.value, slow.slope, slow.curvature)
            assert [float(f(num.number(x))) for f in values] == pytest.approx(
                [float(f(np.float64(x))) for f in (fast, fast.derivative, fast.second_derivative)],
                rel=1e-12,
            )


def test_an_instance_outside_the_hypotheses_is_not_judged() -> None:
    claim = claims["arda2026/fact-2"]
    doubled = replace(claim.targets()[1], X=2 * np.ones((2, 1)))
    verdict = judge(claim, doubled)
    assert verdict.outcome is Outcome.NOT_APPLICABLE
    assert "tokens in the unit ball: 2 where at most 1 is allowed" in verdict.message
    assert verdict.hypotheses[0].margin == -1.0
    dropped = claim.without_hypothesis("tokens in the unit ball")
    assert judge(dropped, doubled).outcome is Outcome.VIOLATED


def test_a_bound_no_better_than_a_trivial_one_holds_vacuously() -> None:
    claim = claims["arda2026/lemma-6a"]
    tight = claim.targets()[0]
    assert judge(claim, tight).outcome is Outcome.HOLDS
    wide = replace(tight, rho=np.array([1.0, 5.0, 5.0]))
    verdict = judge(claim, wide)
    assert verdict.outcome is Outcome.VACUOUS
    assert set(verdict.to_json()) >= {"id", "variant", "outcome", "lhs", "rhs", "ratio"}
    assert {"B_U", "L1", "f_max"} <= set(verdict.constants)


def test_a_setting_gives_the_a_priori_right_side_and_the_event_counts() -> None:
    claim = claims["arda2026/lemma-3"]
    setting = Setting(d=1, m=2, rho=(1e-3, 1e-3, 1e-3))
    unmeasured = judge(claim, claim.targets()[0], setting=setting)
    assert unmeasured.outcome is Outcome.NOT_APPLICABLE
    assert math.isnan(unmeasured.rhs)
    event = Check("event E_U", 1.0, 3.0)
    verdict = judge(claim, claim.targets()[0], setting=setting, event=event)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.rhs == constants(setting).B_lin
    failed = Check("event E_U", 9.0, 3.0)
    outside = judge(claim, claim.targets()[0], setting=setting, event=failed)
    assert outside.outcome is Outcome.NOT_APPLICABLE
    with pytest.raises(BadArgument, match="no a priori bound"):
        judge(claims["arda2026/eq-35"], claim.targets()[0], setting=setting)


def test_lemma_5_as_printed_fails_by_frequency() -> None:
    claim = claims["arda2026/lemma-5"]
    assert claim.experiment is not None
    verdict = judge_frequency(claim, claim.experiment.cases[0], "printed", repetitions=400)
    assert verdict.outcome is Outcome.VIOLATED
    assert verdict.lhs == pytest.approx(0.92, abs=3 * math.sqrt(0.92 * 0.08 / 400))


def test_every_bound_of_a_setting_is_finite_and_positive() -> None:
    bounded = [claim for _, claim in claims.items() if claim.bound is not None]
    assert len(bounded) >= 12
    for claim in bounded:
        if claim.paper == "arda2026":
            assert claim.bound is not None
            assert 0 < claim.bound(LEDGER, claim.default).rhs < math.inf, claim.id


def tampered(path: Path, change: dict[str, object], folder: Path) -> Certificate:
    content = json.loads(path.read_text())
    for key, value in change.items():
        target, *rest = key.split(".")
        if rest:
            content[target][rest[0]] = value
        else:
            content[target] = value
    file = folder / "changed.json"
    file.write_text(json.dumps(content))
    return read_certificate(file)


SHIPPED = {path.stem: path for path in shipped_certificates()}


@pytest.mark.parametrize("stem", SHIPPED)
def test_a_certificate_with_a_changed_number_is_rejected(stem: str, tmp_path: Path) -> None:
    path = SHIPPED[stem]
    certificate = read_certificate(path)
    changed: dict[str, object] = {"claimed.ratio": repr(certificate.claimed["ratio"] * 1.001)}
    if certificate.kind == "frequency":
        changed = {"claimed.exceedances": repr(certificate.claimed["exceedances"] // 2)}
    elif claims[certificate.claim].kind is Kind.IDENTITY or certificate.claimed["rhs"] == 0:
        changed = {"claimed.lhs": repr(certificate.claimed["lhs"] * 1.001)}
    rejected = recheck(tampered(path, changed, tmp_path))
    assert rejected.status == "refuted"
    assert "the file" in rejected.message


def test_a_certificate_outside_the_hypotheses_is_rejected() -> None:
    certificate = read_certificate(SHIPPED["arda2026-lemma-5-step-printed"])
    wide = replace(
        certificate, instance={**certificate.instance, "X": 2 * certificate.instance["X"]}
    )
    result = recheck(wide)
    assert not result.confirmed
    assert "tokens in the unit ball" in result.message


def test_a_certificate_of_a_true_variant_is_rejected() -> None:
    certificate = read_certificate(SHIPPED["arda2026-psi-2-printed"])
    result = recheck(replace(certificate, variant="corrected", claimed={"ratio": 1.0}))
    assert result.status == "undecided"  # fair signs attain the corrected form exactly
    assert "do not separate" in result.message


@pytest.mark.parametrize(("excess", "confirmed"), [(1e-7, True), (0.0, False)])
def test_near_one_the_recheck_uses_high_precision(excess: float, confirmed: bool) -> None:
    claim = claims["arda2026/lemma-2b-step"]
    matrix = claim.on(A=np.diag([1.0, math.sqrt(2 * excess)]))
    result = recheck(certify(claim, matrix, "implied"))
    assert result.arithmetic.startswith("balls")
    assert result.status == ("proved" if confirmed else "refuted")
    assert result.ratio == pytest.approx(1 + excess, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": "other"}, "not a Headcount certificate"),
        ({"version": 9}, "has version 9"),
        ({"claim": "arda2026/lema-5-step"}, "did you mean arda2026/lemma-5-step"),
        ({"variant": "nope"}, "no such variant"),
        ({"instance": {}}, "is missing"),
        ({"claimed": 3}, "garbles"),
        ({"variant": ["printed"]}, "is no text"),
        ({"kind": "rumour"}, "none of instance, frequency"),
    ],
)
def test_a_malformed_certificate_is_explained(
    change: dict[str, object], problem: str, tmp_path: Path
) -> None:
    path = SHIPPED["arda2026-lemma-5-step-printed"]
    with pytest.raises(BadArgument, match=problem):
        recheck(tampered(path, change, tmp_path))


def test_a_certificate_survives_a_round_trip_bit_for_bit(tmp_path: Path) -> None:
    claim = claims["arda2026/lemma-2b-step"]
    instance = claim.on(A=np.array([[1 / 3, 2e-301], [np.pi, -0.0]]))
    path = certify(claim, instance, "implied").write(tmp_path / "c.json")
    assert read_certificate(path).instance["A"].tobytes() == instance.A.tobytes()
    with pytest.raises(BadArgument, match="cannot be read"):
        read_certificate(tmp_path / "missing.json")


def test_bad_input_is_explained() -> None:
    with pytest.raises(BadArgument, match="did you mean arda2026/lemma-3"):
        claims["arda2026/lemma3"]
    with pytest.raises(BadArgument, match=r"delta = 1\.5: must lie in \(0, 1\)"):
        Setting(d=2, m=4, delta=1.5)
    with pytest.raises(BadArgument, match="must be even"):
        Setting(d=2, m=5)
    with pytest.raises(BadArgument, match="no such variant"):
        falsify(claims["arda2026/fact-2"], "sharp")
    with pytest.raises(BadArgument, match="budget"):
        falsify(claims["arda2026/fact-2"], budget="huge")
    with pytest.raises(BadArgument, match="not tested by frequency"):
        judge_frequency(claims["arda2026/fact-2"], {})


def test_the_search_is_reproducible_and_finds_what_fails() -> None:
    claim = claims["arda2026/psi-2"]
    first, second = (falsify(claim, "printed", budget="small", seed=3) for _ in range(2))
    assert first.worst_ratio == second.worst_ratio == pytest.approx(math.e / 2)
    assert first.violated
    assert first.certificate is not None
    assert recheck(first.certificate).confirmed


def test_the_commands_print_json_and_write_a_certificate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--variant", "printed", "--budget", "small", "--out", str(tmp_path)]
    assert run(["falsify", "arda2026/psi-2", *flags, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {
        "claim",
        "variant",
        "worst_ratio",
        "violated",
        "instances",
        "certificate",
        "proved",
        "called",
        "sizes",
        "instance",
    }
    assert found["violated"]
    assert found["proved"]
    assert found["called"] == "this step does not hold as printed; the result is untouched"
    assert run(["recheck", found["certificate"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["confirmed"]
    content = json.loads(Path(found["certificate"]).read_text())
    content["claimed"]["ratio"] = "7.0"
    Path(found["certificate"]).write_text(json.dumps(content))
    assert run(["recheck", found["certificate"]]) == 1
    assert "refuted" in capsys.readouterr().out


def test_the_errata_page_is_up_to_date() -> None:
    committed = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    assert committed == errata_page(), "write docs/errata.md again: python -m tools.refuted"


def test_every_erratum_that_a_claim_names_exists() -> None:
    for _, claim in claims.items():
        named = {*claim.errata, *(v.erratum for v in claim.variants.values() if v.erratum)}
        for short in named:
            assert f"{claim.paper}/{short}" in errata, (claim.id, short)
