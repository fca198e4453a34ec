"""The slow side of arda2026: its model in plain loops, from the closed forms, and its constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...theory import Table
from ...theory.slow import Arithmetic, NaiveActivation, activation, dot, flat, norm, softmax, times

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


class SlowConstants(Table):
    """The constants, written apart; what a point does not have is as in Sec. 6."""

    def _or(self, name: str, otherwise: Any) -> Any:
        return self.symbols.get(name, otherwise)

    @property
    def sharp(self) -> bool:
        """Whether the form is the sharp one."""
        return bool(self.form == "sharp")

    @cached_property
    def bounds(self) -> tuple[Number, Number, Number]:
        """s0, s1, s2."""
        return activation(self.num, self._or("activation", "tanh")).bounds

    @property
    def rho(self) -> list[Number]:
        """The radii of the feasible set."""
        return self._or("rho", [self.num.number(3)] * 3)

    @property
    def nu(self) -> list[Number]:
        """The radii of the class."""
        return self._or("nu", [self.num.number(3)] * 3)

    @property
    def delta(self) -> Number:
        """The probability that the approximation may fail with."""
        return self._or("delta", self.num.number("0.05"))

    @property
    def d(self) -> Number:
        """Features."""
        if "d" in self.symbols:
            return self.symbols["d"]
        q = self.symbols["q"]
        return self.num.number(len(q[0] if isinstance(q[0], list) else q))

    @property
    def n(self) -> Number:
        """Samples."""
        size = self.symbols["n"] if "n" in self.symbols else len(self.symbols["X"])
        return self.num.number(size)

    @property
    def m(self) -> Number:
        """The width; points with half a start have two heads for each."""
        if "m" in self.symbols:
            return self.symbols["m"]
        half = 1 if "c0" in self.symbols else 2
        return self.num.number(half * len(self.symbols["U0"]))

    @property
    def tau(self) -> Number:
        """Steps."""
        return self.symbols["tau"]

    @property
    def eta(self) -> Number:
        """The step size."""
        return self.symbols["eta"] if "eta" in self.symbols else 1 / self.num.sqrt(self.tau)

    @property
    def root(self) -> Number:
        """sqrt(m)."""
        return self.num.sqrt(self.m)

    @cached_property
    def B_U(self) -> Number:
        """|U| of a head; max |U_i0| + rho_u/sqrt m of a model; else a priori."""
        num = self.num
        if "U" in self.symbols:
            return norm(num, self.symbols["U"])
        if "U0" in self.symbols:
            longest = num.largest(norm(num, row) for row in self.symbols["U0"])
        else:
            longest = event_radius(num, self.d, self.m, num.number("0.05"))
        return longest + self.rho[1] / self.root

    @cached_property
    def L1(self) -> Number:
        """Of Lemma 2 (a)."""
        one = self.num.number(1)
        size = self.num.largest([one, self.B_U]) if self.sharp else self._slope
        return self.bounds[1] * size

    @property
    def _slope(self) -> Number:
        return self.num.sqrt(self.num.number(1) + self.B_U * self.B_U)

    @cached_property
    def L2(self) -> Number:
        """Of Lemma 2 (b)."""
        num, B, (_, s1, s2) = self.num, self.B_U, self.bounds
        if self.sharp:
            mixed = num.sqrt(2 + (num.number(32) / 27 * B) ** 2)
            return s2 * num.largest([num.number(1), B * B]) + s1 * mixed
        return s2 * self._slope * self._slope + 8 * s1 * self._slope

    @cached_property
    def k(self) -> Number:
        """|(rho_u, rho_w)|."""
        return norm(self.num, self.rho[1:])

    @cached_property
    def lengths(self) -> Number:
        """|rho| + |nu|."""
        return norm(self.num, self.rho) + norm(self.num, self.nu)

    @property
    def nu_squared(self) -> Number:
        """|nu|^2."""
        return dot(self.nu, self.nu)

    @cached_property
    def V0(self) -> Number:
        """|phi0 - phi~|^2."""
        start, target = initial(self.symbols), transported(self.num, self.symbols)
        return squared(difference(start, target))

    @property
    def start(self) -> Number:
        """V(phi0) in the form "measured", else |nu|^2."""
        return self.V0 if self.form == "measured" else self.nu_squared

    @property
    def B_app(self) -> Number:
        """Of Lemma 5, as it is proved."""
        return self.approximation("sharp" if self.sharp else "corrected")

    def approximation(self, form: str) -> Number:
        """Of Lemma 5 in one of its forms."""
        num, nu, (s0, s1, s2) = self.num, self.nu, self.bounds
        two, logarithm = num.number(2), num.log(2 * self.n / self.delta)
        s = {"printed": s2, "corrected": s1, "sharp": num.sqrt(two) * s1}[form]
        rate = logarithm / self.m if form == "sharp" else two * logarithm / self.m
        return two * (s0 * nu[0] + s1 * nu[1] + s * nu[2]) * num.sqrt(rate)

    @property
    def B_lin(self) -> Number:
        """Of Lemma 3."""
        curvature = self.L2 / 2 if self.sharp else self.L2
        return (self.L1 * self.rho[0] * self.k + curvature * self.k * self.k) / self.root

    @property
    def distance(self) -> Number:
        """Of (32)."""
        return self.lengths / self.root

    @property
    def change_c(self) -> Number:
        """Of (36)."""
        return self.L1 * self.k / self.m

    @property
    def change_theta(self) -> Number:
        """Of (35)."""
        return (self.L2 * self.k + self.rho[0] * self.L1) / self.m

    @property
    def change(self) -> Number:
        """Of (37)."""
        both = [self.change_c, self.change_theta]
        return norm(self.num, both) if self.sharp else both[0] + both[1]

    @property
    def B_CoF(self) -> Number:
        """Of (38)."""
        slopes = (self.L1 + self.L2) * self.k + self.rho[0] * self.L1
        return slopes * self.lengths / self.root

    @property
    def f_max(self) -> Number:
        """Of Lemma 6."""
        return self.L1 * self.k + self.bounds[0] * self.rho[0]

    @property
    def y_max(self) -> Number:
        """Of Lemma 6."""
        s0, s1, _ = self.bounds
        root = self.num.number(1) if self.sharp else self.num.sqrt(self.d)
        return s0 * self.nu[0] + s1 * self.nu[1] + s1 * self.nu[2] * root

    @property
    def A(self) -> Number:
        """Of (41)."""
        theta = (self.num.number(1) + self.rho[0] / self.root) * self.L1
        s0 = self.bounds[0]
        return norm(self.num, [s0, theta]) if self.sharp else s0 + theta

    @property
    def B_grad(self) -> Number:
        """Of (42)."""
        return (2 * (self.f_max + self.y_max) * self.A) ** 2


def event_radius(num: Arithmetic, d: Number, m: Number, delta_prime: Number) -> Number:
    """sqrt(d) + sqrt(2 ln(m / (2 delta'))) [arda2026, Def. 1]."""
    return num.sqrt(d) + num.sqrt(2 * num.log(m / 2 / delta_prime))


def squared(rows: list[list[Number]]) -> Number:
    """The sum of squares of all entries."""
    return dot(flat(rows), flat(rows))
