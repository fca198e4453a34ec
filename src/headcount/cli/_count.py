"""`headcount count`: the width each theorem asks for, beside the width that training needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ._output import print_json

if TYPE_CHECKING:
    from ..theory import Answer, Practice

Flag = Annotated[bool, Parameter(negative=())]
Repeated = Annotated[list[str] | None, Parameter(negative=())]
Question = Literal["width", "steps", "step-size"]


def count_command(
    *,
    loss: float,
    ask: Question = "width",
    n: int = 500,
    d: int = 8,
    T: Annotated[int, Parameter(name="--T")] = 16,
    width: int = 64,
    steps: int = 400,
    rho: str = "3,3,3",
    nu: str = "3,3,3",
    activation: str = "tanh",
    delta: float = 0.05,
    seeds: str = "0:3",
    pool: int = 1024,
    most_width: int = 512,
    theory_only: Flag = False,
    plot: Path | None = None,
    json: Flag = False,
) -> int:
    """Count heads: what every theorem asks for to reach a loss, and what training needs in fact.

    Parameters
    ----------
    loss
        The target for the mean squared error.
    ask
        width: the fewest heads; steps: the fewest; step-size: the largest.
    n
        Training samples.
    d
        Features per token.
    T
        Tokens per sample.
    width
        Heads, where it is not what is asked.
    steps
        Steps tau, where they are not what is asked.
    rho
        Projection radii.
    nu
        Bounds of the teacher's transport map.
    activation
        Of student and teacher.
    delta
        Failure probability of each event.
    seeds
        Seeds of the real runs; the median decides.
    pool
        Heads of the teacher's pool.
    most_width
        Give up the search for a width here.
    theory_only
        Only what the theorems ask for.
    plot
        Save a plot of the search to this file.
    json
        Print one JSON object on standard output.
    """
    from ..core import check_positive, papers
    from ..lab import parse_seeds
    from ..theory import practice, theorem_answers
    from ..training import TrainConfig

    check_positive("loss", loss)
    radii, bounds = _three("rho", rho), _three("nu", nu)
    options = {"T": T, "d": d, "nu": list(bounds), "pool": pool, "activation": activation}
    config = TrainConfig.of(
        {
            "width": width,
            "n": n,
            "steps": steps,
            "rho": radii,
            "model_options": {"activation": activation},
            "seeds": parse_seeds(seeds),
            "data_options": options,
        }
    )
    setting = papers.of_model(config.model).part("setting")(
        d=d, m=width, n=n, T=T, activation=activation, rho=radii, nu=bounds,
        delta=delta, delta_prime=delta, tau=steps,
    )  # fmt: skip
    answers = theorem_answers(papers.of_model(config.model).key, setting, loss, ask)
    found: Practice | None = None
    if not theory_only:
        found = practice(
            config,
            loss,
            ask,
            width_step=setting.width_step,
            most_width=most_width,
            progress=_teller(json),
        )
    if plot is not None and found is not None:
        _save_plot(found, answers, loss, plot)
    if json:
        print_json(_summary(loss, ask, answers, found, plot))
    else:
        _show(loss, ask, answers, found, plot)
    return 0


def _three(name: str, text: str) -> tuple[float, float, float]:
    from ..core import BadArgument

    try:
        a, b, c = (float(part) for part in text.split(","))
    except ValueError:
        raise BadArgument(name, text, "is not three numbers", fix="use 3,3,3") from None
    return a, b, c


def _teller(quiet: bool) -> Callable[[str], None]:
    import sys

    from rich.console import Console

    console = Console(file=sys.stderr)
    return (lambda text: None) if quiet else (lambda text: console.print(text, style="dim"))


def _save_plot(found: Practice, answers: list[Answer], loss: float, target: Path) -> None:
    from matplotlib.figure import Figure

    from ..report import draw_count

    figure = Figure(figsize=(3.4, 2.6), layout="constrained")
    draw_count(found, answers, loss, figure.add_subplot())
    figure.savefig(target, dpi=200)


def _summary(
    loss: float, ask: str, answers: list[Answer], found: Practice | None, plot: Path | None
) -> dict[str, object]:
    return {
        "question": ask,
        "loss": loss,
        "theorems": [answer.to_json() for answer in answers],
        "training": found.answer.to_json() if found else None,
        "probes": [vars(p) for p in found.probes] if found else [],
        "plot": str(plot) if plot else None,
    }


def _show(
    loss: float, ask: str, answers: list[Answer], found: Practice | None, plot: Path | None
) -> None:
    from rich.console import Console
    from rich.table import Table

    titles = {"width": "Least width", "steps": "Fewest steps", "step-size": "Largest step size"}
    table = Table(title=f"{titles[ask]} for a loss of {loss:g}", title_justify="left")
    for column in ("source", "variant", ask, "note"):
        table.add_column(column, justify="right" if column == ask else "left")
    rows = [*answers, *([found.answer] if found else [])]
    for row in rows:
        value = "never" if row.value is None else f"{row.value:.4g}"
        table.add_row(row.source, row.variant, value, row.note)
    console = Console()
    console.print(table)
    if plot is not None and found is not None:
        console.print(f"plot: {plot}", highlight=False)
