"""Papers: one manifest each, found by name, so that the engines need not know any of them."""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Generic, TypeVar

from ._checks import check_kind
from ._errors import BadArgument
from ._manifest import Choice, Paper
from ._outside import HOME, left_out_if_broken
from ._registry import Registry, suggestion

GROUP = "headcount.papers"
"""The entry-point group under which a package from outside names its `Paper`."""


class Papers(Registry[Paper]):
    """The papers by key: ours and those that installed packages offer."""

    def __init__(self) -> None:
        super().__init__("paper", self._discover)
        self.ours: set[str] = set()
        """The keys of Headcount's own papers."""
        self.loading = ""
        """The paper from outside whose manifest is being imported."""

    def add(self, paper: Paper) -> Paper:
        """Make a paper known, for this process; a model belongs to one paper."""
        for key, known in self._entries.items():
            for model in known.models:
                if model in paper.models and key != paper.key:
                    raise RuntimeError(f"model {model!r} is one of paper {key!r} already")
        return self.register(paper.key, paper)

    def _discover(self) -> None:
        for found in pkgutil.iter_modules(importlib.import_module(HOME).__path__):
            if found.ispkg:
                paper = self.add(importlib.import_module(f"{HOME}.{found.name}.paper").paper)
                self.ours.add(paper.key)
        found_outside: list[metadata.EntryPoint] = []
        with left_out_if_broken("every paper of an installed package"):
            found_outside += metadata.entry_points(group=GROUP)
        for entry in found_outside:
            self.loading = f"paper {entry.name!r} of {entry.value}"
            with left_out_if_broken(self.loading):
                paper = entry.load()
                if not isinstance(paper, Paper):
                    raise TypeError(f"{entry.value} is no headcount.Paper")
                self.add(paper)
        self.loading = ""

    def of_model(self, model: str) -> Paper:
        """The paper that a model belongs to."""
        for _, paper in self.items():
            if model in paper.models:
                return paper
        known = [name for _, paper in self.items() for name in paper.models]
        raise BadArgument("model", model, "is not known", fix=suggestion(model, known))

    def choices_about(self, *names: str) -> list[tuple[str, Choice]]:
        """The choices that concern any of these names, each with the key of its paper."""
        return [
            (key, choice)
            for key, paper in self.items()
            for choice in paper.readings
            if set(names) & set(choice.concerns)
        ]


papers = Papers()
"""Every paper that Headcount knows, by citation key."""


def bring_rooms(kind: type | None = None) -> None:
    """Import what the papers bring to the engines; of one class, what its own paper brings."""
    for key, paper in papers.items():
        for module in paper.brings:
            if kind is None or kind.__module__.startswith(f"{module.rpartition('.')[0]}."):
                with left_out_if_broken(f"{module} of paper {key!r}", ours=key in papers.ours):
                    importlib.import_module(module)


Entry = TypeVar("Entry")


class PaperRegistry(Registry[Entry], Generic[Entry]):
    """Entries that the papers' modules register; those modules are imported at the first look-up.

    `modules(paper)` names them; every entry is `of` one type. Iteration is by name: the order must
    not depend on which module happened to be imported first.
    """

    def __init__(
        self,
        kind: str,
        modules: Callable[[Paper], tuple[str, ...]],
        of: type[Entry],
        plural: str = "",
    ) -> None:
        super().__init__(kind)
        self._modules, self._of, self._plural = modules, of, plural or f"{kind}s"
        self._imported: set[str] = set()
        self._early: dict[str, str] = {}

    def register(self, name: str, entry: Entry) -> Entry:
        """Add `entry` under "paper/name"; a name is taken once."""
        fix = f"use a name such as smith2030/{self.kind}-1"
        if "/" not in check_kind(self.kind, name, str, fix=fix):
            raise BadArgument(self.kind, name, "does not name its paper", fix=fix)
        check_kind(f"{self.kind} {name}", entry, self._of, fix=f"use {self._of.__name__}(...)")
        # A manifest that registers while the papers are looked for comes before all of ours.
        if name in self._early:
            with left_out_if_broken(f"{self.kind} {name!r} of {self._early.pop(name)}"):
                del self._entries[name]
                raise RuntimeError("another paper has it")
        if papers.loading:
            self._early[name] = papers.loading
        return super().register(name, entry)

    @property
    def _all(self) -> dict[str, Entry]:
        # Asked each time: a paper may be added after the first look-up.
        for key, paper in papers.items():
            if key not in self._imported:
                self._imported.add(key)
                self._import(key, paper)
        return self._entries

    def _import(self, key: str, paper: Paper) -> None:
        for module in self._modules(paper):
            what = f"{self._plural} of paper {key!r} ({module})"
            with left_out_if_broken(what, ours=key in papers.ours):
                self._load(key, module)

    def _load(self, key: str, reference: str) -> None:
        """What a manifest names: a module that registers entries when it is imported."""
        importlib.import_module(reference)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__()))

    def items(self) -> Iterator[tuple[str, Entry]]:
        """The pairs (name, entry), by name."""
        return iter(sorted(super().items(), key=lambda pair: pair[0]))

    def of_paper(self, paper: str) -> list[Entry]:
        """The entries of one paper: those whose name starts with its key."""
        return [entry for name, entry in self.items() if name.split("/")[0] == paper]
