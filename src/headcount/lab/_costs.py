"""What trials will cost, learned from those that have run.

A measurement's own estimate knows how the work grows, not how fast this machine is. Per
measurement the recorded seconds are compared with the estimates: log(seconds) against
log(estimate) gives a straight line, whose slope is the median of the slopes between pairs of
trials and whose height is the median of what remains. Both shrug off a few trials that were slow
because they compiled a program or because the machine was busy.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ._figure import Measurement, Trial
from ._store import Store, StoredTrial

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


@dataclass(frozen=True)
class CostModel:
    """Seconds of a trial: its measurement's estimate, corrected by past trials where there are."""

    lines: Mapping[str, Line] = field(default_factory=dict)

    def seconds(self, trial: Trial) -> float:
        """How long the trial will take here."""
        estimate = _estimate(trial.measurement, trial.config)
        line = self.lines.get(trial.measurement.name)
        return estimate if line is None else line.seconds(estimate)

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


def cost_model(trials: Iterable[Trial], store: Store) -> CostModel:
    """The model for these trials, from the results folder.

    Their own records come first; a measurement of which none has run yet takes those of others
    of its name, such as a smaller scale's.
    """
    trials = tuple(trials)
    measurements = {trial.measurement.name: trial.measurement for trial in trials}
    own = [trial.address for trial in trials if store.trial_path(trial.address).exists()]
    pairs = _pairs(measurements, store, own)
    if set(pairs) != set(measurements):
        every = sorted(path.stem for path in (store.folder / "trials").glob("??/*.h5"))
        pairs = {**_pairs(measurements, store, every), **pairs}
    return CostModel({name: fit_line(found) for name, found in pairs.items()})


def _pairs(
    measurements: Mapping[str, Measurement], store: Store, addresses: Sequence[str]
) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for address in addresses[:: len(addresses) // MOST_PAST_TRIALS + 1]:
        stored = store.read(address)
        measurement = None if stored is None else measurements.get(stored.record["measurement"])
        if stored is not None and measurement is not None and _counts(stored, measurement):
            seconds = max(float(stored.record["seconds"]), 1e-6)
            pair = (_estimate(measurement, stored.record["config"]), seconds)
            found.setdefault(measurement.name, []).append(pair)
    return found


def _counts(stored: StoredTrial, measurement: Measurement) -> bool:
    """Trials that ran to their end, of this very measurement."""
    return stored.outcome == "ok" and stored.record["version"] == measurement.version


def _estimate(measurement: Measurement, config: dict[str, object]) -> float:
    return max(float(measurement.estimate(config)[0]), 1e-9)
