"""`headcount compare`: one data set, and what every paper's theorems say about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ._config import read_values
from ._count import teller
from ._flags import Flag, Repeated, Whole
from ._in_words import in_short, training_needs
from ._output import print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..theory._compare import Compared
    from ..theory._promise import Promised


SHARE = 0.1
"""Of the loss at the start, where no target is given."""


def compare_command(
    config: Path | None = None,
    /,
    *,
    data: str | None = None,
    data_option: Repeated = None,
    n: Whole | None = None,
    d: Whole | None = None,
    T: Annotated[Whole | None, Parameter(name="--T")] = None,
    width: Whole | None = None,
    steps: Whole | None = None,
    seeds: str = "0:3",
    papers: str | None = None,
    share: float | None = None,
    loss: float | None = None,
    delta: float = 0.05,
    most_width: Whole = 256,
    theory_only: Flag = False,
    json: Flag = False,
) -> int:
    """Put the theorems of all papers beside each other on one data set with labels -1 and +1.

    Every paper trains its own model on its own loss; the target is a share of the loss at start,
    or one loss for all.

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
    d
        Data option: features per token.
    T
        Data option: tokens per sample.
    width
        The width at which promises are evaluated.
    steps
        Steps of training.
    seeds
        Seeds of the real runs; the median decides.
    papers
        Keys separated by commas; default: all that have theorems about widths.
    share
        The target: this share of the loss at the start; default: 0.1.
    loss
        In its place: this training loss, whatever the loss at the start.
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

    names = ("data", "data_option", "d", "T", "n", "width", "steps", "seeds")
    flags = {name: value for name, value in locals().items() if name in names}
    problem = {"data": "dm1", "n": 50, "width": 16, "steps": 400, **read_values(config, flags)}
    given: dict[str, Any] = {"delta": delta, "most_width": most_width, "theory_only": theory_only}
    if share is not None and loss is not None:
        raise BadArgument("loss", loss, "and --share are two targets", fix="leave one of them out")
    share = SHARE if share is None else share
    keys = papers.split(",") if papers is not None else None
    try:
        answers = compare(
            problem, share=share, loss=loss, keys=keys, progress=teller(json), **given
        )
    except BadArgument as error:
        if error.argument != "y":
            raise
        wrong = "has labels other than -1 and +1"
        fix = "use dm1, dm2 or digit-pair; for series add labels=direction"
        raise BadArgument("data", problem["data"], wrong, fix=fix) from None
    if json:
        print_json(
            {
                "problem": problem,
                "share": share,
                "loss": loss,
                "papers": [a.to_json() for a in answers],
            }
        )
    else:
        goal = f"{share:g} of its start" if loss is None else f"{loss:g}"
        _show(answers, goal, problem["data"])
    return 0


def _show(answers: list[Compared], goal: str, data: str) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for answer in answers:
        console.print(Text(f"{answer.paper}: {compared_in_short(answer)}"))
    steps = answers[0].steps
    title = f"Least width to bring the loss to {goal}, on {data}"
    table = Table("paper", "theorem", title=title, title_justify="left")
    for column in (f"at {steps} steps", "any steps", "training"):
        table.add_column(column, justify="right")
    for answer in answers:
        needed = "-" if answer.training is None else training_needs(answer.training)
        for name, (given, free) in (rows := by_theorem(answer)).items():
            table.add_row(answer.paper, name, given, free, needed)
        if not rows:
            table.add_row(answer.paper, "none applies", "-", "-", needed)
    console.print(table)
    for answer in answers:
        head, *lines = _words(answer)
        console.print(head, highlight=False, markup=False)
        for line in lines:  # those that wrap stay under their paper
            console.print(Padding(Text(line), (0, 0, 0, 2), expand=False))


def compared_in_short(answer: Compared) -> str:
    """The sentence for one paper: the steps and the width that were given come first."""
    if answer.note and answer.training is None:
        return "no theorem answers, see below."
    goal = f"a loss of {answer.target:.4g}"
    return in_short("width", f"at {answer.steps} steps", goal, answer.required, answer.training)


def by_theorem(answer: Compared) -> dict[str, tuple[str, str]]:
    """Of each theorem the least width with the given steps, and with any number of them."""
    rows: dict[str, tuple[str, str]] = {}
    for row in answer.required:
        name = f"{row.source.split('/', 1)[1]} ({row.variant})"
        shown = f"{row.shown}, vacuous" if row.trivial is not None else row.shown
        given, free = rows.get(name, ("-", "-"))
        rows[name] = (given, shown) if row.taken else (shown, free)
    return rows


def _words(answer: Compared) -> list[str]:
    """Promises at the given width, and which hypotheses fail by how much."""
    from ..core._rounding import round_up
    from ..theory._promise import known_without

    lines = [
        f"{answer.paper} ({answer.model}, {answer.loss}): one target for all widths, "
        f"{answer.target:.4g}, {answer.share:g} of the start at width {answer.width} "
        f"({answer.start:.4g})"
    ]
    if answer.note:
        lines.append(f"no theorem applies: {answer.note}")
    if answer.training is not None:
        lines.append(f"training: {answer.training.note}")
    for seed, rows in answer.promised.items():
        of_seed = f" (seed {seed})" if len(answer.promised) > 1 else ""
        for promised in rows:
            if not promised.failing:
                known = promised.trivial
                vacuous = f", {known_without(known)}" if promised.vacuous and known else ""
                at_most = f"promises a loss of at most {round_up(promised.bound)}"
                name = _name(promised)
                lines.append(f"{name} at width {answer.width} {at_most}{vacuous}{of_seed}")
    return lines + _nothing_promised(answer)


def _name(promised: Promised) -> str:
    return f"{promised.claim.split('/', 1)[1]} ({promised.variant})"


def _nothing_promised(answer: Compared) -> list[str]:
    """Each hypothesis that fails, once: with what it says for one seed, and for how many others."""
    failing: dict[tuple[str, str], dict[int, str]] = {}
    for seed, rows in answer.promised.items():
        for promised in rows:
            for check in promised.failing:
                failing.setdefault((_name(promised), check.name), {})[seed] = check.failing
    together: dict[tuple[tuple[int, str], ...], list[str]] = {}
    for (name, _), by_seed in failing.items():
        together.setdefault(tuple(by_seed.items()), []).append(name)
    lines = []
    for told, names in together.items():
        of_seed = f" ({_seeds(told)})" if len(answer.promised) > 1 else ""
        lines.append(f"{told[0][1]}{of_seed}; so nothing is promised by {', '.join(names)}")
    return lines


def _seeds(told: Sequence[tuple[int, str]]) -> str:
    """Which seeds say so; where their numbers differ those of the first are shown."""
    (seed, first), *others = told
    if all(words == first for _, words in others):
        return f"seed{'s' * bool(others)} {', '.join(str(own) for own, _ in told)}"
    rest = ", ".join(str(own) for own, _ in others)
    return f"seed {seed}; other numbers for seed{'s' * (len(others) > 1)} {rest}"
