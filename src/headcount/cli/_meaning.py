"""What a proved violation means for the text that it is about, in the words of the form's role."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..theory import Claim


def called(claim: Claim, form: str) -> str:
    """What a violation of this form may be called; of somebody's lemma it is what it states."""
    if "/" not in claim.id:
        return "false as stated" if form == "stated" else f"false in the form {form!r}"
    return claim.forms[form].if_refuted


def meaning(claim: Claim, form: str) -> list[str]:
    """That in one line, the quotation with its place, and the most charitable reading."""
    if "/" not in claim.id:
        return [f"{claim.id} is {called(claim, form)}"]
    own = claim.forms[form]
    lines = [called(claim, form), own.quotation]
    lines += [f"Most charitable reading: {own.defence}"] if own.defence else []
    return [line for line in lines if line]
