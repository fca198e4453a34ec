"""The figure of all papers: a seed without a width is counted, and never averaged."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

from headcount.papers.compare.figures import width

NEVER = width.NEVER


@pytest.mark.parametrize(
    ("logs", "median"),
    [
        ([1.0, 3.0, 2.0], 2.0),
        ([1.0, NEVER, 2.0], 2.0),
        ([1.0, NEVER, NEVER], math.inf),
        ([1.0, NEVER], math.inf),
        ([1.0, math.nan, 2.0, 4.0], 4.0),
    ],
)
def test_the_median_has_infinite_seeds_in_its_order(logs: list[float], median: float) -> None:
    values = xr.DataArray(np.array(logs), dims="seed")
    data = xr.Dataset(dict.fromkeys(width.KINDS, values))
    assert float(width.statistics(data)["required_median"]) == median


@pytest.mark.parametrize(
    ("logs", "kind", "open_ended", "label"),
    [
        ([2.0, 2.0, 2.0], "required", False, "100"),
        ([2.0, 2.0, 2.0], "required", True, "> 100"),
        ([13.2, 13.2, 13.2], "printed", False, r"$1.6 \cdot 10^{13}$"),
        ([2.0, 2.0, 2.0], "training", True, "100"),
        ([2.0, 2.0, NEVER], "required", True, "100 (never: 1 of 3 seeds)"),
        ([2.0, NEVER, NEVER], "printed", True, "never (2 of 3 seeds)"),
        ([math.nan, math.nan, 1.0], "training", False, "not reached (2 of 3 seeds)"),
        ([math.nan] * 3, "training", False, "not reached"),
    ],
)
def test_labels_say_how_many_seeds_have_no_width(
    logs: list[float], kind: str, open_ended: bool, label: str
) -> None:
    values = np.array(logs)
    middle = float(np.sort(np.where(values < NEVER - 1, values, np.inf))[len(logs) // 2])
    assert width.label_of(middle, values, kind, open_ended) == label
