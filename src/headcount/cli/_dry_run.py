"""`headcount reproduce --dry-run`: what would be done, how long it takes and how much it holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ._output import consoles, print_json

if TYPE_CHECKING:
    from ..lab import Collection, Plan, Trial
    from ..lab._costs import CostModel
    from ..lab._plan import Cost, Survey


class Place(NamedTuple):
    """Where results go and where trials run."""

    out: Path
    workers: int | None = None
    executor: str | None = None

    @property
    def parallel(self) -> int:
        """How many trials run at a time."""
        from ..lab._processes import default_workers

        return default_workers() if self.workers is None else max(self.workers, 1)


class Estimate(NamedTuple):
    """What the folder holds of a plan, which trials it lacks, and what they will cost."""

    state: Survey
    lacking: list[Trial]
    costs: CostModel
    cost: Cost


def estimated(plan: Plan, place: Place) -> Estimate:
    """Look the plan up in the results folder; nothing is computed."""
    from ..lab import Store, cost
    from ..lab._costs import cost_model
    from ..lab._plan import survey

    store = Store(place.out, consoles(True)[1].print)
    state = survey(plan, store)
    lacking = [plan.unique[address] for address in state.of("missing")]
    costs = cost_model(plan.unique.values() if lacking else (), store)
    return Estimate(state, lacking, costs, cost(lacking, place.parallel, costs))


def dry_run_one(plan: Plan, place: Place, *, json: bool) -> int:
    """Every number of one figure's plan."""
    from ..lab._executors import slurm_submission
    from ..report._tables import plan_table

    console, notes = consoles(json)
    found = estimated(plan, place)
    if json:
        print_json(_described(plan, found))
        return 0
    scripted = place.executor is not None and place.executor.startswith("slurm")
    table = plan_table(plan, found.state, place.parallel, found.costs)
    (notes if scripted else console).print(table)
    if place.executor is not None and scripted:
        hints = [found.costs.hint(trial) for trial in found.lacking]
        text = slurm_submission(place.executor, place.out, hints)
        # Alone on standard output and unwrapped, as sbatch reads it.
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    return 0


def dry_run_all(
    plans: Mapping[str, Plan], unable: Mapping[str, str], scale: str, place: Place, *, json: bool
) -> int:
    """One line for each figure, the sum, and which figures cannot run; 1 when there are such."""
    from ..report._tables import plans_table, unable_text

    console, notes = consoles(json)
    found = {name: estimated(plan, place) for name, plan in plans.items()}
    if json:
        for name, plan in plans.items():
            print_json(_described(plan, found[name]), line=True)
        for name, reason in unable.items():
            print_json({"figure": name, "scale": scale, "error": reason}, line=True)
    else:
        rows = {name: (len(plans[name].unique), found[name].cost) for name in plans}
        console.print(plans_table(rows, {name: len(found[name].lacking) for name in plans}, scale))
    if unable:
        notes.print(unable_text(unable))
    return 1 if unable else 0


def summary(
    plan: Plan,
    counts: dict[str, int],
    seconds: float,
    collection: Collection | None = None,
    files: list[Path] | None = None,
) -> dict[str, Any]:
    """What --json prints of a figure."""
    verdicts = [] if collection is None else collection.verdicts
    return {
        "figure": plan.figure.id,
        "scale": plan.scale,
        **({"stand_in": plan.stand_in} if plan.stand_in else {}),
        "trials": counts,
        "seconds": seconds,
        "verdicts": [verdict.to_json() for verdict in verdicts],
        "files": [str(file) for file in files or []],
    }


def _described(plan: Plan, found: Estimate) -> dict[str, Any]:
    return {
        **summary(plan, counted(plan, found.state), 0.0),
        "plan": {
            **plan.describe(),
            "to_run": len(found.lacking),
            "workers": found.cost.workers,
            "estimated_seconds": found.cost.seconds,
            "estimated_bytes": found.cost.bytes,
            "past_trials": found.cost.past,
        },
    }


def counted(plan: Plan, state: Survey) -> dict[str, int]:
    """Counts when nothing is run: stored trials are the cached ones."""
    cached = len(plan.unique) - len(state.of("missing"))
    failed = cached - len(state.of("ok"))
    return {"planned": len(plan.unique), "cached": cached, "run": 0, "failed": failed}
