"""A configuration from a TOML file and flags: flags win."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..training import TrainConfig
    from ..training._config import ProblemConfig

Config = TypeVar("Config", bound="ProblemConfig")
_LISTS = ("record", "keep")
_TRIPLES = ("rho", "nu")
MOST_BYTES = 1 << 20
"""Of a TOML file."""
OPTIONS = {
    "model_options": ("activation", "query", "readout", "scaling", "pooling", "residual"),
    "init_options": ("gamma", "n_init"),
    "data_options": ("d", "T", "nu", "pool"),
}
"""Flags that are short for an option, e.g. --pooling sum for --model-option pooling=sum."""


def read_config(file: Path | None, flags: Mapping[str, Any]) -> TrainConfig:
    """The checked configuration; flags that were not given (None) leave the file's value."""
    from ..core import BadArgument
    from ..training import TrainConfig

    config = _checked(TrainConfig, read_values(file, flags), file, flags)
    if flags.get("record_every") is not None and not config.record:
        problem = "has no meaning where nothing is recorded"
        raise BadArgument("record_every", config.record_every, problem, fix="add record=loss")
    return config


def read_problem(file: Path | None, flags: Mapping[str, Any]) -> ProblemConfig:
    """The problem of such a file; how it is trained may stand there too, and is not looked at."""
    from ..training import TrainConfig
    from ..training._config import ProblemConfig

    how = TrainConfig.model_fields.keys() - ProblemConfig.model_fields.keys()
    values = {name: value for name, value in read_values(file, flags).items() if name not in how}
    return _checked(ProblemConfig, values, file, flags)


def _checked(
    kind: type[Config], values: Mapping[str, Any], file: Path | None, flags: Mapping[str, Any]
) -> Config:
    from ..core import BadArgument
    from ..training._build import check_settings

    try:
        config = kind.of(values)
    except BadArgument as error:
        if file is not None and error.argument in read_toml(file).keys() - _given(flags):
            error.where = str(file)
        raise
    _check_short_flags(config, flags)
    check_settings(config)
    return config


def read_values(file: Path | None, flags: Mapping[str, Any]) -> dict[str, Any]:
    """What the file and the flags say, unchecked."""
    from ..core._checks import check_kind

    values = read_toml(file) if file is not None else {}
    given = _given(flags)
    for field, short in OPTIONS.items():
        named = {name: _parse_flag(name, given.pop(name)) for name in short if name in given}
        flag = field.removesuffix("s")
        repeated = parse_values(given.pop(flag, []), flag)
        if named or repeated:
            before = check_kind(field, values.get(field, {}), dict, fix="make it a table")
            values[field] = {**before, **repeated, **named}
    values.update({name: _parse_flag(name, value) for name, value in given.items()})
    if isinstance(values.get("seeds"), str):
        values["seeds"] = _parse_flag("seeds", values["seeds"])
    return values


def _given(flags: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value is not None}


def _check_short_flags(config: ProblemConfig, flags: Mapping[str, Any]) -> None:
    from ..core import HeadcountError

    own, start = config.recipe.options, config.recipe.start_options(config.init)
    for field, known in (("model_options", own), ("init_options", start)):
        for name in OPTIONS[field]:
            if flags.get(name) is not None and name not in known:
                options = ", ".join((*own, *start))
                has = f"its options are {options}" if options else "it has no options"
                flag = name.replace("_", "-")
                raise HeadcountError(
                    f"--{flag} has no meaning for {config.model} with init {config.init}: {has}"
                )


def read_toml(file: Path) -> dict[str, Any]:
    """The values of a TOML file; a missing or broken file is one clear message."""
    from ..core import BadArgument
    from ..core._reading import read_text

    text = read_text(file, MOST_BYTES, argument="config")
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:  # ValueError: also a number of 5,000 digits
        problem = f"is not TOML: {str(error).splitlines()[0]}"
        raise BadArgument("config", str(file), problem, fix="mend it") from None


def parse_values(texts: list[str], argument: str = "option") -> dict[str, Any]:
    """["L=16", "noise=bounded"] as a dictionary of numbers, lists, booleans and words."""
    from ..lab._seeds import parse_options

    return {name: _plain(text) for name, text in parse_options(texts, argument).items()}


def _plain(text: str) -> Any:
    """3, 0.5, true, [1, 2] as JSON reads them; anything else is a word."""
    from ..core._reading import parse_json

    try:
        return parse_json(text)
    except ValueError:
        return text


def listed(name: str, value: str) -> tuple[str, ...]:
    """The words between commas; none for nothing at all."""
    from ..core import BadArgument

    words = tuple(value.split(",")) if value else ()
    if not all(words):
        raise BadArgument(name, value, "has an empty name in it", fix="write names and commas")
    return words


def _parse_flag(name: str, value: Any) -> Any:
    from ..core import BadArgument
    from ..core._reading import parse_number
    from ..lab import parse_seeds

    if name == "seeds":
        return parse_seeds(value)
    if name in _LISTS:
        return listed(name, value)
    if name in _TRIPLES:
        try:
            first, second, third = (parse_number(part.strip()) for part in value.split(","))
        except ValueError:
            raise BadArgument(name, value, "is not three numbers", fix="use 3,3,3") from None
        return first, second, third
    return value
