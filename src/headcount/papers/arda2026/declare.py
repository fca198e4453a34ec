"""How arda2026 declares its claims: what most of them share, written once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...theory import Bound, Claim, Sides, declare
from ...theory.declare import Forms
from ...theory.declare import false as false
from ...theory.slow import Arithmetic
from . import naive_constants
from .constants import constants, constants_at
from .hypotheses import NEAR_START
from .instances import MODELS, ModelInstance
from .naive import Data
from .setting import Setting

Trivial = Callable[[Any, dict[str, Any]], Any]

claim = functools.partial(declare.claim, "arda2026")
identity = functools.partial(declare.identity, "arda2026")


def table_of(i: ModelInstance, tier: str) -> dict[str, Any]:
    """The constants at an instance's realised B_U; B_app where the instance has a delta."""
    delta = getattr(i, "delta", None)
    sizes: dict[str, Any] = {"d": i.d, "m": i.m, "n": i.n, "delta": delta, "tier": tier}
    return constants_at(i.sigma, i.B_U, i.rho, i.nu, **sizes).to_dict()


def constant_bound(name: str, trivial: Trivial | None = None) -> Callable[[Setting, str], Bound]:
    """The a priori right side that is one of the constants."""

    def bound(setting: Setting, variant: str) -> Bound:
        table = constants(setting, variant).to_dict()
        return Bound(table[name], table, None if trivial is None else trivial(setting, table))

    return bound


def near_start(
    *texts: str,
    measured: Callable[[ModelInstance], Any],
    naively: Callable[[Arithmetic, Data], Any],
    constant: str,
    trivial: Trivial | None = None,
    forms: Forms,
    where: str = "App. A.7",
    **more: Any,
) -> Claim:
    """Register measured(i) <= constant, for phi in Omega_rho and |c0| = 1 in pairs.

    `constant` names one of the constants, the same in both arithmetics. `trivial(i, table)`
    bounds the left side without the claim.
    """

    def sides(i: ModelInstance, variant: str) -> Sides:
        table = table_of(i, variant)
        known = None if trivial is None else trivial(i, table)
        return Sides(measured(i), table[constant], table, known)

    def slow(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
        return naively(num, data), naive_constants.table(num, data, variant)[constant]

    options = {
        "families": MODELS,
        "hypotheses": NEAR_START,
        "bound": constant_bound(constant, trivial),
        "needs_event": True,
        **more,
    }
    return claim(*texts, sides=sides, naive=slow, forms=forms, where=where, **options)
