"""`headcount reproduce --readings`: a figure under all readings of what its text leaves open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ._dry_run import Place, estimated
from ._everything import Among, Ended
from ._output import consoles, print_json

if TYPE_CHECKING:
    from ..lab import Plan


def plan_readings(
    figure: str, which: str, given: dict[str, str], plan_of: Callable[[dict[str, str]], Plan]
) -> list[Plan]:
    """A plan for each reading, the default first; the choices that were given stay."""
    from ..core import BadArgument
    from ..lab import figures, readings

    if not figures[figure].axes:
        known = ", ".join(name for name, f in figures.items() if f.axes) or "none"
        fix = f"those that do: {known}"
        raise BadArgument("readings", which, f"{figure} declares no open choices", fix=fix)
    chosen = [{**reading, **given} for reading in readings(figures[figure], which)]
    return [plan_of(dict(one)) for one in dict.fromkeys(tuple(c.items()) for c in chosen)]


def run_readings(
    plans: Sequence[Plan],
    place: Place,
    run: Callable[[Plan, Among], Ended],
    *,
    json: bool,
    dry_run: bool,
) -> int:
    """Tell time and memory, run every reading, then in how many each sentence holds.

    Trials that readings share run once, and what is stored is not run again.
    """
    from ..lab import Store
    from ..report._readings import readings_json, readings_table, stored_readings, write_readings
    from ..report._tables import cost_sentence

    console, notes = consoles(json)
    first = plans[0]
    together = replace(first, trials=tuple(trial for plan in plans for trial in plan.trials))
    found = estimated(together, place)
    text = (
        f"{len(plans)} readings of {first.figure.id} at scale {first.scale}, "
        f"{len(together.unique)} trials in all. {cost_sentence(found.cost, len(found.lacking))}"
    )
    (console if dry_run and not json else notes).print(text, markup=False, highlight=False)
    about = {"figure": first.figure.id, "scale": first.scale}
    if dry_run:
        if json:
            whole = {"trials": len(together.unique), "to_run": len(found.lacking),
                     "estimated_seconds": found.cost.seconds,
                     "estimated_bytes": found.cost.bytes}  # fmt: skip
            chosen = [{"choices": plan.options} for plan in plans]
            print_json({**about, "readings": chosen, "plan": whole})
        return 0
    among = Among({_name(plan): estimated(plan, place).cost.seconds for plan in plans})
    worst = 0
    for plan in plans:
        among.begin(_name(plan))
        ended = run(plan, among)
        among.end()
        if ended.code > 3:
            return ended.code
        worst = max(worst, ended.code)
    store = Store(place.out)
    results = stored_readings(store, first)
    files = write_readings(store, first, results)
    if json:
        print_json({**about, **readings_json(results), "files": files}, line=True)
        return worst
    console.print(readings_table(results))
    for file in files:
        console.print(file, markup=False, highlight=False, soft_wrap=True)
    return worst


def _name(plan: Plan) -> str:
    """The figure with its choices."""
    return " ".join([plan.figure.id, *(f"{k}={plan.options[k]}" for k in plan.figure.axes)])
