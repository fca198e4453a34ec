"""Choices are axes: what a text leaves open, all readings of it, and in how many a sentence holds.

A multiverse analysis: the default reading is fixed by the text, before any result; the others show
whether a verdict is the paper's or that of a choice.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import BadArgument, normal, stream
from ..core._checks import check_kind
from ..core._entries import read_tables
from ._findings import CONFIRMED, KINDS, NOT_JUDGED, OUTCOMES

if TYPE_CHECKING:
    import xarray as xr

    from ._figure import Figure

WAYS = ("one", "pairs", "all")


@dataclass(frozen=True)
class Axis:
    """One open choice of a figure: the paper's words or its silence, and every defensible value.

    `values` says why each is defensible; the first is ours.
    """

    name: str
    says: str
    values: Mapping[str, str]

    @property
    def ours(self) -> str:
        """The default."""
        return next(iter(self.values))


def open_choices(file: str, figure: str) -> dict[str, Axis]:
    """The axes of a figure from a table [[axis]] each of "package:choices.toml".

    A table has `name`, `figures` (a list of names such as "fig5"), `says` (the paper's words and
    their place, or "silent") and [axis.values], the default first: value = "why".
    """
    found: dict[str, Axis] = {}
    tables: Any = read_tables(file).get("axis", [])
    check_kind("axis", tables, list, fix=f"write tables [[axis]] in {file}")
    for table in tables:
        if figure in table.get("figures", ()):
            if not {"name", "says", "values"} <= table.keys() or len(table["values"]) < 2:
                problem = "needs name, says and at least two values"
                raise BadArgument("axis", table, problem, fix=f"mend {file}")
            found[table["name"]] = Axis(table["name"], table["says"], table["values"])
    return found


def chosen_options(data: xr.Dataset) -> dict[str, str]:
    """The options under which a data set was made; figures whose choices change verdicts ask."""
    found: dict[str, str] = json.loads(data.attrs["plan"])["options"]
    return found


def readings(figure: Figure, which: str = "one") -> list[dict[str, str]]:
    """The readings of a figure as choices for `make_plan`, the default first.

    "one": one choice changed at a time; "pairs": up to two; "all"; or a number: so many, the
    default and a fixed random choice among all others.
    """
    values = {name: tuple(axis.values) for name, axis in figure.axes.items()}
    everything = math.prod(map(len, values.values()))
    if which.isdecimal() and int(which) > 0:
        order = np.argsort(normal(stream(0, "lab", "readings"), (everything - 1,))) + 1
        places = [0, *sorted(int(i) for i in order[: int(which) - 1])]
        shape = tuple(map(len, values.values()))
        picked = (zip(values, np.unravel_index(p, shape), strict=True) for p in places)
        return [{name: values[name][i] for name, i in one} for one in picked]
    if which not in WAYS:
        raise BadArgument("readings", which, "is no way to read", fix="one, pairs, all or a number")
    most = {"one": 1, "pairs": 2, "all": len(values)}[which]
    return [one for k in range(most + 1) for one in _changed(values, k)]


def _changed(values: Mapping[str, tuple[str, ...]], k: int) -> Iterator[dict[str, str]]:
    """Every reading in which exactly k choices are not the default."""
    default = {name: own[0] for name, own in values.items()}
    for names in itertools.combinations(values, k):
        for others in itertools.product(*(values[name][1:] for name in names)):
            yield {**default, **dict(zip(names, others, strict=True))}


def tally(verdicts: Sequence[Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """How many of each outcome, by whose sentence was judged; verdicts as JSON has them."""
    counts = {kind: Counter(dict.fromkeys(OUTCOMES, 0)) for kind in KINDS}
    for verdict in verdicts:
        counts[verdict["source"]["kind"]][str(verdict["outcome"])] += 1
    return counts


def robustness(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each claim: in how many readings it was confirmed, and which choice matters most.

    `results` are {"options": ..., "verdicts": ...} as JSON has them, the default first. The main
    effect of a choice is the difference between the `shares` of readings confirmed with its worst
    value and with its best; its interval is Newcombe's, from Wilson's for either share.
    """
    rows: dict[str, list[tuple[Mapping[str, str], Mapping[str, Any]]]] = {}
    for result in results:
        for verdict in result["verdicts"]:
            rows.setdefault(verdict["claim"], []).append((result["options"], verdict))
    default = {v["claim"]: v["outcome"] for first in results[:1] for v in first["verdicts"]}
    return [
        _robust(claim, own, default.get(claim, NOT_JUDGED))  # some readings ask for more
        for claim, own in rows.items()
    ]


def _robust(
    claim: str, rows: Sequence[tuple[Mapping[str, str], Mapping[str, Any]]], default: str
) -> dict[str, Any]:
    held = [verdict["outcome"] == CONFIRMED for _, verdict in rows]
    effects = [e for name in rows[0][0] if (e := _effect(name, rows, held)) is not None]
    decisive = max(effects, key=lambda e: e["effect"], default=None)
    return {
        "claim": claim,
        "source": rows[0][1]["source"],
        "default": default,
        "confirmed": sum(held),
        "readings": len(rows),
        "outcomes": dict(Counter(str(verdict["outcome"]) for _, verdict in rows)),
        "decisive": decisive if decisive and decisive["effect"] > 0 else None,
    }


def _effect(name: str, rows: Sequence[Any], held: Sequence[bool]) -> dict[str, Any] | None:
    from scipy import stats

    by_value: dict[str, list[bool]] = {}
    for (options, _), yes in zip(rows, held, strict=True):
        by_value.setdefault(options.get(name, ""), []).append(yes)
    if len(by_value) < 2:
        return None
    shares = {value: sum(own) / len(own) for value, own in by_value.items()}
    best, worst = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
    ends = {}
    for value in (best, worst):
        own = by_value[value]
        ends[value] = stats.binomtest(sum(own), len(own)).proportion_ci(method="wilson")
    effect = shares[best] - shares[worst]
    down = math.hypot(shares[best] - ends[best].low, ends[worst].high - shares[worst])
    up = math.hypot(ends[best].high - shares[best], shares[worst] - ends[worst].low)
    return {"choice": name, "best": best, "worst": worst, "shares": [shares[worst], shares[best]],
            "effect": effect, "interval": [effect - down, effect + up]}  # fmt: skip


def robustness_sentence(row: Mapping[str, Any]) -> str:
    """ "confirmed in 37 of 48 readings, never with heads=unpaired; heads matters most: ..."."""
    unjudged = row["outcomes"].get(NOT_JUDGED, 0)
    if unjudged == row["readings"]:
        return f"not judged in any of {row['readings']} readings"
    text = f"confirmed in {row['confirmed']} of {row['readings']} readings"
    text += f", {unjudged} of them not judged" * bool(unjudged)
    # What was stored by an older version has no shares.
    if (one := row["decisive"]) is not None and one.get("shares", (1,))[0] == 0:
        text += f", never with {one['choice']}={one['worst']}"
    if row["default"] != CONFIRMED and row["confirmed"]:
        text += f" ({row['default']} in the default reading: the others were found by looking)"
    if one is not None:
        low, high = one["interval"]
        text += (
            f"; {one['choice']} matters most: {one['worst']} in place of {one['best']} changes the "
            f"share by {-one['effect']:+.0%} [{-high:+.0%}, {-low:+.0%}]"
        )
    return text
