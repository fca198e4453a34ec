"""Head counting: inverted bounds against brute force, and a search that finds a known answer."""

from __future__ import annotations

import pytest

from headcount.core import BadArgument
from headcount.papers.arda2026 import Setting
from headcount.theory import theorem_answers

SETTING = Setting(d=2, m=8, n=10, T=3, rho=(0.01, 0.01, 0.01), nu=(0.01, 0.01, 0.01), tau=10**6)


def test_a_target_must_be_positive():
    with pytest.raises(BadArgument, match="loss"):
        theorem_answers("arda2026", SETTING, -1.0, "width")
