"""How deora2024 declares its claims: what most of them share, written once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...theory import Claim, Kind, Sides, Variant, claims
from .naive import Data

Forms = str | Mapping[str, str | tuple[str, str] | Variant]
"""The forms of a claim: a text, (text, erratum) or a whole variant each; a text alone: printed."""

HESSIAN_TIERS = {
    "v2": ("the later text, with an extra factor d", "E9"),
    "v1": ("the first text, without it: its proof has a slip, the statement is true", "E9"),
    "sharp": ("free of d: R^2 beta_1 for beta_3", "E9"),
}


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
    errata: tuple[str, ...] = (),
    **more: Any,
) -> Claim:
    """Register a claim of this paper; its default form is the first that is not known to be false.

    `equations` lists every name that the paper has for the statement, `where` the place.
    """
    variants = _variants(forms)
    noted = [form.erratum for form in variants.values() if form.erratum is not None]
    return claims.add(
        Claim(
            id=f"deora2024/{name}",
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
            errata=tuple(dict.fromkeys([*errata, *noted])),
            references=(f"deora2024, {where}",),
            **more,
        )
    )


def identity(*texts: str, forms: Forms = "equality", **more: Any) -> Claim:
    """Register an equality of two arrays."""
    return claim(*texts, kind=Kind.IDENTITY, forms=forms, **more)
