"""The registry of claims; a file under `theory/<paper>/` that registers a claim is found here."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

from ..core import Registry
from ._claim import Claim


class ClaimRegistry(Registry[Claim]):
    """Claims by id. The papers' modules are imported at the first look-up, not before."""

    def __init__(self) -> None:
        super().__init__("claim")
        self._loaded = False

    def add(self, claim: Claim) -> Claim:
        """Register `claim` under its own id."""
        return self.register(claim.id, claim)

    def load(self) -> None:
        """Import every paper's modules, once."""
        if self._loaded:
            return
        self._loaded = True
        here = Path(__file__).parent
        for paper in sorted(p.name for p in here.iterdir() if (p / "__init__.py").exists()):
            package = f"{__package__}.{paper}"
            for module in sorted(m.name for m in pkgutil.iter_modules([str(here / paper)])):
                importlib.import_module(f"{package}.{module}")

    def __getitem__(self, name: str) -> Claim:
        self.load()
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self.load()
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        # By id: the order must not depend on which module happened to be imported first.
        self.load()
        return iter(sorted(super().__iter__()))

    def __len__(self) -> int:
        self.load()
        return super().__len__()

    def items(self) -> Iterator[tuple[str, Claim]]:
        """The pairs (id, claim), by id."""
        self.load()
        return iter(sorted(super().items(), key=lambda pair: pair[0]))

    def of_paper(self, paper: str) -> list[Claim]:
        """The claims of one paper, by id."""
        return [claim for _, claim in self.items() if claim.paper == paper]


claims = ClaimRegistry()
"""Every claim that Headcount knows, by id such as "arda2026/lemma-3"."""
