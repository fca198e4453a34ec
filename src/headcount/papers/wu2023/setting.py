"""A setting of wu2023: data and a drawn initialisation, since (2) and (3) depend on both."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from ...core import (
    Array,
    BadArgument,
    check_count,
    check_positive,
    check_samples,
    float64,
    self_attention,
)
from ...data import DataModel
from ...theory import resized
from ...training import TrainConfig, build_problem
from ...training._build import build_data
from .constants import Constants, Norms, Sizes, Symbols, effective_tau1
from .model import Encoder, EncoderParams

CHUNK = 2**11
"""Units whose features are held at a time: few enough to stay in the cache, twice as fast."""


_FAR = 40.0
"""Bounds |log C_*| while the optimiser looks around."""


@dataclass(frozen=True)
class Start:
    """theta^0 on a data set, as Prop. 1 sees it."""

    sizes: Sizes
    norms: Norms
    alpha: float
    """sigma_min(F_pre), from the N x N matrix F_pre F_pre^T: exact to about 1e-8 of sigma_max."""
    loss: float
    """(1/2)|f - y|^2."""


def measure_start(
    model: Encoder, params: EncoderParams, x: Float[Array, "n T d"], y: Float[Array, "n"]
) -> Start:
    """Norms, alpha, C_x and the loss at theta^0; features are streamed over the width."""
    n, T, _ = check_samples(x, y)
    if model.residual:
        raise BadArgument("residual", True, "is not what Prop. 1 is about", fix="use false")
    W_Q, W_K, W_V, w_O = (np.asarray(block, np.float64) for block in params)
    tau1 = float(effective_tau1(model.tau1, model.pooling, T))
    with float64():
        M = model.tau0 * W_Q.T @ W_K
        phi = np.stack([np.asarray(self_attention(one, M)) @ one for one in np.asarray(x)])
    products, f = np.zeros((n, n)), np.zeros(n)
    for begin in range(0, len(w_O), CHUNK):
        part = slice(begin, begin + CHUNK)
        features = tau1 * np.sum(np.maximum(phi @ W_V[part].T, 0.0), axis=1)
        products += features @ features.T
        f += features @ w_O[part]
    alpha = math.sqrt(max(float(np.linalg.eigvalsh(products)[0]), 0.0)) if len(w_O) >= n else 0.0
    C_x = float(np.max(np.linalg.norm(np.asarray(x).reshape(n, -1), axis=1))) / math.sqrt(T)
    norms = Norms(_norm(W_Q), _norm(W_K), _norm(W_V), float(np.linalg.norm(w_O)))
    loss = float(np.sum((f - np.asarray(y)) ** 2) / 2)
    return Start(Sizes(float(n), float(T), model.tau0, tau1, C_x), norms, alpha, loss)


def _norm(W: Float[Array, "d_m d"]) -> float:
    """The spectral norm, from the d x d matrix W^T W where that is the smaller."""
    if W.shape[0] < W.shape[1]:
        return float(np.linalg.norm(W, 2))
    return math.sqrt(max(float(np.linalg.eigvalsh(W.T @ W)[-1]), 0.0))


@dataclass(frozen=True)
class Room:
    """C_* for every block, and right over left side of (2) and of (3) with them."""

    C: Norms
    ratios: tuple[float, float]

    @property
    def worst(self) -> float:
        """The larger of the two: both conditions hold where it is at most 1."""
        return max(self.ratios)


def constants_at(start: Start, room: Norms) -> Constants:
    """The constants of (2) and (3), which the forms share, for given C_*."""
    lam = start.norms + room
    return Constants(Symbols(start.sizes, lam, room, start.alpha, start.loss), "printed")


def ratios_at(start: Start, room: Norms) -> tuple[float, float]:
    """Right over left side of (2) and of (3) for given C_*; infinite where alpha is 0."""
    if start.alpha <= 0:
        return math.inf, math.inf
    k = constants_at(start, room)
    return float(k.condition_2), float(k.condition_3)


def best_room(start: Start) -> Room:
    """The C_* that make the worse of (2) and (3) as good as it can be."""
    sizes = [max(norm, 1e-12) for norm in start.norms]
    if start.alpha <= 0 or start.loss <= 0:
        unit = Norms(*sizes)
        return Room(unit, ratios_at(start, unit) if start.loss > 0 else (0.0, 0.0))

    def logs(u: Float[Array, "4"]) -> Float[Array, "5"]:
        k = constants_at(start, Norms(*np.exp(np.clip(u, -_FAR, _FAR))))
        return np.log([*k.condition_2_terms, k.condition_3])

    found = [_minimax(logs, u) for u in (np.log(sizes), np.zeros(4), np.log(sizes) - 3.0)]
    rooms = [Norms(*np.exp(np.clip(u, -_FAR, _FAR)).tolist()) for u in found]
    best = min(rooms, key=lambda room: max(ratios_at(start, room)))
    return Room(best, ratios_at(start, best))


def _minimax(logs: Any, u: Float[Array, "4"]) -> Float[Array, "4"]:
    """The minimiser of max logs(u), as min t subject to logs(u) <= t."""
    import scipy.optimize  # a setting alone need not wait for it

    found = scipy.optimize.minimize(
        lambda v: v[-1],
        np.append(u, np.max(logs(u))),
        jac=lambda v: np.append(np.zeros(4), 1.0),
        constraints={"type": "ineq", "fun": lambda v: v[-1] - logs(v[:-1])},
        method="SLSQP",
        options={"maxiter": 300, "ftol": 1e-10},
    )
    return np.asarray(found.x[:-1])


@dataclass(frozen=True)
class RequiredWidth:
    """The least width of a grid at which (2) and (3) hold, and every width that was tried."""

    width: int | None
    tried: tuple[tuple[int, float], ...]
    """(width, worse ratio with the best C_*)."""


def required_width(
    start_at: Any, *, least: int = 1, most: int = 2**22, factor: int = 2
) -> RequiredWidth:
    """Walk widths least, factor * least, ... up to `most`; `start_at(width)` draws a `Start`."""
    check_count("least", least)
    check_count("factor", factor, least=2)
    tried: list[tuple[int, float]] = []
    width = least
    while width <= most:
        worst = best_room(start_at(width)).worst
        tried.append((width, worst))
        if worst <= 1:
            return RequiredWidth(width, tuple(tried))
        width *= factor
    return RequiredWidth(None, tuple(tried))


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
        return resized(
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
