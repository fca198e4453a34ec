r"""Mathematics for a terminal: LaTeX as Unicode, as far as characters go.

>>> print(unicode_of(r"\tfrac1n\sum_i\|\theta_i^2\|\le\sqrt{2\log(m/\delta')}"))
1/n Σᵢ‖θᵢ²‖ ≤ √(2 log(m/δ′))
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|[{}^_&$']|\s+|.", re.DOTALL)
_GREEK = dict(
    zip(
        re.findall(
            r"\w+",
            "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma "
            "tau upsilon phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega",
        ),
        "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ",
        strict=True,
    )
)
_SYMBOLS = {
    **_GREEK, "varphi": "φ", "varepsilon": "ε", "ell": "ℓ", "nabla": "∇", "partial": "∂",
    "infty": "∞", "sum": "Σ", "prod": "Π", "int": "∫", "langle": "⟨", "rangle": "⟩", "cdot": "·",
    "times": "×", "pm": "±", "vee": "∨", "wedge": "∧", "dots": "…", "ldots": "…", "cdots": "…",
    "forall": "∀", "star": "*", "circ": "∘", "bullet": "•", "prime": "′", "top": "ᵀ", "mid": " | ",
    "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "in": "∈", "notin": "∉",
    "sim": "∼", "approx": "≈", "propto": "∝", "lesssim": "≲", "gtrsim": "≳", "triangleq": "≜",
    "preceq": "≼", "succeq": "≽", "to": "→", "rightarrow": "→", "mapsto": "↦", "Rightarrow": "⇒",
    "quad": "   ", "qquad": "   ", "|": "‖", "{": "{", "}": "}", ",": " ", " ": " ", ";": " ",
    "!": "", "\\": "  ", "%": "%", "_": "_", "&": "&", "#": "#", "$": "$",
}  # fmt: skip
_RELATIONS = re.compile(r" *([≤≥≠∈∉∼≈∝≲≳≜≼≽→↦⇒]|:=|(?<![:=])=|[<>]) *")
_ACCENTS = {
    "hat": "\u0302", "widehat": "\u0302", "tilde": "\u0303", "widetilde": "\u0303",
    "bar": "\u0304", "overline": "\u0304", "dot": "\u0307",
}  # fmt: skip
_FONT = re.compile("(math|text)(bf|rm|it|sf|cal|bb)?|boldsymbol|operatorname|emph|(und|ov)erbrace")
_LETTERS = {
    "mathbb": {"P": "ℙ", "E": "𝔼", "R": "ℝ", "N": "ℕ"},
    "mathcal": {"L": "ℒ", "O": "𝒪", "N": "𝒩"},
}
_SILENT = re.compile("left|right|[Bb]igg?[lr]?|rm|bf|it|textstyle|displaystyle|limits")
_DROPPED = ("begin", "end", "tag", "label")
_ABOVE = dict(zip("0123456789+-=()nikjmTdxyst*′ᵀ", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱᵏʲᵐᵀᵈˣʸˢᵗ*′ᵀ", strict=True))
_BELOW = dict(
    zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True)
)


def unicode_of(latex: str) -> str:
    """A formula, or text with formulas between dollars, in plain characters."""
    text = _all(iter(_TOKEN.findall(latex)))
    return re.sub(r" +", " ", _RELATIONS.sub(r" \1 ", text)).strip()


def unicode_words(text: str) -> str:
    """Mathematics that was written with the keys of a typewriter: <=, phi, sqrt(m)."""
    for typed, shown in (("<=", "≤"), (">=", "≥"), ("sqrt(", "√("), ("!=", "≠")):
        text = text.replace(typed, shown)
    # A name in Greek letters may carry an index: rho_c, Omega_rho; `--rho` and `eta=` are flags.
    names = "|".join(sorted(_GREEK, key=len, reverse=True))
    found = re.compile(rf"(?<![A-Za-z])(?<!--)({names})(?![A-Za-z\-])")
    return found.sub(lambda one: _GREEK[one[1]], text)


def _all(tokens: Iterator[str]) -> str:
    """Everything up to the end of the group."""
    parts: list[str] = []
    for token in tokens:
        if token == "}":
            break
        part = _one(token, tokens)
        if parts and token not in "^_" and _apart(parts[-1], part):
            parts.append(" ")
        parts.append(part)
    return "".join(parts)


def _apart(before: str, after: str) -> bool:
    """Whether two parts would be read as one: words, roots and fractions end with a space."""
    if not (before[-1:].isalnum() and (after[:1].isalnum() or after[:1] in "√∇")):
        return False
    words = max(len(before), len(after)) > 1 and before[-1].isalpha() and after[:1].isalpha()
    words = words or (len(after) > 1 and after.isascii() and after.isalpha())
    return words or (before.isalpha() and len(before) > 1) or "/" in before or before[0] == "√"


def _one(token: str, tokens: Iterator[str]) -> str:
    """What one token, with its arguments, looks like."""
    if token == "{":
        return _all(tokens)
    if token in "^_":
        return _raised(_next(tokens), above=token == "^")
    if token in ("$", "&"):
        return ""
    if token == "'":
        return "′"
    if not token.startswith("\\") or len(token) == 1:
        return " " if token.isspace() else token
    return _command(token[1:].rstrip("*"), tokens)


def _command(name: str, tokens: Iterator[str]) -> str:
    if name in ("frac", "tfrac", "dfrac"):
        over, under = _next(tokens), _next(tokens)
        return f"{_whole(over)}/{_factor(under)}"
    if name == "sqrt":
        return f"√{_factor(_next(tokens))}"
    if name in _ACCENTS:
        inner = _next(tokens)
        return inner[:1] + _ACCENTS[name] + inner[1:] if len(inner) <= 2 else f"{name}({inner})"
    if _FONT.fullmatch(name):
        inner = _next(tokens)
        return _LETTERS.get(name, {}).get(inner, inner)
    if name in _DROPPED:
        _next(tokens)
        return ""
    if _SILENT.fullmatch(name):
        return ""
    return _SYMBOLS.get(name, name)


def _next(tokens: Iterator[str]) -> str:
    """The argument of a command: a group, or one token."""
    for token in tokens:
        if not token.isspace():
            return _one(token, tokens).strip()
    return ""


def _whole(text: str) -> str:
    """In brackets where a reader might not see what belongs together."""
    return text if re.fullmatch(r"[\w.′\u0300-\u036f²³]+|\([^()]*\)", text) else f"({text})"


def _factor(text: str) -> str:
    """In brackets unless it is one number or one letter: 1/(2K), for 1/2K is another number."""
    one = re.fullmatch(r"[\d.]+|\w[′\u0300-\u036f²³₀-₉ₐ-ₜᵢᵣᵤᵥⱼ]*|\([^()]*\)", text)
    return text if one else f"({text})"


def _raised(text: str, *, above: bool) -> str:
    """An index or a power; in plain characters where Unicode has none for all of it."""
    small = _ABOVE if above else _BELOW
    if all(c in small for c in text):
        return "".join(small[c] for c in text)
    sign = "^" if above else "_"
    return (
        f"{sign}{text}"
        if len(text) == 1 or (text.isascii() and text.isalpha())
        else f"{sign}({text})"
    )
