"""A setting of deora2024: the numbers that its theorems' right sides depend on, without data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from ...core import check_choice, check_count, check_nonnegative, check_positive
from ...theory import resized
from ...training import TrainConfig, build
from ...training._build import Built
from . import constants
from .definition_1 import GoodStart, check_model, good_start
from .model import READOUTS


@dataclass(frozen=True)
class Setting:
    """(n, T, d, H, R, K, eta) of deora2024, with a good start and, if known, a target theta.

    B_2, B_Phi and gamma (0: no margin) belong to the start (Corollary 5). D = |theta - theta_0|, N
    |theta|_{2,inf} and L(theta) belong to a target (Theorems 3 and 4); where they are not given the
    target is that of Proposition 7: D = g_0(1/K), N = B_2 + D, L(theta) = 1/K. `eta` None is the
    largest step that the theorem in question allows.
    """

    T: int = 10
    d: int = 4
    H: int = 16
    n: int = 100
    R: float = 2.2
    K: int = 1500
    eta: float | None = None
    B_2: float = 1.0
    B_Phi: float = 1.0
    gamma: float = 0.5
    L_0: float = math.log(2)
    target_distance: float | None = None
    target_width: float | None = None
    target_loss: float | None = None
    readout: str = "full"

    def __post_init__(self) -> None:
        for argument in ("T", "d", "H", "n", "K"):
            check_count(argument, getattr(self, argument))
        for argument in ("R", "B_2", "B_Phi", "L_0"):
            check_positive(argument, getattr(self, argument))
        check_choice("readout", self.readout, READOUTS)
        if self.eta is not None:
            check_positive("eta", self.eta)
        check_nonnegative("gamma", self.gamma)
        for argument in ("target_distance", "target_width", "target_loss"):
            if getattr(self, argument) is not None:
                check_nonnegative(argument, getattr(self, argument))

    @classmethod
    def of(cls, config: TrainConfig, *, delta: float) -> Setting:
        """The setting of a configuration's first seed: R and the good start are measured."""
        one = config.model_copy(update={"seeds": config.seeds[:1]})
        built = build(one)
        check_model(built.model)
        start = jax.tree.map(lambda leaf: np.asarray(leaf[0]), built.initial)
        found = good_start(built.model, start, built.x[0], built.y[0])
        found.check_separable()
        eta = config.eta if "eta" in config.model_fields_set else None
        return cls.measured(built, config.steps, found, eta=eta)

    @classmethod
    def measured(cls, built: Built, K: int, found: GoodStart, **more: Any) -> Setting:
        """The sizes of a model and its data, with what was measured at its start."""
        model = built.model
        sizes = {"T": model.T, "d": model.d, "H": model.H, "n": len(built.y[0]), "K": K}
        start = {"R": found.R, "B_2": found.B_2, "B_Phi": found.B_Phi, "L_0": found.loss}
        known = {**sizes, **start, "gamma": found.gamma, "readout": model.readout}
        return cls(**{**known, **more})

    @property
    def D(self) -> float:
        """|theta - theta_0|."""
        return self.g_0() if self.target_distance is None else self.target_distance

    @property
    def N(self) -> float:
        """|theta|_{2,inf}."""
        return self.B_2 + self.D if self.target_width is None else self.target_width

    @property
    def L_theta(self) -> float:
        """L(theta)."""
        return 1 / self.K if self.target_loss is None else self.target_loss

    def largest_step(self, tier: str, *, stable: bool = False) -> float:
        """The largest eta of Theorem 3; `stable`: of Theorem 4, with eta beta_1(B)^2 <= 1, too."""
        B = constants.reach(self.D, self.N)
        rho_of = constants.stable_rho if stable else constants.rho
        rho = rho_of(B, self.R, float(self.H), self.T, self.d, tier, self.readout)
        return float(constants.largest_step(rho, self.D, self.K, self.L_theta, self.L_0))

    def step(self, tier: str, *, stable: bool = False) -> float:
        """eta, by default the largest that Theorem 3 (`stable`: Theorem 4) allows."""
        return self.largest_step(tier, stable=stable) if self.eta is None else self.eta

    def g_0(self, form: str = "corrected") -> float:
        """The realizability distance at 1/K [deora2024, Prop. 7]."""
        return float(constants.g_0(self.B_Phi, self.gamma, 1 / self.K, form))

    def start_step(self, tier: str, form: str = "corrected", *, stable: bool = False) -> float:
        """The largest eta of Corollary 5; `stable`: of its second half."""
        B = 4 * self.g_0(form) + self.B_2
        rho_of = constants.stable_rho if stable else constants.rho
        rho = rho_of(B, self.R, float(self.H), self.T, self.d, tier, self.readout)
        return float(constants.start_step(self.B_Phi, self.gamma, rho))

    @property
    def eps(self) -> float:
        """1/K."""
        return 1 / self.K

    @property
    def samples(self) -> int:
        """n."""
        return self.n

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
        return resized(
            self,
            H=self.H if width is None else width,
            K=self.K if steps is None else steps,
            eta=None if eta == "default" else eta,
        )

    def describe(self) -> str:
        """The numbers in one line."""
        eta = "the largest allowed" if self.eta is None else f"{self.eta:.4g}"
        gamma = f"gamma = {self.gamma:.4g}" if self.gamma else "no tangent margin"
        return (
            f"n = {self.n}, T = {self.T}, d = {self.d}, H = {self.H}, R = {self.R:.4g}, "
            f"D = {self.D:.4g}, N = {self.N:.4g}, {gamma}, K = {self.K}, "
            f"eta = {eta}"
        )
