"""Eqs. (10) and (32)-(39) of arda2026: the terms of the drift, on any point of the feasible set."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ...theory import Family, Hypothesis, Sides
from ...theory.families import into_ball, shaped
from ...theory.slow import Arithmetic, dot, flat, norm
from . import constants, naive, naive_constants
from . import quantities as model
from .declare import claim, identity, near_start, table_of
from .hypotheses import FEASIBLE, LABELS, NEAR_START, PAIRED, TRANSPORT
from .instances import MODELS, ModelInstance, TargetInstance, draw_targets, project_model
from .lemma_3 import tight_models
from .naive import Data

FORMS = {"printed": "as printed", "sharp": "with L1*, L2*"}
model_identity = functools.partial(identity, families=MODELS, where="App. A.7")


def _transported(i: ModelInstance, variant: str) -> Sides:
    """f_lin(phi~) by autodiff against (1/m) sum_i g_i from the features."""
    terms = model.features(i, i.U0, i.W0) * i.transport[None] / i.m
    g, size = jnp.sum(terms, axis=(1, 2)), jnp.max(jnp.sum(jnp.abs(terms), axis=(1, 2)))
    return Sides(model.linear_outputs(i, i.transported), g, scale=size)


def _transported_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    nu, start, moved = data["nu"], naive.initial(data), naive.transported(num, data)
    left, right = [], []
    for j in naive.samples(data):
        left.append(naive.linear(num, data, j, moved))
        total = num.number(0)
        for i, unit in enumerate(naive.heads(num, data, j, start)):
            total = total + nu[0] * unit.h * data["vc"][i]
            total = total + nu[1] * dot(unit.grad_U, data["vu"][i])
            total = total + nu[2] * dot(flat(unit.grad_W), flat(data["vw"][i]))
        right.append(total / len(start.c))
    return left, right


identity(
    "eq-10",
    "The linear model at the transported point",
    "Eqs. (10), (19)",
    "f_lin(X; phi~) is the mean over heads of phi_c v_c + <phi_u, v_u> + <phi_w, v_w>.",
    r"f_{\rm lin}(X;\tilde\varphi)=\tfrac1m\sum_i g_i(X)",
    sides=_transported,
    naive=_transported_naive,
    families=MODELS,
    hypotheses=(PAIRED,),
    where="Sec. 5.4, App. A.6",
)

near_start(
    "eq-32",
    "Distance to the transported point",
    "Eq. (32)",
    "Every head of phi is within (|nu| + |rho|)/sqrt(m) of phi~.",
    r"\|\tilde\varphi_i-\varphi_i\|_2\le(\|\nu\|_2+\|\rho\|_2)/\sqrt m",
    measured=lambda i: jnp.max(
        jnp.hypot(*model.per_head_norms(optax.tree.sub(i.transported, i.params)))
    ),
    naively=lambda num, data: num.largest(
        norm(num, row)
        for row in naive.difference(naive.transported(num, data), naive.current(num, data))
    ),
    constant="distance",
    forms="attained by opposite displacements",
    needs_event=False,
    hypotheses=(PAIRED, FEASIBLE, TRANSPORT),
)


def _feature_change(i: ModelInstance) -> Any:
    return optax.tree.sub(model.gradients(i, i.params), model.gradients(i, i.initial))


def _changes_naively(num: Arithmetic, data: Data) -> list[list[list[Any]]]:
    """Per sample and head the vector grad_i f(phi) - grad_i f(phi0)."""
    phi, start = naive.current(num, data), naive.initial(data)
    tables = []
    for j in naive.samples(data):
        after, before = (naive.gradients(num, data, j, p) for p in (phi, start))
        pairs = zip(after, before, strict=True)
        tables.append([[x - y for x, y in zip(*pair, strict=True)] for pair in pairs])
    return tables


def _split(i: ModelInstance, variant: str) -> Sides:
    """(33) and (34): c0 and dc times gradients of h; differences of h."""
    start, phi = i.initial, i.params
    before, after = (model.features(i, p.U, p.W) for p in (start, phi))
    gap = after - before
    old, shift = start.c[None, :, None], (phi.c - start.c)[None, :, None]
    theta = old * gap[..., 1:] + shift * after[..., 1:]
    right = jnp.concatenate([gap[..., :1], theta], axis=-1) / math.sqrt(i.m)
    size = (1 + jnp.max(jnp.abs(phi.c - start.c))) * jnp.max(jnp.abs(after)) / math.sqrt(i.m)
    return Sides(model.flat_blocks(_feature_change(i)), right, scale=size)


def _split_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    phi, start = naive.current(num, data), naive.initial(data)
    root = num.sqrt(num.number(len(phi.c)))
    right: list[Any] = []
    for j in naive.samples(data):
        now, then = (naive.heads(num, data, j, p) for p in (phi, start))
        for c, c0, new, old in zip(phi.c, start.c, now, then, strict=True):
            right.append((new.h - old.h) / root)
            pairs = zip(new.gradient, old.gradient, strict=True)
            right += [(c0 * (x - y) + (c - c0) * x) / root for x, y in pairs]
    return [x for table in _changes_naively(num, data) for x in flat(table)], right


model_identity(
    "eq-33",
    "Change of features, term by term",
    "Eqs. (33), (34)",
    "grad_theta f - grad_theta f0 is c0 (grad h - grad h0) + dc grad h over sqrt(m); "
    "grad_c f - grad_c f0 is (h - h0)/sqrt(m).",
    r"\nabla_{\theta_i}f-\nabla_{\theta_i}f^{(0)}=\tfrac{c_i^{(0)}}{\sqrt m}(\nabla h_i-\nabla "
    r"h_i^{(0)})+\tfrac{\delta c_i}{\sqrt m}\nabla h_i,\quad"
    r"\nabla_{c_i}f-\nabla_{c_i}f^{(0)}=\tfrac1{\sqrt m}(h_i-h_i^{(0)})",
    sides=_split,
    naive=_split_naive,
)


def _change_size(i: ModelInstance, block: str) -> Any:
    c, theta = model.per_head_norms(_feature_change(i))
    return jnp.max({"change_c": c, "change_theta": theta, "change": jnp.hypot(c, theta)}[block])


def _change_size_naively(num: Arithmetic, data: Data, block: str) -> Any:
    part = {"change_c": slice(1), "change_theta": slice(1, None), "change": slice(None)}[block]
    tables = _changes_naively(num, data)
    return num.largest(norm(num, row[part]) for rows in tables for row in rows)


def _known_change(at: Any, k: dict[str, Any], block: str) -> Any:
    """Both gradients of a head by their own bounds, without (35)-(37)."""
    L1, root = constants.lipschitz(at.sigma, k["B_U"], "sharp"), at.m**0.5
    on_c, on_theta = 2 * at.sigma.sigma0 / root, (2 + at.rho[0] / root) * L1 / root
    both = (on_c**2 + on_theta**2) ** 0.5
    return {"change_c": on_c, "change_theta": on_theta, "change": both}[block]


for _number, _constant, _words, _blocks, _size in (
    (35, "change_theta", "theta-block", r"\theta_i", r"(L_2k+\rho_cL_1)/m"),
    (36, "change_c", "c-block", "c_i", "L_1k/m"),
    (37, "change", "all blocks", r"\varphi_i", r"((L_1+L_2)k+\rho_cL_1)/m"),
):
    near_start(
        f"eq-{_number}",
        f"Change of features, {_words}",
        f"Eq. ({_number})",
        f"Per head and sample, the change of grad f from phi0 to phi ({_words}).",
        rf"\|\nabla_{{{_blocks}}}f-\nabla_{{{_blocks}}}f^{{(0)}}\|\le{_size}",
        measured=functools.partial(_change_size, block=_constant),
        naively=functools.partial(_change_size_naively, block=_constant),
        constant=_constant,
        trivial=functools.partial(_known_change, block=_constant),
        targets=tight_models,
        forms=FORMS,
        bound=None,
    )


def _cof(i: ModelInstance) -> Any:
    """e_CoF of every sample, Eq. (26)."""
    towards = model.flat_blocks(optax.tree.sub(i.transported, i.params))
    return jnp.einsum("nip,ip->n", model.flat_blocks(_feature_change(i)), towards)


def _cof_naively(num: Arithmetic, data: Data) -> list[Any]:
    towards = naive.difference(naive.transported(num, data), naive.current(num, data))
    return [dot(flat(table), flat(towards)) for table in _changes_naively(num, data)]


near_start(
    "eq-38",
    "Change-of-feature error",
    "Eqs. (26), (30), (31), (38)",
    "|<grad f(phi) - grad f(phi0), phi~ - phi>| <= B_CoF for phi in Omega_rho.",
    r"|\varepsilon^{\rm CoF}|\le B_{\rm CoF}=((L_1+L_2)k+\rho_cL_1)(\|\nu\|_2+\|\rho\|_2)/\sqrt m",
    measured=lambda i: jnp.max(jnp.abs(_cof(i))),
    naively=lambda num, data: num.largest(abs(error) for error in _cof_naively(num, data)),
    constant="B_CoF",
    trivial=lambda at, k: constants.known_change(at.sigma, k["B_U"], at.rho, at.nu, at.m),
    targets=tight_models,
    forms=FORMS,
    hypotheses=(*NEAR_START, TRANSPORT),
)


def _errors(i: ModelInstance) -> tuple[Any, Any, Any]:
    """e_app, e_lin and e_CoF of every sample."""
    e_app = model.linear_outputs(i, i.transported) - i.y
    return e_app, model.outputs(i, i.params) - model.linear_outputs(i, i.params), _cof(i)


def _descent(i: ModelInstance) -> Any:
    """<grad L(phi), phi~ - phi>, the left side of (25) and (39)."""
    towards = optax.tree.sub(i.transported, i.params)
    return jax.jvp(lambda phi: model.loss(i, phi), (i.params,), (towards,))[1]


def _decomposition(i: ModelInstance, variant: str) -> Sides:
    residual, errors = model.outputs(i, i.params) - i.y, _errors(i)
    right = -2 * jnp.mean(residual**2) + 2 * jnp.mean(residual * sum(errors))
    sizes = sum(jnp.abs(error) for error in errors)
    scale = jnp.mean(residual**2) + jnp.mean(jnp.abs(residual) * sizes)
    return Sides(_descent(i), right, scale=scale)


def _residuals_naively(num: Arithmetic, data: Data) -> tuple[list[Any], list[Any]]:
    """f_j - y_j, and the labels y_j."""
    b = naive.bounds(num, data, "printed")
    y_max = b.s0 * b.nu[0] + b.s1 * (b.nu[1] + b.nu[2])
    phi, y = naive.current(num, data), [label * y_max for label in data["labels"]]
    return [naive.output(num, data, j, phi) - y[j] for j in naive.samples(data)], y


def _descent_naively(num: Arithmetic, data: Data) -> Any:
    residuals, _ = _residuals_naively(num, data)
    phi = naive.current(num, data)
    towards = flat(naive.difference(naive.transported(num, data), phi))
    slopes = [
        2 * r * dot(flat(naive.gradients(num, data, j, phi)), towards)
        for j, r in enumerate(residuals)
    ]
    return num.total(slopes) / len(slopes)


def _decomposition_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    residuals, y = _residuals_naively(num, data)
    phi, moved, e_cof = (
        naive.current(num, data),
        naive.transported(num, data),
        _cof_naively(num, data),
    )
    terms = []
    for j, r in enumerate(residuals):
        e_app = naive.linear(num, data, j, moved) - y[j]
        e_lin = naive.output(num, data, j, phi) - naive.linear(num, data, j, phi)
        terms.append(2 * r * (e_app + e_lin + e_cof[j] - r))
    return [_descent_naively(num, data)], [num.total(terms) / len(terms)]


model_identity(
    "eq-39",
    "Decomposition of the descent direction",
    "Eqs. (25)-(27) and the first line of (39)",
    "<grad L, phi~ - phi> = -2 L + (2/n) sum_j (f_j - y_j)(e_app + e_lin + e_CoF)_j.",
    r"\langle\nabla\hat L,\tilde\varphi-\varphi\rangle=-2\hat L+\tfrac2n\sum_j"
    r"(f_j-y_j)(\varepsilon^{\rm app}_j+\varepsilon^{\rm lin}_j+\varepsilon^{\rm CoF}_j)",
    sides=_decomposition,
    naive=_decomposition_naive,
    forms="equality; no event is needed",
)


def _gap(i: ModelInstance) -> Any:
    return jnp.max(jnp.abs(model.linear_outputs(i, i.transported) - i.y))


def _gap_naively(num: Arithmetic, data: Data) -> Any:
    moved, (_, y) = naive.transported(num, data), _residuals_naively(num, data)
    return num.largest(abs(naive.linear(num, data, j, moved) - y[j]) for j in naive.samples(data))


APPROXIMATED = Hypothesis(
    "event E_app: e_app / B_app",
    lambda i: _gap(i) / constants.approximation(i.sigma, i.nu, i.n, i.m, i.delta),
    lambda num, data: (
        _gap_naively(num, data) / naive_constants.table(num, data, "printed")["B_app"]
    ),
)


def _project_short(i: TargetInstance) -> TargetInstance:
    """|U_i0| <= 1 keeps e_app <= 2 y_max* < B_app: every instance lies inside E_app."""
    inside: Any = project_model(i)
    return replace(inside, U0=into_ball(inside.U0), delta=jnp.clip(i.delta, 1e-9, 0.05))


def _targets() -> tuple[TargetInstance, ...]:
    return tuple(TargetInstance(**vars(i), delta=np.array(0.05)) for i in tight_models())


def _family(n: int, d: int, T: int, m: int, activation: str) -> Family:
    shape: dict[str, Any] = {"n": n, "d": d, "T": T, "m": m, "activation": activation}
    return shaped("target", draw_targets, _project_short, **shape)


def _closed(i: TargetInstance, variant: str) -> Sides:
    table = table_of(i, "printed")
    e_app = _gap(i) if variant == "measured" else table["B_app"]
    errors = e_app + table["B_lin"] + table["B_CoF"]
    loss = model.loss(i, i.params)
    rhs = 2 * (table["f_max"] + table["y_max"]) * errors
    known = constants.known_descent(i.sigma, i.B_U, i.rho, i.nu, i.m)
    return Sides(_descent(i) + 2 * loss, rhs, {**table, "loss": loss}, known)


def _closed_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    k = naive_constants.table(num, data, "printed")
    e_app = _gap_naively(num, data) if variant == "measured" else k["B_app"]
    residuals, _ = _residuals_naively(num, data)
    lhs = _descent_naively(num, data) + 2 * dot(residuals, residuals) / len(residuals)
    return lhs, 2 * (k["f_max"] + k["y_max"]) * (e_app + k["B_lin"] + k["B_CoF"])


claim(
    "eq-39-bound",
    "The descent direction with explicit constants",
    "the second line of (39)",
    "On E_U and E_app, <grad L, phi~ - phi> + 2 L <= 2 (f_max + y_max)(B_app + B_lin + B_CoF) for "
    "phi in Omega_rho and labels of a target in F_nu.",
    r"\langle\nabla\hat L,\tilde\varphi-\varphi\rangle\le-2\hat L+2(f^{\max}+y^{\max})"
    r"(B_{\rm app}+B_{\rm lin}+B_{\rm CoF})",
    sides=_closed,
    naive=_closed_naive,
    families=(_family(2, 2, 3, 2, "tanh"), _family(1, 1, 2, 4, "sin"), _family(3, 3, 4, 2, "erf")),
    targets=_targets,
    forms={
        "printed": "with B_app at the instance's delta, under the event that it holds",
        "measured": "with the realised e_app in place of B_app",
    },
    hypotheses=(*NEAR_START, TRANSPORT, LABELS, APPROXIMATED),
    needs_event=True,
    where="App. A.7",
)
