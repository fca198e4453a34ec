"""A setting of wu2023: data and a drawn initialisation, since (2) and (3) depend on both."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, replace
from typing import Any

from ...core import BadArgument, check_count, check_positive
from ...data import DataModel
from ...training import TrainConfig, build_data, build_problem
from .conditions import RequiredWidth, Room, Start, best_room, measure_start, required_width
from .constants import Constants, Norms, Sizes

MOST_WIDTH = 2**22
MOST_WORK = 2**30
"""Multiplications for the features of one start; wider ones are not drawn."""
SCALES = {"half-squared-sum": lambda n: 1.0, "mean-squared": lambda n: 2 / n}
"""A loss as a multiple of the paper's (1/2)|f - y|^2."""


@dataclass(frozen=True)
class Setting:
    """(N, d_s, d, d_m), initialisation, scaling and data of wu2023; steps and gamma.

    `problem` is the configuration of model, data and one seed as JSON: at every width the start is
    drawn from it, as training would. Wider than `widest`, the start at `widest` stands for it:
    nothing wider is drawn. `gamma`, on the paper's loss, defaults to 1/C. `measured` is the start
    on data that no configuration names; it is known at this width alone.
    """

    n: int
    T: int
    d: int
    d_m: int
    problem: str
    loss: str = "half-squared-sum"
    tau: int = 400
    gamma: float | None = None
    delta: float = 0.05
    measured: Start | None = None

    def __post_init__(self) -> None:
        for argument in ("n", "T", "d", "d_m", "tau"):
            check_count(argument, getattr(self, argument))
        if self.loss not in SCALES:
            fix = f"use {' or '.join(SCALES)}"
            raise BadArgument("loss", self.loss, "is not a multiple of the paper's", fix=fix)
        if self.gamma is not None:
            check_positive("gamma", self.gamma)

    @classmethod
    def of(cls, config: TrainConfig, *, delta: float) -> Setting:
        """The setting of the first seed of a gradient descent run of the encoder."""
        if config.model != "wu2023" or config.optimiser != "gd":
            name = config.model if config.model != "wu2023" else config.optimiser
            field = "model" if config.model != "wu2023" else "optimiser"
            problem = "is not what Prop. 1 is about"
            raise BadArgument(field, name, problem, fix="use model=wu2023, optimiser=gd")
        setting = cls.of_problem(config, build_data(config), delta=delta)
        return setting if config.eta is None else setting.resized(step_size=config.eta)

    @classmethod
    def of_problem(
        cls, config: TrainConfig, data: DataModel, *, delta: float, measured: Start | None = None
    ) -> Setting:
        """The setting of the first seed of a run by any rule: gamma is 1/C."""
        one = config.model_copy(update={"seeds": config.seeds[:1]})
        return cls(
            n=config.n,
            T=data.T,
            d=data.d,
            d_m=config.width,
            problem=json.dumps(one.model_dump(mode="json")),
            loss=config.loss,
            tau=config.steps,
            delta=delta,
            measured=measured,
        )

    @property
    def width(self) -> int:
        """d_m."""
        return self.d_m

    @property
    def width_step(self) -> int:
        """Any width."""
        return 1

    @property
    def steps(self) -> int:
        """Epochs."""
        return self.tau

    @property
    def loss_scale(self) -> float:
        """The training loss over the paper's."""
        return SCALES[self.loss](self.n)

    @property
    def widest(self) -> int:
        """The widest start that is drawn."""
        per_unit = self.n * (self.T * self.d + self.n)
        return max(min(MOST_WIDTH, MOST_WORK // per_unit), self.n)

    @property
    def start(self) -> Start:
        """theta^0, measured."""
        return self.measured or _start(self.problem, min(self.d_m, self.widest))

    @property
    def room(self) -> Room:
        """The best C_*."""
        return _room(self.start)

    @property
    def sizes(self) -> Sizes:
        """N, d_s, tau0, tau1 and C_x."""
        return self.start.sizes

    @property
    def extra(self) -> Norms:
        """The best C_* by block."""
        return self.room.C

    @property
    def lam(self) -> Norms:
        """lambda-bar: norm at the start + C_*."""
        return self.start.norms + self.extra

    @property
    def alpha(self) -> float:
        """sigma_min(F_pre) at the start."""
        return self.start.alpha

    @property
    def start_loss(self) -> float:
        """The paper's loss at the start."""
        return self.start.loss

    @property
    def times(self) -> int:
        """The step that a promise is about: the last."""
        return self.steps

    def smoothness(self, form: str) -> float:
        """C, the inverse of the largest step size, at the best C_*."""
        return float(Constants(self, form).C)

    def step(self, form: str) -> float:
        """gamma on the paper's loss, by default 1/C."""
        return float(Constants(self, form).gamma)

    def resized(
        self, *, width: int | None = None, steps: int | None = None, step_size: Any = None
    ) -> Setting:
        """Another d_m, number of steps or step size of the training loss; "default" is 1/C."""
        if width not in (None, self.d_m):
            self._check_drawable(width)
        gamma = self.gamma
        if step_size is not None:
            gamma = None if step_size == "default" else float(step_size) * self.loss_scale
        return replace(
            self,
            d_m=self.d_m if width is None else width,
            tau=self.tau if steps is None else steps,
            gamma=gamma,
        )

    def required_width(self, *, factor: int = 2) -> RequiredWidth:
        """The least width N, factor N, ... at which (2) and (3) hold with the best C_*."""
        self._check_drawable("any")
        return required_width(
            lambda width: _start(self.problem, width),
            least=self.n,
            most=self.widest,
            factor=factor,
        )

    def _check_drawable(self, width: Any) -> None:
        """Raise where a start at another width would be one on other data."""
        if self.measured is not None:
            problem = "cannot be drawn: the data are not those of the configuration"
            raise BadArgument("width", width, problem, fix="name them there, such as data=series")

    def describe(self) -> str:
        """The numbers in one line."""
        second, third = self.room.ratios
        return (
            f"N = {self.n}, d_s = {self.T}, d = {self.d}, d_m = {self.d_m}, alpha = "
            f"{self.start.alpha:.4g}, right over left side of (2) {second:.3g}, of (3) {third:.3g}"
        )


@functools.lru_cache(maxsize=1024)
def _start(problem: str, width: int) -> Start:
    config = TrainConfig.of({**json.loads(problem), "width": width})
    built = build_problem(config)
    first = type(built.initial)(*(block[0] for block in built.initial))
    return measure_start(built.model, first, built.x[0], built.y[0])


@functools.lru_cache(maxsize=1024)
def _room(start: Start) -> Room:
    return best_room(start)
