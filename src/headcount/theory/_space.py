"""What a space is: where a variable of a statement lives, and the sizes of its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
import numpy as np

from ..core import Array, BadArgument, check_count
from ._spaces_text import latex_array, latex_name, put
from .families import log_uniform
from .slow import Arithmetic


@dataclass(frozen=True)
class Size:
    """A named size between two whole numbers, such as a number of tokens: it is searched over.

    >>> Size("T", 1, 8)
    Size(name='T', low=1, high=8)
    """

    name: str
    low: int
    high: int

    def __post_init__(self) -> None:
        if not self.name.isidentifier():
            raise BadArgument("size", self.name, "is no name", fix="use a letter, such as T")
        check_count(f"low of {self.name}", self.low)
        check_count(f"high of {self.name}", self.high, least=self.low)


Axis = Size | int | str
"""A named size, a number, or in a record the letter of a size that its shapes give."""
Sizes = Mapping[str, int]


def length(axis: Axis, sizes: Sizes) -> int:
    """The length of an axis at given sizes."""
    if isinstance(axis, int):
        return axis
    return sizes[axis.name if isinstance(axis, Size) else axis]


def check_letters(variable: str, axes: tuple[Axis, ...], sized: Sizes | Mapping[str, Size]) -> None:
    """Letters of a lemma's axes are sizes with a range; only a record's shapes give others."""
    for axis in axes:
        if isinstance(axis, str) and axis not in sized:
            fix = f'write Size("{axis}", 1, 8) in its place'
            raise BadArgument(variable, axis, "is a letter without a range", fix=fix)


def below(name: str, block: str) -> str:
    """The name of a block of a variable."""
    return f"{name}_{block}" if block else name


def check_axes(shape: tuple[Any, ...]) -> tuple[Axis, ...]:
    """A shape made of sizes and whole numbers."""
    for axis in shape:
        if not isinstance(axis, Size) and not (isinstance(axis, str) and axis.isidentifier()):
            check_count("shape", axis)
    return shape


class Space:
    """Where a variable of a lemma lives; `blocks` names its arrays of raw numbers."""

    discrete: ClassVar[bool] = False
    """Whether there is no slope to follow."""

    @property
    def blocks(self) -> dict[str, tuple[Axis, ...]]:
        """The axes of each raw array."""
        raise NotImplementedError

    @property
    def sizes(self) -> dict[str, Size]:
        """The named sizes among the axes."""
        return {a.name: a for axes in self.blocks.values() for a in axes if isinstance(a, Size)}

    def refuses(self, sizes: Sizes) -> str | None:
        """Why there is no point at these sizes; None if there is."""
        return None

    def outside(self, raw: Mapping[str, Any], sizes: Sizes) -> str | None:
        """Why raw arrays of the declared shapes make no point; None if they do."""
        return None

    def draw(self, rng: np.random.Generator, count: int, sizes: Sizes) -> dict[str, Array]:
        """Raw arrays of `count` random points along a leading axis."""
        raise NotImplementedError

    def inside(self, raw: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
        """Raw arrays of the same point, of a size that a search can go on from."""
        raise NotImplementedError

    def point(self, raw: Mapping[str, Any], sizes: Sizes) -> Any:
        """The point: in the space for all raw arrays."""
        raise NotImplementedError

    def python(self, name: str, raw: Mapping[str, Any]) -> list[str]:
        """Lines of Python that define the point under a name, with NumPy as np."""
        raise NotImplementedError

    def latex(self, name: str, raw: Mapping[str, Any]) -> list[str]:
        """The point in LaTeX, one formula for each array."""
        raise NotImplementedError


class ArraySpace(Space):
    """A space of arrays of one shape, with raw arrays of that shape.

    A point given by hand (by a file, an audit) is measured: `measure(x) <= limit` where it lies in
    the space, which `asks` says in words; `says` are a paper's own words for that.
    """

    asks: ClassVar[str] = ""
    free: ClassVar[bool] = False
    """Whether every array (of a class's domain) is a point."""
    positive: ClassVar[bool] = False
    """Whether entries that are not positive are outside any domain."""
    fraction: ClassVar[bool] = False
    """Whether entries must lie strictly between 0 and 1."""

    def __init__(self, *shape: Axis, says: str = "") -> None:
        self.shape = check_axes(shape)
        self.says = says

    @property
    def limit(self) -> float:
        """What `measure` must not exceed."""
        return 1.0

    def measure(self, x: Any) -> Any:
        """How far out a point is."""
        raise NotImplementedError

    def measure_slowly(self, num: Arithmetic, x: Any) -> Any:
        """The same of nested lists, in slow arithmetic."""
        raise NotImplementedError

    if TYPE_CHECKING:  # a record's fields are arrays

        def __get__(self, instance: object, owner: type | None = None) -> Array: ...

    @property
    def blocks(self) -> dict[str, tuple[Axis, ...]]:
        return {"": self.shape}

    def draw(self, rng: np.random.Generator, count: int, sizes: Sizes) -> dict[str, Array]:
        shape = tuple(length(axis, sizes) for axis in self.shape)
        return {"": np.asarray(self._random(rng, count, shape), dtype=np.float64)}

    def inside(self, raw: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
        return {"": self.kept(raw[""])}

    def point(self, raw: Mapping[str, Any], sizes: Sizes) -> Any:
        return self.value(raw[""])

    def _random(self, rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
        return normal_entries(rng, count, shape)

    def kept(self, x: Any) -> Any:
        return self.value(x)

    def value(self, x: Any) -> Any:
        """The point of a raw array."""
        raise NotImplementedError

    def formula(self, x: Array) -> tuple[str, str] | None:
        """How the point comes from the raw array {x}, in Python and LaTeX; None: it is the array"""
        return None

    def _shown(self, x: Array) -> Array:
        return np.asarray(self.value(jnp.asarray(x))) if self.formula(x) is None else np.asarray(x)

    def python(self, name: str, raw: Mapping[str, Any]) -> list[str]:
        formula = self.formula(raw[""])
        lines = [f"{name} = np.array({self._shown(raw['']).tolist()})"]
        return lines if formula is None else [*lines, f"{name} = {put(formula[0], name)}"]

    def latex(self, name: str, raw: Mapping[str, Any]) -> list[str]:
        formula = self.formula(raw[""])
        shown = latex_array(self._shown(raw[""]))
        if formula is None:
            return [f"{latex_name(name)}={shown}"]
        return [f"{latex_name(name)}={put(formula[1], 'A')},\\ A={shown}"]


def normal_entries(rng: np.random.Generator, count: int, shape: tuple[int, ...]) -> Array:
    """Normal entries; for matrices a quarter of the draws has rank one."""
    x = rng.normal(size=(count, *shape))
    if len(shape) > 1:
        few = count // 4
        left, right = x[:few, ..., :1], x[:few, ..., :1, :]
        x[:few] = left * right
        x = rng.permutation(x)
    return x


def scaled(rng: np.random.Generator, x: Array, low: float, high: float) -> Array:
    return x * log_uniform(rng, low, high, len(x)).reshape(-1, *[1] * (x.ndim - 1))
