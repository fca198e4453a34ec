"""Head counting part by part: inverted bounds, words for "never", training's probes."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from headcount.core import BadArgument, papers
from headcount.theory import Answer, Bound, Check, _count, _practice, _promise, claims
from headcount.theory._count import over_seeds
from headcount.theory._promise import Promised, promised
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

    def __init__(self, formula: Any, trivial: float | None = None) -> None:
        self.formula, self.trivial = formula, trivial

    def __call__(self, setting: Line) -> Promised:
        found = self.formula(setting)
        failing = (Check("width", 3.0, 2.0),) if math.isinf(found) else ()
        return Promised("toy/a", "printed", found, failing, self.trivial)


def pair(answer: Answer) -> tuple[float | None, str]:
    return answer.value, answer.note


def test_the_least_width() -> None:
    promise: Any = Told(lambda s: 10 / s.width)
    assert pair(_count._least_width(promise, Line(), 1.0)) == (10.0, "at 100 steps")
    assert pair(_count._least_width(promise, Line(width_step=4), 1.0)) == (12.0, "at 100 steps")
    far: Any = Told(lambda s: 1000 / s.width)
    assert _count._least_width(far, Line(width_step=3), 1.0).value == 1002.0
    dip: Any = Told(lambda s: 0.5 if 10 <= s.width <= 20 or s.width >= 10**6 else 2.0)
    assert pair(_count._least_width(dip, Line(), 1.0)) == (
        10.0,
        "at 100 steps; not at width 21 any more",
    )
    floor: Any = Told(lambda s: 3 + 1 / s.width)
    value, note = pair(_count._least_width(floor, Line(), 1.0))
    assert value is None
    assert note == "at 100 steps no width brings the bound below 3"
    nowhere: Any = Told(lambda s: math.inf)
    assert _count._least_width(nowhere, Line(), 1.0).note == (
        "not applicable: width: 3 where at most 2 is allowed"
    )
    assert not _count._least_width(nowhere, Line(), 1.0).applies


def test_a_bound_that_is_not_finite_for_no_reason() -> None:
    nothing = Promised("toy/a", "printed", math.nan, ())
    assert _count._never("width", [nothing], "no width").note == "the bound is not finite"


def test_the_fewest_steps_use_the_theorem_s_own_step_size() -> None:
    promise: Any = Told(lambda s: 500 / s.steps if s.step_size == "default" else 0.0)
    value, note = pair(_count._fewest_steps(promise, Line(), 1.0))
    assert value == 500.0
    assert note == "at width 8, with the theorem's own step size"
    floor: Any = Told(lambda s: 2.0)
    assert pair(_count._fewest_steps(floor, Line(), 1.0)) == (
        None,
        "at width 8 no number of steps brings the bound below 2",
    )


def test_the_width_for_endlessly_many_steps() -> None:
    promise: Any = Told(lambda s: 10 / s.width + 4 / s.steps)
    value, note = pair(_count._width_with_free_steps(promise, Line(width_step=2), 1.0))
    assert value == 10.0
    assert note == "with endlessly many steps; at twice this width 8 suffice"
    step: Any = Told(lambda s: 10 / s.width if s.steps == 2**1000 and s.width < 15 else 9.0)
    assert "width none suffices" in _count._width_with_free_steps(step, Line(), 1.0).note
    floor: Any = Told(lambda s: 2 + 1 / s.width)
    note = _count._width_with_free_steps(floor, Line(), 1.0).note
    assert note == "with any number of steps no width brings the bound below 2"


def test_the_width_for_the_best_number_of_steps() -> None:
    """The longer the training, the more heads; the shorter, the larger the bound."""
    promise: Any = Told(lambda s: 100 / s.steps if s.width >= 10 * s.steps else math.inf)
    value, note = pair(_count._width_with_free_steps(promise, Line(), 1.0))
    assert value == 1000.0
    assert note == "with 100 steps, the number that asks for the fewest heads"
    growing: Any = Told(lambda s: s.steps / s.width)
    assert _count._width_with_free_steps(growing, Line(width_step=2), 1.0).value == 2.0
    never: Any = Told(lambda s: 3.0 * s.steps)
    note = _count._width_with_free_steps(never, Line(), 1.0).note
    assert note == "with any number of steps no width brings the bound below 3"


@pytest.mark.parametrize("variant", ["v2", "sharp"])
def test_steps_that_are_free_ask_for_no_more_heads_than_steps_that_are_given(variant: str) -> None:
    """Theorem 3 of deora2024 wants D, so heads, that grow with log K."""
    problem = TrainConfig.of({"model": "deora2024", "n": 20, "steps": 9})
    setting = papers["deora2024"].part("setting").of(problem, delta=0.05).resized(steps=2**80)
    promise = functools.partial(_count.promised, claims["deora2024/theorem-3"], variant)
    loss = 0.1
    given = _count._least_width(promise, setting.resized(step_size="default"), loss).value
    free = _count._width_with_free_steps(promise, setting, loss).value
    forever = setting.resized(steps=2**1000, step_size="default")
    endless = _count._least_width(promise, forever, loss).value
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

    assert _count._width_with_free_steps(Told(floor), Line(), 1.0).value is None  # type: ignore
    assert len(asked) == len(set(asked)) > 1000


def test_the_largest_step_size() -> None:
    promise: Any = Told(lambda s: 1.0 if s.step_size <= 0.3 else 2.0)
    value, note = pair(_count._largest_step(promise, Line(), 1.0))
    assert value == pytest.approx(0.3, rel=1e-12)
    assert value <= 0.3
    assert note == "at width 8, 100 steps"
    band: Any = Told(lambda s: 1.0 if 1e-3 < s.step_size <= 40 or s.step_size < 1e-6 else 2.0)
    assert _count._largest_step(band, Line(), 1.0).value == pytest.approx(40.0)
    always: Any = Told(lambda s: 1.0)
    assert _count._largest_step(always, Line(), 1.0).value == pytest.approx(1e6)
    tiny: Any = Told(lambda s: 1.0 if s.step_size < 1.5e-12 else 2.0)
    assert _count._largest_step(tiny, Line(), 1.0).value == pytest.approx(1.5e-12)
    floor: Any = Told(lambda s: 2.0)
    assert pair(_count._largest_step(floor, Line(), 1.0)) == (
        None,
        "no step size brings the bound below 2",
    )


def test_where_starts_are_drawn_fewer_widths_are_tried() -> None:
    drawn = type("Drawn", (), {"widest": 4096})()
    assert _count._grid_of(drawn) == _count.Grid(16, 1) != _count._grid_of(Line())
    assert [v for v in _count.Grid(16, 1).values() if 15 <= v <= 256] == [15, 16, 32, 64, 128, 256]
    assert [v for v in _count.Grid(64, 2).values() if 64 <= v <= 256] == [64, 90, 128, 181, 256]


def test_far_out_the_grid_has_one_value_per_octave() -> None:
    values = list(_count.Grid().values(5))
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


def promising(checks: tuple[Check, ...], rhs: float, trivial: float | None = None) -> Any:
    bound = Bound(rhs, trivial=trivial)
    return SimpleNamespace(id="toy/a", promise=lambda setting, variant: (bound, checks))


def test_a_promise_holds_where_every_hypothesis_does() -> None:
    fine, near, far = Check("a", 1.0, 2.0), Check("b", 3.0, 2.0), Check("c", 9.0, 2.0)
    setting: Any = None
    assert promised(promising((fine,), 5.0), "printed", setting).value == 5.0
    failing = promised(promising((fine, near, far), 5.0), "p", setting)
    assert (failing.value, failing.worst, failing.failing) == (math.inf, far, (near, far))
    for rhs in (math.nan, math.inf):
        assert promised(promising((fine,), rhs), "p", setting).value == math.inf


def test_the_room_for_rounding_is_no_room_for_an_answer() -> None:
    """Row 9: a hypothesis that is missed by 1e-12 holds on a run, and gives no least width."""
    missed = Check("a", 1.0 + 5e-13, 1.0)
    assert missed.holds
    assert promised(promising((missed,), 5.0), "printed", None).failing == (missed,)  # type: ignore


@pytest.mark.parametrize(("trivial", "vacuous"), [(None, False), (6.0, False), (5.0, True)])
def test_a_promise_above_what_is_known_is_vacuous(trivial: float | None, vacuous: bool) -> None:
    setting: Any = None
    assert promised(promising((), 5.0, trivial), "printed", setting).vacuous is vacuous
    assert not promised(promising((Check("a", 2.0, 1.0),), 5.0, trivial), "p", setting).vacuous


def test_a_target_above_what_is_known_is_marked() -> None:
    """Row 7."""
    for trivial, vacuous in ((1.0, True), (1.01, False)):
        promise: Any = Told(lambda s: 10 / s.width, trivial)
        found = _count._least_width(promise, Line(), 1.0)
        assert (found.trivial is not None) is vacuous
        assert ("vacuous: at most 1 is known without it" in found.note) is vacuous
        assert found.to_json()["vacuous"] is vacuous


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
        "printed": False,
        "taken": "",
        "applies": True,
        "trivial": None,
        "seeds": (),
        "per_seed": (),
        "vacuous": False,
    }


@pytest.mark.parametrize(("question", "searches"), [("width", 2), ("steps", 1), ("step-size", 1)])
def test_every_claim_is_asked(
    question: str, searches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    forms = {name: SimpleNamespace(role=role) for name, role in (("a", "statement"), ("b", "ours"))}
    claim: Any = SimpleNamespace(
        id="toy/a", promise=lambda setting, variant: (Bound(4.0 + (variant == "b")), ()),
        forms=forms, proviso="checked on one sample",
    )  # fmt: skip
    monkeypatch.setattr(_count, "claims_about", lambda p, q: [(claim, "a"), (claim, "b")])
    setting: Any = Line()
    found = _count.theorem_answers("toy", setting, 4.5, question)
    assert len(found) == 2 * searches
    assert [a.value is None for a in found] == [False] * searches + [True] * searches
    assert {a.beyond for a in found} == {None}
    assert all(a.printed is (a.variant == "a") for a in found)
    assert all(a.note.endswith("; checked on one sample") for a in found)  # row 3
    wide = type("Wide", (Line,), {"widest": 4096})()
    beyond = [a.beyond for a in _count.theorem_answers("toy", wide, 4.5, question)]
    missed = 4096.0 if question == "width" else None
    assert beyond == [None] * searches + [missed] * searches
    notes = [a.note for a in _count.theorem_answers("toy", wide, 4.5, question)]
    assert all(("then once per octave" in note) is (question == "width") for note in notes)
    for bad in ((0.0, question, "loss"), (1.0, "depth", "loss"), (1.0, question, "size")):
        with pytest.raises(BadArgument):
            _count.theorem_answers("toy", setting, *bad)


def test_which_claims_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(quantity: str | None, bound: Any, **variants: bool) -> Any:
        forms = {name: SimpleNamespace(fails=fails) for name, fails in variants.items()}
        return SimpleNamespace(quantity=quantity, bound=bound, variants=forms)

    good = made("loss", len, printed=False, wrong=True, measured=False, sharp=False)
    others = [made("gap", len, a=False), made("loss", None, a=False), made(None, len, a=False)]
    room = SimpleNamespace(of_paper=lambda paper: [good, *others])
    monkeypatch.setattr(_promise, "claims", room)
    assert list(_promise.claims_about("toy", "loss")) == [(good, "printed"), (good, "sharp")]
    assert list(_promise.claims_about("toy", "gap")) == [(others[0], "a")]


def answer(value: float | None, question: str = "width", note: str = "note") -> Answer:
    return Answer(question, "toy/a", "printed", value, note)


def test_answers_that_depend_on_the_seed_show_the_median_and_the_range() -> None:
    """Row 2: they used to be those of the first seed, unsaid."""
    one = [answer(9.0)]
    assert over_seeds({4: one}) == one
    (found,) = over_seeds({0: [answer(90.0)], 3: [answer(None)], 5: [answer(7.0)]})
    assert (found.value, found.seeds) == (90.0, (0, 3, 5))
    assert found.per_seed == (90.0, None, 7.0)
    assert found.note == "note; median of seeds 0, 3, 5: 7 to never"
    (worse,) = over_seeds({0: [answer(90.0)], 1: [answer(7.0)]})
    assert worse.value == 90.0  # of two in the middle the worse: half of them can do with it
    steps = [answer(value, "step-size") for value in (0.1, 0.4, 0.2)]
    (step,) = over_seeds(dict(enumerate([one] for one in steps)))
    assert (step.value, step.note) == (0.2, "note; median of seeds 0, 1, 2: 0.4 to 0.1")
    (same,) = over_seeds({0: [answer(7.0)], 1: [answer(7.0)]})
    assert same.note == "note; so for each of seeds 0, 1"
    unlike = {seed: [answer(None, note=f"norm {seed}")] for seed in (4, 2, 7)}
    (never,) = over_seeds(unlike)  # the numbers of one seed are not those of each
    assert never.note == "norm 4; so for seed 4, with other numbers for seeds 2, 7"


def test_ends_of_ranges_are_told() -> None:
    """Row 8."""
    always: Any = Told(lambda s: 1.0)
    assert "the end of the range that is searched" in _count._largest_step(always, Line(), 1.0).note
    inside: Any = Told(lambda s: 1.0 if s.step_size <= 0.3 else 2.0)
    assert "end of the range" not in _count._largest_step(inside, Line(), 1.0).note
    value, note = _practice._search_step_size(lambda eta: True)
    assert (value, note.startswith("the end of the range that is searched")) == (1e4, True)


def test_a_theorem_with_one_step_size_says_so() -> None:
    """Row 1: with another step size it promises nothing, and no number is filed under it."""
    own: Any = Told(lambda s: 0.5 if s.step_size == "default" else math.inf)
    found = _count._largest_step(own, Line(), 1.0)
    assert (found.value, found.applies, found.shown) == (None, False, "-")
    assert found.note == "the theorem has one step size of its own: its bound is 0.5"
