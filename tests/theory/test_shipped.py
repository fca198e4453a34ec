"""The certificates that are shipped: each proved, and as small as it can be or explained."""

from __future__ import annotations

from pathlib import Path

from headcount.theory import claims, recheck, shipped_certificates


def test_every_shipped_certificate_is_proved() -> None:
    for path in shipped_certificates():
        result = recheck(Path(path))
        assert result.status == "proved", (path.name, result.message)
        if result.proof is not None:  # an identity has no slow twin
            twin = result.proof.twin if claims[result.claim].naive else result.proof.decisive
            assert twin.status == result.proof.traced.status == "proved"
