"""Plans: which trials a figure needs at a scale, and what they will cost."""

from __future__ import annotations

import heapq
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core import BadArgument, check_choice, check_count
from ._address import canonical_json, content_address
from ._figure import SCALES, Figure, Settings, Trial, figures
from ._files import write_atomically
from ._store import Store


@dataclass(frozen=True)
class Plan:
    """A figure at a scale, with seeds and options: the trials, each once."""

    figure: Figure
    scale: str
    seeds: tuple[int, ...]
    options: Mapping[str, str]
    settings: Settings
    trials: tuple[Trial, ...]

    @property
    def unique(self) -> dict[str, Trial]:
        """The trials by address: what has to be computed."""
        return {trial.address: trial for trial in self.trials}

    def describe(self) -> dict[str, Any]:
        """The plan as plain values, as stored in the results folder and the data set."""
        return {
            "figure": self.figure.id,
            "scale": self.scale,
            "seeds": list(self.seeds),
            "options": dict(self.options),
            "settings": json.loads(canonical_json(self.settings)),
        }


@dataclass(frozen=True)
class Survey:
    """What a results folder already has of a plan: address -> (outcome, reason)."""

    states: Mapping[str, tuple[str, str]]

    def of(self, *outcomes: str) -> list[str]:
        """The addresses whose trial is in one of these states."""
        return [address for address, (state, _) in self.states.items() if state in outcomes]


@dataclass(frozen=True)
class Cost:
    """An estimate: wall time on `workers` workers, and memory while they run."""

    seconds: float
    bytes: float
    workers: int


def make_plan(
    figure: str | Figure,
    scale: str = "quick",
    seeds: Sequence[int] | None = None,
    options: Mapping[str, str] | None = None,
) -> Plan:
    """The trials of a figure; seeds default to the scale's own number of them, from zero."""
    figure = figures[figure] if isinstance(figure, str) else figure
    check_choice("scale", scale, SCALES)
    settings = figure.scales[scale]
    chosen = tuple(range(settings["seeds"])) if seeds is None else tuple(seeds)
    if not chosen or len(set(chosen)) != len(chosen):
        raise BadArgument("seeds", chosen, "must be distinct, at least one", fix="e.g. 0:10")
    for seed in chosen:
        check_count("seeds", seed, least=0)
    selected = figure.choose(options or {})
    settings = {**settings, "seeds": len(chosen)}
    trials = tuple(figure.trials(settings, chosen, selected))
    _check_trials(figure, trials)
    return Plan(figure, scale, chosen, selected, settings, trials)


def survey(plan: Plan, store: Store) -> Survey:
    """Look every trial up; nothing is computed and nothing is moved."""
    states = {}
    for address in plan.unique:
        stored = store.read(address)
        states[address] = ("missing", "") if stored is None else (stored.outcome, stored.reason)
    return Survey(states)


def cost(trials: Sequence[Trial], workers: int) -> Cost:
    """Longest first on `workers` workers; memory of the largest trials that can coincide."""
    workers = max(workers, 1)
    estimates = [trial.measurement.estimate(trial.config) for trial in trials]
    loads = [0.0] * workers
    for seconds, _ in sorted(estimates, reverse=True):
        heapq.heapreplace(loads, loads[0] + seconds)
    largest = heapq.nlargest(workers, (size for _, size in estimates))
    return Cost(max(loads), sum(largest), workers)


def remember(plan: Plan, store: Store) -> None:
    """Note in the results folder that this plan was asked for; `status` and `show` read it."""
    note = {**plan.describe(), "trials": list(plan.unique)}
    identity = content_address("plan", 1, plan.describe())
    name = f"{plan.figure.id.replace('/', '-')}-{plan.scale}-{identity[:12]}.json"
    write_atomically(store.folder / "plans" / name, json.dumps(note).encode(), sync=False)


def remembered(store: Store) -> list[dict[str, Any]]:
    """All plans noted in a results folder, the latest last."""
    files = (store.folder / "plans").glob("*.json")
    return [
        json.loads(path.read_bytes())
        for path in sorted(files, key=lambda path: (path.stat().st_mtime_ns, path.name))
    ]


def _check_trials(figure: Figure, trials: Sequence[Trial]) -> None:
    """Every trial has its own place along the same dimensions of its measurement."""
    places: set[tuple[Any, ...]] = set()
    for trial in trials:
        place = (trial.measurement.name, *sorted(trial.coordinates.items()))
        if place in places:
            raise BadArgument(
                figure.id,
                trial.label,
                "two trials have the same coordinates",
                fix="tell them apart",
            )
        places.add(place)
    for name in {trial.measurement.name for trial in trials}:
        dims = {tuple(t.coordinates) for t in trials if t.measurement.name == name}
        if len(dims) > 1:
            raise BadArgument(
                figure.id, sorted(dims), f"trials of {name} differ in dimensions", fix="align them"
            )
