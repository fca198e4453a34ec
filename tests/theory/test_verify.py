"""Verification on a whole domain: proved, false with a point, or open with a share."""

from __future__ import annotations

import json

import jax.numpy as jnp
import numpy as np
import pytest

from headcount.cli import run
from headcount.core import BadArgument
from headcount.theory import (
    Ball,
    Box,
    Integers,
    Reals,
    Signs,
    Size,
    _verify,
    equality,
    facts,
    given,
    lemma,
    recorded_answers,
    verify,
)


@lemma(y=Box(low=-1, high=1))
def touches_inside(y):
    """2|y|(1 - y^2) <= 4/(3 sqrt 3), with equality at 1/sqrt 3."""
    return 2 * jnp.abs(y) * (1 - y**2), 4 / (3 * jnp.sqrt(3.0))


@lemma(y=Box(low=-1, high=1))
def slightly_false(y):
    """2|y|(1 - y^2) <= 0.769: false by one part in a thousand."""
    return 2 * jnp.abs(y) * (1 - y**2), 0.769


@lemma(x=Box(low=0, high=8))
def touches_on_a_face(x):
    """x/(1 + x) <= log(1 + x), to second order at zero."""
    return x / (1 + x), jnp.log1p(x)


@lemma(x=Ball(2), s=Signs(), k=Integers(low=1, high=3))
def mixed(x, s, k):
    """s k x_1 x_2 <= 1.6 for |x| <= 1."""
    return s * k * x[0] * x[1], 1.6


@lemma(given("half", lambda x: x, 0.5), x=Box(low=0, high=1))
def with_a_hypothesis(x):
    """x <= 0.6 where x <= 1/2."""
    return x, 0.6


@lemma(x=Box(low=0, high=1), y=Box(low=0, high=1))
def never_decided(x, y):
    """sin <= sin, to be seen to be equal by nobody who computes."""
    return jnp.sin(x + y), jnp.sin(x) * jnp.cos(y) + jnp.cos(x) * jnp.sin(y)


def test_the_three_answers():
    assert verify(touches_inside).message.startswith("proved up to a factor 1 + 1e-09")
    found = verify(slightly_false)
    assert found.answer == "false"
    assert found.sides[0] > found.sides[1] == pytest.approx(0.769)
    assert slightly_false(found.instance["y"])[0] > 0.769
    exact = verify(touches_on_a_face)
    assert (exact.answer, exact.touching) == ("proved", False)
    assert exact.message == "proved on the whole domain"
    left = verify(never_decided, boxes=60, tolerance=0.0)
    assert left.answer == "open"
    assert 0 < left.open_share <= 1
    assert "of the domain is not decided" in left.message


def test_other_spaces_and_hypotheses():
    assert verify(mixed).answer == "proved"
    assert verify(with_a_hypothesis).answer == "proved"


def test_what_cannot_be_verified_is_told():
    declared = {
        "7 real variables": lemma(x=Box(7))(lambda x: (jnp.sum(x), 9.0)),
        "in Reals, which verify cannot cover": lemma(x=Reals())(lambda x: (x, 9.0)),
        "is an equality": equality(x=Box())(lambda x: (x, x)),
        "too many": lemma(x=Box(), n=Integers(6, low=0, high=9))(lambda x, n: (x, 9.0)),
        "sizes": lemma(x=Box(Size("n", 1, 5000)))(lambda x: (jnp.sum(x), 9.0)),
    }
    for problem, own in declared.items():
        with pytest.raises(BadArgument, match=problem):
            verify(own)


def test_every_fact_of_the_papers_is_proved_and_on_file():
    answers = recorded_answers()
    assert len(answers) == 15
    assert {name.split("/")[0] for name in answers} == {"arda2026", "deora2024", "wu2023"}
    for name, lemma_of_paper in facts.items():
        assert answers[name] == verify(lemma_of_paper).answer == "proved", name


@pytest.mark.parametrize("name", list(facts))
def test_a_fact_is_as_tight_as_it_says(name: str) -> None:
    """Its sides nearly meet on a grid of its box: no constant in it can be larger unnoticed."""
    boxes = [box for box in facts[name].variables.values() if isinstance(box, Box)]
    count = int(2e4 ** (1 / len(boxes)))
    axes = [np.linspace(np.max(box.low), np.min(box.high), count) for box in boxes]
    points = [np.ravel(axis) for axis in np.meshgrid(*axes)]
    left, right = (np.broadcast_to(side, points[0].shape) for side in facts[name](*points))
    there = right > 1e-9
    assert 0.97 <= np.max(left[there] / right[there]) <= 1 + 1e-12


def test_balls_look_at_little_of_what_intervals_can_decide(monkeypatch):
    looked, look = [], _verify._Search._look

    def counted(self, cell, box=None):
        looked.append(box)
        return look(self, cell, box)

    monkeypatch.setattr(_verify._Search, "_look", counted)
    found = verify(facts["arda2026/third-moment-two-tokens"])
    assert found.answer == "proved"
    assert looked.count(None) < found.boxes / 8  # the others are faces


def test_a_fact_made_false_is_found_out():
    wrong = facts["arda2026/third-moment-32-27"].function
    found = verify(lemma(s=Box(low=-4, high=4))(lambda s: (wrong(s)[0], 31.9)))
    assert found.answer == "false"


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    head = "from headcount.theory import Box, Constants, lemma\n"
    head += "@lemma(p=Box(low=0, high=1), c=Constants(right=0.25, wrong=0.2))\n"
    (tmp_path / "mine.py").write_text(head + "def f(p, c): return p * (1 - p), c\n")
    assert run(["verify", "mine.py:f", "--variant", "right", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answer"] == "proved"
    assert run(["verify", "mine.py"]) == 3
    assert "mine.py:f (wrong): false: 0.25 > 0.2 at p=0.5" in capsys.readouterr().out
    assert run(["verify", "arda2026/sigma-2-tanh"]) == 0
    assert run(["verify", "arda2026/sigma-2-tan"]) == 2
    assert "arda2026/sigma-2-tanh" in capsys.readouterr().err


@lemma(x=Box(low=0, high=1))
def false_by_very_little(x):
    """sin x <= x - x^3/6 + (1 - 1e-7) x^5/120."""
    return jnp.sin(x), x - x**3 / 6 + (1 - 1e-7) * x**5 / 120


def test_sides_that_float64_cannot_tell_apart_are_told_apart():
    found = verify(false_by_very_little)
    assert found.answer == "false"
    assert found.sides[0] == found.sides[1]
    assert " exceeds " in found.message
    assert float(found.excess) > 0
