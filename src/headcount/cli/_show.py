"""`headcount show`: draw and judge again from stored results."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ._dry_run import counted
from ._flags import name_folders
from ._output import consoles
from ._reproduce import OUT, Options, Scale, finish

if TYPE_CHECKING:
    from ..lab import Plan, Store


def show_command(
    figure: str,
    /,
    *,
    scale: Scale | None = None,
    seeds: str | None = None,
    out: Path = OUT,
    option: Options = None,
    data_dir: Path | None = None,
    model_dir: Path | None = None,
    size: str | None = None,
    title: str | None = None,
    style: Literal["paper", "talk"] = "paper",
    panels: str = "",
    format: Literal["pdf", "png", "svg"] = "pdf",
    verdict: Annotated[bool, Parameter(negative="--no-verdict")] = True,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Redraw a figure and its verdicts from stored results; computes no trial.

    Where nothing can be written (read-only or full disk) the verdicts are shown all the same.
    Without scale, seeds and options: as it was reproduced last in this folder. Where the folder has
    several readings: in how many of them each claim holds, and the specification curve as a plot.

    Parameters
    ----------
    figure
        Name such as arda2026/fig1.
    scale
        smoke, quick or paper.
    seeds
        Seeds such as 0:10 or 0,3,5.
    out
        Results folder.
    option
        A figure's named choice, as name=value; may be repeated.
    data_dir
        The folder of data files that it was reproduced with, if any.
    model_dir
        The folder of the pretrained encoder that it was reproduced with, if any.
    size
        Draw it once more for a paper of your own: column, page or inches such as 5.5x3.
    title
        Above that picture.
    style
        Of that picture: paper, or talk for a slide, with larger letters and lines.
    panels
        Those to draw, such as ac for the first and the third; all if left out.
    format
        Of that picture: pdf, png or svg.
    verdict
        Count the verdicts in its caption.
    json
        Print one JSON object, as `reproduce --json` does.
    """
    import time

    from ..lab import StorageError, Store, collect
    from ..lab._plan import survey
    from ..report import write_files
    from ..report._files import write_picture
    from ..report._plots import Look
    from ..report._readings import stored_readings, write_readings

    own = None
    if size is not None or title is not None or style == "talk" or panels:
        own = Look.of_size(size, title=title or "", verdicts=verdict, style=style, panels=panels)
    name_folders(data_dir, model_dir)
    started = time.monotonic()
    _, notes = consoles(json)
    store = Store(out, notes.print)
    plan = _choose(figure, scale, seeds, option or [], store, notes.print)
    collection = collect(plan, store)
    if collection.missing:
        notes.print(f"{collection.missing} of {len(plan.unique)} trials are missing.")
    for note in collection.notes:
        notes.print(note, markup=False, highlight=False, soft_wrap=True)
    files: list[Path] = []
    try:
        files = write_files(collection, store, notes.print)
        if own is not None:
            files.append(write_picture(collection, store, own, format, size or "own"))
    except StorageError as error:
        text = f"The figure's files were not written: {error}"
        notes.print(text, markup=False, highlight=False, soft_wrap=True)
    counts = counted(plan, survey(plan, store))
    beside = stored_readings(store, plan)
    if len(beside) > 1:
        with contextlib.suppress(StorageError):
            files = [*files, *map(Path, write_readings(store, plan, beside))]
    seconds = time.monotonic() - started
    finish(plan, collection, files, counts, seconds, json=json, beside=beside)
    return 0


def _choose(
    figure: str,
    scale: Scale | None,
    seeds: str | None,
    option: list[str],
    store: Store,
    message: Callable[[str], None],
) -> Plan:
    from ..lab import figures, make_plan, parse_seeds
    from ..lab._plan import remembered
    from ..lab._seeds import parse_options

    declared = figures[figure]
    last: dict[str, Any] = {}
    if scale is None and seeds is None and not option:
        plans = [plan for plan in remembered(store, message) if plan["figure"] == declared.id]
        last = plans[-1] if plans else {}
    return make_plan(
        declared,
        scale or last.get("scale", "quick"),
        parse_seeds(seeds) if seeds is not None else last.get("seeds"),
        parse_options(option) or last.get("options"),
    )
