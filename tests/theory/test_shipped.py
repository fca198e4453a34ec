"""The certificates that are shipped: each proved, and as small as it can be or explained."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headcount.theory import claims, recheck, shipped_certificates
from headcount.theory._certificate import certificate_from_json
from headcount.theory._shrink import shrink
from headcount.theory.domain import arrays_of, instance_from

SHIPPED = {path.stem: json.loads(path.read_text()) for path in shipped_certificates()}
BY_HAND = (
    "deora2024-assumption-3-gaussian",
    "deora2024-corollary-2-heads-printed",
    "deora2024-corollary-2-step-printed",
    "deora2024-eq-121-printed",
    "deora2024-eq-21-printed",
    "deora2024-eq-3-printed",
    "deora2024-fact-2-printed",
    "deora2024-lemma-12-printed",
    "deora2024-lemma-18-printed",
    "deora2024-lemma-2-printed",
    "deora2024-lemma-5-gradient-same-constant",
    "deora2024-margin-order-printed",
    "deora2024-proposition-3-printed",
    "deora2024-proposition-3-section-7",
    "deora2024-proposition-7-printed",
    "deora2024-theorem-1-step-printed",
    "wu2023-assumption-1-printed",
    "wu2023-descent-printed",
    "wu2023-eq-36-printed",
    "wu2023-eq-62-printed",
    "wu2023-lemma-1-diagonal-printed",
    "wu2023-lemma-14-smooth-printed",
    "wu2023-lemma-17-printed",
    "wu2023-lemma-18-printed",
    "wu2023-lemma-19-printed",
    "wu2023-proposition-1-printed",
    "wu2023-remark-step-size-printed",
    "wu2023-sum-of-psd-printed",
    "wu2023-theorem-3-mixed-printed",
    "wu2023-theorem-3-printed",
)
"""Counterexamples that were thought of, with a note that explains their numbers."""
READABLE = {
    "arda2026-inner-product-printed": "with tokens zero nothing would be left to see",
    **dict.fromkeys(BY_HAND, "the errata page explains these very numbers"),
}
"""Shipped certificates that are not the smallest, and why."""


@pytest.mark.parametrize("stem", [s for s in SHIPPED if SHIPPED[s]["kind"] == "instance"])
def test_shipped_certificates_are_the_shrunk_ones(stem: str) -> None:
    certificate = certificate_from_json(SHIPPED[stem])
    claim = claims[certificate.claim]
    instance = instance_from(claim.instance_class, certificate.instance)
    small = arrays_of(shrink(claim, certificate.variant, instance))
    same = all(np.array_equal(small[name], value) for name, value in certificate.instance.items())
    assert same == (stem not in READABLE), small


def test_every_shipped_certificate_is_proved() -> None:
    for path in shipped_certificates():
        result = recheck(Path(path))
        assert result.status == "proved", (path.name, result.message)
        if result.proof is not None:  # an identity has no slow twin
            twin = result.proof.twin if claims[result.claim].naive else result.proof.decisive
            assert twin.status == result.proof.traced.status == "proved"
