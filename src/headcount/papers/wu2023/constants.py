"""The constants of wu2023 at a point, a run or a setting: as printed, and corrected.

Formulas are for sum pooling; mean pooling is sum pooling with tau1 divided by d_s
(`effective_tau1`). A table's symbols have `sizes` and `lam`; for Prop. 1 also `extra`, `alpha`,
`start_loss`, `gamma`, `times` and `loss_scale`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ...theory import Statements, Table
from .twins import SlowConstants

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


@dataclass(frozen=True)
class Symbols:
    """What a table is computed from, where no point, run or setting is at hand."""

    sizes: Sizes
    lam: Norms
    extra: Norms | None = None
    """C_* of every block."""
    alpha: Number = None
    start_loss: Number = None


def effective_tau1(tau1: Number, pooling: str, d_s: int) -> Number:
    """The tau1 with which sum pooling gives the same network."""
    return tau1 / d_s if pooling == "mean" else tau1


class Constants(Table):
    """Every constant that Prop. 1 and its lemmas name; `form` is "printed", else corrected."""

    def __init__(self, symbols: Any, form: str) -> None:
        super().__init__(symbols, "printed" if form == "printed" else "corrected")
        self.s: Sizes = symbols.sizes
        self.lam: Norms = symbols.lam
        self.printed = form == "printed"
        self.share = 4 if form == "quarter" else 2

    @cached_property
    def rho(self) -> Number:
        """N^{1/2} d_s^{3/2} tau1 C_x [wu2023, Prop. 1]."""
        s = self.s
        return s.N**0.5 * s.d_s**1.5 * s.tau1 * s.C_x

    @cached_property
    def z_prop(self) -> Number:
        """The z of Prop. 1: lamO^2 (1 + 4 tau0^2 S^2 lamV^2 (lamQ^2 + lamK^2))."""
        s, lam = self.s, self.lam
        return lam.O**2 * (1 + 4 * s.tau0**2 * s.S**2 * lam.V**2 * (lam.Q**2 + lam.K**2))

    @cached_property
    def z14(self) -> Number:
        """The z of Lemma 14: 2 tau0 S (lamQ + lamK)."""
        return 2 * self.s.tau0 * self.s.S * (self.lam.Q + self.lam.K)

    def logit_drift(self, moved: Norms) -> Number:
        """2 tau0 S (lamQ ||dW_K|| + lamK ||dW_Q||) [Lemma 7]."""
        return 2 * self.s.tau0 * self.s.S * (self.lam.Q * moved.K + self.lam.K * moved.Q)

    @property
    def slopes(self) -> dict[str, Number]:
        """The size of the gradient in every block over rho and the residual [Lemma 12]."""
        lam, values = self.lam, 2 * self.s.tau0 * self.s.S
        on_q, on_k = (values * side * lam.V * lam.O for side in (lam.K, lam.Q))
        return {"W_Q": on_q, "W_K": on_k, "W_V": lam.O, "w_O": lam.V}

    @cached_property
    def c1(self) -> Number:
        """Lipschitz constant of f (36): rho (lamV + lamO + lamV z), corrected lamO lamV z."""
        lam = self.lam
        attention = lam.V * self.z14 * (1 if self.printed else lam.O)
        return self.rho * (lam.V + lam.O + attention)

    @cached_property
    def c2(self) -> Number:
        """Size of the Jacobian of f (11)."""
        slopes = self.slopes
        squares = (slopes[block] ** 2 for block in ("w_O", "W_V", "W_Q", "W_K"))
        return self.rho * sum(squares, 0.0) ** 0.5

    @cached_property
    def c3(self) -> Number:
        """Lipschitz constant of the Jacobian of f (14).

        Corrected: valid while no unit changes sign; Assumption 1 bounds a token by sqrt(S), and the
        factor S in front of 3 lam z is kept.
        """
        s, lam = self.s, self.lam
        z, root = self.z14, s.d_s**0.5
        kink = lam.O * s.C_x * root * (1 + lam.V * z) if self.printed else 0.0
        on_o, on_v = 1 + lam.V * z, lam.O * z + kink + 1

        def on(side: Number) -> Number:
            values = 2 * side * s.S * (lam.V * (kink + 1) + lam.O)
            if self.printed:  # 3 lamK z in both lines, and |x_i| <= C_x
                return s.C_x * (values + lam.V * lam.O * (s.S + 3 * lam.K * z))
            return s.S**0.5 * (values + lam.V * lam.O * s.S * (1 + 3 * side * z))

        plain = (s.tau1 * s.C_x * s.d_s**1.5) ** 2 * (on_o**2 + on_v**2)
        attention = (s.tau0 * s.tau1 * s.d_s) ** 2 * (on(lam.K) ** 2 + on(lam.Q) ** 2)
        return (s.N * (plain + attention)) ** 0.5

    def jump(self, flipped: Number) -> Number:
        """What the Jacobian of f jumps by where units of output weight `flipped` change sign."""
        s, lam = self.s, self.lam
        on_q, on_k = (2 * s.tau0 * s.S * side * lam.V for side in (lam.K, lam.Q))
        return self.rho * flipped * (1 + on_q**2 + on_k**2) ** 0.5

    @property
    def residual(self) -> Number:
        """|f - y| at the start."""
        return (2 * self.symbols.start_loss) ** 0.5

    @cached_property
    def C(self) -> Number:
        """1 over the largest step size (37): c1 c2 + 2 c3 l_0, corrected c1 c2 + c3 sqrt(2 l_0)."""
        size = 2 * self.symbols.start_loss if self.printed else self.residual
        return self.c1 * self.c2 + self.c3 * size

    @property
    def condition_2_terms(self) -> list[Number]:
        """Right over left side of (2) for each of the four terms of its maximum."""
        slopes, extra, alpha = self.slopes, self.symbols.extra, self.symbols.alpha
        terms = zip(("w_O", "W_V", "W_Q", "W_K"), (extra.O, extra.V, extra.Q, extra.K), strict=True)
        return [8 * self.rho * slopes[block] / C * self.residual / alpha**2 for block, C in terms]

    @cached_property
    def condition_2(self) -> Number:
        """Right over left side of (2): at most 1 where the condition holds."""
        terms = self.condition_2_terms
        return max(terms) if isinstance(terms[0], float) else jnp.max(jnp.stack(terms))

    @cached_property
    def condition_3(self) -> Number:
        """Right over left side of (3): at most 1 where the condition holds."""
        size = 32 * self.rho**2 * self.z_prop / self.lam.O
        return size * self.residual / self.symbols.alpha**3

    @cached_property
    def alpha(self) -> Number:
        """sigma_min(F_pre) at the start."""
        return self.symbols.alpha

    @cached_property
    def gamma(self) -> Number:
        """The step size, by default 1/C."""
        return 1 / self.C if self.symbols.gamma is None else self.symbols.gamma

    @cached_property
    def l_0(self) -> Number:
        """The loss at the start."""
        return self.symbols.loss_scale * self.symbols.start_loss

    @property
    def promised(self) -> Number:
        """(1 - gamma alpha^2/2)^t l_0 at the times that are asked about (4)."""
        xp: Any = np if isinstance(self.alpha, float) else jnp
        rate = xp.minimum(self.gamma * self.alpha**2 / self.share, 1 - 1e-16)
        return self.l_0 * xp.exp(self.symbols.times * xp.log1p(-rate))


state = Statements("wu2023", Constants, SlowConstants)
