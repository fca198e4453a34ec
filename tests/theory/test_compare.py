"""All papers beside each other: own losses, shares of the start, hypotheses that fail."""

from __future__ import annotations

import pytest

from headcount.core import BadArgument
from headcount.theory import Answer, compare

PROBLEM = {"data": "dm1", "n": 6, "width": 4, "steps": 5, "seeds": (0,)}


def test_a_share_is_a_fraction() -> None:
    with pytest.raises(BadArgument, match="share"):
        compare(PROBLEM, share=1.5)


@pytest.mark.parametrize(
    ("value", "beyond", "shown"),
    [(128.0, None, "128"), (None, None, "never"), (None, 4096.0, "> 4096")],
)
def test_how_an_answer_is_shown(value: float | None, beyond: float | None, shown: str) -> None:
    assert Answer("width", "claim", "printed", value, "", beyond).shown == shown
