"""Proposition 1 of arda2026: ProjSGD in expectation over the indices.

On an instance the expectation is exact: all n^tau index sequences are run.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Family, Kind, Sides, instance_class
from ...theory.families import shaped
from ...theory.slow import Arithmetic
from . import naive_theorem
from .declare import claim
from .naive import Data
from .naive_runs import NaiveRun, run
from .quantities import linear_outputs
from .run_hypotheses import CLOSED, STEP_SIZE, decided_by_setting
from .runs import RunInstance, advance, draw_runs, project_theorem_run, start_of, trace_of
from .theorem_1 import FORMS, average_bound, best_bound, closed_side, setting_bound

MOST_SEQUENCES = 10**4


@instance_class
@dataclass(frozen=True)
class StochasticRunInstance(RunInstance):
    """As `RunInstance`, for ProjSGD with one index per step."""

    def outside(self) -> str | None:
        """Every sequence of indices is run, so there must not be too many."""
        if self.tau * math.log(self.n) > math.log(MOST_SEQUENCES):
            return f"{self.n}^{self.tau} sequences of indices are too many ({MOST_SEQUENCES})"
        return super().outside()


def index_sequences(n: int, tau: int) -> Float[Array, "n^tau tau"]:
    """Every sequence J_0..J_{tau-1}; they are equally likely."""
    return np.array(list(itertools.product(range(n), repeat=tau)), dtype=np.float64)


def _all_traces(i: RunInstance) -> Any:
    lin_target = linear_outputs(i, i.transported)

    def one(indices: Array) -> Any:
        carry, terms = advance(i, lin_target, start_of(i), i.tau, indices)
        return trace_of(i, lin_target, carry, terms)

    return jax.vmap(one)(jnp.asarray(index_sequences(i.X.shape[0], i.tau)))


def _in_expectation(i: RunInstance, variant: str, lhs: str) -> Sides:
    """E[lhs] against the right side of (48) with |nu|^2."""
    traces = _all_traces(i)
    smallest = jnp.min(traces.loss, axis=1)
    each = {"best": smallest, "mean": traces.loss, "average": traces.average_loss}[lhs]
    first = jax.tree.map(lambda leaf: leaf[0], traces)
    return closed_side(first, variant, jnp.mean(each), distance=False)


def _runs_naively(num: Arithmetic, data: Data) -> list[NaiveRun]:
    n, tau = len(data["X"]), int(data["tau"])
    return [run(num, data, [number // n**s % n for s in range(tau)]) for number in range(n**tau)]


def _closed_naively(num: Arithmetic, data: Data, variant: str) -> Any:
    return naive_theorem.mean_loss(num, data, variant, naive_theorem.nu_squared(data))


def _best(i: RunInstance, variant: str) -> Sides:
    sides = _in_expectation(i, variant, "best")
    return sides._replace(trivial=jnp.mean(i.y**2))  # L(phi0), since f(phi0) = 0


def _best_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    best = [num.smallest(s.loss for s in one.steps) for one in _runs_naively(num, data)]
    return sum(best) / len(best), _closed_naively(num, data, variant)


def _mean(i: RunInstance, variant: str) -> Sides:
    if variant != "measured":
        return _in_expectation(i, variant, "mean")
    traces = _all_traces(i)
    terms = {
        "V0/(4 eta tau)": traces.distance[0, 0] / (4 * i.eta * i.tau),
        "E mean (f-y)(e_app+e_lin+e_CoF)": jnp.mean(traces.cross),
        "(eta/4) E mean|grad l_J|^2": i.eta / 4 * jnp.mean(traces.gradient),
    }
    return Sides(jnp.mean(traces.loss), sum(terms.values()), terms)


def _mean_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    tau, eta = int(data["tau"]), data["eta"]
    runs = _runs_naively(num, data)
    steps = [s for one in runs for s in one.steps]
    lhs = sum(s.loss for s in steps) / len(steps)
    if variant != "measured":
        return lhs, _closed_naively(num, data, variant)
    cross = sum(s.cross for s in steps) / len(steps)
    gradient = sum(s.gradient for s in steps) / len(steps)
    return lhs, steps[0].distance / (4 * eta * tau) + cross + eta / 4 * gradient


def _average(i: RunInstance, variant: str) -> Sides:
    mean = _in_expectation(i, variant, "average")
    return mean._replace(rhs=4 * mean.rhs + 6 * mean.constants["B_lin"] ** 2)


def _average_naively(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    losses = [one.average_loss for one in _runs_naively(num, data)]
    rhs = naive_theorem.average_loss(num, data, variant, naive_theorem.nu_squared(data))
    return sum(losses) / len(losses), rhs


def _draw(rng: np.random.Generator, count: int, **shape: Any) -> StochasticRunInstance:
    return StochasticRunInstance(**vars(draw_runs(rng, count, **shape)))


def _family(**shape: Any) -> Family:
    # All n^tau sequences of indices are run: only small sizes can be.
    return shaped("ProjSGD", _draw, project_theorem_run, largest=45, **shape)


declare = functools.partial(
    claim,
    kind=Kind.EXPECTATION,
    families=(_family(n=2, tau=3, d=1, T=2, m=2, activation="tanh"),),
    needs_event=True,
    requires=decided_by_setting,
    where="App. A.8",
)
CLOSED_FORMS = {"printed": FORMS["printed"], "sharp": FORMS["sharp"]}

declare(
    "proposition-1",
    "ProjSGD, best iterate in expectation",
    "Proposition 1, (47)-(49)",
    "Under the conditions of Theorem 1, with one index drawn uniformly at each step: "
    "E[min over s < tau of L_s | phi0] <= (|nu|^2 + B_grad)/(4 sqrt tau) "
    "+ (f_max + y_max)(B_app + B_lin + B_CoF).",
    r"\mathbb E\big[\min_{s<\tau}\widehat{\mathcal L}_n(\varphi^{(s)})\mid\varphi^{(0)}"
    r"\big]\le\frac{\|\bar\nu\|^2+B_{grad}}{4\sqrt\tau}+(f^{\max}+y^{\max})"
    r"(B_{app}+B_{lin}+B_{CoF})",
    sides=_best,
    naive=_best_naively,
    forms=CLOSED_FORMS,
    hypotheses=(*CLOSED, STEP_SIZE),
    bound=best_bound,
    quantity="loss",
)

declare(
    "eq-48",
    "ProjSGD, mean loss in expectation",
    "(48)",
    "Under the conditions of Theorem 1, for any step size: the mean of E[L_s | phi0] is at most "
    "|nu|^2/(4 eta tau) + (f_max + y_max)(B_app + B_lin + B_CoF) + eta B_grad/4.",
    r"\frac1\tau\sum_{s<\tau}\mathbb E[\widehat{\mathcal L}_n(\varphi^{(s)})\mid\varphi^{(0)}]\le"
    r"\frac{\|\bar\nu\|^2}{4\eta\tau}+(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})"
    r"+\frac\eta4B_{grad}",
    sides=_mean,
    naive=_mean_naively,
    forms={
        **CLOSED_FORMS,
        "measured": "before its constants: V0/(4 eta tau) + E mean (f-y)(errors) "
        "+ (eta/4) E mean |grad l_J|^2",
    },
    hypotheses=CLOSED,
    bound=setting_bound,
)

declare(
    "proposition-1-average",
    "ProjSGD, average iterate in expectation",
    "Proposition 1, (48) in (50)",
    "Under the conditions of Theorem 1, E[L(average iterate) | phi0] <= (|nu|^2 + B_grad)/sqrt tau "
    "+ 4 (f_max + y_max)(B_app + B_lin + B_CoF) + 6 B_lin^2.",
    r"\mathbb E[\widehat{\mathcal L}_n(\bar\varphi^{(\tau)})\mid\varphi^{(0)}]\le"
    r"\frac{\|\bar\nu\|^2+B_{grad}}{\sqrt\tau}+4(f^{\max}+y^{\max})(B_{app}+B_{lin}+B_{CoF})"
    r"+6B_{lin}^2",
    sides=_average,
    naive=_average_naively,
    forms=CLOSED_FORMS,
    hypotheses=(*CLOSED, STEP_SIZE),
    bound=average_bound,
    quantity="loss",
)
