"""The slow side of arda2026: its model in plain loops, from the closed forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...theory.slow import Arithmetic, NaiveActivation, activation, dot, flat, softmax, times

Number = Any
Data = Mapping[str, Any]


@dataclass(frozen=True)
class Head:
    """One head on one sample: weights alpha, pooled token a, M, h and its theta-gradient."""

    alpha: list[Number]
    a: list[Number]
    M: list[list[Number]]
    third: list[list[Number]]
    h: Number
    slope: Number
    curvature: Number
    grad_U: list[Number]
    grad_W: list[list[Number]]

    @property
    def gradient(self) -> list[Number]:
        """(grad_U h, vec grad_W h)."""
        return self.grad_U + flat(self.grad_W)


def head(num: Arithmetic, sigma: NaiveActivation, X: Any, q: Any, U: Any, W: Any) -> Head:
    """Eqs. (2), (3), (7), (8) written out; `third` is the third central moment in direction U."""
    T, d = len(X), len(q)
    alpha = softmax(num, [dot(X[t], times(W, q)) for t in range(T)])
    a = [dot(alpha, [X[t][k] for t in range(T)]) for k in range(d)]
    centred = [[X[t][k] - a[k] for k in range(d)] for t in range(T)]
    M = [[dot(alpha, [row[k] * row[l] for row in centred]) for l in range(d)] for k in range(d)]
    third = [
        [dot(alpha, [row[k] * row[l] * dot(row, U) for row in centred]) for l in range(d)]
        for k in range(d)
    ]
    z = dot(U, a)
    slope = sigma.slope(z)
    MU = times(M, U)
    return Head(
        alpha=alpha,
        a=a,
        M=M,
        third=third,
        h=sigma.value(z),
        slope=slope,
        curvature=sigma.curvature(z),
        grad_U=[slope * a[k] for k in range(d)],
        grad_W=[[slope * MU[k] * q[l] for l in range(d)] for k in range(d)],
    )


def one_head(num: Arithmetic, data: Data) -> Head:
    """The head of a `Head`."""
    sigma = activation(num, data["activation"])
    return head(num, sigma, data["X"], data["q"], data["U"], data["W"])


def value_hessian(num: Arithmetic, data: Data) -> list[list[Number]]:
    """The Hessian of z = U.a in (U, vec W): blocks 0, M (x) q and third (x) q q^T [Lemma 2b]."""
    unit = one_head(num, data)
    q = data["q"]
    d = len(q)
    zero = num.number(0)
    size = d + d * d
    H = [[zero for _ in range(size)] for _ in range(size)]
    for k in range(d):
        for i in range(d):
            for j in range(d):
                mixed = unit.M[k][i] * q[j]
                H[k][d + i * d + j] = mixed
                H[d + i * d + j][k] = mixed
                for l in range(d):
                    H[d + k * d + l][d + i * d + j] = unit.third[k][i] * q[l] * q[j]
    return H


def head_hessian(num: Arithmetic, data: Data) -> list[list[Number]]:
    """sigma'' grad z grad z^T + sigma' Hess z [arda2026, Eq. (15)]."""
    unit = one_head(num, data)
    q = data["q"]
    slope_free = unit.a + [row * column for row in times(unit.M, data["U"]) for column in q]
    H = value_hessian(num, data)
    return [
        [
            unit.curvature * slope_free[r] * slope_free[s] + unit.slope * H[r][s]
            for s in range(len(H))
        ]
        for r in range(len(H))
    ]


@dataclass(frozen=True)
class Parameters:
    """(c, U, W) of m heads."""

    c: list[Number]
    U: list[list[Number]]
    W: list[list[list[Number]]]


def initial(data: Data) -> Parameters:
    """phi0."""
    return Parameters(data["c0"], data["U0"], data["W0"])


def _moved(num: Arithmetic, data: Data, radii: Any, dc: Any, dU: Any, dW: Any) -> Parameters:
    m, d = len(data["c0"]), len(data["U0"][0])
    root = num.sqrt(num.number(m))
    return Parameters(
        [data["c0"][i] + radii[0] / root * dc[i] for i in range(m)],
        [[data["U0"][i][k] + radii[1] / root * dU[i][k] for k in range(d)] for i in range(m)],
        [
            [
                [data["W0"][i][k][l] + radii[2] / root * dW[i][k][l] for l in range(d)]
                for k in range(d)
            ]
            for i in range(m)
        ],
    )


def current(num: Arithmetic, data: Data) -> Parameters:
    """phi."""
    return _moved(num, data, data["rho"], data["dc"], data["dU"], data["dW"])


def transported(num: Arithmetic, data: Data) -> Parameters:
    """phi~ [arda2026, Eq. (10)]."""
    c0 = data["c0"]
    vu = [[c0[i] * entry for entry in row] for i, row in enumerate(data["vu"])]
    vw = [[[c0[i] * e for e in row] for row in rows] for i, rows in enumerate(data["vw"])]
    return _moved(num, data, data["nu"], data["vc"], vu, vw)


def heads(num: Arithmetic, data: Data, j: int, phi: Parameters) -> list[Head]:
    """All heads on sample j."""
    sigma = activation(num, data["activation"])
    return [
        head(num, sigma, data["X"][j], data["q"][j], phi.U[i], phi.W[i]) for i in range(len(phi.c))
    ]


def output(num: Arithmetic, data: Data, j: int, phi: Parameters) -> Number:
    """f(X_j; phi) [arda2026, Eq. (4)]."""
    units = heads(num, data, j, phi)
    return dot(phi.c, [unit.h for unit in units]) / num.sqrt(num.number(len(phi.c)))


def gradients(num: Arithmetic, data: Data, j: int, phi: Parameters) -> list[list[Number]]:
    """Per head the vector (df/dc_i, grad_U_i f, vec grad_W_i f) at X_j [arda2026, Lemma 1]."""
    root = num.sqrt(num.number(len(phi.c)))
    return [
        [unit.h / root] + [c * entry / root for entry in unit.gradient]
        for c, unit in zip(phi.c, heads(num, data, j, phi), strict=True)
    ]


def difference(phi: Parameters, other: Parameters) -> list[list[Number]]:
    """phi - other, one vector (c, U, vec W) per head."""
    rows = []
    for i in range(len(phi.c)):
        here = [phi.c[i], *phi.U[i], *flat(phi.W[i])]
        there = [other.c[i], *other.U[i], *flat(other.W[i])]
        rows.append([x - y for x, y in zip(here, there, strict=True)])
    return rows


def linear(num: Arithmetic, data: Data, j: int, phi: Parameters) -> Number:
    """f_lin(X_j; phi) [arda2026, Definition 3]."""
    start = initial(data)
    slopes = gradients(num, data, j, start)
    moved = difference(phi, start)
    total = output(num, data, j, start)
    for slope, shift in zip(slopes, moved, strict=True):
        total = total + dot(slope, shift)
    return total


def samples(data: Data) -> range:
    """The indices of the samples."""
    return range(len(data["X"]))


def labels(num: Arithmetic, data: Data) -> list[Number]:
    """y_j: the labels in units of y_max* = s0 nu_c + s1 (nu_u + nu_w)."""
    s0, s1, _ = activation(num, data["activation"]).bounds
    nu = data["nu"]
    size = s0 * nu[0] + s1 * (nu[1] + nu[2])
    return [size * label for label in data["labels"]]


def squared(rows: list[list[Number]]) -> Number:
    """The sum of squares of all entries."""
    return dot(flat(rows), flat(rows))
