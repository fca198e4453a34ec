"""Lemma 1 and Remarks 4-5 of arda2026: the gradients and their sizes, free of T."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...core import activation_named, head_features
from ...theory import Claim, Kind, Sides, Variant, claims
from ...theory._duals import Dual, duals
from ...theory.slow import Arithmetic, activation, flat, norm
from . import model, naive
from .facts import antipodal
from .hypotheses import SAMPLE
from .instances import HEADS, MODELS, HeadInstance, ModelInstance, safe_norm
from .naive import Data


def _closed_form(i: ModelInstance) -> Any:
    """Eqs. (5)-(7) written out, head by head and sample by sample."""
    sigma, phi = activation_named(i.activation), i.params

    def row(X: Any, q: Any, c: Any, U: Any, W: Any) -> Any:
        part = head_features(X, q, U, W, sigma)
        theta = c * jnp.concatenate([part.phi_u, jnp.ravel(jnp.outer(part.w_left, q))])
        return jnp.concatenate([part.phi_c[None], theta]) / jnp.sqrt(1.0 * i.m)

    over_heads = jax.vmap(row, in_axes=(None, None, 0, 0, 0))
    table = jax.vmap(over_heads, in_axes=(0, 0, None, None, None))(i.X, i.q, *phi)
    return jnp.reshape(table, (table.shape[0] * i.m, -1))


def _lemma_1(i: ModelInstance, variant: str) -> Sides:
    g = model.gradients(i, i.params)
    n, m = g.c.shape
    auto = jnp.concatenate([g.c[..., None], g.U, jnp.reshape(g.W, (n, m, -1))], axis=-1)
    return Sides(jnp.reshape(auto, (n * m, -1)), _closed_form(i))


def _lemma_1_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    """Dual numbers through f, one direction at a time, against the closed form."""
    phi = naive.current(num, data)
    exact = [naive.gradients(num, data, j, phi) for j in naive.samples(data)]
    along, unit = duals(num), Dual(num.number(0), num.number(1))
    slopes: list[Any] = []
    for j in naive.samples(data):
        for i in range(len(phi.c)):
            for position in range(len(exact[j][i])):
                moved = naive.nudged(phi, i, position, unit)
                slopes.append(naive.output(along, data, j, moved).slope)
    return slopes, [entry for rows in exact for row in rows for entry in row]


lemma_1 = claims.add(
    Claim(
        id="arda2026/lemma-1",
        title="Gradients of the model",
        kind=Kind.IDENTITY,
        equations="Lemma 1, Eqs. (5)-(8)",
        statement="The derivative in c_i is h_i/sqrt(m), in U_i it is c_i s'(U.a) a/sqrt(m), in "
        "W_i it is c_i s'(U.a) (M U) q^T/sqrt(m). Left: autodiff; right: the formulas.",
        latex=r"\nabla_{W_i} f = m^{-1/2} c_i \sigma'(U_i^\top a_i)(M_iU_i)q_X^\top",
        sides=_lemma_1,
        naive=_lemma_1_naive,
        families=MODELS,
        variants={"printed": Variant("equality")},
        default="printed",
        references=("arda2026, App. A.2",),
    )
)


def _size(i: HeadInstance, variant: str, block: str) -> Sides:
    d = i.q.shape[0]
    g = model.head_gradient(i)
    s1 = activation_named(i.activation).sigma1
    part = g[d:] if block == "W" else g[:d]
    bound = jnp.abs(i.c) * s1 * (safe_norm(i.U) if block == "W" else 1.0)
    return Sides(jnp.abs(i.c) * safe_norm(part), bound, {"s1": s1})


def _size_naive(num: Arithmetic, data: Data, block: str) -> tuple[Any, Any]:
    unit = naive.one_head(num, data)
    _, s1, _ = activation(num, data["activation"]).bounds
    part = flat(unit.grad_W) if block == "W" else unit.grad_U
    bound = abs(data["c"]) * s1 * (norm(num, data["U"]) if block == "W" else 1)
    return abs(data["c"]) * norm(num, part), bound


def _unit_tokens() -> tuple[HeadInstance, ...]:
    """a = 0 and M = 1 (tight for W); a close to e with U = 0 (tight for U)."""
    return antipodal(), antipodal(U=0.0, logit=40.0)


remark_4 = claims.add(
    Claim(
        id="arda2026/remark-4",
        title="Size of the W-gradient",
        kind=Kind.DETERMINISTIC,
        equations="Remark 4, Eq. (7)",
        statement="sqrt(m) times the W-gradient of one head has norm at most |c| s1 |U|; no T.",
        latex=r"\sqrt m\,\|\nabla_{W_i}f\|_F\le|c_i|\,\sigma_1\|U_i\|_2",
        sides=lambda i, variant: _size(i, variant, "W"),
        naive=lambda num, data, variant: _size_naive(num, data, "W"),
        families=HEADS,
        targets=lambda: (antipodal(U=1e-3), *_unit_tokens()),
        variants={"printed": Variant("attained by two antipodal tokens of weight 1/2")},
        default="printed",
        hypotheses=SAMPLE,
        references=("arda2026, Sec. 5.1",),
    )
)

remark_5 = claims.add(
    Claim(
        id="arda2026/remark-5",
        title="Size of the U-gradient",
        kind=Kind.DETERMINISTIC,
        equations="Remark 5, Eq. (6)",
        statement="sqrt(m) times the U-gradient of one head has norm at most |c| s1; no T.",
        latex=r"\sqrt m\,\|\nabla_{U_i}f\|_2\le|c_i|\,\sigma_1",
        sides=lambda i, variant: _size(i, variant, "U"),
        naive=lambda num, data, variant: _size_naive(num, data, "U"),
        families=HEADS,
        targets=_unit_tokens,
        variants={"printed": Variant("attained with all weight on a unit token and U = 0")},
        default="printed",
        hypotheses=SAMPLE,
        references=("arda2026, Sec. 5.1",),
    )
)
