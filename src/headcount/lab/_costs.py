"""What trials will cost, learned from those that have run.

A measurement's own estimate knows how the work grows, not how fast this machine is. A trial's time
has two parts: compiling, which only the first of its group in a process does, and computing. How
long each of a past trial took stands in its record.

Trials of a group that has run before take what its trials took, per second of the estimate. For
other groups of a measurement log(seconds) against log(estimate) gives a straight line, whose slope
is the median of the slopes between pairs of trials and whose height is the median of what remains.
Medians shrug off a few trials that were slow because the machine was busy.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ._executors import Hint
from ._figure import Measurement, Trial
from ._store import Store
from ._stored import StoredTrial

MOST_PAST_TRIALS = 200
"""So many records are read at most, spread evenly over those that there are."""
_FEW = 4
_SPREAD = math.log(2)
"""Estimates that differ by less than this factor say nothing about growth."""


class Line(NamedTuple):
    """log(seconds) = height + slope log(estimate), for estimates up to `largest`."""

    height: float
    slope: float
    largest: float
    trials: int

    def seconds(self, estimate: float) -> float:
        """Beyond what was seen, time grows like the estimate."""
        inside = min(estimate, self.largest)
        return math.exp(self.height + self.slope * math.log(inside)) * estimate / inside


class Past(NamedTuple):
    """What a stored trial took, beside its measurement's estimate."""

    measurement: str
    group: str
    estimate: float
    computing: float
    compiling: float | None
    """None in records of earlier versions: it is part of `computing` then."""
    first: bool
    """Whether it was the first of its process, and so computing includes imports."""


@dataclass(frozen=True)
class CostModel:
    """Seconds of a trial: its measurement's estimate, corrected by past trials where there are."""

    lines: Mapping[str, Line] = field(default_factory=dict)
    ratios: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """By measurement and group: seconds of computing over the estimate."""
    compiled: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """By measurement and group ("": any other): seconds of compiling."""

    def seconds(self, trial: Trial) -> float:
        """How long the trial will compute here, its programs being compiled."""
        estimate = _estimate(trial.measurement, trial.config)
        line = self.lines.get(trial.measurement.name)
        ratio = self.ratios.get(place(trial))
        if ratio is not None:
            return ratio * estimate
        return estimate if line is None else line.seconds(estimate)

    def compiling(self, trial: Trial) -> float:
        """What the first trial of its group takes longer in a process."""
        name, group = place(trial)
        usual = self.compiled.get((name, ""), trial.measurement.compiling)
        return self.compiled.get((name, group), usual)

    def hint(self, trial: Trial) -> Hint:
        """What an executor may want to know."""
        needed = trial.measurement.estimate(trial.config)[1]
        return Hint(trial.group, self.seconds(trial), needed, self.compiling(trial))

    @property
    def count(self) -> int:
        """How many past trials it rests on."""
        return sum(line.trials for line in self.lines.values())


def fit_line(pairs: Sequence[tuple[float, float]]) -> Line:
    """The line of (estimate, seconds) pairs, at least one."""
    points = [(math.log(estimate), math.log(seconds)) for estimate, seconds in pairs]
    slopes = [
        (b[1] - a[1]) / (b[0] - a[0])
        for a, b in itertools.combinations(points, 2)
        if abs(b[0] - a[0]) >= _SPREAD
    ]
    slope = min(max(statistics.median(slopes), 0.0), 2.0) if len(slopes) >= _FEW else 1.0
    height = statistics.median(y - slope * x for x, y in points)
    return Line(height, slope, max(estimate for estimate, _ in pairs), len(points))


def fit_costs(past: Sequence[Past]) -> CostModel:
    """The model of what was seen."""
    lines: dict[str, Line] = {}
    ratios: dict[tuple[str, str], float] = {}
    compiled: dict[tuple[str, str], float] = {}
    for name, trials in _split(past, lambda trial: trial.measurement):
        settled = [trial for trial in trials if not trial.first] or trials
        line = fit_line([(trial.estimate, trial.computing) for trial in settled])
        lines[name] = line._replace(trials=len(trials))
        for group, members in _split(trials, lambda trial: trial.group):
            compiled[name, group] = _compiling(members)
            warm = [trial.computing / trial.estimate for trial in members if not trial.first]
            if warm:
                ratios[name, group] = statistics.median(warm)
            elif settled is trials:
                ratios[name, group] = members[0].computing / members[0].estimate
        compiled[name, ""] = statistics.median(
            seconds for (measurement, _), seconds in compiled.items() if measurement == name
        )
    return CostModel(lines, ratios, compiled)


def _compiling(members: Sequence[Past]) -> float:
    """Of one group; where records do not tell, what its slowest trial took longer than usual."""
    told = [trial.compiling for trial in members if trial.compiling is not None]
    seconds = [trial.computing for trial in members]
    return max(told) if told else max(seconds) - statistics.median(seconds)


def _split(past: Iterable[Past], key: Callable[[Past], str]) -> Iterator[tuple[str, list[Past]]]:
    found: dict[str, list[Past]] = defaultdict(list)
    for trial in past:
        found[key(trial)].append(trial)
    yield from found.items()


def cost_model(trials: Iterable[Trial], store: Store) -> CostModel:
    """The model for these trials, from the results folder.

    Their own records come first; a measurement of which none has run yet takes those of others
    of its name, such as a smaller scale's.
    """
    trials = tuple(trials)
    measurements = {trial.measurement.name: trial.measurement for trial in trials}
    groups = {trial.address: trial.group for trial in trials}
    own = [trial.address for trial in trials if store.trial_path(trial.address).exists()]
    past = list(_read(measurements, groups, store, own))
    found = {each.measurement for each in past}
    if found != set(measurements):
        every = sorted(path.stem for path in (store.folder / "trials").glob("??/*.h5"))
        others = _read(measurements, {}, store, every)
        past += [each for each in others if each.measurement not in found]
    return fit_costs(past)


def _read(
    measurements: Mapping[str, Measurement],
    groups: Mapping[str, str],
    store: Store,
    addresses: Sequence[str],
) -> Iterator[Past]:
    for address in addresses[:: len(addresses) // MOST_PAST_TRIALS + 1]:
        stored = store.read(address)
        measurement = None if stored is None else measurements.get(stored.record["measurement"])
        if stored is None or measurement is None or not _counts(stored, measurement):
            continue
        record = stored.record
        compiling = record.get("compiling")
        yield Past(
            measurement=measurement.name,
            group=groups.get(address) or _sizes(record["config"]),
            estimate=_estimate(measurement, record["config"]),
            computing=max(record["seconds"] - (compiling or 0.0), 1e-6),
            compiling=compiling,
            first=bool(record.get("first_in_process")),
        )


def _counts(stored: StoredTrial, measurement: Measurement) -> bool:
    """Trials that ran to their end, of this very measurement."""
    return stored.outcome == "ok" and stored.record["version"] == measurement.version


def place(trial: Trial) -> tuple[str, str]:
    """Measurement and group; trials that declare none go with those of their sizes."""
    return trial.measurement.name, trial.group or _sizes(trial.config)


def _sizes(config: Mapping[str, object]) -> str:
    """All of a configuration but its seeds: one group, as far as can be told."""
    return json.dumps({k: v for k, v in config.items() if "seed" not in k}, sort_keys=True)


def _estimate(measurement: Measurement, config: dict[str, object]) -> float:
    return max(float(measurement.estimate(config)[0]), 1e-9)
