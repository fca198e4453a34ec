"""`headcount reproduce`: from a figure's name to its verdicts."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ._flags import Whole
from ._output import consoles, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from ..lab import Collection, Plan, Policy, Survey, Sweep

Scale = Literal["smoke", "quick", "paper"]
Options = Annotated[list[str] | None, Parameter(name="--option", negative=())]
OUT = Path("headcount-results")

NOT_CONFIRMED_CODE = 3
INCOMPLETE_CODE = 1
INTERRUPTED_CODE = 130


def reproduce_command(
    figure: str | None = None,
    /,
    *,
    list_figures: Annotated[bool, Parameter(name="--list", negative=())] = False,
    everything: Annotated[bool, Parameter(name="--all", negative=())] = False,
    scale: Scale = "quick",
    seeds: str | None = None,
    out: Path = OUT,
    option: Options = None,
    data_dir: Path | None = None,
    model_dir: Path | None = None,
    workers: Whole | None = None,
    executor: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    strict: Annotated[bool, Parameter(negative=())] = False,
    retry_failed: Annotated[bool, Parameter(negative=())] = False,
    trial_timeout: float | None = None,
    retries: int = 1,
) -> int:
    """Reproduce a figure: run what is missing, collect, draw, and judge the paper's claims.

    Exit code 0 when the run completed, whatever the verdicts; 1 when it could not (disk full, no
    trial gave numbers, results vanished); 2 for bad input; 3 with --strict when a claim is not
    confirmed; 130 after Ctrl-C, SIGTERM or SIGHUP.

    Parameters
    ----------
    figure
        Name such as arda2026/fig1.
    list_figures
        List all figures and stop.
    everything
        Every figure, then an audit and a head count for each paper: what `headcount report` shows.
        With --json one object on a line for each figure.
    scale
        smoke: seconds; quick: minutes on a laptop; paper: the paper's own sizes.
    seeds
        Seeds such as 0:10 or 0,3,5; default: the scale's own.
    out
        Results folder; what it already holds is not computed again.
    option
        A figure's named choice, as name=value; may be repeated.
    data_dir
        Folder of local data files such as MNIST; like the environment variable HEADCOUNT_DATA.
    model_dir
        Folder of a pretrained text encoder; like the environment variable HEADCOUNT_MODEL.
    workers
        Worker processes, one thread each; default: one per core; 0: run in this process.
    executor
        Where trials run: processes, inline, dask://HOST:PORT, or slurm with options such as
        slurm:partition=short,time=60 (see docs/cluster.md).
    json
        Print one JSON object on standard output, progress on standard error.
    dry_run
        Show the plan with estimated time and memory; compute nothing.
    strict
        Exit with code 3 unless every claim is confirmed.
    retry_failed
        Run failed, diverged and nonfinite trials again.
    trial_timeout
        Seconds after which a trial in a worker process is ended; default: 50 times its estimate,
        at least an hour.
    retries
        How often a trial is run again whose worker died, ran out of memory or out of time.
    """
    from ..core import BadArgument, check_count
    from ..lab import Policy, figures, make_plan, parse_options, parse_seeds
    from ..report import figures_table

    console, notes = consoles(json)
    if list_figures:
        return _list(console, json, figures_table([f for _, f in figures.items()]))
    if figure is None and not everything:
        fix = "see headcount reproduce --list, or reproduce all with --all"
        raise BadArgument("figure", None, "is missing", fix=fix)
    if everything and (figure is not None or option):
        problem = "chooses one figure, and --all all of them"
        raise BadArgument("figure", figure or option, problem, fix="leave one of them out")
    if workers is not None:
        check_count("workers", workers, least=0)
    policy = Policy(time_limit=trial_timeout, retries=retries)
    if data_dir is not None:
        # Workers inherit the environment; a path in a trial's configuration would change its name.
        os.environ["HEADCOUNT_DATA"] = str(data_dir.resolve())
    if model_dir is not None:
        os.environ["HEADCOUNT_MODEL"] = str(model_dir.resolve())
    chosen = None if seeds is None else parse_seeds(seeds)

    def one(name: str) -> int:
        plan = make_plan(name, scale, chosen, parse_options(option or []))
        if dry_run:
            return _dry_run(plan, out, workers, executor, json=json)
        return _run(plan, out, workers, executor, retry_failed, policy, json=json, strict=strict)

    if figure is not None:
        return one(figure)
    if dry_run:
        return max(one(name) for name in figures)
    from ._everything import run_everything

    return run_everything(scale, out, notes.print, one)


def _dry_run(
    plan: Plan, out: Path, workers: int | None, executor: str | None, *, json: bool
) -> int:
    """Show what would be done."""
    from ..lab import Store, cost, cost_model, slurm_submission, survey
    from ..report import plan_table

    console, notes = consoles(json)
    store = Store(out, notes.print)
    state = survey(plan, store)
    lacking = [plan.unique[address] for address in state.of("missing")]
    costs = cost_model(plan.unique.values() if lacking else (), store)
    count = _worker_count(workers)
    if json:
        estimate = cost(lacking, count, costs)
        print_json(
            {
                **_summary(plan, _counts(plan, state), 0.0, None, []),
                "plan": {
                    **plan.describe(),
                    "to_run": len(lacking),
                    "workers": count,
                    "estimated_seconds": estimate.seconds,
                    "estimated_bytes": estimate.bytes,
                    "past_trials": estimate.past,
                },
            }
        )
    else:
        console.print(plan_table(plan, state, count, costs))
    if executor is not None and executor.startswith("slurm") and not json:
        console.print(slurm_submission(executor, out, lacking), markup=False, highlight=False)
    return 0


def finish(
    plan: Plan,
    collection: Collection,
    files: list[Path],
    counts: dict[str, int],
    seconds: float,
    *,
    json: bool,
) -> None:
    """Tell verdicts and files, as JSON or for people."""
    from ..report import verdicts_summary, verdicts_table

    if json:
        print_json(_summary(plan, counts, seconds, collection, files))
        return
    console, _ = consoles(json)
    console.print(f"{plan.figure.id}: {plan.figure.title} ({plan.figure.reference})", markup=False)
    if plan.figure.notes:
        console.print(plan.figure.notes, markup=False, highlight=False)
    console.print(verdicts_summary(collection.verdicts), highlight=False)
    console.print(verdicts_table(collection.verdicts))
    for file in files:
        console.print(str(file), markup=False, highlight=False, soft_wrap=True)


def _run(
    plan: Plan,
    out: Path,
    workers: int | None,
    executor: str | None,
    retry_failed: bool,
    policy: Policy,
    *,
    json: bool,
    strict: bool,
) -> int:
    from ..lab import CONFIRMED, StorageError, Store, collect, run_plan
    from ..report import make_reporter, problems_text, write_files

    _, notes = consoles(json)

    def tell(text: str) -> None:
        notes.print(text, markup=False, highlight=False, soft_wrap=True)

    started = time.monotonic()
    try:
        sweep = run_plan(
            plan,
            out,
            workers=workers,
            executor=executor,
            retry_failed=retry_failed,
            reporter=make_reporter(notes, plan.figure.id),
            policy=policy,
        )
        store = sweep.store or Store(out)
        if sweep.interrupted:
            return _interrupted(notes, plan, sweep, out, executor)
        if sweep.problems:
            notes.print(problems_text(sweep.problems))
        counts = _sweep_counts(sweep)
        if sweep.failed == sweep.planned and not _any_numbers(plan, store):
            if json:
                print_json(_summary(plan, counts, time.monotonic() - started, None, []))
            notes.print("No trial gave numbers: there is nothing to draw or to judge.")
            return INCOMPLETE_CODE
        collection = collect(plan, store)
        for note in collection.notes:
            tell(note)
        if collection.missing:
            raise StorageError(
                f"{collection.missing} of {len(plan.unique)} results vanished from {out} or were "
                "damaged while they were collected; run the same command again"
            )
        files = write_files(collection, store, tell)
    except StorageError as error:
        tell(f"headcount: {error}")
        return INCOMPLETE_CODE
    finish(plan, collection, files, counts, time.monotonic() - started, json=json)
    if not any(file.suffix == ".png" for file in files):
        return INCOMPLETE_CODE
    confirmed = all(verdict.outcome == CONFIRMED for verdict in collection.verdicts)
    return NOT_CONFIRMED_CODE if strict and not confirmed else 0


def _interrupted(notes: Console, plan: Plan, sweep: Sweep, out: Path, executor: str | None) -> int:
    from ..lab import Store, survey
    from ..report import seeds_text

    # Counted in the folder: a trial may have been saved in the very moment of the interruption.
    store = sweep.store or Store(out)
    saved = len(plan.unique) - len(survey(plan, store).of("missing"))
    command = ["headcount", "reproduce", plan.figure.id, "--scale", plan.scale]
    if plan.seeds != tuple(range(plan.figure.scales[plan.scale]["seeds"])):
        command += ["--seeds", seeds_text(plan.seeds)]
    for name, value in plan.options.items():
        if value != plan.figure.options[name][0]:
            command += ["--option", f"{name}={value}"]
    if out != OUT:
        command += ["--out", str(out)]
    if executor is not None:
        command += ["--executor", executor]
    if "HEADCOUNT_DATA" in os.environ:
        command += ["--data-dir", os.environ["HEADCOUNT_DATA"]]
    if "HEADCOUNT_MODEL" in os.environ:
        command += ["--model-dir", os.environ["HEADCOUNT_MODEL"]]
    notes.print(
        f"Interrupted. {saved} of {sweep.planned} trials are saved in {out}, and so is the state "
        f"of long ones. To go on: {shlex.join(command)}",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    return INTERRUPTED_CODE


def _list(console: Console, json: bool, table: Any) -> int:
    from ..lab import figures

    if not json:
        console.print(table)
        return 0
    print_json(
        [
            {
                "figure": figure.id,
                "title": figure.title,
                "reference": figure.reference,
                "scales": {name: dict(settings) for name, settings in figure.scales.items()},
                "options": {name: list(values) for name, values in figure.options.items()},
            }
            for _, figure in figures.items()
        ]
    )
    return 0


def _summary(
    plan: Plan,
    counts: dict[str, int],
    seconds: float,
    collection: Collection | None,
    files: list[Path],
) -> dict[str, Any]:
    verdicts = [] if collection is None else collection.verdicts
    return {
        "figure": plan.figure.id,
        "scale": plan.scale,
        "trials": counts,
        "seconds": seconds,
        "verdicts": [verdict.to_json() for verdict in verdicts],
        "files": [str(file) for file in files],
    }


def _counts(plan: Plan, state: Survey) -> dict[str, int]:
    """Counts when nothing is run: stored trials are the cached ones."""
    cached = len(plan.unique) - len(state.of("missing"))
    failed = cached - len(state.of("ok"))
    return {"planned": len(plan.unique), "cached": cached, "run": 0, "failed": failed}


def _sweep_counts(sweep: Sweep) -> dict[str, int]:
    return {
        "planned": sweep.planned,
        "cached": sweep.cached,
        "run": sweep.run,
        "failed": sweep.failed,
    }


def _any_numbers(plan: Plan, store: Any) -> bool:
    stored = (store.read(address) for address in plan.unique)
    return any(trial is not None and trial.payload for trial in stored)


def _worker_count(workers: int | None) -> int:
    from ..lab import default_workers

    return default_workers() if workers is None else max(workers, 1)
