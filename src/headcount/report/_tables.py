"""Tables for people: plans, verdicts, problems, status."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from ..lab import (
    CONFIRMED,
    INCONCLUSIVE,
    NOT_JUDGED,
    Figure,
    Finding,
    Plan,
    Store,
    Trial,
    cost,
    figures,
    surviving,
)
from ..lab._costs import CostModel
from ..lab._estimates import CONFIDENCE
from ..lab._findings import FALSE_DISCOVERIES
from ..lab._plan import Cost, Survey, planned, remembered
from ..lab._readings import tally
from ..lab._reporting import Problem
from ._progress import duration

WHOSE = {"paper": "the paper's", "ours": "ours", "sanity": "checks of the run"}
"""Sources in words."""


def figures_table(listed: Sequence[Figure]) -> Group:
    """All figures that can be reproduced: title, place in the paper, open choices, options."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    for figure in listed:
        words = Text(f"{figure.title} ").append(figure.reference, style="dim")
        for kind, open_ones in (("readings", True), ("options", False)):
            own = {k: v for k, v in figure.options.items() if (k in figure.axes) == open_ones}
            listing = ", ".join(f"{name}={'|'.join(values)}" for name, values in own.items())
            words.append(f"\n{kind}: {listing}" if own else "", style="dim")
        table.add_row(Text(figure.id, style="bold"), words)
    told = "Given as --option name=value, or --reading for what the text leaves open; the first is "
    return Group(table, Text(f"{told}the default. --readings one runs every other reading, too."))


def plans_table(
    rows: Mapping[str, tuple[int, Cost]], to_run: Mapping[str, int], scale: str
) -> Group:
    """What a dry run of all figures shows: a line for each, and their sum.

    `rows`: figure -> (trials, what those that are missing will cost).
    """
    titles = ("figure", "trials", "to run", "time", "memory")
    table = Table(*titles, box=None, pad_edge=False)
    for name, (trials, estimate) in rows.items():
        todo = to_run[name]
        cost_cells = (duration(estimate.seconds), decimal(int(estimate.bytes)))
        cells = (name, str(trials), str(todo), *(cost_cells if todo else ("-", "-")))
        table.add_row(*map(Text, cells))
    costs = [estimate for _, estimate in rows.values()]
    whole = Cost(
        sum(estimate.seconds for estimate in costs),
        max((estimate.bytes for estimate in costs), default=0.0),
        max((estimate.workers for estimate in costs), default=1),
        sum(estimate.past for estimate in costs),
    )
    closing = f"{len(rows)} figures at scale {scale}. {cost_sentence(whole, sum(to_run.values()))}"
    return Group(table, Text(closing))


def unable_text(unable: Mapping[str, str]) -> Text:
    """The figures that could not run, a line with the reason for each."""
    lines = [f"{name} cannot run: {reason}" for name, reason in unable.items()]
    return Text("\n".join(lines))


def plan_table(plan: Plan, state: Survey, workers: int, costs: CostModel) -> Group:
    """What a dry run shows: every number of the scale, the trials, time and memory."""
    numbers = Table.grid(padding=(0, 2))
    for name, value in {**plan.settings, "seeds": seeds_text(plan.seeds), **plan.options}.items():
        numbers.add_row(Text(name), Text(str(value)))
    groups = Table("trials", "count", "stored", "to run", "seconds each", box=None, pad_edge=False)
    missing = set(state.of("missing"))
    for name, trials in _groups(plan).items():
        lacking = sum(trial.address in missing for trial in trials)
        each = costs.seconds(trials[0])
        cells = (name, len(trials), len(trials) - lacking, lacking, f"{each:.3g}")
        groups.add_row(*(Text(str(cell)) for cell in cells))
    return Group(
        Text(f"{plan.figure.id} at scale {plan.scale}: {plan.figure.title}"),
        *([Text(stand_in_sentence(plan))] if plan.stand_in else []),
        numbers,
        groups,
        Text(cost_sentence(cost([plan.unique[a] for a in missing], workers, costs), len(missing))),
    )


def stand_in_sentence(plan: Plan) -> str:
    """That a plan has something made up in it, and what follows."""
    return f"Here: {plan.stand_in}. No claim of the paper is judged."


def cost_sentence(estimate: Cost, count: int) -> str:
    """The estimate in words."""
    if count == 0:
        return "Everything is stored; nothing to run."
    return (
        f"Estimated: {count} trials, {duration(estimate.seconds)} on {estimate.workers} "
        f"worker{'s' if estimate.workers > 1 else ''}, {decimal(int(estimate.bytes))} of memory; "
        + (f"from {estimate.past} past trials." if estimate.past else "a guess, none has run here.")
    )


def verdicts_summary(verdicts: Sequence[Finding]) -> str:
    """The outcomes counted, by source: "of the paper: 3 confirmed, 1 inconclusive; ours: ..."."""
    counts = tally([verdict.to_json() for verdict in verdicts])
    parts = [f"{WHOSE[kind]}: {words}" for kind, own in counts.items() if (words := _counted(own))]
    return f"{len(verdicts)} claims; {'; '.join(parts)}" if parts else "no claims"


def _counted(outcomes: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items() if count)


def chance_sentence(p_values: Sequence[float | None]) -> str:
    """How many of so many verdicts may be wrong by chance, and how many survive; may be empty."""
    kept = surviving(p_values)
    tested = sum(p is not None and math.isfinite(p) for p in p_values)
    if not tested:
        return ""
    return (
        f"Of {tested} tests at 95 % up to {(1 - CONFIDENCE) * tested:.2g} would decide wrongly by "
        f"chance; {sum(kept)} survive a false-discovery rate of {FALSE_DISCOVERIES:.0%}."
    )


def verdicts_table(verdicts: Sequence[Finding]) -> Table:
    """Claim, outcome, and the sentence with the numbers that decided."""
    colours = {CONFIRMED: "green", INCONCLUSIVE: "yellow", NOT_JUDGED: "dim"}
    table = Table("claim", "outcome", "numbers", box=None, pad_edge=False)
    kept = surviving([verdict.p for verdict in verdicts])
    for verdict, survives in zip(verdicts, kept, strict=True):
        colour = colours.get(verdict.outcome, "red")
        outcome = Text(verdict.outcome + "*" * survives, style=colour)
        source = verdict.source
        whose = f'"{source.says}" [{source.where}]' if source.says else WHOSE[source.kind]
        claim = Text(verdict.claim).append(f"\n{whose}", style="dim")
        table.add_row(claim, outcome, Text(verdict.sentence))
    return table


def problems_text(problems: Sequence[Problem], most: int = 10) -> Text:
    """Trials that are not ok with their reasons."""
    lines = [f"{p.outcome}: {p.label}: {p.reason}" for p in problems[:most]]
    if len(problems) > most:
        lines.append(f"... and {len(problems) - most} more")
    lines.append("They are recorded and not run again; --retry-failed runs them again.")
    return Text("\n".join(lines))


OUTCOMES = ("ok", "diverged", "nonfinite", "failed", "missing")


def status_rows(store: Store, message: Callable[[str], None]) -> list[dict[str, Any]]:
    """Every plan noted in the folder with counts of its trials; reads only."""
    rows = []
    for plan in remembered(store, message):
        addresses = planned(plan, store)
        if not addresses:
            what = f"{plan['figure']} at scale {plan['scale']}"
            message(f"which trials {what} has is not known here; reproduce tells it again")
        states = Counter(outcome for outcome, _ in store.states(addresses).values())
        counts = {outcome: states[outcome] for outcome in OUTCOMES}
        keys = ("figure", "scale", "seeds", "options")
        count = states.total() or plan.get("count", 0)
        rows.append({**{key: plan[key] for key in keys}, "planned": count, **counts})
    return rows


def status_table(store: Store, rows: Sequence[dict[str, Any]]) -> RenderableType:
    """What a results folder holds, and what runs there now."""
    if not rows:
        return Text(f"No results in {store.folder}.")
    table = Table("figure", "scale", "seeds", "trials", "of them", box=None, pad_edge=False)
    table.columns[0].no_wrap = True
    for row in rows:
        counts = ", ".join(f"{row[key]} {key}" for key in OUTCOMES if row[key])
        words = "; ".join(filter(None, (counts, _unusual(row))))
        cells = (row["figure"], row["scale"], seeds_text(row["seeds"]), row["planned"], words)
        table.add_row(*(Text(str(cell)) for cell in cells))
    running = [
        Text(f"running: {note['label']}, {_percent(note)}, {duration(note['seconds'])} so far")
        for _, note in store.running()
    ]
    return Group(table, *running)


def _unusual(row: Mapping[str, Any]) -> str:
    """The options that are not the figure's defaults; all of them for a figure not known here."""
    known = figures[row["figure"]].options if row["figure"] in figures else {}
    given = row["options"].items()
    return " ".join(f"{k}={v}" for k, v in given if known.get(k, ("",))[0] != v)


def seeds_text(seeds: Sequence[int]) -> str:
    """Seeds as one would type them: "0:10" when they are a range."""
    first, last = min(seeds), max(seeds)
    if list(seeds) == list(range(first, last + 1)) and len(seeds) > 1:
        return f"{first}:{last + 1}"
    return ",".join(map(str, seeds))


def _groups(plan: Plan) -> dict[str, list[Trial]]:
    groups: dict[str, list[Trial]] = {}
    for trial in plan.unique.values():
        groups.setdefault(trial.group or trial.measurement.name, []).append(trial)
    return groups


def _percent(note: dict[str, Any]) -> str:
    share = note["done"] / note["total"] if note["total"] else math.nan
    return f"{share:.0%}"
