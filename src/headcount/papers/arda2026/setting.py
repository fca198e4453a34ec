"""A setting: the numbers that a theorem's right side depends on, without any data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from inspect import signature
from typing import Any

import jax
import numpy as np

from ...core import (
    Activation,
    BadArgument,
    activation_named,
    check_count,
    check_fraction,
    check_nonnegative,
    check_positive,
)
from ...core._checks import check_even
from ...data import data_models
from ...theory import resized
from ...training import TrainConfig, build
from ...training._build import build_data, build_model
from .constants import label_envelope
from .teacher import TransportTeacher


@dataclass(frozen=True)
class Setting:
    """(n, T, d, m, sigma, rho, nu, delta, delta', tau, eta) of arda2026.

    `rho` and `nu` are (c, u, w) radii. `eta` defaults to tau^{-1/2}, the theorem's step size.
    `B_U`, where given, is a realised bound on max_i |U_i| over the feasible set; it replaces the a
    priori one of Remark 7, and the event E_U is then not needed. `largest_label`, where given, is
    max |y| of the data: a target in F_nu bounds it; `largest_token` their longest token or query,
    `clip` what brings it into the unit ball. `rule` is the optimiser of a run, where there is one.
    """

    d: int
    m: int
    n: int = 1
    T: int = 1
    activation: str = "tanh"
    rho: tuple[float, float, float] = (3.0, 3.0, 3.0)
    nu: tuple[float, float, float] = (3.0, 3.0, 3.0)
    delta: float = 0.05
    delta_prime: float = 0.05
    tau: int = 1
    eta: float | None = None
    B_U: float | None = None
    largest_label: float | None = None
    largest_token: float | None = None
    clip: str = ""
    rule: str = ""

    def __post_init__(self) -> None:
        for argument in ("d", "n", "T", "tau"):
            check_count(argument, getattr(self, argument))
        check_even("m", self.m)
        check_fraction("delta", self.delta)
        check_fraction("delta_prime", self.delta_prime)
        for argument in ("rho", "nu"):
            radii = getattr(self, argument)
            if len(radii) != 3:
                raise BadArgument(argument, radii, "needs three radii", fix="give (c, u, w)")
            for radius in radii:
                check_nonnegative(argument, radius)
        if self.eta is not None:
            check_positive("eta", self.eta)
        for argument in ("B_U", "largest_label", "largest_token"):
            if getattr(self, argument) is not None:
                check_nonnegative(argument, getattr(self, argument))
        activation_named(self.activation)

    @classmethod
    def of(cls, config: TrainConfig, *, delta: float) -> Setting:
        """The setting of a configuration that projects.

        nu is the teacher's; on other data it is what the first seed's labels need.
        """
        if config.rho is None:
            problem = "does not project, and the theorems are about runs that do"
            raise BadArgument("optimiser", config.optimiser, problem, fix="use projgd")
        data = build_data(config)
        size: dict[str, Any]
        if isinstance(data, TransportTeacher):
            model = build_model(config, data)
            size = {"T": data.T, "n": config.n, "nu": data.nu}
        else:
            model, size = _measured(config, delta)
        return cls(
            d=model.d,
            m=model.m,
            activation=model.activation.name,
            rho=config.rho,
            delta=delta,
            delta_prime=delta,
            tau=config.steps,
            eta=config.eta,
            rule=rule_of(config),
            **size,
        )

    @property
    def sigma(self) -> Activation:
        """The activation with its bounds sigma0, sigma1, sigma2."""
        return activation_named(self.activation)

    @property
    def step(self) -> float:
        """eta, by default tau^{-1/2}."""
        return 1 / math.sqrt(self.tau) if self.eta is None else self.eta

    @property
    def V0(self) -> float:
        """|nu|^2, which bounds V(phi0)."""
        return sum(radius**2 for radius in self.nu)

    @property
    def loss_at_start(self) -> float:
        """y_max*^2, which bounds L(phi0)."""
        return float(label_envelope(self.sigma, self.nu, self.d, "sharp")) ** 2

    @property
    def width(self) -> int:
        """m."""
        return self.m

    @property
    def width_step(self) -> int:
        """Heads come in pairs."""
        return 2

    @property
    def steps(self) -> int:
        """tau."""
        return self.tau

    def resized(
        self, *, width: int | None = None, steps: int | None = None, step_size: Any = None
    ) -> "Setting":
        """Another m, tau or eta; `step_size="default"` is eta = tau^{-1/2} again."""
        eta = self.eta if step_size is None else step_size
        return resized(
            self,
            m=self.m if width is None else width,
            tau=self.tau if steps is None else steps,
            eta=None if eta == "default" else eta,
        )

    def describe(self) -> str:
        """The numbers in one line."""
        nu = tuple(float(f"{value:.4g}") for value in self.nu)
        return (
            f"n = {self.n}, T = {self.T}, d = {self.d}, m = {self.m}, {self.activation}, "
            f"rho = {self.rho}, nu = {nu}, tau = {self.tau}, eta = {self.step:.4g}, "
            f"delta = delta' = {self.delta}"
        )


def _measured(config: TrainConfig, delta: float) -> tuple[Any, dict[str, Any]]:
    """The model, and what the first seed's data say: sizes, and the nu that their labels need."""
    from .needed_transport import goal_of

    built = build(config.model_copy(update={"seeds": config.seeds[:1]}))
    start = jax.tree.map(lambda leaf: leaf[0], built.initial)
    return built.model, {
        "T": built.x.shape[2],
        "n": built.y.shape[1],
        "nu": goal_of(built, start, config.seeds[0], delta).nu,
        "largest_label": float(np.max(np.abs(built.y))),
        "largest_token": float(np.max(np.linalg.norm(built.x, axis=-1))),
        "clip": into_ball(config),
    }


def rule_of(config: TrainConfig) -> str:
    """The optimiser, with its batches where they are of several samples."""
    several = config.batch_size is not None and config.batch_size > 1
    return f"{config.optimiser} in batches of {config.batch_size}" * several or config.optimiser


def into_ball(config: TrainConfig) -> str:
    """How the configuration's tokens get into the unit ball: an option of its data, if any."""
    known = signature(data_models[config.data]).parameters
    option = next((name for name in ("clip", "normalise_tokens") if name in known), None)
    if option is None:
        return f"{config.data} has no option that brings them there: scale its tokens"
    return f"data option {option}=true brings them there"
