"""Verdicts: three outcomes, decided by where the interval lies."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

from headcount import core, lab

C, N, I = lab.CONFIRMED, lab.NOT_CONFIRMED, lab.INCONCLUSIVE
X = np.array([8.0, 16, 32, 64])
NOISE = 0.02 * core.normal(core.stream(0, "noise"), (6, 4))
FALLING = X**-0.5 * (1 + NOISE)


def test_the_sentence_has_the_numbers_that_decided() -> None:
    verdict = lab.inside("c", lab.Estimate(0.3, 0.2, 0.4, 5), (0.0, math.inf), "slope")
    expected = "slope 0.3, interval [0.2, 0.4] from 5 seeds, lies inside what was expected: above 0"
    assert verdict.sentence == expected
    with pytest.raises(core.BadArgument, match="swap"):
        lab.inside("c", lab.Estimate(0.3, 0.2, 0.4, 5), (1.0, 0.0))


@pytest.mark.parametrize(("expected", "outcome"), [((-0.6, -0.4), C), ((-0.1, 0.1), N)])
def test_exponent(expected, outcome) -> None:
    assert lab.exponent("c", X, FALLING, expected).outcome == outcome


def test_exponent_with_one_seed_is_inconclusive() -> None:
    assert lab.exponent("c", X, FALLING[:1], (-0.6, -0.4)).outcome == I


@pytest.mark.parametrize(("above", "outcome"), [(0.9, C), (1.1, N), (1.0, I)])
def test_threshold(above, outcome) -> None:
    values = 1.0 + NOISE[:, 0] - NOISE[:, 0].mean()
    assert lab.threshold("c", values, above=above).outcome == outcome


@pytest.mark.parametrize(("factor", "outcome"), [(1.5, C), (2.5, N), (2.0, I)])
def test_separation_is_a_ratio(factor, outcome) -> None:
    spread = np.exp(NOISE[:, 0] - NOISE[:, 0].mean())
    shared = np.array([1.0, 10, 100, 5, 50, 2])  # paired: what both share cancels
    verdict = lab.separation("c", 2 * shared * spread, shared, factor=factor)
    assert verdict.outcome == outcome
    assert verdict.value == pytest.approx(2.0)
    with pytest.raises(core.BadArgument, match="positive"):
        lab.separation("c", -shared, shared)


def test_difference() -> None:
    a = 1 + NOISE[:, 0]
    assert lab.difference("c", a, np.zeros(6)).outcome == C
    assert lab.difference("c", a, a + 0.5).outcome == N
    assert lab.difference("no effect", a, a + NOISE[:, 1], (-0.1, 0.1)).outcome == C


def test_every_step_counts() -> None:
    a, b, c = 1 + NOISE[:, 0], 2 + NOISE[:, 1], 3 + NOISE[:, 2]
    assert _rising(a, b, c).outcome == C
    wrong = _rising(a, c, b)
    assert wrong.outcome == N
    assert wrong.sentence.startswith("change from 1 to 2")
    equal = 2 + NOISE[:, 3] + (NOISE[:, 1] - NOISE[:, 3]).mean()
    assert _rising(a, b, equal).outcome == I
    # A refuted step decides even when another one is wildly uncertain.
    wild = np.array([-900.0, 900, -900, 900, -900, 901])
    assert _rising(b, a, wild).outcome == N
    with pytest.raises(core.BadArgument):
        _rising(a)


def _rising(*columns: np.ndarray) -> lab.Finding:
    return lab.monotone("c", np.arange(len(columns)), np.stack(columns, axis=1), "increasing")


def test_monotone() -> None:
    assert lab.monotone("c", X, FALLING, "decreasing").outcome == C
    assert lab.monotone("c", X, FALLING, "increasing").outcome == N
    assert lab.monotone("c", X[::-1], FALLING[:, ::-1], "decreasing").outcome == C
    flat = core.normal(core.stream(2, "flat"), (6, 4))
    assert lab.monotone("c", X, flat, "decreasing").outcome == I
    bump = FALLING.copy()
    bump[:, 2] += 0.5
    verdict = lab.monotone("c", X, bump, "decreasing")
    assert verdict.outcome == N
    assert "change from 16 to 32" in verdict.sentence
    with pytest.raises(core.BadArgument, match="increasing, decreasing"):
        lab.monotone("c", X, FALLING, "down")


def test_share_counts_seeds_not_entries() -> None:
    hits = np.ones((6, 4))
    assert lab.share("c", hits, above=0.5).outcome == C  # 6 of 6: from .54 on
    five = lab.share("c", hits[:5], above=0.5)
    assert (five.outcome, five.seeds) == (I, 5)
    assert five.interval == pytest.approx((0.025**0.2, 1.0), rel=1e-9)
    assert lab.share("c", hits[:1], above=0.5).outcome == I
    hits[0, 1] = 0.0  # one entry of one seed
    assert lab.share("c", hits, above=0.5).value == pytest.approx(5 / 6)
    by_name = xr.DataArray(hits.T, dims=("m", "seed"))
    assert lab.share("c", by_name, above=0.5) == lab.share("c", hits, above=0.5)
    hits[1, 2] = np.nan  # died: neither hit nor missed
    dead = lab.share("c", hits, above=0.5)
    assert (dead.outcome, dead.seeds, dead.lost) == (I, 5, 1)


def test_fitted_exponent_reads_the_slope_that_was_stored() -> None:
    """The same verdict as from the values; and a changed store changes it: nothing is fitted."""
    values = xr.DataArray(FALLING, dims=("seed", "m"), coords={"m": X}, name="error")
    law = lab.power_law(values, "m")
    expected = (-0.6, -0.4)
    assert lab.fitted_exponent("c", law, "error", expected) == lab.exponent(
        "c", X, FALLING, expected
    )
    moved = law.assign(error_slope=law["error_slope"] + 1)
    assert lab.fitted_exponent("c", moved, "error", expected).value > 0


def test_a_verdict_needs_the_sizes_that_the_figure_declares() -> None:
    import dataclasses

    import toy_figure

    figure = dataclasses.replace(
        toy_figure.figure, judged=("quick", "paper"), least_seeds=None, needs={"c": {"steps": 20}}
    )
    assert figure.least_seeds == 5
    paper, quick = figure.scales["paper"], figure.scales["quick"]
    assert figure.shortfall("c", "paper", paper) == ""
    assert figure.shortfall("other", "quick", quick) == ""
    assert figure.shortfall("other", "smoke", paper) == "too small to judge"
    short = figure.shortfall("c", "quick", {**quick, "seeds": 3})
    assert short == "not judged at this size: needs seeds >= 5 (here 3), steps >= 20 (here 5)"
    with pytest.raises(core.BadArgument, match="more than the paper's own sizes"):
        dataclasses.replace(figure, needs={"c": {"steps": 21}})

    found = lab.inside("c", lab.Estimate(0.3, 0.2, 0.4, 5), (0.0, math.inf), "slope")
    withheld = found.withheld(short)
    assert withheld.outcome == lab.NOT_JUDGED
    assert withheld.sentence == f"{short}; slope 0.3, interval [0.2, 0.4] from 5 seeds"
    assert (withheld.value, withheld.interval) == (found.value, found.interval)


@pytest.mark.parametrize("name", list(lab.figures))
def test_every_figure_withholds_judgement_at_smoke_scale(name: str) -> None:
    figure = lab.figures[name]
    if figure.id.startswith("toy/"):
        return
    assert figure.shortfall("any", "smoke", figure.scales["smoke"])
    for claim in ("any", *figure.needs):
        assert not figure.shortfall(claim, "paper", figure.scales["paper"])
    assert not figure.shortfall("any", "quick", figure.scales["quick"])
