"""Papers: one manifest each, found by name, so that the engines need not know any of them."""

import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from operator import itemgetter
from pathlib import Path
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
    """Entries that the papers' modules register; those are imported when somebody asks for one.

    `modules(paper)` names them; every entry is `of` one type. Whoever asks for one entry imports
    the modules that have its name in quotes, and all of its paper only where that was not enough.
    Iteration is by name: the order must not depend on which module was imported first.
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
        self._imported: set[tuple[str, str]] = set()
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
            self._import(key, self._modules(paper))
        return self._entries

    def _import(self, key: str, modules: Iterable[str]) -> None:
        for module in modules:
            if (key, module) not in self._imported:
                self._imported.add((key, module))
                what = f"{self._plural} of paper {key!r} ({module})"
                with left_out_if_broken(what, ours=key in papers.ours):
                    self._load(key, module)

    def _has(self, name: object) -> bool:
        """Whether there is an entry of this name, once what may bring it was imported."""
        key, _, own = str(name).partition("/")
        if key in papers:
            if name in self._entries and name not in self._early:
                return True  # before any source is read
            modules = self._modules(papers[key])
            for some in (*([module] for module in naming(modules, own)), modules):
                if name in self._entries and name not in self._early:
                    return True
                self._import(key, some)
        return name in self._all

    def __contains__(self, name: object) -> bool:
        return self._has(name)

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name] if self._has(name) else super().__getitem__(name)

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
        if paper in papers:
            self._import(paper, self._modules(papers[paper]))
        known = sorted(
            self._entries.items() if paper in papers else self.items(), key=itemgetter(0)
        )
        return [entry for name, entry in known if name.split("/")[0] == paper]


def naming(modules: Iterable[str], own: str) -> list[str]:
    """Those modules that go by a name or have it in quotes, the former first."""
    like = own.replace("-", "_")
    by_name = {module: module.rpartition(".")[2] == like for module in modules}
    found = [module for module in modules if by_name[module] or _names(module, own)]
    return sorted(found, key=lambda module: not by_name[module])


def _names(module: str, own: str) -> bool:
    """Whether a module's source has a name in quotes, alone or behind a slash; unread, it may."""
    try:
        found = importlib.util.find_spec(module)
        text = Path(str(found.origin)).read_text(encoding="utf-8") if found is not None else ""
    except (ImportError, OSError, ValueError):
        return True
    return found is None or re.search(rf"""["'/]{re.escape(own)}["']""", text) is not None
