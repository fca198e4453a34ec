"""Proposition 1 of deora2024 (= Proposition 5): sizes of one head's derivatives."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...theory import Sides
from ...theory.families import safe_norm
from ...theory.slow import Arithmetic, dot, flat, norm
from ...theory.slow_spectrum import operator_norm
from . import constants, naive, naive_constants
from . import quantities as model
from .declare import HESSIAN_TIERS, claim
from .instances import HEADS, HeadInstance, head_family, opposite_tokens
from .naive import Data

SMALL = (head_family(1, 2), HEADS[0])
"""Hessians have (Td + d^2)^2 entries."""


def _sizes(i: HeadInstance) -> tuple[Any, Any, Any]:
    """(|X|_{2,inf}, |X|_{1,inf}, s = sum_t |X u_t|_inf)."""
    s = jnp.sum(jnp.max(jnp.abs(i.X @ i.U.T), axis=0))
    return jnp.max(safe_norm(i.X)), jnp.max(jnp.abs(i.X)), s


def _sizes_naively(num: Arithmetic, data: Data) -> tuple[Any, Any, Any]:
    X = data["X"]
    s = num.total([num.largest([abs(dot(x, u)) for x in X]) for u in data["U"]])
    return num.largest([norm(num, x) for x in X]), num.largest([abs(e) for e in flat(X)]), s


def _part(i: HeadInstance, part: str) -> Any:
    g_U, g_W = (safe_norm(g, axis=(-2, -1)) for g in model.head_gradient(i))
    return {"U": g_U, "W": g_W, "both": safe_norm(jnp.stack([g_U, g_W]))}[part]


def _part_naively(num: Arithmetic, data: Data, part: str) -> Any:
    gradient = naive.head(num, data["X"], data["U"], data["W"]).gradient
    lead = len(flat(data["U"]))
    cut = {"U": gradient[:lead], "W": gradient[lead:], "both": gradient}[part]
    return norm(num, cut)


def _gradient(i: HeadInstance, variant: str, part: str) -> Sides:
    x, _, s = _sizes(i)
    on_U = len(i.X) ** 0.5 * x
    on_W = (1.0 if variant == "sharp" else 2.0) * x**2 * s
    bound = {"U": on_U, "W": on_W, "both": on_U + on_W}[part]
    return Sides(_part(i, part), bound, {"|X|": x, "s": s})


def _gradient_naive(num: Arithmetic, data: Data, variant: str, part: str) -> tuple[Any, Any]:
    x, _, s = _sizes_naively(num, data)
    bound = num.number(0)
    if part in ("U", "both"):
        bound = bound + num.sqrt(num.number(len(data["X"]))) * x
    if part in ("W", "both"):
        bound = bound + x * x * s * (1 if variant == "sharp" else 2)
    return _part_naively(num, data, part), bound


def _targets() -> tuple[HeadInstance, ...]:
    return opposite_tokens(), opposite_tokens(U=2.0), _equal_tokens()


def _equal_tokens() -> HeadInstance:
    """All tokens equal: |grad_U| attains sqrt(T) |X|."""
    return replace(opposite_tokens(), X=np.ones((2, 1)))


on_heads = functools.partial(claim, families=HEADS, targets=_targets, where="Sec. 3, App. A.1")

for _number, _part_name, _words, _latex, _forms in (
    ("1", "U", "sqrt(T) |X|_{2,inf}", r"\sqrt T\|X\|_{2,\infty}", "attained by equal tokens"),
    (
        "2",
        "W",
        "2 |X|_{2,inf}^2 sum_t |X u_t|_inf",
        r"2\|X\|_{2,\infty}^2\sum_t\|Xu_t\|_\infty",
        {"printed": "constant 2", "sharp": "constant 1, attained by two opposite tokens"},
    ),
    (
        "3",
        "both",
        "the sum of the two",
        r"\sqrt T\|X\|_{2,\infty}+2\|X\|_{2,\infty}^2\sum_t\|Xu_t\|_\infty",
        {"printed": "as printed", "sharp": "constant 1 in the second summand"},
    ),
):
    on_heads(
        f"proposition-1-{_number}",
        "Gradient of a head" + ("" if _part_name == "both" else f" in {_part_name}"),
        f"Proposition 1 = Proposition 5, item {_number}",
        f"The {'whole' if _part_name == 'both' else _part_name}-gradient is at most {_words}.",
        r"\|\nabla\Phi\|\le" + _latex,
        sides=functools.partial(_gradient, part=_part_name),
        naive=functools.partial(_gradient_naive, part=_part_name),
        forms=_forms,
    )


def _hessian(i: HeadInstance, variant: str) -> Sides:
    """x and e are the row and entry norms of X."""
    (T, d), (x, e, s) = i.X.shape, _sizes(i)
    lhs = jnp.max(jnp.abs(jnp.linalg.eigvalsh(model.head_hessian(i))))
    bounds = {
        "sharp": 2 * x**4 * s + T**0.5 * x**3,
        "v1": 6 * d * x**2 * e**2 * s + 2 * (T * d) ** 0.5 * x**2 * e,
        "v2": 6 * d**2 * x * e**3 * s + 2 * d * (T * d) ** 0.5 * x * e**2,
    }
    return Sides(lhs, bounds[variant])


def _hessian_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    X = data["X"]
    T, d = len(X), len(X[0])
    x, e, s = _sizes_naively(num, data)
    lhs = operator_norm(num, naive.hessian(num, X, data["U"], data["W"]))
    if variant == "sharp":
        return lhs, x * x * x * (2 * x * s + num.sqrt(num.number(T)))
    root = num.sqrt(num.number(T * d))
    if variant == "v1":
        return lhs, 2 * x * x * e * (3 * d * e * s + root)
    return lhs, 2 * d * x * e * e * (3 * d * e * s + root)


on_heads(
    "proposition-1-4",
    "Hessian of a head",
    "Proposition 1 = Proposition 5, item 4",
    "The spectral norm of the Hessian is at most 6 d^2 |X|_{2,inf} |X|_{1,inf}^3 s + "
    "2 d sqrt(Td) |X|_{2,inf} |X|_{1,inf}^2 with s = sum_t |X u_t|_inf.",
    r"\|\nabla^2\Phi\|\le6d^2\|X\|_{2,\infty}\|X\|_{1,\infty}^3s"
    r"+2d\sqrt{Td}\|X\|_{2,\infty}\|X\|_{1,\infty}^2",
    sides=_hessian,
    naive=_hessian_naive,
    families=SMALL,
    forms={
        **HESSIAN_TIERS,
        "sharp": (
            "2 |X|_{2,inf}^4 s + sqrt(T) |X|_{2,inf}^3, attained by two opposite tokens",
            "E9",
        ),
    },
)


def _bounded(i: HeadInstance, variant: str, order: int) -> Sides:
    """The forms under Assumption 1, with R the largest token norm, at least 1."""
    T, d = i.X.shape
    R, N = jnp.maximum(1.0, jnp.max(safe_norm(i.X))), safe_norm(i.U, axis=(-2, -1))
    if order == 1:
        return Sides(_part(i, "both"), constants.beta_1(N, R, T), {"R": R, "N": N})
    lhs = jnp.max(jnp.abs(jnp.linalg.eigvalsh(model.head_hessian(i))))
    return Sides(lhs, constants.beta_3(N, R, T, d, variant), {"R": R, "N": N})


def _bounded_naive(num: Arithmetic, data: Data, variant: str, order: int) -> tuple[Any, Any]:
    X = data["X"]
    T, d = len(X), len(X[0])
    R, N = naive.token_bound(num, data), norm(num, flat(data["U"]))
    if order == 1:
        return _part_naively(num, data, "both"), naive_constants.beta_1(num, N, R, T)
    lhs = operator_norm(num, naive.hessian(num, X, data["U"], data["W"]))
    return lhs, naive_constants.beta_3(num, N, R, T, d, variant)


on_heads(
    "proposition-1-gradient",
    "Gradient of a head under Assumption 1",
    "Proposition 1 = Proposition 5, with R",
    "|grad Phi| <= sqrt(T) R (2 R^2 |U|_F + 1) where no token is longer than R >= 1.",
    r"\|\nabla\Phi\|\le\sqrt TR(2R^2\|U\|_F+1)",
    sides=functools.partial(_bounded, order=1),
    naive=functools.partial(_bounded_naive, order=1),
    forms="as printed; attained as U vanishes",
)
on_heads(
    "proposition-1-hessian",
    "Hessian of a head under Assumption 1",
    "Proposition 1 = Proposition 5, with R",
    "|Hess Phi| <= 2 d sqrt(Td) R^3 (3 sqrt(d) R^2 |U|_F + 1) where no token is longer than R.",
    r"\|\nabla^2\Phi\|\le2d\sqrt{Td}R^3(3\sqrt dR^2\|U\|_F+1)",
    sides=functools.partial(_bounded, order=2),
    naive=functools.partial(_bounded_naive, order=2),
    families=SMALL,
    forms=HESSIAN_TIERS,
)
