"""The statements of arda2026, one file each; `arda2026.claims["lemma-1"]` is one of them."""

from ....theory._registry import offer_claims

offer_claims(__name__)
