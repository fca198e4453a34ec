"""Lemma 1 and Remarks 4-5 of arda2026: the gradients and their sizes, free of T."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from ...theory import Sides
from ...theory.duals import Dual, duals
from ...theory.families import safe_norm
from ...theory.slow import Arithmetic, activation, flat, norm
from . import naive
from . import quantities as model
from .declare import claim, identity
from .facts import antipodal
from .hypotheses import SAMPLE
from .instances import HEADS, MODELS, HeadInstance, ModelInstance
from .naive import Data


def _closed_form(i: ModelInstance) -> Any:
    """Eqs. (5)-(7) written out: features times 1 (c-block) or c_i (theta-block), over sqrt(m)."""
    table = model.features(i, i.params.U, i.params.W)
    weights = jnp.broadcast_to(i.params.c[:, None], table.shape[1:]).at[:, 0].set(1.0)
    return table * weights[None] / math.sqrt(i.m)


def _lemma_1_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    """f on dual numbers, one parameter at a time, against the closed form."""
    phi, ahead = naive.current(num, data), duals(num)
    unit = Dual(num.number(0), num.number(1))
    exact = [naive.gradients(num, data, j, phi) for j in naive.samples(data)]
    slopes = [
        naive.output(ahead, data, j, naive.nudged(phi, i, position, unit)).slope
        for j in naive.samples(data)
        for i in range(len(phi.c))
        for position in range(len(exact[j][i]))
    ]
    return slopes, [entry for rows in exact for row in rows for entry in row]


identity(
    "lemma-1",
    "Gradients of the model",
    "Lemma 1, Eqs. (5)-(8)",
    "The derivative in c_i is h_i/sqrt(m), in U_i it is c_i s'(U.a) a/sqrt(m), in W_i it is "
    "c_i s'(U.a) (M U) q^T/sqrt(m). Left: autodiff; right: the formulas.",
    r"\nabla_{W_i} f = m^{-1/2} c_i \sigma'(U_i^\top a_i)(M_iU_i)q_X^\top",
    sides=lambda i, variant: Sides(
        model.flat_blocks(model.gradients(i, i.params)), _closed_form(i)
    ),
    naive=_lemma_1_naive,
    families=MODELS,
    where="App. A.2",
)


def _size(i: HeadInstance, variant: str, block: str) -> Sides:
    d = i.q.shape[0]
    g = model.head_gradient(i)
    part = g[d:] if block == "W" else g[:d]
    bound = jnp.abs(i.c) * i.sigma.sigma1 * (safe_norm(i.U) if block == "W" else 1.0)
    return Sides(jnp.abs(i.c) * safe_norm(part), bound, {"s1": i.sigma.sigma1})


def _size_naive(num: Arithmetic, data: Data, variant: str, block: str) -> tuple[Any, Any]:
    unit = naive.one_head(num, data)
    _, s1, _ = activation(num, data["activation"]).bounds
    part = flat(unit.grad_W) if block == "W" else unit.grad_U
    bound = abs(data["c"]) * s1 * (norm(num, data["U"]) if block == "W" else 1)
    return abs(data["c"]) * norm(num, part), bound


def _unit_tokens() -> tuple[HeadInstance, ...]:
    """a = 0 and M = 1 (tight for W); a close to e with U = 0 (tight for U)."""
    return antipodal(U=1e-3), antipodal(), antipodal(U=0.0, logit=40.0)


for _number, _block, _latex, _words, _tight in (
    (4, "W", r"\sigma_1\|U_i\|_2", "|c| s1 |U|", "attained by antipodal tokens of weight 1/2"),
    (5, "U", r"\sigma_1", "|c| s1", "attained with all weight on a unit token and U = 0"),
):
    claim(
        f"remark-{_number}",
        f"Size of the {_block}-gradient",
        f"Remark {_number}, Eq. ({11 - _number})",
        f"sqrt(m) times the {_block}-gradient of one head has norm at most {_words}; no T.",
        rf"\sqrt m\,\|\nabla_{{{_block}_i}}f\|\le|c_i|\,{_latex}",
        sides=functools.partial(_size, block=_block),
        naive=functools.partial(_size_naive, block=_block),
        families=HEADS,
        targets=_unit_tokens,
        forms=_tight,
        hypotheses=SAMPLE,
        where="Sec. 5.1",
    )


def _twice(i: ModelInstance, variant: str) -> Sides:
    """f and its gradient on X, and on X with every token written twice."""

    def both(at: ModelInstance) -> Any:
        blocks = model.flat_blocks(model.gradients(at, at.params))
        return jnp.concatenate([model.outputs(at, at.params), jnp.ravel(blocks)])

    return Sides(both(replace(i, X=jnp.repeat(i.X, 2, axis=1))), both(i))


def _twice_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    def both(at: Data) -> list[Any]:
        phi = naive.current(num, at)
        rows = [flat(naive.gradients(num, at, j, phi)) for j in naive.samples(at)]
        return [naive.output(num, at, j, phi) for j in naive.samples(at)] + flat(rows)

    doubled = [[token for token in sample for _ in range(2)] for sample in data["X"]]
    return both({**data, "X": doubled}), both(data)


identity(
    "no-T",
    "The length of the input alone changes nothing",
    "Sec. 4, Remarks 4, 5 and 10",
    "No constant of the paper contains T. On the model's side: writing every token twice leaves "
    "f and its gradient as they are, so that no bound could need T; the constants of Facts 2 and "
    "3 and Remark 4 are attained at every T.",
    r"f([X,X];\varphi)=f(X;\varphi),\quad\nabla f([X,X];\varphi)=\nabla f(X;\varphi)",
    sides=_twice,
    naive=_twice_naive,
    families=MODELS,
    where="Sec. 4",
)
