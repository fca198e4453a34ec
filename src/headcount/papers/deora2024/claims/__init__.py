"""The statements of deora2024, one file each; `deora2024.claims["lemma-1"]` is one of them."""

from ....theory._registry import offer_claims

offer_claims(__name__)
