"""DM1 in deora2024: tokens, scores, linear and tangent margins [Sec. 5, App. D, F]."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ....theory import Sides, false, given
from ....theory.families import safe_norm
from ....theory.slow import norm
from .. import mixture_constants
from ..constants import state
from ..mixture import ManyHeads, Mixture, SureMixture, bounded, quiet, surely
from ..model import MultiHeadAttention
from ..twins_mixture import SlowMixture

on_mixtures = functools.partial(state.claim, on=Mixture, proved="Sec. 5, App. D")
_A_MARGIN = "a lower bound of a margin: any number is a candidate"
_A_SIZE = "without it nothing bounds the noise"


def _tight() -> tuple[Mixture, ...]:
    still = quiet()
    pushed = still.changed(Z_mu=np.asarray(0.25), on_mu=np.tile([-1.0, 1.0], (3, 1)))
    return still, pushed


@on_mixtures(
    "assumption-1",
    "Token norms of DM1",
    where="Assumption 1 for DM1",
    says=r"\|x_t\|\le R=\sqrt{S^2+Z^2+2Z_\nu/M}",
    no_rival=_A_SIZE,
)
def assumption_1(X, R):
    """No token is longer than R = sqrt(S^2 + Z^2 + 2 Z_nu/M), taken to be at least 1."""
    return jnp.max(safe_norm(X)), R


@assumption_1.twin
def _(num, sample):
    m = SlowMixture(num, sample)
    return num.largest([norm(num, x) for x in m.X]), m.R


_NOISE_SD = 0.1


@on_mixtures(
    "assumption-3",
    "Noise with sure bounds",
    where="Assumption 3 and App. G",
    on=SureMixture,
    says=r"|\langle z,\mu_\pm\rangle|\le Z_\mu,\ |\langle z,\nu_\ell\rangle|\le Z_\nu/M,"
    r"\ \|z\|\le Z",
    tight=lambda: tuple(map(surely, _tight())),
    no_rival=_A_SIZE,
    forms={
        "gaussian": false("Gaussian noise of the experiments: no bound holds surely", "E33"),
        "printed": ("bounded noise", "E33"),
    },
)
def assumption_3(sample, form):
    """|<z, mu_+->| <= Z_mu, |<z, nu_l>| <= Z_nu/M and |z| <= Z surely. For the noise of
    App. G: the probability that N(0, 0.1^2 I) exceeds Z_mu is zero."""
    z, S = sample.noise, sample.S
    if form == "gaussian":
        return jax.scipy.special.erfc(sample.Z_mu / (_NOISE_SD * S * 2**0.5)), jnp.zeros(())
    lhs = [S * jnp.max(jnp.abs(z[:, :2])), sample.M * S * jnp.max(jnp.abs(z[:, 2:]))]
    rhs = [sample.Z_mu, sample.Z_nu, sample.Z]
    return jnp.stack([*lhs, jnp.max(safe_norm(z))]), jnp.stack(rhs)


@assumption_3.twin
def _(num, sample, form):
    m = SlowMixture(num, sample)
    if form == "gaussian":
        return num.erfc(m.Z_mu / (m.S * num.sqrt(num.number(2)) / 10)), num.number(0)
    on_mu = num.largest([abs(e) for row in m.on_mu for e in row])
    on_nu = num.largest([abs(e) for row in m.on_nu for e in row])
    longest = num.largest([norm(num, z) for z in m.noise])
    return [on_mu, m.M * on_nu, longest], [m.Z_mu, m.Z_nu, m.Z]


@on_mixtures(
    "eq-129",
    "Relevance scores under W_*",
    where="Eqs. (8), (109), (128), (129)",
    says=r"[r_t]_{t'}\ge S^4-S^2(Z_\mu+Z_\nu)\ (t'\in\mathcal R),\quad"
    r"[r_t]_{t'}\le2(Z_\mu^2+Z_\mu Z_\nu+S^2Z_\mu)\ (t'\notin\mathcal R)",
    tight=_tight,
    no_rival="scores of any size are candidates",
    forms={"printed": ("as in (129)", "E25")},
)
def eq_129(i):
    """Scores of relevant tokens are at least A = S^4 - S^2 (Z_mu + Z_nu), those of others at most
    B = 2 (Z_mu^2 + Z_mu Z_nu + S^2 Z_mu)."""
    r = i.X @ i.W_star @ i.X.T
    A, B = mixture_constants.scores(i.S, i.Z_mu, i.Z_nu)
    return jnp.stack([A, jnp.max(r[:, i.L :])]), jnp.stack([jnp.min(r[:, : i.L]), B])


@eq_129.twin
def _(num, sample):
    m = SlowMixture(num, sample)
    r, S2 = m.scores(), m.S * m.S
    A = S2 * S2 - S2 * m.Z_mu - S2 * m.Z_nu
    B = 2 * m.Z_mu * (m.Z_mu + m.Z_nu + S2)
    inside = num.smallest([e for row in r for e in row[: m.L]])
    outside = num.largest([e for row in r for e in row[m.L :]])
    return [A, outside], [inside, B]


@state.identity(
    "eq-110",
    "Relevance scores written out",
    where="Eqs. (108), (110), (111)",
    proved="App. D.2.3",
    on=Mixture,
    says=r"[r_t]_{t'}=S^4+S^2\mu_y^\top z_t+S^2\sum_\ell\nu_\ell^\top z_t\ (t\notin"
    r"\mathcal R,t'\in\mathcal R)",
)
def eq_110(i):
    """X W_* X^T and X u_* from the noise's inner products with the patterns."""
    direct = jnp.concatenate([(i.X @ i.W_star @ i.X.T).ravel(), i.X @ i.u_star])
    S, z = i.S, i.noise
    plus, minus = S * z[:, 0], S * z[:, 1]
    own = jnp.where(i.y > 0, plus, minus)
    others = S * jnp.sum(z[:, 2:], axis=1)
    signal = jnp.concatenate([jnp.full(i.L, S**4), S**2 * own])
    left = (S**4 + S**2 * (own + others))[:, None] * jnp.ones((1, i.L))
    right = jnp.outer(plus, plus) + jnp.outer(minus, minus)
    right = right + jnp.outer(others, plus + minus) + S**2 * (plus + minus)[None]
    noisy = jnp.concatenate([left, right], axis=1)
    along_u = jnp.concatenate([jnp.full(i.L, S**2) * i.y, plus - minus])
    relevant = jnp.broadcast_to(signal, (i.L, i.T)).ravel()
    return direct, jnp.concatenate([relevant, noisy.ravel(), along_u])


@on_mixtures(
    "eq-132",
    "Margin of the linear model",
    lower=True,
    where="Eqs. (106), (132)",
    proved="App. D.2.3, F",
    says=r"y\,\Phi_{\mathrm{lin}}(X;\bar U_*)\ge S\sqrt{T/2}\,(\zeta-2(1-\zeta)Z_\mu/S^2)",
    tight=_tight,
    no_rival=_A_MARGIN,
    forms="attained by noise at its bounds",
)
def eq_132(i):
    """y <U_*/|U_*|, X> >= gamma_lin = S sqrt(T/2) (zeta - 2 (1 - zeta) Z_mu/S^2); the U part of the
    tangent margin at the two-phase start is the same number."""
    margin = i.y * jnp.sum(i.X @ i.u_star) / (i.S * (2 * i.T) ** 0.5)
    return mixture_constants.gamma_lin(i.S, i.T, i.zeta, i.Z_mu), margin


@eq_132.twin
def _(num, sample):
    m = SlowMixture(num, sample)
    return m.gamma_lin(), m.linear_margin()


def tangent_margin(i: Mixture, form: str) -> tuple[Any, Any]:
    """(U part, W part) of m(X, y) = y <grad Phi(X; theta^(1)), theta_*>, by autodiff, alpha = 1."""
    model = MultiHeadAttention(i.T, i.M + 2, 1)
    start = jnp.broadcast_to(i.row(form), (i.T, i.M + 2)), jnp.zeros_like(i.W_star)
    g_U, g_W = jax.grad(model.head, argnums=(0, 1))(*start, i.X)
    U_bar = jnp.broadcast_to(i.u_star, (i.T, i.M + 2)) / (i.S * (2 * i.T) ** 0.5)
    W_bar = i.W_star / (i.S**2 * (2 * (i.M + 1)) ** 0.5)
    return i.y * jnp.vdot(g_U, U_bar), i.y * jnp.vdot(g_W, W_bar)


@state.identity(
    "eq-107",
    "The W part of the tangent margin, in two terms",
    where="Eq. (107)",
    proved="App. D.2.3",
    on=Mixture,
    says=r"\tfrac1{\|W_*\|}\bigl(\tfrac\zeta2y\sum_tu_*^\top X^\top R_0r_t"
    r"+y\langle\sum_tx_tp^\top X^\top R_0X,W_*\rangle\bigr)",
)
def eq_107(i):
    """At the start of (102), y <grad_W Phi(X; theta^(1)), W_*/|W_*|> is a term of u_* and one of p,
    with R_0 = I/T - 11^T/T^2."""
    centring = jnp.eye(i.T) / i.T - 1 / i.T**2
    r = i.X @ i.W_star @ i.X.T
    first = i.zeta / 2 * i.y * jnp.sum(r @ centring @ i.X @ i.u_star)
    pulled = jnp.outer(jnp.sum(i.X, axis=0), i.p @ i.X.T @ centring @ i.X)
    second = i.y * jnp.vdot(pulled, i.W_star)
    return tangent_margin(i, "printed")[1], (first + second) / safe_norm(i.W_star.ravel())


def gamma_star(i: Mixture, form: str) -> Any:
    """gamma_* of (7) with P = |p|; in its sharp form what p costs at most is P T R^3."""
    cost = mixture_constants.p_term(i.P, i.R, i.S, i.Z, i.T, form)
    return mixture_constants.gamma_star(i.S, i.T, i.M, i.zeta, i.Z_mu, i.Z_nu, cost)


@on_mixtures(
    "eq-119",
    "Tangent margin of the two-phase start",
    lower=True,
    where="Eqs. (7), (119), Lemma 13, Proposition 2 (P3)",
    says=r"\gamma_*=\frac{T(1-\zeta)\zeta}{4\sqrt{2(M+1)}}\bigl(\zeta S^4-7\bar ZS^2-12\bar Z^2"
    r"-16\bar Z^3/S^2\bigr)-PT^{5/2}(S+Z)^3+\gamma_{\mathrm{lin}}",
    tight=_tight,
    no_rival=_A_MARGIN,
    forms={
        "corrected": ("alpha = +-1 and the centre zeta/4; attained without noise", "E3"),
        "printed": ("alpha = +-1 and the centre zeta/2 of (102)", "E3"),
        "uniform": ("alpha uniform on [-1, 1] and the centre zeta/2 of (102)", "E3"),
        "sharp": ("alpha = +-1 and the centre zeta/4; p costs at most P T R^3", "E17"),
    },
    notes=("E1", "E17", "E18", "E19"),
)
def eq_119(sample, form):
    """For every sample of DM1, E_alpha y <grad Phi(X; theta^(1)), theta_*> >= gamma_*: at the row
    (zeta/4) u_* + p, |p| <= P, of the first phase, and at (zeta/2) u_* + p of (102), there also
    with alpha uniform on [-1, 1] and E|alpha| = 1/2."""
    on_U, on_W = tangent_margin(sample, form)
    margin = on_U + (on_W / 2 if form == "uniform" else on_W)
    parts = {"U part": on_U, "W part": on_W, "P": sample.P}
    return Sides(gamma_star(sample, form), margin, parts)


@eq_119.twin
def _(num, sample, form):
    m = SlowMixture(num, sample)
    on_U, on_W = m.tangent_margin(form)
    return m.gamma_star(form), on_U + (on_W / 2 if form == "uniform" else on_W)


def _with_heads() -> tuple[ManyHeads, ...]:
    more = {"delta": np.asarray(0.05), "n": np.asarray(10.0), "H": np.asarray(16.0)}
    return tuple(ManyHeads(**one.fields(), **more) for one in _tight())


def _enough_heads(i: ManyHeads) -> ManyHeads:
    """Little noise, a short p, and H just as large as Lemma 15 asks."""
    near = bounded(i.changed(p=0.01 * i.p), 0.01)
    slope = mixture_constants.head_slope(near.S, near.P, near.R, near.T)
    gamma = jnp.maximum(gamma_star(near, "printed"), 1e-3)
    H = mixture_constants.sufficient_heads(gamma, slope, near.n, near.delta)
    return near.changed(H=jnp.ceil(H * (1 + 1e-9)))


on_heads = functools.partial(on_mixtures, on=ManyHeads, tight=_with_heads, no_rival=_A_MARGIN)


@on_heads(
    "lemma-14",
    "Tangent margin of many heads",
    lower=True,
    where="Lemma 14",
    says=r"y\langle\nabla\widetilde\Phi,\widetilde\theta_*\rangle\ge\gamma_*"
    r"-2(2R^3T(S+P)+\sqrt TR)\sqrt{2\log(1/\delta)/H}",
    forms={
        "corrected": ("no deviation, no condition on H", "E4"),
        "printed": ("with Hoeffding's deviation, at the centre zeta/2 of (102)", "E4"),
    },
)
def lemma_14(sample, form):
    """y <grad Phi~, theta~_*> >= gamma_* - 2 (2 R^3 T (S+P) + sqrt(T) R) sqrt(2 log(1/delta)/H).
    With signs alpha_h = +-1 every head contributes the same number: nothing is lost for any H."""
    on_U, on_W = tangent_margin(sample, form)
    lost = 0.0
    if form == "printed":
        slope = mixture_constants.head_slope(sample.S, sample.P, sample.R, sample.T)
        lost = 2 * slope * (-2 * jnp.log(sample.delta) / sample.H) ** 0.5
    return gamma_star(sample, "printed") - lost, on_U + on_W


@lemma_14.twin
def _(num, sample, form):
    m, lost = SlowMixture(num, sample), num.number(0)
    if form == "printed":
        lost = 2 * m.head_slope() * num.sqrt(-2 * num.log(sample["delta"]) / sample["H"])
    on_U, on_W = m.tangent_margin(form)
    return m.gamma_star("printed") - lost, on_U + on_W


@on_heads(
    "lemma-15",
    "P3 with gamma_*/2",
    lower=True,
    where="Lemma 15, Proposition 2 (P3)",
    says=r"\sqrt H\ge4\,\frac{2R^3T(S+P)+\sqrt TR}{\gamma_*}\sqrt{2\log(n/\delta)}"
    r"\ \Rightarrow\ \gamma=\gamma_*/2",
    tight=(),
    shapes=tuple({**shape, "within": _enough_heads} for shape in Mixture.shapes),
    given=(
        given("gamma_* > 0, as -gamma_*", lambda i: -gamma_star(i, "printed"), -1e-9),
        given(
            "Lemma 15: H is what it must reach, as 1 <= H/(that)",
            1.0,
            lambda i: (
                i.H
                / mixture_constants.sufficient_heads(
                    gamma_star(i, "printed"),
                    mixture_constants.head_slope(i.S, i.P, i.R, i.T),
                    i.n,
                    i.delta,
                )
            ),
        ),
    ),
    forms={
        "corrected": ("the centre zeta/4 of the first phase", "E4"),
        "printed": ("the centre zeta/2 of (102)", "E4"),
    },
)
def lemma_15(sample, form):
    """With that many heads, P3 holds with gamma = gamma_*/2."""
    on_U, on_W = tangent_margin(sample, form)
    return gamma_star(sample, "printed") / 2, on_U + on_W


@lemma_15.twin
def _(num, sample, form):
    m = SlowMixture(num, sample)
    on_U, on_W = m.tangent_margin(form)
    return m.gamma_star("printed") / 2, on_U + on_W
