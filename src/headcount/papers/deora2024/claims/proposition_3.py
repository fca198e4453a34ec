"""Softmax saturation in deora2024: Lemma 18, Proposition 3, and the order of the margins."""

from __future__ import annotations

from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from ....core import Array
from ....theory import Fraction, Positive, Reals, Record, Static, false, given
from ....theory.slow import dot, softmax
from .. import mixture_constants
from ..constants import state
from ..mixture import QUIET, Mixture, quiet
from ..model import MultiHeadAttention
from ..twins_mixture import SlowMixture
from .proposition_2 import gamma_star


class Scores(Record):
    """Scores r, of which the first L are at least A and the others at most B; Gamma; eps."""

    r = Reals("T")
    A = Reals()
    B = Reals()
    Gamma = Reals()
    eps = Fraction(low=1e-6, high=0.999)
    L = Static(1)

    shapes = ({"T": 3, "L": 1}, {"T": 4, "L": 3})

    @classmethod
    def structured(cls, rng: np.random.Generator, drawn: dict[str, Array]) -> dict[str, Array]:
        """A of every size, scores often at their bounds, Gamma often as small as it may be."""
        some = rng.random(drawn["A"].shape) < 0.5
        A = Positive(low=1e-2, high=10.0).draw(rng, len(some), {})[""]
        r = np.where(some[:, None], drawn["r"], 0.0)
        return {**drawn, "A": A, "r": r, "B": A * rng.uniform(-0.5, 0.4999, len(A)), "Gamma": 0 * A}

    def within(self) -> Self:
        """A > 0, A > 2B, scores on their sides, Gamma from its bound upwards, not negative."""
        A = jnp.clip(jnp.abs(self.A), 1e-3, 1e3)
        B = jnp.clip(self.B, -1e3, 0.4999 * A)
        inside = np.arange(self.r.shape[0]) < self.L
        r = jnp.where(inside, jnp.clip(self.r, A, 1e4), jnp.clip(self.r, -1e4, B))
        fixed = self.changed(A=A, B=B, r=r)
        least = jnp.maximum(fixed.least_Gamma, 0.0) * (1 + 1e-12)
        return fixed.changed(Gamma=jnp.clip(jnp.maximum(self.Gamma, least), 0.0, 1e4))

    @property
    def least_Gamma(self) -> Any:
        """(2/A) log((T/L - 1)/eps)."""
        return 2 * jnp.log((self.r.shape[0] / self.L - 1) / self.eps) / self.A

    def outside(self) -> str | None:
        """Some scores are high, but not all."""
        if self.r.shape[-1] <= self.L:
            return f"L = {self.L} leaves none of {self.r.shape[-1]} scores outside"
        return super().outside()


@state.claim(
    "lemma-18",
    "Softmax saturation",
    where="Lemma 18, Eq. (125)",
    proved="App. E",
    on=Scores,
    says=r"\sum_{i>L}[\varphi(\Gamma r)]_i\le\epsilon",
    trivial=lambda k: 1.0,
    given=(
        given("A below the first L scores", lambda A, r, L: A - jnp.min(r[:L]), 0.0),
        given("B above the other scores", lambda B, r, L: jnp.max(r[L:]) - B, 0.0),
        given("2B < A", lambda A, B: 2 * B - A, 0.0),
        given(
            "Gamma >= (2/A) log((T/L - 1)/eps)",
            lambda least_Gamma, Gamma: least_Gamma - Gamma,
            0.0,
        ),
        given("A > 0, as -A", lambda A: -A, 0.0, forms=("corrected",)),
        given("Gamma >= 0, as -Gamma", lambda Gamma: -Gamma, 0.0, forms=("corrected",)),
    ),
    forms={
        "printed": false("any sign of A and Gamma", "E7"),
        "corrected": ("A > 0 and Gamma >= 0", "E7"),
    },
)
def lemma_18(r, Gamma, L, eps):
    """If the first L scores are at least A, the others at most B < A/2, and Gamma >= (2/A)
    log((T/L - 1)/eps), then softmax(Gamma r) has mass at most eps beyond the first L."""
    return jnp.sum(jax.nn.softmax(Gamma * r)[L:]), eps


@lemma_18.twin
def _(num, r, Gamma, L, eps):
    return num.total(softmax(num, [Gamma * score for score in r])[int(L) :]), eps


def _Gamma(i: Mixture, form: str) -> Any:
    if form == "section-7":
        return jnp.log((1 / i.zeta - 1) / i.eps) / i.S
    least = mixture_constants.saturation(i.S, i.M, i.zeta, i.eps)
    return jnp.maximum(least, 0.0) if form == "corrected" else least


def _few_irrelevant() -> tuple[Mixture, ...]:
    """zeta = 7/8 and eps = 5/16: the printed Gamma is negative; and one token of four."""
    return quiet(8, 2, 7, 1.0, 0.3125), quiet(4, 2, 1, 1.0, 0.015625)


def _unequal(Z_mu, Z_nu):
    """How the condition on the noise fails, in words."""
    return f"Z_mu = {float(Z_mu):.4g} and Z_nu = {float(Z_nu):.4g}, Proposition 3 asks Z_mu = Z_nu"


@state.claim(
    "proposition-3",
    "What attention can express on DM1",
    where="Proposition 3, Eqs. (9)-(11), (130), (131)",
    proved="Sec. 5.3, App. E",
    on=Mixture,
    says=r"y\Phi(X;U_{\mathrm{opt}},\Gamma W_{\mathrm{opt}})\ge\frac{\sqrt T}{\sqrt2S}"
    r"(S^2(1-\epsilon)-2\epsilon Z_\mu)",
    shapes=QUIET,
    given=(
        given("Z_mu <= S^2/8", lambda Z_mu, S: 8 * Z_mu / S**2, 1.0),
        given("Z_mu = Z_nu", lambda Z_mu, Z_nu: jnp.abs(Z_mu - Z_nu), 0.0, _unequal),
    ),
    tight=_few_irrelevant,
    no_rival="1 for the leak, no margin at all without the proposition",
    forms={
        "printed": false("Gamma equal to its bound, even where that is negative", "E7"),
        "section-7": false("Gamma >= log((1/zeta - 1)/eps)/S, as Sec. 7 restates it", "E23"),
        "corrected": ("Gamma not negative", "E7"),
    },
    notes=("E21", "E22", "E26"),
)
def proposition_3(i, form):
    """With Z_mu = Z_nu <= S^2/8 and Gamma >= (8 sqrt(2(M+1))/(3 S^2)) log((1/zeta - 1)/eps), every
    row of the attention leaks at most eps and the margin is at least gamma_attn(eps)."""
    W = _Gamma(i, form) * i.W_star / (i.S**2 * (2 * (i.M + 1)) ** 0.5)
    leaks = jnp.sum(jax.nn.softmax(i.X @ W @ i.X.T, axis=-1)[:, i.L :], axis=-1)
    U = jnp.broadcast_to(i.u_star, i.X.shape) / (i.S * (2 * i.T) ** 0.5)
    margin = i.y * MultiHeadAttention(i.T, i.M + 2, 1).head(U, W, i.X)
    noise = i.Z_mu * i.S if form == "section-7" else i.Z_mu
    reached = mixture_constants.gamma_attn(i.S, i.T, noise, i.eps)
    if form == "section-7":  # which speaks of the margin alone
        return reached, margin
    return jnp.stack([jnp.max(leaks), reached]), jnp.stack([i.eps, margin])


@proposition_3.twin
def _(num, sample, form):
    m = SlowMixture(num, sample)
    ask, size = num.log((1 / m.zeta - 1) / m.eps), num.sqrt(num.number(2 * (m.M + 1)))
    Gamma = ask / m.S if form == "section-7" else 8 * size / (3 * m.S * m.S) * ask
    if form == "corrected":
        Gamma = num.positive_part(Gamma)
    scale = Gamma / (m.S * m.S * size)
    leaks, margin = [], num.number(0)
    along = [dot(x, m.u_star) for x in m.X]
    for row in m.scores():
        weights = softmax(num, [scale * r for r in row])
        leaks.append(num.total(weights[m.L :]))
        margin = margin + dot(weights, along)
    noise = m.Z_mu * m.S if form == "section-7" else m.Z_mu
    reached = num.sqrt(num.number(m.T) / 2) / m.S * (m.S**2 * (1 - m.eps) - 2 * m.eps * noise)
    margin = m.y * margin / (m.S * m.root_2T())
    return (
        (reached, margin)
        if form == "section-7"
        else ([num.largest(leaks), reached], [m.eps, margin])
    )


@state.claim(
    "margin-order",
    "The order of the margins",
    lower=True,
    where="Secs. 5.3 and 7",
    on=Mixture,
    says=r"\gamma_{\mathrm{attn}}\ge\gamma_{\mathrm{lin}}",
    tight=lambda: (quiet(4, 2, 2, 3.0),),
    no_rival="three margins are put in order",
    forms={
        "printed": false("gamma_attn >= gamma_* >= gamma_lin: gamma_* grows like S^4", "E24"),
        "corrected": ("without gamma_*, a margin of another function", "E24"),
    },
)
def margin_order(i, form):
    """gamma_attn >= gamma_lin. As printed gamma_* stands between them: gamma_* is held against
    gamma_attn."""
    best = i.S * (i.T / 2) ** 0.5
    linear = mixture_constants.gamma_lin(i.S, i.T, i.zeta, i.Z_mu)
    if form == "corrected":
        return linear, best
    star = gamma_star(i, "printed")
    return jnp.stack([star, linear]), jnp.stack([best, star])


@margin_order.twin
def _(num, sample, form):
    m = SlowMixture(num, sample)
    best = m.S * num.sqrt(num.number(m.T) / 2)
    if form == "corrected":
        return m.gamma_lin(), best
    star = m.gamma_star("printed")
    return [star, m.gamma_lin()], [best, star]
