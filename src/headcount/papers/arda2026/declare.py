"""How arda2026 declares its claims: what most of them share, written once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...theory import Bound, Claim, Kind, Sides, Variant, claims
from ...theory.slow import Arithmetic
from . import naive_constants
from .constants import constants, constants_at
from .hypotheses import NEAR_START
from .instances import MODELS, ModelInstance
from .naive import Data
from .setting import Setting

Trivial = Callable[[Any, dict[str, Any]], Any]
Forms = str | Mapping[str, str | tuple[str, str] | Variant]
"""The forms of a claim: a text, (text, erratum) or a whole variant each; a text alone: printed."""


def false(text: str, erratum: str) -> Variant:
    """A form that is known to be false: a certificate is shipped."""
    return Variant(text, erratum, fails=True)


def _variants(forms: Forms) -> dict[str, Variant]:
    table = {"printed": forms} if isinstance(forms, str) else forms
    return {
        name: form
        if isinstance(form, Variant)
        else Variant(*((form,) if isinstance(form, str) else form))
        for name, form in table.items()
    }


def _bound(given: Any) -> Callable[[Any, str], Bound] | None:
    """A function as it is; a number or a number per variant as a constant bound."""
    if given is None or callable(given):
        return given
    return lambda setting, variant: Bound(given[variant] if isinstance(given, dict) else given)


def claim(
    name: str,
    title: str,
    equations: str,
    statement: str,
    latex: str,
    *,
    sides: Callable[[Any, str], Sides],
    naive: Callable[[Any, Data, str], tuple[Any, Any]],
    forms: Forms,
    where: str,
    kind: Kind = Kind.DETERMINISTIC,
    families: tuple[Any, ...] = (),
    bound: Any = None,
    errata: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    **more: Any,
) -> Claim:
    """Register a claim of this paper; its default form is the first that is not known to be false.

    `where` is the place in the paper, `also` are references elsewhere.
    """
    variants = _variants(forms)
    noted = [form.erratum for form in variants.values() if form.erratum is not None]
    return claims.add(
        Claim(
            id=f"arda2026/{name}",
            title=title,
            kind=kind,
            equations=equations,
            statement=statement,
            latex=latex,
            sides=sides,
            naive=naive,
            families=families,
            variants=variants,
            default=next(name for name, form in variants.items() if not form.fails),
            bound=_bound(bound),
            errata=tuple(dict.fromkeys([*errata, *noted])),
            references=(f"arda2026, {where}", *also),
            **more,
        )
    )


def identity(*texts: str, forms: Forms = "equality", **more: Any) -> Claim:
    """Register an equality of two arrays."""
    return claim(*texts, kind=Kind.IDENTITY, forms=forms, **more)


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
