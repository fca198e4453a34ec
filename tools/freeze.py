"""What Headcount says, on file, so that a redesign can show that it says the same.

    python -m tools.freeze write FOLDER [parts ...]      # what this tree says
    python -m tools.freeze replay FOLDER [parts ...]     # what differs from it, one line each

Parts: `sides` (hypotheses and both sides of every claim and form on seeded points, the corpus and
the known constructions), `bounds` (every right side at settings of every paper), `commands`
(`audit`, `count`, `compare`, `list` as JSON), `declared` (the words of every claim),
`certificates`, `figures` (payloads and verdicts at smoke scale), `errata`.

Points are kept, not drawn again: fields by name, so that both sides must agree at the same point
whoever draws. Numbers may differ by 1e-12 of their size.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import jax
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
POINTS, DRAWS, SETTINGS = 32, 8, 50
CLOSE = 1e-12
IGNORED = {"seconds", "version", "commit", "wall_time", "created", "host", "peak_memory", "path"}
COMMANDS = (
    "list --json",
    *(f"audit {flags} --json" for flags in (
        "--width 16 --n 30 --steps 20",
        "--model deora2024 --width 8 --n 30 --steps 20",
        "--model wu2023 --width 64 --n 6 --steps 10",
    )),
    "count --loss 0.01 --n 1000 --theory-only --json",
    "count --model deora2024 --loss 0.1 --n 50 --theory-only --json",
    "count --model wu2023 --loss 0.1 --n 6 --theory-only --json",
    "count --model deora2024 --gap 0.1 --n 50 --theory-only --json",
    "compare --n 10 --theory-only --json",
)  # fmt: skip


def sides() -> Iterator[tuple[str, Any]]:
    """Every claim: its points, and what it says at each under every form."""
    from headcount import theory

    for claim in theory.claims.of_paper("arda2026") + _others():
        points = list(points_of(claim))
        yield claim.id, {"points": points, "says": [said(claim, point) for point in points]}


def _others() -> list[Any]:
    from headcount import theory

    return theory.claims.of_paper("deora2024") + theory.claims.of_paper("wu2023")


def points_of(claim: Any) -> Iterator[dict[str, Any]]:
    """Seeded points of every family, constructions, the corpus; draws of every case."""
    from headcount.core import float64
    from headcount.theory._corpus import known_instances

    seed = int.from_bytes(claim.id.encode(), "little") % 2**32
    rng = np.random.default_rng(seed)
    with float64():
        for family in claim.families:
            count = -(-POINTS // len(claim.families))
            inside = jax.vmap(family.project)(family.draw(rng, count))
            yield from (fields_of(jax.tree.map(lambda leaf: leaf[k], inside)) for k in range(count))  # noqa: B023
        for known in (*claim.targets(), *known_instances(claim)):
            yield fields_of(known)
        experiment = claim.experiment
        for number, case in enumerate(experiment.cases if experiment is not None else ()):
            drawn = experiment.draw(case, rng, DRAWS)
            for k in range(DRAWS):
                point = fields_of(jax.tree.map(lambda leaf: leaf[k], drawn))  # noqa: B023
                yield {"case": number, **point}


def fields_of(point: Any) -> dict[str, Any]:
    """The fields of a point as plain JSON."""
    import dataclasses

    found = {}
    for field in dataclasses.fields(point):
        value = getattr(point, field.name)
        plain = isinstance(value, (str, int)) and not isinstance(value, bool)
        found[field.name] = value if plain else np.asarray(value, dtype=np.float64).tolist()
    return found


def said(claim: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """Hypotheses and both sides of every form at a point."""
    from headcount.core import float64
    from headcount.theory._pytree import instance_from

    drawn, kind = "case" in fields, claim.instance_class
    if drawn:
        case = claim.experiment.cases[fields["case"]]
        kind = type(claim.experiment.draw(case, np.random.default_rng(0), 1))
    values = {
        k: v if isinstance(v, (str, int)) else np.asarray(v, float)
        for k, v in fields.items()
        if k != "case"
    }
    found: dict[str, Any] = {}
    with float64():
        try:
            point = instance_from(kind, values)
        except ValueError as error:  # a construction of another class
            return {"no point": str(error)[:80]}
        for form in claim.variants:
            try:
                at = _evaluator(claim, form, drawn)(point)
            except Exception as error:
                found[form] = f"{type(error).__name__}: {error}"[:200]
                continue
            names = [] if drawn else [h.name for h in claim.hypotheses]
            measured = {n: [float(v), float(t)] for n, (v, t) in zip(names, at[0], strict=True)}
            found[form] = {
                "hypotheses": measured,
                "lhs": np.asarray(at[1]).tolist(),
                "rhs": np.asarray(at[2]).tolist(),
            }
    return found


_PROGRAMS: dict[Any, Any] = {}


def _evaluator(claim: Any, form: str, drawn: bool) -> Any:
    def evaluate(point: Any) -> Any:
        asked = () if drawn else claim.hypotheses
        measured = [(h.value(point), h.limit(point, form)) for h in asked]
        both = (claim.experiment if drawn else claim).sides(point, form)
        return measured, both.lhs, both.rhs

    return _PROGRAMS.setdefault((claim.id, form, drawn), jax.jit(evaluate))


def bounds() -> Iterator[tuple[str, Any]]:
    """The right side, trivial rival and hypotheses of every claim that has one, at settings."""
    from headcount import theory

    for claim in [c for c in theory.claims.of_paper("arda2026") + _others() if c.bound is not None]:
        found = []
        for setting in settings_of(claim.paper):
            for form in claim.variants:
                try:
                    bound, checks = claim.promise(setting, form)
                    told: Any = [
                        bound.rhs,
                        bound.trivial,
                        {c.name: [c.value, c.threshold] for c in checks},
                    ]
                except Exception as error:
                    told = f"{type(error).__name__}: {error}"[:200]
                found.append([form, told])
        yield claim.id, found


_SETTINGS: dict[str, list[Any]] = {}


def settings_of(paper: str) -> list[Any]:
    """Settings of a paper, by configurations and by other sizes of them."""
    from headcount.core import papers
    from headcount.training import TrainConfig

    if paper in _SETTINGS:
        return _SETTINGS[paper]
    kind = papers[paper].part("setting")
    rng = np.random.default_rng(2026)
    small = {"arda2026": {"data_options": {"pool": 64}}, "deora2024": {}, "wu2023": {}}[paper]
    starts = [
        kind.of(
            TrainConfig.of({"model": paper, "n": n, "width": 16, "steps": 9, **small}), delta=0.05
        )
        for n in (6, 10)
    ]
    found = list(starts)
    while len(found) < SETTINGS:
        one = starts[len(found) % 2]
        width = int(one.width_step * np.ceil(10 ** rng.uniform(0, 5 if paper != "wu2023" else 2.5)))
        steps, eta = int(10 ** rng.uniform(0, 5)), float(10 ** rng.uniform(-3, 0))
        chosen = None if rng.random() < 0.3 else "default" if rng.random() < 0.5 else eta
        found.append(one.resized(width=width, steps=steps, step_size=chosen))
    _SETTINGS[paper] = found
    return found


def run_command(line: str) -> tuple[int, str]:
    """Exit code and standard output of a command line."""
    from headcount.cli import main

    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        try:
            code = main(shlex.split(line))
        except SystemExit as error:
            code = int(error.code or 0)
    return int(code or 0), out.getvalue()


def commands() -> Iterator[tuple[str, Any]]:
    """What the commands print for machines."""
    for line in COMMANDS:
        code, text = run_command(line)
        says = json.loads(text) if text.strip().startswith(("{", "[")) else text
        yield line, {"code": code, "says": says}


def declared() -> Iterator[tuple[str, Any]]:
    """What is said of every claim, without evaluating it."""
    from headcount import theory

    for name in theory.claims:
        claim = theory.claims[name]
        plain = ("title", "equations", "statement", "latex", "default", "quantity", "needs_event")
        yield (
            name,
            {
                **{field: getattr(claim, field) for field in plain},
                "kind": str(claim.kind),
                "forms": {n: [v.text, v.erratum, v.fails] for n, v in claim.variants.items()},
                "hypotheses": sorted(h.name for h in claim.hypotheses),
                "errata": list(claim.errata),
                "references": list(claim.references),
                "bound": claim.bound is not None,
                "cases": []
                if claim.experiment is None
                else [dict(c) for c in claim.experiment.cases],
            },
        )


def certificates() -> Iterator[tuple[str, Any]]:
    """What a recheck says about every shipped certificate."""
    from headcount import theory

    for path in theory.shipped_certificates():
        found = theory.recheck(path).to_json()
        yield path.name, {k: v for k, v in found.items() if k != "arithmetic"}


def figures() -> Iterator[tuple[str, Any]]:
    """Payloads and verdicts of every figure at smoke scale."""
    import xarray as xr

    from headcount import lab

    with tempfile.TemporaryDirectory() as out:
        for name in lab.figures:
            code, text = run_command(
                f"reproduce {name} --scale smoke --workers 0 --out {out} --json"
            )
            says = json.loads(text) if text.strip().startswith("{") else text[-300:]
            payload = {}
            for file in sorted(Path(out).rglob(f"{name}/**/data.nc")):
                with xr.open_dataset(file, engine="h5netcdf") as data:
                    payload = {k: np.asarray(v).tolist() for k, v in data.data_vars.items()}
            verdicts = says.get("claims", says.get("verdicts")) if isinstance(says, dict) else says
            yield name, {"code": code, "verdicts": verdicts, "payload": payload}


def errata() -> Iterator[tuple[str, Any]]:
    """The page of notes."""
    from headcount import theory

    yield "errata", theory.errata_page().splitlines()


PARTS: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {
    part.__name__: part
    for part in (sides, bounds, declared, commands, certificates, figures, errata)
}


def differences(before: Any, now: Any, where: str) -> Iterator[str]:
    """What differs, one line each."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted({*before, *now} - IGNORED):
            if key not in before or key not in now:
                yield f"{where}.{key}: {'new' if key in now else 'gone'}"
            else:
                yield from differences(before[key], now[key], f"{where}.{key}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for k, pair in enumerate(zip(before, now, strict=True)):
            yield from differences(*pair, f"{where}[{k}]")
    elif isinstance(before, float) and isinstance(now, (int, float)):
        same = before == now or (math.isnan(before) and math.isnan(now))
        if not same and not abs(before - now) <= CLOSE * max(abs(before), abs(now)):
            yield f"{where}: {before!r} is now {now!r}"
    elif before != now:
        yield f"{where}: {str(before)[:100]!r} is now {str(now)[:100]!r}"


def file_of(folder: Path, part: str) -> Path:
    """Where a part is on file."""
    return folder / f"{part}.json.gz"


def write(folder: Path, parts: list[str]) -> int:
    """Put what this tree says on file."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        found = {}
        for name, content in PARTS[part]():
            found[name] = content
            print(part, name, file=sys.stderr)
        text = json.dumps(found, sort_keys=True, default=str)
        file_of(folder, part).write_bytes(gzip.compress(text.encode(), mtime=0))
    return 0


def replay(folder: Path, parts: list[str]) -> int:
    """Print what differs from the file."""
    count = 0
    for part in parts:
        before = json.loads(gzip.decompress(file_of(folder, part).read_bytes()))
        again = _sides_again(before) if part == "sides" else PARTS[part]()
        now = {name: json.loads(json.dumps(content, default=str)) for name, content in again}
        for line in differences(before, now, part):
            print(line)
            count += 1
    print(f"{count} differences", file=sys.stderr)
    return int(count > 0)


def _sides_again(before: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The same points, asked again."""
    from headcount import theory

    for name, kept in before.items():
        if name in theory.claims:
            points = kept["points"]
            yield name, {"points": points, "says": [said(theory.claims[name], p) for p in points]}


def main(arguments: list[str]) -> int:
    """The command line."""
    if (
        len(arguments) < 2
        or arguments[0] not in ("write", "replay")
        or set(arguments[2:]) - {*PARTS}
    ):
        print(__doc__)
        return 2
    parts = arguments[2:] or list(PARTS)
    return (write if arguments[0] == "write" else replay)(Path(arguments[1]), parts)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
