"""Every right side of a setting has a twin: the slow right side of an instance of that setting."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from flint import arb

from headcount.core import activations
from headcount.papers.arda2026 import Setting, constants
from headcount.theory import Outcome, claims, judge


def test_every_setting_sees_its_trivial_rival():
    """What is known without the theorem does not depend on the theorem's constants."""
    setting = Setting(d=2, m=4, n=3, tau=9)
    for name in ("eq-44", "theorem-1-average", "eq-48", "proposition-1-average"):
        claim = claims[f"arda2026/{name}"]
        printed, sharp = (claim.bound(setting, v).trivial for v in ("printed", "sharp"))
        assert printed == sharp < (1 * (2 + 3) + 9) ** 2 + 1e-9
    assert claims["arda2026/theorem-1"].bound(setting, "sharp").trivial == pytest.approx(81)


@pytest.mark.parametrize("variant", ["bounded", "corrected"])
def test_a_recurrent_unit_of_one_token_has_no_slope(variant: str) -> None:
    """Proposition 2 up to the cutoff: T - 1 terms are none."""
    claim = claims["arda2026/proposition-2-cutoff"]
    (unit, *_) = (target for target in claim.targets() if target.activation == "sin")
    verdict = judge(claim, replace(unit, X=unit.X[:1]), variant)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.lhs == 0.0
    assert (verdict.rhs > 0) == (variant == "bounded")


@pytest.mark.parametrize("m", [2, 10**6, 10**30])
@pytest.mark.parametrize("delta", [0.3, 1e-12, 1e-300])
def test_the_radius_of_the_event_for_any_probability_and_width(m: int, delta: float) -> None:
    """m / delta' overflows, delta' / m underflows; the logarithms do neither."""
    ratio = arb(m) / (2 * arb(delta))
    naive = math.sqrt(5) + math.sqrt(2 * float(ratio.log()))
    assert constants.event_radius(5, m, delta) == pytest.approx(naive, rel=1e-14)
    exact = constants.event_radius_exact(5, m, delta)
    assert math.sqrt(2 * float(ratio.log())) <= exact <= naive * (1 + 1e-14)
    term = 2 * (1 + 1 + 1) * math.sqrt(2 * float((20 / arb(delta)).log()) / m)
    sigma = replace(activations["tanh"], sigma0=1.0, sigma1=1.0)
    assert constants.approximation(sigma, (1.0,) * 3, 10, m, delta) == pytest.approx(
        term, rel=1e-14
    )
