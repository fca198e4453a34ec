"""`headcount reproduce --all`: every figure, then the audits and tables that the report shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

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
Tell = Callable[[str], None]


def run_everything(scale: str, out: Path, tell: Tell, figure: Callable[[str], int]) -> int:
    """Every figure by `figure(name)`, which returns its exit code, then audits and tables.

    A figure that fails does not stop the others; an interruption does. Returns the largest code.
    """
    from ..lab import figures

    worst = 0
    for place, name in enumerate(figures, start=1):
        tell(f"{name} ({place} of {len(figures)})")
        code = figure(name)
        if code > 3:
            return code
        worst = max(worst, code)
    store_audits(scale, out, tell)
    store_tables(scale, out, tell)
    tell(f"Everything is in {out}. To look at it: headcount report --out {out}")
    return worst


def store_audits(scale: str, out: Path, tell: Tell) -> None:
    """One audit of each paper's first model, as `audits/<paper>.json`; a stored one is kept."""
    from ..core import papers
    from ..theory import audit
    from ..training import TrainConfig

    size = SIZES[scale] | {"seeds": [0]}
    for key, paper in papers.items():
        if paper.subject is None or not paper.models:
            continue
        model = next(iter(paper.models))
        command = _command("audit", model, size)
        if _is_stored(out / "audits" / f"{key}.json", command):
            continue
        tell(f"audit of {key}: {command}")
        found = audit(TrainConfig.of({"model": model, "dtype": "float64", **size}))
        _store(out / "audits" / f"{key}.json", {"command": command, **found.to_json()})


def store_tables(scale: str, out: Path, tell: Tell) -> None:
    """Head counts on each paper's own data, and on one data set for all."""
    from ..theory import compare

    size = SIZES[scale] | {"n": COUNTED[scale]}
    given: dict[str, Any] = {
        "share": SHARE, "most_width": MOST_WIDTH, "theory_only": scale == "smoke", "progress": tell
    }  # fmt: skip
    shared = _command("compare", "", {"data": COMPARED_DATA, **size})
    if not _is_stored(out / "comparison.json", shared):
        answers = compare({"data": COMPARED_DATA, **size}, **given)
        rows = [row for answer in answers for row in _compared_rows(answer)]
        _store(out / "comparison.json", {"command": shared, "share": SHARE, "rows": rows})
    own = _command("count", "", size)
    if not _is_stored(out / "counts.json", own):
        counts = [_count(answer, size) for answer in compare(size, **given)]
        _store(out / "counts.json", {"command": own, "counts": counts})


def _compared_rows(answer: Any) -> list[list[str]]:
    needed = answer.training.shown if answer.training else "not asked"
    rows = [
        [answer.paper, f"{row.source.split('/', 1)[1]} ({row.variant})", row.shown, needed]
        for row in answer.required
    ]
    return rows or [[answer.paper, answer.note or "none applies", "-", needed]]


def _count(answer: Any, size: Mapping[str, Any]) -> dict[str, Any]:
    asked = [*answer.required, *([answer.training] if answer.training else [])]
    target = {"loss": f"{answer.target:.4g}", **size}
    return {
        "paper": answer.paper,
        "loss": answer.target,
        "command": _command("count", answer.model, target),
        "rows": [[row.source, row.variant, row.shown, row.note] for row in asked]
        or [["no theorem applies", "", "-", answer.note]],
    }


def _command(name: str, model: str, values: Mapping[str, Any]) -> str:
    """What to type for the same numbers."""
    words = ["headcount", name, *(["--model", model] if model else [])]
    for flag, value in values.items():
        if name == "count" and flag == "width":
            continue
        shown = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words += [f"--{flag}", shown]
    return " ".join(words)


def _is_stored(path: Path, command: str) -> bool:
    import json

    return path.exists() and json.loads(path.read_text(encoding="utf-8"))["command"] == command


def _store(path: Path, content: dict[str, Any]) -> None:
    from ..core import json_text
    from ..lab import write_atomically

    write_atomically(path, f"{json_text(content, indent=1)}\n".encode())
