"""A lemma: somebody's own inequality as a claim that the engine can search, shrink and prove.

    T = Size("T", 1, 8)

    @lemma(z=Reals(T), u=Reals(T))
    def softmax_is_half_lipschitz(z, u):
        return norm(softmax(z + u) - softmax(z)), norm(u) / 2

The function returns its two sides. It has no slow twin: a violation is proved on its own jaxpr.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..core import BadArgument
from ._claim import Claim, Family, Hypothesis, Instance, Kind, Sides
from ._forms import Form
from ._possible_sizes import first_possible
from ._pytree import axes_of, instance_class
from ._spaces import Size, Sizes, Space
from ._spaces_joint import Constants, below
from .domain import Domain

Function = Callable[..., tuple[Any, Any]]


@dataclass(frozen=True)
class Given:
    """A hypothesis value <= threshold; both may be functions of variables, taken by name.

    `told`, another such function, says in words how it fails.
    """

    name: str
    value: float | Callable[..., Any]
    threshold: float | Callable[..., Any] = 1.0
    told: Callable[..., str] | None = None


def given(
    name: str,
    value: float | Callable[..., Any],
    threshold: float | Callable[..., Any],
    told: Callable[..., str] | None = None,
) -> Given:
    """A hypothesis of a lemma: `value(...) <= threshold`, where arguments are variables by name."""
    return Given(name, value, threshold, told)


@dataclass(frozen=True, eq=False)
class Lemma(Claim):
    """A claim made of a function; call it to evaluate both sides at points of your own."""

    function: Function = field(default=lambda: (0, 0), repr=False)
    variables: Mapping[str, Space] = field(default_factory=dict)
    constants: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The named constant of each variant, as an argument of the function."""
    given: tuple[Given, ...] = ()
    named_sizes: Mapping[str, Size] = field(default_factory=dict)
    shape_of_instances: type = field(default=object, repr=False)
    source: str = ""
    """The file that it was written in; empty in a notebook."""

    def __call__(self, *arguments: Any, **named: Any) -> tuple[Any, Any]:
        """Both sides, as the function returns them."""
        return self.function(*arguments, **named)

    @property
    def instance_class(self) -> type:
        """The class of this lemma's instances: one field for each raw array."""
        return self.shape_of_instances

    def instance(self, **raw: Any) -> Instance:
        """An instance from raw arrays (see `theory._spaces`), for `judge`."""
        fields = {
            name: value if isinstance(value, int) else np.asarray(value, dtype=np.float64)
            for name, value in raw.items()
        }
        return self.shape_of_instances(**fields)

    def points(self, instance: Instance) -> dict[str, Any]:
        """The variables' points, computed from the raw arrays."""
        return points_of(self.variables, self.named_sizes, instance)

    def at_points(self, points: Mapping[str, Any], variant: str) -> tuple[Any, Any, list[Any]]:
        """Both sides and the hypotheses as (value, threshold) at points of the spaces."""
        lhs, rhs = self.function(**points, **self.constants.get(variant, {}))
        return (
            _number(lhs),
            _number(rhs),
            [_measured(hypothesis, points) for hypothesis in self.given],
        )

    def raw_of(self, variable: str, instance: Instance) -> dict[str, Any]:
        """The raw arrays of one variable."""
        return _raw_of(variable, self.variables[variable], instance)

    def sizes_of(self, instance: Instance) -> dict[str, int]:
        """The named sizes of an instance."""
        return sizes_of_instance(instance, self.named_sizes)

    def family(self, sizes: Sizes) -> Family:
        """The instances of one choice of sizes."""
        variables, named = tuple(self.variables.items()), tuple(self.named_sizes.items())
        return _family(self.shape_of_instances, variables, named, tuple(sizes.items()))


def sizes_of_instance(instance: Instance, named: Mapping[str, Size]) -> dict[str, int]:
    """The named sizes of an instance, from its shapes, or from its own counts."""
    sizes = {}
    for name, letters in axes_of(type(instance)).items():
        # Seen from the end: a batch of instances has one axis more.
        shape = np.shape(getattr(instance, name))[-len(letters) :] if letters else ()
        found = zip(letters, shape, strict=True)
        sizes.update({letter: int(size) for letter, size in found if letter in named})
    own = {name: getattr(instance, f"size_{name}", None) for name in named}
    return {**{name: count for name, count in own.items() if count is not None}, **sizes}


def points_of(
    spaces: Mapping[str, Space], named: Mapping[str, Size], instance: Instance
) -> dict[str, Any]:
    """The points of all variables, computed from the raw arrays of an instance."""
    own = sizes_of_instance(instance, named)
    return {key: space.point(_raw_of(key, space, instance), own) for key, space in spaces.items()}


def _raw_of(variable: str, space: Space, instance: Instance) -> dict[str, Any]:
    return {block: getattr(instance, below(variable, block)) for block in space.blocks}


@functools.lru_cache(maxsize=256)
def _family(kind: type, spaces: tuple[Any, ...], sized: tuple[Any, ...], at: Any) -> Family:
    """The same family for all variants of a lemma: what is compiled for it is compiled once."""
    variables, named, sizes = dict(spaces), dict(sized), dict(at)
    static = {f.name: sizes[f.name[5:]] for f in dataclasses.fields(kind) if f.type == "int"}

    def draw(rng: np.random.Generator, count: int) -> Instance:
        arrays = {
            below(name, block): value
            for name, space in variables.items()
            for block, value in space.draw(rng, count, sizes).items()
        }
        return kind(**arrays, **static)

    def project(instance: Instance) -> Instance:
        own = sizes_of_instance(instance, named)
        arrays = {
            below(name, block): value
            for name, space in variables.items()
            for block, value in space.inside(_raw_of(name, space, instance), own).items()
        }
        return kind(**arrays, **{name: getattr(instance, name) for name in static})

    return Family(
        ", ".join(f"{name}={value}" for name, value in sizes.items()) or "as declared",
        draw,
        project,
        differentiable=not all(space.discrete for space in variables.values()),
        guided=True,
    )


def lemma(*hypotheses: Given, **variables: Space | Constants) -> Callable[[Function], Lemma]:
    """Declare a lemma lhs <= rhs: variables with their spaces, hypotheses first if there are any.

    The decorated function takes the variables by name and returns (lhs, rhs), two numbers that are
    at least zero. A variable declared as `Constants(...)` makes one variant of each constant.
    """
    return lambda function: _declared(function, Kind.DETERMINISTIC, hypotheses, variables)


def equality(*hypotheses: Given, **variables: Space | Constants) -> Callable[[Function], Lemma]:
    """Declare an equality lhs = rhs; both sides may be arrays of the same shape."""
    return lambda function: _declared(function, Kind.IDENTITY, hypotheses, variables)


def _declared(
    function: Function, kind: Kind, hypotheses: tuple[Given, ...], declared: Mapping[str, Any]
) -> Lemma:
    name = function.__name__
    constants = {key: v for key, v in declared.items() if isinstance(v, Constants)}
    spaces = {key: v for key, v in declared.items() if key not in constants}
    _check_declaration(name, function, hypotheses, spaces, constants)
    sizes = _named_sizes(name, spaces)
    lowest = first_possible(spaces.values(), sizes)
    shape = _instance_class(name, spaces, sizes)
    label = next(iter(constants), "")
    forms: dict[str, float] = constants.get(label, {})
    variants = {key: Form(f"{label} = {value!r}") for key, value in forms.items()}
    text = inspect.cleandoc(function.__doc__ or name.replace("_", " "))

    def points(instance: Instance) -> dict[str, Any]:
        return points_of(spaces, sizes, instance)

    def sides(instance: Instance, variant: str) -> Sides:
        chosen = {label: forms[variant]} if label else {}
        lhs, rhs = function(**points(instance), **chosen)
        return Sides(_number(lhs), _number(rhs))

    made = Lemma(
        id=_id_of(function),
        title=name.replace("_", " "),
        kind=kind,
        equations="none",
        statement=text.split("\n\n")[0].replace("\n", " "),
        latex="",
        sides=sides,
        naive=None,
        families=(),
        variants=variants or {"stated": Form("as stated")},
        default=next(iter(variants), "stated"),
        hypotheses=tuple(_hypothesis(h, points) for h in hypotheses),
        function=function,
        variables=spaces,
        constants={v: {label: c} for v, c in forms.items()},
        given=hypotheses,
        named_sizes=sizes,
        shape_of_instances=shape,
        source=function.__code__.co_filename if ":" in _id_of(function) else "",
    )
    return dataclasses.replace(made, families=(made.family(lowest),))


def _id_of(function: Function) -> str:
    """file.py:name; only the name in a notebook."""
    file = Path(function.__code__.co_filename)
    written = file.suffix == ".py" and file.is_file()
    return f"{file.name}:{function.__name__}" if written else function.__name__


def _check_declaration(
    name: str, function: Function, hypotheses: Any, spaces: Any, constants: Any
) -> None:
    for key, space in spaces.items():
        if not isinstance(space, Space):
            fix = f"write {key}=Reals(...), Ball(...) or another space"
            raise BadArgument(key, space, f"is no space of lemma {name}", fix=fix)
    if not spaces:
        raise BadArgument("lemma", name, "has no variables", fix="write @lemma(x=Reals(3))")
    if len(constants) > 1:
        fix = "several constants go into one: use a name for each pair"
        raise BadArgument("lemma", name, "has two variables with constants", fix=fix)
    taken = set(inspect.signature(function).parameters)
    if taken != {*spaces, *constants}:
        differing = ", ".join(sorted(taken ^ {*spaces, *constants}))
        fix = f"declare and take the same names ({differing} is on one side only)"
        raise BadArgument("lemma", name, "declares other variables than it takes", fix=fix)
    for hypothesis in hypotheses:
        if not isinstance(hypothesis, Given):
            fix = "write given(name, function, threshold)"
            raise BadArgument("lemma", name, f"{hypothesis!r} is no hypothesis", fix=fix)
        limit = hypothesis.threshold
        if not (callable(limit) or (np.isreal(limit) and np.isscalar(limit) and limit == limit)):
            problem = f"hypothesis {hypothesis.name!r} has no number for a threshold: {limit!r}"
            raise BadArgument("lemma", name, problem, fix="give a number or a function")


def _named_sizes(name: str, spaces: Mapping[str, Space]) -> dict[str, Size]:
    sizes: dict[str, Size] = {}
    for space in spaces.values():
        for key, size in space.sizes.items():
            if sizes.setdefault(key, size) != size:
                fix = f"give it one range, {sizes[key]} or {size}"
                raise BadArgument("size", key, f"has two ranges in lemma {name}", fix=fix)
    return sizes


def _instance_class(name: str, spaces: Mapping[str, Space], sizes: Mapping[str, Size]) -> type:
    """A pytree class with one array field for each raw array; axes are named by the sizes."""
    fields: list[tuple[str, str]] = []
    letters: set[str] = set()
    for key, space in spaces.items():
        for block, axes in space.blocks.items():
            own = below(key, block)
            names = [
                axis.name if isinstance(axis, Size) else str(axis) if axis else f"{own}.{k}"
                for k, axis in enumerate(axes)
            ]
            letters.update(names)
            fields.append((own, f'Float[Array, "{" ".join(names)}"]'))
    counts = {key: key if key in letters else f"size_{key}" for key in sizes}
    fields += [(own, "int") for key, own in counts.items() if key not in letters]
    if len({own for own, _ in fields}) < len(fields):
        raise BadArgument("lemma", name, "has two arrays of one name", fix="rename a variable")

    def outside(instance: Instance) -> str | None:
        own = sizes_of_instance(instance, sizes)
        found = (space.outside(_raw_of(k, space, instance), own) for k, space in spaces.items())
        return next((problem for problem in found if problem is not None), None)

    ranges = tuple((own, sizes[key].low, sizes[key].high) for key, own in counts.items())
    inside = {"ranges": ranges, "outside": outside}
    made = dataclasses.make_dataclass(name, fields, bases=(Domain,), frozen=True, namespace=inside)
    return instance_class(made)


def _hypothesis(declared: Given, points: Callable[[Instance], dict[str, Any]]) -> Hypothesis:
    limit: Any = declared.threshold
    if callable(limit):
        limit = lambda instance, variant: _measured(declared, points(instance))[1]  # noqa: E731
    else:
        limit = float(limit)
    return Hypothesis(
        declared.name, lambda instance: _measured(declared, points(instance))[0], None, limit
    )


def _number(value: Any) -> Any:
    """What a user's function returns, integers as floats: search, verdicts and balls need those."""
    array = jnp.asarray(value)
    return array.astype(float) if array.dtype.kind in "iu" else array


def _measured(declared: Given, points: Mapping[str, Any]) -> tuple[Any, Any]:
    """Value and threshold at points; functions take the variables that they name."""

    def at(part: Any) -> Any:
        if not callable(part):
            return float(part)
        return _number(part(**{name: points[name] for name in inspect.signature(part).parameters}))

    return at(declared.value), at(declared.threshold)
