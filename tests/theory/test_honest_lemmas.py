"""What a lemma must not hide: vectors without an enclosure, float32 constants, another program."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.theory import (
    Box,
    Budget,
    Reals,
    certify,
    falsify,
    lemma,
    recheck,
    verify,
)
from headcount.theory.lemma_files import lemmas_of

LITTLE = Budget(random=64, restarts=2, steps=20)


@lemma(B=Reals(2, 2))
def entry_of_an_eigenvector(B):
    """|v_1| <= 1/2 for a unit eigenvector v: false by a factor of two."""
    return jnp.abs(jnp.linalg.eigh(B + B.T)[1][0, 0]), 0.5


def davis_kahan(constant: float) -> Any:
    """gap sin(angle) <= c |E| for the first eigenvector of A and of A + E."""

    @lemma(B=Reals(2, 2), D=Reals(2, 2))
    def turned(B, D):
        A, E = B + B.T, D + D.T
        (low, high), first = jnp.linalg.eigh(A)
        second = jnp.linalg.eigh(A + E)[1][:, 0]
        apart = second - (second @ first[:, 0]) * first[:, 0]
        return (high - low) * jnp.linalg.norm(apart), constant * jnp.linalg.norm(E)

    return turned


@lemma(a=Box(low=0, high=1), b=Box(low=0, high=1))
def on_a_box(a, b):
    """|v_1| <= 1/2 on a bounded domain."""
    return jnp.abs(jnp.linalg.eigh(jnp.array([[a, b], [b, 1.0]]))[1][0, 0]), 0.5


@pytest.mark.parametrize(
    ("own", "least"), [(entry_of_an_eigenvector, 1.9), (davis_kahan(0.5), 1.3)]
)
def test_a_violation_without_an_enclosure_is_told_and_not_proved(own: Any, least: float) -> None:
    found = falsify(own, budget=LITTLE)
    assert (found.violated, found.proved, found.certificate) == (True, False, None)
    assert found.worst_ratio > least
    assert "not proved: jaxpr: eigh: eigenvectors cannot be enclosed" in found.message
    assert found.to_json()["proved"] is False
    # Nor does a certificate of it, made by hand, prove anything.
    checked = recheck(certify(own, found.worst, "stated"), own)
    assert (checked.confirmed, str(checked.status)) == (False, "undecided")
    assert "eigenvectors cannot be enclosed" in checked.message


def test_rounding_of_eigenvectors_accuses_no_true_lemma() -> None:
    """With E = 0 float64 sees an angle of 1e-8 against a right side of zero."""
    found = falsify(davis_kahan(1.5), budget=LITTLE)
    assert not found.violated
    assert 0.5 < found.worst_ratio < 0.95  # sqrt(2)/1.5


def test_verify_names_what_it_cannot_enclose() -> None:
    found = verify(on_a_box)
    assert found.message == "open: cannot be enclosed: eigh: eigenvectors cannot be enclosed"


def test_slopes_through_eigenvectors_are_done_without() -> None:
    """Eigenvalues are enclosed; their slopes are made of eigenvectors."""
    own = lemma(a=Box(low=1, high=2))(
        lambda a: (jnp.linalg.eigvalsh(jnp.array([[a, 0.0], [0.0, 3.0]]))[0], 2.5)
    )
    assert verify(own).answer == "proved"


def test_a_side_that_balls_do_not_hold_is_not_dropped_as_rounding() -> None:
    """arccos of a quotient that is 1: no ball around it lies where arccos is defined."""

    @lemma(x=Box(low=1, high=2))
    def angle(x):
        return 1 + jnp.arccos((x + 0.1) / (x + 0.1)), 0.5

    found = falsify(angle, budget=LITTLE)
    assert (found.violated, found.proved) == (True, False)
    assert found.worst_ratio == pytest.approx(2)
    assert "cannot be enclosed: the left side is not finite" in found.message


def test_a_ratio_of_zero_is_said_of_a_left_side_that_is_zero_and_of_no_other() -> None:
    tiny = lemma(x=Box(low=1, high=2))(lambda x: (jnp.exp(-900.0 * x), 1.0))
    nothing = lemma(x=Box(low=1, high=2))(lambda x: (0.0 * x, 1.0))
    rounding = lemma(x=Box(low=1, high=2))(
        lambda x: (jnp.abs(jnp.sin(x) ** 2 + jnp.cos(x) ** 2 - 1), 0.0 * x)
    )
    for own, zero in ((nothing, True), (tiny, False), (rounding, False)):
        found = falsify(own, budget=LITTLE)
        assert not found.violated
        assert ("worst ratio 0 " in found.message) is zero
        assert (found.per_size[0].shown == "worst ratio 0") is zero


FILE = """
import random
import jax, jax.numpy as jnp, numpy as np
from headcount.theory import Box, Constants, given, lemma

C = float(2 / jnp.sqrt(jnp.pi))
HALF, SIXTH = float(np.float32(0.5)), float(np.float32(1 / 6))
calls = []

@lemma(x=Box(low=0, high=1))
def slope_of_erf(x):
    return jax.lax.erf(x), C * x

@lemma(x=Box(low=0, high=1))
def short(x):
    return HALF * x, 0.75

@lemma(x=Box(low=0, high=1))
def named(x):
    return SIXTH * x, 1.0

@lemma(x=Box(low=0, high=1))
def inside(x):
    half = x / 2
    return half, 1.0 + float(np.float32(0.7)) * half

@lemma(x=Box(low=0, high=1), c=Constants(bad=float(np.float32(1.7)), fine=1.7))
def declared(x, c):
    return x, c

@lemma(given("small", lambda x: x, float(np.float32(0.7))), x=Box(low=0, high=1))
def given_one(x):
    return x, 1.0

@lemma(x=Box(low=0, high=1))
def at_random(x):
    return x, 1.0 + random.random()

@lemma(x=Box(low=0, high=1))
def counting(x):
    calls.append(x)
    return x, 1.0 * len(calls)

@lemma(given("any", lambda x: x + random.random(), 9.0), x=Box(low=0, high=1))
def under_a_random_hypothesis(x):
    return x, 1.0
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The lemmas of FILE by name."""
    file = tmp_path_factory.mktemp("lemmas") / "mine.py"
    file.write_text(FILE)
    return {own.function.__name__: own for own in lemmas_of(str(file))}


DECIDE: list[Any] = [verify, functools.partial(falsify, budget=LITTLE)]


def line(text: str) -> int:
    return 1 + next(k for k, own in enumerate(FILE.splitlines()) if text in own)


def test_a_file_is_loaded_in_float64(written: dict[str, Any]) -> None:
    assert float(written["slope_of_erf"](1.0)[1]) == 2 / np.sqrt(np.pi)
    assert not falsify(written["slope_of_erf"], budget=LITTLE).violated
    assert verify(written["short"]).answer == "proved"  # 0.5 is itself in any precision


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("named", "HALF, SIXTH ="),
        ("inside", "1.0 + float(np.float32(0.7))"),
        ("declared", "c=Constants"),
        ("given_one", 'given("small"'),
    ],
)
def test_a_constant_that_was_a_float32_is_refused_with_its_line(
    written: dict[str, Any], name: str, made: str
) -> None:
    words = f"has passed through float32 in line {line(made)} of mine.py"
    for decide in DECIDE:
        with pytest.raises(BadArgument, match=words):
            decide(written[name])


def test_the_same_form_in_float64_is_fine(written: dict[str, Any]) -> None:
    assert verify(written["declared"], "fine").answer == "proved"


def test_a_constant_of_a_session_in_float32_is_refused() -> None:
    with jax.enable_x64(False):
        constant = float(2 / jnp.sqrt(jnp.pi))
    own = lemma(x=Box(low=0, high=1))(lambda x: (x, 1 + constant))
    here = own.function.__code__.co_firstlineno
    for decide in DECIDE:
        with pytest.raises(BadArgument, match=f"has passed through float32 in line {here} of"):
            decide(own)


@pytest.mark.parametrize("name", ["at_random", "counting", "under_a_random_hypothesis"])
def test_a_lemma_that_changes_from_call_to_call_is_refused(
    written: dict[str, Any], name: str
) -> None:
    own = written[name]
    certificate = certify(own, own.instance(x=0.5), "stated")
    for decide in (*DECIDE, lambda own: recheck(certificate, own)):
        with pytest.raises(BadArgument, match="is not the same program each time that it runs"):
            decide(own)
