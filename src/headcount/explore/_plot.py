"""Pictures of HTML and SVG that take the width and the colours of the page they stand on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

from ..lab import COLOURS

Point = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """A label and a range; logarithmic ones have whole decades."""

    label: str
    low: float
    high: float
    log: bool = True

    @classmethod
    def over(cls, label: str, values: Iterable[float], *, log: bool = True) -> Axis:
        """The axis that holds these values; those that have no place on it are left out."""
        seen = [v for v in values if math.isfinite(v) and (v > 0 or not log)] or [1.0]
        if not log:
            return cls(label, min(seen), max(max(seen), min(seen) + 1), log)
        low, high = math.floor(math.log10(min(seen))), math.ceil(math.log10(max(seen)))
        return cls(label, 10.0**low, 10.0 ** max(high, low + 1), log)

    def at(self, value: float) -> float:
        """Where a value lies, in percent; beyond the ends at the ends."""
        if self.log:
            low, high = math.log10(self.low), math.log10(self.high)
            place = (math.log10(value) - low) / (high - low) if value > 0 else 0.0
        else:
            place = (value - self.low) / (self.high - self.low)
        return round(100 * min(max(place, 0.0), 1.0), 2)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """(percent, text) of at most seven ticks."""
        if self.log:
            low, high = round(math.log10(self.low)), round(math.log10(self.high))
            step = math.ceil((high - low) / 6)
            return [(self.at(10.0**k), f"10<sup>{k}</sup>") for k in range(low, high + 1, step)]
        span = self.high - self.low
        power = 10 ** math.floor(math.log10(span))
        step = next(k * power for k in (0.1, 0.2, 0.5, 1, 2, 5) if span / (k * power) <= 6)
        step = max(step, 1)
        first = math.ceil(self.low / step)
        return [(self.at(k * step), f"{k * step:g}")
                for k in range(first, math.floor(self.high / step) + 1)]  # fmt: skip


@dataclass
class Plot:
    """A plane with two axes; what is put on it is drawn in this order."""

    words: str
    x: Axis
    y: Axis
    _drawn: list[str] = field(default_factory=list)
    _above: list[str] = field(default_factory=list)

    def line(self, points: Sequence[Point], colour: int, kind: str = "") -> None:
        """A curve; `kind` is a class of the style sheet."""
        path = " L".join(f"{self.x.at(x)} {100 - self.y.at(y):.2f}" for x, y in points)
        stroke = f"stroke='{ink(colour)}' class='{kind}'"
        self._drawn.append(f"<path d='M{path}' fill='none' {stroke}/>")

    def shade_above(self, y: float, text: str) -> None:
        """The part above a value in grey, with its name at the edge."""
        height = 100 - self.y.at(y)
        self._drawn.insert(0, f"<rect class='shade' width='100' height='{height:.2f}'/>")
        side = "top" if height < 8 else ""
        self._above.append(f"<span class='edge {side}' style='top:{height:.2f}%'>{text}</span>")

    def level(self, y: float, colour: int, kind: str = "") -> None:
        """A horizontal line."""
        self.line([(self.x.low, y), (self.x.high, y)], colour, kind)

    def here(self, x: float) -> None:
        """The vertical line of the sliders."""
        place = self.x.at(x)
        self._drawn.append(f"<path class='here' d='M{place} 0 L{place} 100'/>")

    def mark(self, x: float, y: float, colour: int, kind: str = "", title: str = "") -> None:
        """A point; `kind` is a class of the style sheet."""
        place = f"left:{self.x.at(x)}%;top:{100 - self.y.at(y):.2f}%"
        look = f"style='{place};--ink:{ink(colour)}' title='{escape(title, quote=True)}'"
        self._above.append(f"<i class='dot {kind}' {look}></i>")

    @property
    def html(self) -> str:
        """The picture, with a description for those who do not see it."""
        ticks = "".join(f"<b class='x' style='left:{at}%'>{text}</b>" for at, text in self.x.ticks)
        ticks += "".join(
            f"<b class='y' style='top:{100 - at:.2f}%'>{text}</b>" for at, text in self.y.ticks
        )
        lines = [f"M{at} 0 V100" for at, _ in self.x.ticks]
        lines += [f"M0 {100 - at:.2f} H100" for at, _ in self.y.ticks]
        grid = f"<path class='grid' d='{' '.join(lines)}'/>"
        return (
            f"<div class='plot' role='img' aria-label='{escape(self.words, quote=True)}'>"
            f"<div class='ylabel'>{self.y.label}</div><div class='area'>"
            f"<svg viewBox='0 0 100 100' preserveAspectRatio='none'>{grid}{''.join(self._drawn)}"
            f"</svg>{ticks}{''.join(self._above)}</div>"
            f"<div class='xlabel'>{self.x.label}</div></div>"
        )


def ink(colour: int) -> str:
    """A colour of the palette; its black is the colour of the text."""
    chosen = COLOURS[colour % len(COLOURS)]
    return "currentColor" if chosen == "#000000" else chosen


def swatch(colour: int, kind: str = "") -> str:
    """A short piece of a curve, for keys."""
    return (f"<svg class='swatch' viewBox='0 0 24 8' aria-hidden='true'><path d='M0 4 H24' "
            f"stroke='{ink(colour)}' class='{kind}'/></svg>")  # fmt: skip
