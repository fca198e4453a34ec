"""All readings of a figure side by side: the specification curve, and a sentence per claim."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from ..core._files import json_text
from ..lab import CONFIRMED, INCONCLUSIVE, NOT_CONFIRMED, NOT_JUDGED, Plan, Store
from ..lab._files import write_atomically
from ..lab._readings import robustness, robustness_sentence
from ._plots import METADATA, PAGE_INCHES, STYLE
from ._tables import WHOSE
from .site import figure_results

LOOKS = {
    CONFIRMED: ("#009E73", "o"),
    NOT_CONFIRMED: ("#D55E00", "X"),
    INCONCLUSIVE: ("#E69F00", "s"),
    NOT_JUDGED: ("0.6", "."),
}
"""Colour and mark of each outcome."""
_ROW_INCHES, _CHOICE_INCHES, _TITLE = 0.75, 0.16, 125

Reading = Mapping[str, Any]


def stored_readings(store: Store, plan: Plan) -> list[Reading]:
    """What the folder holds of a figure at this scale and these seeds: the default first."""
    here = plan.describe()
    found = [one.content for one in figure_results(store) if one.is_reading_of(here)]
    default = plan.figure.choose({})
    return sorted(found, key=lambda content: sum(content["options"].get(k) != v
                                                 for k, v in default.items()))  # fmt: skip


def readings_json(readings: Sequence[Reading]) -> dict[str, Any]:
    """`readings`: choices and verdicts of each; `robustness` of each claim over them."""
    listed = [{"choices": one["options"], "verdicts": one["verdicts"]} for one in readings]
    return {"readings": listed, "robustness": robustness(readings)}


def readings_table(readings: Sequence[Reading]) -> Group:
    """One sentence for each claim: in how many readings it holds, and which choice decides."""
    lines: list[Any] = [f"{len(readings)} readings were tried; the default was fixed before."]
    for row in robustness(readings):
        lines.append(Text(row["claim"]).append(f" ({WHOSE[row['source']['kind']]})", style="dim"))
        lines.append(Padding(Text(robustness_sentence(row)), (0, 0, 0, 2), expand=False))
    return Group(*lines)


def write_readings(store: Store, plan: Plan, readings: Sequence[Reading]) -> list[str]:
    """readings.json and the specification curve beside the figure's files; returns their paths."""
    folder = store.figure_folder(plan.figure.id, plan.scale)
    contents = {"readings.json": (json_text(readings_json(readings)) + "\n").encode()}
    contents |= {f"readings.{kind}": data for kind, data in specification_curve(readings).items()}
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return [str(folder / name) for name in contents]


def specification_curve(readings: Sequence[Reading]) -> dict[str, bytes]:
    """Sentences as rows, readings as columns; outcome by colour and mark, choices below."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    rows = [row for row in robustness(readings) if row["source"]["kind"] != "sanity"]
    rows = [row for row in rows if row["source"]["kind"] == "paper"] or rows
    shown = {row["claim"] for row in rows}
    order = sorted(readings, key=lambda one: -_confirmed(one, shown))
    made = {name: [one["options"].get(name) for one in order] for name in order[0]["options"]}
    choices = [(k, v) for k, own in made.items() if len(set(own)) > 1 for v in dict.fromkeys(own)]
    heights = [_ROW_INCHES] * len(rows) + [_CHOICE_INCHES * max(len(choices), 1) + 0.1]
    files: dict[str, bytes] = {}
    with mpl.rc_context(STYLE):
        canvas = Canvas(figsize=(PAGE_INCHES, sum(heights) + 0.6), layout="constrained")
        panels = canvas.subplots(len(heights), 1, sharex=True, height_ratios=heights, squeeze=False)
        for ax, row in zip(panels[:, 0], rows, strict=False):
            _draw_claim(ax, row["claim"], order)
        _draw_choices(panels[-1, 0], choices, order)
        for ax in panels[:, 0]:  # the default reading, which the text fixed
            place = order.index(readings[0])
            ax.axvspan(place - 0.4, place + 0.4, color="0.93", zorder=0)
        _draw_key(canvas)
        for kind in ("png", "svg"):
            buffer = io.BytesIO()
            canvas.savefig(buffer, format=kind, metadata=METADATA[kind])
            files[kind] = buffer.getvalue()
    return files


def _confirmed(reading: Reading, among: Collection[str]) -> int:
    own = [verdict for verdict in reading["verdicts"] if verdict["claim"] in among]
    return sum(verdict["outcome"] == CONFIRMED for verdict in own)


def _draw_claim(ax: Any, claim: str, order: Sequence[Reading]) -> None:
    """A claim's value with its interval under every reading, and the edges of what is expected."""
    for place, reading in enumerate(order):
        for verdict in reading["verdicts"]:
            if verdict["claim"] != claim:
                continue
            colour, mark = LOOKS.get(verdict["outcome"], LOOKS[NOT_JUDGED])
            value, ends = verdict.get("value"), verdict.get("interval") or [None, None]
            if value is None:
                ax.text(place, 0.5, "?", color=colour, transform=ax.get_xaxis_transform())
                continue
            ax.plot(place, value, mark, color=colour)
            if None not in ends:
                ax.vlines(place, *ends, color=colour, linewidth=1.0)
            for edge in verdict.get("expected") or ():
                if edge is not None:
                    ax.axhline(edge, color="0.6", linestyle=":", linewidth=0.8)
    _fit_to_values(ax, claim, order)
    ax.set_title(claim if len(claim) <= _TITLE else f"{claim[:_TITLE]}...", loc="left", fontsize=6)
    ax.tick_params(labelsize=5)


def _fit_to_values(ax: Any, claim: str, order: Sequence[Reading]) -> None:
    """Values and edges decide the scale: an interval of two seeds would press all else flat."""
    own = [v for one in order for v in one["verdicts"] if v["claim"] == claim]
    seen = [x for v in own for x in (v.get("value"), *(v.get("expected") or ())) if x is not None]
    ends = [end for v in own for end in v.get("interval") or () if end is not None]
    if seen:
        room = max(seen) - min(seen) or abs(seen[0]) or 1.0
        low = max(min(seen) - room, min([*seen, *ends]))
        high = min(max(seen) + room, max([*seen, *ends]))
        margin = 0.08 * (high - low) or room
        ax.set_ylim(low - margin, high + margin)


def _draw_choices(ax: Any, choices: Sequence[tuple[str, str]], order: Sequence[Reading]) -> None:
    """A dot where a reading makes a choice."""
    for y, (name, value) in enumerate(choices):
        at = [x for x, reading in enumerate(order) if reading["options"].get(name) == value]
        ax.plot(at, [y] * len(at), "o", color="0.25", markersize=2.5)
    ax.set_yticks(range(len(choices)), [f"{k} = {v}" for k, v in choices], fontsize=5)
    ax.set_ylim(len(choices) - 0.5, -0.5)
    ax.set_xticks([])
    ax.set_xlabel(
        f"{len(order)} readings, most confirmed first; the default is shaded; "
        "long intervals leave their panel",
        fontsize=7,
    )


def _draw_key(canvas: Any) -> None:
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], color=colour, marker=mark, linestyle="", label=outcome)
        for outcome, (colour, mark) in LOOKS.items()
    ]
    canvas.legend(handles=marks, loc="outside upper center", ncols=len(marks), frameon=False)
