"""Eqs. (10) and (32)-(39) of arda2026: the terms of the drift, on any point of the feasible set."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from ...core import activation_named, head_features
from ...theory import Bound, Claim, Kind, Sides, Variant, claims
from ...theory.slow import Arithmetic, dot, norm
from . import constants, model, naive
from .hypotheses import FEASIBLE, NEAR_START, PAIRED, TRANSPORT
from .instances import MODELS, ModelInstance
from .lemma_3 import start_constants, tight_model
from .naive import Data
from .setting import Setting

REFERENCE = ("arda2026, App. A.7",)
TIERS = {"printed": Variant("as printed"), "sharp": Variant("with L1*, L2*")}


def _bound(name: str) -> Any:
    def bound(setting: Setting, variant: str) -> Bound:
        table = constants.constants(setting, variant).to_dict()
        return Bound(table[name], table)

    return bound


def _transported_linear(i: ModelInstance, variant: str) -> Sides:
    """f_lin(phi~) by autodiff against (1/m) sum_i g_i from the features."""
    sigma = activation_named(i.activation)

    def g(X: Any, q: Any, U: Any, W: Any, vc: Any, vu: Any, vw: Any) -> Any:
        part = head_features(X, q, U, W, sigma)
        inner_w = part.w_left @ (vw @ q)
        return i.nu[0] * part.phi_c * vc + i.nu[1] * part.phi_u @ vu + i.nu[2] * inner_w

    per_head = jax.vmap(g, in_axes=(None, None, 0, 0, 0, 0, 0))
    per_sample = jax.vmap(lambda X, q: jnp.mean(per_head(X, q, i.U0, i.W0, i.vc, i.vu, i.vw)))
    return Sides(model.linear_outputs(i, i.transported), per_sample(i.X, i.q), scale=i.y_max_sharp)


def _transported_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    nu, start, moved = data["nu"], naive.initial(data), naive.transported(num, data)
    left, right = [], []
    for j in naive.samples(data):
        left.append(naive.linear(num, data, j, moved))
        units, q = naive.heads(num, data, j, start), data["q"][j]
        total = num.number(0)
        for i, unit in enumerate(units):
            w = [dot(row, q) for row in data["vw"][i]]
            MU = [dot(row, start.U[i]) for row in unit.M]
            total = total + nu[0] * unit.h * data["vc"][i]
            total = total + nu[1] * unit.slope * dot(unit.a, data["vu"][i])
            total = total + nu[2] * unit.slope * dot(MU, w)
        right.append(total / len(units))
    return left, right


eq_10 = claims.add(
    Claim(
        id="arda2026/eq-10",
        title="The linear model at the transported point",
        kind=Kind.IDENTITY,
        equations="Eqs. (10), (19)",
        statement="f_lin(X; phi~) is the mean over heads of phi_c v_c + <phi_u, v_u> + "
        "<phi_w, v_w>.",
        latex=r"f_{\rm lin}(X;\tilde\varphi)=\tfrac1m\sum_i g_i(X)",
        sides=_transported_linear,
        naive=_transported_naive,
        families=MODELS,
        variants={"printed": Variant("equality")},
        default="printed",
        hypotheses=(PAIRED,),
        references=("arda2026, Sec. 5.4, App. A.6",),
    )
)


def _distance(i: ModelInstance, variant: str) -> Sides:
    gap = model.difference(i.transported, i.params)
    c, theta = model.per_head_norms(gap)
    bound = (constants.length(i.nu) + constants.length(i.rho)) / math.sqrt(i.m)
    return Sides(jnp.max(jnp.sqrt(c**2 + theta**2)), bound)


def _distance_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    rows = naive.difference(naive.transported(num, data), naive.current(num, data))
    b = naive.bounds(num, data, "printed")
    furthest = num.largest(norm(num, row) for row in rows)
    return furthest, (norm(num, b.nu) + norm(num, b.rho)) / b.root_m


def _distance_bound(setting: Setting, variant: str) -> Bound:
    nu, rho = constants.length(setting.nu), constants.length(setting.rho)
    return Bound((nu + rho) / math.sqrt(setting.m), {"nu_norm": nu, "rho_norm": rho})


eq_32 = claims.add(
    Claim(
        id="arda2026/eq-32",
        title="Distance to the transported point",
        kind=Kind.DETERMINISTIC,
        equations="Eq. (32)",
        statement="Every head of phi is within (|nu| + |rho|)/sqrt(m) of phi~.",
        latex=r"\|\tilde\varphi_i-\varphi_i\|_2\le(\|\nu\|_2+\|\rho\|_2)/\sqrt m",
        sides=_distance,
        naive=_distance_naive,
        families=MODELS[:1],
        variants={"printed": Variant("attained by opposite displacements")},
        default="printed",
        hypotheses=(PAIRED, FEASIBLE, TRANSPORT),
        bound=_distance_bound,
        references=REFERENCE,
    )
)


def _feature_change(i: ModelInstance) -> Any:
    return model.difference(model.gradients(i, i.params), model.gradients(i, i.initial))


def _change(i: ModelInstance, variant: str, block: str) -> Sides:
    table = start_constants(i, variant)
    c, theta = model.per_head_norms(_feature_change(i))
    on_c = table["L1"] * table["k"] / i.m
    on_theta = (table["L2"] * table["k"] + i.rho[0] * table["L1"]) / i.m
    if block == "theta":
        return Sides(jnp.max(theta), on_theta, table)
    if block == "c":
        return Sides(jnp.max(c), on_c, table)
    both = jnp.sqrt(on_c**2 + on_theta**2) if variant == "sharp" else on_c + on_theta
    return Sides(jnp.max(jnp.sqrt(c**2 + theta**2)), both, table)


def _change_naive(num: Arithmetic, data: Data, variant: str, block: str) -> tuple[Any, Any]:
    b = naive.bounds(num, data, variant)
    m = len(data["c0"])
    phi, start = naive.current(num, data), naive.initial(data)
    largest = num.number(0)
    for j in naive.samples(data):
        after, before = (naive.gradients(num, data, j, p) for p in (phi, start))
        for new, old in zip(after, before, strict=True):
            gap = [x - y for x, y in zip(new, old, strict=True)]
            part = {"c": gap[:1], "theta": gap[1:], "both": gap}[block]
            largest = num.largest([largest, norm(num, part)])
    on_c, on_theta = b.L1 * b.k / m, (b.L2 * b.k + b.rho[0] * b.L1) / m
    if block == "both":
        return largest, norm(num, [on_c, on_theta]) if variant == "sharp" else on_c + on_theta
    return largest, on_c if block == "c" else on_theta


def _change_claim(number: int, block: str, words: str, latex: str) -> Claim:
    return claims.add(
        Claim(
            id=f"arda2026/eq-{number}",
            title=f"Change of features, {words}",
            kind=Kind.DETERMINISTIC,
            equations=f"Eq. ({number})",
            statement=f"Per head and sample, the change of grad f from phi0 to phi ({words}).",
            latex=latex,
            sides=lambda i, variant: _change(i, variant, block),
            naive=lambda num, data, variant: _change_naive(num, data, variant, block),
            families=MODELS[:1],
            targets=lambda: (tight_model(),),
            variants=TIERS,
            default="printed",
            hypotheses=NEAR_START,
            needs_event=True,
            references=REFERENCE,
        )
    )


eq_35 = _change_claim(
    35,
    "theta",
    "theta-block",
    r"\|\nabla_{\theta_i}f-\nabla_{\theta_i}f^{(0)}\|\le(L_2k+\rho_cL_1)/m",
)
eq_36 = _change_claim(36, "c", "c-block", r"\|\nabla_{c_i}f-\nabla_{c_i}f^{(0)}\|\le L_1k/m")
eq_37 = _change_claim(
    37,
    "both",
    "all blocks",
    r"\|\nabla_{\varphi_i}f-\nabla_{\varphi_i}f^{(0)}\|\le((L_1+L_2)k+\rho_cL_1)/m",
)


def _inner(g: Any, direction: Any) -> Any:
    """<g_j, direction> per sample."""
    return (
        jnp.einsum("ni,i->n", g.c, direction.c)
        + jnp.einsum("nik,ik->n", g.U, direction.U)
        + jnp.einsum("nikl,ikl->n", g.W, direction.W)
    )


def _cof(i: ModelInstance, variant: str) -> Sides:
    table = start_constants(i, variant)
    B_CoF = constants.change_of_features(table["L1"], table["L2"], i.rho, i.nu, i.m)
    errors = _inner(_feature_change(i), model.difference(i.transported, i.params))
    return Sides(jnp.max(jnp.abs(errors)), B_CoF, {**table, "B_CoF": B_CoF})


def _cof_errors_naive(num: Arithmetic, data: Data) -> list[Any]:
    phi, start = naive.current(num, data), naive.initial(data)
    towards = naive.difference(naive.transported(num, data), phi)
    errors = []
    for j in naive.samples(data):
        after, before = (naive.gradients(num, data, j, p) for p in (phi, start))
        errors.append(
            num.total(
                [
                    dot([x - y for x, y in zip(new, old, strict=True)], step)
                    for new, old, step in zip(after, before, towards, strict=True)
                ]
            )
        )
    return errors


def _cof_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    b = naive.bounds(num, data, variant)
    per_head = (b.L1 + b.L2) * b.k + b.rho[0] * b.L1
    bound = per_head * (norm(num, b.nu) + norm(num, b.rho)) / b.root_m
    return num.largest(abs(error) for error in _cof_errors_naive(num, data)), bound


eq_38 = claims.add(
    Claim(
        id="arda2026/eq-38",
        title="Change-of-feature error",
        kind=Kind.DETERMINISTIC,
        equations="Eqs. (26), (30), (31), (38)",
        statement="|<grad f(phi) - grad f(phi0), phi~ - phi>| <= B_CoF for phi in Omega_rho.",
        latex=r"|\varepsilon^{\rm CoF}|\le B_{\rm CoF}=((L_1+L_2)k+\rho_cL_1)"
        r"(\|\nu\|_2+\|\rho\|_2)/\sqrt m",
        sides=_cof,
        naive=_cof_naive,
        families=MODELS,
        targets=lambda: (tight_model(),),
        variants=TIERS,
        default="printed",
        hypotheses=(*NEAR_START, TRANSPORT),
        bound=_bound("B_CoF"),
        needs_event=True,
        references=REFERENCE,
    )
)


def _decomposition(i: ModelInstance, variant: str) -> Sides:
    """(25) against -2 L + (2/n) sum (f - y)(e_app + e_lin + e_CoF), the first line of (39)."""
    f, towards = model.outputs(i, i.params), model.difference(i.transported, i.params)

    def loss(phi: Any) -> Any:
        return jnp.mean((model.outputs(i, phi) - i.y) ** 2)

    slope = jax.jvp(loss, (i.params,), (towards,))[1]
    e_app = model.linear_outputs(i, i.transported) - i.y
    e_lin = f - model.linear_outputs(i, i.params)
    e_cof = _inner(_feature_change(i), towards)
    residual = f - i.y
    right = -2 * jnp.mean(residual**2) + 2 * jnp.mean(residual * (e_app + e_lin + e_cof))
    scale = jnp.mean(residual**2) + jnp.mean(
        jnp.abs(residual) * (jnp.abs(e_app) + jnp.abs(e_lin) + jnp.abs(e_cof))
    )
    return Sides(slope, right, scale=scale)


def _decomposition_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    phi, moved = naive.current(num, data), naive.transported(num, data)
    towards = naive.difference(moved, phi)
    b = naive.bounds(num, data, "printed")
    y_max = b.s0 * b.nu[0] + b.s1 * (b.nu[1] + b.nu[2])
    e_cof = _cof_errors_naive(num, data)
    left, right = num.number(0), num.number(0)
    for j in naive.samples(data):
        y = data["labels"][j] * y_max
        r = naive.output(num, data, j, phi) - y
        rows = naive.gradients(num, data, j, phi)
        along = num.total([dot(g, step) for g, step in zip(rows, towards, strict=True)])
        left = left + 2 * r * along
        errors = (naive.linear(num, data, j, moved) - y) + e_cof[j]
        errors = errors + naive.output(num, data, j, phi) - naive.linear(num, data, j, phi)
        right = right - 2 * r * r + 2 * r * errors
    n = len(e_cof)
    return [left / n], [right / n]


eq_39 = claims.add(
    Claim(
        id="arda2026/eq-39",
        title="Decomposition of the descent direction",
        kind=Kind.IDENTITY,
        equations="Eqs. (25)-(27) and the first line of (39)",
        statement="<grad L, phi~ - phi> = -2 L + (2/n) sum_j (f_j - y_j)(e_app + e_lin + e_CoF)_j.",
        latex=r"\langle\nabla\hat L,\tilde\varphi-\varphi\rangle=-2\hat L+\tfrac2n\sum_j"
        r"(f_j-y_j)(\varepsilon^{\rm app}_j+\varepsilon^{\rm lin}_j+\varepsilon^{\rm CoF}_j)",
        sides=_decomposition,
        naive=_decomposition_naive,
        families=MODELS,
        variants={"printed": Variant("equality; no event is needed")},
        default="printed",
        references=REFERENCE,
    )
)
