"""Conditions (2) and (3): the start at any width, the best C_*, and what the setting promises."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize

from headcount.core import BadArgument, float64, stream
from headcount.models import initialisations
from headcount.papers.wu2023 import setting as module
from headcount.papers.wu2023.constants import Constants, Norms
from headcount.papers.wu2023.model import Encoder, output_scale, softmax_scale
from headcount.papers.wu2023.runs import Run
from headcount.papers.wu2023.setting import Setting, Start, best_room, measure_start, ratios_at
from headcount.papers.wu2023.twins import SlowConstants
from headcount.theory import claims, theorem_answers
from headcount.theory.slow import FLOATS
from headcount.training import TrainConfig


def as_lists(point: Any) -> dict[str, Any]:
    """A point for slow arithmetic: nested lists of floats."""
    fields = {name: np.asarray(getattr(point, name)).tolist() for name in point.spaces}
    return fields | {name: getattr(point, name) for name in point.statics}


def start(width: int, *, n: int = 3, T: int = 2, d: int = 4, init: str = "lecun") -> Start:
    rng = np.random.default_rng(2)
    model = Encoder(d, width, softmax_scale("ntk", width), output_scale(init, width), "mean")
    x, y = rng.normal(size=(n, T, d)) / math.sqrt(d), rng.normal(size=n)
    return measure_start(model, initialisations[init](model, 0), x, y)


def test_the_start_is_what_dense_algebra_says(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    model = Encoder(4, 37, 0.3, 0.8, "mean")
    params = initialisations["ntk"](model, 4)
    x, y = rng.normal(size=(5, 3, 4)), rng.normal(size=5)
    monkeypatch.setattr(module, "CHUNK", 10)
    found = measure_start(model, params, x, y)
    F = np.stack([np.asarray(model.features(params, one)) for one in x])
    np.testing.assert_allclose(found.alpha, np.linalg.svd(F)[1][-1], rtol=1e-9)
    np.testing.assert_allclose(found.loss, np.sum((F @ params.w_O - y) ** 2) / 2, rtol=1e-12)
    dense = [*(np.linalg.norm(W, 2) for W in params[:3]), np.linalg.norm(params.w_O)]
    np.testing.assert_allclose(found.norms, dense, rtol=1e-12)
    largest = max(np.linalg.norm(one) for one in x)
    np.testing.assert_allclose(found.sizes.C_x, largest / math.sqrt(3), rtol=1e-12)
    assert found.sizes.tau1 == pytest.approx(0.8 / 3)


def test_fewer_units_than_samples_have_alpha_zero_and_no_residual_is_taken() -> None:
    assert start(2).alpha == 0
    assert best_room(start(2)).worst == math.inf
    model = Encoder(2, 4, 0.5, 1.0, "sum", residual=True)
    x, y = np.ones((2, 1, 2)), np.ones(2)
    with pytest.raises(BadArgument, match="residual"):
        measure_start(model, initialisations["lecun"](model, 0), x, y)


@pytest.mark.parametrize("form", ["printed", "corrected"])
def test_constants_agree_with_their_twin(form: str) -> None:
    family = Run.families()[0]
    for seed in range(20):
        run = family.sample(stream(seed, "wu2023"))
        slow = SlowConstants(as_lists(run), form, FLOATS)
        with float64():
            k = Constants(run, form)
            for name in ("rho", "z14", "c1", "c2", "c3", "C", "alpha", "promised"):
                fast = np.asarray(getattr(k, name))
                np.testing.assert_allclose(getattr(slow, name), fast, rtol=1e-9, err_msg=name)


def test_the_conditions_of_a_start_are_those_printed() -> None:
    """(2) and (3) in plain arithmetic."""
    here, room = start(16), Norms(0.3, 0.5, 0.7, 1.1)
    s, Q, K, V, w = here.sizes, *(here.norms + room)
    S, size = s.d_s * s.C_x**2, math.sqrt(2 * here.loss)
    rho = math.sqrt(s.N) * s.d_s**1.5 * s.tau1 * s.C_x
    flow = 2 * s.tau0 * S * V * w
    worst = max(V / room.O, w / room.V, flow * K / room.Q, flow * Q / room.K)
    z = w**2 * (1 + 4 * (s.tau0 * S * V) ** 2 * (Q**2 + K**2))
    second, third = ratios_at(here, room)
    assert second == pytest.approx(8 * rho * worst * size / here.alpha**2, rel=1e-12)
    assert third == pytest.approx(32 * rho**2 * z / w * size / here.alpha**3, rel=1e-12)


@pytest.mark.parametrize(("width", "init"), [(16, "lecun"), (512, "lecun"), (64, "ntk")])
def test_no_other_C_is_better_than_the_best(width: int, init: str) -> None:
    here = start(width, init=init)
    best = best_room(here)
    assert best.worst == max(ratios_at(here, best.C))

    def worst(u: Any) -> float:
        return math.log(max(ratios_at(here, Norms(*np.exp(u)))))

    rng = np.random.default_rng(width)
    for _ in range(3):
        free = scipy.optimize.minimize(
            worst, rng.normal(size=4), method="Nelder-Mead", options={"maxiter": 3000}
        )
        assert math.log(best.worst) <= free.fun + 1e-6
    around = np.log(best.C) + rng.normal(size=(200, 4)) * 0.05
    assert min(worst(u) for u in around) >= math.log(best.worst) - 1e-7


def toy(width: int, **changes: Any) -> Setting:
    values = {
        "model": "wu2023",
        "n": 1,
        "width": width,
        "seeds": (0,),
        "data_options": {"T": 1, "d": 1},
        "model_options": {"pooling": "sum", "scaling": "ntk"},
        **changes,
    }
    return Setting.of(TrainConfig.of(values), delta=0.05)


def test_the_required_width_is_where_the_conditions_begin_to_hold() -> None:
    found = toy(4).required_width(factor=4)
    assert found.width is not None
    *before, (width, ratio) = found.tried
    assert (width, ratio <= 1) == (found.width, True)
    assert all(worst > 1 for _, worst in before)
    assert [w for w, _ in found.tried] == [4**k for k in range(len(found.tried))]
    # What (4) promises there is kept by the run itself; the promise is for gamma = 1/C.
    setting = toy(width)
    bound, checks = claims["wu2023/proposition-1"].promise(setting, "corrected")
    assert all(check.holds for check in checks)
    decay = 1 - setting.step("corrected") * setting.start.alpha**2 / 2
    assert bound.rhs == pytest.approx(decay**400 * setting.start.loss, rel=1e-9)


def test_a_step_that_is_too_long_promises_nothing() -> None:
    setting = toy(4096, eta=1e3)
    _, checks = claims["wu2023/proposition-1"].promise(setting, "corrected")
    assert [check.name for check in checks if not check.holds] == ["gamma C"]
    assert setting.resized(step_size="default").step("corrected") < 1


def test_losses_are_multiples_of_the_papers() -> None:
    half, mean = toy(8, n=2), toy(8, n=2, loss="mean-squared", eta=0.5)
    assert mean.gamma == 0.5 * 2 / 2
    assert mean.loss_scale * 2 == 2 * half.loss_scale
    with pytest.raises(BadArgument, match="loss"):
        toy(8, loss="logistic")


def test_counting_finds_the_width_and_never_draws_too_much() -> None:
    setting = toy(4096, steps=2000)
    answers = theorem_answers("wu2023", setting, 0.5 * setting.start.loss, "steps")
    assert {answer.variant for answer in answers} == {"corrected", "quarter"}
    steps = {answer.variant: answer.value for answer in answers}
    rate = setting.step("corrected") * setting.start.alpha**2
    assert steps["corrected"] == math.ceil(math.log(0.5) / math.log1p(-rate / 2))
    assert steps["quarter"] == math.ceil(math.log(0.5) / math.log1p(-rate / 4))
    wide = toy(64, n=200, data_options={"T": 5, "d": 20})
    assert wide.resized(width=2**60).start is wide.resized(width=wide.widest).start
