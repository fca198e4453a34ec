"""Plans: which trials a figure needs at a scale, and what they will cost."""

from __future__ import annotations

import functools
import heapq
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import BadArgument, HeadcountError, check_choice, check_count
from ..core._checks import check_kind
from ._address import canonical_json, content_address
from ._costs import CostModel, place
from ._errors import CorruptFile
from ._figure import SCALES, Figure, Settings, Trial, figures
from ._files import read_note, write_note
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

    @functools.cached_property
    def unique(self) -> dict[str, Trial]:
        """The trials by address: what has to be computed."""
        return {trial.address: trial for trial in self.trials}

    @functools.cached_property
    def stand_in(self) -> str:
        """What the trials have in place of what the claims are about; empty: nothing."""
        return self.figure.stand_in(self.trials)

    @functools.cached_property
    def identity(self) -> str:
        """One name per plan, in hexadecimal."""
        return content_address("plan", 1, self.describe())

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
    """An estimate: wall time on `workers` workers, and memory while they run.

    `past` is how many trials of the past it rests on; none: it is the figure's own guess.
    """

    seconds: float
    bytes: float
    workers: int
    past: int = 0


def make_plan(
    figure: str | Figure,
    scale: str = "quick",
    seeds: Sequence[int] | None = None,
    options: Mapping[str, str] | None = None,
) -> Plan:
    """The trials of a figure; seeds default to the scale's own number of them, from zero."""
    figure = figures[figure] if isinstance(figure, str) else figure
    if not isinstance(figure, Figure):
        named = next(iter(figures), "paper/figure")
        check_kind("figure", figure, Figure, fix=f"give its name, such as {named}")
    options = {} if options is None else options
    check_kind("options", options, Mapping, fix="give names with their values")
    seeds = seeds.tolist() if isinstance(seeds, np.ndarray) else seeds
    check_kind("seeds", [] if seeds is None else seeds, Sequence, fix="use a list")
    check_choice("scale", scale, SCALES)
    settings = figure.scales[scale]
    chosen = tuple(range(settings["seeds"])) if seeds is None else tuple(seeds)
    for seed in chosen:
        check_count("seeds", seed, least=0)
    if not chosen or len(set(chosen)) != len(chosen):
        raise BadArgument("seeds", chosen, "must be distinct, at least one", fix="e.g. 0:10")
    selected = figure.choose(options)
    settings = {**settings, "seeds": len(chosen)}
    trials = tuple(figure.trials(settings, chosen, selected))
    _check_trials(figure, trials)
    return Plan(figure, scale, chosen, selected, settings, trials)


def survey(plan: Plan, store: Store) -> Survey:
    """Look every trial up; nothing is computed and nothing is moved."""
    return Survey(store.states(plan.unique))


def cost(trials: Sequence[Trial], workers: int, costs: CostModel | None = None) -> Cost:
    """What a sweep over these trials takes, and the memory of the largest that can coincide.

    A group goes to the worker with least to do until that has its share of all the work, then to
    the next one, which compiles its programs again; groups with the longest trials come first.
    """
    workers, costs = max(workers, 1), costs or CostModel()
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault(place(trial), []).append(trial)
    parts = [
        (costs.compiling(group[0]), sorted(map(costs.seconds, group), reverse=True))
        for group in groups.values()
    ]
    parts.sort(key=lambda part: -part[0] - part[1][0])
    loads = [0.0] * max(min(workers, len(trials)), 1)
    share = sum(compiling + sum(seconds) for compiling, seconds in parts) / len(loads)
    for compiling, seconds in parts:
        load = heapq.heappop(loads) + compiling
        for k, each in enumerate(seconds):
            if k and loads and load + each > share and loads[0] + compiling < load:
                load = heapq.heapreplace(loads, load) + compiling
            load += each
        heapq.heappush(loads, load)
    sizes = (trial.measurement.estimate(trial.config)[1] for trial in trials)
    return Cost(max(loads), sum(heapq.nlargest(workers, sizes)), workers, costs.count)


def remember(plan: Plan, store: Store) -> None:
    """Note in the results folder that this plan was asked for; `status` and `show` read it."""
    note = {**plan.describe(), "identity": plan.identity, "count": len(plan.unique)}
    name = f"{plan.figure.id.replace('/', '-')}-{plan.scale}-{plan.identity[:12]}.json"
    write_note(store.plan_folder() / name, note)
    store.index.add_plan(plan.identity, plan.unique)


def remembered(
    store: Store, message: Callable[[str], None] = lambda text: None
) -> list[dict[str, Any]]:
    """All plans noted in a results folder, the latest last; a damaged note is told and left out."""
    notes = []
    for path in store.plan_folder().glob("*.json"):
        try:
            note = read_note(path)
            if not _is_plan(note):
                raise CorruptFile(path, "is no plan")
            notes.append((path.stat().st_mtime_ns, path.name, note))
        except FileNotFoundError:
            continue
        except CorruptFile as error:
            message(f"damaged plan {error}; the next reproduce of its figure writes it again")
    return [note for _, _, note in sorted(notes, key=lambda entry: entry[:2])]


def planned(note: Mapping[str, Any], store: Store) -> list[str]:
    """The addresses of the trials of a noted plan; none where nobody knows them any more.

    They stand in notes of earlier versions, then in the index, and the figure can say them again.
    """
    if "trials" in note:
        return list(note["trials"])
    addresses = store.index.plan(note["identity"])
    if len(addresses) != note["count"] and note["figure"] in figures:
        try:
            plan = make_plan(note["figure"], note["scale"], note["seeds"], note["options"])
        except (HeadcountError, OSError):  # such as data that are not at hand
            return []
        addresses = list(plan.unique) if plan.identity == note["identity"] else []
        store.index.add_plan(note["identity"], addresses)
    return addresses


def _is_plan(note: Mapping[str, Any]) -> bool:
    kinds = {"figure": str, "scale": str, "seeds": list, "options": dict}
    names = note.get("trials", [note.get("identity")])
    return (
        all(isinstance(note.get(name), kind) for name, kind in kinds.items())
        and bool(note["seeds"])
        and all(type(seed) is int for seed in note["seeds"])
        and isinstance(names, list)
        and all(re.fullmatch("[0-9a-f]{64}", str(name)) for name in names)
        and ("trials" in note or type(note.get("count")) is int)
    )


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
