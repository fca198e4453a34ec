"""What a proved violation means for the text that it is about, in the words of the form's role."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._unicode import unicode_of, unicode_words

if TYPE_CHECKING:
    from ..theory import Claim


def called(claim: Claim, form: str) -> str:
    """What a violation of this form may be called; of somebody's lemma it is what it states."""
    if "/" not in claim.id:
        return "false as stated" if form == "stated" else f"false in the form {form!r}"
    return claim.forms[form].if_refuted


def meaning(claim: Claim, form: str, *, unicode: bool = False) -> list[str]:
    """That in one line, the quotation with its place, and the most charitable reading.

    With unicode, formulas are written as `explain` writes them.
    """
    if "/" not in claim.id:
        return [f"{claim.id} is {called(claim, form)}"]
    own = claim.forms[form]
    words, formula = (unicode_words, unicode_of) if unicode else (str, str)
    lines = [words(called(claim, form)), formula(own.quotation)]
    lines += [words(f"Most charitable reading: {own.defence}")] if own.defence else []
    return [line for line in lines if line]
