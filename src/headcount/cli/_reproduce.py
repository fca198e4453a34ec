"""`headcount reproduce`: from a figure's name to its verdicts."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ._dry_run import Place, dry_run_all, dry_run_one, estimated, summary
from ._everything import Among, Ended, in_the_way, plan_everything, run_everything
from ._flags import Whole, name_folders
from ._output import consoles, print_json
from ._readings import plan_readings, run_readings

if TYPE_CHECKING:
    from rich.console import Console

    from ..lab import Collection, Plan, Policy, Sweep

Scale = Literal["smoke", "quick", "paper"]
Options = Annotated[list[str] | None, Parameter(name=["--option", "--reading"], negative=())]
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
    readings: str | None = None,
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
        A figure that cannot run does not stop the others; it is named at the end with its reason.
        With --json one object on a line for each figure.
    scale
        smoke: seconds; quick: minutes on a laptop; paper: the paper's own sizes.
    seeds
        Seeds such as 0:10 or 0,3,5; default: the scale's own.
    out
        Results folder; what it already holds is not computed again.
    option
        A figure's named choice, as name=value; may be repeated. --reading says the same of a choice
        that the paper's text leaves open.
    readings
        Run all readings of what the text leaves open: one (choice changed at a time), pairs, all,
        or a number of them at random. Trials that readings share run once. With --dry-run: what
        it takes. With --json one object on a line for each reading, and one for all.
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
        Show the plan with estimated time and memory; compute nothing. With --all one line for
        each figure; for the trials of one, name it.
    strict
        Exit with code 3 unless every claim is confirmed.
    retry_failed
        Run failed, diverged and nonfinite trials again.
    trial_timeout
        Seconds after which a trial in a worker process, a SLURM job or a Dask worker of one thread
        with a nanny is ended; default: 50 times its estimate, at least an hour.
    retries
        How often a trial is run again whose worker died, ran out of memory or out of time.
    """
    from ..core import BadArgument, HeadcountError, check_count, papers
    from ..core._outside import one_line_if_broken
    from ..lab import Policy, make_plan, parse_seeds
    from ..lab._seeds import parse_options

    _, notes = consoles(json)
    if list_figures:
        return _list(json)
    if figure is None and not everything:
        fix = "see headcount reproduce --list, or reproduce all with --all"
        raise BadArgument("figure", None, "is missing", fix=fix)
    if everything and (figure is not None or option or readings):
        problem = "chooses one figure, and --all all of them"
        raise BadArgument(
            "figure", figure or option or readings, problem, fix="leave one of them out"
        )
    if workers is not None:
        check_count("workers", workers, least=0)
    policy = Policy(time_limit=trial_timeout, retries=retries)
    name_folders(data_dir, model_dir)
    chosen = None if seeds is None else parse_seeds(seeds)

    place = Place(out, workers, executor)

    given = parse_options(option or [])

    def plan_of(name: str) -> Plan:
        return make_plan(name, scale, chosen, given)

    def run(plan: Plan, among: Among | None = None) -> Ended:
        return _run(plan, place, retry_failed, policy, among, json=json, strict=strict)

    def run_among(plan: Plan, among: Among) -> Ended:
        try:
            ours = plan.figure.id.split("/")[0] in papers.ours
            with one_line_if_broken("figure", plan.figure.id, ours=ours):
                return run(plan, among)
        except (HeadcountError, OSError) as error:
            if not (reason := in_the_way(error)):
                raise
            unable_object(plan.figure.id, reason)
            return Ended(INCOMPLETE_CODE, reason)

    def unable_object(name: str, reason: str) -> None:
        if json:
            print_json({"figure": name, "scale": scale, "error": reason}, line=True)

    if figure is not None and readings is not None:
        plans_read = plan_readings(
            figure, readings, given, lambda options: make_plan(figure, scale, chosen, options)
        )
        return run_readings(plans_read, place, run_among, json=json, dry_run=dry_run)
    if figure is not None:
        return (
            dry_run_one(plan_of(figure), place, json=json) if dry_run else run(plan_of(figure)).code
        )
    plans, unable = plan_everything(plan_of)
    if dry_run:
        return dry_run_all(plans, unable, scale, place, json=json)
    for name, reason in unable.items():
        unable_object(name, reason)
    estimates = {name: estimated(plan, place).cost.seconds for name, plan in plans.items()}
    return run_everything(scale, out, notes, plans, unable, Among(estimates), run_among)


def finish(
    plan: Plan,
    collection: Collection,
    files: list[Path],
    counts: dict[str, int],
    seconds: float,
    *,
    json: bool,
    among: Among | None = None,
    beside: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Tell verdicts and files, as JSON or for people; in short where it is one `among` many.

    `beside` are all stored readings of the figure, where there are several.
    """
    from ..report._readings import readings_json, readings_table
    from ..report._tables import (
        chance_sentence,
        stand_in_sentence,
        verdicts_summary,
        verdicts_table,
    )

    if json:
        more = readings_json(beside) if len(beside) > 1 else {}
        print_json({**summary(plan, counts, seconds, collection, files), **more},
                   line=among is not None)  # fmt: skip
        return
    console, _ = consoles(json)
    if among is not None:
        told = f"{among.title}: {verdicts_summary(collection.verdicts)}"
        console.print(told, markup=False, highlight=False)
        return
    console.print(f"{plan.figure.id}: {plan.figure.title} ({plan.figure.reference})", markup=False)
    if plan.stand_in:
        console.print(stand_in_sentence(plan), markup=False, highlight=False)
    if plan.figure.notes:
        console.print(plan.figure.notes, markup=False, highlight=False)
    console.print(verdicts_summary(collection.verdicts), highlight=False)
    console.print(verdicts_table(collection.verdicts))
    if chance := chance_sentence([verdict.p for verdict in collection.verdicts]):
        console.print(f"{chance} They are marked *.", highlight=False)
    if len(beside) > 1:
        console.print(readings_table(beside))
    for file in files:
        console.print(str(file), markup=False, highlight=False, soft_wrap=True)


def _run(
    plan: Plan,
    place: Place,
    retry_failed: bool,
    policy: Policy,
    among: Among | None,
    *,
    json: bool,
    strict: bool,
) -> Ended:
    from ..lab import CONFIRMED, StorageError, Store, collect, run_plan
    from ..report import make_reporter, write_files
    from ..report._tables import problems_text

    _, notes = consoles(json)
    out = place.out

    def tell(text: str) -> None:
        notes.print(text, markup=False, highlight=False, soft_wrap=True)

    line = among is not None
    title, ahead = (plan.figure.id, None) if among is None else (among.title, among.seconds_ahead)
    started = time.monotonic()
    try:
        sweep = run_plan(
            plan,
            out,
            workers=place.workers,
            executor=place.executor,
            retry_failed=retry_failed,
            reporter=make_reporter(notes, title, ahead),
            policy=policy,
        )
        store = sweep.store or Store(out)
        if sweep.interrupted:
            return _interrupted(notes, plan, sweep, place)
        if sweep.problems:
            notes.print(problems_text(sweep.problems))
        counts = _sweep_counts(sweep)
        if sweep.failed == sweep.planned and not _any_numbers(plan, store):
            if json:
                print_json(summary(plan, counts, time.monotonic() - started), line=line)
            notes.print("No trial gave numbers: there is nothing to draw or to judge.")
            return Ended(INCOMPLETE_CODE, f"no trial gave numbers: {sweep.problems[0].reason}")
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
        if json:
            about = {"figure": plan.figure.id, "scale": plan.scale, "error": str(error)}
            print_json(about, line=line)
        return Ended(INCOMPLETE_CODE, str(error))
    finish(plan, collection, files, counts, time.monotonic() - started, json=json, among=among)
    if not any(file.suffix == ".png" for file in files):
        return Ended(INCOMPLETE_CODE, "it could not be drawn")
    confirmed = all(verdict.outcome == CONFIRMED for verdict in collection.verdicts)
    return Ended(NOT_CONFIRMED_CODE if strict and not confirmed else 0)


def _interrupted(notes: Console, plan: Plan, sweep: Sweep, place: Place) -> Ended:
    from ..lab import Store
    from ..lab._plan import survey
    from ..report._tables import seeds_text

    # Counted in the folder: a trial may have been saved in the very moment of the interruption.
    out, executor = place.out, place.executor
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
    return Ended(INTERRUPTED_CODE, "interrupted")


def _list(json: bool) -> int:
    from ..lab import figures
    from ..report._tables import figures_table

    if not json:
        consoles(json)[0].print(figures_table([figure for _, figure in figures.items()]))
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
