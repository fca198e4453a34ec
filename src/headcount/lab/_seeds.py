"""Seeds and options as people type them."""

from __future__ import annotations

from collections.abc import Iterable

from ..core import BadArgument
from ..core._checks import check_kind

MOST_SEEDS = 10_000
"""A plan lists every trial; a million seeds are a typing mistake, or a job for several plans."""


def parse_seeds(text: str) -> tuple[int, ...]:
    """ "0:10" (ten seeds), "0:20:2", "7" or "0,3,5:8".

    >>> parse_seeds("0:3,10")
    (0, 1, 2, 10)
    """
    check_kind("seeds", text, str, fix="use 0:10 or 0,3,5")
    seeds: list[int] = []
    for part in text.split(","):
        try:
            numbers = [int(piece) for piece in part.split(":")]
        except ValueError:
            numbers = []
        if len(numbers) == 1:
            seeds.append(numbers[0])
        elif len(numbers) in (2, 3) and (len(numbers) == 2 or numbers[2] > 0):
            named = (numbers[1] - numbers[0]) // (*numbers, 1)[2]  # len() of a range overflows
            if named > MOST_SEEDS:
                problem = f"names {named} seeds, and more than {MOST_SEEDS} are refused"
                raise BadArgument("seeds", text, problem, fix="use fewer, such as 0:100")
            seeds.extend(range(*numbers))
        else:
            raise BadArgument("seeds", text, "is not a list of seeds", fix="use 0:10 or 0,3,5")
    if not seeds or min(seeds) < 0 or len(set(seeds)) != len(seeds):
        raise BadArgument(
            "seeds", text, "must name distinct seeds >= 0, at least one", fix="use 0:10 or 0,3,5"
        )
    return tuple(seeds)


def parse_options(texts: Iterable[str], argument: str = "option") -> dict[str, str]:
    """ "name=value" pairs as a dictionary; `argument` is what an error calls them.

    >>> parse_options(["teacher=code"])
    {'teacher': 'code'}
    """
    options: dict[str, str] = {}
    for text in check_kind(argument, texts, (list, tuple), fix="give a list of name=value"):
        check_kind(argument, text, str, fix="e.g. teacher=code")
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            fix = f"write {name or 'name'}=VALUE"
            raise BadArgument(argument, text, "must be name=value", fix=fix)
        if name in options:
            raise BadArgument(argument, text, f"gives {name} twice", fix="give it once")
        options[name] = value
    return options
