"""Remarks 6-7, Lemma 3 and the first half of Lemma 6 of arda2026: the model near its start."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core import activation_named
from ...theory import Bound, Claim, Kind, Sides, Variant, claims
from ...theory.slow import Arithmetic, norm
from . import constants, model, naive
from .hypotheses import FEASIBLE, NEAR_START, PAIRED
from .instances import MODELS, ModelInstance, safe_norm
from .naive import Data
from .setting import Setting


def start_constants(i: ModelInstance, tier: str) -> dict[str, Any]:
    """B_U (realised), L1, L2 and k of an instance; `tier` is "printed" or "sharp"."""
    sigma = activation_named(i.activation)
    return {
        "B_U": i.B_U,
        "L1": constants.lipschitz(sigma, i.B_U, tier),
        "L2": constants.smoothness(sigma, i.B_U, tier),
        "k": constants.drift_radius(i.rho),
    }


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


def _zero(i: ModelInstance, variant: str) -> Sides:
    values = model.outputs(i, i.initial)
    sizes = jax.vmap(lambda X, q: model.heads(i.initial, X, q, i.activation))(i.X, i.q)
    return Sides(values, jnp.zeros_like(values), scale=jnp.sum(jnp.abs(sizes)) / math.sqrt(i.m))


def _zero_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    start = naive.initial(data)
    root = num.sqrt(num.number(len(start.c)))
    lhs, rhs = [], []
    for j in naive.samples(data):
        units = naive.heads(num, data, j, start)
        half = len(units) // 2
        lhs.append(num.total([c * u.h for c, u in zip(start.c[:half], units, strict=False)]) / root)
        pairs = zip(start.c[half:], units[half:], strict=True)
        rhs.append(-num.total([c * u.h for c, u in pairs]) / root)
    return lhs, rhs


remark_6 = claims.add(
    Claim(
        id="arda2026/remark-6",
        title="The paired start is zero",
        kind=Kind.IDENTITY,
        equations="Remark 6",
        statement="f(X; phi0) = 0 for every X under the paired initialisation.",
        latex=r"f(X;\varphi^{(0)})=0",
        sides=_zero,
        naive=_zero_naive,
        families=MODELS,
        variants={"printed": Variant("equality; exact in floating point with paired summation")},
        default="printed",
        hypotheses=(PAIRED,),
        references=("arda2026, Sec. 5.2",),
    )
)


def _values(i: ModelInstance, variant: str) -> Sides:
    return Sides(jnp.max(safe_norm(i.params.U)), i.B_U, {"B_U": i.B_U})


def _values_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    lhs = num.largest(norm(num, row) for row in naive.current(num, data).U)
    return lhs, naive.bounds(num, data, "printed").B_U


def _values_bound(setting: Setting, variant: str) -> Bound:
    B_U = constants.value_bound(setting, variant)
    return Bound(B_U, {"B_U": B_U})


remark_7 = claims.add(
    Claim(
        id="arda2026/remark-7",
        title="Length of the value vectors on the feasible set",
        kind=Kind.DETERMINISTIC,
        equations="Definition 2, Remark 7",
        statement="On E_U every |U_i| on Omega_rho is at most B_U. Instances use the realised "
        "B_U = max_i |U_i^(0)| + rho_u/sqrt(m), for which no event is needed.",
        latex=r"\|U_i\|_2\le B_U",
        sides=_values,
        naive=_values_naive,
        families=MODELS[:1],
        targets=lambda: (tight_model(U=0.0),),
        variants={
            "printed": Variant("B_U a priori: sqrt(d) + sqrt(2 ln(m/(2 delta'))) + rho_u/sqrt(m)"),
            "sharp": Variant("a priori radius = chi_d quantile at (1-delta')^(2/m), exact", "E14"),
        },
        default="printed",
        hypotheses=(FEASIBLE,),
        bound=_values_bound,
        needs_event=True,
        errata=("E14",),
        references=("arda2026, Sec. 5.2",),
    )
)


def _trivial_error(i: ModelInstance, sharp: dict[str, Any]) -> Any:
    """|f - f_lin| from |h| <= s0 and the size of the linear term alone."""
    s0 = activation_named(i.activation).sigma0
    return 2 * s0 * (i.rho[0] + math.sqrt(i.m)) + sharp["L1"] * sharp["k"]


def _lemma_3(i: ModelInstance, variant: str) -> Sides:
    table = start_constants(i, variant)
    B_lin = constants.linearisation(table["L1"], table["L2"], i.rho, i.m, variant)
    error = jnp.max(jnp.abs(model.outputs(i, i.params) - model.linear_outputs(i, i.params)))
    trivial = _trivial_error(i, start_constants(i, "sharp"))
    return Sides(error, B_lin, {**table, "B_lin": B_lin}, trivial)


def _lemma_3_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    b = naive.bounds(num, data, variant)
    phi = naive.current(num, data)
    gaps = [
        abs(naive.output(num, data, j, phi) - naive.linear(num, data, j, phi))
        for j in naive.samples(data)
    ]
    half = 2 if variant == "sharp" else 1
    return num.largest(gaps), (b.L1 * b.rho[0] * b.k + b.L2 * b.k * b.k / half) / b.root_m


def _lemma_3_bound(setting: Setting, variant: str) -> Bound:
    table = constants.constants(setting, variant)
    sharp = constants.constants(setting, "sharp")
    trivial = (
        2 * setting.sigma.sigma0 * (setting.rho[0] + math.sqrt(setting.m)) + sharp.L1 * sharp.k
    )
    return Bound(table.B_lin, table.to_dict(), trivial)


lemma_3 = claims.add(
    Claim(
        id="arda2026/lemma-3",
        title="Linearisation error",
        kind=Kind.DETERMINISTIC,
        equations="Lemma 3, Eq. (18)",
        statement="For phi in Omega_rho, |f - f_lin| <= B_lin on every input.",
        latex=r"\sup_j|f-f_{\rm lin}|\le B_{\rm lin}=m^{-1/2}(L_1\rho_c k+L_2k^2)",
        sides=_lemma_3,
        naive=_lemma_3_naive,
        families=MODELS,
        targets=lambda: (tight_model(),),
        variants={
            "printed": Variant("L2 k^2, without the factor 1/2 of the proof", "E8"),
            "sharp": Variant("L2*/2 k^2 with L1*, L2*", "E8"),
        },
        default="printed",
        hypotheses=NEAR_START,
        bound=_lemma_3_bound,
        needs_event=True,
        errata=("E8",),
        references=("arda2026, App. A.4",),
    )
)


def _envelope(i: ModelInstance, variant: str) -> Sides:
    table = start_constants(i, variant)
    sigma = activation_named(i.activation)
    f_max = constants.output_envelope(sigma, table["L1"], i.rho)
    trivial = sigma.sigma0 * (math.sqrt(i.m) + i.rho[0])
    largest = jnp.max(jnp.abs(model.outputs(i, i.params)))
    return Sides(largest, f_max, {**table, "f_max": f_max}, trivial)


def _envelope_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    b = naive.bounds(num, data, variant)
    phi = naive.current(num, data)
    largest = num.largest(abs(naive.output(num, data, j, phi)) for j in naive.samples(data))
    return largest, b.L1 * b.k + b.s0 * b.rho[0]


def _envelope_bound(setting: Setting, variant: str) -> Bound:
    table = constants.constants(setting, variant)
    trivial = setting.sigma.sigma0 * (math.sqrt(setting.m) + setting.rho[0])
    return Bound(table.f_max, table.to_dict(), trivial)


lemma_6a = claims.add(
    Claim(
        id="arda2026/lemma-6a",
        title="Envelope of the output",
        kind=Kind.DETERMINISTIC,
        equations="Lemma 6",
        statement="For phi in Omega_rho, |f(X; phi)| <= f_max = L1 k + s0 rho_c on every input.",
        latex=r"\sup_X|f(X;\varphi)|\le f^{\max}=L_1k+\sigma_0\rho_c",
        sides=_envelope,
        naive=_envelope_naive,
        families=MODELS,
        targets=lambda: (tight_model(),),
        variants={
            "printed": Variant("with L1"),
            "sharp": Variant("with L1*"),
        },
        default="printed",
        hypotheses=NEAR_START,
        bound=_envelope_bound,
        needs_event=True,
        references=("arda2026, App. A.7",),
    )
)


def _two_sums(i: ModelInstance) -> tuple[Any, Any]:
    """(i) + (ii) of the proof of Lemma 6, and |f|, on the first sample."""
    X, q = i.X[0], i.q[0]
    now, start = (model.heads(p, X, q, i.activation) for p in (i.params, i.initial))
    pieces = jnp.abs(i.c0 * (now - start)) + jnp.abs((i.params.c - i.c0) * now)
    return jnp.sum(pieces) / math.sqrt(i.m), jnp.abs(model.output(i.params, X, q, i.activation))


def _display(i: ModelInstance, variant: str) -> Sides:
    sums, value = _two_sums(i)
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


lemma_6_display = claims.add(
    Claim(
        id="arda2026/lemma-6-display",
        title="The first display in the proof of Lemma 6",
        kind=Kind.DETERMINISTIC,
        equations="proof of Lemma 6",
        statement="|f| equals (printed) or is at most (corrected) the sum over heads of "
        "|c0 (h - h0)| and |dc h|, over sqrt(m). The sides are compared as sums <= |f| for the "
        "printed equality.",
        latex=r"|f(X;\varphi)|=\tfrac1{\sqrt m}\sum_i|c_i^{(0)}(h_i-h_i^{(0)})|"
        r"+\tfrac1{\sqrt m}\sum_i|\delta c_i\,h_i|",
        sides=_display,
        naive=_display_naive,
        families=MODELS[:1],
        targets=_cancelling,
        variants={
            "printed": Variant("equality", "E10", fails=True),
            "corrected": Variant("at most; there is no missing cross term", "E10"),
        },
        default="corrected",
        hypotheses=(PAIRED, FEASIBLE),
        errata=("E10",),
        references=("arda2026, App. A.7",),
    )
)
