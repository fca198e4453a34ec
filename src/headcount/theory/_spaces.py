"""Spaces: where the variables of a lemma live.

A point of a space is computed from raw numbers that may be anything: `value(raw)` lies in the
space whatever `raw` is, in exact arithmetic. Ball arithmetic follows the same computation, so a
counterexample needs no proof that it is in the domain: x/|x| is on the sphere for every x, B B^T
is positive semidefinite for every B, a product of reflections is orthogonal. `inside(raw)` gives
raw numbers of the same point that a search can go on from.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..core import Array, BadArgument, check_positive
from ._space import ArraySpace as ArraySpace
from ._space import Axis as Axis
from ._space import Size as Size
from ._space import Sizes as Sizes
from ._space import Space as Space
from ._space import below as below
from ._space import check_axes as check_axes
from ._space import length as length
from ._space import normal_entries, scaled
from .families import into_ball, log_uniform, safe_norm
from .slow import Arithmetic, below_axes, flattened, norm


class Reals(ArraySpace):
    """All real arrays. The search looks at root mean squares from `smallest` to `largest`.

    Much smaller ones only show rounding: where the worst case is a limit at zero, the search comes
    as close to it as `smallest`. Draws have sizes between those `drawn`.
    """

    free = True

    def __init__(
        self,
        *shape: Axis,
        smallest: float = 1e-4,
        largest: float = 1e6,
        drawn: tuple[float, float] = (1e-2, 1e2),
        says: str = "",
    ) -> None:
        super().__init__(*shape, says=says)
        self.smallest = check_positive("smallest", smallest)
        self.largest = check_positive("largest", largest)
        self.drawn = drawn

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        return scaled(rng, normal_entries(rng, count, shape), *self.drawn)

    def kept(self, x: Any) -> Any:
        size = safe_norm(x, axis=None) / math.sqrt(max(x.size, 1))
        wanted = jnp.clip(size, self.smallest, self.largest)
        # Inside the range this is a product with exactly one, and zero stays zero.
        return x * jnp.where(size > 0, wanted / jnp.where(size > 0, size, 1.0), 1.0)

    def value(self, x: Any) -> Any:
        return x


class Ball(ArraySpace):
    """Arrays of Euclidean (Frobenius) norm at most `radius`.

    With `batch`, so many leading axes are those of several arrays, each in the ball.
    """

    asks = "in the ball"

    def __init__(self, *shape: Axis, radius: float = 1.0, batch: int = 0, says: str = "") -> None:
        super().__init__(*shape, says=says)
        self.radius = check_positive("radius", radius)
        self.batch = batch

    @property
    def limit(self) -> float:
        return self.radius

    def measure(self, x: Any) -> Any:
        axes = x.ndim - self.batch
        return jnp.max(safe_norm(x, axis=tuple(range(-axes, 0))) if axes else jnp.abs(x))

    def measure_slowly(self, num: Arithmetic, x: Any) -> Any:
        return num.largest([norm(num, flattened(part)) for part in below_axes(x, self.batch)])

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        axes = len(shape) - self.batch
        x = np.asarray(into_ball_of(normal_entries(rng, count, shape), axes))
        many = (count, *shape[: self.batch])
        lengths = np.where(rng.random(many) < 0.5, 1.0, rng.random(many)) * self.radius
        return x * lengths.reshape(*many, *[1] * axes)

    def value(self, x: Any) -> Any:
        axes = x.ndim - self.batch
        return into_ball(x, self.radius, axes=axes) if axes else _clipped(x, self.radius)

    def formula(self, x: Array) -> tuple[str, str] | None:
        if np.linalg.norm(x) <= self.radius * (1 - 1e-15):
            return None
        r = f"{self.radius:g}"
        return f"{r} * {{x}} / np.linalg.norm({{x}})", rf"{r}\,{{x}}/\|{{x}}\|"


def _clipped(x: Any, radius: float) -> Any:
    return jnp.clip(x, -radius, radius)


def into_ball_of(x: Array, axes: int) -> Array:
    """The directions of the last `axes` axes, in NumPy; zero stays zero."""
    over = tuple(range(-axes, 0))
    norms = np.sqrt(np.sum(x * x, axis=over, keepdims=True)) if axes else np.abs(x)
    return x / np.where(norms > 0, norms, 1.0)


class Sphere(Ball):
    """Arrays of Euclidean (Frobenius) norm `radius`."""

    asks = "on the sphere: its norm is off by"

    @property
    def limit(self) -> float:
        return 0.0

    def measure(self, x: Any) -> Any:
        return jnp.abs(safe_norm(x, axis=None) - self.radius)

    def measure_slowly(self, num: Arithmetic, x: Any) -> Any:
        return abs(norm(num, flattened(x)) - num.number(self.radius))

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        return self.radius * into_ball_of(normal_entries(rng, count, shape), len(shape))

    def value(self, x: Any) -> Any:
        square = jnp.sum(x * x)
        first = (jnp.arange(x.size) == 0).reshape(x.shape).astype(x.dtype)
        direction = x / jnp.sqrt(jnp.where(square > 0, square, 1.0))
        return self.radius * jnp.where(square > 0, direction, first)

    def formula(self, x: Array) -> tuple[str, str] | None:
        if not np.any(x):
            return None  # the first unit vector
        r = f"{self.radius:g}"
        return f"{r} * {{x}} / np.linalg.norm({{x}})", rf"{r}\,{{x}}/\|{{x}}\|"


class Tokens(Ball):
    """Tokens as rows, each in the ball: the last axis has norm at most `radius`."""

    def __init__(self, *shape: Axis, radius: float = 1.0, says: str = "") -> None:
        super().__init__(*shape, radius=radius, batch=len(shape) - 1, says=says)

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        x = into_ball_of(normal_entries(rng, count, shape), 1)
        inner = rng.random((count, *shape[:-1], 1))
        lengths = np.where(rng.random(inner.shape) < 0.6, 1.0, inner)
        return self.radius * lengths * x

    def value(self, x: Any) -> Any:
        return into_ball(x, self.radius, axes=1)

    def formula(self, x: Array) -> tuple[str, str] | None:
        if np.all(np.linalg.norm(x, axis=-1) <= self.radius * (1 - 1e-15)):
            return None
        r = f"{self.radius:g}"
        python = f"{{x}} / np.maximum(np.linalg.norm({{x}}, axis=-1, keepdims=True) / {r}, 1)"
        return python, rf"{{x}}\text{{ with rows longer than {r} cut to {r}}}"


class Simplex(ArraySpace):
    """Nonnegative entries with sum one along the last axis: raw entries over their sum."""

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        powers = rng.choice([0.3, 1.0, 4.0], (count, *[1] * len(shape)))
        return rng.exponential(size=(count, *shape)) ** powers

    def value(self, x: Any) -> Any:
        sizes = jnp.abs(x)
        total = jnp.sum(sizes, axis=-1, keepdims=True)
        shares = sizes / jnp.where(total > 0, total, 1.0)
        return jnp.where(total > 0, shares, 1.0 / x.shape[-1])

    def formula(self, x: Array) -> tuple[str, str] | None:
        if not np.all(np.any(x, axis=-1)):
            return None  # equal shares, with nothing to divide by
        python = "np.abs({x}) / np.abs({x}).sum(axis=-1, keepdims=True)"
        return python, r"|{x}|/\textstyle\sum|{x}|"


class Box(ArraySpace):
    """Arrays with entries from `low` to `high`."""

    asks = "in the box: distance from its centre"

    @property
    def limit(self) -> float:
        return (self.high - self.low) / 2

    def measure(self, x: Any) -> Any:
        return jnp.max(jnp.abs(x - (self.low + self.high) / 2))

    def measure_slowly(self, num: Arithmetic, x: Any) -> Any:
        centre = num.number((self.low + self.high) / 2)
        return num.largest([abs(entry - centre) for entry in flattened(x)])

    def __init__(self, *shape: Axis, low: float = -1.0, high: float = 1.0, says: str = "") -> None:
        super().__init__(*shape, says=says)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise BadArgument("box", (low, high), "is no interval", fix="give low < high")
        self.low, self.high = float(low), float(high)

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        x = rng.uniform(self.low, self.high, (count, *shape))
        x = np.where(rng.random(x.shape) < 0.15, self.low, x)
        return np.where(rng.random(x.shape) < 0.15, self.high, x)

    def value(self, x: Any) -> Any:
        return jnp.clip(x, self.low, self.high)


class Orthogonal(ArraySpace):
    """Orthogonal matrices: the product of the reflections I - 2 v v^T/|v|^2, v a row of `raw`.

    A zero row is no reflection; every orthogonal matrix is such a product.
    """

    def __init__(self, size: Axis) -> None:
        super().__init__(size, size)

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        x = rng.normal(size=(count, *shape))
        return np.where(rng.random((count, shape[0], 1)) < 0.25, 0.0, x)

    def kept(self, x: Any) -> Any:
        lengths = safe_norm(x)[:, None]
        return x / jnp.where(lengths > 0, lengths, 1.0)

    def value(self, x: Any) -> Any:
        product = jnp.eye(len(x), dtype=x.dtype)
        for row in x:
            square = jnp.sum(row * row)
            factor = jnp.where(square > 0, 2.0 / jnp.where(square > 0, square, 1.0), 0.0)
            product = product - factor * jnp.outer(product @ row, row)
        return product

    def formula(self, x: Array) -> tuple[str, str] | None:
        mirrors = "[np.eye(len(v)) - 2 * np.outer(v, v) / (v @ v) for v in {x} if v.any()]"
        python = f"functools.reduce(np.matmul, {mirrors}, np.eye(len({{x}})))"
        return python, r"\textstyle\prod_v(I-2vv^\top/|v|^2),\ v\text{ the rows of }{x}"


class PositiveSemidefinite(ArraySpace):
    """Symmetric positive semidefinite matrices: B B^T for the raw matrix B."""

    def __init__(self, size: Axis) -> None:
        super().__init__(size, size)

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        x = scaled(rng, rng.normal(size=(count, *shape)), 1e-1, 1e1)
        return np.where(rng.random((count, 1, shape[1])) < 0.25, 0.0, x)

    def kept(self, x: Any) -> Any:
        return Reals(smallest=1e-3, largest=1e3).kept(x)

    def value(self, x: Any) -> Any:
        return x @ x.T

    def formula(self, x: Array) -> tuple[str, str] | None:
        return "{x} @ {x}.T", r"{x}{x}^\top"


class Positive(ArraySpace):
    """Arrays of positive numbers. The search looks at entries from `low` to `high`."""

    free = True
    positive = True

    def __init__(
        self,
        *shape: Axis,
        low: float = 1e-3,
        high: float = 1e3,
        drawn: tuple[float, float] | None = None,
        says: str = "",
    ) -> None:
        super().__init__(*shape, says=says)
        self.low, self.high = check_positive("low", low), check_positive("high", high)
        self.drawn = drawn or (self.low, self.high)

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        return log_uniform(rng, *self.drawn, count, *shape)

    def kept(self, x: Any) -> Any:
        return jnp.clip(x, self.low, self.high)

    def value(self, x: Any) -> Any:
        return x


class Fraction(Positive):
    """Arrays of numbers strictly between 0 and 1, such as probabilities."""

    fraction = True

    def __init__(self, *shape: Axis, low: float = 1e-9, high: float = 0.5, says: str = "") -> None:
        super().__init__(*shape, low=low, high=high, says=says)


class Signs(ArraySpace):
    """Arrays of -1 and 1."""

    discrete = True
    asks = "of signs: an entry is off by"

    @property
    def limit(self) -> float:
        return 0.0

    def measure(self, x: Any) -> Any:
        return jnp.max(jnp.abs(jnp.abs(x) - 1.0))

    def measure_slowly(self, num: Arithmetic, x: Any) -> Any:
        return num.largest([abs(abs(entry) - 1) for entry in flattened(x)])

    def kept(self, x: Any) -> Any:
        return jnp.clip(x, -1.0, 1.0)  # not only signs: small entries turn with small steps

    def value(self, x: Any) -> Any:
        return jnp.where(x < 0, -1.0, 1.0)


class Integers(ArraySpace):
    """Arrays of whole numbers from `low` to `high`, as floats."""

    discrete = True

    def __init__(self, *shape: Axis, low: int = 0, high: int = 10) -> None:
        super().__init__(*shape)
        if type(low) is not int or type(high) is not int or low >= high:
            raise BadArgument("integers", (low, high), "is no range", fix="give whole low < high")
        self.low, self.high = low, high

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        return rng.integers(self.low, self.high + 1, (count, *shape))

    def value(self, x: Any) -> Any:
        return jnp.clip(jnp.round(x), float(self.low), float(self.high))


_OURS = {
    *(Ball.value, Box.value, Integers.value, Orthogonal.value, Positive.value, Reals.value),
    *(PositiveSemidefinite.value, Signs.value, Simplex.value, Sphere.value, Tokens.value),
}


def is_ours(space: Space) -> bool:
    """Whether raw numbers become points as in one of these spaces, not in somebody's own way.

    What is known of a space by its kind (its chart, its exact points) is known of these alone; a
    class made from one of them may have points elsewhere.
    """
    return isinstance(space, ArraySpace) and type(space).value in _OURS
