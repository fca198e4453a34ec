"""Proposition 1 of deora2024 (= Proposition 5): sizes of one head's derivatives."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from ....theory.families import safe_norm
from ....theory.slow import dot, flat, norm
from ....theory.slow_spectrum import operator_norm
from .. import quantities
from .. import twins as slow
from ..constants import HESSIAN_TIERS, NO_SIZE, state
from ..records import SMALL_HEADS, Head, opposite_tokens


def _sizes(i: Head) -> tuple[Any, Any, Any]:
    """(|X|_{2,inf}, |X|_{1,inf}, s = sum_t |X u_t|_inf)."""
    s = jnp.sum(jnp.max(jnp.abs(i.X @ i.U.T), axis=0))
    return jnp.max(safe_norm(i.X)), jnp.max(jnp.abs(i.X)), s


def _slow_sizes(num: Any, head: Any) -> tuple[Any, Any, Any]:
    X = head["X"]
    s = num.total([num.largest([abs(dot(x, u)) for x in X]) for u in head["U"]])
    return num.largest([norm(num, x) for x in X]), num.largest([abs(e) for e in flat(X)]), s


def _gradients(i: Head) -> tuple[Any, Any]:
    """The norms of (grad_U, grad_W)."""
    on_U, on_W = quantities.head_gradient(i)
    return safe_norm(on_U, axis=(-2, -1)), safe_norm(on_W, axis=(-2, -1))


def _slow_gradient(num: Any, head: Any, part: slice = slice(None)) -> Any:
    return norm(num, slow.head(num, head["X"], head["U"], head["W"]).gradient[part])


def _hessian(i: Head) -> Any:
    return jnp.max(jnp.abs(jnp.linalg.eigvalsh(quantities.head_hessian(i))))


def _slow_hessian(num: Any, head: Any) -> Any:
    return operator_norm(num, slow.hessian(num, head["X"], head["U"], head["W"]))


def _on_U(i: Head) -> Any:
    return i.T**0.5 * jnp.max(safe_norm(i.X))


def _slow_on_U(num: Any, head: Any) -> Any:
    return num.sqrt(num.number(len(head["X"]))) * _slow_sizes(num, head)[0]


def _on_W(i: Head, form: str) -> Any:
    x, _, s = _sizes(i)
    return (1.0 if form == "sharp" else 2.0) * x**2 * s


def _slow_on_W(num: Any, head: Any, form: str) -> Any:
    x, _, s = _slow_sizes(num, head)
    return x * x * s * (1 if form == "sharp" else 2)


def _tight() -> tuple[Head, ...]:
    """With all tokens equal |grad_U| attains sqrt(T) |X|."""
    equal = opposite_tokens().changed(X=np.ones((2, 1)))
    return opposite_tokens(), opposite_tokens(U=2.0), equal


on_heads = functools.partial(
    state.claim, on=Head, tight=_tight, bound=None, proved="Sec. 3, App. A.1", no_rival=NO_SIZE
)
on_small_heads = functools.partial(on_heads, shapes=SMALL_HEADS, forms=HESSIAN_TIERS)


@on_heads(
    "proposition-1-1",
    "Gradient of a head in U",
    where="Proposition 1 = Proposition 5, item 1",
    says=r"\|\nabla\Phi\|\le\sqrt T\|X\|_{2,\infty}",
    forms="attained by equal tokens",
)
def proposition_1_1(head):
    """The U-gradient is at most sqrt(T) |X|_{2,inf}."""
    return _gradients(head)[0], _on_U(head)


@proposition_1_1.twin
def _(num, head):
    return _slow_gradient(num, head, slice(len(flat(head["U"])))), _slow_on_U(num, head)


@on_heads(
    "proposition-1-2",
    "Gradient of a head in W",
    where="Proposition 1 = Proposition 5, item 2",
    says=r"\|\nabla\Phi\|\le2\|X\|_{2,\infty}^2\sum_t\|Xu_t\|_\infty",
    forms={"printed": "constant 2", "sharp": "constant 1, attained by two opposite tokens"},
)
def proposition_1_2(head, form):
    """The W-gradient is at most 2 |X|_{2,inf}^2 sum_t |X u_t|_inf."""
    return _gradients(head)[1], _on_W(head, form)


@proposition_1_2.twin
def _(num, head, form):
    own = slice(len(flat(head["U"])), None)
    return _slow_gradient(num, head, own), _slow_on_W(num, head, form)


@on_heads(
    "proposition-1-3",
    "Gradient of a head",
    where="Proposition 1 = Proposition 5, item 3",
    says=r"\|\nabla\Phi\|\le\sqrt T\|X\|_{2,\infty}+2\|X\|_{2,\infty}^2\sum_t\|Xu_t\|_\infty",
    forms={"printed": "as printed", "sharp": "constant 1 in the second summand"},
)
def proposition_1_3(head, form):
    """The whole-gradient is at most the sum of the two."""
    return safe_norm(jnp.stack(_gradients(head))), _on_U(head) + _on_W(head, form)


@proposition_1_3.twin
def _(num, head, form):
    return _slow_gradient(num, head), _slow_on_U(num, head) + _slow_on_W(num, head, form)


@on_small_heads(
    "proposition-1-4",
    "Hessian of a head",
    where="Proposition 1 = Proposition 5, item 4",
    says=r"\|\nabla^2\Phi\|\le6d^2\|X\|_{2,\infty}\|X\|_{1,\infty}^3s"
    r"+2d\sqrt{Td}\|X\|_{2,\infty}\|X\|_{1,\infty}^2",
    forms={
        **HESSIAN_TIERS,
        "sharp": (
            "2 |X|_{2,inf}^4 s + sqrt(T) |X|_{2,inf}^3, attained by two opposite tokens",
            "E9",
        ),
    },
)
def proposition_1_4(head, form):
    """The spectral norm of the Hessian is at most 6 d^2 |X|_{2,inf} |X|_{1,inf}^3 s +
    2 d sqrt(Td) |X|_{2,inf} |X|_{1,inf}^2 with s = sum_t |X u_t|_inf."""
    (T, d), (x, e, s) = head.X.shape, _sizes(head)
    bounds = {
        "sharp": 2 * x**4 * s + T**0.5 * x**3,
        "v1": 6 * d * x**2 * e**2 * s + 2 * (T * d) ** 0.5 * x**2 * e,
        "v2": 6 * d**2 * x * e**3 * s + 2 * d * (T * d) ** 0.5 * x * e**2,
    }
    return _hessian(head), bounds[form]


@proposition_1_4.twin
def _(num, head, form):
    T, d = len(head["X"]), len(head["X"][0])
    x, e, s = _slow_sizes(num, head)
    lhs, root = _slow_hessian(num, head), num.sqrt(num.number(T * d))
    if form == "sharp":
        return lhs, x * x * x * (2 * x * s + num.sqrt(num.number(T)))
    if form == "v1":
        return lhs, 2 * x * x * e * (3 * d * e * s + root)
    return lhs, 2 * d * x * e * e * (3 * d * e * s + root)


@on_heads(
    "proposition-1-gradient",
    "Gradient of a head under Assumption 1",
    where="Proposition 1 = Proposition 5, with R",
    says=r"\|\nabla\Phi\|\le\sqrt TR(2R^2\|U\|_F+1)",
    forms="as printed; attained as U vanishes",
    right=lambda k: k.beta_1,
)
def proposition_1_gradient(head):
    """|grad Phi| <= sqrt(T) R (2 R^2 |U|_F + 1) where no token is longer than R >= 1."""
    return safe_norm(jnp.stack(_gradients(head)))


@proposition_1_gradient.twin
def _(num, head):
    return _slow_gradient(num, head)


@on_small_heads(
    "proposition-1-hessian",
    "Hessian of a head under Assumption 1",
    where="Proposition 1 = Proposition 5, with R",
    says=r"\|\nabla^2\Phi\|\le2d\sqrt{Td}R^3(3\sqrt dR^2\|U\|_F+1)",
    right=lambda k: k.beta_3,
)
def proposition_1_hessian(head):
    """|Hess Phi| <= 2 d sqrt(Td) R^3 (3 sqrt(d) R^2 |U|_F + 1) where no token is longer than R."""
    return _hessian(head)


@proposition_1_hessian.twin
def _(num, head):
    return _slow_hessian(num, head)
