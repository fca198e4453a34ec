"""wu2023 in plain loops over any arithmetic: its encoder, a run of it, and its constants.

Written apart from the rest, for rechecking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...theory import Table
from ...theory.slow import Arithmetic, dot, flat, norm, softmax, times
from ...theory.slow_spectrum import extreme_eigenvalues, operator_norm, outer_gram

Number = Any
Data = Mapping[str, Any]
BLOCKS = ("W_Q", "W_K", "W_V", "w_O")


@dataclass(frozen=True)
class Theta:
    """(W_Q, W_K, W_V, w_O) as nested lists."""

    W_Q: list[list[Number]]
    W_K: list[list[Number]]
    W_V: list[list[Number]]
    w_O: list[Number]

    def norms(self, num: Arithmetic) -> list[Number]:
        """||W_Q||, ||W_K||, ||W_V|| and |w_O|."""
        matrices = (self.W_Q, self.W_K, self.W_V)
        return [*(operator_norm(num, W) for W in matrices), norm(num, self.w_O)]

    def flat(self) -> list[Number]:
        """All entries."""
        return [*flat(self.W_Q), *flat(self.W_K), *flat(self.W_V), *self.w_O]


def theta_of(data: Data) -> Theta:
    """theta of a point."""
    return Theta(data["W_Q"], data["W_K"], data["W_V"], data["w_O"])


def moved(data: Data) -> tuple[Theta, Theta]:
    """The displacement and theta' = theta + displacement of a Move."""
    step = Theta(data["d_Q"], data["d_K"], data["d_V"], data["d_O"])
    return step, added(theta_of(data), step)


def added(theta: Theta, step: Theta, scale: Number = 1) -> Theta:
    """theta + scale * step."""

    def rows(A: Any, B: Any) -> Any:
        return [
            [x + scale * y for x, y in zip(a, b, strict=True)] for a, b in zip(A, B, strict=True)
        ]

    return Theta(
        rows(theta.W_Q, step.W_Q),
        rows(theta.W_K, step.W_K),
        rows(theta.W_V, step.W_V),
        [x + scale * y for x, y in zip(theta.w_O, step.w_O, strict=True)],
    )


def attention(num: Arithmetic, X: Any, theta: Theta, tau0: Number) -> list[list[Number]]:
    """beta_i for every token i."""
    queries, keys = [times(theta.W_Q, x) for x in X], [times(theta.W_K, x) for x in X]
    return [softmax(num, [tau0 * dot(q, k) for k in keys]) for q in queries]


def mixed(weights: Any, X: Any) -> list[Number]:
    """X^T beta."""
    return [dot(weights, column) for column in zip(*X, strict=True)]


@dataclass(frozen=True)
class Sample:
    """One sample: beta_i, phi_i, h_i, the units that are on, f_pre and f."""

    beta: list[list[Number]]
    phi: list[list[Number]]
    on: list[list[bool]]
    f_pre: list[Number]
    f: Number


def sample(num: Arithmetic, X: Any, theta: Theta, tau: Any, shift: Any = None) -> Sample:
    """The encoder with sum pooling on one sample; `shift[i]` is added to h_i (residual)."""
    beta = attention(num, X, theta, tau[0])
    phi = [mixed(weights, X) for weights in beta]
    h = [times(theta.W_V, row) for row in phi]
    if shift is not None:
        h = [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(h, shift, strict=True)]
    f_pre = [
        tau[1] * num.total([num.positive_part(row[k]) for row in h]) for k in range(len(theta.w_O))
    ]
    return Sample(
        beta, phi, [[bool(x > 0) for x in row] for row in h], f_pre, dot(theta.w_O, f_pre)
    )


def samples(num: Arithmetic, data: Data, theta: Theta) -> list[Sample]:
    """Every sample of a point."""
    return [sample(num, X, theta, data["tau"]) for X in data["X"]]


def features(num: Arithmetic, data: Data, theta: Theta) -> list[list[Number]]:
    """F_pre."""
    return [one.f_pre for one in samples(num, data, theta)]


def smallest_singular(num: Arithmetic, rows: Any) -> Number:
    """sigma_min of a matrix with at most as many rows as columns."""
    return num.root(extreme_eigenvalues(num, outer_gram(rows))[0])


def _on(x: Number) -> bool:
    """Whether a unit is on; the value decides, where a number also has a slope."""
    value: Any = getattr(x, "value", x)
    return bool(value > 0)


def _pulls(num: Arithmetic, X: Any, theta: Theta, tau: Any) -> tuple[Any, Any, Any]:
    """Per token: X^T beta_i, w_O o D_i, and u_i = X^T J_i X W_V^T (w_O o D_i)."""
    zero = num.number(0)
    phis, actives, us = [], [], []
    for weights in attention(num, X, theta, tau[0]):
        phi = mixed(weights, X)
        h = times(theta.W_V, phi)
        active = [w if _on(x) else zero for w, x in zip(theta.w_O, h, strict=True)]
        pulled = [dot(column, active) for column in zip(*theta.W_V, strict=True)]
        scores = [dot(x, pulled) for x in X]
        mean = dot(weights, scores)
        moved = [p * (score - mean) for p, score in zip(weights, scores, strict=True)]
        phis.append(phi)
        actives.append(active)
        us.append(mixed(moved, X))
    return phis, actives, us


def _outer_sum(num: Arithmetic, left: Any, right: Any, scale: Number) -> list[list[Number]]:
    """scale sum_i left_i right_i^T."""
    return [
        [
            scale * num.total([a[k] * b[j] for a, b in zip(left, right, strict=True)])
            for j in range(len(right[0]))
        ]
        for k in range(len(left[0]))
    ]


def gradient_Q(num: Arithmetic, X: Any, theta: Theta, tau: Any) -> list[list[Number]]:
    """df/dW_Q = tau0 tau1 sum_i (W_K u_i) x_i^T."""
    us = _pulls(num, X, theta, tau)[2]
    return _outer_sum(num, [times(theta.W_K, u) for u in us], X, tau[0] * tau[1])


def gradient(num: Arithmetic, X: Any, theta: Theta, tau: Any) -> Theta:
    """grad_theta f(X; theta) [wu2023, Lemmas 1 and 12, with relu' where relu is printed]."""
    phis, actives, us = _pulls(num, X, theta, tau)
    queries = [times(theta.W_Q, x) for x in X]
    return Theta(
        gradient_Q(num, X, theta, tau),
        _outer_sum(num, queries, us, tau[0] * tau[1]),
        _outer_sum(num, actives, phis, tau[1]),
        sample(num, X, theta, tau).f_pre,
    )


def jacobian(num: Arithmetic, data: Data, theta: Theta) -> list[Theta]:
    """The gradient of f at every sample."""
    return [gradient(num, X, theta, data["tau"]) for X in data["X"]]


def residual(num: Arithmetic, data: Data, theta: Theta) -> list[Number]:
    """f - y."""
    return [one.f - y for one, y in zip(samples(num, data, theta), data["y"], strict=True)]


def loss_gradient(num: Arithmetic, data: Data, theta: Theta, r: list[Number]) -> Theta:
    """sum_n r_n grad f(X_n): the gradient of (1/2)|f - y|^2 for r = f - y."""
    total = None
    for weight, slope in zip(r, jacobian(num, data, theta), strict=True):
        zero = added(slope, slope, num.number(-1))
        total = added(zero if total is None else total, slope, weight)
    assert total is not None
    return total


def half_square(num: Arithmetic, r: list[Number]) -> Number:
    """(1/2)|r|^2."""
    return num.total([x**2 for x in r]) / 2


def trajectory(num: Arithmetic, data: Data) -> tuple[list[Theta], list[list[Number]]]:
    """theta^0 .. theta^steps of a run, and the residual at each."""
    theta, r = theta_of(data), data["residual"]
    y = [one.f - e for one, e in zip(samples(num, data, theta), r, strict=True)]
    points, residuals = [theta], [r]
    for _ in range(data["steps"]):
        theta = added(theta, loss_gradient(num, data, theta, r), -data["gamma"])
        r = residual(num, {**data, "y": y}, theta)
        points.append(theta)
        residuals.append(r)
    return points, residuals


def C_x_of(num: Arithmetic, X: list) -> Number:
    """max_n |X_n|_F / sqrt(d_s)."""
    return num.largest([norm(num, flat(one)) for one in X]) / num.sqrt(num.number(len(X[0])))


class SlowConstants(Table):
    """The constants of Prop. 1 and its lemmas at a point's nested lists."""

    @cached_property
    def lam(self) -> list[Number]:
        """lambda-bars (Q, K, V, O): norms; with C_* for a run, the larger of two for a move."""
        data, num = self.symbols, self.num
        here = theta_of(data).norms(num)
        if "room" in data:
            return [a + b for a, b in zip(here, data["room"], strict=True)]
        if "d_Q" in data:
            there = moved(data)[1].norms(num)
            return [num.largest(pair) for pair in zip(here, there, strict=True)]
        return here

    @cached_property
    def N(self) -> Number:
        """Samples."""
        return self.num.number(len(self.symbols["X"]))

    @cached_property
    def d_s(self) -> Number:
        """Tokens."""
        return self.num.number(len(self.symbols["X"][0]))

    @cached_property
    def C_x(self) -> Number:
        return C_x_of(self.num, self.symbols["X"])

    @cached_property
    def S(self) -> Number:
        return self.d_s * self.C_x * self.C_x

    @cached_property
    def rho(self) -> Number:
        root = self.num.sqrt(self.d_s)
        return self.num.sqrt(self.N) * self.d_s * root * self.symbols["tau"][1] * self.C_x

    @cached_property
    def z14(self) -> Number:
        return 2 * self.symbols["tau"][0] * self.S * (self.lam[0] + self.lam[1])

    def logit_drift(self, on_q: Number, on_k: Number) -> Number:
        """The bound of Lemma 7 for moves of these sizes."""
        return 2 * self.symbols["tau"][0] * self.S * (self.lam[0] * on_k + self.lam[1] * on_q)

    @property
    def slopes(self) -> dict[str, Number]:
        """The factors of Lemma 12."""
        Q, K, V, w = self.lam
        flow = 2 * self.symbols["tau"][0] * self.S * V * w
        return {"W_Q": flow * K, "W_K": flow * Q, "W_V": w, "w_O": V}

    @cached_property
    def c1(self) -> Number:
        _, _, V, w = self.lam
        flow = V * self.z14 if self.form == "printed" else w * V * self.z14
        return self.rho * (V + w + flow)

    @cached_property
    def c2(self) -> Number:
        return self.rho * norm(self.num, list(self.slopes.values()))

    @cached_property
    def c3(self) -> Number:
        Q, K, V, w = self.lam
        num, (tau0, tau1), S, z = self.num, self.symbols["tau"], self.S, self.z14
        printed, root = self.form == "printed", self.num.sqrt(self.d_s)
        extra = w * self.C_x * root * (1 + V * z) if printed else num.number(0)
        lines = [self.rho * (1 + V * z), self.rho * (w * z + extra + 1)]
        for side in (K, Q):
            tail = S + 3 * K * z if printed else S * (1 + 3 * side * z)
            inner = 2 * side * S * (V * (extra + 1) + w) + V * w * tail
            length = self.C_x if printed else root * self.C_x
            lines.append(num.sqrt(self.N) * tau0 * tau1 * length * self.d_s * inner)
        return norm(num, lines)

    def jump(self, flipped: Number) -> Number:
        """The jump of the Jacobian across a kink."""
        Q, K, V, _ = self.lam
        flow = 2 * self.symbols["tau"][0] * self.S * V
        return self.rho * flipped * norm(self.num, [self.num.number(1), flow * Q, flow * K])

    @cached_property
    def C(self) -> Number:
        square = self.num.total([x**2 for x in self.symbols["residual"]])
        size = square if self.form == "printed" else self.num.sqrt(square)
        return self.c1 * self.c2 + self.c3 * size

    @cached_property
    def alpha(self) -> Number:
        rows = features(self.num, self.symbols, theta_of(self.symbols))
        return smallest_singular(self.num, rows)

    @property
    def promised(self) -> list[Number]:
        """(4) at t = 1 .. steps."""
        share = 4 if self.form == "quarter" else 2
        factor = 1 - self.symbols["gamma"] * self.alpha * self.alpha / share
        first = half_square(self.num, self.symbols["residual"])
        return [factor**t * first for t in range(1, self.symbols["steps"] + 1)]
