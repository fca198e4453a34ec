"""`headcount train`: one model on one data model, from flags or a TOML file."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._config import read_config
from ._flags import Flag, Whole
from ._output import check_file, print_json
from ._problem import NO_FLAGS, ProblemFlags
from ._unfinished import RunCheckpoint, place_for

if TYPE_CHECKING:
    from rich.progress import Progress

    from ..training import Run, TrainConfig
    from ..training._plan import TrainingPlan

INTERRUPTED = 130
_NOT_SETTINGS = ("config", "problem", "devices", "out", "resume", "json", "dry_run")


def train_command(
    config: Path | None = None,
    /,
    *,
    problem: ProblemFlags = NO_FLAGS,
    n_val: Whole | None = None,
    optimiser: str | None = None,
    eta: float | None = None,
    rho: str | None = None,
    batch_size: Whole | None = None,
    loss: str | None = None,
    steps: Whole | None = None,
    seeds: str | None = None,
    record: str | None = None,
    record_every: Whole | None = None,
    keep: str | None = None,
    dtype: str | None = None,
    chunk: Whole | None = None,
    devices: Whole | None = None,
    out: Path | None = None,
    resume: Flag = False,
    json: Flag = False,
    dry_run: Flag = False,
) -> int:
    """Train a model and write the run to a netCDF file. Flags override the TOML file.

    Parameters
    ----------
    config
        TOML file whose keys are these flags, with _ for -; [model_options], [init_options] and
        [data_options] are tables.
    n_val
        Validation samples.
    optimiser
        gd, projgd, projsgd, sgd, momentum, adam or adamw; default: the paper's own.
    eta
        Step size; default: the paper's own for its optimiser, else 1/sqrt(steps).
    rho
        Projection radii rho_c,rho_u,rho_w; default: the paper's own.
    batch_size
        Samples per step of sgd and projsgd.
    loss
        mean-squared, half-squared-sum or logistic; default: the paper's own.
    steps
        How many steps.
    seeds
        Such as 0:5 or 0,3,7.
    record
        Recorders, separated by commas.
    record_every
        Record every so many steps.
    keep
        average, best, or both separated by a comma.
    dtype
        float32 or float64.
    chunk
        Samples per chunk; default: what fits the cache.
    devices
        Split the samples over so many devices; see docs/cluster.md.
    out
        netCDF file; default headcount-runs/HASH.nc, named after the configuration.
    resume
        Go on from the checkpoint that an interrupted run left beside its file, if there is one.
    json
        Print one JSON object on standard output.
    dry_run
        Show every value, memory, time, and which choices among readings of the papers apply.
    """
    given = {k: v for k, v in locals().items() if k not in _NOT_SETTINGS} | asdict(problem)
    from ..training import build, run_config
    from ..training._build import check_problem
    from ..training._devices import sample_mesh
    from ..training._plan import plan_training, require_memory

    chosen = read_config(config, given).naming_seeds()
    sample_mesh(devices)
    plan = plan_training(chosen)
    target = out or _own_file(chosen.fingerprint)
    if plan.fits:
        check_problem(chosen)
    if dry_run:
        _show_settings(chosen, plan, target, json)
        return 0
    require_memory(plan)
    check_target(target)
    kept = RunCheckpoint(target, chosen, devices)
    kept.check(resume=resume)
    _announce(plan, quiet=json)  # before data are made, which may take longer than training
    built = build(chosen)
    with training_progress(chosen.steps, quiet=json) as progress, until_interrupted() as stop:
        kept.asked = stop.is_set
        run = run_config(
            chosen, built=built, devices=devices, progress=progress, checkpoint=kept, stop=kept.stop
        )
    cut = run.settings["steps"] < chosen.steps
    wanted = out or _own_file(run.settings["config_fingerprint"])
    target = place_for(run, wanted, cut=cut)
    run.save(target)
    if not cut:
        kept.remove()
    if json:
        print_json(summarise(run, chosen, target))
    else:
        _show_table(run, chosen, target, cut)
    if target != wanted:
        print(f"headcount: {wanted} holds more and stays; the run is in {target}", file=sys.stderr)
    if cut:
        did = f"after {run.settings['steps']} of {chosen.steps} steps"
        told = "what ran is saved, and --resume goes on from there"
        print(f"headcount: interrupted {did}; {told}", file=sys.stderr)
    return INTERRUPTED if cut else 0


def _own_file(fingerprint: str) -> Path:
    return Path("headcount-runs") / f"{fingerprint}.nc"


def _announce(plan: TrainingPlan, *, quiet: bool) -> None:
    """Time and memory before the work, on standard error."""
    if not quiet:
        from rich.filesize import decimal

        from ..report._progress import duration

        print(
            f"estimated: {duration(plan.seconds or 0.0)}, {decimal(plan.memory_bytes)} of memory "
            f"({decimal(plan.available_bytes)} available)",
            file=sys.stderr,
        )


@contextmanager
def until_interrupted() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets, so that work can end well; the second one interrupts.

    SIGTERM and SIGHUP act like Ctrl-C.
    """
    asked = threading.Event()

    def ask(number: int, frame: Any) -> None:
        for one in before:
            signal.signal(one, signal.default_int_handler)
        asked.set()

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    # SLURM ends a job with SIGTERM; where somebody chose otherwise (nohup), that stays.
    before = {signal.SIGINT: signal.getsignal(signal.SIGINT)}
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            before[number] = signal.SIG_DFL
    for number in before:
        signal.signal(number, ask)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def summarise(run: Run, config: TrainConfig, target: Path) -> dict[str, Any]:
    """The run in plain values."""
    return {
        "config": config.resolved(),
        "settings": {k: v for k, v in run.settings.items() if not k.startswith("config_")},
        "seeds": list(run.seeds),
        "outcomes": list(run.outcomes),
        "initial_loss": run.loss[:, 0],
        "min_loss": run.min_loss,
        "final_loss": run.final_loss,
        "seconds": round(run.seconds, 3),
        "file": str(target),
    }


_SIGNATURE = b"\x89HDF\r\n\x1a\n"
"""How a netCDF file begins."""


def check_target(target: Path) -> None:
    """A file that can be written, found out before the work; only runs and kernels are replaced."""
    from ..core import BadArgument

    check_file("out", target)
    if target.exists():
        with target.open("rb") as file:
            begin = file.read(len(_SIGNATURE))
        if begin and begin != _SIGNATURE:
            problem = "exists and is no netCDF file"
            raise BadArgument("out", str(target), problem, fix="choose another file")
        if begin and _is_of_another_program(target):
            problem = "exists and is a file of another program"
            raise BadArgument("out", str(target), problem, fix="choose another file")


def _is_of_another_program(target: Path) -> bool:
    """Whether it says neither that it is a run nor that it is a kernel; a damaged one cannot."""
    import h5py

    try:
        with h5py.File(target, "r") as file:
            names = set(file.attrs)
    except OSError:
        return False
    is_run = "seconds" in names and not names.isdisjoint(("checksum", "config"))
    return not is_run and not any(name.startswith("headcount_") for name in names)


class TrainingBar:
    """Steps, loss and time left of a run on a terminal; `say` puts words in place of "training"."""

    def __init__(self, bar: Progress, steps: int) -> None:
        self._bar = bar
        self._task = bar.add_task("training", total=steps, told=f"0/{steps}")

    def __call__(self, done: int, total: int, loss: float) -> None:
        self._bar.update(self._task, completed=done, told=f"{done}/{total} loss {loss:.4g}")

    def say(self, text: str) -> None:
        """What happens now, such as the claim that is judged."""
        # The steps are done then, and a line of 80 columns has no room for them beside the words.
        self._bar.update(self._task, description=text, told="")


@contextmanager
def training_progress(steps: int, *, quiet: bool) -> Iterator[TrainingBar | None]:
    """A bar with time left and the current loss, on standard error, only on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeLeft(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield TrainingBar(bar, steps)


def _show_settings(config: TrainConfig, plan: TrainingPlan, target: Path, json: bool) -> None:
    chosen = config.choices()
    values = {**config.resolved(), "out": str(target)}
    if json:
        readings = [{"paper": key, **c._asdict(), "given": given} for key, c, given in chosen]
        print_json({**values, "plan": plan.to_dict(), "choices": readings})
        return
    from rich.console import Console
    from rich.filesize import decimal
    from rich.table import Table

    from ..report._progress import duration

    shown = {**values, "T": plan.T, "d": plan.d, "parameters": f"{plan.parameters:,}"}
    shown["data in memory"] = decimal(plan.data_bytes)
    shown["memory"] = f"{decimal(plan.memory_bytes)} of {decimal(plan.available_bytes)} available"
    shown["memory"] += "" if plan.fits else ": does not fit"
    shown["time"] = f"about {duration(plan.seconds or 0.0)}"
    table = Table(show_header=False, box=None)
    for name, value in shown.items():
        table.add_row(name, "-" if value is None else str(value))
    choices = Table("paper", "choice", "here", "other readings", title_justify="left")
    choices.title = "Choices among readings of the papers"
    for key, choice, given in chosen:
        choices.add_row(key, choice.what, _here(choice.ours, given), choice.others)
    console = Console()
    console.print(table, highlight=False)
    if chosen:
        console.print(choices)


def _here(ours: str, given: Any) -> str:
    """Our reading, unless something else was given."""
    text = str(given).lower() if isinstance(given, bool) else str(given)
    same = given is None or text == ours.split()[0].rstrip(",:;")
    return ours if same else f"{text} (default: {ours})"


def _show_table(run: Run, config: TrainConfig, target: Path, cut: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    values = config.resolved()
    console = Console()
    steps = run.settings["steps"]
    title = f"{config.model}, width {config.width}, on {config.data}: "
    title += f"{steps} step{'s' if steps != 1 else ''} of {config.optimiser}, "
    title += f"eta = {values['eta']:.4g}, {run.settings['dtype']}"
    table = Table()
    for column in ("seed", "loss at start", "smallest loss", "loss at end", "outcome"):
        table.add_column(column, justify="left" if column == "outcome" else "right")
    for i, seed in enumerate(run.seeds):
        # `min_loss` is the theorems' minimum over k < tau; a reader expects the end to count, too.
        smallest = min(run.min_loss[i], run.final_loss[i])
        numbers = (run.loss[i, 0], smallest, run.final_loss[i])
        outcome = "interrupted" if cut and run.outcomes[i] == "completed" else run.outcomes[i]
        table.add_row(str(seed), *(f"{v:.4e}" for v in numbers), outcome)
    console.print(title, highlight=False)
    console.print(table)
    console.print(f"{run.seconds:.1f} s; the run is in {target}", highlight=False, soft_wrap=True)
