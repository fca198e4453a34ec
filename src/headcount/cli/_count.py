"""`headcount count`: the width each theorem asks for, beside the width that training needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ._audit import audited_config
from ._flags import Flag, Whole
from ._output import check_writable, print_json
from ._problem import NO_FLAGS, ProblemFlags

if TYPE_CHECKING:
    from ..core import Paper
    from ..theory import Answer, Practice
    from ..training import TrainConfig

Question = Literal["width", "steps", "step-size"]

NOT_REACHED = "not reached"
PICTURES = (".png", ".pdf", ".svg")


def count_command(
    config: Path | None = None,
    /,
    *,
    loss: float | None = None,
    gap: float | None = None,
    ask: Question = "width",
    problem: ProblemFlags = NO_FLAGS,
    d: Whole | None = None,
    T: Annotated[Whole | None, Parameter(name="--T")] = None,
    nu: str | None = None,
    pool: Whole | None = None,
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
    d
        Data option: features per token.
    T
        Data option: tokens per sample.
    nu
        Data option: bounds of the teacher's transport map, as 3,3,3.
    pool
        Data option: heads of the teacher's pool.
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
    from ..core import BadArgument, check_choice, check_fraction, papers

    quantity, target = _target(loss, gap)
    if plot is not None and (theory_only or quantity == "gap"):
        nothing = "has nothing to draw where nothing is trained"
        fix = "leave out --theory-only" if theory_only else "ask for a loss"
        raise BadArgument("plot", str(plot), nothing, fix=fix)
    if plot is not None:
        check_choice("plot", plot.suffix.lower(), PICTURES)
        check_writable("plot", plot)
    check_fraction("delta", delta)
    from ..theory import practice, theorem_answers

    names = ("d", "T", "nu", "pool", "optimiser", "eta", "rho", "steps", "seeds")
    flags = {k: v for k, v in locals().items() if k in names} | asdict(problem)
    chosen = audited_config(config, {"n": 500, **_given(flags)}, [])
    paper = papers.of_model(chosen.model)
    setting = paper.part("setting").of(chosen, delta=delta)
    answers = theorem_answers(paper.key, setting, target, ask, quantity, teller(json))
    found: Practice | None = None
    if not theory_only and quantity == "loss":
        found = practice(
            chosen,
            target,
            ask,
            width_step=setting.width_step,
            most_width=most_width,
            progress=teller(json),
        )
        found = replace(found, narrower=_narrower(paper, chosen, found.answer, ask))
    drawn = plot if found is not None and found.probes else None
    if drawn is not None and found is not None:
        _save_plot(found, answers, target, drawn)
    if json:
        print_json(_summary(quantity, target, ask, answers, found, drawn))
    else:
        _show(quantity, target, ask, answers, found, drawn)
    return 0


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


def _in_short(ask: str, answers: list[Answer], found: Practice | None) -> str:
    """The two numbers that matter: the best of the theorems, and what training needs."""
    known = sorted((a for a in answers if a.value is not None), key=lambda a: a.value or 0.0)
    best = known[-1 if ask == "step-size" else 0] if known else None
    what = {"width": "a width of", "steps": "steps:", "step-size": "a step size of at most"}[ask]
    asked = "no theorem gives one" if best is None else f"theorems ask for {what} {best.shown}"
    if found is None:
        return asked
    needed = training_needs(found.answer)
    trained = "did not get there" if needed == NOT_REACHED else f"needs {needed}"
    return f"{asked}; training {trained}"


def training_needs(answer: Answer) -> str:
    """What training needed. A search that gave up proves no "never", as a bound does."""
    return NOT_REACHED if answer.shown == "never" else answer.shown


def _without_repeats(rows: Iterable[tuple[str, str, str, str]]) -> Iterator[tuple[str, ...]]:
    """Each answer once; a name or a reason that stands in the row above is not said again."""
    last = ("",) * 4
    for row in dict.fromkeys(rows):
        source, variant, value, note = row
        same = note.startswith("not applicable") and note == last[3]
        first = "" if source == last[0] else source
        again = "" if not first and variant == last[1] else variant
        yield first, again, value, "the same" if same else note
        last = row


def _show(
    quantity: str,
    target: float,
    ask: str,
    answers: list[Answer],
    found: Practice | None,
    plot: Path | None,
) -> None:
    from rich.console import Console
    from rich.table import Table

    titles = {"width": "Least width", "steps": "Fewest steps", "step-size": "Largest step size"}
    title = f"{titles[ask]} for a {quantity} of {target:g}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in ("source", "variant", ask, "note"):
        right: Literal["left", "right"] = "right" if column == ask else "left"
        table.add_column(column, justify=right, no_wrap=column != "note")
    rows = [(r.source, r.variant, r.shown, r.note) for r in answers]
    if found is not None:
        trained = (found.answer, *found.narrower)
        rows += [(r.source, r.variant, training_needs(r), r.note) for r in trained]
    for cells in _without_repeats(rows):
        table.add_row(*cells)
    console = Console()
    console.print(_in_short(ask, answers, found), highlight=False)
    console.print(table)
    if plot is not None and found is not None:
        console.print(f"plot: {plot}", highlight=False)
