"""`headcount audit`: which theorem applies, what it promises, what happened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ._config import parse_values, read_values
from ._output import print_json
from ._train import training_progress

if TYPE_CHECKING:
    from ..theory import Audit, Verdict
    from ..training import TrainConfig

Flag = Annotated[bool, Parameter(negative=())]
Repeated = Annotated[list[str] | None, Parameter(negative=())]


def audit_command(
    config: Path | None = None,
    /,
    *,
    width: int | None = None,
    n: int | None = None,
    steps: int | None = None,
    eta: float | None = None,
    rho: str | None = None,
    activation: str | None = None,
    seeds: str | None = None,
    data_option: Repeated = None,
    set: Repeated = None,
    delta: float = 0.05,
    all: Flag = False,
    json: Flag = False,
    markdown: Flag = False,
) -> int:
    """Train a configuration in float64 and print every claim of its paper beside what happened.

    Parameters
    ----------
    config
        TOML file as for `headcount train`, or the netCDF file of a finished run.
    width
        Heads m.
    n
        Training samples.
    steps
        Steps tau.
    eta
        Step size; default: the paper's own.
    rho
        Projection radii rho_c,rho_u,rho_w; default: the paper's own.
    activation
        Of student and teacher.
    seeds
        Such as 0:5; the worst seed is shown.
    data_option
        An option of the data model, as name=value; may be repeated.
    set
        Any other field of the configuration, as name=value; may be repeated.
    delta
        Failure probability of each event.
    all
        Show every variant, not only each claim's own.
    json
        Print one JSON object on standard output.
    markdown
        Print a Markdown report.
    """
    from ..theory import audit

    names = ("width", "n", "steps", "eta", "rho", "activation", "seeds", "data_option")
    given = {name: value for name, value in locals().items() if name in names}
    chosen = audited_config(config, given, set or [])
    with training_progress(chosen.steps, quiet=json) as progress:
        report = audit(chosen, delta=delta, progress=progress)
    if json:
        print_json(report.to_json())
    elif markdown:
        print(_markdown(report, all))
    else:
        _show(report, all)
    return 0


def audited_config(file: Path | None, flags: dict[str, Any], extra: list[str]) -> TrainConfig:
    """The configuration of flags, a TOML file or a finished run; one activation for both sides."""
    from ..training import TrainConfig

    if file is not None and file.suffix == ".nc":
        from ..training import config_of_run

        values = config_of_run(file).model_dump() | read_values(None, flags)
    else:
        values = read_values(file, flags)
    values.update(parse_values(extra))
    if "activation" in (student := values.get("model_options", {})):
        teacher = {"activation": student["activation"], **values.get("data_options", {})}
        values["data_options"] = teacher
    return TrainConfig.of(values)


def _rows(report: Audit, everything: bool) -> list[Verdict]:
    from ..core import papers
    from ..theory import claims

    shown = [v for v in report.verdicts if everything or v.variant == claims[v.claim].default]
    return sorted(shown, key=lambda v: v.claim not in papers[report.paper].leading)


def _cells(verdict: Verdict) -> tuple[str, ...]:
    from ..theory import claims, round_down, round_up

    claim = claims[verdict.claim]
    name = verdict.claim.removeprefix(f"{claim.paper}/")
    label = name if verdict.variant == claim.default else f"{name} ({verdict.variant})"
    return (
        label,
        claim.equations,
        round_up(verdict.lhs),
        round_down(verdict.rhs),
        f"{verdict.ratio:.3g}",
        str(verdict.outcome),
    )


HEADINGS = ("claim", "equations", "measured", "bound", "ratio", "outcome")
STYLES = {"violated": "bold red", "holds vacuously": "yellow", "not applicable": "dim"}


def _show(report: Audit, everything: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"{report.setting.describe()}, seeds {list(report.seeds)}", highlight=False)
    table = Table()
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in HEADINGS[2:5] else "left")
    for verdict in _rows(report, everything):
        table.add_row(*_cells(verdict), style=STYLES.get(str(verdict.outcome), ""))
    console.print(table)
    for verdict in _rows(report, everything):
        if verdict.outcome in ("violated", "not applicable", "inconclusive"):
            console.print(
                f"{verdict.claim} ({verdict.variant}): {verdict.message}", highlight=False
            )
    slack = Table(title="Where Theorem 1 loses: each factor beside what it stands for")
    for heading in ("factor", "bound", "measured", "orders of magnitude"):
        slack.add_column(heading, justify="left" if heading == "factor" else "right")
    for row in sorted(report.slack, key=lambda r: -float(r["orders"])):
        numbers = (f"{row['bound']:.3g}", f"{row['measured']:.3g}", f"{row['orders']:.1f}")
        slack.add_row(str(row["factor"]), *numbers)
    console.print(slack)
    console.print(f"{report.seconds:.0f} s", highlight=False)


def _markdown(report: Audit, everything: bool) -> str:
    from ..theory import claims

    lines = [
        f"# Audit: {report.setting.describe()}",
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|" + "---|" * len(HEADINGS),
    ]
    shown = _rows(report, everything)
    lines += ["| " + " | ".join(_cells(v)) + " |" for v in shown]
    lines += ["", "## Hypotheses", "", "| claim | hypothesis | value | threshold | margin |"]
    lines += ["|---|---|---|---|---|"]
    for v in shown:
        for check in v.hypotheses:
            numbers = f"{check.value:.4g} | {check.threshold:.4g} | {check.margin:.4g}"
            lines.append(f"| {v.claim} | {check.name} | {numbers} |")
    lines += ["", "## Where the closed bounds lose", "", "| factor | bound | measured | orders |"]
    lines += ["|---|---|---|---|"]
    for row in sorted(report.slack, key=lambda r: -float(r["orders"])):
        numbers = f"{row['bound']:.3g} | {row['measured']:.3g} | {row['orders']:.1f}"
        lines.append(f"| {row['factor']} | {numbers} |")
    lines += ["", "## Statements", ""]
    lines += [f"- `{v.claim}`: {claims[v.claim].statement}" for v in shown]
    return "\n".join(lines)
