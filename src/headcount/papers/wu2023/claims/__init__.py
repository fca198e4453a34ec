"""The statements of wu2023, one file each; `wu2023.claims["lemma-1"]` is one of them."""

from ....theory._registry import offer_claims

offer_claims(__name__)
