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

A lemma's variables are a record without a name (`record_of`): its fields are the raw numbers of
its spaces, whose points are computed from them, so that no point needs a proof that it is one.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import jax
import numpy as np

from ..core import Array, BadArgument
from ._claim import Family, Hypothesis
from ._fields import Choice, Static
from ._possible_sizes import first_possible
from ._pytree import axes_of, instance_class
from ._space import check_letters
from ._spaces import ArraySpace, Size, Sizes, Space, below
from .domain import Domain

Shape = Mapping[str, Any]
"""Sizes by letter, and choices and counts by field: what is static about a point.

Under "within" may stand a function that moves points, in place of `Record.within`: into hypotheses
that only some statements have.
"""


class quantity:
    """A property that a run which was seen may know itself (`Record.seen`).

    It is computed anew whenever it is asked for: a value kept by one trace is none of another's.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else self.function(instance)


def _check_annotations(record: str, annotations: Mapping[str, Any], own: Container[str]) -> None:
    for name, said in annotations.items():
        if name not in own and "ClassVar" not in str(said):
            problem = f"has a field {name} that is annotated: it needs a space"
            fix = f"write {name} = Positive(), Reals(...) or Static(...)"
            raise BadArgument("record", record, problem, fix=fix)


class Record(Domain):
    """A base for the points of statements; see the module's docstring."""

    spaces: ClassVar[Mapping[str, Any]] = {}
    raw: ClassVar[bool] = False
    """Whether the fields are the raw arrays of the spaces, and points are computed from them."""
    sized: ClassVar[Mapping[str, Size]] = {}
    """The sizes that have a range to be searched over."""
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
        annotations: dict[str, Any] = dict(vars(cls).get("__annotations__", {}))
        if not cls.raw:
            _check_annotations(cls.__name__, annotations, own)
            annotations = {}
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
        if not cls.raw:
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
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

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
        drawn = {
            below(name, block): value
            for name, space in cls.spaces.items()
            for block, value in space.draw(rng, count, sizes).items()
        }
        statics = {name: shape[name] for name in cls.statics if name in shape}
        return cls(**cls.structured(rng, drawn), **statics)

    def inside(self, within: Callable[[Any], Any] | None = None) -> Self:
        """Every field moved into its space, then `within`."""
        if type(self).raw:
            return _raw_inside(self)
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
        if cls.raw:  # points by construction
            return ()
        for name in (name for name in names if cls.spaces[name].asks):
            space = cls.spaces[name]
            asked.setdefault(space.says or f"{name} {space.asks}", []).append(name)
        return tuple(_membership(cls, words, tuple(own)) for words, own in asked.items())


def record_of(name: str, spaces: Mapping[str, Space]) -> type[Record]:
    """A record of variables: one field for each raw array, axes named by the sizes."""
    sized = _sizes_in(name, spaces)
    fields: dict[str, str] = {}
    letters: set[str] = set()
    for key, space in spaces.items():
        for block, axes in space.blocks.items():
            own = below(key, block)
            check_letters(key, axes, sized)
            names = [
                axis.name if isinstance(axis, Size) else str(axis) if axis else f"{own}.{k}"
                for k, axis in enumerate(axes)
            ]
            letters.update(names)
            _add(name, fields, own, f'Float[Array, "{" ".join(names)}"]')
    counts = {key: key if key in letters else f"size_{key}" for key in sized}
    for key, own in counts.items():
        if key not in letters:
            _add(name, fields, own, "int")
    return type(name, (Record,), {
        "__doc__": f"The variables of {name}.",
        "__annotations__": fields,
        "spaces": dict(spaces),
        "statics": {own: Static(sized[k].low) for k, own in counts.items() if k not in letters},
        "raw": True,
        "sized": sized,
        "ranges": tuple((own, sized[key].low, sized[key].high) for key, own in counts.items()),
        "outside": _no_point,
    })  # fmt: skip


def _add(name: str, fields: dict[str, str], own: str, annotation: str) -> None:
    if own in fields or own in ("spaces", "statics", "sized"):
        problem = f"has two arrays of one name or one that is called {own}"
        raise BadArgument("lemma", name, problem, fix="rename a variable")
    fields[own] = annotation


def _sizes_in(name: str, spaces: Mapping[str, Space]) -> dict[str, Size]:
    sizes: dict[str, Size] = {}
    for space in spaces.values():
        for key, size in space.sizes.items():
            if sizes.setdefault(key, size) != size:
                fix = f"give it one range, {sizes[key]} or {size}"
                raise BadArgument("size", key, f"has two ranges in lemma {name}", fix=fix)
    return sizes


def _no_point(instance: Any) -> str | None:
    """Why raw numbers make no point."""
    sizes = sizes_of(instance)
    kind = type(instance)
    found = (space.outside(blocks_of(instance, k), sizes) for k, space in kind.spaces.items())
    return next((problem for problem in found if problem is not None), None)


# Functions, not methods: a lemma may have a variable of any name.


def blocks_of(instance: Any, name: str) -> dict[str, Any]:
    """The raw arrays of one variable."""
    return {b: getattr(instance, below(name, b)) for b in type(instance).spaces[name].blocks}


def sizes_of(instance: Any) -> dict[str, int]:
    """The sizes that have a range, from an instance's shapes, or from its own counts."""
    sized, sizes = type(instance).sized, {}
    for name, letters in axes_of(type(instance)).items():
        # Seen from the end: a batch of instances has one axis more.
        shape = np.shape(getattr(instance, name))[-len(letters) :] if letters else ()
        found = zip(letters, shape, strict=True)
        sizes.update({letter: int(size) for letter, size in found if letter in sized})
    own = {name: getattr(instance, f"size_{name}", None) for name in sized}
    return {**{name: count for name, count in own.items() if count is not None}, **sizes}


def points_of(instance: Any) -> dict[str, Any]:
    """The points of all variables."""
    kind = type(instance)
    if not kind.raw:
        return {name: getattr(instance, name) for name in kind.spaces}
    sizes = sizes_of(instance)
    return {n: space.point(blocks_of(instance, n), sizes) for n, space in kind.spaces.items()}


def _raw_inside(instance: Any) -> Any:
    """Raw numbers of the same points, of a size that a search can go on from."""
    kind, sizes = type(instance), sizes_of(instance)
    moved = {
        below(name, block): value
        for name, space in kind.spaces.items()
        for block, value in space.inside(blocks_of(instance, name), sizes).items()
    }
    return kind(**moved, **{name: getattr(instance, name) for name in kind.statics})


def family_at(kind: Any, sizes: Sizes) -> Family:
    """The instances of one choice of sizes; the same for all forms: it is compiled once."""
    made: Family = _family_at(kind, tuple(sizes.items()))
    return made


@functools.lru_cache(maxsize=256)
def _family_at(kind: Any, sizes: tuple[tuple[str, int], ...]) -> Family:
    shape = dict(sizes)
    shape |= {own: shape[own.removeprefix("size_")] for own in kind.statics}
    return Family(
        ", ".join(f"{name}={value}" for name, value in sizes) or "as declared",
        lambda rng, count: kind.draw(rng, count, shape),
        kind.inside,
        differentiable=not all(space.discrete for space in kind.spaces.values()),
        guided=True,
    )


def lowest(kind: type[Record]) -> Family:
    """The instances of the lowest sizes that no space refuses."""
    return family_at(kind, first_possible(kind.spaces.values(), kind.sized))


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
