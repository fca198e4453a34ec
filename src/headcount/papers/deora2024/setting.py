"""A setting of deora2024: the numbers that its theorems' right sides depend on, without data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ...core import check_choice, check_count, check_nonnegative, check_positive
from ...models import READOUTS
from . import constants


@dataclass(frozen=True)
class Setting:
    """(n, T, d, H, R, D, N, L(theta), L(theta_0), K, eta, B_2, B_Phi, gamma) of deora2024.

    D = |theta - theta_0|, N = |theta|_{2,inf} and L(theta) belong to a target theta (Theorems 3
    and 4); B_2, B_Phi and gamma to a good start (Corollary 5). `eta` None is the largest step that
    the theorem in question allows. L_theta defaults to D^2/K, the level that the paper suggests.
    """

    T: int = 10
    d: int = 4
    H: int = 16
    n: int = 100
    R: float = 2.2
    D: float = 3.0
    N: float = 1.0
    K: int = 1500
    eta: float | None = None
    L_target: float | None = None
    L_0: float = math.log(2)
    B_2: float = 1.0
    B_Phi: float = 1.0
    gamma: float = 0.5
    readout: str = "full"

    def __post_init__(self) -> None:
        for argument in ("T", "d", "H", "n", "K"):
            check_count(argument, getattr(self, argument))
        for argument in ("R", "D", "B_2", "B_Phi", "gamma", "L_0"):
            check_positive(argument, getattr(self, argument))
        check_nonnegative("N", self.N)
        check_choice("readout", self.readout, READOUTS)
        if self.eta is not None:
            check_positive("eta", self.eta)
        if self.L_target is not None:
            check_nonnegative("L_target", self.L_target)

    @property
    def L_theta(self) -> float:
        """L(theta)."""
        return self.D**2 / self.K if self.L_target is None else self.L_target

    def largest_step(self, tier: str) -> float:
        """The largest eta of Theorem 3."""
        B = constants.reach(self.D, self.N)
        rho = constants.rho(B, self.R, float(self.H), self.T, self.d, tier, self.readout)
        return float(constants.largest_step(rho, self.D, self.K, self.L_theta, self.L_0))

    def step(self, tier: str) -> float:
        """eta, by default the largest that Theorem 3 allows."""
        return self.largest_step(tier) if self.eta is None else self.eta

    def g_0(self, form: str = "corrected") -> float:
        """The realizability distance at 1/K [deora2024, Prop. 7]."""
        return float(constants.g_0(self.B_Phi, self.gamma, 1 / self.K, form))

    def start_step(self, tier: str) -> float:
        """The largest eta of Corollary 5."""
        B = 4 * self.g_0() + self.B_2
        rho = constants.rho(B, self.R, float(self.H), self.T, self.d, tier, self.readout)
        first = (2 * self.B_Phi / self.gamma) ** 2 / constants.start_loss(self.B_Phi)
        return float(min(1.0, 1 / rho, first))

    @property
    def width(self) -> int:
        """H."""
        return self.H

    @property
    def width_step(self) -> int:
        """Any number of heads."""
        return 1

    @property
    def steps(self) -> int:
        """K."""
        return self.K

    def resized(
        self, *, width: int | None = None, steps: int | None = None, step_size: Any = None
    ) -> Setting:
        """Another H, K or eta; `step_size="default"` is the theorem's largest again."""
        eta = self.eta if step_size is None else step_size
        return replace(
            self,
            H=self.H if width is None else width,
            K=self.K if steps is None else steps,
            eta=None if eta == "default" else eta,
        )

    def describe(self) -> str:
        """The numbers in one line."""
        eta = "the largest allowed" if self.eta is None else f"{self.eta:.4g}"
        return (
            f"n = {self.n}, T = {self.T}, d = {self.d}, H = {self.H}, R = {self.R:.4g}, "
            f"D = {self.D:.4g}, N = {self.N:.4g}, gamma = {self.gamma:.4g}, K = {self.K}, "
            f"eta = {eta}"
        )
