"""Head counting part by part: inverted bounds, words for "never", training's probes."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headcount.core import BadArgument, papers
from headcount.theory import Check, _count, claims
from headcount.theory._claim import Bound
from headcount.theory._count import Answer, Promise
from headcount.training import TrainConfig


@dataclass(frozen=True)
class Line:
    """A setting of three numbers."""

    width: int = 8
    steps: int = 100
    step_size: Any = 0.5
    width_step: int = 1

    def resized(self, **changes: Any) -> Line:
        return replace(self, **changes)


class Told:
    """A promise that is a formula; the check fails where it is not finite."""

    def __init__(self, formula: Any) -> None:
        self.formula = formula

    def __call__(self, setting: Line) -> float:
        return self.formula(setting)

    def explained(self, setting: Line) -> tuple[float, Check | None]:
        found = self.formula(setting)
        return found, Check("width", 3.0, 2.0) if math.isinf(found) else None


def test_the_least_width() -> None:
    promise: Any = Told(lambda s: 10 / s.width)
    assert _count._least_width(promise, Line(), 1.0) == (10.0, "at 100 steps")
    assert _count._least_width(promise, Line(width_step=4), 1.0) == (12.0, "at 100 steps")
    far: Any = Told(lambda s: 1000 / s.width)
    assert _count._least_width(far, Line(width_step=3), 1.0)[0] == 1002.0
    dip: Any = Told(lambda s: 0.5 if 10 <= s.width <= 20 or s.width >= 10**6 else 2.0)
    assert _count._least_width(dip, Line(), 1.0) == (
        10.0,
        "at 100 steps; not at width 21 any more",
    )
    floor: Any = Told(lambda s: 3 + 1 / s.width)
    value, note = _count._least_width(floor, Line(), 1.0)
    assert value is None
    assert note == "at 100 steps no width brings the bound below 3"
    nowhere: Any = Told(lambda s: math.inf)
    assert _count._least_width(nowhere, Line(), 1.0)[1] == "not applicable: width: 3 > 2"


def test_a_bound_that_is_not_finite_for_no_reason() -> None:
    assert _count._never([(math.inf, None)], "no width") == "the bound is not finite"


def test_the_fewest_steps_use_the_theorem_s_own_step_size() -> None:
    promise: Any = Told(lambda s: 500 / s.steps if s.step_size == "default" else 0.0)
    value, note = _count._fewest_steps(promise, Line(), 1.0)
    assert value == 500.0
    assert note == "at width 8, with the theorem's own step size"
    floor: Any = Told(lambda s: 2.0)
    assert _count._fewest_steps(floor, Line(), 1.0) == (
        None,
        "at width 8 no number of steps brings the bound below 2",
    )


def test_the_width_for_endlessly_many_steps() -> None:
    promise: Any = Told(lambda s: 10 / s.width + 4 / s.steps)
    value, note = _count._width_with_free_steps(promise, Line(width_step=2), 1.0)
    assert value == 10.0
    assert note == "with endlessly many steps; at twice this width 8 suffice"
    step: Any = Told(lambda s: 10 / s.width if s.steps == 2**1000 and s.width < 15 else 9.0)
    assert "width none suffices" in _count._width_with_free_steps(step, Line(), 1.0)[1]
    floor: Any = Told(lambda s: 2 + 1 / s.width)
    note = _count._width_with_free_steps(floor, Line(), 1.0)[1]
    assert note == "with any number of steps no width brings the bound below 2"


def test_the_width_for_the_best_number_of_steps() -> None:
    """The longer the training, the more heads; the shorter, the larger the bound."""
    promise: Any = Told(lambda s: 100 / s.steps if s.width >= 10 * s.steps else math.inf)
    value, note = _count._width_with_free_steps(promise, Line(), 1.0)
    assert value == 1000.0
    assert note == "with 100 steps, the number that asks for the fewest heads"
    growing: Any = Told(lambda s: s.steps / s.width)
    assert _count._width_with_free_steps(growing, Line(width_step=2), 1.0)[0] == 2.0
    never: Any = Told(lambda s: 3.0 * s.steps)
    note = _count._width_with_free_steps(never, Line(), 1.0)[1]
    assert note == "with any number of steps no width brings the bound below 3"


@pytest.mark.parametrize("variant", ["v2", "sharp"])
def test_steps_that_are_free_ask_for_no_more_heads_than_steps_that_are_given(variant: str) -> None:
    """Theorem 3 of deora2024 wants D, so heads, that grow with log K."""
    problem = TrainConfig.of({"model": "deora2024", "n": 20, "steps": 9})
    setting = papers["deora2024"].part("setting").of(problem, delta=0.05).resized(steps=2**80)
    promise = _count.Promise(claims["deora2024/theorem-3"], variant)
    loss = 0.1
    given = _count._least_width(promise, setting.resized(step_size="default"), loss)[0]
    free = _count._width_with_free_steps(promise, setting, loss)[0]
    forever = setting.resized(steps=2**1000, step_size="default")
    endless = _count._least_width(promise, forever, loss)[0]
    assert given is not None
    assert free is not None
    assert endless is not None
    assert free <= given < endless / 1e3


def test_no_setting_is_asked_twice() -> None:
    """The search that fails and the reason why it fails look at the same settings."""
    asked: list[tuple[int, int]] = []

    def floor(s: Any) -> float:
        asked.append((s.width, s.steps))
        return 3.0

    assert _count._width_with_free_steps(Told(floor), Line(), 1.0)[0] is None  # type: ignore
    assert len(asked) == len(set(asked)) > 1000


def test_the_largest_step_size() -> None:
    promise: Any = Told(lambda s: 1.0 if s.step_size <= 0.3 else 2.0)
    value, note = _count._largest_step(promise, Line(), 1.0)
    assert value == pytest.approx(0.3, rel=1e-12)
    assert value <= 0.3
    assert note == "at width 8, 100 steps"
    band: Any = Told(lambda s: 1.0 if 1e-3 < s.step_size <= 40 or s.step_size < 1e-6 else 2.0)
    assert _count._largest_step(band, Line(), 1.0)[0] == pytest.approx(40.0)
    always: Any = Told(lambda s: 1.0)
    assert _count._largest_step(always, Line(), 1.0)[0] == pytest.approx(1e6)
    tiny: Any = Told(lambda s: 1.0 if s.step_size < 1.5e-12 else 2.0)
    assert _count._largest_step(tiny, Line(), 1.0)[0] == pytest.approx(1.5e-12)
    floor: Any = Told(lambda s: 2.0)
    assert _count._largest_step(floor, Line(), 1.0) == (
        None,
        "no step size brings the bound below 2",
    )


def test_where_starts_are_drawn_two_widths_per_octave_are_tried() -> None:
    drawn = type("Drawn", (), {"widest": 4096})()
    assert (_count._widths_per_octave(drawn), _count._widths_per_octave(Line())) == (2, 8)
    assert [v for v in _count._grid(1, 2) if 64 <= v <= 256] == [64, 90, 128, 181, 256]


def test_far_out_the_grid_has_one_value_per_octave() -> None:
    values = list(_count._grid(5))
    assert values == sorted(set(values))
    far = [v for v in values if v >= 5 * 2**100]
    assert all(b == 2 * a for a, b in itertools.pairwise(far))
    assert far[0] == 5 * 2**100
    near = [v for v in values if 5 * 2**99 <= v < 5 * 2**100]
    assert len(near) == 8
    assert max(values) <= 2**1000 < 2 * max(values)
    octaves = list(_count._octaves(5))
    assert octaves == [5 * 2**k for k in range(len(octaves))]
    assert max(octaves) <= 2**1000 < 2 * max(octaves)


def test_the_answer_is_made_exact_downwards() -> None:
    asked: list[int] = []

    def reaches(value: int) -> bool:
        asked.append(value)
        return value >= 210

    assert _count._least(reaches, 3) == (210, 0)
    assert all(value % 3 == 0 for value in asked)
    assert _count._least(lambda v: v == 5) == (5, 6)
    assert _count._least(lambda v: False) is None
    assert _count.downwards(lambda v: v >= 9, 4, 12, 1) == 9
    assert _count.downwards(lambda v: v >= 12, 4, 12, 4) == 12
    assert _count.downwards(lambda v: v >= 8, 4, 12, 4) == 8


def promising(checks: tuple[Check, ...], rhs: float) -> Any:
    return SimpleNamespace(promise=lambda setting, variant: (Bound(rhs), checks))


def test_a_promise_holds_where_every_hypothesis_does() -> None:
    fine, near, far = Check("a", 1.0, 2.0), Check("b", 3.0, 2.0), Check("c", 9.0, 2.0)
    setting: Any = None
    assert Promise(promising((fine,), 5.0), "printed")(setting) == 5.0
    assert Promise(promising((), 5.0), "printed").explained(setting) == (5.0, None)
    assert Promise(promising((fine, near, far), 5.0), "p").explained(setting) == (math.inf, far)
    for rhs in (math.nan, math.inf):
        assert Promise(promising((fine,), rhs), "p").explained(setting) == (math.inf, None)


def test_answers_in_words() -> None:
    assert Answer("width", "a", "b", 12345.6, "").shown == "1.235e+04"
    assert Answer("width", "a", "b", None, "").shown == "never"
    assert Answer("width", "a", "b", None, "", 4096.0).shown == "> 4096"
    assert Answer("width", "a", "b", None, "n", 7.0).to_json() == {
        "question": "width",
        "source": "a",
        "variant": "b",
        "value": None,
        "note": "n",
        "beyond": 7.0,
        "met_at_start": False,
    }


@pytest.mark.parametrize(("question", "searches"), [("width", 2), ("steps", 1), ("step-size", 1)])
def test_every_claim_is_asked(
    question: str, searches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim: Any = SimpleNamespace(
        id="toy/a", promise=lambda setting, variant: (Bound(4.0 + (variant == "b")), ())
    )
    monkeypatch.setattr(_count, "claims_about", lambda p, q: [(claim, "a"), (claim, "b")])
    setting: Any = Line()
    found = _count.theorem_answers("toy", setting, 4.5, question)
    assert len(found) == 2 * searches
    assert [a.value is None for a in found] == [False] * searches + [True] * searches
    assert {a.beyond for a in found} == {None}
    wide = type("Wide", (Line,), {"widest": 4096})()
    beyond = [a.beyond for a in _count.theorem_answers("toy", wide, 4.5, question)]
    missed = 4096.0 if question == "width" else None
    assert beyond == [None] * searches + [missed] * searches
    for bad in ((0.0, question, "loss"), (1.0, "depth", "loss"), (1.0, question, "size")):
        with pytest.raises(BadArgument):
            _count.theorem_answers("toy", setting, *bad)


def test_which_claims_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(quantity: str | None, bound: Any, **variants: bool) -> Any:
        forms = {name: SimpleNamespace(fails=fails) for name, fails in variants.items()}
        return SimpleNamespace(quantity=quantity, bound=bound, variants=forms)

    good = made("loss", len, printed=False, wrong=True, measured=False, sharp=False)
    others = [made("gap", len, a=False), made("loss", None, a=False), made(None, len, a=False)]
    monkeypatch.setattr(_count, "claims", SimpleNamespace(of_paper=lambda paper: [good, *others]))
    assert list(_count.claims_about("toy")) == [(good, "printed"), (good, "sharp")]
    assert list(_count.claims_about("toy", "gap")) == [(others[0], "a")]


def pretend(monkeypatch: pytest.MonkeyPatch, losses: Any, start: Any = (1.0, 1.0, 1.0)) -> None:
    def run(config: Any) -> Any:
        return SimpleNamespace(min_loss=np.array(losses(config)), loss=np.array(start)[:, None])

    monkeypatch.setattr(_count, "run_config", run)


CONFIG = {"rho": (3, 3, 3), "seeds": (0, 1, 2), "steps": 64}


def test_the_median_seed_decides_and_nan_is_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, lambda c: (0.0, 0.5 if c.width >= 6 else 0.7, math.nan))
    told: list[str] = []
    found = _count.practice(
        TrainConfig.of(CONFIG), 0.5, "width", width_step=2, most_width=8, progress=told.append
    )
    assert found.answer == Answer(
        "width", "training", "measured", 6.0, "3 seeds, tried upwards from 2"
    )
    assert [p.value for p in found.probes] == [2, 4, 6]
    assert [p.reached for p in found.probes] == [False, False, True]
    assert found.probes[0].losses == (0.0, 0.7, math.inf)
    assert told[0] == "width 2: median smallest loss 0.7"
    pretend(monkeypatch, lambda c: (math.nan, 0.1, math.nan))
    missed = _count.practice(TrainConfig.of(CONFIG), 0.5, "width", most_width=2)
    assert missed.answer.value is None
    assert missed.answer.note == "3 seeds, not reached up to width 2"


def test_a_loss_that_is_met_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, lambda c: (0.1,) * 3, start=(0.2, 0.5, 9.0))
    config = TrainConfig.of(CONFIG)
    for loss, met in ((0.5, True), (0.49, False)):
        note = _count.practice(config, loss, "width").answer.note
        assert ("the loss is 0.5 before the first step" in note) is met


@pytest.mark.parametrize(
    ("question", "field", "kind"), [("steps", "steps", int), ("step-size", "eta", float)]
)
def test_the_right_field_is_changed(
    question: str, field: str, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def losses(config: TrainConfig) -> tuple[float, ...]:
        seen.append(getattr(config, field))
        return (0.1,) * 3

    pretend(monkeypatch, losses)
    found = _count.practice(TrainConfig.of(CONFIG), 0.5, question)
    assert found.answer.value == seen[0]
    assert all(type(value) is kind for value in seen)
    for bad in ({"loss": 0.0}, {"question": "x"}, {"most_width": 1, "width_step": 2}):
        values: Any = {"loss": 0.5, "question": question, **bad}
        with pytest.raises(BadArgument):
            _count.practice(
                TrainConfig.of(CONFIG), values.pop("loss"), values.pop("question"), **values
            )


def test_inside_the_cell_of_the_answer() -> None:
    asked: list[float] = []

    def reaches(field: str, value: float) -> bool:
        asked.append(value)
        return value >= 200

    found, _ = _count._search_width(reaches, 1, 1000)
    grid = asked[: next(k for k, v in enumerate(asked) if v >= 200) + 1]
    failed, reached = grid[-2], grid[-1]
    step = (reached - failed) // 8
    assert found == next(v for v in range(int(failed) + 1, 10**6, int(step)) if v >= 200)
    assert asked[len(grid)] == failed + 1
    assert grid[15:18] == [16, 19, 23]
