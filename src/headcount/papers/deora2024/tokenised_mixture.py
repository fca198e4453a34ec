"""DM1 in deora2024: bounds on tokens and scores, linear and tangent margins [Sec. 5, App. D, F]."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...theory import Sides
from ...theory.families import safe_norm
from ...theory.slow import Arithmetic, dot, norm
from . import mixture_constants
from .declare import claim, false, identity
from .mixture import MIXTURES, SURE_MIXTURES, MixtureInstance, NaiveMixture, quiet, surely
from .model import MultiHeadAttention
from .naive import Data

on_mixtures = functools.partial(claim, families=MIXTURES, where="Sec. 5, App. D")


def _targets() -> tuple[MixtureInstance, ...]:
    still = quiet()
    pushed = replace(still, Z_mu=np.asarray(0.25), on_mu=np.tile([-1.0, 1.0], (3, 1)))
    return still, pushed


def _assumption_1(i: MixtureInstance, variant: str) -> Sides:
    return Sides(jnp.max(safe_norm(i.X)), i.R)


def _assumption_1_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m = NaiveMixture(num, data)
    return num.largest([norm(num, x) for x in m.X]), m.R


on_mixtures(
    "assumption-1",
    "Token norms of DM1",
    "Assumption 1 for DM1",
    "No token is longer than R = sqrt(S^2 + Z^2 + 2 Z_nu/M), taken to be at least 1.",
    r"\|x_t\|\le R=\sqrt{S^2+Z^2+2Z_\nu/M}",
    sides=_assumption_1,
    naive=_assumption_1_naive,
    forms="as printed",
)

_NOISE_SD = 0.1


def _assumption_3(i: MixtureInstance, variant: str) -> Sides:
    if variant == "printed":
        scale = _NOISE_SD * i.S * 2**0.5
        return Sides(jax.scipy.special.erfc(i.Z_mu / scale), jnp.zeros(()))
    z, S = i.noise, i.S
    lhs = [S * jnp.max(jnp.abs(z[:, :2])), i.M * S * jnp.max(jnp.abs(z[:, 2:]))]
    return Sides(jnp.stack([*lhs, jnp.max(safe_norm(z))]), jnp.stack([i.Z_mu, i.Z_nu, i.Z]))


def _assumption_3_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m = NaiveMixture(num, data)
    if variant == "printed":
        scale = m.S * num.sqrt(num.number(2)) / 10
        return num.erfc(m.Z_mu / scale), num.number(0)
    on_mu = num.largest([abs(e) for row in m.on_mu for e in row])
    on_nu = num.largest([abs(e) for row in m.on_nu for e in row])
    longest = num.largest([norm(num, z) for z in m.noise])
    return [on_mu, m.M * on_nu, longest], [m.Z_mu, m.Z_nu, m.Z]


on_mixtures(
    "assumption-3",
    "Noise with sure bounds",
    "Assumption 3 and App. G",
    "|<z, mu_+->| <= Z_mu, |<z, nu_l>| <= Z_nu/M and |z| <= Z surely. As printed for the "
    "experiments: the probability that N(0, 0.1^2 I) exceeds Z_mu is zero.",
    r"|\langle z,\mu_\pm\rangle|\le Z_\mu,\ |\langle z,\nu_\ell\rangle|\le Z_\nu/M,\ \|z\|\le Z",
    sides=_assumption_3,
    naive=_assumption_3_naive,
    families=SURE_MIXTURES,
    targets=lambda: tuple(map(surely, _targets())),
    forms={
        "printed": false("Gaussian noise of the experiments: no bound holds surely", "E33"),
        "corrected": ("bounded noise", "E33"),
    },
)


def _scores(i: MixtureInstance, variant: str) -> Sides:
    r = i.X @ i.W_star @ i.X.T
    A, B = mixture_constants.scores(i.S, i.Z_mu, i.Z_nu)
    return Sides(jnp.stack([A, jnp.max(r[:, i.L :])]), jnp.stack([jnp.min(r[:, : i.L]), B]))


def _scores_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m = NaiveMixture(num, data)
    r, S2 = m.scores(), m.S * m.S
    A = S2 * S2 - S2 * m.Z_mu - S2 * m.Z_nu
    B = 2 * m.Z_mu * (m.Z_mu + m.Z_nu + S2)
    inside = num.smallest([e for row in r for e in row[: m.L]])
    outside = num.largest([e for row in r for e in row[m.L :]])
    return [A, outside], [inside, B]


on_mixtures(
    "eq-129",
    "Relevance scores under W_*",
    "Eqs. (8), (109), (128), (129)",
    "Scores of relevant tokens are at least A = S^4 - S^2 (Z_mu + Z_nu), those of others at most "
    "B = 2 (Z_mu^2 + Z_mu Z_nu + S^2 Z_mu).",
    r"[r_t]_{t'}\ge S^4-S^2(Z_\mu+Z_\nu)\ (t'\in\mathcal R),\quad"
    r"[r_t]_{t'}\le2(Z_\mu^2+Z_\mu Z_\nu+S^2Z_\mu)\ (t'\notin\mathcal R)",
    sides=_scores,
    naive=_scores_naive,
    targets=_targets,
    forms={"printed": ("as in (129)", "E25")},
)


def _score_formulas(i: MixtureInstance) -> Any:
    """(108), (110) and (111) entry by entry."""
    S, y, z = i.S, i.y, i.noise
    plus, minus = S * z[:, 0], S * z[:, 1]
    own = jnp.where(y > 0, plus, minus)
    others = S * jnp.sum(z[:, 2:], axis=1)
    signal = jnp.concatenate([jnp.full(i.L, S**4), S**2 * own])
    left = (S**4 + S**2 * (own + others))[:, None] * jnp.ones((1, i.L))
    right = jnp.outer(plus, plus) + jnp.outer(minus, minus)
    right = right + jnp.outer(others, plus + minus) + S**2 * (plus + minus)[None]
    noisy = jnp.concatenate([left, right], axis=1)
    along_u = jnp.concatenate([jnp.full(i.L, S**2) * y, plus - minus])
    return jnp.concatenate([jnp.broadcast_to(signal, (i.L, i.T)).ravel(), noisy.ravel(), along_u])


def _score_identity(i: MixtureInstance, variant: str) -> Sides:
    lhs = jnp.concatenate([(i.X @ i.W_star @ i.X.T).ravel(), i.X @ i.u_star])
    return Sides(lhs, _score_formulas(i))


def _score_identity_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m = NaiveMixture(num, data)
    S2, zero = m.S * m.S, num.number(0)
    W = [[zero for _ in range(m.d)] for _ in range(m.d)]
    W[0][0] = W[1][1] = S2
    for k in range(2, m.d):
        W[k][0] = W[k][1] = S2
    direct = [
        dot([dot(x, [W[k][l] for k in range(m.d)]) for l in range(m.d)], q)
        for x in m.X
        for q in m.X
    ]
    lhs = direct + [dot(x, m.u_star) for x in m.X]
    return lhs, [e for row in m.scores() for e in row] + [m.S * (x[0] - x[1]) for x in m.X]


identity(
    "eq-110",
    "Relevance scores written out",
    "Eqs. (108), (110), (111)",
    "X W_* X^T and X u_* from the noise's inner products with the patterns.",
    r"[r_t]_{t'}=S^4+S^2\mu_y^\top z_t+S^2\sum_\ell\nu_\ell^\top z_t\ (t\notin"
    r"\mathcal R,t'\in\mathcal R)",
    sides=_score_identity,
    naive=_score_identity_naive,
    families=MIXTURES,
    where="App. D.2.3",
)


def _linear(i: MixtureInstance, variant: str) -> Sides:
    margin = i.y * jnp.sum(i.X @ i.u_star) / (i.S * (2 * i.T) ** 0.5)
    return Sides(mixture_constants.gamma_lin(i.S, i.T, i.zeta, i.Z_mu), margin)


def _linear_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m = NaiveMixture(num, data)
    total = num.total([dot(x, m.u_star) for x in m.X])
    root = num.sqrt(num.number(2 * m.T))
    bound = (m.L * m.S * m.S - 2 * (m.T - m.L) * m.Z_mu) / (m.S * root)
    return bound, m.y * total / (m.S * root)


on_mixtures(
    "eq-132",
    "Margin of the linear model",
    "Eqs. (106), (132)",
    "y <U_*/|U_*|, X> >= gamma_lin = S sqrt(T/2) (zeta - 2 (1 - zeta) Z_mu/S^2); the U part of the "
    "tangent margin at the two-phase start is the same number.",
    r"y\,\Phi_{\mathrm{lin}}(X;\bar U_*)\ge S\sqrt{T/2}\,(\zeta-2(1-\zeta)Z_\mu/S^2)",
    sides=_linear,
    naive=_linear_naive,
    targets=_targets,
    forms="attained by noise at its bounds",
    where="App. D.2.3, F",
)


def tangent_margin(i: MixtureInstance) -> tuple[Any, Any]:
    """(U part, W part) of m(X, y) = y <grad Phi(X; theta^(1)), theta_*>, by autodiff, alpha = 1."""
    model = MultiHeadAttention(i.T, i.M + 2, 1)
    row = i.zeta / 4 * i.u_star + i.p
    start = jnp.broadcast_to(row, (i.T, i.M + 2)), jnp.zeros_like(i.W_star)
    g_U, g_W = jax.grad(model.head, argnums=(0, 1))(*start, i.X)
    U_bar = jnp.broadcast_to(i.u_star, (i.T, i.M + 2)) / (i.S * (2 * i.T) ** 0.5)
    W_bar = i.W_star / (i.S**2 * (2 * (i.M + 1)) ** 0.5)
    return i.y * jnp.vdot(g_U, U_bar), i.y * jnp.vdot(g_W, W_bar)


def naive_tangent_margin(num: Arithmetic, m: NaiveMixture) -> tuple[Any, Any]:
    """m(X, y) in closed form: y <u_*, sum x>/(S sqrt(2T)) and y 1^T r Cov-weighted."""
    row = [m.zeta / 4 * u + p for u, p in zip(m.u_star, m.p, strict=True)]
    total = num.total([dot(x, m.u_star) for x in m.X])
    along = [dot(x, row) for x in m.X]
    centred = [(a - num.total(along) / m.T) / m.T for a in along]
    pulled = num.total([dot(r, centred) for r in m.scores()])
    size = m.S * m.S * num.sqrt(num.number(2 * (m.M + 1)))
    return m.y * total / (m.S * num.sqrt(num.number(2 * m.T))), m.y * pulled / size


def _two_terms(i: MixtureInstance, variant: str) -> Sides:
    centring = jnp.eye(i.T) / i.T - 1 / i.T**2
    r = i.X @ i.W_star @ i.X.T
    first = i.zeta / 4 * i.y * jnp.sum(r @ centring @ i.X @ i.u_star)
    pulled = jnp.outer(jnp.sum(i.X, axis=0), i.p @ i.X.T @ centring @ i.X)
    second = i.y * jnp.vdot(pulled, i.W_star)
    return Sides(tangent_margin(i)[1], (first + second) / safe_norm(i.W_star.ravel()))


def _two_terms_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m = NaiveMixture(num, data)
    scores = [num.total(column) for column in zip(*m.scores(), strict=True)]
    size = m.S * m.S * num.sqrt(num.number(2 * (m.M + 1)))
    terms = []
    for row in ([m.zeta / 4 * u for u in m.u_star], m.p):
        along = [dot(x, row) for x in m.X]
        terms.append(dot(scores, [(a - num.total(along) / m.T) / m.T for a in along]))
    return naive_tangent_margin(num, m)[1], m.y * (terms[0] + terms[1]) / size


identity(
    "eq-107",
    "The W part of the tangent margin, in two terms",
    "Eq. (107)",
    "y <grad_W Phi(X; theta^(1)), W_*/|W_*|> is a term of u_* and one of p, with R_0 = I/T - "
    "11^T/T^2; the centre of the first phase is (zeta/4) u_*, not the printed (zeta/2) u_*.",
    r"\tfrac1{\|W_*\|}\bigl(\tfrac\zeta4y\sum_tu_*^\top X^\top R_0r_t"
    r"+y\langle\sum_tx_tp^\top X^\top R_0X,W_*\rangle\bigr)",
    sides=_two_terms,
    naive=_two_terms_naive,
    families=MIXTURES,
    where="App. D.2.3",
    errata=("E1",),
)


def gamma_star_of(i: MixtureInstance, tier: str) -> Any:
    """gamma_* of (7) with P = |p|; tier sharp: what p costs at most is P T R^3."""
    cost = mixture_constants.p_term(i.P, i.R, i.S, i.Z, i.T, tier)
    return mixture_constants.gamma_star(i.S, i.T, i.M, i.zeta, i.Z_mu, i.Z_nu, cost)


def naive_gamma_star(num: Arithmetic, m: NaiveMixture, tier: str) -> Any:
    """The same in slow arithmetic."""
    Zbar, S2 = num.largest([m.Z_mu, m.Z_nu]), m.S * m.S
    bracket = m.zeta * S2 * S2 - 7 * Zbar * S2 - 12 * Zbar**2 - 16 * Zbar**3 / S2
    first = m.T * (1 - m.zeta) * m.zeta / (4 * num.sqrt(num.number(2 * (m.M + 1)))) * bracket
    T = num.number(m.T)
    cost = m.P * T * m.R**3 if tier == "sharp" else m.P * T**2 * num.sqrt(T) * (m.S + m.Z) ** 3
    linear = (m.L * S2 - 2 * (m.T - m.L) * m.Z_mu) / (m.S * num.sqrt(2 * T))
    return first - cost + linear


def _gamma_star(i: MixtureInstance, variant: str) -> Sides:
    on_U, on_W = tangent_margin(i)
    margin = on_U + (on_W / 2 if variant == "uniform" else on_W)
    return Sides(gamma_star_of(i, variant), margin, {"U part": on_U, "W part": on_W, "P": i.P})


def _gamma_star_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m = NaiveMixture(num, data)
    on_U, on_W = naive_tangent_margin(num, m)
    return naive_gamma_star(num, m, variant), on_U + (on_W / 2 if variant == "uniform" else on_W)


on_mixtures(
    "eq-119",
    "Tangent margin of the two-phase start",
    "Eqs. (7), (119), Lemma 13, Proposition 2 (P3)",
    "For every sample of DM1, y <grad Phi(X; theta^(1)), theta_*> >= gamma_*, with the row "
    "(zeta/4) u_* + p, |p| <= P.",
    r"\gamma_*=\frac{T(1-\zeta)\zeta}{4\sqrt{2(M+1)}}\bigl(\zeta S^4-7\bar ZS^2-12\bar Z^2"
    r"-16\bar Z^3/S^2\bigr)-PT^{5/2}(S+Z)^3+\gamma_{\mathrm{lin}}",
    sides=_gamma_star,
    naive=_gamma_star_naive,
    targets=_targets,
    forms={
        "uniform": false("alpha uniform on [-1, 1], the other reading of Unif(+-1)", "E3"),
        "printed": ("alpha = +-1 and the centre zeta/4; attained without noise", "E3"),
        "sharp": ("p costs at most P T R^3", "E17"),
    },
    errata=("E1", "E17", "E18", "E19"),
)


def _every_head(i: MixtureInstance, variant: str) -> Sides:
    on_U, on_W = tangent_margin(i)
    dev = 0.0
    if variant == "printed":
        slope = mixture_constants.head_slope(i.S, i.P, i.R, i.T)
        dev = 2 * slope * (2 * np.log(20.0) / 16) ** 0.5
    return Sides(gamma_star_of(i, "printed") - dev, on_U + on_W)


def _every_head_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m = NaiveMixture(num, data)
    dev = num.number(0)
    if variant == "printed":
        T = num.number(m.T)
        slope = 2 * m.R**3 * T * (m.S + m.P) + num.sqrt(T) * m.R
        dev = 2 * slope * num.sqrt(2 * num.log(num.number(20)) / 16)
    on_U, on_W = naive_tangent_margin(num, m)
    return naive_gamma_star(num, m, "printed") - dev, on_U + on_W


on_mixtures(
    "lemma-14",
    "Tangent margin of many heads",
    "Lemmas 14 and 15",
    "y <grad Phi~, theta~_*> >= gamma_* - 2 (2 R^3 T (S+P) + sqrt(T) R) sqrt(2 "
    "log(1/delta)/H). With "
    "signs alpha_h = +-1 every head contributes the same number, so nothing is lost for any H.",
    r"y\langle\nabla\widetilde\Phi,\widetilde\theta_*\rangle\ge\gamma_*",
    sides=_every_head,
    naive=_every_head_naive,
    targets=_targets,
    forms={
        "corrected": ("no deviation, no condition on H, no factor 1/2", "E4"),
        "printed": ("with the deviation, here for H = 16 and delta = 0.05", "E4"),
    },
)


def _start_norm(i: MixtureInstance, variant: str) -> Sides:
    row = i.zeta / 4 * i.u_star + i.p
    return Sides(i.T**0.5 * safe_norm(row), mixture_constants.B_2(i.S, i.P, i.T))


def _start_norm_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m = NaiveMixture(num, data)
    row = [m.zeta / 4 * u + p for u, p in zip(m.u_star, m.p, strict=True)]
    root = num.sqrt(num.number(m.T))
    return root * norm(num, row), root * (m.S + m.P)


on_mixtures(
    "proposition-2-1",
    "P1: norm of the two-phase start",
    "Proposition 2 (P1), Definition 1 (P1)",
    "|theta_h^(1)| = sqrt(T) |(zeta/4) u_* + p| <= B_2 = sqrt(T) (S + P).",
    r"\|\theta_h^{(1)}\|\le\sqrt T(S+P)",
    sides=_start_norm,
    naive=_start_norm_naive,
    forms="as printed",
)


def _start_output(i: MixtureInstance, variant: str) -> Sides:
    row = i.zeta / 4 * i.u_star + i.p
    lhs = jnp.abs(jnp.vdot(row, jnp.sum(i.X, axis=0)))
    return Sides(lhs, i.T * i.R * (i.S + i.P))


def _start_output_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m = NaiveMixture(num, data)
    row = [m.zeta / 4 * u + p for u, p in zip(m.u_star, m.p, strict=True)]
    return num.absolute(num.total([dot(x, row) for x in m.X])), m.T * m.R * (m.S + m.P)


on_mixtures(
    "lemma-12",
    "P2: output of the two-phase start",
    "Lemma 12, Proposition 2 (P2), Definition 1 (P2)",
    "Phi~(X; theta^(1)) = (sum_h alpha_h/sqrt(H)) <(zeta/4) u_* + p, sum_t x_t>: one random factor "
    "for all X (see fact-2, which gives sqrt(2 log(2/delta)) without a union over "
    "n), times at most "
    "T R (S + P).",
    r"|\langle\tfrac\zeta4u_*+p,\textstyle\sum_tx_t\rangle|\le TR(S+P)",
    sides=_start_output,
    naive=_start_output_naive,
    forms={"printed": ("the factor that B_Phi multiplies", "E28")},
    errata=("E5",),
)
