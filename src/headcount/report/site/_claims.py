"""Rows of the claims page: every claim beside what the stored audits say of it."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from ...core import papers
from ...core._outside import left_out_if_broken
from ...core._rounding import round_down
from ...theory import Certificate, Claim, claims
from ...theory._shipped import read_shipped

NOT_ASKED = "not asked"
"""The outcome of a claim that no stored audit asked."""


TIGHT = 2.0
"""A bound within this factor of what was measured is called tight."""


@dataclass(frozen=True)
class ClaimRow:
    """A claim, its verdict in the audit (the default variant) and its counterexamples."""

    claim: Claim
    verdict: Mapping[str, Any] | None
    counterexamples: tuple[Certificate, ...]
    formula: str

    @property
    def outcome(self) -> str:
        """The audit's outcome."""
        return NOT_ASKED if self.verdict is None else str(self.verdict["outcome"])

    @property
    def refuted(self) -> list[str]:
        """What the refutations of its forms are called, briefly."""
        forms = self.claim.forms.values()
        return list(dict.fromkeys(form.briefly for form in forms if form.fails))

    @property
    def marks(self) -> tuple[str, ...]:
        """What it is filtered by: what was refuted, whether its bound is vacuous or tight."""
        loose = self.looseness
        own = ["refuted"] * bool(self.refuted) + self.refuted
        own += ["vacuous"] * (self.outcome == "holds vacuously")
        return (*own, *["tight"] * (loose is not None and loose <= TIGHT))

    @property
    def looseness(self) -> float | None:
        """Bound over measured; None where there is no bound to compare with."""
        if self.verdict is None or self.claim.kind == "identity":
            return None
        ratio = self.verdict["ratio"]
        return 1 / ratio if ratio and math.isfinite(ratio) and ratio > 0 else None


def claim_rows(audits: Mapping[str, Any]) -> list[ClaimRow]:
    """All claims, with the audit of their paper where there is one."""
    from latex2mathml.converter import convert

    shipped = [certificate for _, certificate in read_shipped()]
    asked = {
        (verdict["id"], verdict["variant"]): verdict
        for audit in audits.values()
        for verdict in audit["claims"]
    }
    rows = []
    for name, claim in claims.items():
        with left_out_if_broken(f"claim {name!r}", ours=claim.paper in papers.ours):
            own = tuple(certificate for certificate in shipped if certificate.claim == name)
            verdict = asked.get((name, claim.default))
            typeset = convert(claim.latex) if claim.latex else ""
            rows.append(ClaimRow(claim, verdict, own, typeset))
    return rows


@dataclass(frozen=True)
class LogAxis:
    """A logarithmic axis of whole decades, as percentages of its width."""

    low: int
    high: int

    @classmethod
    def over(cls, values: list[float]) -> LogAxis:
        """The decades that hold all values."""
        logs = [math.log10(value) for value in values] or [0.0]
        low = math.floor(min(logs) + 1e-6)  # a bound that is attained up to rounding is at 0
        return cls(low, max(math.ceil(max(logs)), low + 1))

    def at(self, value: float) -> float:
        """Where a value lies, in percent."""
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return round(100 * max(share, 0.0), 2)

    @property
    def ticks(self) -> list[tuple[float, int]]:
        """(percent, exponent) of at most six decades."""
        step = math.ceil((self.high - self.low) / 5)
        return [(self.at(10.0**k), k) for k in range(self.low, self.high + 1, step)]


def shown(value: Any) -> str:
    """A number for people; what is no number as it is, nothing as a dash."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ", ".join(map(shown, value)) if isinstance(value, list) else str(value)
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e6):
        return str(int(value)) if abs(value) < 1e15 else f"{float(value):.4g}"
    return f"{value:.4g}"


def prose(text: Any) -> Markup:
    """Plain text with `names` in backticks, and mathematics typeset; everything is escaped."""
    parts = re.split(r"(`[^`]+`|\$[^$]+\$)", str(text))
    return Markup("".join(_part(part) for part in parts))


_COMMANDS = {
    "sqrt", "frac", "log", "ln", "exp", "le", "leq", "ge", "geq", "to", "sim", "approx", "propto",
    "cdot", "times", "infty", "ell", "tau", "eta", "nu", "mu", "rho", "gamma", "lambda", "delta",
    "sigma", "epsilon", "theta", "alpha", "beta", "Theta", "Omega", "Lambda", "mathcal", "tilde",
    "widehat", "hat", "bar", "mathbf", "mathrm", "in", "sum", "max", "min", "kappa", "phi",
}  # fmt: skip
_FORMULA = re.compile(r"[\w\s^{}()+\-*/=<>.,|\\]{1,200}")
_SIMPLE = (
    (r"\^\(([^()]{1,12})\)|\^\{([^{}]{1,12})\}|\^(-?\w{1,6})\b", "sup"),
    (r"(?<=\b[A-Za-z]|[)|])_\{([^{}]{1,12})\}|(?<=\b[A-Za-z]|[)|])_(\w{1,6})\b", "sub"),
)


def _part(text: str) -> str:
    """Code, a formula of known commands, or words with powers, indices and relations."""
    shown = str(escape(text))
    if text.startswith("`") and len(text) > 2:
        return f"<code>{escape(text[1:-1])}</code>"
    if text.startswith("$") and len(text) > 2:
        return _formula(text[1:-1]) or shown
    for pattern, tag in _SIMPLE:
        shown = re.sub(pattern, functools.partial(_marked, tag), shown)
    return shown.replace("&lt;=", "≤").replace("&gt;=", "≥").replace("sqrt(", "√(")


def _marked(tag: str, found: re.Match[str]) -> str:
    return f"<{tag}>{found[found.lastindex or 0]}</{tag}>"


def _formula(latex: str) -> str:
    """As MathML, if it holds nothing but letters, numbers and commands that we know."""
    from latex2mathml.converter import convert

    known = set(re.findall(r"\\([A-Za-z]+)", latex)) <= _COMMANDS
    if not known or not _FORMULA.fullmatch(latex):
        return ""
    try:
        return convert(latex)
    except Exception:  # the library raises all kinds of them over what is no formula
        return ""


def proof(certificate: Certificate) -> str:
    """What a counterexample shows, in numbers."""
    claimed = certificate.claimed
    if certificate.kind == "frequency":
        failed, times = int(claimed["exceedances"]), int(claimed["repetitions"])
        return f"failed {failed} of {times} times, allowed {claimed['delta']:g}"
    if claims[certificate.claim].kind == "identity":
        return "the two sides differ"
    if claimed["rhs"] == 0:
        return f"left side {round_down(claimed['lhs'], 5)}, right side 0"
    return f"left/right = {round_down(claimed['ratio'], 5)}"
