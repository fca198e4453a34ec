"""One trial: what one paper asks for on one data set, and what training needed."""

from __future__ import annotations

import math
from typing import Any

from ...lab import Context, Measurement

NEVER = 301.0
"""log10 of the largest width that is tried: what no width reaches is shown there."""


def measure_widths(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Least widths: of all variants of all theorems, of the printed ones, and in fact.

    `open` is 1 where the theorems' widths are only known to lie beyond what is given. Where
    training does not get there within `most_width`, its width is not a number.
    """
    from ...theory import compare

    (found,) = compare(
        {
            "data": config["data"],
            "data_options": config["data_options"],
            "n": config["n"],
            "width": config["width"],
            "steps": config["steps"],
            "seeds": (config["seed"],),
        },
        share=config["share"],
        most_width=config["most_width"],
        keys=(config["paper"],),
    )
    first = [answer for answer in found.required if answer.variant in config["printed"]]
    assert found.training is not None
    return {
        "required": least(found.required),
        "printed": least(first),
        "training": least([found.training], never=math.nan),
        "open": float(all(answer.value is None for answer in found.required)),
        "failing": sum(bool(promised.failing) for promised in found.promised),
        "theorems": len(found.promised),
    }


def least(answers: Any, never: float = NEVER) -> float:
    """log10 of the least width among the answers, or of what it must exceed if that is all."""
    known = [answer.value or answer.beyond for answer in answers]
    widths = [width for width in known if width is not None]
    return math.log10(min(widths)) if widths else never


widths = Measurement(
    name="compare-width",
    version=3,
    function=measure_widths,
    outputs=dict.fromkeys(("required", "printed", "training", "open", "failing", "theorems"), ()),
    estimate=lambda config: (2.0 + 2e-4 * config["steps"] * config["most_width"], 5e8),
    may_be_nan=("training",),
)
