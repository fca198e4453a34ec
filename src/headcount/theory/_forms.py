"""The forms of a claim: as printed, corrected, sharp, measured; each says why it exists."""

from __future__ import annotations

from collections.abc import Mapping

from ._claim import Variant

Forms = str | Mapping[str, str | tuple[str, str] | Variant]
"""A text, (text, note) or a whole variant for each form; a text alone: the printed form."""


def false(text: str, note: str) -> Variant:
    """A form that is known to be false: a certificate is shipped."""
    return Variant(text, note, fails=True)


def variants_of(forms: Forms) -> dict[str, Variant]:
    """Every form as a variant, by name."""
    table = {"printed": forms} if isinstance(forms, str) else forms
    return {
        name: form
        if isinstance(form, Variant)
        else Variant(*((form,) if isinstance(form, str) else form))
        for name, form in table.items()
    }
