"""Remarks 6-7, Lemma 3 and the first half of Lemma 6 of arda2026: the model near its start."""

import functools
import math

import jax.numpy as jnp
import numpy as np
import optax

from ....theory import Bound, Sides, false
from ....theory.families import safe_norm
from ....theory.slow import norm
from .. import quantities, twins
from ..constants import event_radius_exact, state
from ..records import Near

SAMPLE, START, DISPLACED = ("X", "q"), ("c0", "U0", "W0"), ("dc", "dU", "dW")
near_start = functools.partial(
    state.claim,
    on=Near,
    asks=(*SAMPLE, *START, *DISPLACED),
    needs_event=True,
    tight=lambda: (tight_model(),),
    proved="App. A.7",
)
"""For phi in Omega_rho and |c0| = 1 in pairs."""


def tight_model(*, m=2, shift=(1.0, 1.0, 0.0), U=0.0, kind=Near, **more):
    """d = 1 with one repeated unit token: a = 1 whatever W, so h = sigma(U) exactly."""
    signs = np.concatenate([np.ones(m // 2), -np.ones(m // 2)])
    one = np.ones((m, 1))
    start = {"X": np.ones((1, 2, 1)), "q": np.ones((1, 1)), "c0": signs, "U0": U * one}
    moved = {"dc": shift[0] * np.ones(m), "dU": shift[1] * signs[:, None]}
    transport = {"vc": -np.ones(m), "vu": -one, "vw": np.zeros((m, 1, 1))}
    return kind(
        **{**start, **moved, **transport, **more},
        W0=np.zeros((m, 1, 1)),
        dW=shift[2] * one[..., None],
        rho=np.full(3, 1e-3),
        nu=np.array([1.0, 1.0, 1e-3]),
        labels=-np.ones(1),
    )


@state.identity(
    "remark-6",
    "The paired start is zero",
    where="Remark 6",
    proved="Sec. 5.2",
    on=Near,
    asks=START,
    says=r"f(X;\varphi^{(0)})=0",
    forms="equality; exact in floating point with paired summation",
)
def remark_6(i):
    """f(X; phi0) = 0 for every X under the paired initialisation."""
    values = quantities.outputs(i, i.initial)
    size = jnp.sum(jnp.abs(quantities.heads(i, i.initial))) / math.sqrt(i.m)
    return Sides(values, jnp.zeros_like(values), scale=size)


def value_bound(setting, form):
    """B_U of a setting; the sharp form takes the exact radius."""
    if form == "sharp" and setting.B_U is None:
        radius = event_radius_exact(setting.d, setting.m, setting.delta_prime)
        return Bound(float(radius + setting.rho[1] / math.sqrt(setting.m)))
    return Bound(float(state.table(setting, form).B_U))


@near_start(
    "remark-7",
    "Length of the value vectors on the feasible set",
    where="Definition 2, Remark 7",
    proved="Sec. 5.2",
    asks=DISPLACED,
    says=r"\|U_i\|_2\le B_U",
    forms={
        "printed": "B_U a priori: sqrt(d) + sqrt(2 ln(m/(2 delta'))) + rho_u/sqrt(m)",
        "sharp": ("a priori radius = chi_d quantile at (1-delta')^(2/m), exact", "E14"),
    },
    right=lambda k: k.B_U,
    no_rival="Gaussian vectors have no bound without the event",
    bound=value_bound,
)
def remark_7(i):
    """On E_U every |U_i| on Omega_rho is at most B_U. Instances use the realised B_U =
    max_i |U_i^(0)| + rho_u/sqrt(m), for which no event is needed."""
    return jnp.max(safe_norm(i.params.U))


@remark_7.twin
def _(num, i):
    return num.largest(norm(num, row) for row in twins.current(num, i).U)


def error(i):
    """f - f_lin at phi."""
    return quantities.outputs(i, i.params) - quantities.linear_outputs(i, i.params)


@near_start(
    "lemma-3",
    "Linearisation error",
    where="Lemma 3, Eq. (18)",
    proved="App. A.4",
    says=r"\sup_j|f-f_{\rm lin}|\le B_{\rm lin}=m^{-1/2}(L_1\rho_c k+L_2k^2)",
    forms={
        "printed": ("L2 k^2, without the factor 1/2 of the proof", "E8"),
        "sharp": ("L2*/2 k^2 with L1*, L2*", "E8"),
    },
    right=lambda k: k.B_lin,
    trivial=lambda k: k.any_error,
)
def lemma_3(i):
    """For phi in Omega_rho, |f - f_lin| <= B_lin on every input."""
    return jnp.max(jnp.abs(error(i)))


@lemma_3.twin
def _(num, i):
    phi = twins.current(num, i)
    return num.largest(
        abs(twins.output(num, i, j, phi) - twins.linear(num, i, j, phi)) for j in twins.samples(i)
    )


@state.identity(
    "eq-18",
    "The linearisation error, term by term",
    where="Eq. (18)",
    proved="App. A.4",
    on=Near,
    asks=(),
    says=r"f-f_{\rm lin}=\tfrac1{\sqrt m}\sum_i\delta c_i(h_i-h_i^{(0)})+\tfrac1{\sqrt m}\sum_i"
    r"c_i^{(0)}(h_i-h_i^{(0)}-\langle\nabla h_i^{(0)},\delta\theta_i\rangle)",
    notes=("E8",),
)
def eq_18(i):
    """f - f_lin is 1/sqrt(m) times the sum over heads of dc (h - h0) and
    c0 (h - h0 - <grad h0, dtheta>). f(X; phi0) = 0 is not needed for it."""
    start = i.initial
    shift = optax.tree.sub(i.params, start)
    gap = quantities.heads(i, i.params) - quantities.heads(i, start)
    slopes = quantities.features(i, start.U, start.W)[..., 1:]
    along = jnp.einsum("nip,ip->ni", slopes, quantities.flat_blocks(shift)[..., 1:])
    old = start.c[None]
    pieces = shift.c[None] * gap, old * (gap - along)
    size = sum(jnp.sum(jnp.abs(piece)) for piece in (*pieces, old * along))
    root = math.sqrt(i.m)
    return Sides(error(i), jnp.sum(sum(pieces), axis=-1) / root, scale=1 + size / root)


@near_start(
    "lemma-6a",
    "Envelope of the output",
    where="Lemma 6",
    says=r"\sup_X|f(X;\varphi)|\le f^{\max}=L_1k+\sigma_0\rho_c",
    forms={"printed": "with L1", "sharp": "with L1*"},
    right=lambda k: k.f_max,
    trivial=lambda k: k.any_output,
)
def lemma_6a(i):
    """For phi in Omega_rho, |f(X; phi)| <= f_max = L1 k + s0 rho_c on every input."""
    return jnp.max(jnp.abs(quantities.outputs(i, i.params)))


@lemma_6a.twin
def _(num, i):
    phi = twins.current(num, i)
    return num.largest(abs(twins.output(num, i, j, phi)) for j in twins.samples(i))


def cancelling():
    """Both heads of a pair move alike: the c0-weighted changes cancel in f, not in the sums."""
    base = tight_model(shift=(0.0, 1.0, 0.0), U=0.5)
    moved = base.dU * np.array([[1.0], [-0.5]])
    return (base.changed(dU=np.abs(moved), rho=np.array([1.0, 1.0, 1.0])), tight_model())


@state.claim(
    "lemma-6-display",
    "The first display in the proof of Lemma 6",
    where="proof of Lemma 6",
    proved="App. A.7",
    on=Near,
    asks=(*START, *DISPLACED),
    says=r"|f(X;\varphi)|=\tfrac1{\sqrt m}\sum_i|c_i^{(0)}(h_i-h_i^{(0)})|"
    r"+\tfrac1{\sqrt m}\sum_i|\delta c_i\,h_i|",
    forms={
        "printed": false("equality", "E10"),
        "corrected": ("at most; there is no missing cross term", "E10"),
    },
    tight=cancelling,
    no_rival="it compares two expressions of one output",
)
def lemma_6_display(i, form):
    """|f| equals (printed) or is at most (corrected) the sum over heads of |c0 (h - h0)| and
    |dc h|, over sqrt(m). The sides are compared as sums <= |f| for the printed equality."""
    now, start = (quantities.heads(i, phi)[0] for phi in (i.params, i.initial))
    pieces = jnp.abs(i.c0 * (now - start)) + jnp.abs((i.params.c - i.c0) * now)
    sums = jnp.sum(pieces) / math.sqrt(i.m)
    value = jnp.abs(quantities.outputs(i, i.params)[0])
    return (sums, value) if form == "printed" else (value, sums)


@lemma_6_display.twin
def _(num, i, form):
    phi, start = twins.current(num, i), twins.initial(i)
    now, then = (twins.heads(num, i, 0, p) for p in (phi, start))
    pieces = [
        abs(c0 * (new.h - old.h)) + abs((c - c0) * new.h)
        for c, c0, new, old in zip(phi.c, start.c, now, then, strict=True)
    ]
    sums = num.total(pieces) / num.sqrt(num.number(len(now)))
    value = abs(twins.output(num, i, 0, phi))
    return (sums, value) if form == "printed" else (value, sums)
