"""What the engine asks of a paper's setting: the numbers behind a right side, without any data."""

from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

from ..training import TrainConfig


class Setting(Protocol):
    """Sizes, radii and probabilities that a theorem's right side depends on.

    A paper's own class is a frozen dataclass with more fields than these (`widest`, where it has
    one, is the largest width that it can speak about); head counting changes
    width, steps and step size through `resized`.
    """

    @classmethod
    def of(cls, config: TrainConfig, *, delta: float) -> Self:
        """The setting of a configuration, with events of failure probability `delta`."""

    @property
    def width(self) -> int:
        """Heads, or hidden features."""

    @property
    def width_step(self) -> int:
        """Widths are multiples of this: 2 where heads come in pairs."""

    @property
    def steps(self) -> int:
        """Steps of gradient descent."""

    def resized(
        self, *, width: int | None = None, steps: int | None = None, step_size: Any = None
    ) -> Self:
        """The same setting with other sizes; `step_size="default"` is the theorem's own."""

    def describe(self) -> str:
        """One line for people."""


S = TypeVar("S")


def resized(setting: S, **changes: Any) -> S:
    """A dataclass with other numbers, unchecked: a search makes them out of numbers that were.

    Head counting makes tens of thousands; what a user gives is checked by the constructor.
    """
    names = setting.__dataclass_fields__  # type: ignore[attr-defined]
    made = object.__new__(type(setting))
    vars(made).update((name, changes.get(name, getattr(setting, name))) for name in names)
    return made


@dataclass(frozen=True)
class PlainSetting:
    """The setting of a paper whose right sides depend on width and steps alone.

    >>> PlainSetting(8, 100).resized(width=16).describe()
    'width = 16, steps = 100'
    """

    width: int
    steps: int
    width_step: int = 1

    @classmethod
    def of(cls, config: TrainConfig, *, delta: float) -> Self:
        """The sizes of a configuration; no event depends on `delta`."""
        return cls(config.width, config.steps)

    def resized(
        self, *, width: int | None = None, steps: int | None = None, step_size: Any = None
    ) -> Self:
        """Other sizes; the step size plays no part."""
        return replace(self, width=width or self.width, steps=steps or self.steps)

    def describe(self) -> str:
        """Both in one line."""
        return f"width = {self.width}, steps = {self.steps}"
