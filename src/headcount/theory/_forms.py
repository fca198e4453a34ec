"""The forms of a claim: as printed, corrected, sharp, measured; whose words each is.

A form has a role: what sort of sentence it is, and what its refutation may be called. The quotation
that it stands for comes from the file that a paper's manifest names under `quotes`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ..core import BadArgument, check_choice, papers
from ..core._checks import check_kind
from ..core._entries import read_tables

ROLES = {
    "statement": "a numbered result with its hypotheses, as printed",
    "step": "a display or sentence inside a proof",
    "implication": "'it follows that' between two statements",
    "reading": "one way to read an ambiguous text",
    "informal": "rates without constants, O(.), 'could be', 'w.h.p.' without numbers",
    "assumption": "what the paper assumes",
    "ours": "a form that we added; a refutation is about us",
}
"""What each role means; ours is the default."""
BRIEFLY = {
    "statement": "false as printed",
    "step": "a step does not hold",
    "implication": "does not follow",
    "reading": "false under one reading",
    "informal": "informal",
    "assumption": "assumption not met",
    "ours": "a form of ours fails",
}
"""The same refutation in a table or on a chip."""
AT_AN_EDGE = " at an edge"
"""Said in the same breath of a statement that fails only where nobody means it."""
RESULTS = {
    "untouched": "the result is untouched",
    "other constant": "the result holds with another constant",
    "other rate": "the result holds at another rate",
    "open": "whether the result holds is open",
}
"""What becomes of the result that a refuted step belongs to, and the words for it."""


@dataclass(frozen=True)
class Form:
    """One form of a claim: as printed, corrected, sharp or measured, and why it exists.

    `says` are the paper's own words or formula, `where` their place; `becomes` says of a step what
    becomes of the result, `beside` of a reading which forms hold, `what` ends the sentence that a
    refutation is told by, `edge` says of a statement that it fails only where nobody means it. A
    refuted form has a `defence`, the most charitable reading that was found, and was `checked` a
    second time from the paper's text alone.
    """

    text: str
    erratum: str | None = None
    fails: bool = False
    """Known to be false: a certificate is shipped."""
    role: str = "ours"
    says: str = ""
    where: str = ""
    becomes: str = ""
    beside: tuple[str, ...] = ()
    what: str = ""
    edge: bool = False
    defence: str = ""
    checked: str = ""

    def __post_init__(self) -> None:
        check_choice("role", self.role, ROLES)
        for name in _TEXTS:
            check_kind(name, getattr(self, name), str, fix="write it as text")
        check_kind("beside", self.beside, tuple, fix="list the names of forms")
        check_kind("edge", self.edge, bool, fix="write true or false")
        if self.becomes:
            check_choice("becomes", self.becomes, RESULTS)
        for name, roles in _BELONGS.items():
            if getattr(self, name) and self.role not in roles:
                problem = f"belongs to the role {' or '.join(roles)}, not to {self.role}"
                raise BadArgument(name, getattr(self, name), problem, fix="leave it out")
        if self.role != "ours":
            for name in ("says", "where"):
                if not getattr(self, name).strip():
                    fix = "quote the paper and name the place, or leave the form out: it is ours"
                    raise BadArgument(name, "", f"is missing for the role {self.role}", fix=fix)

    @property
    def called(self) -> str:
        """What the known refutation of this form is called; empty where none is known."""
        return self.if_refuted if self.fails else ""

    @property
    def if_refuted(self) -> str:
        """What a refutation of this form may be called, by its role."""
        if self.role == "statement":
            nobody = " that nobody means" * self.edge
            return f"{self.briefly}{nobody}{f': {self.what}' * bool(self.what)}"
        if self.role == "step":
            result = f"; {RESULTS[self.becomes]}" if self.becomes else ""
            return f"this step does not hold as printed{result}"
        if self.role == "implication":
            return f"does not follow: {self.what or self.text}"
        if self.role == "reading":
            holding = " and ".join(map(repr, self.beside))
            holding = f"; {holding} hold{'s' * (len(self.beside) == 1)}" if self.beside else ""
            return f"false under this reading{f' ({self.what})' * bool(self.what)}{holding}"
        if self.role == "informal":
            return f"informal, so never called false; {self.what or self.text}"
        if self.role == "assumption":
            return f"not met by {self.what or 'the example on file'}"
        return "a form of our own fails: the paper does not say it"

    @property
    def proved(self) -> str:
        """What is proved by a counterexample; what is not asserted cannot be violated."""
        asserted = self.role not in ("implication", "informal", "assumption")
        return "the violation is proved" if asserted else "the inequality is proved"

    @property
    def briefly(self) -> str:
        """What a refutation of this form is called in a table or on a chip."""
        return BRIEFLY[self.role] + AT_AN_EDGE * self.edge

    @property
    def quotation(self) -> str:
        """The paper's words with their place; empty for a form of our own."""
        return f'{self.where}: "{" ".join(self.says.split())}"' if self.says else ""


_TEXTS = ("role", "says", "where", "becomes", "what", "defence", "checked")
_BELONGS = {
    "becomes": ("step",),
    "beside": ("reading",),
    "what": ("statement", "implication", "reading", "informal", "assumption"),
    "edge": ("statement",),
}
_KEYS = tuple(one.name for one in fields(Form) if one.name not in ("text", "erratum", "fails"))

Forms = str | Mapping[str, str | tuple[str, str] | Form]
"""A text, (text, note) or a whole form for each name; a text alone: the printed form."""


def false(text: str, note: str) -> Form:
    """A form that is known to be false: a certificate is shipped."""
    return Form(text, note, fails=True)


def forms_of(forms: Forms) -> dict[str, Form]:
    """Every form, by name."""
    table = {"printed": forms} if isinstance(forms, str) else forms
    return {name: _form(form) for name, form in table.items()}


def _form(given: str | tuple[str, str] | Form) -> Form:
    if isinstance(given, Form):
        return given
    return Form(given) if isinstance(given, str) else Form(*given)


@functools.cache
def quotes_in(reference: str) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """The tables [claim.form] of "package:quotes.toml", each checked: claim -> form -> keys."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for claim, forms in read_tables(reference).items():
        for name, table in check_kind(claim, forms, dict, fix=_TABLES).items():
            where = f"{reference} [{claim}.{name}]"
            keys = check_kind(where, table, dict, fix=_TABLES)
            unknown = [key for key in keys if key not in _KEYS]
            if unknown:
                problem = f"is no key of {where}"
                raise BadArgument("key", unknown[0], problem, fix=f"use {', '.join(_KEYS)}")
            quote: dict[str, Any] = {
                k: tuple(v) if isinstance(v, list) else v for k, v in keys.items()
            }
            try:
                form = Form("", **quote)
            except BadArgument as error:
                problem = f"{error.problem} (in {where})"
                raise BadArgument(error.argument, error.value, problem, fix=error.fix) from None
            if form.role == "ours":
                fix = "name the role, or leave the table out"
                raise BadArgument("role", "ours", f"needs no quotation (in {where})", fix=fix)
            found.setdefault(claim, {})[name] = quote
    return found


_TABLES = "write tables [claim.form]"


def quoted(claim: str, forms: Mapping[str, Form]) -> dict[str, Form]:
    """The forms of a claim with what its paper's file of quotations says of them."""
    paper, _, name = claim.partition("/")
    reference = papers[paper].quotes if paper in papers else None
    quotes = quotes_in(reference).get(name, {}) if reference is not None else {}
    for form in quotes:
        if form not in forms:
            problem = f"is no form of {claim} (in {reference})"
            raise BadArgument("form", form, problem, fix=f"use {', '.join(forms)}")
    made = {key: replace(form, **quotes.get(key, {})) for key, form in forms.items()}
    for one in made.values():
        for other in one.beside:
            if other not in made:
                problem = f"is no form of {claim}"
                raise BadArgument("beside", other, problem, fix=f"use {', '.join(made)}")
    return made
