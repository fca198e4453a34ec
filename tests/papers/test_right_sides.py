"""Every right side of a setting is the slow right side of an instance of that setting.

Likewise what a setting decides of a claim's hypotheses, and the step size that it takes where none
is given. A claim with a bound and no way from its instances to a setting fails here.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from ties import SETTINGS

from headcount.core import float64, papers, stream
from headcount.papers.arda2026.twins_constants import SlowConstants
from headcount.papers.deora2024 import twins
from headcount.theory import Claim, claims
from headcount.theory.domain import arrays_of
from headcount.theory.slow import FLOATS
from headcount.theory.slow_sides import slow_checks, slow_data

BOUNDED = [
    (name, variant)
    for name, claim in claims.items()
    if claim.bound is not None
    for variant in claim.variants
]
DECIDED = [(name, variant) for name, variant in BOUNDED if claims[name].requires is not None]
MEASURED = {("arda2026/eq-48", "measured"): "printed"}
"""A form about what runs measured: of a setting alone the other form is known."""
REACHED = {"arda2026/definition-1", "arda2026/remark-7"}
"""About the event E_U, which an instance replaces by what was realised."""
FROM_START = {"arda2026/eq-44", "arda2026/theorem-1", "arda2026/theorem-1-average"}
"""Their forms `measured`, and (44), begin with V(phi0); a setting knows that |nu|^2 bounds it."""


@functools.cache
def instances_of(name: str) -> tuple[Any, ...]:
    """One of the first family; where there is none, one of every case that is drawn."""
    claim = claims[name]
    if claim.families:
        found = [claim.families[0].sample(stream(3, "bounds", name))]
    else:
        assert claim.experiment is not None
        found = [_drawn(claim, case) for case in claim.experiment.cases]
    if claim.paper == "wu2023":  # a step with which the promised decay is seen
        return tuple(replace(one, gamma=1 / np.asarray(one.alpha) ** 2) for one in found)
    return tuple(map(_alike, found) if claim.quantity == "gap" else found)


def _drawn(claim: Claim, case: Any) -> Any:
    assert claim.experiment is not None
    drawn = claim.experiment.draw(case, np.random.default_rng(3), 1)
    values = arrays_of(drawn).items()
    return type(drawn)(**{k: v if isinstance(v, str) else np.asarray(v)[0] for k, v in values})


def _alike(population: Any) -> Any:
    """All samples equal: hypotheses about every training set are then those of their mean."""
    n = len(population.y)
    return replace(population, X=population.X[[0] * n], y=population.y[[0] * n])


def slow_side(name: str, instance: Any, variant: str) -> float:
    """By the slow twin: of a gap what is added to a loss, of a run what holds at its end."""
    claim, own = claims[name], MEASURED.get((name, variant), variant)
    data = slow_data(FLOATS, arrays_of(instance))
    rhs = float(np.ravel(claim.naive(FLOATS, data, own)[1])[-1])
    if claim.quantity == "gap":
        with float64():
            sides = claim.sides(instance, own)
        return rhs - float(sides.rhs - sides.constants["bound"])
    if name == "arda2026/eq-44" or (name in FROM_START and variant == "measured"):
        times = 4 if name.endswith("average") else 1
        room = float(np.sum(np.square(data["nu"]))) - _start_distance(data)
        rhs += times * room / (4 * data["eta"] * data["tau"])
    return rhs


def _start_distance(data: Any) -> float:
    """V(phi0): the mean over heads of |v|^2."""
    blocks = zip(data["nu"], (data["vc"], data["vu"], data["vw"]), strict=True)
    return sum(nu**2 * float(np.sum(np.square(v))) for nu, v in blocks) / len(data["c0"])


def slow_step(name: str, instance: Any, variant: str) -> float | None:
    """The step size that is taken where none is given: the largest that the hypotheses allow."""
    if claims[name].paper == "arda2026":
        return instance.tau**-0.5 if hasattr(instance, "eta") else None
    if name in DEMANDS:
        return float(getattr(slow_constants(name, instance, variant), DEMANDS[name][1]))
    for check in slow_checks(claims[name], FLOATS, arrays_of(instance), variant):
        if check.name.startswith(("eta", "gamma")):
            return float(check.limit * getattr(instance, STEP[claims[name].paper]))
    return None


DEMANDS = {
    "deora2024/theorem-3": ("root", "longest_step"),
    "deora2024/theorem-4": ("wider_root", "longest_stable_step"),
    "deora2024/corollary-5": ("start_root", "start_step"),
    "deora2024/corollary-5-gap": ("start_root", "stable_start_step"),
}
"""What sqrt(H) must reach and eta may be, among a paper's constants in slow arithmetic."""


def slow_constants(name: str, instance: Any, variant: str) -> Any:
    """The constants of an instance, in slow arithmetic."""
    return claims[name].slow_constants(slow_data(FLOATS, arrays_of(instance)), variant, FLOATS)


def slow_standing(name: str, instance: Any, variant: str) -> list[float]:
    """Where the hypotheses stand that a setting may decide."""
    if name not in DEMANDS:
        return []
    k, (root, step) = slow_constants(name, instance, variant), DEMANDS[name]
    return [getattr(k, root) / math.sqrt(k.H), k.eta / getattr(k, step)]


near = functools.partial(pytest.approx, rel=1e-10, abs=0.0)
"""Losses of 1e-18 are compared, too: pytest's own absolute tolerance is 1e-12."""
STEP = {"arda2026": "eta", "deora2024": "eta", "wu2023": "gamma"}


def tied(name: str, instance: Any) -> tuple[Any, Any]:
    """The instance with the best C_*, where it has any, and its setting."""
    setting = SETTINGS[claims[name].paper](instance)
    if hasattr(instance, "room"):
        instance = replace(instance, room=np.asarray(setting.room.C))
    return instance, setting


@pytest.mark.parametrize(("name", "variant"), [b for b in BOUNDED if b[0] not in REACHED])
def test_the_bound_of_a_setting_is_the_slow_right_side_of_its_instance(name, variant):
    for drawn in instances_of(name):
        instance, setting = tied(name, drawn)
        found = claims[name].bound(setting, variant).rhs
        assert found == near(slow_side(name, instance, variant), rel=1e-9)
        step = slow_step(name, instance, variant)
        if step is not None:
            longest = replace(instance, **{STEP[claims[name].paper]: np.asarray(step)})
            free = claims[name].bound(setting.resized(step_size="default"), variant)
            assert free.rhs == near(slow_side(name, longest, variant), rel=1e-7)


def stands(value: float, limit: float) -> float:
    """Where a hypothesis stands: value over limit, or the value itself beside the limit zero."""
    return float(value / limit) if limit else float(value)


@pytest.mark.parametrize(("name", "variant"), DECIDED)
def test_what_a_setting_decides_is_what_the_hypotheses_say(name, variant):
    claim = claims[name]
    for drawn in instances_of(name):
        instance, setting = tied(name, drawn)
        with float64():
            checks = [hypothesis.check(instance, variant) for hypothesis in claim.hypotheses]
        measured = [stands(check.value, check.threshold) for check in checks]
        for x in slow_standing(name, instance, variant):
            assert any(x == near(y, rel=1e-7) for y in measured), (x, measured)
        for check in claim.requires(setting, variant):
            found = stands(check.value, check.threshold)
            assert any(found == near(x, rel=1e-7) for x in measured), (check, measured)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("m", [2, 10])
def test_the_event_of_a_setting(d, m):
    """Definition 1 and Remark 7, and what all bounds use where no B_U was realised."""
    delta, rho = 0.01, (0.5, 0.7, 0.9)
    setting = papers["arda2026"].part("setting")(d=d, m=m, n=2, tau=3, rho=rho, delta_prime=delta)
    printed = math.sqrt(d) + math.sqrt(2 * math.log(m / (2 * delta)))
    exact = float(stats.chi.ppf((1 - delta) ** (2 / m), d))
    assert claims["arda2026/definition-1"].bound(setting, "printed").rhs == near(printed)
    lengths = {"printed": printed + rho[1] / math.sqrt(m), "sharp": exact + rho[1] / math.sqrt(m)}
    for variant, length in lengths.items():
        found = claims["arda2026/remark-7"].bound(setting, variant).rhs
        assert found == near(length, rel=1e-7)
    known = replace(setting, B_U=lengths["printed"])
    for name, variant in BOUNDED:
        if name.startswith("arda2026") and name not in {*REACHED, "arda2026/lemma-5"}:
            ours, realised = (claims[name].bound(one, variant).rhs for one in (setting, known))
            assert ours == near(realised, rel=1e-12)


def test_what_is_known_without_the_theorem():
    """The trivial rivals: the start's loss, and for a good start log(1 + e^{B_Phi})."""
    for name, variant in BOUNDED:
        claim = claims[name]
        if claim.paper == "arda2026" or claim.quantity != "loss":
            continue
        instance, setting = tied(name, instances_of(name)[0])
        data = slow_data(FLOATS, arrays_of(instance))
        if claim.paper == "wu2023":
            known = sum(x * x for x in data["residual"]) / 2
        elif name.endswith("corollary-5"):
            known = math.log(1 + math.exp(setting.B_Phi))
        else:
            known = twins.loss(FLOATS, data, twins.parameters(data))
        assert claim.bound(setting, variant).trivial == near(known, rel=1e-9)


def test_the_largest_steps_of_deora2024_are_the_least_of_their_limits():
    """Each of the limits decides once; where no target is given it is that of Proposition 7."""
    cls = papers["deora2024"].part("setting")
    few = cls(T=1, d=1, H=4, R=1.0, K=7, B_Phi=1.5, gamma=3.0)
    G = (2 * 1.5 + math.log(7)) / 3.0
    for form, g in (("printed", G), ("corrected", math.sqrt(2) * G)):
        N = 4 * g + few.B_2
        N += (2 * N + 1) / 2  # one more step: beta_1/sqrt(H)
        rho = (2 * N + 1) / 2 + (2 * N + 1) ** 2 / 4
        assert few.start_step("sharp", form) == near(1 / rho, rel=1e-12)
    assert few.g_0() == near(math.sqrt(2) * G)
    assert few.g_0() == few.D
    assert few.L_theta == near(1 / 7)
    assert few.B_2 + few.D == few.N
    low = {"R": 1e-3, "H": 10**12, "B_2": 1e-3}
    first = cls(T=1, d=1, K=1, B_Phi=1.0, gamma=90.0, **low).start_step("v2")
    assert first == near((2 / 90) ** 2 / math.log(1 + math.e), rel=1e-12)
    assert cls(T=1, d=1, K=1, B_Phi=1.0, gamma=1.0, **low).start_step("v2") == 1.0
    for D, L_theta, L_0, step in (
        (2.0, 3.0, 0.1, 4 / 15),
        (2.0, 0.1, 30.0, 4 / 30),
        (2.0, 0.1, 0.1, 1.0),
    ):
        target = {"target_distance": D, "target_width": 1.0, "target_loss": L_theta, "L_0": L_0}
        assert cls(T=1, d=1, K=5, **target, **low).largest_step("v2") == near(step)


def test_a_mean_loss_of_wu2023_is_two_nths_of_the_papers():
    instance, setting = tied("wu2023/proposition-1", instances_of("wu2023/proposition-1")[0])
    assert setting.n == len(instance.y) == 2
    own, mean = (
        claims["wu2023/proposition-1"].bound(replace(setting, loss=loss, n=5), "corrected")
        for loss in ("half-squared-sum", "mean-squared")
    )
    assert own.trivial == near(float(np.sum(np.square(instance.residual))) / 2)
    assert mean.rhs / own.rhs == near(2 / 5)
    assert mean.trivial / own.trivial == near(2 / 5)


def test_what_is_known_without_the_lemmas_of_arda2026():
    """Trivial rivals: |h| <= s0, the sharp Lipschitz constant, and |f - y| <= |f| + |y|."""
    setting = papers["arda2026"].part("setting")(
        d=3, m=6, n=2, tau=4, rho=(0.5, 0.7, 0.9), nu=(0.4, 0.3, 0.2), B_U=2.5, activation="tanh"
    )
    symbols = {"d": 3.0, "m": 6.0, "rho": setting.rho, "nu": setting.nu, "U": [2.5]}
    k = SlowConstants(symbols, "sharp", FLOATS)
    at_start = SlowConstants({**symbols, "rho": (0.0, 0.0, 0.0)}, "sharp", FLOATS)
    trivially = math.sqrt(6) + 0.5
    loss = (min(k.f_max, trivially) + k.y_max) ** 2
    known = {
        "lemma-3": 2 * trivially + k.L1 * k.k,
        "lemma-6a": trivially,
        "eq-38": (k.A + at_start.A) * k.lengths,
        "eq-44": loss,
        "theorem-1": k.y_max**2,
        "theorem-1-average": loss,
        "lemma-5": 0.4 + 0.3 + 2.5 * 0.2 + k.y_max,
    }
    for name, value in known.items():
        for variant in ("printed", "sharp"):
            found = claims[f"arda2026/{name}"].bound(setting, variant).trivial
            assert found == near(value, rel=1e-12), name
    wide = replace(setting, rho=(9.0, 9.0, 9.0))
    further = SlowConstants({**symbols, "rho": wide.rho}, "sharp", FLOATS)
    assert further.f_max > math.sqrt(6) + 9.0
    found = claims["arda2026/eq-44"].bound(wide, "sharp").trivial
    assert found == near((math.sqrt(6) + 9.0 + k.y_max) ** 2, rel=1e-12)
