"""`headcount audit`: which theorem applies, what it promises, what happened."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._config import parse_values, read_values
from ._flags import Flag, Repeated, Whole
from ._output import now_and_then, print_json
from ._problem import NO_FLAGS, ProblemFlags
from ._train import training_progress

if TYPE_CHECKING:
    from ..theory import Verdict
    from ..theory._audit import Audit
    from ..training import Run, TrainConfig

VIOLATED = 3


def audit_command(
    config: Path | None = None,
    /,
    *,
    problem: ProblemFlags = NO_FLAGS,
    optimiser: str | None = None,
    eta: float | None = None,
    rho: str | None = None,
    batch_size: Whole | None = None,
    steps: Whole | None = None,
    seeds: str | None = None,
    set: Repeated = None,
    delta: float = 0.05,
    all: Flag = False,
    strict: Flag = False,
    json: Flag = False,
    markdown: Flag = False,
) -> int:
    """Train a configuration in float64 and print every claim of its paper beside what happened.

    A run that holds every iterate in float64 is not trained again (`headcount train --dtype
    float64 --record iterates --record-every 1`). Exit code 3 with --strict on a violation.

    Parameters
    ----------
    config
        TOML file as for `headcount train`, or the netCDF file of a finished run.
    optimiser
        gd, projgd, projsgd, sgd, momentum, adam or adamw; default: the paper's own.
    eta
        Step size; default: the paper's own.
    rho
        Projection radii rho_c,rho_u,rho_w; default: the paper's own.
    batch_size
        Samples per step of sgd and projsgd.
    steps
        How many steps.
    seeds
        Such as 0:5; the worst seed is shown.
    set
        Any other field of the configuration, as name=value; may be repeated.
    delta
        Failure probability of each event.
    all
        Show every variant, not only each claim's own.
    strict
        Exit with code 3 when a claim is violated.
    json
        Print one JSON object on standard output.
    markdown
        Print a Markdown report.
    """
    from ..core import BadArgument
    from ..theory import audit

    if json and markdown:
        two = "and --json ask for different things"
        raise BadArgument("markdown", None, two, fix="give one of them")
    names = ("optimiser", "eta", "rho", "batch_size", "steps", "seeds")
    given = {k: v for k, v in locals().items() if k in names} | asdict(problem)
    chosen, run = audited(config, given, set or [])
    with training_progress(chosen.steps, quiet=json) as progress:
        tell = now_and_then(quiet=json) if progress is None else progress.say
        report = audit(chosen, delta=delta, run=run, progress=progress, tell=tell)
    if json:
        print_json(report.to_json())
    elif markdown:
        print(_markdown(report, all))
    else:
        _show(report, all)
    return VIOLATED if strict and report.violated else 0


def audited(
    file: Path | None, flags: dict[str, Any], extra: list[str]
) -> tuple[TrainConfig, Run | None]:
    """The configuration, and the finished run where the file holds one and no flag changes it."""
    config = audited_config(file, flags, extra)
    if file is None or file.suffix != ".nc":
        return config, None
    from ..training import config_of_run, read_run

    stored = config_of_run(file)
    same = config.model_copy(update={"seeds": stored.seeds}) == stored
    if not same:
        print("the flags change the run's configuration: trained again", file=sys.stderr)
        return config, None
    return config, read_run(file)


def audited_config(file: Path | None, flags: dict[str, Any], extra: list[str]) -> TrainConfig:
    """The configuration of flags, a TOML file or a finished run.

    One activation for both sides, unless a finished run was trained with two.
    """
    from inspect import signature

    from ..data import data_models
    from ..training import TrainConfig, config_of_run

    stored = config_of_run(file) if file is not None and file.suffix == ".nc" else None
    values = read_values(file if stored is None else None, flags) | parse_values(extra)
    if stored is not None and not values:
        return stored
    config = TrainConfig.of(values if stored is None else stored.model_dump() | values)
    if stored is not None and config.model_options == stored.model_options:
        return config
    taught = "activation" in signature(data_models[config.data]).parameters
    if taught and "activation" in (student := config.model_options):
        teacher = {"activation": student["activation"], **config.data_options}
        return config.model_copy(update={"data_options": teacher})
    return config


def _rows(report: Audit, everything: bool) -> list[Verdict]:
    from ..core import papers
    from ..theory import claims

    shown = [v for v in report.verdicts if everything or v.variant == claims[v.claim].default]
    return sorted(shown, key=lambda v: v.claim not in papers[report.paper].leading)


def _cells(verdict: Verdict) -> tuple[str, ...]:
    from ..core._rounding import ordered
    from ..theory import claims

    claim = claims[verdict.claim]
    name = verdict.claim.removeprefix(f"{claim.paper}/")
    label = name if verdict.variant == claim.default else f"{name} ({verdict.variant})"
    measured, bound = ordered(verdict.measured, verdict.bound)
    if verdict.outcome in AGREEING and math.isclose(verdict.lhs, verdict.rhs, rel_tol=1e-9):
        measured = bound = f"{verdict.rhs:.3g}"  # what differs by rounding is shown as equal
    sign = SIGNS[verdict.direction] if bound != "nan" else ""
    numbers = ("-" if text == "nan" else text for text in (measured, bound))
    shown = [number if number == "-" else f"{sign}{number}" for number in numbers]
    shown[0] = shown[0].removeprefix(sign)
    return (label, claim.equations, *shown, _ratio(verdict), str(verdict.outcome))


def _ratio(verdict: Verdict) -> str:
    """The side that must be smaller over the other; none of an equality or of unlike signs.

    Never on the other side of 1 than the verdict.
    """
    from ..core._rounding import round_down, round_up

    unlike = not verdict.lhs * verdict.rhs > 0
    if verdict.direction == "equality" or unlike or math.isnan(verdict.ratio):
        return "-"
    if verdict.outcome == "violated":
        close = verdict.ratio < 1.00001
        return f"1 + {round_down(verdict.ratio - 1, 2)}" if close else round_down(verdict.ratio, 6)
    return (
        round_up(min(verdict.ratio, 1.0))
        if verdict.outcome in AGREEING
        else (f"{verdict.ratio:.3g}")
    )


HEADINGS = ("claim", "equations", "measured", "bound", "ratio", "outcome")
STYLES = {"violated": "bold red", "holds vacuously": "yellow", "not applicable": "dim"}
AGREEING = ("holds", "holds vacuously")
NAME_WIDTH = 15
"""Of a claim's name in a terminal of 80 columns."""
SIGNS = {"upper": "<= ", "lower": ">= ", "equality": "= "}
ABOUT_RATIOS = "ratio: the side that must be smaller over the other; none where signs differ."


def _at_hyphens(name: str, width: int) -> str:
    """A long name broken behind its hyphens, not within a word."""
    lines = [""]
    for part in name.split("-"):
        joined = f"{lines[-1]}-{part}" if lines[-1] else part
        if lines[-1] and len(joined) >= width:
            lines[-1] += "-"
            lines.append(part)
        else:
            lines[-1] = joined
    return "\n".join(lines)


def _show(report: Audit, everything: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"{report.setting.describe()}, seeds {list(report.seeds)}", highlight=False)
    for note in report.notes:
        console.print(note, highlight=False)
    console.print(_counted(report, everything), highlight=False)
    table = Table(padding=(0, 0), collapse_padding=True)
    for heading in HEADINGS:
        number, words = heading in HEADINGS[2:5], heading in HEADINGS[:2]
        justify: Any = "right" if number else "left"
        table.add_column(heading, justify=justify, no_wrap=not words, overflow="fold")
    for verdict in _rows(report, everything):
        name, *rest = _cells(verdict)
        style = STYLES.get(str(verdict.outcome), "")
        table.add_row(_at_hyphens(name, NAME_WIDTH), *rest, style=style)
    console.print(table)
    console.print(ABOUT_RATIOS, highlight=False)
    for verdict in _rows(report, everything):
        if verdict.outcome in ("violated", "not applicable", "inconclusive"):
            line = f"{verdict.claim} ({verdict.variant}), {verdict.outcome}: {verdict.message}"
            console.print(line, highlight=False)
    for line in _not_asked(report):
        console.print(line, highlight=False)
    for title, rows in report.findings.items():
        found = Table(title=title, title_justify="left", show_header=False)
        for name, value in rows.items():
            found.add_row(name, _number(value))
        console.print(found)
    if report.slack:
        console.print(_slack_table(report))
    console.print(f"{report.seconds:.0f} s", highlight=False)


def _counted(report: Audit, everything: bool) -> str:
    """The outcomes counted, those that matter most first."""
    from collections import Counter

    from ..theory import Outcome

    found = Counter(str(verdict.outcome) for verdict in _rows(report, everything))
    order = [str(outcome) for outcome in Outcome]
    listed = sorted(found.items(), key=lambda pair: order.index(pair[0]))
    words = ", ".join(
        f"{count} {outcome if count == 1 else outcome.replace('holds', 'hold')}"
        for outcome, count in listed
    )
    return f"{sum(found.values())} claims: {words}"


def _not_asked(report: Audit) -> list[str]:
    """The claims without a verdict, by reason."""
    lines = [
        f"{', '.join(one.split('/', 1)[1] for one in ids)}: {reason}"
        for reason, ids in report.not_asked.items()
    ]
    return ["not asked, as this run is no instance (`headcount falsify` asks them):", *lines]


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _slack_rows(report: Audit) -> list[tuple[str, ...]]:
    """Each factor of the closed bounds, the worst first; what cannot be compared comes last."""
    import numpy as np

    rows = sorted(report.slack, key=lambda row: -np.nan_to_num(float(row["orders"]), nan=-np.inf))
    return [
        (str(r["factor"]), f"{r['bound']:.3g}", f"{r['measured']:.3g}", f"{r['orders']:.1f}")
        for r in rows
    ]


def _slack_table(report: Audit) -> Any:
    from rich.table import Table

    slack = Table(title="Where the closed bounds lose: each factor beside what it stands for")
    for heading in ("factor", "bound", "measured", "orders of magnitude"):
        slack.add_column(heading, justify="left" if heading == "factor" else "right")
    for row in _slack_rows(report):
        slack.add_row(*row)
    return slack


def _markdown(report: Audit, everything: bool) -> str:
    from ..theory import claims

    shown = _rows(report, everything)
    lines = [f"# Audit: {report.setting.describe()}", "", *report.notes, ""]
    lines += _pipes(HEADINGS, [_cells(v) for v in shown])
    lines += ["", *(f"- {line}" for line in _not_asked(report))]
    hypotheses = [
        (v.claim, c.name, f"{c.value:.4g}", f"{c.threshold:.4g}", f"{c.margin:.4g}")
        for v in shown
        for c in v.hypotheses
    ]
    headings = ("claim", "hypothesis", "value", "threshold", "margin")
    lines += ["", "## Hypotheses", "", *_pipes(headings, hypotheses)]
    for title, rows in report.findings.items():
        pairs = [(name, _number(value)) for name, value in rows.items()]
        lines += ["", f"## {title}", "", *_pipes(("quantity", "value"), pairs)]
    lines += ["", "## Where the closed bounds lose", ""]
    lines += _pipes(("factor", "bound", "measured", "orders"), _slack_rows(report))
    lines += ["", "## Statements", ""]
    lines += [f"- `{v.claim}`: {claims[v.claim].statement}" for v in shown]
    return "\n".join(lines)


def _pipes(headings: tuple[str, ...], rows: list[Any]) -> list[str]:
    """A Markdown table; bars inside cells are escaped."""
    cells = [headings, ("---",) * len(headings), *rows]
    return ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in cells]
