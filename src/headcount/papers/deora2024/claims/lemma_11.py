"""Leave-one-out runs of deora2024: (20)-(22), Lemma 11 and its steps, on small runs.

theta^{-i} descends L^{-i} = (1/n) sum_{j != i} l_j from the same start with the same step size.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ....theory import Sides, false
from .. import constants, quantities, twins_constants, twins_runs
from .. import twins as slow
from ..conditions import SHORT_STEP, WIDER
from ..constants import HESSIAN_TIERS, state
from ..fits import fit, shape
from ..records import LeftOut
from ..segments import Segment
from ..twins_segments import SlowSegment


def _shape(form: str, **sizes: int) -> dict[str, Any]:
    return shape(fit, form, by={"factor": 128}, **sizes)


LEFT_OUT = (_shape("v2", K=3), _shape("v1", K=3), _shape("sharp", d=1, K=2))


class Pairs(NamedTuple):
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


def pairs_of(i: LeftOut, tier: str) -> Pairs:
    """The run and all its left-out runs, side by side."""
    n = len(i.y)

    def descend(weights: Any) -> Any:
        """theta_k - theta_0: beside theta_0 the difference of two runs would be all rounding."""

        def step(moved: Any, _: None) -> Any:
            return moved - i.eta * quantities.loss_gradient(i, i.rows + moved, weights), moved

        last, moved = jax.lax.scan(step, jnp.zeros_like(i.rows), None, length=i.K)
        return jnp.concatenate([moved, last[None]])

    whole = descend(jnp.full(n, 1 / n))

    def compare(index: Any, weights: Any) -> tuple[Any, ...]:
        other = descend(weights)
        distance = jax.vmap(lambda a, b: quantities.length(i, a - b))(whole, other)

        def between(a: Any, b: Any) -> tuple[Any, ...]:
            segment = Segment(i, i.rows + a, b - a, weights)
            ends = (segment.losses[0], segment.losses[-1])
            grown = segment.expansion(i.eta, tier)
            return quantities.losses(i, i.rows + a)[index], *ends, segment.highest(), grown

        return distance, *jax.vmap(between)(whole[:-1], other[:-1])

    found = jax.vmap(compare)(jnp.arange(n), (1 - jnp.eye(n)) / n)
    width = jax.vmap(lambda moved: quantities.widest(i.rows + moved))(whole[:-1])
    path = jax.vmap(lambda moved: quantities.loss(i, i.rows + moved))(whole[:-1])
    return Pairs._make([*found, width, path])


def slow_pairs(num: Any, run: Any) -> list[dict[str, list[Any]]]:
    """The twin of `pairs_of`: one table for each i."""
    n = len(run["y"])
    whole = twins_runs.path(num, run)
    tables = []
    for i in range(n):
        weights = [num.number(0) if j == i else num.number(1) / n for j in range(n)]
        steps = list(zip(whole, twins_runs.path(num, run, weights), strict=True))
        segments = [SlowSegment(num, run, a, slow.difference(b, a), weights) for a, b in steps[:-1]]
        table = {
            "distance": [slow.length(num, run, slow.difference(a, b)) for a, b in steps],
            "own": [slow.samples(num, run, a)[i].loss for a, _ in steps[:-1]],
            "here": [s.losses[0] for s in segments],
            "there": [s.losses[-1] for s in segments],
            "highest": [s.highest() for s in segments],
            "segments": segments,
            "width": [slow.widest(num, a) for a, _ in steps[:-1]],
            "path": [slow.loss(num, run, a) for a, _ in steps[:-1]],
        }
        tables.append(table)
    return tables


def _entries(pairs: Pairs, factor: Any, extra: Any) -> Sides:
    """|theta_{k+1} - theta_{k+1}^{-i}| <= factor |theta_k - theta_k^{-i}| + extra, all i and k."""
    rhs = factor * pairs.distance[:, :-1] + extra
    return Sides(pairs.distance[:, 1:].ravel(), rhs.ravel())


def _slow_entries(tables: list[Any], factor: Any, extra: Any) -> tuple[Any, Any]:
    lhs, rhs = [], []
    for table in tables:
        gaps = table["distance"]
        lhs += gaps[1:]
        rhs += [factor(table, k) * gaps[k] + extra(table, k) for k in range(len(gaps) - 1)]
    return lhs, rhs


def _own_share(i: LeftOut, pairs: Pairs) -> Any:
    """(eta/n) beta_1(theta_k) l_i(theta_k)."""
    beta_1 = constants.beta_1(pairs.width, i.R, i.T, i.readout)
    return i.eta / len(i.y) * beta_1[None] * pairs.own


def _slow_own_share(num: Any, run: Any) -> Any:
    R, (T, _) = slow.token_bound(num, run), slow.shape(run)

    def share(table: Any, k: int) -> Any:
        beta_1 = twins_constants.beta_1(num, table["width"][k], R, T, run["readout"])
        return run["eta"] / len(run["y"]) * beta_1 * table["own"][k]

    return share


on_pairs = functools.partial(
    state.claim,
    on=LeftOut,
    shapes=LEFT_OUT,
    given=(WIDER, SHORT_STEP),
    forms=HESSIAN_TIERS,
    proved="Sec. 6.2, App. C",
    no_rival="two runs may drift apart at any speed",
)


@on_pairs(
    "eq-20",
    "One step of a run and of its left-out run",
    where="Eqs. (20), (86)",
    says=r"\|\theta_{k+1}-\theta_{k+1}^{-i}\|\le\max_\alpha\{\cdot\}\|\theta_k-\theta_k^{-i}\|"
    r"+\frac{\eta\beta_1(\theta_k)}n\ell_i(\theta_k)",
    given=(),
    notes=("E30",),
)
def eq_20(run, form):
    """|theta_{k+1} - theta_{k+1}^{-i}| is at most the expansion of (19) for L^{-i} times
    |theta_k - theta_k^{-i}|, plus (eta/n) beta_1(theta_k) l_i(theta_k)."""
    pairs = pairs_of(run, form)
    return _entries(pairs, pairs.expansion, _own_share(run, pairs))


@eq_20.twin
def _(num, run, form):
    def factor(table: Any, k: int) -> Any:
        return table["segments"][k].expansion(run["eta"], form)

    return _slow_entries(slow_pairs(num, run), factor, _slow_own_share(num, run))


def _confident() -> tuple[LeftOut, ...]:
    """Two samples, well classified by many small heads: L^{-i} is small, the runs drift apart."""
    one, U = np.ones((1, 1, 1)), np.full((1, 1, 1), 6.0 / 2.0**20)
    return (
        LeftOut(
            X=np.ones((2, 1, 1)), y=np.ones(2), k=np.array([2.0**40]), U=U, W=0 * one,
            readout="full", dU=one / 16, dW=0 * one, eta=np.asarray(2.0**-8), K=2,
        ),
    )  # fmt: skip


@on_pairs(
    "eq-21",
    "The same with constants that do not move",
    where="Eqs. (21), (89)",
    says=r"\|\theta_{k+1}-\theta_{k+1}^{-i}\|\le\Bigl(1+\frac{\eta\tilde\beta_3}{\sqrt H}"
    r"\max\widehat L^{-i}\Bigr)\|\theta_k-\theta_k^{-i}\|+\frac{\eta\beta_1(\theta_k)}n"
    r"\ell_i(\theta_k)",
    tight=_confident,
    forms={
        "printed": false("the bracket closes too early: (1 + x) L^{-i} for 1 + x L^{-i}", "E8"),
        **HESSIAN_TIERS,
    },
    notes=("E8",),
)
def eq_21(run, form, k):
    """Under Theorem 3's conditions and (84) the expansion is 1 + (eta beta_3(B)/sqrt(H)) max
    L^{-i}."""
    pairs = pairs_of(run, form)
    x = run.eta * k.tilde_3 / jnp.sqrt(run.H)
    factor = (1 + x) * pairs.highest if form == "printed" else 1 + x * pairs.highest
    return _entries(pairs, factor, _own_share(run, pairs))


@eq_21.twin
def _(num, run, form, k):
    x = run["eta"] * k.tilde_3 / num.sqrt(k.H)

    def factor(table: Any, step: int) -> Any:
        top = table["highest"][step]
        return (1 + x) * top if form == "printed" else 1 + x * top

    return _slow_entries(slow_pairs(num, run), factor, _slow_own_share(num, run))


def _growth(run: LeftOut, k: Any, pairs: Pairs) -> Any:
    """alpha_{k,i}."""
    return 4 * run.eta * k.tilde_3 / (3 * jnp.sqrt(run.H)) * (pairs.here + pairs.there)


@on_pairs(
    "eq-22",
    "The same with the losses at the two points",
    where="Eq. (22)",
    says=r"\|\theta_{k+1}-\theta_{k+1}^{-i}\|\le(1+\alpha_{k,i})\|\theta_k-\theta_k^{-i}\|"
    r"+\frac{\eta\tilde\beta_1}n\ell_i(\theta_k)",
    notes=("E30",),
)
def eq_22(run, form, k):
    """By Proposition 4 the expansion is 1 + alpha_{k,i}, alpha_{k,i} = (4 eta beta_3(B)/(3
    sqrt(H))) (L^{-i}(theta_k) + L^{-i}(theta_k^{-i}))."""
    pairs = pairs_of(run, form)
    own = run.eta / len(run.y) * k.tilde_1 * pairs.own
    return _entries(pairs, 1 + _growth(run, k, pairs), own)


@eq_22.twin
def _(num, run, k):
    eta, n = run["eta"], len(run["y"])
    x = 4 * eta * k.tilde_3 / (3 * num.sqrt(k.H))
    return _slow_entries(
        slow_pairs(num, run),
        lambda table, step: 1 + x * (table["here"][step] + table["there"][step]),
        lambda table, step: eta / n * k.tilde_1 * table["own"][step],
    )


@on_pairs(
    "lemma-11",
    "On-average model stability",
    where="Lemma 11, Eqs. (84), (90)-(92)",
    says=r"\tfrac1n\sum_i\|\theta_K-\theta_K^{-i}\|\le\frac{2\eta}n\tilde\beta_1"
    r"\bigl(2K\widehat L(\theta)+\tfrac{9\|\theta-\theta_0\|^2}{4\eta}\bigr)",
    notes=("E30",),
)
def lemma_11(run, form, k):
    """(1/n) sum_i |theta_K - theta_K^{-i}| <= (2 eta beta_1(B)/n) sum_k L(theta_k) <=
    (2 eta/n) beta_1(B) (2 K L(theta) + 9 D^2/(4 eta)); and sum_k alpha_{k,i} <= 1/10."""
    pairs = pairs_of(run, form)
    mean = jnp.mean(pairs.distance[:, -1])
    scale = 2 * run.eta / len(run.y) * k.tilde_1
    middle = scale * jnp.sum(pairs.path)
    final = scale * (2 * run.K * run.L_theta + 9 * run.D**2 / (4 * run.eta))
    total = jnp.max(jnp.sum(_growth(run, k, pairs), axis=-1))
    return jnp.stack([mean, middle, total]), jnp.stack([middle, final, jnp.full((), 0.1)])


@lemma_11.twin
def _(num, run, k):
    tables = slow_pairs(num, run)
    eta, n = run["eta"], len(run["y"])
    mean = num.total([table["distance"][-1] for table in tables]) / n
    scale = 2 * eta / n * k.tilde_1
    middle = scale * num.total(tables[0]["path"])
    final = scale * (2 * k.K * k.L_theta + 9 * k.D * k.D / (4 * eta))
    x = 4 * eta * k.tilde_3 / (3 * num.sqrt(k.H))
    sums = [
        x * num.total([a + b for a, b in zip(table["here"], table["there"], strict=True)])
        for table in tables
    ]
    return [mean, middle, num.largest(sums)], [middle, final, num.number(1) / 10]
