"""A lemma: somebody's own inequality as a claim that the engine can search, shrink and prove.

    T = Size("T", 1, 8)

    @lemma(z=Reals(T), u=Reals(T))
    def softmax_is_half_lipschitz(z, u):
        return norm(softmax(z + u) - softmax(z)), norm(u) / 2

The function returns its two sides. It has no slow twin: a violation is proved on its own jaxpr.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core import BadArgument
from ._arguments import Function, Given
from ._claim import Claim, Kind
from ._forms import Form
from ._record import lowest, record_of
from ._spaces import Space
from ._spaces_joint import Constants
from ._statement import claim_of


def lemma(
    *hypotheses: Given, title: str = "", says: str = "", where: str = "", **variables: Any
) -> Callable[[Function], Claim]:
    """Declare a lemma lhs <= rhs: variables with their spaces, hypotheses first if there are any.

    The decorated function takes the variables by name and returns (lhs, rhs), two numbers that are
    at least zero. A variable declared as `Constants(...)` makes one form of each constant. `says`
    is the formula in LaTeX, `where` its place in a text.
    """
    told = {"title": title, "latex": says, "equations": where or "none"}
    return lambda function: _declared(function, Kind.DETERMINISTIC, hypotheses, variables, told)


def equality(
    *hypotheses: Given, title: str = "", says: str = "", where: str = "", **variables: Any
) -> Callable[[Function], Claim]:
    """Declare an equality lhs = rhs; both sides may be arrays of the same shape."""
    told = {"title": title, "latex": says, "equations": where or "none"}
    return lambda function: _declared(function, Kind.IDENTITY, hypotheses, variables, told)


def _declared(
    function: Function,
    kind: Kind,
    hypotheses: tuple[Given, ...],
    declared: Mapping[str, Any],
    told: dict[str, str],
) -> Claim:
    if not callable(function):
        raise BadArgument("lemma", function, "is no function", fix="decorate one with @lemma(...)")
    name = function.__name__
    constants = {key: v for key, v in declared.items() if isinstance(v, Constants)}
    spaces = {key: v for key, v in declared.items() if key not in constants}
    _check_declaration(name, function, hypotheses, spaces, constants)
    on = record_of(name, spaces)
    identifier = _id_of(function)
    label, values = next(iter(constants.items()), ("", {}))
    forms = {key: Form(f"{label} = {value!r}") for key, value in values.items()}
    return claim_of(
        function, identifier, on, forms or {"stated": Form("as stated")},
        title=told["title"] or name.replace("_", " "),
        latex=told["latex"],
        equations=told["equations"],
        kind=kind,
        given=hypotheses,
        families=(lowest(on),),
        constants={form: {label: value} for form, value in values.items()},
        source=function.__code__.co_filename if ":" in identifier else "",
    )  # fmt: skip


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
        _check_hypothesis(name, hypothesis, spaces)


def _check_hypothesis(name: str, hypothesis: Given, spaces: Any) -> None:
    limit = hypothesis.threshold
    if not (callable(limit) or (np.isreal(limit) and np.isscalar(limit) and limit == limit)):
        problem = f"hypothesis {hypothesis.name!r} has no number for a threshold: {limit!r}"
        raise BadArgument("lemma", name, problem, fix="give a number or a function")
    for part in (hypothesis.value, limit):
        taken = inspect.signature(part).parameters if callable(part) else ()
        for variable in taken:
            if variable not in spaces:
                problem = f"hypothesis {hypothesis.name!r} takes {variable}, which is no variable"
                raise BadArgument("lemma", name, problem, fix=f"take {', '.join(spaces)}")
