"""Records: named products of spaces, the points that a paper's statements speak about.

    class Head(Record):
        "One head (c, U, W) on one sample X with query q."

        X = Tokens("T", "d")
        q = Ball("d")
        U = Reals("d")
        W = Reals("d", "d")
        activation = Choice("tanh", "erf")

        shapes = ({"T": 4, "d": 2}, {"T": 2, "d": 1, "activation": "erf"})

A record is a frozen pytree: its arrays are points of their spaces, its choices and counts are
static. Properties of the class are quantities that statements can take by name. A search begins at
`shapes`; `structured` adds draws of a special form, `within` ties fields to one another.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import jax
import numpy as np

from ..core import Array, BadArgument
from ._claim import Family, Hypothesis
from ._pytree import instance_class
from ._spaces import ArraySpace, Size
from .domain import Domain

Shape = Mapping[str, Any]
"""Sizes by letter, and choices and counts by field: what is static about a point.

Under "within" may stand a function that moves points, in place of `Record.within`: into hypotheses
that only some statements have.
"""


class Choice:
    """A name among several, such as an activation; the first is the default.

    With `others`, which says why a name is none, more names are allowed than are searched.
    """

    def __init__(self, *names: str, others: Callable[[str], str | None] | None = None) -> None:
        self.names, self.others = names, others

    def problem(self, name: str, value: Any) -> str | None:
        """Why a value is no such name."""
        if value in self.names:
            return None
        if self.others is not None:
            return self.others(value)
        return f"{name} = {value!r} is not one of {', '.join(self.names)}"

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: type | None = None) -> str: ...


class Static:
    """A whole number that belongs to the shape of a point, such as the steps of a run."""

    def __init__(self, default: int, largest: int = 10**9) -> None:
        self.default, self.largest = default, largest

    def problem(self, name: str, value: Any) -> str | None:
        """Why a value is no such count."""
        if value <= self.largest:
            return None
        return f"{name} = {value} is more than {self.largest}"

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: type | None = None) -> int: ...


class quantity:
    """A property that a run which was seen may know itself (`Record.seen`).

    It is computed anew whenever it is asked for: a value kept by one trace is none of another's.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else self.function(instance)


class Record(Domain):
    """A base for the points of statements; see the module's docstring."""

    spaces: ClassVar[Mapping[str, ArraySpace]] = {}
    statics: ClassVar[Mapping[str, Choice | Static]] = {}
    shapes: ClassVar[tuple[Shape, ...]] = ()
    slopes: ClassVar[bool] = True
    """Whether a search follows slopes; without them it compiles less."""
    guided: ClassVar[bool] = False
    """Whether an ascent that leaves a hypothesis goes back to it (`Family`)."""
    largest: ClassVar[int] = Family.largest
    """Other sizes than `shapes` are searched up to so many entries."""

    def __init_subclass__(cls) -> None:
        own = {n: v for n, v in vars(cls).items() if isinstance(v, (ArraySpace, Choice, Static))}
        cls.spaces = {**cls.spaces, **{n: v for n, v in own.items() if isinstance(v, ArraySpace)}}
        cls.statics = {
            **cls.statics, **{n: v for n, v in own.items() if not isinstance(v, ArraySpace)}
        }  # fmt: skip
        annotations: dict[str, Any] = {}
        for name, declared in own.items():
            if isinstance(declared, ArraySpace) and not (declared.asks or declared.free):
                problem = f"has a field {name} whose points cannot be told from others"
                raise BadArgument("record", cls.__name__, problem, fix="compute it in a property")
            delattr(cls, name)
            annotations[name] = _annotation(declared)
            if isinstance(declared, Choice):
                setattr(cls, name, declared.names[0])
            elif isinstance(declared, Static):
                setattr(cls, name, declared.default)
        cls.__annotations__ = annotations
        cls.positive = tuple(n for n, s in cls.spaces.items() if s.positive)
        cls.fractions = tuple(n for n, s in cls.spaces.items() if s.fraction)
        # Equality of arrays is no truth value; records are told apart by identity.
        instance_class(dataclasses.dataclass(frozen=True, kw_only=True, eq=False)(cls))

    if TYPE_CHECKING:

        def __init__(self, **fields: Any) -> None: ...

    @classmethod
    def seen(cls, *, measured: Mapping[str, Any], **known: Any) -> Self:
        """A point of which only some quantities are known: what an audited run fills in.

        `measured` says how far out its fields are, by the words of their spaces; what is not
        measured does not hold.

        >>> from headcount.theory import Positive
        >>> class Run(Record):
        ...     eta = Positive()
        >>> Run.seen(measured={}, trace="of a run").trace
        'of a run'
        """
        point = object.__new__(cls)
        point.__dict__.update(known, _measured=dict(measured))
        return point

    def problem(self) -> str | None:
        """Why this is no point, in words; a run that was seen is one."""
        return None if was_seen(self) else super().problem()

    def changed(self, **fields: Any) -> Self:
        """The same point with other fields."""
        return type(self)(**{**self.fields(), **fields})

    def fields(self) -> dict[str, Any]:
        """The fields by name."""
        return {name: getattr(self, name) for name in (*self.spaces, *self.statics)}

    @property
    def symbols(self) -> Any:
        """What the paper's constants are computed from: this point, where nothing else is said."""
        return self

    def outside(self) -> str | None:
        """Why the static parts make no sense; more where a class says so."""
        found = (kind.problem(name, getattr(self, name)) for name, kind in self.statics.items())
        return next((problem for problem in found if problem is not None), None)

    @classmethod
    def structured(cls, rng: np.random.Generator, drawn: dict[str, Array]) -> dict[str, Array]:
        """Fields drawn from their spaces, along a leading axis, with more structure."""
        return drawn

    def within(self) -> Self:
        """The point moved to where its fields fit one another."""
        return self

    @classmethod
    def draw(cls, rng: np.random.Generator, count: int, shape: Shape) -> Self:
        """`count` random points along a leading axis."""
        sizes = {letter: size for letter, size in shape.items() if type(size) is int}
        drawn = {n: space.draw(rng, count, sizes)[""] for n, space in cls.spaces.items()}
        statics = {name: shape[name] for name in cls.statics if name in shape}
        return cls(**cls.structured(rng, drawn), **statics)

    def inside(self, within: Callable[[Any], Any] | None = None) -> Self:
        """Every field moved into its space, then `within`."""
        kept = {n: s.value(s.kept(getattr(self, n))) for n, s in self.spaces.items()}
        near = self.changed(**kept)
        return near.within() if within is None else within(near)

    @classmethod
    def families(cls, shapes: Sequence[Shape] | None = None) -> tuple[Family, ...]:
        """Where a search begins: one family for each shape, by default for each of `shapes`."""
        return tuple(_family(cls, dict(shape)) for shape in shapes or cls.shapes)

    @classmethod
    def hypotheses(cls, names: tuple[str, ...]) -> tuple[Hypothesis, ...]:
        """What the spaces of some fields ask: their points measured, for those given by hand.

        Fields that ask the same in the same words are one hypothesis.
        """
        asked: dict[str, list[str]] = {}
        for name in (name for name in names if cls.spaces[name].asks):
            space = cls.spaces[name]
            asked.setdefault(space.says or f"{name} {space.asks}", []).append(name)
        return tuple(_membership(cls, words, tuple(own)) for words, own in asked.items())


def was_seen(point: Any) -> bool:
    """Whether a point is an audited run, of which only some quantities are known."""
    return "_measured" in vars(point)


def _annotation(declared: ArraySpace | Choice | Static) -> str:
    if isinstance(declared, ArraySpace):
        axes = (a.name if isinstance(a, Size) else str(a) for a in declared.shape)
        return f'Float[Array, "{" ".join(axes)}"]'
    return "str" if isinstance(declared, Choice) else "int"


def _family(kind: type[Record], shape: dict[str, Any]) -> Family:
    within = shape.pop("within", None)
    words = (v if isinstance(v, str) else f"{k}={v}" for k, v in shape.items())
    return Family(
        " ".join([kind.__name__.lower(), *words]),
        lambda rng, count: kind.draw(rng, count, shape),
        lambda point: point.inside(within),
        differentiable=kind.slopes,
        largest=kind.largest,
        guided=kind.guided,
    )


def _membership(kind: type[Record], words: str, names: tuple[str, ...]) -> Hypothesis:
    """That fields lie in their spaces, in JAX and in slow arithmetic."""
    spaces = [kind.spaces[name] for name in names]
    if len({space.limit for space in spaces}) > 1:
        raise BadArgument("record", kind.__name__, f"asks {words!r} with two limits", fix="rename")

    def value(point: Any) -> Any:
        if was_seen(point):
            return point._measured.get(words, math.nan)
        sizes = [s.measure(getattr(point, n)) for s, n in zip(spaces, names, strict=True)]
        return sizes[0] if len(sizes) == 1 else jax.numpy.max(jax.numpy.stack(sizes))

    def slowly(num: Any, data: Mapping[str, Any]) -> Any:
        return num.largest(
            [s.measure_slowly(num, data[n]) for s, n in zip(spaces, names, strict=True)]
        )

    return Hypothesis(words, value, slowly, spaces[0].limit)
