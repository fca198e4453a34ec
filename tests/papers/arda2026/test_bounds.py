"""Every right side of a setting has a twin: the slow right side of an instance of that setting."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from flint import arb

from headcount.core import activations, stream
from headcount.papers.arda2026 import constants
from headcount.papers.arda2026.setting import Setting
from headcount.theory import Outcome, claims, judge
from headcount.theory._claim import generator
from headcount.theory._pytree import arrays_of
from headcount.theory._slow_sides import slow_data
from headcount.theory.slow import FLOATS

BOUNDED = [
    (claim.id, variant)
    for claim in claims.of_paper("arda2026")
    if claim.bound is not None
    for variant in claim.variants
    if not (claim.id == "arda2026/eq-48" and variant == "measured")
]
"""All variants but (48) before its constants, which is about a run."""


def instance_of(claim):
    if claim.families:
        return claim.families[0].sample(stream(3, "bounds", claim.id))
    case = claim.experiment.cases[1]
    drawn = claim.experiment.draw(case, generator(stream(3, "bounds")), 1)
    return type(drawn)(
        **{k: v if isinstance(v, str) else np.asarray(v)[0] for k, v in arrays_of(drawn).items()}
    )


def setting_of(i) -> Setting:
    """The setting of an instance, with its realised B_U."""
    fields = arrays_of(i)
    heads = fields.get("U0", fields.get("U", np.zeros((1, 1))))
    m = len(fields["c0"]) if "c0" in fields else 2 * len(np.atleast_2d(heads))
    rho = tuple(map(float, fields.get("rho", np.zeros(3))))
    longest = float(np.max(np.linalg.norm(np.atleast_2d(heads), axis=-1)))
    return Setting(
        d=fields["X"].shape[-1] if "X" in fields else 1,
        m=m,
        n=len(fields["X"]) if fields.get("X", np.zeros(1)).ndim == 3 else 1,
        activation=fields.get("activation", "tanh"),
        rho=rho,
        nu=tuple(map(float, fields.get("nu", np.ones(3)))),
        delta=float(fields.get("delta", 0.05)),
        tau=int(fields.get("tau", 1)),
        eta=float(fields["eta"]) if "eta" in fields else None,
        B_U=longest + rho[1] / math.sqrt(m),
    )


@pytest.mark.parametrize(("name", "variant"), BOUNDED)
def test_the_bound_of_a_setting_is_the_slow_right_side_of_its_instance(name, variant):
    claim = claims[name]
    if name == "arda2026/definition-1":
        bound = claim.bound(Setting(d=3, m=10, delta_prime=0.01), variant)
        assert bound.rhs == pytest.approx(math.sqrt(3) + math.sqrt(2 * math.log(10 / 0.02)))
        return
    instance = instance_of(claim)
    data = slow_data(FLOATS, arrays_of(instance))
    _, rhs = claim.naive(FLOATS, data, variant)
    setting = setting_of(instance)
    found = claim.bound(setting, variant).rhs
    if name == "arda2026/eq-44" or variant == "measured":  # V(phi0), which |nu|^2 bounds
        times = 4 if name.endswith("average") else 1
        room = times * (sum(v * v for v in setting.nu) - _start_distance(data))
        rhs = rhs + room / (4 * setting.step * setting.tau)
    assert found == pytest.approx(float(rhs), rel=1e-10)


def _start_distance(data) -> float:
    """V(phi0): the mean over heads of |v|^2."""
    nu, m = data["nu"], len(data["c0"])
    square = lambda block: float(np.sum(np.square(np.array(block, dtype=float))))  # noqa: E731
    blocks = zip(nu, (data["vc"], data["vu"], data["vw"]), strict=True)
    return sum(float(n) ** 2 * square(block) for n, block in blocks) / m


def test_every_setting_sees_its_trivial_rival():
    """What is known without the theorem does not depend on the theorem's constants."""
    setting = Setting(d=2, m=4, n=3, tau=9)
    for name in ("eq-44", "theorem-1-average", "eq-48", "proposition-1-average"):
        claim = claims[f"arda2026/{name}"]
        printed, sharp = (claim.bound(setting, v).trivial for v in ("printed", "sharp"))
        assert printed == sharp < (1 * (2 + 3) + 9) ** 2 + 1e-9
    assert claims["arda2026/theorem-1"].bound(setting, "sharp").trivial == pytest.approx(81)


@pytest.mark.parametrize("variant", ["printed", "corrected"])
def test_a_recurrent_unit_of_one_token_has_no_slope(variant: str) -> None:
    """Proposition 2 up to the cutoff: T - 1 terms are none."""
    claim = claims["arda2026/proposition-2-cutoff"]
    (unit, *_) = (target for target in claim.targets() if target.activation == "sin")
    verdict = judge(claim, replace(unit, X=unit.X[:1]), variant)
    assert verdict.outcome is Outcome.HOLDS
    assert verdict.lhs == 0.0
    assert (verdict.rhs > 0) == (variant == "printed")


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
