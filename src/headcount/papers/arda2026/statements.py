"""How arda2026 declares its statements: its key, and its constants in both arithmetics."""

from __future__ import annotations

from functools import cached_property

from ...theory import Statements, Table
from ...theory.slow import norm
from . import constants, naive
from .naive import activation


class Constants(Table):
    """The constants of arda2026 at a head, a model, a run or a setting; "sharp" or as printed."""

    @property
    def tier(self):
        """Which constants a form takes."""
        return "sharp" if self.form == "sharp" else "printed"

    @cached_property
    def B_U(self):
        """The bound on |U| [Remark 7]."""
        return self.symbols.B_U

    @cached_property
    def L1(self):
        """Of Lemma 2 (a)."""
        return constants.lipschitz(self.symbols.sigma, self.B_U, self.tier)

    @cached_property
    def L2(self):
        """Of Lemma 2 (b)."""
        return constants.smoothness(self.symbols.sigma, self.B_U, self.tier)


class SlowConstants(Table):
    """The same, written apart."""

    @cached_property
    def _smooth(self):
        _s0, s1, s2 = activation(self.num, self.symbols["activation"]).bounds
        return naive.smoothness_constants(
            self.num, s1, s2, norm(self.num, self.symbols["U"]), self.form
        )

    @property
    def L1(self):
        return self._smooth[0]

    @property
    def L2(self):
        return self._smooth[1]


state = Statements("arda2026", Constants, SlowConstants)
