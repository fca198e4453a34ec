"""The constants of arda2026 in slow arithmetic, written apart from `constants`."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ...theory import Table
from ...theory.slow import Arithmetic, activation, dot, norm
from .twins import Number, difference, initial, squared, transported


class SlowConstants(Table):
    """The constants by the names of `Constants`; what a point does not have is as in Sec. 6."""

    def _or(self, name: str, otherwise: Any) -> Any:
        return self.symbols.get(name, otherwise)

    sharp = property(lambda k: k.form == "sharp")
    bounds = cached_property(lambda k: activation(k.num, k._or("activation", "tanh")).bounds)
    rho = property(lambda k: k._or("rho", [k.num.number(3)] * 3))
    nu = property(lambda k: k._or("nu", [k.num.number(3)] * 3))
    delta = property(lambda k: k._or("delta", k.num.number("0.05")))
    tau = property(lambda k: k.symbols["tau"])
    root = property(lambda k: k.num.sqrt(k.m))

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
    def eta(self) -> Number:
        """The step size."""
        return self.symbols["eta"] if "eta" in self.symbols else 1 / self.num.sqrt(self.tau)

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

    _slope = property(lambda k: k.num.sqrt(k.num.number(1) + k.B_U * k.B_U))

    @cached_property
    def L2(self) -> Number:
        """Of Lemma 2 (b)."""
        num, B, (_, s1, s2) = self.num, self.B_U, self.bounds
        if self.sharp:
            mixed = num.sqrt(2 + (num.number(32) / 27 * B) ** 2)
            return s2 * num.largest([num.number(1), B * B]) + s1 * mixed
        return s2 * self._slope * self._slope + 8 * s1 * self._slope

    k = cached_property(lambda k: norm(k.num, k.rho[1:]))
    lengths = cached_property(lambda k: norm(k.num, k.rho) + norm(k.num, k.nu))
    nu_squared = property(lambda k: dot(k.nu, k.nu))
    start = property(lambda k: k.V0 if k.form == "measured" else k.nu_squared)

    @cached_property
    def V0(self) -> Number:
        """|phi0 - phi~|^2."""
        start, target = initial(self.symbols), transported(self.num, self.symbols)
        return squared(difference(start, target))

    B_app = property(lambda k: k.approximation("sharp" if k.sharp else "corrected"))

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

    distance = property(lambda k: k.lengths / k.root)  # (32)
    change_theta = property(lambda k: (k.L2 * k.k + k.rho[0] * k.L1) / k.m)  # (35)
    change_c = property(lambda k: k.L1 * k.k / k.m)  # (36)

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

    f_max = property(lambda k: k.L1 * k.k + k.bounds[0] * k.rho[0])  # Lemma 6

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

    B_grad = property(lambda k: (2 * (k.f_max + k.y_max) * k.A) ** 2)  # (42)


def event_radius(num: Arithmetic, d: Number, m: Number, delta_prime: Number) -> Number:
    """sqrt(d) + sqrt(2 ln(m / (2 delta'))) [arda2026, Def. 1]."""
    return num.sqrt(d) + num.sqrt(2 * num.log(m / 2 / delta_prime))
