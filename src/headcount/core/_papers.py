"""Papers: one manifest each, found by name, so that the engines need not know any of them.

A manifest holds names ("package.module:attribute"), not objects: listing the papers imports
nothing heavy, and what a paper brings is imported when somebody asks for it.
"""

import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any, Generic, NamedTuple, TypeVar

from ._errors import BadArgument
from ._registry import Registry, suggestion

GROUP = "headcount.papers"
"""The entry-point group under which a package from outside names its `Paper`."""
HOME = "headcount.papers"
"""Our own papers: every subpackage of this one has a module `paper` with a `paper`."""


class PaperLeftOut(UserWarning):
    """A paper, or a part of one, could not be loaded; everything else goes on working."""


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


@dataclass(frozen=True)
class Paper:
    """Everything that one paper brings to the engines.

    `models` maps a model's name to its `training.Recipe`; `claims`, `facts`, `figures` and `errata`
    are modules that register theirs when imported; `subject` says what an audit looks at, `slack`
    where its bounds lose, `reduction` which narrower run equals a configuration's (a function of
    it, answers for `headcount count`), `leading` which claims an audit opens with, `setting` which
    numbers a right side depends on. `certificates` is the package whose folder of that name has
    the counterexamples. `choices` lists the readings of the text that were chosen.
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
    choices: tuple[Choice, ...] = ()
    facts: tuple[str, ...] = ()

    def part(self, name: str) -> Any:
        """The object behind one of the names above; a `BadArgument` where the paper has none."""
        reference = getattr(self, name)
        if reference is None:
            problem = f"has no {name} in its manifest"
            raise BadArgument("paper", self.key, problem, fix="choose another paper")
        return pkgutil.resolve_name(reference)


class Papers(Registry[Paper]):
    """The papers by key: ours and those that installed packages offer."""

    def __init__(self) -> None:
        super().__init__("paper", self._discover)

    def add(self, paper: Paper) -> Paper:
        """Make a paper known, for this process."""
        return self.register(paper.key, paper)

    def _discover(self) -> None:
        for found in pkgutil.iter_modules(importlib.import_module(HOME).__path__):
            if found.ispkg:
                self.add(importlib.import_module(f"{HOME}.{found.name}.paper").paper)
        for entry in metadata.entry_points(group=GROUP):
            with _left_out_if_broken(f"paper {entry.name!r} of {entry.value}"):
                paper = entry.load()
                if not isinstance(paper, Paper):
                    raise TypeError(f"{entry.value} is no headcount.Paper")
                self.add(paper)

    def of_model(self, model: str) -> Paper:
        """The paper that a model belongs to."""
        for _, paper in self.items():
            if model in paper.models:
                return paper
        known = [name for _, paper in self.items() for name in paper.models]
        raise BadArgument("model", model, "is not known", fix=suggestion(model, known))

    def recipes(self) -> Iterator[tuple[str, Any]]:
        """Every model's name with its recipe; those that do not load are left out."""
        for key, paper in self.items():
            for model, reference in paper.models.items():
                with _left_out_if_broken(f"model {model!r} of paper {key!r}"):
                    yield model, pkgutil.resolve_name(reference)

    def choices_about(self, *names: str) -> list[tuple[str, Choice]]:
        """The choices that concern any of these names, each with the key of its paper."""
        return [
            (key, choice)
            for key, paper in self.items()
            for choice in paper.choices
            if set(names) & set(choice.concerns)
        ]


class _left_out_if_broken:
    """Turn any error inside into one warning line: somebody else's package must not stop us."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type | None, error: BaseException | None, _: Any) -> bool:
        if not isinstance(error, Exception):
            return False
        reason = " ".join(str(error).split()) or "no message"
        message = f"{self._what} is left out: {type(error).__name__}: {reason}"
        warnings.warn(message, PaperLeftOut, stacklevel=2)
        return True


papers = Papers()
"""Every paper that Headcount knows, by citation key."""

Entry = TypeVar("Entry")


class PaperRegistry(Registry[Entry], Generic[Entry]):
    """Entries that the papers' modules register; those modules are imported at the first look-up.

    `modules(paper)` names them. Iteration is by name: the order must not depend on which module
    happened to be imported first.
    """

    def __init__(self, kind: str, modules: Callable[[Paper], tuple[str, ...]]) -> None:
        super().__init__(kind, self._import)
        self._modules = modules

    def _import(self) -> None:
        for key, paper in papers.items():
            for module in self._modules(paper):
                if module.startswith(f"{HOME}."):  # ours: a mistake must be seen
                    importlib.import_module(module)
                    continue
                with _left_out_if_broken(f"{self.kind}s of paper {key!r} ({module})"):
                    importlib.import_module(module)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__()))

    def items(self) -> Iterator[tuple[str, Entry]]:
        """The pairs (name, entry), by name."""
        return iter(sorted(super().items(), key=lambda pair: pair[0]))

    def of_paper(self, paper: str) -> list[Entry]:
        """The entries of one paper: those whose name starts with its key."""
        return [entry for name, entry in self.items() if name.split("/")[0] == paper]
