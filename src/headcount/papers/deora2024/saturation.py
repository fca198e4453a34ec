"""Softmax saturation in deora2024: Lemma 18, Proposition 3, and the order of the margins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Hypothesis, Sides, instance_class
from ...theory.domain import Domain
from ...theory.families import log_uniform, shaped
from ...theory.slow import Arithmetic, dot, softmax
from . import mixture_constants
from .declare import claim, false
from .mixture import MIXTURES, MixtureInstance, NaiveMixture, mixture_family, quiet
from .model import MultiHeadAttention
from .naive import Data
from .tokenised_mixture import gamma_star_of, naive_gamma_star


@instance_class
@dataclass(frozen=True)
class ScoresInstance(Domain):
    """Scores r, of which the first L are at least A and the others at most B; Gamma; eps."""

    r: Float[Array, "T"]
    A: Float[Array, ""]
    B: Float[Array, ""]
    Gamma: Float[Array, ""]
    eps: Float[Array, ""]
    L: int = 1

    fractions = ("eps",)

    def outside(self) -> str | None:
        """Some scores are high, but not all."""
        if self.r.shape[-1] <= self.L:
            return f"L = {self.L} leaves none of {self.r.shape[-1]} scores outside"
        return None


def _least_gamma(i: ScoresInstance) -> Any:
    return 2 / i.A * jnp.log((i.r.shape[0] / i.L - 1) / i.eps)


def _draw(rng: np.random.Generator, count: int, T: int, L: int) -> ScoresInstance:
    A = log_uniform(rng, 1e-2, 10.0, count)
    B = A / 2 * rng.uniform(-1, 0.999, count)
    extra = rng.exponential(size=(count, T)) * (rng.random((count, 1)) < 0.5)
    inside = np.arange(T) < L
    r = np.where(inside, A[:, None] + extra, B[:, None] - extra)
    factor = 1 + rng.exponential(size=count) * (rng.random(count) < 0.5)
    return ScoresInstance(r, A, B, factor, rng.uniform(1e-3, 0.9, count), L)


def _project(i: ScoresInstance) -> ScoresInstance:
    """A > 0, A > 2B, scores on their sides, Gamma from its bound upwards, not negative."""
    A = jnp.clip(jnp.abs(i.A), 1e-3, 1e3)
    B = jnp.clip(i.B, -1e3, 0.4999 * A)
    inside = np.arange(i.r.shape[0]) < i.L
    r = jnp.where(inside, jnp.clip(i.r, A, 1e4), jnp.clip(i.r, -1e4, B))
    fixed = replace(i, A=A, B=B, r=r, eps=jnp.clip(i.eps, 1e-6, 0.999))
    least = jnp.maximum(_least_gamma(fixed), 0.0)
    return replace(fixed, Gamma=jnp.clip(jnp.maximum(i.Gamma, least * (1 + 1e-12)), 0.0, 1e4))


SCORES = tuple(shaped("scores", _draw, _project, T=T, L=L) for T, L in ((3, 1), (4, 3)))


def _limit(corrected: float, printed: float) -> dict[str, Any]:
    """A threshold that only the corrected form asks for."""
    return {
        "threshold": lambda i, variant: corrected if variant == "corrected" else printed,
        "naive_threshold": lambda num, data, variant: num.number(
            corrected if variant == "corrected" else printed
        ),
    }


def _smallest_inside(num: Arithmetic, data: Data) -> Any:
    return data["A"] - num.smallest(data["r"][: int(data["L"])])


def _largest_outside(num: Arithmetic, data: Data) -> Any:
    return num.largest(data["r"][int(data["L"]) :]) - data["B"]


def _gamma_gap(num: Arithmetic, data: Data) -> Any:
    bound = (num.number(len(data["r"])) / int(data["L"]) - 1) / data["eps"]
    return 2 / data["A"] * num.log(bound) - data["Gamma"]


SCORE_HYPOTHESES = (
    Hypothesis(
        "A below the first L scores", lambda i: i.A - jnp.min(i.r[: i.L]), _smallest_inside, 0.0
    ),
    Hypothesis(
        "B above the other scores", lambda i: jnp.max(i.r[i.L :]) - i.B, _largest_outside, 0.0
    ),
    Hypothesis("2B < A", lambda i: 2 * i.B - i.A, lambda num, data: 2 * data["B"] - data["A"], 0.0),
    Hypothesis(
        "Gamma >= (2/A) log((T/L - 1)/eps)",
        lambda i: _least_gamma(i) - i.Gamma,
        _gamma_gap,
        0.0,
    ),
    Hypothesis("A > 0, as -A", lambda i: -i.A, lambda num, data: -data["A"], **_limit(0.0, 1e9)),
    Hypothesis(
        "Gamma >= 0, as -Gamma",
        lambda i: -i.Gamma,
        lambda num, data: -data["Gamma"],
        **_limit(0.0, 1e9),
    ),
)


def _leak(i: ScoresInstance, variant: str) -> Sides:
    return Sides(jnp.sum(jax.nn.softmax(i.Gamma * i.r)[i.L :]), i.eps)


def _leak_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    weights = softmax(num, [data["Gamma"] * r for r in data["r"]])
    return num.total(weights[int(data["L"]) :]), data["eps"]


claim(
    "lemma-18",
    "Softmax saturation",
    "Lemma 18, Eq. (125)",
    "If the first L scores are at least A, the others at most B < A/2, and Gamma >= (2/A) "
    "log((T/L - 1)/eps), then softmax(Gamma r) has mass at most eps beyond the first L.",
    r"\sum_{i>L}[\varphi(\Gamma r)]_i\le\epsilon",
    sides=_leak,
    naive=_leak_naive,
    families=SCORES,
    hypotheses=SCORE_HYPOTHESES,
    forms={
        "printed": false("any sign of A and Gamma", "E7"),
        "corrected": ("A > 0 and Gamma >= 0", "E7"),
    },
    where="App. E",
)

QUIET = (
    mixture_family(ratio=0.124, equal=True),
    mixture_family(4, 1, 3, ratio=0.124, equal=True),
)


def _gamma(i: MixtureInstance, variant: str) -> Any:
    if variant == "section-7":
        return jnp.log((1 / i.zeta - 1) / i.eps) / i.S
    least = mixture_constants.saturation(i.S, i.M, i.zeta, i.eps)
    return jnp.maximum(least, 0.0) if variant == "corrected" else least


def _expressivity(i: MixtureInstance, variant: str) -> Sides:
    W = _gamma(i, variant) * i.W_star / (i.S**2 * (2 * (i.M + 1)) ** 0.5)
    leaks = jnp.sum(jax.nn.softmax(i.X @ W @ i.X.T, axis=-1)[:, i.L :], axis=-1)
    U = jnp.broadcast_to(i.u_star, i.X.shape) / (i.S * (2 * i.T) ** 0.5)
    margin = i.y * MultiHeadAttention(i.T, i.M + 2, 1).head(U, W, i.X)
    noise = i.Z_mu * i.S if variant == "section-7" else i.Z_mu
    reached = mixture_constants.gamma_attn(i.S, i.T, noise, i.eps)
    return Sides(jnp.stack([jnp.max(leaks), reached]), jnp.stack([i.eps, margin]))


def _expressivity_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m = NaiveMixture(num, data)
    ask = num.log((1 / m.zeta - 1) / m.eps)
    size = num.sqrt(num.number(2 * (m.M + 1)))
    if variant == "section-7":
        Gamma = ask / m.S
    else:
        Gamma = 8 * size / (3 * m.S * m.S) * ask
        Gamma = num.positive_part(Gamma) if variant == "corrected" else Gamma
    scale = Gamma / (m.S * m.S * size)
    leaks, margin = [], num.number(0)
    along = [dot(x, m.u_star) for x in m.X]
    for row in m.scores():
        weights = softmax(num, [scale * r for r in row])
        leaks.append(num.total(weights[m.L :]))
        margin = margin + dot(weights, along)
    root = num.sqrt(num.number(2 * m.T))
    noise = m.Z_mu * m.S if variant == "section-7" else m.Z_mu
    reached = num.sqrt(num.number(m.T) / 2) / m.S * (m.S**2 * (1 - m.eps) - 2 * m.eps * noise)
    return [num.largest(leaks), reached], [m.eps, m.y * margin / (m.S * root)]


SMALL_NOISE = (
    Hypothesis(
        "Z_mu <= S^2/8",
        lambda i: 8 * i.Z_mu / i.S**2,
        lambda num, data: 8 * data["Z_mu"] / data["S"] ** 2,
    ),
    Hypothesis(
        "Z_mu = Z_nu",
        lambda i: jnp.abs(i.Z_mu - i.Z_nu),
        lambda num, data: num.absolute(data["Z_mu"] - data["Z_nu"]),
        0.0,
    ),
)


def _few_irrelevant() -> tuple[MixtureInstance, ...]:
    """zeta = 7/8 and eps = 5/16: the printed Gamma is negative; and one token of four."""
    return quiet(8, 2, 7, 1.0, 0.3125), quiet(4, 2, 1, 1.0, 0.015625)


claim(
    "proposition-3",
    "What attention can express on DM1",
    "Proposition 3, Eqs. (9)-(11), (130), (131)",
    "With Z_mu = Z_nu <= S^2/8 and Gamma >= (8 sqrt(2(M+1))/(3 S^2)) log((1/zeta - 1)/eps), every "
    "row of the attention leaks at most eps and the margin is at least gamma_attn(eps).",
    r"y\Phi(X;U_{\mathrm{opt}},\Gamma W_{\mathrm{opt}})\ge\frac{\sqrt T}{\sqrt2S}"
    r"(S^2(1-\epsilon)-2\epsilon Z_\mu)",
    sides=_expressivity,
    naive=_expressivity_naive,
    families=QUIET,
    hypotheses=SMALL_NOISE,
    targets=_few_irrelevant,
    forms={
        "printed": false("Gamma equal to its bound, even where that is negative", "E7"),
        "section-7": false("Gamma >= log((1/zeta - 1)/eps)/S, as Sec. 7 restates it", "E23"),
        "corrected": ("Gamma not negative", "E7"),
    },
    errata=("E21", "E22", "E26"),
    where="Sec. 5.3, App. E",
)


def _order(i: MixtureInstance, variant: str) -> Sides:
    best = i.S * (i.T / 2) ** 0.5
    linear = mixture_constants.gamma_lin(i.S, i.T, i.zeta, i.Z_mu)
    if variant == "corrected":
        return Sides(linear, best)
    star = gamma_star_of(i, "printed")
    return Sides(jnp.stack([star, linear]), jnp.stack([best, star]))


def _order_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    m = NaiveMixture(num, data)
    root = num.sqrt(num.number(m.T) / 2)
    best = m.S * root
    linear = (m.L * m.S - 2 * (m.T - m.L) * m.Z_mu / m.S) / num.sqrt(num.number(2 * m.T))
    if variant == "corrected":
        return linear, best
    star = naive_gamma_star(num, m, "printed")
    return [star, linear], [best, star]


claim(
    "margin-order",
    "The order of the margins",
    "Secs. 5.3 and 7",
    "gamma_attn >= gamma_lin. (The text also puts gamma_* between them.)",
    r"\gamma_{\mathrm{attn}}\ge\gamma_{\mathrm{lin}}",
    sides=_order,
    naive=_order_naive,
    families=MIXTURES,
    targets=lambda: (quiet(4, 2, 2, 3.0),),
    forms={
        "printed": false("gamma_attn >= gamma_* >= gamma_lin: gamma_* grows like S^4", "E24"),
        "corrected": ("without gamma_*, a margin of another function", "E24"),
    },
    where="Secs. 5.3 and 7",
)
