"""A short run of gradient descent as an instance: Prop. 1 of wu2023 and its conditions.

y is given through the residual f(theta^0) - y, so that an initialisation of any size can be made
to meet (2) and (3): both ask for a small loss at the start.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Family, Hypothesis, instance_class
from ...theory.domain import Domain
from ...theory.slow import Arithmetic, flat, norm
from . import constants, naive, naive_constants
from . import quantities as model
from .constants import Norms
from .instances import draw_model
from .model import EncoderParams
from .naive import Data, Number, Theta


def form_of(variant: str) -> str:
    """Which C a variant's step size uses: the printed one, or the corrected."""
    return "printed" if variant == "printed" else "corrected"


@instance_class
@dataclass(frozen=True)
class RunInstance(Domain):
    """theta^0, the residual at the start, the free constants C_* (room), and gamma."""

    X: Float[Array, "n T d"]
    residual: Float[Array, "n"]
    W_Q: Float[Array, "d_m d"]
    W_K: Float[Array, "d_m d"]
    W_V: Float[Array, "d_m d"]
    w_O: Float[Array, "d_m"]
    tau: Float[Array, "2"]
    room: Float[Array, "4"]
    gamma: Float[Array, ""]
    steps: int = 3

    positive: ClassVar[tuple[str, ...]] = ("tau", "room", "gamma")

    def outside(self) -> str | None:
        """Prop. 1 is about d_m >= N, and short runs are enough to search."""
        if self.W_V.shape[0] < self.X.shape[0]:
            return f"d_m = {self.W_V.shape[0]} is below N = {self.X.shape[0]}"
        return None if self.steps <= 10**4 else "more than 10^4 steps"

    @property
    def theta(self) -> EncoderParams:
        """theta^0."""
        return EncoderParams(self.W_Q, self.W_K, self.W_V, self.w_O)

    @property
    def y(self) -> Float[Array, "n"]:
        """The labels."""
        return model.outputs(self, self.theta) - self.residual

    @property
    def start_loss(self) -> Float[Array, ""]:
        """l(theta^0)."""
        return jnp.sum(self.residual**2) / 2

    @property
    def lam(self) -> Norms:
        """lambda-bar = norm + C_*."""
        return model.norms(self.theta) + self.room

    @property
    def alpha(self) -> Float[Array, ""]:
        """sigma_min(F_pre) at the start."""
        return model.smallest_singular(model.features(self, self.theta))


def watched(i: RunInstance, observe: Callable[[EncoderParams], Any]) -> Any:
    """observe(theta^t) for t = 1 .. steps along a leading axis [wu2023, Algorithm 1]."""
    y = i.y

    def step(theta: EncoderParams, _: None) -> tuple[EncoderParams, Any]:
        f, pull_back = jax.vjp(lambda t: model.outputs(i, t), theta)
        (slope,) = pull_back(f - y)
        after = EncoderParams(*(a - i.gamma * g for a, g in zip(theta, slope, strict=True)))
        return after, observe(after)

    return jax.lax.scan(step, i.theta, None, length=i.steps)[1]


def residual_at(i: RunInstance, theta: EncoderParams) -> Float[Array, "n"]:
    """f(theta) - y."""
    return model.outputs(i, theta) - i.y


def trajectory_naively(num: Arithmetic, data: Data) -> tuple[list[Theta], list[list[Number]]]:
    """theta^0 .. theta^steps, and the residual at each."""
    theta = naive.theta_of(data)
    r = data["residual"]
    y = [one.f - e for one, e in zip(naive.samples(num, data, theta), r, strict=True)]
    points, residuals = [theta], [r]
    for _ in range(data["steps"]):
        slope = naive.loss_gradient(num, data, theta, r)
        theta = naive.added(theta, slope, -data["gamma"])
        r = naive.residual(num, {**data, "y": y}, theta)
        points.append(theta)
        residuals.append(r)
    return points, residuals


def lam_naively(num: Arithmetic, data: Data) -> list[Number]:
    """lambda-bar = norm + C_*."""
    norms = naive.theta_of(data).norms(num)
    return [a + b for a, b in zip(norms, data["room"], strict=True)]


def alpha_naively(num: Arithmetic, data: Data) -> Number:
    """sigma_min(F_pre) at the start."""
    return naive.smallest_singular(num, naive.features(num, data, naive.theta_of(data)))


def _conditions_naively(num: Arithmetic, data: Data) -> tuple[Number, Number]:
    k = naive_constants.constants(num, data, lam_naively(num, data), "printed")
    loss = naive.half_square(num, data["residual"])
    return naive_constants.conditions(num, k, data["room"], alpha_naively(num, data), loss)


def step_limit(i: RunInstance, variant: str) -> Any:
    """1/C, the largest step size."""
    return 1 / constants.smoothness(model.sizes(i), i.lam, i.start_loss, form_of(variant))


def step_limit_naively(num: Arithmetic, data: Data, variant: str) -> Number:
    """The same in slow arithmetic."""
    form = form_of(variant)
    k = naive_constants.constants(num, data, lam_naively(num, data), form)
    return 1 / k.C(num, naive.half_square(num, data["residual"]), form)


def _room_used(i: RunInstance) -> Any:
    """gamma |grad| over C_* at the worst block: at most 1 if one step stays within lambda-bar."""
    slope = jax.grad(lambda t: jnp.sum(residual_at(i, t) ** 2) / 2)(i.theta)
    sizes = jnp.stack([jnp.linalg.norm(jnp.ravel(block)) for block in slope])
    return jnp.max(i.gamma * sizes / i.room)


def _room_used_naively(num: Arithmetic, data: Data) -> Number:
    slope = naive.loss_gradient(num, data, naive.theta_of(data), data["residual"])
    blocks = [flat(slope.W_Q), flat(slope.W_K), flat(slope.W_V), slope.w_O]
    sizes = [norm(num, block) for block in blocks]
    return num.largest([data["gamma"] * s / c for s, c in zip(sizes, data["room"], strict=True)])


CONDITION_2 = Hypothesis(
    "(2): right over left side",
    lambda i: constants.condition_2(model.sizes(i), i.lam, Norms(*i.room), i.alpha, i.start_loss),
    lambda num, data: _conditions_naively(num, data)[0],
)
CONDITION_3 = Hypothesis(
    "(3): right over left side",
    lambda i: constants.condition_3(model.sizes(i), i.lam, i.alpha, i.start_loss),
    lambda num, data: _conditions_naively(num, data)[1],
)
STEP_SIZE = Hypothesis(
    "gamma <= 1/C",  # as 1 <= 1/(gamma C): 1/C may be below the absolute slack of a check
    lambda i: jnp.ones(()),
    lambda num, data: num.number(1),
    lambda i, variant: step_limit(i, variant) / i.gamma,
    lambda num, data, variant: step_limit_naively(num, data, variant) / data["gamma"],
)
ROOM = Hypothesis("the step stays within lambda-bar", _room_used, _room_used_naively)


def _lowest(num: Arithmetic, data: Data) -> Number:
    after = trajectory_naively(num, data)[0][-1]
    entries = [*(x for X in data["X"] for x in flat(X)), *flat(data["W_V"]), *flat(after.W_V)]
    return -num.smallest(entries)


NO_KINK = Hypothesis(
    "tokens and values nonnegative: no unit changes sign on the way",
    lambda i: (
        -jnp.min(
            jnp.stack([jnp.min(i.X), jnp.min(i.W_V), jnp.min(watched(i, lambda t: t.W_V)[-1])])
        )
    ),
    _lowest,
    threshold=0.0,
)

_MARGIN = 1 - 1e-6
"""Draws stay this far inside the hypotheses: outside by rounding is outside."""


def _limited(i: RunInstance) -> RunInstance:
    """gamma at most 1/C in both forms."""
    limit = jnp.minimum(step_limit(i, "printed"), step_limit(i, "corrected"))
    return replace(i, gamma=jnp.minimum(jnp.clip(i.gamma, 1e-12, 1e12), _MARGIN * limit))


def _bounded(i: RunInstance) -> RunInstance:
    """Sizes that leave the digits of a loss visible."""
    inside = jax.tree.map(lambda leaf: jnp.clip(leaf, -_LARGE, _LARGE), i)
    scales = {"tau": jnp.clip(i.tau, 1 / _LARGE, _LARGE), "room": jnp.clip(i.room, 1e-3, _LARGE)}
    return replace(inside, gamma=i.gamma, **scales)


_LARGE = 100.0
"""The largest entry of a run that a search visits."""


def project_run(i: RunInstance) -> RunInstance:
    """Inside (2), (3) and the step size: the residual is shrunk until both conditions hold.

    Values come in opposite pairs, so that no sample has all units off and alpha = 0. w_O is then
    shrunk, too, until f is at most 1000 residuals, which makes (2) and (3) easier: where a residual
    is lost in the rounding of f there is nothing to compare.
    """
    half = i.W_V[: i.W_V.shape[0] // 2]
    inside = _bounded(replace(i, W_V=jnp.concatenate([half, -half])))
    worst = jnp.maximum(CONDITION_2.value(inside), CONDITION_3.value(inside))
    residual = inside.residual * _MARGIN / jnp.maximum(worst, 1.0)
    size = jnp.linalg.norm(model.outputs(inside, inside.theta))
    share = 1e3 * jnp.linalg.norm(residual) / jnp.where(size > 0, size, 1.0)
    return _limited(replace(inside, residual=residual, w_O=inside.w_O * jnp.minimum(share, 1.0)))


def _heard(i: RunInstance) -> RunInstance:
    """A residual of at least 1/1000 of 1 + |f|."""
    least = 1e-3 * (1 + jnp.linalg.norm(model.outputs(i, i.theta)))
    size = jnp.linalg.norm(i.residual)
    grown = jnp.where(size > 0, i.residual / jnp.where(size > 0, size, 1.0), 1.0) * least
    return replace(i, residual=jnp.where(size < least, grown, i.residual))


def project_step(i: RunInstance) -> RunInstance:
    """One step within lambda-bar and with gamma <= 1/C; (2) and (3) need not hold."""
    inside = _limited(_heard(_bounded(i)))
    return replace(inside, gamma=inside.gamma / jnp.maximum(_room_used(inside) / _MARGIN, 1.0))


def project_smooth_step(i: RunInstance) -> RunInstance:
    """The same for nonnegative tokens and values, which stay nonnegative after the step."""
    positive = replace(i, X=jnp.abs(i.X), W_V=jnp.abs(i.W_V))
    inside = project_step(positive)
    slope = jax.grad(lambda t: jnp.sum(residual_at(inside, t) ** 2) / 2)(inside.theta).W_V
    floor = jnp.abs(inside.gamma * slope) * (1 + 1e-9)
    return project_step(replace(inside, W_V=jnp.maximum(inside.W_V, floor)))


def draw_runs(rng: np.random.Generator, count: int, *, steps: int, **shape: int) -> RunInstance:
    """Random initialisations with a residual, room and a step size of any scale."""
    values = draw_model(rng, count, **shape)
    return RunInstance(
        **{k: v for k, v in values.items() if k != "y"},
        residual=values["y"],
        room=np.exp(rng.uniform(-3, 3, (count, 4))),
        gamma=np.exp(rng.uniform(-3, 6, count)),
        steps=steps,
    )


def _family(name: str, project: Any, steps: int, **shape: Any) -> Family:
    draw = functools.partial(draw_runs, steps=steps, **shape)
    label = f"{name} " + " ".join(f"{k}={v}" for k, v in shape.items())
    # Slopes through a run take long to compile and help little.
    return Family(label, draw, project, differentiable=False)


_SHAPES: tuple[dict[str, int], ...] = (
    {"n": 2, "T": 2, "d": 2, "d_m": 3},
    {"n": 1, "T": 2, "d": 1, "d_m": 1},
)
RUNS = tuple(
    _family("run", project_run, 3, **{**shape, "d_m": 2 * shape["n"]}) for shape in _SHAPES
)
STEPS = tuple(_family("step", project_step, 1, **shape) for shape in _SHAPES)
SMOOTH_STEPS = tuple(
    _family("step without kinks", project_smooth_step, 1, **shape) for shape in _SHAPES
)
