"""Sec. 5.3 of deora2024: targets with the margin of Proposition 3 ask for more heads than they have.

From a zero start, the target has |W_h| = w/S^2 in every head, w >= 1, which saturating the softmax
takes, and |U~| = log(n)/S, which brings the loss down. With l = log n the two squares add up to
|theta~|^2 = (w^2 H + l^2 S^2)/S^4, and (1 + q)^3 >= (27/4) q gives S^5 |theta~|^3 >= (3 sqrt(3)/2) H l.
"""  # noqa: E501

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ....theory import Positive, Record, Sides, given
from .. import constants, twins_constants
from ..constants import state
from ..spaces import Whole


class FarTarget(Record):
    """Pattern norm S, heads H, samples n, |W_h| S^2 = w, and tokens T."""

    S = Positive(low=1e-2, high=1e6)
    H = Whole(high=1e12)
    n = Whole(low=2.0, high=1e12)
    w = Positive(low=1.0, high=1e3)
    T = Whole(high=1e6)

    shapes = ({},)

    def outside(self) -> str | None:
        """H, n and T count something."""
        whole = all(value % 1 == 0 for value in (self.H, self.n, self.T))
        return super().outside() if whole else "H, n and T must be whole numbers"


def _length(i: FarTarget, readout: Any) -> Any:
    """|theta~|: H heads with |W_h| = w/S^2, and |U~| = log(n)/`readout`."""
    return jnp.sqrt(i.H * (i.w / i.S**2) ** 2 + (jnp.log(i.n) / readout) ** 2)


def _lowest() -> tuple[FarTarget, ...]:
    """One head and two samples; S near sqrt(H/2)/log n, where the demand is lowest."""
    one = np.asarray(1.0)
    return (FarTarget(S=np.asarray(1.0201), H=one, n=np.asarray(2.0), w=one, T=one),)


@state.claim(
    "eq-12",
    "Targets that saturate are out of reach",
    where="Eq. (12)",
    proved="Sec. 5.3",
    on=FarTarget,
    says=r"\sqrt H<S^5\|\widetilde\theta\|^3",
    given=(
        given("n >= 2, as 2/n", lambda n: 2 / n, 1.0),
        given("|W_h| >= 1/S^2, as 1/w", lambda w: 1 / w, 1.0),
    ),
    tight=_lowest,
    no_rival="a number of heads is asked for: any may be",
    forms={
        "printed": "every hidden constant taken to be one",
        "corrected": "(74) itself, with the smallest beta_3 known and gamma_attn = S sqrt(T/2)",
        "sharp": "(3 sqrt(3)/2) H log(n) for sqrt(H), the best possible",
    },
)
def eq_12(i, form):
    """From a zero start, the condition on the heads fails at every target of Proposition 3 with
    |W_h| >= 1/S^2 and |U~| = log(n)/S: S^5 |theta~|^3 exceeds sqrt(H), for all S, H and n >= 2.
    The text argues so by orders of magnitude."""
    if form == "corrected":
        D, R = _length(i, i.S * jnp.sqrt(i.T / 2)), jnp.maximum(i.S, 1.0)
        # All heads are equal, so that one of them has length D/sqrt(H).
        wanted = constants.required_root(D, D / jnp.sqrt(i.H), R, i.T, 1, "sharp")
        return Sides(jnp.sqrt(i.H), wanted, {"D": D})
    D = _length(i, i.S)
    least = 1.5 * 3**0.5 * i.H * jnp.log(i.n) if form == "sharp" else jnp.sqrt(i.H)
    return Sides(least, i.S**5 * D**3, {"|theta|": D})


@eq_12.twin
def _(num, S, H, n, w, T, form):
    ell, root_H, heads = num.log(n), num.sqrt(H), H * w * w
    if form == "corrected":
        D = num.sqrt(heads + 2 * ell * ell * S * S / T) / (S * S)
        R = num.largest([num.number(1), S])
        beta = twins_constants.beta_3(num, 3 * D + D / root_H, R, T, 1, "sharp")
        return root_H, 18 * beta * D * D
    cube = heads + ell * ell * S * S
    demanded = cube * num.sqrt(cube) / S
    if form == "sharp":
        return 3 * num.sqrt(num.number(3)) / 2 * H * ell, demanded
    return root_H, demanded
