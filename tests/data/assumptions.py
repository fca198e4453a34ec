"""What the tests of data laws ask of an assumption."""

from __future__ import annotations

from collections.abc import Mapping

from headcount.data import Measurement


def assumption_holds(measurements: Mapping[str, Measurement]) -> bool:
    """Whether no measured quantity breaks the claimed assumption."""
    return all(m.holds is not False for m in measurements.values())
