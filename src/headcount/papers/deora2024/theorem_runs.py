"""Where the theorems of deora2024 really apply: settings that meet every hypothesis, and runs.

The number of heads that the theorems ask for, 10^9 to 10^17, is exact and cheap: heads that start
equal stay equal, so two groups stand for all of them. The target is the witness of Proposition 7.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ...core import check_choice, check_count, float64
from ...theory import Verdict, claims, judge
from . import constants
from .audit import seen
from .constants import Constants
from .definition_1 import GoodStart, good_start
from .dm1 import DM1
from .model import HeadGroups
from .records import LeftOut, Population, PopulationStart, Run, Start
from .runs import simulate
from .starts import two_phase_groups

CONDITIONS = {"theorem-3": 18, "theorem-4": 128}


@dataclass(frozen=True)
class Setup:
    """Data, a good start in two balanced groups, and the target of Proposition 7."""

    x: Any
    y: Any
    params: Any
    start: GoodStart
    K: int

    @property
    def T(self) -> int:
        """Tokens per sample."""
        return int(self.x.shape[1])

    @property
    def d(self) -> int:
        """Features per token."""
        return int(self.x.shape[2])

    @property
    def G(self) -> float:
        """(2 B_Phi + log K)/gamma."""
        return float(constants.spread(self.start.B_Phi, self.start.gamma, 1 / self.K))

    def g_0(self, tier: str) -> float:
        """What Corollary 5 is stated with: G in its sharp form, else sqrt(2) G."""
        return float(
            constants.g_0(self.start.B_Phi, self.start.gamma, 1 / self.K, constants.form_of(tier))
        )

    def heads(self, tier: str, condition: str) -> float:
        """The least even H that a condition asks for."""
        D, N, R = math.sqrt(2) * self.G, self.start.B_2 + math.sqrt(2) * self.G, self.start.R
        if condition == "corollary-5":
            g0 = self.g_0(tier)
            root = constants.good_start_root(g0, self.start.B_2, R, self.T, self.d, tier)
        else:
            factor = CONDITIONS[condition]
            root = constants.required_root(D, N, R, self.T, self.d, tier, factor=factor)
        return 2.0 * math.ceil(float(root) ** 2 * (1 + 1e-9) / 2)


def setup(n: int = 8, K: int = 300, seed: int = 0) -> Setup:
    """A separable sample of DM1 with bounded noise (d = 3, T = 2) and its two-phase start."""
    check_count("n", n)
    check_count("K", K)
    data = DM1(T=2, d=3, M=1, S=1.0, zeta=0.5, noise="bounded", Z_mu=0.02, Z_nu=0.02)
    x, y = data.sample(n, seed)
    first = data.sample(100, seed + 1)
    groups, params = two_phase_groups(2, 3, 64, seed, x=first.x, y=first.y)
    if len(groups.multiplicities) != 2:  # all signs equal: of probability 2^-63
        return setup(n, K, seed + 1)
    balanced = HeadGroups(2, 3, (32, 32))
    return Setup(x, y, params, good_start(balanced, params, x, y), K)


def _fields(s: Setup, H: float) -> dict[str, Any]:
    U, W = (np.asarray(leaf, np.float64) for leaf in s.params)
    k = np.array([H / 2, H / 2])
    return {"X": s.x, "y": s.y, "k": k, "U": U, "W": W, "readout": "full"}


def _direction(s: Setup) -> tuple[Any, Any]:
    """sqrt(H) theta_*, which does not depend on H."""
    assert s.start.direction is not None
    U, W = (np.asarray(leaf, np.float64) for leaf in s.start.direction)
    return 8.0 * U, 8.0 * W


def run_instance(
    s: Setup, tier: str, condition: str = "theorem-3", eta: float | None = None
) -> LeftOut:
    """The run that meets a condition with the fewest heads; `eta` None is the largest step."""
    vU, vW = _direction(s)
    moves = {"dU": s.G * vU, "dW": s.G * vW}
    run = LeftOut(**_fields(s, s.heads(tier, condition)), **moves, eta=np.asarray(1.0), K=s.K)
    return run.changed(eta=_chosen(run, tier, "longest_step", eta))


def _chosen(point: Any, tier: str, longest: str, eta: float | None) -> Any:
    """A step size, by default just below the longest that its constants allow."""
    if eta is not None:
        return np.asarray(eta)
    with float64():
        return np.asarray(float(getattr(Constants(point, tier), longest)) * (1 - 1e-9))


def start_instance(s: Setup, tier: str, eta: float | None = None) -> Start:
    """The good start that meets both halves of Corollary 5 with the fewest heads."""
    vU, vW = _direction(s)
    numbers = {"eps": np.asarray(1 / s.K), "eta": np.asarray(1.0), "K": s.K}
    start = Start(**_fields(s, s.heads(tier, "corollary-5")), vU=vU, vW=vW, **numbers)
    return start.changed(eta=_chosen(start, tier, "stable_start_step", eta))


@dataclass(frozen=True)
class Row:
    """One verdict where the theorem applies, with H and eta."""

    tier: str
    H: float
    eta: float
    verdict: Verdict


_ON_RUNS = (
    "theorem-3",
    "theorem-3-last",
    "theorem-3-distance",
    "lemma-7",
    "lemma-8",
    "lemma-9",
    "lemma-10",
)


def population_instance(run: Run, tier: str, eta: float | None) -> Population:
    """Every training set of two of the run's samples, with a step that suits them all."""
    found = Population(**run.fields(), m=2)
    if eta is not None:
        return found
    step = _chosen(found, tier, "sure_step", None)
    return found.changed(eta=np.minimum(step, run.eta))


def _asked(
    s: Setup, tier: str, eta: float | None
) -> Iterator[tuple[tuple[str, ...], Any, Any, str]]:
    """(claims, instance, its run, variant)."""
    run = run_instance(s, tier, eta=eta)
    whole = Run(**run.fields())
    with float64():
        done = seen(whole, jax.tree.map(np.asarray, jax.jit(simulate)(whole)))
    yield _ON_RUNS, done, run, tier
    yield ("corollary-3", "corollary-3-distance"), done, run, "printed" if tier == "v2" else tier
    stable = run_instance(s, tier, "theorem-4", eta)
    yield ("lemma-11",), stable, stable, tier
    population = population_instance(stable, tier, eta)
    yield ("lemma-3",), population, population, "printed"
    yield ("theorem-4", "corollary-4"), population, population, tier
    if tier != "v1":
        form = "sharp" if tier == "sharp" else "corrected"
        start = start_instance(s, tier, eta)
        yield ("proposition-7", "corollary-5"), start, start, form
        wide = PopulationStart(**start.fields(), m=2)
        yield ("corollary-5-gap",), wide, wide, form


def where_it_applies(
    tier: str = "v2", *, n: int = 8, K: int = 300, seed: int = 0, eta: float | None = None
) -> list[Row]:
    """Theorems 3 and 4, Corollaries 3-5 and the lemmas between, on runs that meet them.

    Expectations are over all training sets of two of the n samples. With `eta` given the step is
    that instead of the theorem's largest: what depends on it then says so, and the lemmas that ask
    for descent alone still speak.
    """
    check_choice("tier", tier, constants.TIERS)
    rows = []
    for names, instance, run, form in _asked(setup(n, K, seed), tier, eta):
        for name in names:
            verdict = judge(claims[f"deora2024/{name}"], instance, form)
            rows.append(Row(tier, float(np.sum(run.k)), float(run.eta), verdict))
    return rows
