"""What the explorer says in words: lamps of the hypotheses, and every promise as a table."""

from __future__ import annotations

import math
from html import escape

from ..core import HeadcountError
from ..core._rounding import ordered, round_up
from ..theory import claims
from ..theory._promise import Promised, known_without
from ._curves import Lamp, lamps
from ._sizes import Sizes, promises, runnable, setting_of, widest_drawn


def show_lamps(sizes: Sizes, group: str) -> str:
    """A lamp for each hypothesis of a group, with its margin and who asks it."""
    found = lamps(sizes, group)
    if not found:
        return "<p class='soft'>These claims ask nothing of the sizes.</p>"
    items = "".join(
        f"<li class='{'on' if lamp.holds else 'off'}' title='{escape(', '.join(lamp.asked_by))}'>"
        f"<i aria-hidden='true'></i><div><strong>{'holds' if lamp.holds else 'fails'}: "
        f"{escape(lamp.check.name)}</strong><span>{escape(margin_text(lamp))}</span>"
        f"<em>{escape(_asked(lamp))}</em></div></li>"
        for lamp in found
    )
    return f"<ul class='lamps'>{items}</ul>"


def margin_text(lamp: Lamp) -> str:
    """How far a hypothesis is from its edge."""
    value, limit = lamp.check.value, lamp.check.threshold
    if not lamp.holds and lamp.check.told:
        return lamp.check.told
    if not math.isfinite(value):
        return f"not a finite number ({value})"
    shown, most = ordered(value, limit)
    return f"{shown}, at most {most}; margin {lamp.check.margin:.3g}"


def _asked(lamp: Lamp) -> str:
    first, *more = lamp.asked_by
    return f"asked by {first}" + (f" and {len(more)} more" if more else "")


def table(sizes: Sizes) -> str:
    """The promises as HTML; a size that the paper's data cannot have is said in words."""
    try:
        rows = promises(sizes)
    except HeadcountError as error:
        return f"<p>{escape(str(error))}</p>"
    body = "".join(
        f"<tr><td>{escape(row.claim)} ({escape(row.variant)})<br>"
        f"<small>{escape(claims[row.claim].title)}</small></td>"
        f"<td class='number'>{_bound_text(row)}</td>"
        f"<td>{escape(_requirement(row))}</td></tr>"
        for row in rows
    )
    most = widest_drawn(setting_of(sizes))
    if sizes.width > most:
        body += f"<tr><td colspan='3'>evaluated at the start of width {most:,}</td></tr>"
    head = "<tr><th>claim</th><th>bound</th><th>requirement</th></tr>"
    return f"<table class='promises'><thead>{head}</thead><tbody>{body}</tbody></table>"


def _requirement(row: Promised) -> str:
    """What is missing; else that nothing is, and whether the bound says something."""
    if row.failing:
        return "; ".join(check.failing for check in row.failing)
    known = f"; {known_without(row.trivial)}" if row.vacuous and row.trivial is not None else ""
    return f"every hypothesis holds{known}"


def _bound_text(row: Promised) -> str:
    return "nothing" if row.value == math.inf else round_up(row.bound)


def run_text(sizes: Sizes) -> str:
    """At which sizes a run would be, and why they are not those of the sliders if they are not."""
    ran = runnable(sizes)
    other = [
        f"{name} {getattr(ran, name):,} (the sliders say {getattr(sizes, name):,})"
        for name in ("width", "steps")
        if getattr(ran, name) != getattr(sizes, name)
    ]
    if not other:
        return f"A run here has width {ran.width:,} and {ran.steps:,} steps, as the sliders say."
    return f"A run must end soon: it will have {' and '.join(other)}."
