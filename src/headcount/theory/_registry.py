"""The registry of claims; the modules that a paper's manifest lists register theirs here."""

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType

from ..core import BadArgument
from ..core._papers import PaperRegistry
from ._claim import Claim

_WORDS = "Assumption|Corollary|Corollaries|Definition|Fact|Lemma|Proposition|Remark|Theorem"
_STATEMENT = re.compile(rf"({_WORDS})s?((?: and |, | )?\d+)+")
_EQUATION = re.compile(r"\((\d+)\)(?:-\((\d+)\))?")


def names_in(equations: str) -> set[str]:
    """The ids that a place in a paper could go by: "Lemmas 2 and 17, Eq. (6)" gives three.

    >>> sorted(names_in("Lemmas 2 and 17, Eqs. (6)-(8)"))
    ['eq-6', 'eq-7', 'eq-8', 'lemma-17', 'lemma-2']
    >>> sorted(names_in("Lemma 1 = Lemma 4, Corollaries 3 and 4, Proposition 2 (P1), Sec. 5.3"))
    ['corollary-3', 'corollary-4', 'lemma-1', 'lemma-4', 'proposition-2']
    """
    found = set()
    for match in _STATEMENT.finditer(equations):
        word = match[1].lower().replace("corollaries", "corollary")
        found |= {f"{word}-{number}" for number in re.findall(r"\d+", match[0])}
    for first, last in _EQUATION.findall(equations):
        found |= {f"eq-{number}" for number in range(int(first), int(last or first) + 1)}
    return found


class ClaimRegistry(PaperRegistry[Claim]):
    """Claims by id such as "paper/lemma-3", or by any other name that the paper gives them."""

    def __init__(self) -> None:
        super().__init__("claim", lambda paper: paper.claims, Claim)

    def add(self, claim: Claim) -> Claim:
        """Register `claim` under its own id."""
        return self.register(claim.id, claim)

    def named(self, name: str) -> Callable[[Claim], Claim]:
        """Register the lemma below under a paper's name: @claims.named("paper/lemma-1")."""
        return lambda claim: self.add(replace(claim, id=name))

    def meant_by(self, paper: str, name: str) -> set[str]:
        """The names in the room of all claims that the paper calls so."""
        known = ((c.id.split("/")[1], names_in(c.equations)) for c in self.of_paper(paper))
        return {own for own, others in known if name in {own, *others}}

    def __getitem__(self, name: str) -> Claim:
        if name in self:
            return super().__getitem__(name)
        paper, _, own = str(name).partition("/")
        meant = [claim for claim in self.of_paper(paper) if own in names_in(claim.equations)]
        if len(meant) == 1:
            return meant[0]
        if meant:
            parts = ", ".join(claim.id for claim in meant)
            raise BadArgument("claim", name, "has several parts", fix=f"choose one of {parts}")
        return super().__getitem__(name)


claims = ClaimRegistry()
"""Every claim that Headcount knows."""


class RoomOfClaims(ModuleType):
    """The folder of a paper's statements, which are found in it by their own names."""

    @property
    def _key(self) -> str:
        return self.__name__.split(".")[-2]

    def __getitem__(self, name: str) -> Claim:
        return claims[f"{self._key}/{name}"]

    def __iter__(self) -> Iterator[str]:
        return (claim.id.split("/", 1)[1] for claim in claims.of_paper(self._key))

    def __len__(self) -> int:
        return len(claims.of_paper(self._key))


def offer_claims(package: str) -> None:
    """Let a paper's folder of statements be asked like a table: `smith2030.claims["lemma-1"]`."""
    sys.modules[package].__class__ = RoomOfClaims
