"""The rates of arda2026, Sec. 4: do they follow from Theorem 1, and is n only in a logarithm?

A rate hides a constant. Here radii and activation are those of Sec. 6, and the constant is twenty
times what the paper's own setting (d = 8, m = 256, n = 5000, tau = 4000) needs: any true rate
survives that for all sizes, a wrong exponent does not.
"""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np

from ....theory import Kind, Positive, Record, false
from ..constants import Constants, state
from ..twins_constants import SlowConstants
from .theorem_1 import average, closed

RADII, DELTA, SLACK = (3.0, 3.0, 3.0), 0.05, 20.0
PAPER = {"d": 8.0, "m": 256.0, "n": 5000.0, "tau": 4000.0}


class Sizes(Record):
    """Sizes d, m, n, tau as real numbers; tanh, radii 3 and the a priori B_U."""

    d = Positive(low=1.0, high=1e9)
    m = Positive(low=2.0, high=1e15)
    n = Positive(low=1.0, high=1e12)
    tau = Positive(low=1.0, high=1e30)

    shapes = ({},)
    slopes = False

    rho = nu = RADII
    delta = delta_prime = DELTA
    B_U = None
    activation = "tanh"

    @property
    def step(self):
        """The step size of the theorem."""
        return self.tau**-0.5

    def outside(self) -> str | None:
        """Sizes of at least 1 (m of at least 2), and not beyond what float64 can square."""
        sizes = (self.d, self.m / 2, self.n, self.tau)
        inside = all(1 <= size <= 1e40 for size in sizes)
        return None if inside else "sizes are below 1 or too large"


def table(sizes, **changes):
    """The constants at sizes."""
    return Constants(sizes.changed(**changes), "printed")


def table_slowly(num, sizes, **changes):
    """The same in slow arithmetic."""
    return SlowConstants({**sizes, **changes}, "printed", num)


def rate(i, form):
    """The rate without its constant, of Sec. 4 or as Theorem 1 gives it."""
    D, log_n = i.d + jnp.log(i.m / DELTA), jnp.log(i.n / DELTA)
    optimisation = D**2 / jnp.sqrt(i.tau)
    if form == "implied":
        return optimisation + jnp.sqrt(log_n / i.m) + D / jnp.sqrt(i.m)
    return optimisation + jnp.sqrt(D * log_n / i.m) + D**1.5 / jnp.sqrt(i.m) + D**2 / i.m


def rate_slowly(num, sizes, form):
    """The same in slow arithmetic."""
    d, m, n, tau = (sizes[name] for name in PAPER)
    delta = num.number("0.05")
    D, log_n = d + num.log(m / delta), num.log(n / delta)
    first = D * D / num.sqrt(tau)
    if form == "implied":
        return first + num.sqrt(log_n / m) + D / num.sqrt(m)
    return first + num.sqrt(D * log_n / m) + D * num.sqrt(D) / num.sqrt(m) + D * D / m


def sizes_of(*sizes):
    """One point."""
    return (Sizes(**dict(zip(PAPER, map(np.asarray, sizes), strict=True))),)


on_sizes = functools.partial(
    state.claim, on=Sizes, kind=Kind.RATE, no_rival="it compares two bounds, no loss"
)
endless = functools.partial(sizes_of, 1.0, 2.0, 1e12, 1e30)


@on_sizes(
    "informal-theorem",
    "The rates of the informal theorem",
    where="(Informal) Theorem 1, Sec. 4",
    proved="Sec. 4",
    says=r"\widehat{\mathcal L}_n(\bar\varphi^{(\tau)})\lesssim\frac{(d+\log(m/\delta'))^2}"
    r"{\sqrt\tau}+\sqrt{\frac{\log(n/\delta)}m}+\frac{d+\log(m/\delta')}{\sqrt m}",
    # Many features, few heads, endlessly many steps: the linearisation terms alone.
    tight=lambda: sizes_of(1e8, 100.0, 1000.0, 1e30),
    forms={
        "implied": false(
            "the rates of Sec. 4, with the powers 2, 0 and 1 of d + ln(m/delta')", "E7"
        ),
        "corrected": (
            "what Theorem 1 gives: sqrt(D ln(n/delta)/m) + D^{3/2}/sqrt m + D^2/m with "
            "D = d + ln(m/delta')",
            "E7",
        ),
    },
)
def informal_theorem(i, form):
    """L(average iterate) is of order (d + ln(m/delta'))^2/sqrt tau + sqrt(ln(n/delta)/m)
    + (d + ln(m/delta'))/sqrt m. Tested: whether Theorem 1's right side stays below a fixed multiple
    of the rate for all sizes."""
    paper = Sizes(**PAPER)
    constant = SLACK * average(table(paper)) / rate(paper, form)
    return average(table(i)), constant * rate(i, form)


@informal_theorem.twin
def _(num, i, form):
    paper = {name: num.number(value) for name, value in PAPER.items()}
    constant = SLACK * average(table_slowly(num, paper)) / rate_slowly(num, paper, form)
    return average(table_slowly(num, i)), constant * rate_slowly(num, i, form)


def rate_constant(form):
    """What Theorem 1 hides for tanh and equal radii r: it suffices for all sizes.

    L1 >= sqrt(1 + d) gives f_max + y_max <= 3 sqrt2 r L1 and A <= (1 + (1 + r)/sqrt2) L1, so the
    summands are at most these multiples of L1^4/sqrt tau, L1 (B_app + B_lin) and
    L1 (L1 + L2)/sqrt m; four times that for the average iterate.
    """
    r = RADII[0]
    size, slope = 3 * 2**0.5 * r, 1 + (1 + r) / 2**0.5
    optimisation = 3 * r**2 / 16 + (size * slope) ** 2
    features = size * (2**0.5 * r + r) * 2 * 3**0.5 * r
    best = max(optimisation, size, features)
    return 4 * best if form == "average" else best


@on_sizes(
    "theorem-1-rates",
    "The rates of Theorem 1 in terms of L1, L2 and the error bounds",
    where="Theorem 1, Sec. 5.5",
    proved="Sec. 5.5",
    says=r"\min_{s<\tau}\widehat{\mathcal L}_n(\varphi^{(s)})\lesssim\frac{L_1^4}{\sqrt\tau}"
    r"+L_1\big(B_{app}+B_{lin}+\tfrac{L_1+L_2}{\sqrt m}\big)",
    tight=endless,
    forms={"best": "the best iterate", "average": "the average iterate"},
)
def theorem_1_rates(i, form):
    """The best iterate is of order L1^4/sqrt tau + L1 (B_app + B_lin + (L1 + L2)/sqrt m); the
    average iterate has B_lin^2 beside it. Tested: whether (45) and (46) stay below 2,377 and 9,505
    times that for tanh, radii 3 and all sizes."""
    k = table(i)
    errors = k.B_app + k.B_lin + (k.L1 + k.L2) / i.m**0.5
    order = k.L1**4 / i.tau**0.5 + k.L1 * errors
    if form == "average":
        return average(k), rate_constant(form) * (order + k.B_lin**2)
    return closed(k), rate_constant(form) * order


@theorem_1_rates.twin
def _(num, i, form):
    k = table_slowly(num, i)
    L1, L2, B_lin = k.L1, k.L2, k.B_lin
    order = L1 * L1 * L1 * L1 / num.sqrt(i["tau"]) + L1 * (k.B_app + B_lin)
    order = order + L1 * (L1 + L2) / num.sqrt(i["m"])
    # 27/16 + 162 (1 + 2 sqrt 2)^2, the largest of the three multiples at r = 3
    constant = num.number(27) / 16 + 162 * (9 + 4 * num.sqrt(num.number(2)))
    if form == "average":
        return average(k), 4 * constant * (order + B_lin * B_lin)
    return closed(k), constant * order


@on_sizes(
    "log-n",
    "The sample size enters through a logarithm",
    where="Sec. 4, Theorem 1 with Lemma 5",
    proved="Sec. 4",
    says=r"R(n^2)\le\sqrt2\,R(n),\qquad B_{\rm app}(n^2,2m)\le B_{\rm app}(n,m)",
    tight=endless,
    forms={
        "bound": "the whole right side of (45)",
        "width": "B_app alone, at twice the width; tight as n grows",
    },
)
def log_n(i, form):
    """n enters the bounds only through sqrt(ln(2n/delta)/m): squaring the number of samples
    multiplies the right side of (45) by at most sqrt 2; in B_app twice the width pays for it."""
    if form == "width":
        return table(i, n=i.n**2, m=2 * i.m).B_app, table(i).B_app
    return closed(table(i, n=i.n**2)), jnp.sqrt(2.0) * closed(table(i))


@log_n.twin
def _(num, i, form):
    more = i["n"] * i["n"]
    if form == "width":
        return table_slowly(num, i, n=more, m=2 * i["m"]).B_app, table_slowly(num, i).B_app
    root = num.sqrt(num.number(2))
    return closed(table_slowly(num, i, n=more)), root * closed(table_slowly(num, i))
