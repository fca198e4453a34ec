"""How claims, verdicts, audits, head counts and certificates show themselves in a notebook.

Mixins without fields: they read what the class that takes them has.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..core._shown import (
    Shown,
    brief,
    brief_nested,
    html_formula,
    html_table,
    html_words,
    one_line,
)

_MOST_ENTRIES = 64
"""Of an instance's array, its entries are shown up to so many."""


class ClaimShown:
    """A claim: its formula typeset, its statement, and its forms with what is refuted."""

    def __repr__(self: Any) -> str:
        refuted = [name for name, form in self.variants.items() if form.fails]
        said = f"refuted: {', '.join(refuted)}" if refuted else ""
        parts = [self.id, str(self.kind), brief(self.title), said]
        return one_line("Claim", [part for part in parts if part])

    def _repr_latex_(self: Any) -> str | None:
        return f"$$ {self.latex} $$" if self.latex else None

    def _repr_html_(self: Any) -> str:
        own = "" if self.id == self.title else f"{self.id}, {self.equations}, "
        rows = [
            [f"{name} (default)" if name == self.default else name, form.text, form.called or "-"]
            for name, form in self.forms.items()
        ]
        asks = "; ".join(hypothesis.name for hypothesis in self.hypotheses)
        return (
            html_words(f"{self.title} ({own}{self.kind})")
            + html_formula(self.latex)
            + html_words(self.statement, f"Asks for: {asks}." if asks else "")
            + html_table(rows, ["form", "what it is", "refuted"])
        )


class VerdictShown(Shown):
    """A verdict: outcome, both sides, and the hypotheses with their margins."""

    def summary(self: Any) -> dict[str, Any]:
        """Claim, form, outcome and both sides."""
        sides = {"measured": self.measured, "bound": self.bound, "ratio": self.ratio}
        known = {name: value for name, value in sides.items() if value == value}
        return {"claim": f"{self.claim} ({self.variant})", "outcome": str(self.outcome), **known}

    def pictures(self: Any) -> str:
        """The message, and every hypothesis that was measured."""
        rows = [(c.name, c.value, c.threshold, "yes" if c.holds else "no") for c in self.hypotheses]
        table = html_table(rows, ["hypothesis", "measured", "at most", "holds"]) if rows else ""
        return html_words(self.message) + table


class AuditShown(Shown):
    """An audit: how many claims have which outcome, and every one with its two sides."""

    def summary(self: Any) -> dict[str, Any]:
        """The paper, the seeds and the outcomes counted."""
        counts = Counter(str(verdict.outcome) for verdict in self.verdicts)
        told = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
        return {"paper": self.paper, "seeds": self.seeds, "claims": told or "none"}

    def pictures(self: Any) -> str:
        """One row for each verdict."""
        rows = [(v.claim, v.variant, str(v.outcome), v.measured, v.bound) for v in self.verdicts]
        return html_table(rows, ["claim", "form", "outcome", "measured", "bound"])


class AnswerShown(Shown):
    """What one theorem asks for."""

    def summary(self: Any) -> dict[str, Any]:
        """The question, who answers, and the answer."""
        vacuous = {"vacuous": "known without it"} if self.trivial is not None else {}
        return {self.question: self.shown, "source": self.source, "form": self.variant, **vacuous}


class Answers(list[Any]):
    """The answers of several theorems: a list that is a table in a notebook."""

    def __repr__(self) -> str:
        return one_line("Answers", [f"{one.source} {one.variant}: {one.shown}" for one in self])

    def _repr_html_(self) -> str:
        rows = [(one.source, one.variant, one.shown, one.taken or one.note) for one in self]
        asked = self[0].question if self else "answer"
        return html_table(rows, ["theorem", "form", asked, "note"])


class CertificateShown(Shown):
    """A counterexample: what it refutes, its numbers, its arrays and its hypotheses."""

    def summary(self: Any) -> dict[str, Any]:
        """The claim, the form, and the numbers that the file states."""
        numbers = dict(self.claimed)
        ratio = {"ratio": numbers.pop("ratio")} if "ratio" in numbers else {}
        return {"claim": self.claim, "form": self.variant, **ratio, **numbers}

    def pictures(self: Any) -> str:
        """The point itself, where it is small, with the hypotheses that it meets."""
        rows = [(name, _entries(value)) for name, value in self.instance.items()]
        checks = [(check.name, check.value, check.threshold) for check in self.hypotheses]
        return (
            html_words(self.note)
            + (html_table(rows, ["variable", "value"]) if rows else "")
            + (html_table(checks, ["hypothesis", "value", "at most"]) if checks else "")
        )


class RecheckShown(Shown):
    """A certificate evaluated again."""

    def summary(self: Any) -> dict[str, Any]:
        """What was rechecked, whether it stands, and in which arithmetic."""
        what = f"{self.claim} ({self.variant})"
        found = {"claim": what, "outcome": str(self.status), "ratio": self.ratio}
        return {**found, "arithmetic": self.arithmetic}

    def pictures(self: Any) -> str:
        """The message."""
        return html_words(self.message)


class FalsificationShown(Shown):
    """A search for a counterexample: how it ended, and the point that it found."""

    def summary(self: Any) -> dict[str, Any]:
        """The claim, the form, and how the search ended."""
        return {"claim": f"{self.claim} ({self.variant})", "found": self.message}

    def _repr_latex_(self: Any) -> str | None:
        return self.shown.latex if self.shown is not None and self.violated else None

    def pictures(self: Any) -> str:
        """Where it was found, and the law by which its ratio grows."""
        words = self.shown.text if self.shown is not None and self.violated else ""
        rows = [(brief(dict(row.sizes)), row.ratio) for row in self.per_size]
        table = html_table(rows, ["sizes", "worst ratio"]) if rows else ""
        return html_words(words, *self.growth) + table


def _entries(value: Any) -> Any:
    """An array by its entries where it has few, else by its shape."""
    if getattr(value, "size", _MOST_ENTRIES + 1) > _MOST_ENTRIES:
        return value
    return brief_nested(value.tolist())
