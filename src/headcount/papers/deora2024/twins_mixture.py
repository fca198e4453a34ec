"""A sample of DM1 in plain loops, and the margins of its start: the slow twin of `mixture`."""

from __future__ import annotations

from typing import Any

from ...theory.slow import Arithmetic, dot
from .twins import Data


class SlowMixture:
    """The twin of `Mixture`'s properties, as lists."""

    def __init__(self, num: Arithmetic, data: Data) -> None:
        self.num = num
        self.S, self.Z_mu, self.Z_nu = data["S"], data["Z_mu"], data["Z_nu"]
        self.y, self.p, self.eps, self.L = data["y"], data["p"], data["eps"], int(data["L"])
        self.kind = data["kind"]
        self.M, self.T = len(data["on_nu"][0]), self.L + len(data["on_mu"])
        self.d = self.M + 2
        self.zeta = num.number(self.L) / self.T
        self.on_mu = [[self.Z_mu * e for e in row] for row in data["on_mu"]]
        self.on_nu = [[self.Z_nu / self.M * e for e in row] for row in data["on_nu"]]
        pairs = zip(self.on_mu, self.on_nu, strict=True)
        self.noise = [[e / self.S for e in (*a, *b)] for a, b in pairs]
        self.Z = num.sqrt(2 * self.Z_mu**2 + self.Z_nu**2 / self.M) / self.S
        inside = self.S**2 + self.Z**2 + 2 * self.Z_nu / self.M
        self.R = num.largest([num.number(1), num.sqrt(inside)])
        self.P = num.root(dot(self.p, self.p))
        self.X = self._tokens()
        self.u_star = self._pattern(0, 1)
        self.u_star[1] = -self.S

    def _pattern(self, *entries: int) -> list[Any]:
        return [self.S if k in entries else self.num.number(0) for k in range(self.d)]

    def _tokens(self) -> list[list[Any]]:
        own = 0 if self.num.roughly(self.y) > 0 else 1
        tokens = [self._pattern(own) for _ in range(self.L)]
        zero = self.num.number(0)
        for kind, z in zip(self.kind, self.noise, strict=True):
            nu = [zero, zero, *(self.S * e for e in kind)]
            tokens.append([a + b for a, b in zip(nu, z, strict=True)])
        return tokens

    def scores(self) -> list[list[Any]]:
        """r_t = X W_*^T x_t, from the inner products with the patterns [(108), (110)]."""
        plus, minus = ([x[k] * self.S for x in self.X] for k in (0, 1))
        others = [self.num.total(x[2:]) * self.S for x in self.X]
        return [
            [p * q + m * n + o * (q + n) for q, n in zip(plus, minus, strict=True)]
            for p, m, o in zip(plus, minus, others, strict=True)
        ]

    def row(self, form: str) -> list[Any]:
        """The row of a start."""
        centre = self.zeta / (2 if form in ("printed", "uniform") else 4)
        return [centre * u + p for u, p in zip(self.u_star, self.p, strict=True)]

    def root_2T(self) -> Any:
        """sqrt(2T)."""
        return self.num.sqrt(self.num.number(2 * self.T))

    def linear_margin(self) -> Any:
        """y <u_*, sum x>/(S sqrt(2T))."""
        total = self.num.total([dot(x, self.u_star) for x in self.X])
        return self.y * total / (self.S * self.root_2T())

    def tangent_margin(self, form: str) -> tuple[Any, Any]:
        """m(X, y) in closed form: the linear margin and y 1^T r Cov-weighted."""
        along = [dot(x, self.row(form)) for x in self.X]
        centred = [(a - self.num.total(along) / self.T) / self.T for a in along]
        pulled = self.num.total([dot(r, centred) for r in self.scores()])
        size = self.S * self.S * self.num.sqrt(self.num.number(2 * (self.M + 1)))
        return self.linear_margin(), self.y * pulled / size

    def gamma_lin(self) -> Any:
        """(132)."""
        bound = self.L * self.S * self.S - 2 * (self.T - self.L) * self.Z_mu
        return bound / (self.S * self.root_2T())

    def gamma_star(self, form: str) -> Any:
        """(7), and in its sharp form what p costs at most is P T R^3."""
        num, Zbar, S2 = self.num, self.num.largest([self.Z_mu, self.Z_nu]), self.S * self.S
        bracket = self.zeta * S2 * S2 - 7 * Zbar * S2 - 12 * Zbar**2 - 16 * Zbar**3 / S2
        lead = self.T * (1 - self.zeta) * self.zeta / (4 * num.sqrt(num.number(2 * (self.M + 1))))
        T = num.number(self.T)
        loose = self.P * T**2 * num.sqrt(T) * (self.S + self.Z) ** 3
        cost = self.P * T * self.R**3 if form == "sharp" else loose
        return lead * bracket - cost + self.gamma_lin()

    def head_slope(self) -> Any:
        """(118)."""
        T = self.num.number(self.T)
        return 2 * self.R**3 * T * (self.S + self.P) + self.num.sqrt(T) * self.R
