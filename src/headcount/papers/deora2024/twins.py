"""The model of deora2024 in plain loops, from closed forms: the slow twin for rechecking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...theory.slow import Arithmetic, dot, flat, norm, softmax, times
from ...theory.slow_spectrum import operator_norm, smallest_eigenvalue

Number = Any
Data = Mapping[str, Any]
Rows = list[list[Number]]


@dataclass(frozen=True)
class Head:
    """One head on one sample: value, gradient and what the Hessian needs, query by query."""

    value: Number
    gradient: list[Number]
    """(grad_U, vec grad_W), U in the shape of the read-out."""
    attention: list[list[Number]]
    covariances: list[list[list[Number]]]
    thirds: list[list[list[Number]]]


def queries(T: int, readout: str) -> list[tuple[int, int]]:
    """(query t, row of U that reads it): every row its own, one row for all, or the last alone."""
    if readout == "full":
        return [(t, t) for t in range(T)]
    return [(t, 0) for t in range(T)] if readout == "pooling" else [(T - 1, 0)]


def head(num: Arithmetic, X: Any, U: Any, W: Any, readout: str = "full") -> Head:
    """Phi and its derivatives from the moments of the tokens under attention [Lemma 4]."""
    T, d = len(X), len(X[0])
    zero = num.number(0)
    value = zero
    grad_U = [[zero for _ in range(d)] for _ in U]
    grad_W = [[zero for _ in range(d)] for _ in range(d)]
    attention, covariances, thirds = [], [], []
    for t, slot in queries(T, readout):
        # The logit of key s under query t is x_t . W x_s.
        P = softmax(num, [dot(X[t], times(W, X[s])) for s in range(T)])
        mean = [dot(P, [X[s][k] for s in range(T)]) for k in range(d)]
        away = [[X[s][k] - mean[k] for k in range(d)] for s in range(T)]
        along = [dot(row, U[slot]) for row in away]
        cov = [[dot(P, [r[k] * r[l] for r in away]) for l in range(d)] for k in range(d)]
        third = [
            [dot(P, [r[k] * r[l] * s for r, s in zip(away, along, strict=True)]) for l in range(d)]
            for k in range(d)
        ]
        pull = times(cov, U[slot])
        value = value + dot(mean, U[slot])
        for k in range(d):
            grad_U[slot][k] = grad_U[slot][k] + mean[k]
            for l in range(d):
                grad_W[k][l] = grad_W[k][l] + X[t][k] * pull[l]
        attention.append(P)
        covariances.append(cov)
        thirds.append(third)
    return Head(value, flat(grad_U) + flat(grad_W), attention, covariances, thirds)


def hessian(num: Arithmetic, X: Any, U: Any, W: Any, readout: str = "full") -> Rows:
    """Blocks 0 (U-U), x_t (x) Cov_t (U-W) and sum_t x_t x_t^T (x) third_t(u_t) (W-W)."""
    unit = head(num, X, U, W, readout)
    d = len(X[0])
    lead = d * len(U)
    size = lead + d * d
    A = [[num.number(0) for _ in range(size)] for _ in range(size)]
    for (t, slot), cov, third in zip(
        queries(len(X), readout), unit.covariances, unit.thirds, strict=True
    ):
        for k in range(d):
            for l in range(d):
                w = lead + k * d + l
                for b in range(d):
                    mixed = X[t][k] * cov[b][l]
                    A[slot * d + b][w] = A[slot * d + b][w] + mixed
                    A[w][slot * d + b] = A[w][slot * d + b] + mixed
                    for j in range(d):
                        v = lead + b * d + j
                        A[w][v] = A[w][v] + X[t][k] * X[t][b] * third[l][j]
    return A


def parameters(data: Data) -> Rows:
    """(U_g, W_g) of every group as one list."""
    return [flat(U) + flat(W) for U, W in zip(data["U"], data["W"], strict=True)]


def move(data: Data) -> Rows:
    """The step (dU_g, dW_g) of every group as one list."""
    return parameters({"U": data["dU"], "W": data["dW"]})


def split(row: Sequence[Number], d: int) -> tuple[Any, Any]:
    """(U, W) of one group as lists of rows."""
    lead = len(row) - d * d
    U = [list(row[s : s + d]) for s in range(0, lead, d)]
    return U, [list(row[s : s + d]) for s in range(lead, len(row), d)]


def total(num: Arithmetic, data: Data) -> Number:
    """H."""
    return num.total(data["k"])


def token_bound(num: Arithmetic, data: Data) -> Number:
    """R: the largest token norm, at least 1."""
    X = data["X"]
    tokens = [x for sample in X for x in sample] if isinstance(X[0][0], (list, tuple)) else X
    return num.largest([num.number(1)] + [norm(num, token) for token in tokens])


def shape(data: Data) -> tuple[int, int]:
    """(T, d)."""
    return len(data["X"][0]), len(data["X"][0][0])


@dataclass(frozen=True)
class Sample:
    """One sample under all groups: y Phi~, its loss with two derivatives, heads' gradients."""

    margin: Number
    loss: Number
    slope: Number
    curvature: Number
    gradients: Rows


def softplus(num: Arithmetic, x: Number) -> Number:
    """log(1 + e^x)."""
    tail = num.exp(-num.absolute(x))
    if num.roughly(tail) < 1e-30:  # 1 + tail would forget the tail
        return num.positive_part(x) + num.between(tail - tail * tail / 2, tail)
    return num.positive_part(x) + num.log(1 + tail)


def margins(num: Arithmetic, data: Data, rows: Rows) -> list[Number]:
    """y_i Phi~(X_i) alone."""
    T, d = shape(data)
    root, found = num.sqrt(total(num, data)), []
    for X, y in zip(data["X"], data["y"], strict=True):
        values = []
        for U, W in (split(row, d) for row in rows):
            reads = [
                dot(softmax(num, [dot(X[t], times(W, x)) for x in X]), times(X, U[slot]))
                for t, slot in queries(T, data["readout"])
            ]
            values.append(num.total(reads))
        found.append(y * dot(data["k"], values) / root)
    return found


def samples(num: Arithmetic, data: Data, rows: Rows) -> list[Sample]:
    """Every sample of a data set."""
    _, d = shape(data)
    root = num.sqrt(total(num, data))
    found = []
    for X, y in zip(data["X"], data["y"], strict=True):
        units = [head(num, X, *split(row, d), data["readout"]) for row in rows]
        z = y * dot(data["k"], [unit.value for unit in units]) / root
        below, above = softplus(num, -z), softplus(num, z)
        found.append(
            Sample(
                z,
                below,
                -num.exp(-above),
                num.exp(-above - below),
                [unit.gradient for unit in units],
            )
        )
    return found


def mean_loss(num: Arithmetic, parts: Sequence[Sample]) -> Number:
    """L."""
    return num.total([part.loss for part in parts]) / len(parts)


def loss(num: Arithmetic, data: Data, rows: Rows) -> Number:
    """L at these parameters."""
    return mean_loss(num, samples(num, data, rows))


def loss_gradient(
    num: Arithmetic, data: Data, parts: Sequence[Sample], weights: Sequence[Number] | None = None
) -> Rows:
    """Each head's gradient of L; `weights` replace 1/n."""
    root, n = num.sqrt(total(num, data)), len(parts)
    share = [num.number(1) / n] * n if weights is None else weights
    factors = [w * p.slope * y / root for w, p, y in zip(share, parts, data["y"], strict=True)]
    return [
        [dot(factors, [part.gradients[g][q] for part in parts]) for q in range(len(row))]
        for g, row in enumerate(parts[0].gradients)
    ]


def squared_length(num: Arithmetic, data: Data, rows: Rows) -> Number:
    """The squared norm in the full parameter space."""
    return num.total([k * dot(row, row) for k, row in zip(data["k"], rows, strict=True)])


def length(num: Arithmetic, data: Data, rows: Rows) -> Number:
    """The norm in the full parameter space."""
    return num.root(squared_length(num, data, rows))


def widest(num: Arithmetic, rows: Rows) -> Number:
    """|theta|_{2,inf}."""
    return num.largest([norm(num, row) for row in rows])


def longest_readout(num: Arithmetic, data: Data) -> Number:
    """max_h |U_h|_F."""
    return num.largest([norm(num, flat(U)) for U in data["U"]])


def combined(first: Rows, second: Rows, weight: Number) -> Rows:
    """first + weight second, entry by entry."""
    return [
        [a + weight * b for a, b in zip(r, s, strict=True)]
        for r, s in zip(first, second, strict=True)
    ]


def difference(first: Rows, second: Rows) -> Rows:
    """first - second."""
    return combined(first, second, -1)


def head_hessians(num: Arithmetic, data: Data, rows: Rows) -> list[list[Rows]]:
    """Hess Phi for every sample and group."""
    _, d = shape(data)
    return [[hessian(num, X, *split(row, d), data["readout"]) for row in rows] for X in data["X"]]


def model_hessian_norms(num: Arithmetic, data: Data) -> list[Number]:
    """|Hess Phi~(X_i)|, block by block."""
    root = num.sqrt(total(num, data))
    tables = head_hessians(num, data, parameters(data))
    return [num.largest([operator_norm(num, A) for A in row]) / root for row in tables]


def loss_hessians(num: Arithmetic, data: Data, rows: Rows) -> list[Rows]:
    """The reduced Hessian of L, then one head's block for each group of two or more heads."""
    parts = samples(num, data, rows)
    H, n, p = total(num, data), len(parts), len(rows[0])
    root = num.sqrt(H)
    tables = head_hessians(num, data, rows)
    signed = [part.slope * y / (n * root) for part, y in zip(parts, data["y"], strict=True)]
    blocks = [
        [[dot(signed, [t[g][r][s] for t in tables]) for s in range(p)] for r in range(p)]
        for g in range(len(rows))
    ]
    scales = [num.sqrt(k) / root for k in data["k"]]
    whole = []
    for g, own in enumerate(blocks):
        for r in range(p):
            line = []
            for h in range(len(rows)):
                for s in range(p):
                    outer = num.total(
                        [q.curvature * q.gradients[g][r] * q.gradients[h][s] / n for q in parts]
                    )
                    entry = outer * scales[g] * scales[h]
                    line.append(entry + own[r][s] if g == h else entry)
            whole.append(line)
    several = [block for k, block in zip(data["k"], blocks, strict=True) if k > 1]
    return [whole, *several]


def loss_hessian_ends(num: Arithmetic, data: Data, rows: Rows) -> tuple[Number, Number]:
    """(smallest, largest) eigenvalue of Hess L, both around 0."""
    tables = loss_hessians(num, data, rows)
    zero = num.number(0)
    low = [smallest_eigenvalue(num, A) for A in tables]
    high = [-smallest_eigenvalue(num, [[-x for x in row] for row in A]) for A in tables]
    return num.smallest([*low, zero]), num.largest([*high, zero])
