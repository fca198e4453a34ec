"""Remarks 6-7, Lemma 3 and the first half of Lemma 6 of arda2026: the model near its start."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax

from ...theory import Bound, Sides
from ...theory.families import safe_norm
from ...theory.slow import Arithmetic, dot, norm
from . import constants, naive
from . import quantities as model
from .declare import claim, false, identity, near_start
from .hypotheses import FEASIBLE, PAIRED
from .instances import MODELS, ModelInstance
from .naive import Data
from .setting import Setting


def tight_model(
    *, m: int = 2, shift: tuple[float, float, float] = (1.0, 1.0, 0.0), U: float = 0.0
) -> ModelInstance:
    """d = 1 with one repeated unit token: a = 1 whatever W, so h = sigma(U) exactly."""
    signs = np.concatenate([np.ones(m // 2), -np.ones(m // 2)])
    one = np.ones((m, 1))
    return ModelInstance(
        X=np.ones((1, 2, 1)),
        q=np.ones((1, 1)),
        c0=signs,
        U0=U * one,
        W0=np.zeros((m, 1, 1)),
        dc=shift[0] * np.ones(m),
        dU=shift[1] * signs[:, None],
        dW=shift[2] * one[..., None],
        rho=np.array([1e-3, 1e-3, 1e-3]),
        vc=-np.ones(m),
        vu=-one,
        vw=np.zeros((m, 1, 1)),
        nu=np.array([1.0, 1.0, 1e-3]),
        labels=-np.ones(1),
    )


def tight_models() -> tuple[ModelInstance, ...]:
    """The target of most claims about phi near phi0."""
    return (tight_model(),)


def _zero(i: ModelInstance, variant: str) -> Sides:
    values = model.outputs(i, i.initial)
    size = jnp.sum(jnp.abs(model.heads(i, i.initial))) / math.sqrt(i.m)
    return Sides(values, jnp.zeros_like(values), scale=size)


def _zero_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    start = naive.initial(data)
    half, root = len(start.c) // 2, num.sqrt(num.number(len(start.c)))
    lhs, rhs = [], []
    for j in naive.samples(data):
        values = [unit.h for unit in naive.heads(num, data, j, start)]
        lhs.append(dot(start.c[:half], values[:half]) / root)
        rhs.append(-dot(start.c[half:], values[half:]) / root)
    return lhs, rhs


identity(
    "remark-6",
    "The paired start is zero",
    "Remark 6",
    "f(X; phi0) = 0 for every X under the paired initialisation.",
    r"f(X;\varphi^{(0)})=0",
    sides=_zero,
    naive=_zero_naive,
    families=MODELS,
    forms="equality; exact in floating point with paired summation",
    hypotheses=(PAIRED,),
    where="Sec. 5.2",
)


def _value_bound(setting: Setting, variant: str) -> Bound:
    B_U = constants.value_bound(setting, variant)
    return Bound(B_U, {"B_U": B_U})


near_start(
    "remark-7",
    "Length of the value vectors on the feasible set",
    "Definition 2, Remark 7",
    "On E_U every |U_i| on Omega_rho is at most B_U. Instances use the realised B_U = "
    "max_i |U_i^(0)| + rho_u/sqrt(m), for which no event is needed.",
    r"\|U_i\|_2\le B_U",
    measured=lambda i: jnp.max(safe_norm(i.params.U)),
    naively=lambda num, data: num.largest(norm(num, row) for row in naive.current(num, data).U),
    constant="B_U",
    targets=tight_models,
    forms={
        "printed": "B_U a priori: sqrt(d) + sqrt(2 ln(m/(2 delta'))) + rho_u/sqrt(m)",
        "sharp": ("a priori radius = chi_d quantile at (1-delta')^(2/m), exact", "E14"),
    },
    hypotheses=(FEASIBLE,),
    bound=_value_bound,
    where="Sec. 5.2",
)


def _error(i: ModelInstance) -> Any:
    return model.outputs(i, i.params) - model.linear_outputs(i, i.params)


def _errors_naively(num: Arithmetic, data: Data) -> list[Any]:
    phi = naive.current(num, data)
    return [
        naive.output(num, data, j, phi) - naive.linear(num, data, j, phi)
        for j in naive.samples(data)
    ]


def _any_error(at: Any, k: dict[str, Any]) -> Any:
    """|f - f_lin| from |h| <= s0 and the size of the linear term alone."""
    linear = constants.lipschitz(at.sigma, k["B_U"], "sharp") * k["k"]
    return 2 * constants.output_trivially(at.sigma, at.rho, at.m) + linear


near_start(
    "lemma-3",
    "Linearisation error",
    "Lemma 3, Eq. (18)",
    "For phi in Omega_rho, |f - f_lin| <= B_lin on every input.",
    r"\sup_j|f-f_{\rm lin}|\le B_{\rm lin}=m^{-1/2}(L_1\rho_c k+L_2k^2)",
    measured=lambda i: jnp.max(jnp.abs(_error(i))),
    naively=lambda num, data: num.largest(abs(gap) for gap in _errors_naively(num, data)),
    constant="B_lin",
    trivial=_any_error,
    targets=tight_models,
    forms={
        "printed": ("L2 k^2, without the factor 1/2 of the proof", "E8"),
        "sharp": ("L2*/2 k^2 with L1*, L2*", "E8"),
    },
    where="App. A.4",
)


def _expansion(i: ModelInstance, variant: str) -> Sides:
    """(18): the products dc (h - h0), and c0 times what the line through h0 leaves."""
    start = i.initial
    shift = optax.tree.sub(i.params, start)
    gap = model.heads(i, i.params) - model.heads(i, start)
    along = jnp.einsum(
        "nip,ip->ni",
        model.features(i, start.U, start.W)[..., 1:],
        model.flat_blocks(shift)[..., 1:],
    )
    old = start.c[None]
    pieces = shift.c[None] * gap, old * (gap - along)
    size = sum(jnp.sum(jnp.abs(piece)) for piece in (*pieces, old * along))
    root = math.sqrt(i.m)
    return Sides(_error(i), jnp.sum(sum(pieces), axis=-1) / root, scale=1 + size / root)


def _expansion_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    phi, start = naive.current(num, data), naive.initial(data)
    steps, root = naive.difference(phi, start), num.sqrt(num.number(len(phi.c)))
    sums = []
    for j in naive.samples(data):
        now, then = (naive.heads(num, data, j, p) for p in (phi, start))
        terms = []
        for step, c0, new, old in zip(steps, start.c, now, then, strict=True):
            gap = new.h - old.h
            terms.append(step[0] * gap + c0 * (gap - dot(old.gradient, step[1:])))
        sums.append(num.total(terms) / root)
    return _errors_naively(num, data), sums


identity(
    "eq-18",
    "The linearisation error, term by term",
    "Eq. (18)",
    "f - f_lin is 1/sqrt(m) times the sum over heads of dc (h - h0) and "
    "c0 (h - h0 - <grad h0, dtheta>). f(X; phi0) = 0 is not needed for it.",
    r"f-f_{\rm lin}=\tfrac1{\sqrt m}\sum_i\delta c_i(h_i-h_i^{(0)})+\tfrac1{\sqrt m}\sum_i"
    r"c_i^{(0)}(h_i-h_i^{(0)}-\langle\nabla h_i^{(0)},\delta\theta_i\rangle)",
    sides=_expansion,
    naive=_expansion_naive,
    families=MODELS,
    where="App. A.4",
    errata=("E8",),
)

near_start(
    "lemma-6a",
    "Envelope of the output",
    "Lemma 6",
    "For phi in Omega_rho, |f(X; phi)| <= f_max = L1 k + s0 rho_c on every input.",
    r"\sup_X|f(X;\varphi)|\le f^{\max}=L_1k+\sigma_0\rho_c",
    measured=lambda i: jnp.max(jnp.abs(model.outputs(i, i.params))),
    naively=lambda num, data: num.largest(
        abs(naive.output(num, data, j, naive.current(num, data))) for j in naive.samples(data)
    ),
    constant="f_max",
    trivial=lambda at, k: constants.output_trivially(at.sigma, at.rho, at.m),
    targets=tight_models,
    forms={"printed": "with L1", "sharp": "with L1*"},
)


def _display(i: ModelInstance, variant: str) -> Sides:
    """(i) + (ii) of the proof of Lemma 6, and |f|, on the first sample."""
    now, start = (model.heads(i, phi)[0] for phi in (i.params, i.initial))
    pieces = jnp.abs(i.c0 * (now - start)) + jnp.abs((i.params.c - i.c0) * now)
    sums = jnp.sum(pieces) / math.sqrt(i.m)
    value = jnp.abs(model.outputs(i, i.params)[0])
    return Sides(sums, value) if variant == "printed" else Sides(value, sums)


def _display_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    phi, start = naive.current(num, data), naive.initial(data)
    now, then = (naive.heads(num, data, 0, p) for p in (phi, start))
    sums = num.total(
        [
            abs(start.c[i] * (now[i].h - then[i].h)) + abs((phi.c[i] - start.c[i]) * now[i].h)
            for i in range(len(now))
        ]
    ) / num.sqrt(num.number(len(now)))
    value = abs(naive.output(num, data, 0, phi))
    return (sums, value) if variant == "printed" else (value, sums)


def _cancelling() -> tuple[ModelInstance, ...]:
    """Both heads of a pair move alike: the c0-weighted changes cancel in f, not in the sums."""
    base = tight_model(shift=(0.0, 1.0, 0.0), U=0.5)
    moved = base.dU * np.array([[1.0], [-0.5]])
    return (replace(base, dU=np.abs(moved), rho=np.array([1.0, 1.0, 1.0])), tight_model())


claim(
    "lemma-6-display",
    "The first display in the proof of Lemma 6",
    "proof of Lemma 6",
    "|f| equals (printed) or is at most (corrected) the sum over heads of |c0 (h - h0)| and "
    "|dc h|, over sqrt(m). The sides are compared as sums <= |f| for the printed equality.",
    r"|f(X;\varphi)|=\tfrac1{\sqrt m}\sum_i|c_i^{(0)}(h_i-h_i^{(0)})|"
    r"+\tfrac1{\sqrt m}\sum_i|\delta c_i\,h_i|",
    sides=_display,
    naive=_display_naive,
    families=MODELS[:1],
    targets=_cancelling,
    forms={
        "printed": false("equality", "E10"),
        "corrected": ("at most; there is no missing cross term", "E10"),
    },
    hypotheses=(PAIRED, FEASIBLE),
    where="App. A.7",
)
