"""Lemma 1 and Remarks 4-5 of arda2026: the gradients and their sizes, free of T."""

import functools
import math

import jax.numpy as jnp

from ....theory.families import safe_norm
from ....theory.slow import flat, norm
from .. import quantities, twins
from ..constants import state
from ..records import Head, Near
from .facts_1_to_3 import antipodal


@state.identity(
    "lemma-1",
    "Gradients of the model",
    where="Lemma 1, Eqs. (5)-(8)",
    proved="App. A.2",
    on=Near,
    asks=(),
    says=r"\nabla_{W_i} f = m^{-1/2} c_i \sigma'(U_i^\top a_i)(M_iU_i)q_X^\top",
)
def lemma_1(i):
    """The derivative in c_i is h_i/sqrt(m), in U_i it is c_i s'(U.a) a/sqrt(m), in W_i it is
    c_i s'(U.a) (M U) q^T/sqrt(m). Left: autodiff; right: the formulas."""
    table = quantities.features(i, i.params.U, i.params.W)
    weights = jnp.broadcast_to(i.params.c[:, None], table.shape[1:]).at[:, 0].set(1.0)
    closed_form = table * weights[None] / math.sqrt(i.m)
    return quantities.flat_blocks(quantities.gradients(i, i.params)), closed_form


def unit_tokens():
    """a = 0 and M = 1 (tight for W); a close to e with U = 0 (tight for U)."""
    return antipodal(U=1e-3), antipodal(), antipodal(U=0.0, logit=40.0)


size = functools.partial(
    state.claim,
    on=Head,
    asks=("X", "q"),
    tight=unit_tokens,
    proved="Sec. 5.1",
    no_rival="nothing simpler bounds a gradient",
)


@size(
    "remark-4",
    "Size of the W-gradient",
    where="Remark 4, Eq. (7)",
    says=r"\sqrt m\,\|\nabla_{W_i}f\|\le|c_i|\,\sigma_1\|U_i\|_2",
    forms="attained by antipodal tokens of weight 1/2",
)
def remark_4(head):
    """sqrt(m) times the W-gradient of one head has norm at most |c| s1 |U|; no T."""
    part = quantities.head_gradient(head)[len(head.q) :]
    return jnp.abs(head.c) * safe_norm(part), jnp.abs(head.c) * head.sigma.sigma1 * head.B_U


@remark_4.twin
def _(num, head, k):
    grad_W = twins.one_head(num, head).grad_W
    return abs(head["c"]) * norm(num, flat(grad_W)), abs(head["c"]) * k.bounds[1] * k.B_U


@size(
    "remark-5",
    "Size of the U-gradient",
    where="Remark 5, Eq. (6)",
    says=r"\sqrt m\,\|\nabla_{U_i}f\|\le|c_i|\,\sigma_1",
    forms="attained with all weight on a unit token and U = 0",
)
def remark_5(head):
    """sqrt(m) times the U-gradient of one head has norm at most |c| s1; no T."""
    part = quantities.head_gradient(head)[: len(head.q)]
    return jnp.abs(head.c) * safe_norm(part), jnp.abs(head.c) * head.sigma.sigma1


@remark_5.twin
def _(num, head, k):
    return abs(head["c"]) * norm(num, twins.one_head(num, head).grad_U), abs(head["c"]) * k.bounds[
        1
    ]


@state.identity(
    "no-T",
    "The length of the input alone changes nothing",
    where="Sec. 4, Remarks 4, 5 and 10",
    proved="Sec. 4",
    on=Near,
    asks=(),
    says=r"f([X,X];\varphi)=f(X;\varphi),\quad\nabla f([X,X];\varphi)=\nabla f(X;\varphi)",
)
def no_T(i):
    """No constant of the paper contains T. On the model's side: writing every token twice leaves f
    and its gradient as they are, so that no bound could need T; the constants of Facts 2 and 3 and
    Remark 4 are attained at every T."""

    def both(at):
        blocks = quantities.flat_blocks(quantities.gradients(at, at.params))
        return jnp.concatenate([quantities.outputs(at, at.params), jnp.ravel(blocks)])

    return both(i.changed(X=jnp.repeat(i.X, 2, axis=1))), both(i)
