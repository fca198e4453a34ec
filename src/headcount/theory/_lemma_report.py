"""What a search says about a lemma: worst ratios by size, how they grow, the instance in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..core import float64
from ..core._rounding import ordered, round_down
from ._claim import Claim, Instance
from ._record import blocks_of, points_of, sizes_of
from ._spaces import Sizes
from ._spaces_text import latex_name, latex_number, latex_text
from ._verdict import above_one

LOOSE = 0.5
"""A bound whose worst ratio is below this could be tightened, and is told so."""
_FOUND = "of what the search found, the worst ratio"
"""Worst ratios are lower bounds of the largest ones: so is what is read from them."""
_ZERO = 1e-6
"""A ratio below this share of the largest is zero."""
_VALUES, _SPARE = 3, 2
"""So many values of a size, and so many more points than the law has numbers, are the least."""
_FLAT, _MISSED, _SHARE = 0.05, 0.03, 0.1
"""Logarithms: all that a constant may vary; how far a point may be from a power law, also as a
share of what the law explains."""
_NEAR = 0.03
"""An exponent within this of 1/2, 1 or 2 is read as that."""


@dataclass(frozen=True)
class SizeRatio:
    """The worst ratio found at one choice of sizes; minus infinity where there is none to tell."""

    sizes: Sizes
    ratio: float

    @property
    def shown(self) -> str:
        """The ratio for a reader."""
        return f"worst ratio {self.ratio:.7g}" if self.ratio >= 0 else "nothing to compare"

    def to_json(self) -> dict[str, Any]:
        """The sizes and the ratio in one table."""
        return {**self.sizes, "worst_ratio": self.ratio}


def growth_of(table: Sequence[SizeRatio]) -> tuple[str, ...]:
    """One sentence for each size whose law explains the worst ratios found; none for the others.

    The law is a power law in all sizes, fitted by least squares on a logarithmic scale to the
    ratios that are not zero. A zero is explained only below the sizes of all others; infinity
    never is.
    """
    names = list(table[0].sizes) if table else []
    top = max((row.ratio for row in table), default=0.0)
    rows = [row for row in table if row.ratio > _ZERO * top]
    if len(rows) <= 1 + len(names):
        return ()
    least = {name: min(row.sizes[name] for row in rows) for name in names}
    if any(all(row.sizes[n] >= least[n] for n in names) for row in table if row not in rows):
        return ()
    exponents, missed = _fit(rows, names)
    spare = len(rows) - len(names) - 1
    values = {name: sorted({row.sizes[name] for row in rows}) for name in names}
    found = [_sentence(name, exponents[name], missed, values[name], spare) for name in names]
    return tuple(sentence for sentence in found if sentence)


def _fit(rows: Sequence[SizeRatio], names: Sequence[str]) -> tuple[dict[str, float], float]:
    """The exponent of each size, and how far the worst point is from the law, as a logarithm."""
    matrix = np.array([[1.0, *(math.log(row.sizes[name]) for name in names)] for row in rows])
    logs = np.array([math.log(row.ratio) for row in rows])
    found = np.linalg.lstsq(matrix, logs, rcond=None)[0]
    missed = float(np.max(np.abs(matrix @ found - logs)))
    return dict(zip(names, found[1:].tolist(), strict=True)), missed


def _sentence(
    name: str, exponent: float, missed: float, values: Sequence[int], spare: int
) -> str | None:
    """The law of one size, where the points decide it."""
    change = abs(exponent) * math.log(values[-1] / values[0])
    if len(values) < _VALUES:
        return None
    where = f"{name} = {values[0]}..{values[-1]}"
    if change + missed <= _FLAT:
        return f"{_FOUND} does not depend on {name} ({_within(change + missed)} for {where})"
    if spare < _SPARE or missed > min(_MISSED, _SHARE * change):
        return None
    size = abs(exponent)
    power = f"{name}^{size:.2g}"
    for whole, text in ((0.5, f"sqrt({name})"), (1.0, name), (2.0, f"{name}^2")):
        power = text if abs(size - whole) <= _NEAR else power
    shown = f"grows like {power}" if exponent > 0 else f"falls like 1/{power}"
    return f"{_FOUND} {shown} (exponent {exponent:+.2f}, {_within(missed)} for {where})"


def _within(logarithm: float) -> str:
    """A logarithm as a percentage, rounded up to tenths."""
    return f"within {max(math.ceil(1000 * math.expm1(logarithm)), 1) / 10:g} %"


def points_as_lists(lemma: Claim, instance: Instance) -> dict[str, Any]:
    """The variables' points as nested lists, for JSON."""
    with float64():
        points = points_of(jax.tree.map(jnp.asarray, instance))
    return {name: _lists(point) for name, point in points.items()}


def _lists(point: Any) -> Any:
    if hasattr(point, "params"):
        return {key: np.asarray(leaf).tolist() for key, leaf in point.params._asdict().items()}
    if isinstance(point, tuple):
        return [_lists(part) for part in point]
    return np.asarray(point).tolist()


def in_words(lemma: Claim, instance: Instance, most: int = 400) -> str:
    """The sizes and the points in one line."""
    sizes = [f"{name}={value}" for name, value in sizes_of(instance).items()]
    points = points_as_lists(lemma, instance)
    shown = [f"{name}={_brief(point)}" for name, point in points.items()]
    text = ", ".join([*sizes, *shown])
    return text if len(text) <= most else f"{text[:most]}..."


def _brief(point: Any) -> str:
    if isinstance(point, list):
        return "[" + ", ".join(map(_brief, point)) + "]"
    if isinstance(point, dict):
        return "{" + ", ".join(f"{key}: {_brief(value)}" for key, value in point.items()) + "}"
    return f"{point:.6g}"


@dataclass(frozen=True)
class Shown:
    """A counterexample to paste: in words, in LaTeX and as Python that runs."""

    text: str
    latex: str
    python: str


def shown(lemma: Claim, variant: str, instance: Instance, lhs: float, rhs: float) -> Shown:
    """The instance in all three forms, with both sides."""
    with float64():
        return _shown(lemma, variant, instance, lhs, rhs)


def _shown(lemma: Claim, variant: str, instance: Instance, lhs: float, rhs: float) -> Shown:
    sizes = sizes_of(instance)
    left, right = ordered(lhs, rhs, 6)
    raws = {name: blocks_of(instance, name) for name in lemma.variables}
    formulas = [
        *(f"{latex_name(name)}={value}" for name, value in sizes.items()),
        *(line for name, raw in raws.items() for line in lemma.variables[name].latex(name, raw)),
    ]
    relation = r"\ne" if lemma.kind == "identity" else ">"
    own = lemma.id.rpartition(":")[2]
    named = rf"\texttt{{{latex_text(own)}}}" + ("" if variant == "stated" else f" ({variant})")
    sides = f"{latex_number(left)}{relation}{latex_number(right)}"
    latex = f"Counterexample to {named}: for ${'$, $'.join(formulas)}$ the left side is ${sides}$."
    ratio = f", ratio {_ratio(lhs / rhs)}" if rhs > 0 else ""
    text = f"{in_words(lemma, instance, 2000)}: left side {left}, right side {right}{ratio}"
    return Shown(text, latex, _python(lemma, variant, sizes, raws))


def _ratio(ratio: float) -> str:
    return above_one(ratio) if ratio > 1 else round_down(ratio, 6)


def _python(lemma: Claim, variant: str, sizes: Sizes, raws: dict[str, Any]) -> str:
    lines = [line for name, raw in raws.items() for line in lemma.variables[name].python(name, raw)]
    own = lemma.function.__name__
    head = ["import jax", 'jax.config.update("jax_enable_x64", True)', "import numpy as np"]
    if any("functools" in line for line in lines):
        head.insert(0, "import functools")
    if "/" in lemma.id:  # registered by a paper: its module can be imported
        head.append(f"from {lemma.function.__module__} import {own}")
    elif lemma.source:
        head.append(f"from {lemma.id.split('.py:')[0]} import {own}")
    if any("lemma.variables" in line for line in lines):
        head.append(f"lemma, sizes = {own}, {dict(sizes)}")
    named = [f"{name}={name}" for name in raws]
    form = lemma.variants[variant].text
    if form != "as stated":  # "c = 0.5", the constant of this variant
        named.append(form.replace(" ", ""))
    end = [f"lhs, rhs = {own}({', '.join(named)})", "print(lhs, rhs, lhs > rhs)"]
    return "\n".join([*head, *lines, *end])
