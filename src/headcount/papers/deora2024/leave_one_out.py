"""Leave-one-out runs of deora2024: (20)-(22), Lemma 11 and its steps, on small runs.

theta^{-i} descends L^{-i} = (1/n) sum_{j != i} l_j from the same start with the same step size.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...theory import Family, Sides, instance_class
from ...theory.slow import Arithmetic
from . import constants, naive, naive_constants, naive_runs
from . import quantities as model
from .along import Segment
from .declare import HESSIAN_TIERS, claim, false
from .naive import Data
from .naive_along import NaiveSegment
from .runs import RunInstance, draw_runs, project_run
from .theorem_3 import SHORT_STEP, WIDER


@instance_class
@dataclass(frozen=True)
class LeftOutInstance(RunInstance):
    """A run beside its leave-one-out runs."""


def _draw(rng: np.random.Generator, count: int, **shape: Any) -> LeftOutInstance:
    run = draw_runs(rng, count, **shape)
    return LeftOutInstance(**{f.name: getattr(run, f.name) for f in fields(RunInstance)})


def _family(tier: str, d: int = 2, K: int = 3) -> Family:
    project = functools.partial(project_run, tier=tier, factor=128)
    draw = functools.partial(_draw, n=2, d=d, T=2, G=1, K=K, readout="full")
    return Family(f"leave-one-out run, {tier}", draw, project)


LOO_RUNS = (_family("v2"), _family("v1"), _family("sharp", d=1, K=2))


def shares(n: int) -> Any:
    """Row i: the weights of L^{-i}."""
    return (1 - jnp.eye(n)) / n


@dataclass(frozen=True)
class Pairs:
    """For every i and k: distance to the left-out run, losses there, the segment between."""

    distance: Any
    """|theta_k - theta_k^{-i}|, k = 0..K."""
    own: Any
    """l_i(theta_k), k = 0..K-1."""
    here: Any
    """L^{-i}(theta_k)."""
    there: Any
    """L^{-i}(theta_k^{-i})."""
    highest: Any
    """An upper bound of L^{-i} between the two."""
    expansion: Any
    """The factor of (19) for L^{-i} between the two."""
    width: Any
    """N at theta_k."""
    path: Any
    """L(theta_k)."""


def pairs_of(i: RunInstance, tier: str) -> Pairs:
    """The run and all its left-out runs, side by side."""
    n = len(i.y)

    def descend(weights: Any) -> Any:
        """theta_k - theta_0: beside theta_0 the difference of two runs would be all rounding."""

        def step(moved: Any, _: None) -> Any:
            return moved - i.eta * model.loss_gradient(i, i.rows + moved, weights), moved

        last, moved = jax.lax.scan(step, jnp.zeros_like(i.rows), None, length=i.K)
        return jnp.concatenate([moved, last[None]])

    whole = descend(jnp.full(n, 1 / n))

    def compare(index: Any, weights: Any) -> tuple[Any, ...]:
        other = descend(weights)
        distance = jax.vmap(lambda a, b: model.length(i, a - b))(whole, other)

        def between(a: Any, b: Any) -> tuple[Any, ...]:
            segment = Segment(i, i.rows + a, b - a, weights)
            ends = (segment.losses[0], segment.losses[-1])
            grown = segment.expansion(i.eta, tier)
            return model.losses(i, i.rows + a)[index], *ends, segment.highest(), grown

        return distance, *jax.vmap(between)(whole[:-1], other[:-1])

    found = jax.vmap(compare)(jnp.arange(n), shares(n))
    path = jax.vmap(lambda moved: model.loss(i, i.rows + moved))(whole[:-1])
    width = jax.vmap(lambda moved: model.widest(i.rows + moved))(whole[:-1])
    distance, own, here, there, highest, expansion = found
    return Pairs(distance, own, here, there, highest, expansion, width, path)


def naive_pairs(num: Arithmetic, data: Data) -> list[dict[str, list[Any]]]:
    """The twin of `pairs_of`: one table for each i."""
    n = len(data["y"])
    whole = naive_runs.path(num, data)
    tables = []
    for i in range(n):
        weights = [num.number(0) if j == i else num.number(1) / n for j in range(n)]
        other = naive_runs.path(num, data, weights)

        steps = list(zip(whole, other, strict=True))
        gaps = [naive.length(num, data, naive.difference(a, b)) for a, b in steps]
        segments = [
            NaiveSegment(num, data, a, naive.difference(b, a), weights) for a, b in steps[:-1]
        ]
        own = [naive.samples(num, data, a)[i].loss for a, _ in steps[:-1]]
        tables.append(
            {
                "distance": gaps,
                "own": own,
                "here": [s.losses[0] for s in segments],
                "there": [s.losses[-1] for s in segments],
                "highest": [s.highest() for s in segments],
                "segments": segments,
                "width": [naive.widest(num, a) for a, _ in steps[:-1]],
                "path": [naive.loss(num, data, a) for a, _ in steps[:-1]],
            }
        )
    return tables


def tilde(i: RunInstance, tier: str) -> tuple[Any, Any]:
    """(beta_1, beta_3) with N -> B = 3 D + N."""
    B = constants.reach(i.D, i.N)
    shape = (i.T, i.d, tier, i.readout)
    return constants.beta_1(B, i.R, i.T, i.readout), constants.beta_3(B, i.R, *shape)


def naive_tilde(num: Arithmetic, data: Data, tier: str) -> tuple[Any, Any]:
    """The same in slow arithmetic."""
    B = 3 * naive_runs.distance(num, data) + naive_runs.width(num, data)
    R, (T, d) = naive.token_bound(num, data), naive.shape(data)
    return (
        naive_constants.beta_1(num, B, R, T, data["readout"]),
        naive_constants.beta_3(num, B, R, T, d, tier, data["readout"]),
    )


on_pairs = functools.partial(
    claim,
    families=LOO_RUNS,
    hypotheses=(WIDER, SHORT_STEP),
    forms=HESSIAN_TIERS,
    where="Sec. 6.2, App. C",
)


def _entries(pairs: Pairs, factor: Any, extra: Any) -> Sides:
    """|theta_{k+1} - theta_{k+1}^{-i}| <= factor |theta_k - theta_k^{-i}| + extra, all i and k."""
    rhs = factor * pairs.distance[:, :-1] + extra
    return Sides(pairs.distance[:, 1:].ravel(), rhs.ravel())


def _naive_entries(tables: list[Any], factor: Any, extra: Any) -> tuple[Any, Any]:
    lhs, rhs = [], []
    for table in tables:
        gaps = table["distance"]
        lhs += gaps[1:]
        rhs += [factor(table, k) * gaps[k] + extra(table, k) for k in range(len(gaps) - 1)]
    return lhs, rhs


def _own_share(i: RunInstance, pairs: Pairs) -> Any:
    """(eta/n) beta_1(theta_k) l_i(theta_k)."""
    beta_1 = constants.beta_1(pairs.width, i.R, i.T, i.readout)
    return i.eta / len(i.y) * beta_1[None] * pairs.own


def _naive_own_share(num: Arithmetic, data: Data) -> Any:
    R, (T, _) = naive.token_bound(num, data), naive.shape(data)

    def share(table: Any, k: int) -> Any:
        beta_1 = naive_constants.beta_1(num, table["width"][k], R, T, data["readout"])
        return data["eta"] / len(data["y"]) * beta_1 * table["own"][k]

    return share


def _eq_20(i: RunInstance, variant: str) -> Sides:
    pairs = pairs_of(i, variant)
    return _entries(pairs, pairs.expansion, _own_share(i, pairs))


def _eq_20_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    def factor(table: Any, k: int) -> Any:
        return table["segments"][k].expansion(data["eta"], variant)

    return _naive_entries(naive_pairs(num, data), factor, _naive_own_share(num, data))


on_pairs(
    "eq-20",
    "One step of a run and of its left-out run",
    "Eqs. (20), (86)",
    "|theta_{k+1} - theta_{k+1}^{-i}| is at most the expansion of (19) for L^{-i} times "
    "|theta_k - theta_k^{-i}|, plus (eta/n) beta_1(theta_k) l_i(theta_k).",
    r"\|\theta_{k+1}-\theta_{k+1}^{-i}\|\le\max_\alpha\{\cdot\}\|\theta_k-\theta_k^{-i}\|"
    r"+\frac{\eta\beta_1(\theta_k)}n\ell_i(\theta_k)",
    sides=_eq_20,
    naive=_eq_20_naive,
    hypotheses=(),
    errata=("E30",),
)


def _eq_21(i: RunInstance, variant: str) -> Sides:
    pairs = pairs_of(i, variant)
    _, beta_3 = tilde(i, variant)
    x = i.eta * beta_3 / jnp.sqrt(i.H)
    factor = (1 + x) * pairs.highest if variant == "printed" else 1 + x * pairs.highest
    return _entries(pairs, factor, _own_share(i, pairs))


def _eq_21_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    _, beta_3 = naive_tilde(num, data, variant)
    x = data["eta"] * beta_3 / num.sqrt(naive.total(num, data))

    def factor(table: Any, k: int) -> Any:
        top = table["highest"][k]
        return (1 + x) * top if variant == "printed" else 1 + x * top

    return _naive_entries(naive_pairs(num, data), factor, _naive_own_share(num, data))


def _confident() -> tuple[LeftOutInstance, ...]:
    """One sample, well classified by many small heads: L^{-1} = 0, so the runs only drift apart."""
    k, margin = 2.0**40, 6.0
    U = np.full((1, 1, 1), margin / 2.0**20)
    one = np.ones((1, 1, 1))
    return (
        LeftOutInstance(
            X=one,
            y=np.ones(1),
            k=np.array([k]),
            U=U,
            W=np.zeros((1, 1, 1)),
            readout="full",
            dU=np.full((1, 1, 1), 1 / 16),
            dW=np.zeros((1, 1, 1)),
            eta=np.asarray(2.0**-8),
            K=2,
        ),
    )


on_pairs(
    "eq-21",
    "The same with constants that do not move",
    "Eqs. (21), (89)",
    "Under Theorem 3's conditions and (84) the expansion is 1 + (eta "
    "beta_3(B)/sqrt(H)) max L^{-i}.",
    r"\|\theta_{k+1}-\theta_{k+1}^{-i}\|\le\Bigl(1+\frac{\eta\tilde\beta_3}{\sqrt H}"
    r"\max\widehat L^{-i}\Bigr)\|\theta_k-\theta_k^{-i}\|+\frac{\eta\beta_1(\theta_k)}n"
    r"\ell_i(\theta_k)",
    sides=_eq_21,
    naive=_eq_21_naive,
    targets=_confident,
    forms={
        "printed": false("the bracket closes too early: (1 + x) L^{-i} for 1 + x L^{-i}", "E8"),
        **HESSIAN_TIERS,
    },
    errata=("E8",),
)


def _eq_22(i: RunInstance, variant: str) -> Sides:
    pairs = pairs_of(i, variant)
    beta_1, beta_3 = tilde(i, variant)
    grown = 4 * i.eta * beta_3 / (3 * jnp.sqrt(i.H)) * (pairs.here + pairs.there)
    return _entries(pairs, 1 + grown, i.eta / len(i.y) * beta_1 * pairs.own)


def _eq_22_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    beta_1, beta_3 = naive_tilde(num, data, variant)
    eta, n = data["eta"], len(data["y"])
    x = 4 * eta * beta_3 / (3 * num.sqrt(naive.total(num, data)))
    return _naive_entries(
        naive_pairs(num, data),
        lambda table, k: 1 + x * (table["here"][k] + table["there"][k]),
        lambda table, k: eta / n * beta_1 * table["own"][k],
    )


on_pairs(
    "eq-22",
    "The same with the losses at the two points",
    "Eq. (22)",
    "By Proposition 4 the expansion is 1 + alpha_{k,i}, alpha_{k,i} = (4 eta "
    "beta_3(B)/(3 sqrt(H))) "
    "(L^{-i}(theta_k) + L^{-i}(theta_k^{-i})).",
    r"\|\theta_{k+1}-\theta_{k+1}^{-i}\|\le(1+\alpha_{k,i})\|\theta_k-\theta_k^{-i}\|"
    r"+\frac{\eta\tilde\beta_1}n\ell_i(\theta_k)",
    sides=_eq_22,
    naive=_eq_22_naive,
    errata=("E30",),
)


def _lemma_11(i: RunInstance, variant: str) -> Sides:
    pairs = pairs_of(i, variant)
    beta_1, beta_3 = tilde(i, variant)
    mean = jnp.mean(pairs.distance[:, -1])
    scale = 2 * i.eta / len(i.y) * beta_1
    middle = scale * jnp.sum(pairs.path)
    final = scale * (2 * i.K * model.loss(i, i.target) + 9 * i.D**2 / (4 * i.eta))
    grown = 4 * i.eta * beta_3 / (3 * jnp.sqrt(i.H)) * (pairs.here + pairs.there)
    total = jnp.max(jnp.sum(grown, axis=-1))
    return Sides(jnp.stack([mean, middle, total]), jnp.stack([middle, final, jnp.full((), 0.1)]))


def _lemma_11_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    tables = naive_pairs(num, data)
    beta_1, beta_3 = naive_tilde(num, data, variant)
    eta, n, K = data["eta"], len(data["y"]), int(data["K"])
    mean = num.total([table["distance"][-1] for table in tables]) / n
    scale = 2 * eta / n * beta_1
    middle = scale * num.total(tables[0]["path"])
    L_theta = naive.loss(num, data, naive_runs.target(num, data))
    D = naive_runs.distance(num, data)
    final = scale * (2 * K * L_theta + 9 * D * D / (4 * eta))
    x = 4 * eta * beta_3 / (3 * num.sqrt(naive.total(num, data)))
    sums = [
        x * num.total([a + b for a, b in zip(table["here"], table["there"], strict=True)])
        for table in tables
    ]
    return [mean, middle, num.largest(sums)], [middle, final, num.number(1) / 10]


on_pairs(
    "lemma-11",
    "On-average model stability",
    "Lemma 11, Eqs. (84), (90)-(97)",
    "(1/n) sum_i |theta_K - theta_K^{-i}| <= (2 eta beta_1(B)/n) sum_k L(theta_k) <= "
    "(2 eta/n) beta_1(B) (2 K L(theta) + 9 D^2/(4 eta)); and sum_k alpha_{k,i} <= 1/10.",
    r"\tfrac1n\sum_i\|\theta_K-\theta_K^{-i}\|\le\frac{2\eta}n\tilde\beta_1"
    r"\bigl(2K\widehat L(\theta)+\tfrac{9\|\theta-\theta_0\|^2}{4\eta}\bigr)",
    sides=_lemma_11,
    naive=_lemma_11_naive,
    errata=("E30",),
)
