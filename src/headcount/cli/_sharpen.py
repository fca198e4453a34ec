"""`headcount sharpen`: the best constant of an inequality, from both sides."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ._flags import Whole
from ._output import check_picture, print_json, say


def sharpen_command(
    claim: str,
    /,
    *,
    variant: str | None = None,
    budget: str = "default",
    boxes: Whole = 5_000,
    seed: Whole = 0,
    plot: Path | None = None,
    trust: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Find the best constant c of lhs <= c rhs: an interval, the point, a closed form.

    The lower end is proved in balls at a point; the upper end on the whole domain where `verify`
    takes the lemma, otherwise there is none. Exit code 0 whatever the constant is.

    Parameters
    ----------
    claim
        A file with lemmas of your own, my_lemma.py or my_lemma.py:name (the file is run); or the
        id of a claim, such as arda2026/lemma-3.
    variant
        One variant; by default the one that Headcount uses. The constant is a factor on its right
        side.
    budget
        small, default, large, or a number of evaluations per family of instances.
    boxes
        Boxes for each attempt to prove an upper end; 0 for none.
    seed
        Seed of the search.
    plot
        File for a picture: the interval over the sizes, and the extremal point.
    trust
        Do not ask before a file outside the current folder is run.
    json
        Print one JSON object: claim, variant, found, proved, value, digits, closed_form, point,
        approached, at, law, per_size; a list if there are several lemmas.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from ..theory import claims, sharpen
    from ..theory.lemma_files import is_lemma_file
    from ._lemmas import lemmas_from

    chosen = lemmas_from(claim, trust=trust) if is_lemma_file(claim) else [claims[claim]]
    check_picture(plot)
    columns = BarColumn(20), TimeElapsedColumn(), TextColumn("{task.description}")
    found = []
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        for own in chosen:
            task = bar.add_task(own.id, total=1.0)

            def tell(words: str, share: float, task: Any = task) -> None:
                bar.update(task, description=words[:44], completed=share)

            found.append(
                sharpen(own, variant, budget=budget, boxes=boxes, seed=seed, progress=tell)
            )
            bar.update(task, completed=1.0)
    if plot is not None:
        _draw(plot, found)
    if json:
        shown = [result.to_json() for result in found]
        print_json(shown[0] if len(shown) == 1 else shown)
    else:
        for own, result in zip(chosen, found, strict=True):
            _print(own, result)
    return 0


def _print(own: Any, result: Any) -> None:
    """The outcome for a reader."""
    from rich.console import Console

    console = Console()
    say(console, f"{own.id} ({result.variant}): {own.statement}", style="bold")
    say(console, f"best c of lhs <= c rhs; right side: {own.variants[result.variant].text}", "", 2)
    for row in result.rows:
        sizes = ", ".join(f"{name}={value}" for name, value in row.sizes.items())
        say(console, f"{sizes + ': ' if sizes else ''}{row.shown}", indent=2)
        for line in (row.guess, row.where):
            if line:
                say(console, line, indent=4)
    for sentence in result.law:
        say(console, sentence, indent=2)
    say(console, f"{result.instances} instances, {result.seconds:.1f} s", indent=2)


def _draw(path: Path, found: list[Any]) -> None:
    """For each lemma its intervals over the sizes, and beside them the extremal point."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 3.2 * len(found)), layout="constrained")
    for (left, right), result in zip(
        figure.subplots(len(found), 2, squeeze=False, width_ratios=(3, 2)), found, strict=True
    ):
        _draw_intervals(left, result)
        _draw_point(right, result)
    figure.savefig(path)


def _draw_intervals(axes: Any, result: Any) -> None:
    """The interval of the best constant over the sizes; an arrow where there is no upper end."""
    rows = [row for row in result.rows if row.found is not None]
    names = list(rows[0].sizes) if rows else []
    single = len(names) == 1
    at = [row.sizes[names[0]] if single else k for k, row in enumerate(rows)]
    axes.plot(at, [row.found for row in rows], "o", label="found: proved at a point")
    known = [(x, row) for x, row in zip(at, rows, strict=True) if row.proved is not None]
    for x, row in known:
        axes.plot([x, x], [row.found, row.proved], "-", color="0.6")
    if known:
        ends = [row.proved for _, row in known]
        axes.plot([x for x, _ in known], ends, "_", ms=14, label="proved on the domain")
    for x, row in zip(at, rows, strict=True):
        if row.proved is None:
            axes.annotate("", (x, row.found), (0, 24), textcoords="offset points",
                          arrowprops={"arrowstyle": "<-", "color": "0.6"})  # fmt: skip
    if single:
        axes.set_xlabel(names[0])
        axes.set_xticks(at)
    else:
        labels = (", ".join(f"{k}={v}" for k, v in row.sizes.items()) for row in rows)
        axes.set_xticks(at, [label or "as declared" for label in labels])
    axes.margins(y=0.3)
    low, high = axes.get_ylim()
    middle = (low + high) / 2
    if high - low < _LEAST_RANGE * abs(middle):  # ends that agree are shown as one
        room = _LEAST_RANGE * abs(middle) / 2
        axes.set_ylim(middle - room, middle + room)
    axes.set_ylabel("best constant")
    axes.set_title(result.claim, fontsize="medium")
    axes.legend(frameon=False)


def _draw_point(axes: Any, result: Any) -> None:
    """The entries of the extremal point of the largest constant, one variable beside another."""
    import numpy as np

    largest = max(result.rows, key=lambda row: row.found or 0.0)
    start = 0
    for name, values in largest.point.items():
        entries = np.asarray(values, dtype=float).ravel()
        axes.plot(range(start, start + len(entries)), entries, "o", label=name)
        start += len(entries) + 1
    if not 0 < start <= _MOST_DRAWN:
        axes.set_axis_off()
        return
    axes.axhline(0, color="0.8", lw=0.8, zorder=0)
    axes.set_xticks([])
    axes.margins(x=0.2, y=0.2)
    how = ", ".join(largest.approached)
    where = ", ".join(f"{k}={v}" for k, v in largest.sizes.items())
    axes.set_title(f"extremal point{f' at {where}' if where else ''}", fontsize="medium")
    axes.set_xlabel(f"direction: {how}" if how else "entries")
    axes.legend(frameon=False, ncols=3)


_LEAST_RANGE = 0.02
"""Of an axis, as a share of its numbers."""
_MOST_DRAWN = 60
"""Entries of a point that are still drawn."""
