"""`headcount explain`: what one claim says, what it needs, and how tight it is."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ._flags import Flag
from ._output import print_json, say, say_command
from ._unicode import unicode_of, unicode_words

if TYPE_CHECKING:
    from rich.console import Console

    from ..theory import Claim, Form
    from ..theory._explain import Explanation, Tightest


def explain_command(claim: str, /, *, latex: Flag = False, json: Flag = False) -> int:
    """Explain a claim: statement, formula, hypotheses, variants, errata, certificates, tightness.

    Tightness is the largest known ratio of left to right side: 1 means that the bound is reached,
    above 1 that this form has a counterexample. Of an equality it is the difference of its sides.

    Parameters
    ----------
    claim
        Id such as arda2026/lemma-3; see `headcount list`.
    latex
        Formulas and quotations in LaTeX, each on one line; otherwise in Unicode.
    json
        Print one JSON object on standard output.
    """
    from ..theory import claims, explain

    found = explain(claims[claim])
    if json:
        print_json(found.to_json())
    else:
        _show(found, latex)
    return 0


def _show(found: Explanation, latex: bool) -> None:
    from rich.console import Console

    from ..core import papers

    console = Console()
    # Where a terminal has no such characters, LaTeX is what can be read.
    written = _latex if latex or "utf" not in console.encoding else _unicode
    claim, tell = found.claim, functools.partial(say, console)
    formula = functools.partial(written, console)
    words = unicode_words if written is _unicode else str
    tell(f"{claim.id}: {claim.title}", "bold")
    where = papers[claim.paper].citation if claim.paper in papers else claim.paper
    tell(f"{claim.equations} of {where}; {claim.kind}")
    tell(f"\n{words(claim.statement)}")
    formula(claim.latex, 2)
    if claim.hypotheses:
        tell("\nHypotheses")
        for hypothesis in claim.hypotheses:
            asking = f" (form {', '.join(hypothesis.forms)})" if hypothesis.forms else ""
            tell(f"- {hypothesis.name}{asking}", indent=2)
    tell("\nForms")
    ratios = {one.variant: one for one in found.tightest}
    for name, variant in claim.forms.items():
        tell(f"- {name}{_marks(claim, name)}: {words(variant.text)}", indent=2)
        if variant.quotation:
            formula(variant.quotation, 4)
        for line in _told(variant)[bool(variant.quotation) :]:
            tell(words(line), indent=4)
        if name in ratios:
            one = ratios[name]
            sizes = ", ".join(f"{k} {'x'.join(map(str, s))}" for k, s in one.sizes.items())
            largest = f"{_hardest(one)}, {one.outcome}"
            tell(f"{largest}\nat {sizes}" if sizes else largest, indent=4)
    for note in found.errata:
        tell(f"\nNote {note.id.split('/')[1]} ({note.where})")
        told = {"printed": note.printed, "found": note.problem, "used here": note.used}
        for name, said in told.items():
            tell(f"{name}: {words(said)}", indent=2)
    for name, variant_name in found.certificates:
        on_file = _on_file(claim.forms[variant_name])
        tell(f"\n{on_file} for the form {variant_name!r}:")
        say_command(console, f"headcount recheck {name}", indent=2)
    if claim.families or claim.experiment is not None:
        tell("\nSearch for a worse instance:")
        say_command(console, f"headcount falsify {claim.id}", indent=2)
    else:
        tell("\nThere is nothing to search; headcount audit holds it against a run")


def _unicode(console: Console, text: str, indent: int) -> None:
    say(console, unicode_of(text), indent=indent)


def _latex(console: Console, text: str, indent: int) -> None:
    """On one line however long it is: to be copied."""
    console.print(f"{' ' * indent}{text}", markup=False, highlight=False, soft_wrap=True)


def _hardest(one: Tightest) -> str:
    """How far the hardest known instance goes; sides without a ratio have a difference or none."""
    from ..core._rounding import round_down

    if one.difference is not None:
        return f"largest known relative difference: {round_down(one.difference, 4)}"
    ratio = "the right side is zero" if one.ratio is None else round_down(one.ratio, 4)
    return f"largest known left/right: {ratio}"


def _marks(claim: Claim, name: str) -> str:
    """What is said in brackets about a form."""
    used = "the one used here" if name == claim.default else ""
    marks = ", ".join(mark for mark in (used, claim.forms[name].role) if mark)
    return f" ({marks})"


def _on_file(form: Form) -> str:
    """What the shipped instance is: a counterexample only to what claims to hold."""
    shows = form.role in ("informal", "assumption")
    return "Example on file" if shows else "Counterexample on file"


def _told(form: Form) -> list[str]:
    """The paper's words; of a refuted form what that means, and who has looked at it."""
    lines = [form.quotation] if form.quotation else []
    if form.fails:
        lines.append(f"{_on_file(form)}: {form.called}.")
        lines += [f"Most charitable reading: {form.defence}"] * bool(form.defence)
        lines += [f"Second look: {form.checked}"] * bool(form.checked)
    return lines
