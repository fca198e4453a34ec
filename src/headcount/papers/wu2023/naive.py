"""The encoder of wu2023 in plain loops, from its formulas: the slow twin for rechecking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    """theta of an instance."""
    return Theta(data["W_Q"], data["W_K"], data["W_V"], data["w_O"])


def moved(data: Data) -> tuple[Theta, Theta]:
    """The displacement and theta' = theta + displacement of a PairInstance."""
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
    """Every sample of an instance."""
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
