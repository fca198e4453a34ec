"""The constants of wu2023, each written once: as printed and, where the print slips, corrected.

Every function takes numbers or JAX arrays. Formulas are for sum pooling; mean pooling is sum
pooling with tau1 divided by d_s (`effective_tau1`). `form` is "printed" or "corrected".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

Number = Any


class Sizes(NamedTuple):
    """What Prop. 1 needs to know about data and scaling; C_x is that of Assumption 1."""

    N: Number
    d_s: Number
    tau0: Number
    tau1: Number
    C_x: Number

    @property
    def S(self) -> Number:
        """d_s C_x^2, the bound on |X|_F^2."""
        return self.d_s * self.C_x**2


class Norms(NamedTuple):
    """lambda-bar of every block: bounds on ||W_Q||, ||W_K||, ||W_V|| and |w_O|."""

    Q: Number
    K: Number
    V: Number
    O: Number

    def __add__(self, room: Any) -> Norms:
        """lambda-bar = norm at the start + C_* for every block [wu2023, Prop. 1]."""
        return Norms(*(norm + extra for norm, extra in zip(self, room, strict=True)))


def effective_tau1(tau1: Number, pooling: str, d_s: int) -> Number:
    """The tau1 with which sum pooling gives the same network."""
    return tau1 / d_s if pooling == "mean" else tau1


def rho(s: Sizes) -> Number:
    """N^{1/2} d_s^{3/2} tau1 C_x [wu2023, Prop. 1]."""
    return s.N**0.5 * s.d_s**1.5 * s.tau1 * s.C_x


def z_prop(s: Sizes, lam: Norms) -> Number:
    """The z of Prop. 1: lamO^2 (1 + 4 tau0^2 S^2 lamV^2 (lamQ^2 + lamK^2))."""
    return lam.O**2 * (1 + 4 * s.tau0**2 * s.S**2 * lam.V**2 * (lam.Q**2 + lam.K**2))


def z14(s: Sizes, lam: Norms) -> Number:
    """The z of Lemma 14: 2 tau0 S (lamQ + lamK)."""
    return 2 * s.tau0 * s.S * (lam.Q + lam.K)


def attention_slope(s: Sizes, side: Number, lam: Norms) -> Number:
    """2 tau0 S side lamV lamO: the size of a query or key gradient over rho [Lemma 12]."""
    return 2 * s.tau0 * s.S * side * lam.V * lam.O


def c1(s: Sizes, lam: Norms, form: str) -> Number:
    """Lipschitz constant of f [wu2023, (36)]: rho (lamV + lamO + lamV z), corrected lamO lamV z."""
    attention = lam.V * z14(s, lam) * (1 if form == "printed" else lam.O)
    return rho(s) * (lam.V + lam.O + attention)


def c2(s: Sizes, lam: Norms) -> Number:
    """Size of the Jacobian of f [wu2023, (11)]."""
    on_q, on_k = attention_slope(s, lam.K, lam), attention_slope(s, lam.Q, lam)
    return rho(s) * (lam.O**2 + lam.V**2 + on_q**2 + on_k**2) ** 0.5


def c3(s: Sizes, lam: Norms, form: str) -> Number:
    """Lipschitz constant of the Jacobian of f [wu2023, (14)].

    Corrected: valid while no unit changes sign; Assumption 1 bounds a token by sqrt(S), and the
    factor S in front of 3 lam z is kept.
    """
    z, root = z14(s, lam), s.d_s**0.5
    kink = lam.O * s.C_x * root * (1 + lam.V * z) if form == "printed" else 0.0
    on_o, on_v = 1 + lam.V * z, lam.O * z + kink + 1

    def on(side: Number) -> Number:
        values = 2 * side * s.S * (lam.V * (kink + 1) + lam.O)
        if form == "printed":  # 3 lamK z in both lines, and |x_i| <= C_x
            return s.C_x * (values + lam.V * lam.O * (s.S + 3 * lam.K * z))
        return s.S**0.5 * (values + lam.V * lam.O * s.S * (1 + 3 * side * z))

    plain = (s.tau1 * s.C_x * s.d_s**1.5) ** 2 * (on_o**2 + on_v**2)
    attention = (s.tau0 * s.tau1 * s.d_s) ** 2 * (on(lam.K) ** 2 + on(lam.Q) ** 2)
    return (s.N * (plain + attention)) ** 0.5


def jump(s: Sizes, lam: Norms, flipped: Number) -> Number:
    """By how much the Jacobian of f jumps where units of output weight `flipped` change sign."""
    on_q, on_k = 2 * s.tau0 * s.S * lam.K * lam.V, 2 * s.tau0 * s.S * lam.Q * lam.V
    return rho(s) * flipped * (1 + on_q**2 + on_k**2) ** 0.5


def smoothness(s: Sizes, lam: Norms, loss: Number, form: str) -> Number:
    """C of the step size [wu2023, (37)]: c1 c2 + 2 c3 l0, corrected c1 c2 + c3 sqrt(2 l0)."""
    residual = 2 * loss if form == "printed" else (2 * loss) ** 0.5
    return c1(s, lam, form) * c2(s, lam) + c3(s, lam, form) * residual


def condition_2_terms(
    s: Sizes, lam: Norms, room: Norms, alpha: Number, loss: Number
) -> list[Number]:
    """Right over left side of (2) for each of the four terms of its maximum."""
    terms = [
        lam.V / room.O,
        lam.O / room.V,
        attention_slope(s, lam.K, lam) / room.Q,
        attention_slope(s, lam.Q, lam) / room.K,
    ]
    return [8 * rho(s) * term * (2 * loss) ** 0.5 / alpha**2 for term in terms]


def condition_2(s: Sizes, lam: Norms, room: Norms, alpha: Number, loss: Number) -> Number:
    """Right over left side of (2): at most 1 where the condition holds; `room` are the C_*."""
    terms = condition_2_terms(s, lam, room, alpha, loss)
    return max(terms) if isinstance(alpha, float) else jnp.max(jnp.stack(terms))


def condition_3(s: Sizes, lam: Norms, alpha: Number, loss: Number) -> Number:
    """Right over left side of (3): at most 1 where the condition holds."""
    return 32 * rho(s) ** 2 * z_prop(s, lam) / lam.O * (2 * loss) ** 0.5 / alpha**3


def table(s: Sizes, lam: Norms, form: str) -> dict[str, Number]:
    """The constants of one setting by name."""
    names = {f"lam_{block}": value for block, value in zip("QKVO", lam, strict=True)}
    return {
        **names,
        "C_x": s.C_x,
        "rho": rho(s),
        "z_prop": z_prop(s, lam),
        "z14": z14(s, lam),
        "c1": c1(s, lam, form),
        "c2": c2(s, lam),
        "c3": c3(s, lam, form),
    }
