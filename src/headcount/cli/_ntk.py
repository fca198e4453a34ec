"""`headcount ntk`: the tangent kernel of a model at its start, its spectrum and lambda_min."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._config import listed, read_problem
from ._flags import Flag, Whole
from ._output import print_json
from ._problem import NO_FLAGS, ProblemFlags
from ._train import check_target

if TYPE_CHECKING:
    from ..kernels._plan import MemoryPlan

MOST_DENSE = 4000
"""Samples up to which the whole spectrum is computed: a quarter of a minute."""


def ntk_command(
    config: Path | None = None,
    /,
    *,
    problem: ProblemFlags = NO_FLAGS,
    seed: Whole = 0,
    frozen: str = "",
    dtype: str = "float64",
    eigenvalues: Whole = 5,
    tile: Whole | None = None,
    out: Path | None = None,
    json: Flag = False,
    dry_run: Flag = False,
) -> int:
    """Compute the tangent kernel of a model at its initialisation, on one data model.

    Shows the memory plan first, then the trace of every block, the extreme eigenvalues and the
    smallest one with its interval. With --out the kernel goes tile by tile into a netCDF file;
    the same command resumes it after an interruption.

    Parameters
    ----------
    config
        TOML file, as for `headcount train`; how it says to train is not looked at.
    seed
        Of data and initialisation.
    frozen
        Parameter blocks that are not trained, separated by commas.
    dtype
        float64, or float32 on request.
    eigenvalues
        How many at each end.
    tile
        Samples per side of a tile.
    out
        netCDF file for the kernel and its blocks.
    json
        Print one JSON object on standard output.
    dry_run
        Show the memory plan and stop.
    """
    given = asdict(problem) | {"seeds": str(seed)}
    from ..core import check_count

    check_count("eigenvalues", eigenvalues, least=0)
    import numpy as np

    from ..kernels import ntk, ntk_to_file, plan_ntk
    from ..kernels._plan import require_fit
    from ..training import build_problem
    from ..training._plan import plan_training, require_memory

    chosen = read_problem(config, given)
    call: dict[str, Any] = {
        "blocks": "each",
        "frozen": listed("frozen", frozen),
        "dtype": dtype,
        "tile": tile,
    }
    # A few samples show all sizes: the plan comes before the data.
    small = chosen.model_copy(update={"n": min(chosen.n, 4), "n_val": 0})
    require_memory(plan_training(small))
    few = build_problem(small)
    shown = (few.model, _first(few.initial), few.x[0])
    plan = plan_ntk(*shown, to_file=out is not None, n=chosen.n, **call)
    if out is not None:
        check_target(out)
    _show_plan(plan, json=json, only=dry_run)
    if dry_run:
        return 0
    require_fit(plan)
    require_memory(plan_training(chosen))
    built = build_problem(chosen)
    network, params, x = built.model, _first(built.initial), built.x[0]
    total: Any
    if out is None:
        kernel = ntk(network, params, x, **call)
        total = kernel.total
        traces = {name: float(np.trace(b)) for name, b in {"total": total, **kernel.blocks}.items()}
    else:
        with _tile_progress(quiet=json) as progress:
            stored = ntk_to_file(network, params, x, file=out, progress=progress, **call)
        traces = {k: float(stored.diagonal(block=k).sum()) for k in ("total", *stored.names)}
        # Eigenvalues need the kernel and two copies in float64.
        total = stored.read() if 24 * plan.n1**2 < plan.available else None
    result = {"n": plan.n1, "traces": traces, **_spectrum(total, eigenvalues)}
    result |= {"plan": plan.to_dict(), "file": None if out is None else str(out)}
    if json:
        print_json(result)
    else:
        _show(result)
    return 0


def _spectrum(total: Any, count: int) -> dict[str, Any]:
    """Extreme eigenvalues and lambda_min; nothing but a note for a kernel beyond memory."""
    from ..kernels import RoundingWarning, smallest_eigenvalue

    if total is None:
        return {"notes": ["the kernel is larger than memory: no eigenvalues"]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RoundingWarning)
        smallest = smallest_eigenvalue(total)
    top, bottom = _extremes(total, min(count, len(total)))
    fields = ("value", "lower", "upper", "rounding", "below_rounding", "certified")
    return {
        "largest": [float(v) for v in top],
        "smallest": [float(v) for v in bottom],
        "lambda_min": {key: getattr(smallest, key) for key in fields},
        "equal_samples": [list(pair) for pair in smallest.equal_samples],
        "notes": [str(w.message) for w in caught if issubclass(w.category, RoundingWarning)],
    }


def _extremes(total: Any, k: int) -> tuple[Any, Any]:
    """The k largest eigenvalues, downwards, and the k smallest, upwards."""
    import numpy as np

    from ..kernels import extreme_eigenvalues

    if k == 0:
        return [], []
    if len(total) <= MOST_DENSE:
        # Lanczos needs minutes for the small end of a spectrum that is crowded there.
        values = np.linalg.eigvalsh(np.asarray(total, np.float64))
        return values[::-1][:k], values[:k]
    top = extreme_eigenvalues(total, k).values[::-1]
    return top, extreme_eigenvalues(total, k, which="smallest").values


def _show(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from ..core._rounding import interval_text

    console = Console()
    table = Table(title=f"tangent kernel of {result['n']} samples", title_justify="left")
    table.add_column("quantity")
    table.add_column("value", justify="right")
    for name, value in result["traces"].items():
        table.add_row(f"trace, {name}", f"{value:.6g}")
    for i, value in enumerate(result.get("largest", []), 1):
        table.add_row(f"eigenvalue {i}", f"{value:.6g}")
    for i, value in reversed(list(enumerate(result.get("smallest", []), 1))):
        table.add_row(f"eigenvalue {result['n'] + 1 - i}", f"{value:.6g}")
    if "lambda_min" in result:
        found = result["lambda_min"]
        table.add_row("lambda_min", f"{found['value']:.6g}")
        table.add_row("  lies in", interval_text(found["lower"], found["upper"]))
    console.print(table)
    for note in result["notes"]:
        console.print(f"note: {note}", highlight=False, soft_wrap=True)
    if result["file"]:
        console.print(f"the kernel is in {result['file']}", highlight=False, soft_wrap=True)


def _show_plan(plan: MemoryPlan, *, json: bool, only: bool) -> None:
    """The plan on standard error, before the work; as JSON only when it is all that is asked."""
    import sys

    if json and only:
        print_json(plan.to_dict())
    elif only:
        print(plan if plan.fits else f"{plan}\n  it does not fit into memory")
    elif not json:
        print(plan, file=sys.stderr)


@contextmanager
def _tile_progress(*, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar over tiles on standard error, only on a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("tiles", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _first(stacked: Any) -> Any:
    import jax
    import numpy as np

    return jax.tree.map(lambda leaf: np.asarray(leaf)[0], stacked)
