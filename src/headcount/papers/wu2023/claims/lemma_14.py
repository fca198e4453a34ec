"""Lemma 14 of wu2023: the Jacobian of f is not Lipschitz across a kink; what holds instead."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np

from ....theory import false, given
from ....theory.slow import norm
from ....theory.slow_spectrum import operator_norm
from .. import quantities, twins
from ..constants import state
from ..records import Move, SmoothMove

SAYS = r"\|\nabla_\theta f^{t'}-\nabla_\theta f^t\|_2\le c_3\|\theta^{t'}-\theta^t\|_2"
about_c3 = functools.partial(state.claim, says=SAYS, proved="App. C.1", trivial=lambda k: 2 * k.c2)


def flips(move):
    """Which units are on at one point and off at the other, by sample and token."""
    before, after = (quantities.hidden(move, theta) > 0 for theta in (move.theta, move.after))
    return before != after


def flipped_weight(move):
    """The largest norm of w_O' on the units that flip together in one sample and token."""
    squares = jnp.where(flips(move), move.after.w_O**2, 0.0)
    return jnp.sqrt(jnp.max(jnp.sum(squares, axis=-1)))


def slow_flipped_weight(num, move):
    """The same in slow arithmetic."""
    before, (_, after) = twins.theta_of(move), twins.moved(move)
    sizes = []
    for X in move["X"]:
        old, new = (twins.sample(num, X, theta, move["tau"]).on for theta in (before, after))
        for pair in zip(old, new, strict=True):
            units = zip(after.w_O, *pair, strict=True)
            sizes.append(norm(num, [w for w, was_on, is_on in units if was_on != is_on]))
    return num.largest(sizes)


def gap(move):
    """||grad f' - grad f||."""
    both = (quantities.jacobian(move, theta) for theta in (move.after, move.theta))
    return quantities.spectral(next(both) - next(both))


def slow_gap(num, move):
    """The same in slow arithmetic."""
    points = twins.theta_of(move), twins.moved(move)[1]
    old, new = ([g.flat() for g in twins.jacobian(num, move, theta)] for theta in points)
    return operator_norm(
        num, [[a - b for a, b in zip(x, y, strict=True)] for x, y in zip(new, old, strict=True)]
    )


def one_unit(kind, X, **blocks):
    """A move of a network with one unit and scalar tokens; blocks that are not named are zero."""
    one = np.ones((1, 1))
    sizes = {name: blocks.get(name, 0.0) * one for name in ("W_Q", "W_K", "W_V", "d_Q", "d_V")}
    still = {"y": np.zeros(1), "d_K": 0.0 * one, "d_O": np.zeros(1)}
    return kind(X=np.array(X), w_O=np.ones(1), tau=np.ones(2), **sizes, **still)


def across_a_kink(eps=0.01):
    """Erratum E4: one unit, w_V from +eps to -eps."""
    return one_unit(Move, [[[1.0]]], W_V=eps, d_V=-2 * eps)


def without_a_kink(kind=Move):
    """Errata E5 and E6: tokens 100 and 0, tiny values, a large key; only w_Q moves."""
    return one_unit(kind, [[[100.0], [0.0]]], W_Q=1.3e-8, W_K=1e4, W_V=1e-5, d_Q=1e-10)


@about_c3(
    "lemma-14",
    "Lipschitz constant c3 of the network's gradient",
    where="Lemma 14, (13), (14), (19)",
    on=Move,
    forms={
        "printed": false("treats relu' as 1-Lipschitz: the ratio is unbounded at a kink", "E4"),
        "corrected": ("c3 of the smooth case, plus the jump of the units that change sign", "E4"),
    },
    notes=("E7",),
    tight=lambda: (across_a_kink(), without_a_kink()),
)
def lemma_14(move, form, k):
    """||grad f' - grad f|| <= c3 |theta' - theta|. Across a kink of relu the gradient jumps: the
    corrected form adds rho w sqrt(1 + (2 tau0 S lamK lamV)^2 + (2 tau0 S lamQ lamV)^2), w the
    norm of w_O on the units that change sign."""
    jump = 0.0 if form == "printed" else k.jump(flipped_weight(move))
    return gap(move), k.c3 * quantities.length(move.step) + jump


@lemma_14.twin
def _(num, move, form, k):
    jump = num.number(0) if form == "printed" else k.jump(slow_flipped_weight(num, move))
    return slow_gap(num, move), k.c3 * norm(num, twins.moved(move)[0].flat()) + jump


@about_c3(
    "lemma-14-smooth",
    "Lipschitz constant c3 where no unit changes sign",
    where="Lemma 14, (14), (21)-(24)",
    on=SmoothMove,
    forms={
        "printed": false("a token is bounded by C_x, and a factor S is lost in (22)", "E6"),
        "corrected": ("tokens up to sqrt(S), and S (1 + 3 lam z) in the attention lines", "E6"),
    },
    notes=("E5", "E7"),
    given=(
        given(
            "no unit changes sign",
            lambda move: jnp.sum(flips(move)).astype(jnp.float64),
            0.0,
            lambda move: f"{int(jnp.sum(flips(move)))} units change sign between the two points",
        ),
    ),
    tight=lambda: (without_a_kink(SmoothMove),),
)
def lemma_14_smooth(move, k):
    """With the same units on at both points, ||grad f' - grad f|| <= c3 |theta' - theta|."""
    return gap(move), k.c3 * quantities.length(move.step)


@lemma_14_smooth.twin
def _(num, move, k):
    return slow_gap(num, move), k.c3 * norm(num, twins.moved(move)[0].flat())
