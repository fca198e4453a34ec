"""The manifest of a paper: names ("package.module:attribute"), not objects.

Listing the papers imports nothing heavy; what a paper brings is imported when somebody asks.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from ._checks import check_kind
from ._entries import entry_of, read_tables
from ._errors import BadArgument
from ._outside import load_folder, load_object


class Choice(NamedTuple):
    """One reading of a paper where its text leaves several, or its code does something else.

    It concerns the models, initialisations, data models, losses and optimisers named in
    `concerns`; `option` is the option that chooses, where there is one.
    """

    what: str
    ours: str
    others: str
    concerns: tuple[str, ...]
    option: str = ""


_TEXTS = ("title", "citation")
_NAMES = ("claims", "figures", "leading", "facts", "brings")
_REFERENCES = ("setting", "subject", "slack", "reduction", "errata", "certificates", "quotes")


@dataclass(frozen=True)
class Paper:
    """Everything that one paper brings to the engines.

    `brings` are modules that register models, initialisations, data laws, fast gradients and
    kernels when imported; `models` maps a model's name to its `training.Recipe`; `claims`, `facts`,
    `figures` and `errata` are modules that register theirs, too; `subject` says what an audit looks
    at, `slack` where its bounds lose, `reduction` which narrower run equals a configuration's (a
    function of it, answers for `headcount count`), `leading` which claims an audit opens with,
    `setting` which numbers a right side depends on. `certificates` is the package whose folder of
    that name has the counterexamples. `choices` lists the readings of the text that were chosen, or
    names the file with a table [[choice]] for each ("package:choices.toml"), as `errata` may name
    one with a table for each note; `quotes` names the one with a table [claim.form] for each form
    that is the paper's own, with its role, its words and their place.
    """

    key: str
    title: str
    citation: str
    models: Mapping[str, str] = field(default_factory=dict)
    setting: str | None = None
    claims: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()
    subject: str | None = None
    leading: tuple[str, ...] = ()
    slack: str | None = None
    reduction: str | None = None
    errata: str | None = None
    certificates: str | None = None
    quotes: str | None = None
    choices: tuple[Choice, ...] | str = ()
    facts: tuple[str, ...] = ()
    brings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_key(self.key)
        for name in _TEXTS:
            check_kind(name, getattr(self, name), str, fix="write it as text")
        for name in _NAMES:
            _check_names(name, getattr(self, name))
        for name in _REFERENCES:
            fix = 'use a name such as "package.module", or leave it out'
            check_kind(name, getattr(self, name), str | None, fix=fix)
        _check_models(self.models)
        fix = "use a tuple of headcount.core.Choice, or the name of a file"
        check_kind("choices", self.choices, tuple | str, fix=fix)
        if not isinstance(self.choices, str):
            _check_choices(self.choices)

    @cached_property
    def readings(self) -> tuple[Choice, ...]:
        """The choices, from the file that the manifest names or as it lists them."""
        if not isinstance(self.choices, str):
            return self.choices
        found = read_tables(self.choices).get("choice")
        fix = "write tables [[choice]]"
        tables: list[Any] = check_kind(f"choice of {self.choices}", found, list, fix=fix)
        return _check_choices(tuple(entry_of(Choice, one, self.choices) for one in tables))

    def part(self, name: str) -> Any:
        """The object behind one of the names above; a `BadArgument` where the paper has none."""
        reference = getattr(self, name)
        if reference is None:
            problem = f"has no {name} in its manifest"
            raise BadArgument("paper", self.key, problem, fix="choose another paper")
        found = load_object(reference)
        if not callable(found):
            problem = f"is a {type(found).__name__}, no function or class"
            raise BadArgument(name, reference, problem, fix=f"mend the manifest of {self.key}")
        return found

    def file(self, name: str) -> Path | None:
        """Where a file or folder beside the certificates is; None if the paper keeps none."""
        if self.certificates is None:
            return None
        with resources.as_file(load_folder(self.certificates) / name) as found:
            return Path(found)


def _check_key(key: Any) -> None:
    """Keys are the first half of every id, and names of files."""
    check_kind("key", key, str, fix="use a citation key such as smith2030")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", key):
        problem = "must be letters, digits and hyphens"
        raise BadArgument("key", key, problem, fix="use one such as smith2030")


def _check_names(name: str, values: Any) -> None:
    fix = 'use a tuple of names, such as ("package.module",)'
    check_kind(name, values, tuple, fix=fix)
    for value in values:
        check_kind(name, value, str, fix=fix)


def _check_models(models: Any) -> None:
    fix = 'use {"name": "package.module:RECIPE"}'
    check_kind("models", models, Mapping, fix=fix)
    for name in (*models, *models.values()):
        check_kind("models", name, str, fix=fix)


def _check_choices(choices: tuple[Any, ...]) -> tuple[Choice, ...]:
    fix = "use Choice(what, ours, others, concerns=(names,))"
    for choice in choices:
        check_kind("choices", choice, Choice, fix=fix)
        for text in (choice.what, choice.ours, choice.others, choice.option):
            check_kind("choices", text, str, fix=fix)
        _check_names("concerns", choice.concerns)
    return choices
