"""The constants of wu2023 in slow arithmetic: the twin of `constants`, written apart from it."""

from __future__ import annotations

from dataclasses import dataclass

from ...theory.slow import Arithmetic, flat, norm
from .naive import Data, Number


@dataclass(frozen=True)
class Constants:
    """Everything that Prop. 1 and its lemmas name, for one set of lambda-bars."""

    S: Number
    rho: Number
    z_prop: Number
    z14: Number
    c1: Number
    c2: Number
    c3: Number
    lam: list[Number]

    def C(self, num: Arithmetic, loss: Number, form: str) -> Number:
        """The inverse of the largest step size."""
        size = 2 * loss if form == "printed" else num.sqrt(2 * loss)
        return self.c1 * self.c2 + self.c3 * size


def C_x_of(num: Arithmetic, X: list) -> Number:
    """max_n |X_n|_F / sqrt(d_s)."""
    return num.largest([norm(num, flat(one)) for one in X]) / num.sqrt(num.number(len(X[0])))


def constants(num: Arithmetic, data: Data, lam: list[Number], form: str) -> Constants:
    """At the lambda-bars (Q, K, V, O) of an instance's data and scales."""
    X, (tau0, tau1) = data["X"], data["tau"]
    return constants_at(num, len(X), len(X[0]), C_x_of(num, X), tau0, tau1, lam, form)


def constants_at(
    num: Arithmetic,
    N: Number,
    d_s: Number,
    C_x: Number,
    tau0: Number,
    tau1: Number,
    lam: list[Number],
    form: str,
) -> Constants:
    """The same from plain numbers."""
    Q, K, V, w = lam
    ds = num.number(d_s)
    root, S = num.sqrt(ds), ds * C_x * C_x
    whole = num.sqrt(num.number(N)) * ds * root * tau1 * C_x
    z = 2 * tau0 * S * (Q + K)
    printed = form == "printed"
    flow = V * z if printed else w * V * z
    by_q, by_k = 2 * tau0 * S * K * V * w, 2 * tau0 * S * Q * V * w
    extra = w * C_x * root * (1 + V * z) if printed else num.number(0)
    lines = [whole * (1 + V * z), whole * (w * z + extra + 1)]
    for side in (K, Q):
        tail = S + 3 * K * z if printed else S * (1 + 3 * side * z)
        inner = 2 * side * S * (V * (extra + 1) + w) + V * w * tail
        length = C_x if printed else root * C_x
        lines.append(num.sqrt(num.number(N)) * tau0 * tau1 * length * ds * inner)
    return Constants(
        S=S,
        rho=whole,
        z_prop=w**2 * (1 + 4 * (tau0 * S * V) ** 2 * (Q**2 + K**2)),
        z14=z,
        c1=whole * (V + w + flow),
        c2=whole * norm(num, [w, V, by_q, by_k]),
        c3=norm(num, lines),
        lam=lam,
    )


def conditions(
    num: Arithmetic, k: Constants, room: list[Number], alpha: Number, loss: Number
) -> tuple[Number, Number]:
    """Right over left side of (2) and of (3)."""
    Q, K, V, w = k.lam
    flow = V * w
    tau_S = k.z14 / (Q + K)  # 2 tau0 S
    worst = num.largest(
        [V / room[3], w / room[2], tau_S * K * flow / room[0], tau_S * Q * flow / room[1]]
    )
    size = num.sqrt(2 * loss)
    return 8 * k.rho * worst * size / alpha**2, 32 * k.rho**2 * k.z_prop / w * size / alpha**3
