"""Collecting: from stored trials to one data set with named dimensions. Computes no trial."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import BadArgument
from ._figure import Trial
from ._findings import Finding
from ._index import MADE
from ._plan import Plan
from ._store import Store
from ._stored import StoredTrial, unlike

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Collection:
    """A figure's data: all variables, those that are plotted, verdicts, and what is missing.

    `notes` are what a reader should know of the trials: which environments they come from.
    """

    plan: Plan
    data: xr.Dataset
    statistics: xr.Dataset
    verdicts: tuple[Finding, ...]
    missing: int
    notes: tuple[str, ...] = ()


def collect(plan: Plan, store: Store) -> Collection:
    """Read the trials of `plan`, then apply the figure's statistics and verdicts."""
    found = store.read_all(plan.unique)
    _check_outputs(plan, found, store)
    usable = [trial for trial in found.values() if trial is not None and trial.payload]
    if not usable:
        reasons = sorted({trial.reason for trial in found.values() if trial is not None})
        raise BadArgument(
            "figure",
            plan.figure.id,
            f"no trial of scale {plan.scale} gave numbers in {store.folder}",
            fix="; ".join(reasons[:3])
            or f"run first: headcount reproduce {plan.figure.id} --scale {plan.scale} "
            f"--out {store.folder}",
        )
    raw = to_dataset(plan.trials, found)
    made = _distinct(found.values())
    raw.attrs = {
        "figure": plan.figure.id,
        "title": plan.figure.title,
        "reference": plan.figure.reference,
        "plan": json.dumps(plan.describe(), sort_keys=True),
        "records": json.dumps(_common_record(made), sort_keys=True),
    }
    living = _without_the_dead(plan.trials, raw)
    statistics = plan.figure.statistics(living)
    clash = {str(name) for name in statistics.data_vars if name in raw.data_vars}
    if clash:
        raise RuntimeError(f"{plan.figure.id}: statistics reuse the names {sorted(clash)}")
    data = raw.merge(statistics, combine_attrs="override")
    judged = living.merge(statistics, combine_attrs="override")
    missing = sum(trial is None for trial in found.values())
    verdicts = tuple(_judged(plan, finding, missing) for finding in plan.figure.verdicts(judged))
    return Collection(plan, data, statistics, verdicts, missing, _environments(made))


def _check_outputs(plan: Plan, found: Mapping[str, StoredTrial | None], store: Store) -> None:
    """Refuse numbers that are sound but not those which the figure declares."""
    for address, trial in plan.unique.items():
        stored = found[address]
        if stored is None or not stored.payload:
            continue
        if problem := unlike(stored.payload, trial.measurement.outputs):
            path = str(store.trial_path(address))
            fix = "move it away and run reproduce again; a changed measurement needs a new version"
            raise BadArgument("out", path, problem, fix=fix)


def _judged(plan: Plan, finding: Finding, missing: int) -> Finding:
    """The finding, withheld where the figure says that such data or sizes do not decide it.

    A part of the trials decides nothing either: the plan was made for all of them. Seeds count
    when they gave a number.
    """
    survivors = {"seeds": finding.seeds} if finding.seeds else {}
    settings = {**plan.settings, **survivors}
    reason = plan.figure.shortfall(finding.claim, plan.scale, settings)
    if missing and not reason:
        reason = f"{missing} of {len(plan.unique)} trials are missing"
    if plan.stand_in:
        reason = f"not judged: {plan.stand_in}"
    return finding.withheld(reason) if reason else finding


def _without_the_dead(trials: Sequence[Trial], data: xr.Dataset) -> xr.Dataset:
    """The data without the single numbers of trials that did not end well; curves stay.

    A smallest loss or a final margin of a run that died is no evidence. What a measurement names
    as `endings` tells of the death itself.
    """
    masked = {}
    for measurement in {trial.measurement.name: trial.measurement for trial in trials}.values():
        ended = data[f"{measurement.name}_outcome"].isin(["ok", "missing"])
        for output, extra in measurement.outputs.items():
            if not extra and output not in measurement.endings:
                masked[output] = data[output].where(ended)
    return data.assign(masked)


def to_dataset(trials: Sequence[Trial], found: Mapping[str, StoredTrial | None]) -> xr.Dataset:
    """All outputs over the trials' coordinates; NaN where a trial has no number.

    Every measurement also gives <name>_seconds (wall time) and <name>_outcome (ok, diverged,
    nonfinite, failed or missing).
    """
    import xarray as xr

    parts = []
    for name in dict.fromkeys(trial.measurement.name for trial in trials):
        chosen = [trial for trial in trials if trial.measurement.name == name]
        parts.append(_measurement_dataset(name, chosen, found))
    return xr.merge(parts, join="outer", compat="no_conflicts")


def _measurement_dataset(
    name: str, trials: Sequence[Trial], found: Mapping[str, StoredTrial | None]
) -> xr.Dataset:
    import xarray as xr

    outputs = trials[0].measurement.outputs
    dims = tuple(trials[0].coordinates)
    axes: dict[str, dict[Any, int]] = {dim: {} for dim in dims}
    for trial in trials:
        for dim in dims:
            axes[dim].setdefault(trial.coordinates[dim], len(axes[dim]))
    payloads = [stored.payload for t in trials if (stored := found.get(t.address)) is not None]
    inner = _inner_axes(outputs, [payload for payload in payloads if payload])
    shape = tuple(len(axes[dim]) for dim in dims)
    own = {dim for dim, named in outputs.items() if tuple(named) == (dim,)}
    arrays = {
        output: np.full(shape + tuple(len(inner[dim]) for dim in extra), np.nan)
        for output, extra in outputs.items()
        if output not in own
    }
    seconds = np.full(shape, np.nan)
    outcomes = np.full(shape, "missing", dtype="<U9")
    for trial in trials:
        stored = found.get(trial.address)
        if stored is None:
            continue
        place: tuple[Any, ...] = tuple(axes[dim][trial.coordinates[dim]] for dim in dims)
        outcomes[place], seconds[place] = stored.outcome, stored.record["seconds"]
        for output in arrays if stored.payload else ():
            part = stored.payload[output]
            if not part.ndim:
                arrays[output][place] = part
                continue
            where = _positions(outputs[output], part.shape, stored.payload, own, inner)
            arrays[output][(*place, *where)] = part
    variables: dict[str, Any] = {
        output: (dims + tuple(outputs[output]), array) for output, array in arrays.items()
    }
    variables[f"{name}_seconds"] = (dims, seconds)
    variables[f"{name}_outcome"] = (dims, outcomes)
    coords: dict[str, Any] = {dim: np.asarray(list(values)) for dim, values in axes.items()}
    coords.update({dim: values for dim, values in inner.items() if dim in own})
    return xr.Dataset(variables, coords=coords)


def _inner_axes(
    outputs: Mapping[str, tuple[str, ...]], payloads: Sequence[Mapping[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """Coordinate values of every inner dimension: the union over trials, or 0, 1, 2, ..."""
    axes: dict[str, np.ndarray] = {}
    for dim in dict.fromkeys(dim for extra in outputs.values() for dim in extra):
        if tuple(outputs.get(dim, ())) == (dim,):
            values = [payload[dim] for payload in payloads]
            axes[dim] = np.unique(np.concatenate(values)) if values else np.zeros(0)
            continue
        lengths = [
            payload[output].shape[extra.index(dim)]
            for payload in payloads
            for output, extra in outputs.items()
            if dim in extra
        ]
        axes[dim] = np.arange(max(lengths, default=0))
    return axes


def _positions(
    extra: Sequence[str],
    shape: tuple[int, ...],
    payload: Mapping[str, np.ndarray],
    own: set[str],
    inner: Mapping[str, np.ndarray],
) -> tuple[Any, ...]:
    """Where a trial's inner entries belong in the array that holds all trials."""
    indices = [
        np.searchsorted(inner[dim], payload[dim]) if dim in own else np.arange(length)
        for dim, length in zip(extra, shape, strict=True)
    ]
    return np.ix_(*indices)


def _distinct(trials: Iterable[StoredTrial | None]) -> list[tuple[dict[str, Any], int]]:
    """What records say about how they were made, and how many say so.

    Records of many trials share the very objects, so that these are compared first.
    """
    found: dict[tuple[int, ...], tuple[dict[str, Any], int]] = {}
    for trial in trials:
        if trial is not None:
            values = tuple(map(trial.record.get, MADE))
            key = tuple(map(id, values))
            found[key] = trial.record, found.get(key, (None, 0))[1] + 1
    return list(found.values())


def _common_record(made: Sequence[tuple[dict[str, Any], int]]) -> dict[str, Any]:
    """What the trials' records say about versions, devices and commits, each value once."""
    return {
        key: sorted({json.dumps(record.get(key), sort_keys=True) for record, _ in made})
        for key in MADE
    }


def _environments(made: Sequence[tuple[dict[str, Any], int]]) -> tuple[str, ...]:
    """A note when trials that are compared were computed by different versions or CPUs."""
    counts: Counter[str] = Counter()
    for record, count in made:
        named = {**record["versions"], "cpu": record.get("cpu", "not noted")}
        counts[", ".join(f"{name} {value}" for name, value in named.items())] += count
    if len(counts) < 2:
        return ()
    parts = "; ".join(f"{count} with {where}" for where, count in counts.most_common())
    return (
        f"the trials come from {len(counts)} environments, which may differ in digits: {parts}",
    )
