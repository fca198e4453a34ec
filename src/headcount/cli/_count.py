"""`headcount count`: the width each theorem asks for, beside the width that training needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ._audit import audited_config
from ._flags import Flag, Whole
from ._in_words import in_short, training_needs
from ._output import check_picture, print_json
from ._problem import NO_FLAGS, ProblemFlags

if TYPE_CHECKING:
    from ..core import Paper
    from ..theory import Answer
    from ..theory._practice import Practice
    from ..theory._setting import Setting
    from ..training import TrainConfig

Question = Literal["width", "steps", "step-size"]


def count_command(
    config: Path | None = None,
    /,
    *,
    loss: float | None = None,
    gap: float | None = None,
    ask: Question = "width",
    problem: ProblemFlags = NO_FLAGS,
    optimiser: str | None = None,
    eta: float | None = None,
    rho: str | None = None,
    steps: Whole | None = None,
    delta: float = 0.05,
    seeds: str = "0:3",
    most_width: Whole = 512,
    theory_only: Flag = False,
    plot: Path | None = None,
    json: Flag = False,
) -> int:
    """Count heads: what every theorem asks for to reach a loss, and what training needs in fact.

    Parameters
    ----------
    config
        TOML file as for `headcount train`; flags override it.
    loss
        The target for the training loss.
    gap
        In its place: the target for test loss minus training loss; theorems answer, no runs.
    ask
        width: the fewest heads; steps: the fewest; step-size: the largest.
    optimiser
        gd, projgd, projsgd, sgd, momentum, adam or adamw; default: the paper's own.
    eta
        Step size, where it is not what is asked; default: the paper's own.
    rho
        Projection radii rho_c,rho_u,rho_w; default: the paper's own.
    steps
        Steps, where they are not what is asked.
    delta
        Failure probability of each event.
    seeds
        Seeds of the real runs; the median decides.
    most_width
        Give up the search for a width here.
    theory_only
        Only what the theorems ask for.
    plot
        Save a plot of the search to this file, .png, .pdf or .svg.
    json
        Print one JSON object on standard output.
    """
    from ..core import BadArgument, check_count, check_fraction, papers

    quantity, target = _target(loss, gap)
    if plot is not None and (theory_only or quantity == "gap"):
        nothing = "has nothing to draw where nothing is trained"
        fix = "leave out --theory-only" if theory_only else "ask for a loss"
        raise BadArgument("plot", str(plot), nothing, fix=fix)
    check_picture(plot)
    check_fraction("delta", delta)
    from ..theory import practice, theorem_answers
    from ..theory._count import over_seeds
    from ..theory._promise import settings_of

    names = ("optimiser", "eta", "rho", "steps", "seeds")
    flags = {k: v for k, v in locals().items() if k in names} | asdict(problem)
    chosen = audited_config(config, {"n": 500, **_given(flags)}, [])
    paper = papers.of_model(chosen.model)
    tell = teller(json)
    settings = settings_of(chosen, delta=delta)
    setting = next(iter(settings.values()))
    check_count("most_width", most_width, least=setting.width_step)
    answers = over_seeds(
        {
            seed: theorem_answers(paper.key, setting, target, ask, quantity, tell)
            for seed, setting in settings.items()
        }
    )
    found: Practice | None = None
    if not theory_only and quantity == "loss":
        found = practice(
            chosen,
            target,
            ask,
            width_step=setting.width_step,
            most_width=most_width,
            progress=tell,
        )
        found = replace(found, narrower=_narrower(paper, chosen, found.answer, ask))
    drawn = plot if found is not None and found.probes else None
    if drawn is not None and found is not None:
        _save_plot(found, answers, target, drawn)
    trained = None if found is None else found.answer
    goal = f"a {quantity} of {target:g}"
    short = in_short(ask, _given_there(ask, setting), goal, answers, trained)
    if json:
        print_json({"answer": short, **_summary(quantity, target, ask, answers, found, drawn)})
    else:
        title = f"{TITLES[ask]} for {goal}, by the theorems of {paper.key}"
        _show(short, title, ask, answers, found, drawn)
    return 0


TITLES = {"width": "Least width", "steps": "Fewest steps", "step-size": "Largest step size"}


def _given_there(ask: str, setting: Setting) -> str:
    """What is fixed where one thing is asked."""
    steps, width = f"{setting.steps} steps", f"width {setting.width}"
    return {"width": f"at {steps}", "steps": f"at {width}"}.get(ask, f"at {width} and {steps}")


def _narrower(paper: Paper, config: TrainConfig, needed: Answer, ask: str) -> tuple[Answer, ...]:
    """Which narrower model, trained otherwise, makes the same run.

    The run of the width that was needed; of the configured one where a single unit was enough, or
    no width was found.
    """
    if ask != "width" or paper.reduction is None:
        return ()
    width = int(needed.value or 1)
    wide = config if width == 1 else config.model_copy(update={"width": width})
    return tuple(paper.part("reduction")(wide))


def _target(loss: float | None, gap: float | None) -> tuple[str, float]:
    from ..core import BadArgument, check_positive

    if loss is not None and gap is None:
        return "loss", check_positive("loss", loss)
    if gap is not None and loss is None:
        return "gap", check_positive("gap", gap)
    problem = "is needed, or --gap, and not both"
    raise BadArgument("loss", loss, problem, fix="for example --loss 0.05")


def _given(flags: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in flags.items() if value is not None}


def teller(quiet: bool) -> Callable[[str], None]:
    """Progress lines on standard error; nothing with --json."""
    import sys

    from rich.console import Console

    console = Console(file=sys.stderr)
    return (lambda text: None) if quiet else (lambda text: console.print(text, style="dim"))


def _save_plot(found: Practice, answers: list[Answer], loss: float, target: Path) -> None:
    from matplotlib.figure import Figure

    from ..core._files import replacing
    from ..report._count import draw_count

    figure = Figure(figsize=(3.4, 3.2), layout="constrained")
    draw_count(found, answers, loss, figure.add_subplot())
    with replacing(target) as temporary:
        figure.savefig(temporary, dpi=200, format=target.suffix.lower().removeprefix("."))


def _summary(
    quantity: str,
    target: float,
    ask: str,
    answers: list[Answer],
    found: Practice | None,
    plot: Path | None,
) -> dict[str, object]:
    return {
        "question": ask,
        quantity: target,
        "theorems": [answer.to_json() for answer in answers],
        "training": found.answer.to_json() if found else None,
        "narrower": [answer.to_json() for answer in found.narrower] if found else [],
        "probes": [vars(p) for p in found.probes] if found else [],
        "plot": str(plot) if plot else None,
    }


Row = tuple[str, str, str, str]


def table_rows(answers: Iterable[Answer]) -> Iterator[Row]:
    """(theorem, form, answer, note), each once: theorems first, then displays such as (44).

    Forms that answer alike share a row; a theorem whose rows are those of another is named with it.
    """
    of_source: dict[str, dict[tuple[str, str], list[str]]] = {}
    for answer in answers:
        name = answer.source.split("/", 1)[-1]
        rows = of_source.setdefault(name, {})
        forms = rows.setdefault((training_needs(answer), answer.note), [])
        forms += [answer.variant] if answer.variant not in forms else []
    told: dict[str, str] = {}
    for name in sorted(of_source, key=lambda name: name.startswith("eq-")):
        rows = of_source[name]
        if (known := told.setdefault(repr(rows), name)) != name:
            first = next(iter(rows))
            yield name, "all", first[0] if len(rows) == 1 else "same", f"as {known}"
            continue
        last = ""
        for (shown, note), forms in rows.items():
            form = ", ".join(forms)
            yield "" if last else name, "" if form == last else form, shown, note
            last = form


def without_repetition(rows: list[Row]) -> tuple[list[Row], list[str]]:
    """The rows without the remarks that stand in each of their notes, and those remarks."""
    notes = [note.split("; ") for *_, note in rows if not note.startswith("as ")]
    if len(notes) < 3:
        return rows, []
    remarks = [part for part in notes[0] if all(part in note for note in notes)]
    if remarks == notes[0]:  # a note that says all keeps its place
        return rows, []
    kept = ("; ".join(p for p in row[3].split("; ") if p not in remarks) for row in rows)
    return [(*row[:3], note) for row, note in zip(rows, kept, strict=True)], remarks


def _show(
    short: str,
    title: str,
    ask: str,
    answers: list[Answer],
    found: Practice | None,
    plot: Path | None,
) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in ("source", "form", ask, "note"):
        right: Literal["left", "right"] = "right" if column == ask else "left"
        table.add_column(column, justify=right, no_wrap=column != "note")
    trained = () if found is None else (found.answer, *found.narrower)
    rows, remarks = without_repetition([*table_rows(answers)])
    for cells in (*rows, *table_rows(trained)):
        table.add_row(*cells)
    console = Console()
    console.print(short, highlight=False)
    console.print(table)
    if remarks:
        console.print(f"In every row: {'; '.join(remarks)}.", highlight=False)
    if plot is not None and found is not None:
        console.print(f"plot: {plot}", highlight=False)
