"""`headcount reproduce --all`: every figure, then the audits and tables that the report shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ._compare import by_theorem, compared_in_short
from ._flags import in_flags
from ._in_words import training_needs
from ._output import now_and_then

if TYPE_CHECKING:
    from rich.console import Console

    from ..core import HeadcountError
    from ..lab import Plan

SIZES: Mapping[str, dict[str, Any]] = {
    "smoke": {"width": 8, "n": 10, "steps": 20, "seeds": [0]},
    "quick": {"width": 64, "n": 50, "steps": 200, "seeds": [0, 1, 2]},
    "paper": {"width": 256, "n": 200, "steps": 1000, "seeds": [0, 1, 2]},
}
"""Of the audit of each paper and of its head count."""
COUNTED = {"smoke": 4, "quick": 10, "paper": 50}
"""Samples of a head count: theorems may be asked at hundreds of widths with n^2 work each."""
COMPARED_DATA = "dm1"
SHARE = 0.1
"""The target of head counts: this share of the loss at the start."""
MOST_WIDTH = 64
"""Where the search for the width that training needs gives up."""
FLAGS = ("--seeds", "--scale", "--data-dir", "--model-dir")
"""How the reasons of figures that cannot run name what can be given."""
Tell = Callable[[str], None]


class Ended(NamedTuple):
    """How a figure ended: its exit code, and in words what was in the way."""

    code: int
    reason: str = ""


class Among:
    """One figure after the other: which of how many runs, and how long those after it will take.

    Estimates are corrected by how long the figures before took over theirs.
    """

    def __init__(self, estimates: Mapping[str, float]) -> None:
        self._ahead = dict(estimates)
        self._count = len(estimates)
        self._expected = self._took = 0.0
        self.title = ""

    def begin(self, name: str) -> None:
        """This figure runs now."""
        self._now = self._ahead.pop(name)
        self._started = time.monotonic()
        self.title = f"{name} ({self._count - len(self._ahead)} of {self._count})"

    def end(self) -> None:
        """It has ended; what was stored before says nothing about the speed."""
        if self._now > 0:
            self._expected += self._now
            self._took += time.monotonic() - self._started

    def seconds_ahead(self) -> float:
        """Of the figures that have not begun."""
        pace = self._took / self._expected if self._expected else 1.0
        return pace * sum(self._ahead.values())


def plan_everything(plan_of: Callable[[str], Plan]) -> tuple[dict[str, Plan], dict[str, str]]:
    """The plans of all figures, and why the others have none, such as data that is not at hand.

    When none has a plan, the first reason is the error: then it is the command that is wrong.
    """
    from ..core import HeadcountError, papers
    from ..core._outside import one_line_if_broken
    from ..lab import figures

    plans: dict[str, Plan] = {}
    errors: dict[str, HeadcountError | OSError] = {}
    for name in figures:
        try:
            with one_line_if_broken("figure", name, ours=name.split("/")[0] in papers.ours):
                plans[name] = plan_of(name)
        except (HeadcountError, OSError) as error:
            errors[name] = error
    if errors and not plans:
        raise next(iter(errors.values()))
    return plans, {name: _in_words(error) for name, error in errors.items()}


def in_the_way(error: HeadcountError | OSError) -> str:
    """What keeps one figure from running, in words; empty where it concerns all of them."""
    from ..core import BadArgument
    from ..lab import ExecutionError, NewerFormat

    shared = isinstance(error, ExecutionError | NewerFormat)
    if shared or (isinstance(error, BadArgument) and error.argument in ("executor", "workers")):
        return ""
    return _in_words(error)


def _in_words(error: HeadcountError | OSError) -> str:
    return str(error) if isinstance(error, OSError) else in_flags(error, FLAGS)


def run_everything(
    scale: str,
    out: Path,
    notes: Console,
    plans: Mapping[str, Plan],
    unable: Mapping[str, str],
    among: Among,
    run: Callable[[Plan, Among], Ended],
) -> int:
    """Every figure that has a plan, then audits and tables; at the end, what could not run.

    A figure that fails does not stop the others; an interruption does. Returns the largest code.
    """
    from ..core import HeadcountError
    from ..lab import Store
    from ..report._tables import unable_text

    def tell(text: str) -> None:
        notes.print(text, markup=False, highlight=False, soft_wrap=True)

    Store(out, tell).prepare()
    worst, failed = 0, dict(unable)
    for name, plan in plans.items():
        among.begin(name)
        ended = run(plan, among)
        if ended.code > 3:
            return ended.code
        among.end()
        worst = max(worst, ended.code)
        if ended.reason:
            failed[name] = ended.reason
    last: dict[str, Callable[[str, Path, Tell], None]] = {
        **{f"the audit of {key}": partial(store_audit, key) for key in audited()},
        "the head counts": store_tables,
    }
    for what, store in last.items():
        try:
            store(scale, out, tell)
        except HeadcountError as error:
            failed[what] = _in_words(error)
    tell(f"Everything else is in {out}." if failed else f"Everything is in {out}.")
    tell(f"To look at it: headcount report --out {out}")
    tell(f"The numbers of one figure: headcount show FIGURE --scale {scale} --out {out}")
    if failed:
        notes.print(unable_text(failed), highlight=False)
    return max(worst, 1) if failed else worst


def audited() -> list[str]:
    """The papers with a model to train and claims to hold against it."""
    from ..core import papers

    return [key for key, paper in papers.items() if paper.subject is not None and paper.models]


def store_audit(key: str, scale: str, out: Path, tell: Tell) -> None:
    """The audit of a paper's first model, as `audits/<paper>.json`; a stored one is kept."""
    from ..core import papers
    from ..core._outside import one_line_if_broken
    from ..theory import audit
    from ..training import TrainConfig

    size = SIZES[scale] | {"seeds": [0]}
    model = next(iter(papers[key].models))
    command = _command("audit", model, size)
    if _is_stored(out / "audits" / f"{key}.json", command):
        return
    tell(f"audit of {key}: {command}")
    config = TrainConfig.of({"model": model, "dtype": "float64", **size})
    with one_line_if_broken("paper", key, ours=key in papers.ours):
        found = audit(config, tell=now_and_then(quiet=False))
    _store(out / "audits" / f"{key}.json", {"command": command, **found.to_json()})


def store_tables(scale: str, out: Path, tell: Tell) -> None:
    """Head counts on each paper's own data, and on one data set for all."""
    from ..theory import compare

    size = SIZES[scale] | {"n": COUNTED[scale]}
    only = scale == "smoke"
    given: dict[str, Any] = {
        "share": SHARE, "most_width": MOST_WIDTH, "theory_only": only, "progress": tell
    }  # fmt: skip
    flags = size | ({"theory-only": True} if only else {"most-width": MOST_WIDTH})
    shared = _command("compare", "", {"data": COMPARED_DATA, **flags})
    if not _is_stored(out / "comparison.json", shared):
        answers = compare({"data": COMPARED_DATA, **size}, **given)
        rows = [row for answer in answers for row in _compared_rows(answer)]
        told = [f"{answer.paper}: {compared_in_short(answer)}" for answer in answers]
        table = {"command": shared, "share": SHARE, "answers": told, "rows": rows}
        _store(out / "comparison.json", table)
    own = _command("count", "", flags)
    if not _is_stored(out / "counts.json", own):
        counts = [_count(answer, flags) for answer in compare(size, **given)]
        _store(out / "counts.json", {"command": own, "counts": counts})


def _compared_rows(answer: Any) -> list[list[str]]:
    needed = training_needs(answer.training) if answer.training else "not asked"
    rows = [[answer.paper, name, *shown, needed] for name, shown in by_theorem(answer).items()]
    return rows or [[answer.paper, answer.note or "none applies", "-", "-", needed]]


def _count(answer: Any, flags: Mapping[str, Any]) -> dict[str, Any]:
    asked = [(row, row.shown) for row in answer.required]
    if answer.training:
        asked.append((answer.training, training_needs(answer.training)))
    target = {"loss": f"{answer.target:.4g}", **flags}
    return {
        "paper": answer.paper,
        "loss": answer.target,
        "answer": compared_in_short(answer),
        "command": _command("count", answer.model, target),
        # A theorem that does not apply says the same with few steps and with endlessly many.
        "rows": list(dict.fromkeys((r.source, r.variant, shown, r.note) for r, shown in asked))
        or [("no theorem applies", "", "-", answer.note)],
    }


def _command(name: str, model: str, values: Mapping[str, Any]) -> str:
    """What to type for the same numbers."""
    words = ["headcount", name, *(["--model", model] if model else [])]
    for flag, value in values.items():
        if name == "count" and flag == "width":
            continue
        shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words += [f"--{flag}"] if value is True else [f"--{flag}", shown]
    return " ".join(words)


def _is_stored(path: Path, command: str) -> bool:
    """Whether the file holds the answer of this command; a damaged one is written again."""
    import json

    try:
        return bool(json.loads(path.read_text(encoding="utf-8"))["command"] == command)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False


def _store(path: Path, content: dict[str, Any]) -> None:
    from ..core._files import json_text
    from ..lab._files import write_atomically

    write_atomically(path, f"{json_text(content, indent=1)}\n".encode())
