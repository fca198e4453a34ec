"""How a paper declares its claims: what every paper's claims share, written once.

A paper binds its key, for instance `claim = functools.partial(declare.claim, "smith2030")`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ._claim import Bound, Claim, Family, Kind, Sides, Variant
from ._registry import claims

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
    key: str,
    name: str,
    title: str,
    equations: str,
    statement: str,
    latex: str,
    *,
    sides: Callable[[Any, str], Sides],
    naive: Callable[[Any, Mapping[str, Any], str], tuple[Any, Any]],
    forms: Forms,
    where: str,
    kind: Kind = Kind.DETERMINISTIC,
    families: tuple[Family, ...] = (),
    bound: Any = None,
    errata: tuple[str, ...] = (),
    also: tuple[str, ...] = (),
    **more: Any,
) -> Claim:
    """Register claim `name` of paper `key`; its default form is the first not known to be false.

    `equations` lists every name that the paper has for the statement, `where` is the place in the
    paper, `also` are references elsewhere.
    """
    variants = _variants(forms)
    noted = [form.erratum for form in variants.values() if form.erratum is not None]
    return claims.add(
        Claim(
            id=f"{key}/{name}",
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
            references=(f"{key}, {where}", *also),
            **more,
        )
    )


def identity(key: str, *texts: str, forms: Forms = "equality", **more: Any) -> Claim:
    """Register an equality of two arrays of paper `key`."""
    return claim(key, *texts, kind=Kind.IDENTITY, forms=forms, **more)
