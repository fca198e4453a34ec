"""`headcount compare`: one data set, and what every paper's theorems say about it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._config import read_values
from ._count import teller, training_needs
from ._flags import Flag, Repeated, Whole
from ._output import print_json

if TYPE_CHECKING:
    from ..theory import Answer, Compared


def compare_command(
    config: Path | None = None,
    /,
    *,
    data: str | None = None,
    data_option: Repeated = None,
    n: Whole | None = None,
    width: Whole | None = None,
    steps: Whole | None = None,
    seeds: str = "0:3",
    papers: str | None = None,
    share: float = 0.1,
    delta: float = 0.05,
    most_width: Whole = 256,
    theory_only: Flag = False,
    json: Flag = False,
) -> int:
    """Put the theorems of all papers beside each other on one data set with labels -1 and +1.

    Every paper trains its own model on its own loss; the target is a share of the loss at start.

    Parameters
    ----------
    config
        TOML file with data, data_options, n, width, steps; flags override it.
    data
        Data model with sign labels, such as dm1, digit-pair, or series (a CSV file) with
        labels=direction; see `headcount list`.
    data_option
        An option of the data model, as name=value; may be repeated.
    n
        Training samples.
    width
        The width at which promises are evaluated.
    steps
        Steps of training.
    seeds
        Seeds of the real runs; the median decides.
    papers
        Keys separated by commas; default: all that have theorems about widths.
    share
        The target: this share of the loss at the start.
    delta
        Failure probability of each event.
    most_width
        Give up the search for a width here.
    theory_only
        Only what the theorems say.
    json
        Print one JSON object on standard output.
    """
    from ..core import BadArgument
    from ..theory import compare

    names = ("data", "data_option", "n", "width", "steps", "seeds")
    flags = {name: value for name, value in locals().items() if name in names}
    problem = {"data": "dm1", "n": 50, "width": 16, "steps": 400, **read_values(config, flags)}
    given: dict[str, Any] = {"delta": delta, "most_width": most_width, "theory_only": theory_only}
    keys = papers.split(",") if papers else None
    try:
        answers = compare(problem, share=share, keys=keys, progress=teller(json), **given)
    except BadArgument as error:
        if error.argument != "y":
            raise
        wrong = "has labels other than -1 and +1"
        fix = "use dm1, dm2 or digit-pair; for series add labels=direction"
        raise BadArgument("data", problem["data"], wrong, fix=fix) from None
    if json:
        print_json({"problem": problem, "share": share, "papers": [a.to_json() for a in answers]})
    else:
        _show(answers, problem["data"], share)
    return 0


def _show(answers: list[Compared], data: str, share: float) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = Console()
    title = f"Least width to bring the loss to {share:g} of its start, on {data}"
    table = Table("paper", "theorem", title=title, title_justify="left")
    for column in ("theorem asks for", "training needs"):
        table.add_column(column, justify="right")
    for answer in answers:
        needed = "-" if answer.training is None else training_needs(answer.training)
        for name, row in (best := best_answers(answer)).items():
            table.add_row(answer.paper, name, row.shown, needed)
        if not best:
            table.add_row(answer.paper, "none applies", "-", needed)
    console.print(table)
    for answer in answers:
        head, *lines = _words(answer)
        console.print(head, highlight=False, markup=False)
        for line in lines:  # those that wrap stay under their paper
            console.print(Padding(Text(line), (0, 0, 0, 2), expand=False))


def best_answers(answer: Compared) -> dict[str, Answer]:
    """Of each theorem the least width, be it with the given steps or with any other number."""
    best: dict[str, Answer] = {}
    for row in answer.required:
        name = f"{row.source.split('/', 1)[1]} ({row.variant})"
        best[name] = min(row, best.get(name, row), key=_size)
    return best


def _size(answer: Answer) -> float:
    return math.inf if answer.value is None else answer.value


def _words(answer: Compared) -> list[str]:
    """Promises at the given width, and which hypotheses fail by how much."""
    from ..theory import ordered, round_up

    lines = [
        f"{answer.paper} ({answer.model}, {answer.loss}): loss {answer.start:.4g} at the start, "
        f"target {answer.target:.4g}"
    ]
    if answer.note:
        lines.append(f"no theorem applies: {answer.note}")
    failing: dict[str, list[str]] = {}
    for promised in answer.promised:
        name = f"{promised.claim.split('/', 1)[1]} ({promised.variant})"
        if not promised.failing:
            lines.append(f"{name} promises a loss of at most {round_up(promised.loss)}")
        for check in promised.failing:
            value, threshold = ordered(check.value, check.threshold)
            failing.setdefault(f"{check.name}: {value} exceeds {threshold}", []).append(name)
    for reason, names in failing.items():
        lines.append(f"fails: {reason}; so nothing is promised by {', '.join(names)}")
    return lines
