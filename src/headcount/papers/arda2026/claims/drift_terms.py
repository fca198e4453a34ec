"""Eqs. (10) and (32)-(39) of arda2026: the terms of the drift, on any point of the feasible set."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ....theory import Sides, given
from ....theory.slow import dot, flat, norm
from .. import quantities, twins
from ..constants import state
from ..records import Near, Target
from .lemma_3 import DISPLACED, SAMPLE, START, near_start, tight_model

TRANSPORTED = ("vc", "vu", "vw")
FORMS = {"printed": "as printed", "sharp": "with L1*, L2*"}
equality = functools.partial(state.identity, on=Near, asks=(), proved="App. A.7")


@equality(
    "eq-10",
    "The linear model at the transported point",
    where="Eqs. (10), (19)",
    proved="Sec. 5.4, App. A.6",
    asks=START,
    says=r"f_{\rm lin}(X;\tilde\varphi)=\tfrac1m\sum_i g_i(X)",
)
def eq_10(i):
    """f_lin(X; phi~) is the mean over heads of phi_c v_c + <phi_u, v_u> + <phi_w, v_w>."""
    terms = quantities.features(i, i.U0, i.W0) * i.transport[None] / i.m
    g, size = jnp.sum(terms, axis=(1, 2)), jnp.max(jnp.sum(jnp.abs(terms), axis=(1, 2)))
    return Sides(quantities.linear_outputs(i, i.transported), g, scale=size)


@near_start(
    "eq-32",
    "Distance to the transported point",
    where="Eq. (32)",
    asks=(*START, *DISPLACED, *TRANSPORTED),
    says=r"\|\tilde\varphi_i-\varphi_i\|_2\le(\|\nu\|_2+\|\rho\|_2)/\sqrt m",
    forms="attained by opposite displacements",
    right=lambda k: k.distance,
    no_rival="the sum of the two radii is what is known without it",
    needs_event=False,
    tight=(),
)
def eq_32(i):
    """Every head of phi is within (|nu| + |rho|)/sqrt(m) of phi~."""
    away = quantities.per_head_norms(optax.tree.sub(i.transported, i.params))
    return jnp.max(jnp.hypot(*away))


@eq_32.twin
def _(num, i):
    away = twins.difference(twins.transported(num, i), twins.current(num, i))
    return num.largest(norm(num, row) for row in away)


def feature_change(i):
    """grad f(phi) - grad f(phi0)."""
    return optax.tree.sub(quantities.gradients(i, i.params), quantities.gradients(i, i.initial))


def changes_slowly(num, i):
    """Per sample and head the vector grad_i f(phi) - grad_i f(phi0)."""
    phi, start = twins.current(num, i), twins.initial(i)
    tables = []
    for j in twins.samples(i):
        after, before = (twins.gradients(num, i, j, p) for p in (phi, start))
        pairs = zip(after, before, strict=True)
        tables.append([[x - y for x, y in zip(*pair, strict=True)] for pair in pairs])
    return tables


@equality(
    "eq-33",
    "Change of features, term by term",
    where="Eqs. (33), (34)",
    says=r"\nabla_{\theta_i}f-\nabla_{\theta_i}f^{(0)}=\tfrac{c_i^{(0)}}{\sqrt m}(\nabla h_i-"
    r"\nabla h_i^{(0)})+\tfrac{\delta c_i}{\sqrt m}\nabla h_i,\quad"
    r"\nabla_{c_i}f-\nabla_{c_i}f^{(0)}=\tfrac1{\sqrt m}(h_i-h_i^{(0)})",
)
def eq_33(i):
    """grad_theta f - grad_theta f0 is c0 (grad h - grad h0) + dc grad h over sqrt(m);
    grad_c f - grad_c f0 is (h - h0)/sqrt(m)."""
    start, phi = i.initial, i.params
    before, after = (quantities.features(i, p.U, p.W) for p in (start, phi))
    gap = after - before
    old, shift = start.c[None, :, None], (phi.c - start.c)[None, :, None]
    theta = old * gap[..., 1:] + shift * after[..., 1:]
    right = jnp.concatenate([gap[..., :1], theta], axis=-1) / math.sqrt(i.m)
    size = (1 + jnp.max(jnp.abs(phi.c - start.c))) * jnp.max(jnp.abs(after)) / math.sqrt(i.m)
    return Sides(quantities.flat_blocks(feature_change(i)), right, scale=size)


changes = functools.partial(near_start, forms=FORMS, bound=None)
BOTH_SHARP = "with L1*, L2*, and the root of the sum of both squares in place of the sum"


@changes(
    "eq-35",
    "Change of features, theta-block",
    where="Eq. (35)",
    says=r"\|\nabla_{\theta_i}f-\nabla_{\theta_i}f^{(0)}\|\le(L_2k+\rho_cL_1)/m",
    right=lambda k: k.change_theta,
    trivial=lambda k: k.any_change_theta,
)
def eq_35(i):
    """Per head and sample, the change of grad f from phi0 to phi (theta-block)."""
    return jnp.max(quantities.per_head_norms(feature_change(i))[1])


@eq_35.twin
def _(num, i):
    return largest_change(num, i, slice(1, None))


@changes(
    "eq-36",
    "Change of features, c-block",
    where="Eq. (36)",
    says=r"\|\nabla_{c_i}f-\nabla_{c_i}f^{(0)}\|\le L_1k/m",
    right=lambda k: k.change_c,
    trivial=lambda k: k.any_change_c,
)
def eq_36(i):
    """Per head and sample, the change of grad f from phi0 to phi (c-block)."""
    return jnp.max(quantities.per_head_norms(feature_change(i))[0])


@eq_36.twin
def _(num, i):
    return largest_change(num, i, slice(1))


@changes(
    "eq-37",
    "Change of features, all blocks",
    where="Eq. (37)",
    says=r"\|\nabla_{\varphi_i}f-\nabla_{\varphi_i}f^{(0)}\|\le((L_1+L_2)k+\rho_cL_1)/m",
    forms={"printed": "as printed", "sharp": BOTH_SHARP},
    right=lambda k: k.change,
    trivial=lambda k: k.any_change,
)
def eq_37(i):
    """Per head and sample, the change of grad f from phi0 to phi (all blocks)."""
    c, theta = quantities.per_head_norms(feature_change(i))
    return jnp.max(jnp.sqrt(c**2 + theta**2))  # jnp.hypot divides, which balls around 0 cannot


@eq_37.twin
def _(num, i):
    return largest_change(num, i, slice(None))


def largest_change(num, i, part):
    """Of any sample and head, in a part of its vector."""
    return num.largest(norm(num, row[part]) for rows in changes_slowly(num, i) for row in rows)


def feature_error(i):
    """e_CoF of every sample, Eq. (26)."""
    towards = quantities.flat_blocks(optax.tree.sub(i.transported, i.params))
    return jnp.einsum("nip,ip->n", quantities.flat_blocks(feature_change(i)), towards)


@near_start(
    "eq-38",
    "Change-of-feature error",
    where="Eqs. (26), (30), (31), (38)",
    asks=(*SAMPLE, *START, *DISPLACED, *TRANSPORTED),
    says=r"|\varepsilon^{\rm CoF}|\le B_{\rm CoF}=((L_1+L_2)k+\rho_cL_1)"
    r"(\|\nu\|_2+\|\rho\|_2)/\sqrt m",
    forms=FORMS,
    right=lambda k: k.B_CoF,
    trivial=lambda k: k.any_feature_error,
)
def eq_38(i):
    """|<grad f(phi) - grad f(phi0), phi~ - phi>| <= B_CoF for phi in Omega_rho."""
    return jnp.max(jnp.abs(feature_error(i)))


@eq_38.twin
def _(num, i):
    towards = flat(twins.difference(twins.transported(num, i), twins.current(num, i)))
    return num.largest(abs(dot(flat(table), towards)) for table in changes_slowly(num, i))


def descent(i):
    """<grad L(phi), phi~ - phi>, the left side of (25) and (39)."""
    towards = optax.tree.sub(i.transported, i.params)
    return jax.jvp(lambda phi: quantities.loss(i, phi), (i.params,), (towards,))[1]


@equality(
    "eq-39",
    "Decomposition of the descent direction",
    where="Eqs. (25)-(27) and the first line of (39)",
    says=r"\langle\nabla\hat L,\tilde\varphi-\varphi\rangle=-2\hat L+\tfrac2n\sum_j"
    r"(f_j-y_j)(\varepsilon^{\rm app}_j+\varepsilon^{\rm lin}_j+\varepsilon^{\rm CoF}_j)",
    forms="equality; no event is needed",
)
def eq_39(i):
    """<grad L, phi~ - phi> = -2 L + (2/n) sum_j (f_j - y_j)(e_app + e_lin + e_CoF)_j."""
    f = quantities.outputs(i, i.params)
    e_app = quantities.linear_outputs(i, i.transported) - i.y
    errors = e_app, f - quantities.linear_outputs(i, i.params), feature_error(i)
    residual, sizes = f - i.y, sum(jnp.abs(error) for error in errors)
    right = -2 * jnp.mean(residual**2) + 2 * jnp.mean(residual * sum(errors))
    scale = jnp.mean(residual**2) + jnp.mean(jnp.abs(residual) * sizes)
    return Sides(descent(i), right, scale=scale)


def gap(i):
    """max_j |f_lin(X_j; phi~) - y_j|."""
    return jnp.max(jnp.abs(quantities.linear_outputs(i, i.transported) - i.y))


def targets():
    """The tightest model, with delta."""
    return (tight_model(kind=Target, delta=np.array(0.05)),)


@near_start(
    "eq-39-bound",
    "The descent direction with explicit constants",
    where="the second line of (39)",
    on=Target,
    asks=(*SAMPLE, *START, *DISPLACED, *TRANSPORTED, "labels"),
    says=r"\langle\nabla\hat L,\tilde\varphi-\varphi\rangle\le-2\hat L+2(f^{\max}+y^{\max})"
    r"(B_{\rm app}+B_{\rm lin}+B_{\rm CoF})",
    forms={
        "printed": "with B_app at the instance's delta, under the event that it holds",
        "measured": "with the realised e_app in place of B_app",
    },
    given=(given("event E_app: e_app / B_app", lambda i, k: gap(i) / k.B_app, 1.0),),
    tight=targets,
)
def eq_39_bound(i, k, form):
    """On E_U and E_app, <grad L, phi~ - phi> + 2 L <= 2 (f_max + y_max)(B_app + B_lin + B_CoF) for
    phi in Omega_rho and labels of a target in F_nu."""
    errors = (gap(i) if form == "measured" else k.B_app) + k.B_lin + k.B_CoF
    lhs = descent(i) + 2 * quantities.loss(i, i.params)
    return Sides(lhs, 2 * (k.f_max + k.y_max) * errors, trivial=k.known_descent)


@eq_39_bound.twin
def _(num, i, k, form):
    phi, moved, y = twins.current(num, i), twins.transported(num, i), twins.labels(num, i)
    towards = flat(twins.difference(moved, phi))
    terms, gaps = [], []
    for j in twins.samples(i):
        r = twins.output(num, i, j, phi) - y[j]
        terms.append(2 * r * dot(flat(twins.gradients(num, i, j, phi)), towards) + 2 * r * r)
        gaps.append(abs(twins.linear(num, i, j, moved) - y[j]))
    e_app = num.largest(gaps) if form == "measured" else k.B_app
    return num.total(terms) / len(terms), 2 * (k.f_max + k.y_max) * (e_app + k.B_lin + k.B_CoF)
