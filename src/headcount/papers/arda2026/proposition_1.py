"""Proposition 1 of arda2026: ProjSGD in expectation over the indices.

On an instance the expectation is exact: all n^tau index sequences are run.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Bound, Claim, Family, Kind, Sides, Variant, claims, instance_class
from ...theory.slow import Arithmetic
from .model import linear_outputs
from .naive import Data
from .naive_runs import NaiveRun, run
from .realised import REACHABLE, STEP_SIZE, UNIT_TOKENS
from .runs import RunInstance, advance, draw_runs, project_theorem_run, start_of, trace_of
from .setting import Setting
from .theorem_1 import (
    E_APP,
    VARIANTS,
    closed_terms,
    naive_constants,
    run_constants,
    setting_bound,
    trivial_loss,
)

REFERENCE = ("arda2026, App. A.8",)
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


def _sides(instance: RunInstance, variant: str) -> Sides:
    traces = _all_traces(instance)
    if variant == "measured":
        terms = {
            "V0/(4 eta tau)": traces.distance[0, 0] / (4 * instance.eta * instance.tau),
            "E mean (f-y)(e_app+e_lin+e_CoF)": jnp.mean(traces.cross),
            "(eta/4) E mean|grad l_J|^2": instance.eta / 4 * jnp.mean(traces.gradient),
        }
        return Sides(jnp.mean(traces.loss), sum(terms.values()), terms)
    first = jax.tree.map(lambda leaf: leaf[0], traces)
    k = run_constants(first, variant)
    terms = closed_terms(k, first.distance[0], instance.eta, instance.tau)
    smallest = jnp.mean(jnp.min(traces.loss, axis=1))
    return Sides(smallest, sum(terms.values()), {**k, **terms}, traces.loss[0, 0])


def _naive_sides(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    n, tau, eta = len(data["X"]), int(data["tau"]), data["eta"]
    runs: list[NaiveRun] = [
        run(num, data, [int(j) for j in sequence]) for sequence in index_sequences(n, tau)
    ]
    steps = [s for one in runs for s in one.steps]
    start = runs[0].steps[0].distance
    if variant == "measured":
        cross = sum(s.cross for s in steps) / len(steps)
        gradient = sum(s.gradient for s in steps) / len(steps)
        lhs = sum(s.loss for s in steps) / len(steps)
        return lhs, start / (4 * eta * tau) + cross + eta / 4 * gradient
    k = naive_constants(num, data, variant)
    k["B_grad"] = 4 * (k["f_max"] + k["y_max"]) ** 2 * k["A"] ** 2
    lhs = sum(num.smallest(s.loss for s in one.steps) for one in runs) / len(runs)
    return lhs, sum(closed_terms(k, start, eta, tau).values())


def _bound(setting: Setting, variant: str) -> Bound:
    k, terms = setting_bound(setting, "printed" if variant == "measured" else variant)
    return Bound(sum(terms.values()), {**k, **terms}, trivial_loss(setting))


def _draw(rng: np.random.Generator, count: int, **shape: Any) -> StochasticRunInstance:
    drawn = draw_runs(rng, count, **shape)
    return StochasticRunInstance(**{f.name: getattr(drawn, f.name) for f in fields(drawn)})


def _family(**shape: Any) -> Family:
    name = " ".join(f"{key}={value}" for key, value in shape.items())
    # All n^tau sequences of indices are run: only small sizes can be.
    draw = functools.partial(_draw, **shape)
    return Family(f"ProjSGD {name}", draw, project_theorem_run, largest=45)


proposition_1 = claims.add(
    Claim(
        id="arda2026/proposition-1",
        title="ProjSGD, best iterate in expectation",
        kind=Kind.EXPECTATION,
        equations="Proposition 1, (47)-(49)",
        statement=(
            "Under the conditions of Theorem 1, with one index drawn uniformly at each step: "
            "E[min over s < tau of L_s | phi0] <= (|nu|^2 + B_grad)/(4 sqrt tau) "
            "+ (f_max + y_max)(B_app + B_lin + B_CoF)."
        ),
        latex=(
            r"\mathbb E\big[\min_{s<\tau}\widehat{\mathcal L}_n(\varphi^{(s)})\mid\varphi^{(0)}"
            r"\big]\le\frac{\|\bar\nu\|^2+B_{grad}}{4\sqrt\tau}+(f^{\max}+y^{\max})"
            r"(B_{app}+B_{lin}+B_{CoF})"
        ),
        sides=_sides,
        naive=_naive_sides,
        families=(_family(n=2, tau=3, d=1, T=2, m=2, activation="tanh"),),
        targets=lambda: (),
        variants={
            **VARIANTS,
            "measured": Variant(
                "(48) before its constants: E mean L <= V0/(4 eta tau) + E mean (f-y)(errors) "
                "+ (eta/4) E mean |grad l_J|^2"
            ),
        },
        default="printed",
        hypotheses=(UNIT_TOKENS, REACHABLE, E_APP, STEP_SIZE),
        bound=_bound,
        quantity="loss",
        needs_event=True,
        references=REFERENCE,
    )
)
