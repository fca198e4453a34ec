"""Lemma 14 of wu2023: the Jacobian of f is not Lipschitz across a kink; what holds instead."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ...theory import Hypothesis, Sides
from ...theory.slow import Arithmetic, norm
from ...theory.slow_spectrum import operator_norm
from . import constants, naive, naive_constants
from . import quantities as model
from .declare import claim, false
from .drift import lam_naively, lam_of
from .instances import PAIRS, SMOOTH_PAIRS, PairInstance
from .naive import Data, Number

APPENDIX = "App. C.1"


def flips(i: PairInstance) -> Any:
    """Which units are on at one point and off at the other, by sample and token."""
    before, after = (model.hidden(i, theta) > 0 for theta in (i.theta, i.after))
    return before != after


def _flips_naively(num: Arithmetic, data: Data) -> list[list[bool]]:
    before, (_, after) = naive.theta_of(data), naive.moved(data)
    changed = []
    for X in data["X"]:
        old, new = (naive.sample(num, X, theta, data["tau"]).on for theta in (before, after))
        changed += [
            [a != b for a, b in zip(x, y, strict=True)] for x, y in zip(old, new, strict=True)
        ]
    return changed


def _flipped_weight(i: PairInstance) -> Any:
    """The largest norm of w_O' on the units that flip together in one sample and token."""
    squares = (i.after.w_O**2)[None, None, :]
    return jnp.sqrt(jnp.max(jnp.sum(jnp.where(flips(i), squares, 0.0), axis=-1)))


def _flipped_naively(num: Arithmetic, data: Data) -> Number:
    w_O = naive.moved(data)[1].w_O
    rows = [
        [w for w, flipped in zip(w_O, row, strict=True) if flipped]
        for row in _flips_naively(num, data)
    ]
    return num.largest([norm(num, row) for row in rows])


def _gap(i: PairInstance) -> Any:
    return model.spectral(model.jacobian(i, i.after) - model.jacobian(i, i.theta))


def _gap_naively(num: Arithmetic, data: Data) -> Number:
    points = naive.theta_of(data), naive.moved(data)[1]
    old, new = ([g.flat() for g in naive.jacobian(num, data, theta)] for theta in points)
    return operator_norm(
        num, [[a - b for a, b in zip(x, y, strict=True)] for x, y in zip(new, old, strict=True)]
    )


def _length(i: PairInstance) -> Any:
    return jnp.linalg.norm(jnp.concatenate([jnp.ravel(block) for block in i.step]))


def _lemma_14(i: PairInstance, variant: str) -> Sides:
    s, lam = model.sizes(i), lam_of(i)
    c3 = constants.c3(s, lam, variant)
    rhs = c3 * _length(i)
    if variant == "corrected":
        rhs = rhs + constants.jump(s, lam, _flipped_weight(i))
    return Sides(_gap(i), rhs, {"c3": c3})


def _lemma_14_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    lam = lam_naively(num, data)
    k = naive_constants.constants(num, data, lam, variant)
    rhs = k.c3 * norm(num, naive.moved(data)[0].flat())
    if variant == "corrected":
        flow = 2 * data["tau"][0] * k.S * lam[2]
        sizes = norm(num, [num.number(1), flow * lam[0], flow * lam[1]])
        rhs = rhs + k.rho * _flipped_naively(num, data) * sizes
    return _gap_naively(num, data), rhs


def across_a_kink(eps: float = 0.01) -> PairInstance:
    """Erratum E4: one unit, w_V from +eps to -eps."""
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    return PairInstance(
        X=one[None],
        y=np.zeros(1),
        W_Q=zero,
        W_K=zero,
        W_V=eps * one,
        w_O=np.ones(1),
        d_Q=zero,
        d_K=zero,
        d_V=-2 * eps * one,
        d_O=np.zeros(1),
        tau=np.ones(2),
    )


def without_a_kink() -> PairInstance:
    """Errata E5 and E6: tokens 100 and 0, tiny values, a large key; only w_Q moves."""
    one, zero = np.ones((1, 1)), np.zeros((1, 1))
    return PairInstance(
        X=np.array([[[100.0], [0.0]]]),
        y=np.zeros(1),
        W_Q=1.3e-8 * one,
        W_K=1e4 * one,
        W_V=1e-5 * one,
        w_O=np.ones(1),
        d_Q=1e-10 * one,
        d_K=zero,
        d_V=zero,
        d_O=np.zeros(1),
        tau=np.ones(2),
    )


claim(
    "lemma-14",
    "Lipschitz constant c3 of the network's gradient",
    "Lemma 14, (13), (14), (19)",
    "||grad f' - grad f|| <= c3 |theta' - theta|. Across a kink of relu the gradient jumps: the "
    "corrected form adds rho w sqrt(1 + (2 tau0 S lamK lamV)^2 + (2 tau0 S lamQ lamV)^2), w the "
    "norm of w_O on the units that change sign.",
    r"\|\nabla_\theta f^{t'}-\nabla_\theta f^t\|_2\le c_3\|\theta^{t'}-\theta^t\|_2",
    sides=_lemma_14,
    naive=_lemma_14_naive,
    families=PAIRS,
    targets=lambda: (across_a_kink(), without_a_kink()),
    forms={
        "printed": false("treats relu' as 1-Lipschitz: the ratio is unbounded at a kink", "E4"),
        "corrected": ("c3 of the smooth case, plus the jump of the units that change sign", "E4"),
    },
    errata=("E7",),
    where=APPENDIX,
)

SAME_PATTERN = Hypothesis(
    "no unit changes sign",
    lambda i: jnp.sum(flips(i)).astype(jnp.float64),
    lambda num, data: num.number(sum(sum(row) for row in _flips_naively(num, data))),
    threshold=0.0,
)

claim(
    "lemma-14-smooth",
    "Lipschitz constant c3 where no unit changes sign",
    "Lemma 14, (14), (21)-(24)",
    "With the same units on at both points, ||grad f' - grad f|| <= c3 |theta' - theta|.",
    r"\|\nabla_\theta f^{t'}-\nabla_\theta f^t\|_2\le c_3\|\theta^{t'}-\theta^t\|_2",
    sides=lambda i, variant: Sides(
        _gap(i), constants.c3(model.sizes(i), lam_of(i), variant) * _length(i)
    ),
    naive=lambda num, data, variant: (
        _gap_naively(num, data),
        naive_constants.constants(num, data, lam_naively(num, data), variant).c3
        * norm(num, naive.moved(data)[0].flat()),
    ),
    families=SMOOTH_PAIRS,
    targets=lambda: (without_a_kink(),),
    hypotheses=(SAME_PATTERN,),
    forms={
        "printed": false("a token is bounded by C_x, and a factor S is lost in (22)", "E6"),
        "corrected": ("tokens up to sqrt(S), and S (1 + 3 lam z) in the attention lines", "E6"),
    },
    errata=("E5", "E7"),
    where=APPENDIX,
)
