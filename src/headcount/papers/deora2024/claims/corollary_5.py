"""Good initialisation in deora2024: Definition 1, Proposition 7 and Corollary 5 (training)."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from ....theory import Check, Positive, Record, Sides, false, given
from ....theory.slow import dot
from .. import constants, quantities, twins_constants
from .. import twins as slow
from ..conditions import DIRECTION, SEPARABLE, TRAINING, heads_and_step, reached
from ..constants import Constants, state
from ..fits import fit_start, shape
from ..records import Start
from ..spaces import Whole
from ..twins_constants import SlowStart
from .theorem_3 import HIDDEN

_realizable = functools.partial(fit_start, root=lambda k: k.realizable_root)
STARTS = tuple(shape(_realizable, f, d=d, G=2) for f, d in (("v2", 2), ("v1", 2), ("sharp", 1)))
_trained = functools.partial(fit_start, root=lambda k: k.start_root, step=lambda k: k.start_step)
on_starts = functools.partial(state.claim, on=Start, shapes=STARTS)


@on_starts(
    "definition-1",
    "Good initialisation: what its margin can be",
    where="Definition 1 (P1-P3)",
    proved="Sec. 4.3",
    says=r"\gamma\le\sqrt2\,\sqrt TR(2R^2B_2+1)",
    given=(DIRECTION,),
    forms={"derived": "what Proposition 1 allows"},
    no_rival="a ceiling of margins is what any bound of the gradient gives",
)
def definition_1(gamma, k):
    """With P1 and |theta_*| = sqrt(2), the margin gamma of P3 is at most sqrt(2) beta_1(B_2). B_2,
    B_Phi and the largest gamma of any start and data are measured by `definition_1.good_start`."""
    return gamma, k.margin_ceiling


@definition_1.twin
def _(num, start, k):
    return k.start.gamma, k.margin_ceiling


def _least_loss(i: Start) -> Any:
    """A lower bound of the loss within G of the start: exact for one token and one sample."""
    if i.T > 1 or len(i.y) > 1:
        return jnp.zeros(())
    best = i.y * quantities.outputs(i, i.rows) + i.G * jnp.linalg.norm(i.X[0, 0])
    return quantities.logistic(best)[0]


def _slow_least_loss(num: Any, start: Any, s: SlowStart) -> Any:
    if len(start["X"][0]) > 1 or len(start["y"]) > 1:
        return num.number(0)
    part = slow.samples(num, start, s.rows)[0]
    size = num.root(dot(start["X"][0][0], start["X"][0][0]))
    return slow.softplus(num, -(part.margin + s.G * size))


def _one_token() -> tuple[Start, ...]:
    """One token, one sample, start at zero: the model is linear, and gamma = sqrt(2)."""
    one = np.ones((1, 1, 1))
    return (
        Start(
            X=one, y=np.ones(1), k=np.array([2.0**40]), U=0 * one, W=0 * one, readout="full",
            vU=np.sqrt(2.0) * one, vW=0 * one, eps=np.asarray(2.0**-14), eta=np.asarray(0.1), K=1,
        ),
    )  # fmt: skip


@on_starts(
    "proposition-7",
    "From a good start to realizability",
    where="Proposition 7, Assumption 2, Eqs. (98)-(100)",
    proved="App. C.3",
    says=r"g_0(\epsilon)=\sqrt2\,\frac{2B_\Phi+\log(1/\epsilon)}\gamma,\quad g=B_2+g_0",
    no_rival="that some point exists within a distance has no weaker form",
    given=(SEPARABLE, DIRECTION, reached("(98)", lambda k: k.realizable_root)),
    tight=_one_token,
    forms={
        "printed": false("g_0 = G, forgetting that |theta_*| is sqrt(2)", "E2"),
        "corrected": ("g_0 = sqrt(2) G", "E2"),
        "v1": ("the same with the first text's beta_3 in the condition on H", "E9"),
        "sharp": ("the same with sharp beta_3 in the condition on H", "E2"),
    },
)
def proposition_7(i, form):
    """With (98) there is, for every eps, a theta with L <= eps within g_0 of the start and
    |theta|_{2,inf} <= B_2 + g_0; the witness is theta_0 + G theta_*, G = (2 B_Phi + log(1/eps))/
    gamma. As printed g_0 = G: the least loss within G of the start is at most eps."""
    if form == "printed":
        return _least_loss(i), i.eps
    move = i.G * i.direction
    there, g_0 = i.rows + move, constants.g_0(i.B_Phi, i.gamma, i.eps)
    lhs = [quantities.loss(i, there), quantities.length(i, move), quantities.widest(there)]
    table = {"B_2": i.B_2, "B_Phi": i.B_Phi, "gamma": i.gamma, "H": i.H}
    return Sides(jnp.stack(lhs), jnp.stack([i.eps, g_0, i.B_2 + g_0]), table)


@proposition_7.twin
def _(num, start, form, k):
    s = k.start
    if form == "printed":
        return _slow_least_loss(num, start, s), start["eps"]
    move = [[s.G * e for e in row] for row in s.direction]
    there, g_0 = slow.combined(s.rows, move, 1), num.sqrt(num.number(2)) * s.G
    length, width = slow.length(num, start, move), slow.widest(num, there)
    return [slow.loss(num, start, there), length, width], [start["eps"], g_0, s.B_2 + g_0]


def required(setting: Any, form: str, stable: bool = False) -> tuple[Check, ...]:
    """H and eta; `stable` asks for eta beta_1(B)^2 <= 1, too."""
    k = Constants(setting, form)
    most = k.stable_start_step if stable else k.start_step
    eta = most if setting.eta is None else setting.eta
    return heads_and_step("Corollary 5", k, k.start_root, eta, most)


@state.claim(
    "corollary-5",
    "Training loss from a good start",
    where="Corollary 5 = Corollary 2, first half of (5) and (101)",
    proved="Sec. 4.3, App. C.4",
    on=Start,
    shapes=tuple(shape(_trained, f, G=2, K=3) for f in ("v2", "v1", "printed", "sharp")),
    says=r"\widehat L(\theta_K)\le\frac2K+\frac{5(2B_\Phi+\log K)^2}{2\gamma^2\eta K}",
    right=lambda k: k.start_bound,
    trivial=lambda k: constants.start_loss(k.symbols.B_Phi),
    given=TRAINING,
    requires=required,
    quantity="loss",
    forms={
        "corrected": ("g_0 = sqrt(2) G everywhere: 5/2 for 5/4", "E2"),
        "printed": ("g_0 = G: the proof is wrong, the bound is not", "E2"),
        "v1": ("as corrected, with the first text's beta_3 in the conditions", "E9"),
        "sharp": ("g_0 = G, with sharp beta_3 in the conditions on H and eta", "E9"),
    },
    notes=("E2", "E10", "E11"),
)
def corollary_5(start):
    """From a good start, with H and eta as stated, L(theta_K) <= 2/K + 5 g_0^2/(4 eta K),
    g_0 = sqrt(2) (2 B_Phi + log K)/gamma."""
    return quantities.loss(start, quantities.descended(start))


@corollary_5.twin
def _(num, start):
    rows = slow.parameters(start)
    for _step in range(int(start["K"])):
        g = slow.loss_gradient(num, start, slow.samples(num, start, rows))
        rows = slow.combined(rows, g, -start["eta"])
    return slow.loss(num, start, rows)


class GoodSizes(Record):
    """The numbers of Corollary 2 and of Corollary 5: R, B_2, g_0, sqrt(H), and whole T and d."""

    R = Positive(low=1.0, high=1e2)
    B_2 = Positive(low=1.0, high=1e4)
    g_0 = Positive(low=1.0, high=1e4)
    root_H = Positive(low=1.0, high=1e9)
    T = Whole(high=1e9)
    d = Whole(high=1e4)

    shapes = ({},)


def _small(g_0: float) -> tuple[GoodSizes, ...]:
    ones = {name: np.asarray(1.0) for name in ("R", "B_2", "root_H", "T", "d")}
    return (GoodSizes(**ones, g_0=np.asarray(g_0)),)


on_good_sizes = functools.partial(
    state.claim,
    on=GoodSizes,
    given=(
        given("R >= 1, as 1/R", lambda R: 1 / R, 1.0),
        given("B_2 >= 1, as 1/B_2", lambda B_2: 1 / B_2, 1.0),
        given("g_0 >= 1, as 1/g_0", lambda g_0: 1 / g_0, 1.0, forms=("corrected",)),
    ),
    proved="Sec. 4.3",
    no_rival="a number of heads and a step size are asked for: any may be",
)


@on_good_sizes(
    "corollary-2-heads",
    "The number of heads in the main text's corollary",
    where="Corollary 2, the condition on H",
    says=r"256d\sqrt{Td}R^3B_2(3\sqrt dR^2(4g_0+B_2)+1)g_0^2\le C\,d^2\sqrt TR^5B_2^2g_0^3",
    tight=lambda: _small(2.0**-14),
    forms={
        "printed": false("any g_0, tried with C = 10^6: g_0^3 is no g_0^2", "E10"),
        "corrected": ("g_0 >= 1, then C = 4096", "E10"),
    },
)
def corollary_2_heads(i, form):
    """sqrt(H) >= C d^2 sqrt(T) R^5 B_2^2 g_0^3 implies what Corollary 5 asks of H."""
    wanted = constants.good_start_root(i.g_0, i.B_2, i.R, i.T, i.d)
    shown = i.d**2 * i.T**0.5 * i.R**5 * i.B_2**2 * i.g_0**3
    return wanted, (4096 if form == "corrected" else HIDDEN) * shown


@corollary_2_heads.twin
def _(num, R, B_2, g_0, T, d, form):
    wanted = twins_constants.good_start_root(num, g_0, B_2, R, T, d, "v2")
    shown = d * d * num.sqrt(num.number(T)) * R**5 * B_2 * B_2 * g_0**3
    return wanted, (4096 if form == "corrected" else HIDDEN) * shown


@on_good_sizes(
    "corollary-2-step",
    "The step size in the main text's corollary",
    where="Corollary 2, the condition on rho(K)",
    says=r"\rho(K)\le C\,d^{9/2}T^{3/2}R^{13}g_0^4",
    tight=lambda: _small(2.0**-10),
    forms={
        "printed": false("T^{3/2}, g_0^4 and no B_2, tried with C = 10^6", "E11"),
        "corrected": ("T^2 and g_0^2 B_2^2, for g_0 >= 1, with C = 12657", "E11"),
    },
)
def corollary_2_step(i, form):
    """C d^{9/2} T^{3/2} R^{13} g_0^4 is at least rho(K) of Corollary 5."""
    rho = constants.rho(4 * i.g_0 + i.B_2, i.R, i.root_H**2, i.T, i.d)
    shown = i.d**4.5 * i.T**1.5 * i.R**13 * i.g_0**2
    if form == "corrected":
        return rho, 12657 * shown * i.T**0.5 * i.B_2**2
    return rho, HIDDEN * shown * i.g_0**2


@corollary_2_step.twin
def _(num, R, B_2, g_0, root_H, T, d, form):
    rho = twins_constants.rho(num, 4 * g_0 + B_2, R, root_H**2, T, d, "v2")
    root_T, root_d = num.sqrt(num.number(T)), num.sqrt(num.number(d))
    shown = d**4 * root_d * T * R**13 * g_0 * g_0
    if form == "corrected":
        return rho, 12657 * shown * T * B_2 * B_2
    return rho, HIDDEN * shown * root_T * g_0 * g_0
