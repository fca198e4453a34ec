"""The registry of claims; the modules that a paper's manifest lists register theirs here."""

from ..core import PaperRegistry
from ._claim import Claim


class ClaimRegistry(PaperRegistry[Claim]):
    """Claims by id such as "paper/lemma-3"."""

    def __init__(self) -> None:
        super().__init__("claim", lambda paper: paper.claims)

    def add(self, claim: Claim) -> Claim:
        """Register `claim` under its own id."""
        return self.register(claim.id, claim)


claims = ClaimRegistry()
"""Every claim that Headcount knows."""
