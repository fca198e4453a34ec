"""Sizes are part of a lemma's domain: nobody searches, shrinks, judges or rechecks outside them."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.theory import (
    Box,
    Budget,
    Certificate,
    Outcome,
    Parameters,
    Product,
    Reals,
    Size,
    Tokens,
    certify,
    falsify,
    judge,
    lemma,
    recheck,
    verify,
)
from headcount.theory._candidates import size_plan
from headcount.theory._prove import prove
from headcount.theory._record import family_at, sizes_of
from headcount.theory._shrink import shrink

LITTLE = Budget(random=48, restarts=4, steps=20)
T, few, m = Size("T", 3, 8), Size("T", 3, 4), Size("m", 2, 6)


@lemma(x=Box(T, low=0, high=1))
def few_entries(x):
    """The sum of at most 8 entries in [0, 1] is at most 8."""
    return jnp.sum(x), 8.0


@lemma(x=Box(few, low=0, high=1), y=Box(few, low=0, high=1))
def twice_too_large(x, y):
    """sum x <= (sum x)/2: false at every size."""
    return jnp.sum(x) + 0 * jnp.sum(y), jnp.sum(x) / 2


def forged(size: int) -> Certificate:
    """A certificate whose numbers are right, of an instance that the lemma does not speak of."""
    claimed = {"lhs": float(size), "rhs": 8.0, "ratio": size / 8}
    return Certificate(few_entries.id, "stated", "instance", claimed, {"x": np.ones(size)})


@pytest.mark.parametrize("size", [1, 2, 9, 50])
def test_a_certificate_outside_the_declared_sizes_is_refused(size: int) -> None:
    with pytest.raises(BadArgument, match=f"T = {size} is not from 3 to 8"):
        recheck(forged(size), few_entries)


@pytest.mark.parametrize("size", [2, 9])
def test_nothing_is_judged_or_proved_outside_the_declared_sizes(size: int) -> None:
    with pytest.raises(BadArgument, match=f"T = {size} is not from 3 to 8"):
        few_entries.instance(x=np.ones(size))
    unchecked = few_entries.instance_class(x=jnp.ones(size))  # of JAX arrays, as a search has them
    verdict = judge(few_entries, unchecked)
    assert verdict.outcome is Outcome.NOT_APPLICABLE
    assert f"T = {size} is not from 3 to 8" in verdict.message
    assert prove(few_entries, "stated", unchecked).refuted
    with pytest.raises(BadArgument, match=f"T = {size} is not from 3 to 8"):
        verify(few_entries, sizes={"T": size})


def test_one_letter_is_one_size() -> None:
    with pytest.raises(BadArgument, match="where T is 3"):
        twice_too_large.instance(x=np.ones(3), y=np.ones(4))


def test_shrinking_and_search_stay_inside_the_declared_sizes() -> None:
    small = shrink(twice_too_large, "stated", twice_too_large.instance(x=np.ones(4), y=np.ones(4)))
    assert sizes_of(small) == {"T": 3}
    found = falsify(twice_too_large, budget=LITTLE)
    assert found.proved
    assert found.sizes == {"T": 3}
    assert recheck(found.certificate, twice_too_large).confirmed


@lemma(start=Parameters("arda2026", 2, 2, m, radius=0.5), X=Tokens(2, 2))
def paired_heads(start, X):
    """|f(X)| <= 0.1 within 1/2 of the paired start: false."""
    return jnp.abs(start.model(start.params, X)), 0.1


def test_widths_are_those_that_the_model_takes() -> None:
    spaces = paired_heads.variables.values()
    assert size_plan({"m": m}, spaces) == [{"m": 2}, {"m": 6}, {"m": 4}]
    assert size_plan({"m": Size("m", 1, 5)}, spaces) == [{"m": 2}, {"m": 4}]
    tokens, both = Size("T", 1, 2), Size("m", 2, 3)
    assert size_plan({"T": tokens, "m": both}, spaces) == [{"T": 1, "m": 2}, {"T": 2, "m": 2}]
    odd = Parameters("arda2026", 2, 2, Size("m", 3, 3))
    with pytest.raises(BadArgument, match="must be even"):
        lemma(start=odd)(lambda start: (0, 1))
    lowest = Parameters("arda2026", 2, 2, Size("m", 1, 6))
    assert lowest.blocks == Parameters("arda2026", 2, 2, 2).blocks
    pair = Product(Reals(2), lowest)
    assert "must be even" in str(pair.refuses({"m": 5}))
    assert pair.refuses({"m": 6}) is None


def test_a_search_over_widths_ends_with_a_proof() -> None:
    own = Parameters("arda2026", 1, 1, Size("m", 2, 3), radius=0.5)
    odd_between = lemma(start=own)(lambda start: (jnp.sum(start.params.U**2), 0.0))
    found = falsify(odd_between, budget=LITTLE)
    assert [row.sizes for row in found.per_size] == [{"m": 2}]
    assert found.proved


def large_output(width: int) -> Certificate:
    """A counterexample to `paired_heads` of one width, by draws alone."""
    family = family_at(paired_heads.on, {"m": width})
    drawn = family.draw(np.random.default_rng(0), 60)
    ones = [jax.tree.map(lambda leaf, k=k: leaf[k], drawn) for k in range(60)]
    worst = max(ones, key=lambda one: judge(paired_heads, one).ratio)
    return certify(paired_heads, worst, "stated")


def test_a_width_must_be_that_of_the_parameters() -> None:
    honest = large_output(4)
    for size, problem in ((2, "block c has shape"), (5, "must be even"), (8, "not from 2 to 6")):
        other = dataclasses.replace(honest, instance={**honest.instance, "size_m": size})
        with pytest.raises(BadArgument, match=problem):
            recheck(other, paired_heads)


RECHECKS = """
import sys
from headcount.theory import recheck
from headcount.theory.lemma_files import lemmas_of
(own,) = lemmas_of(sys.argv[1] + ":paired_heads")
for name in sys.argv[2:]:
    print(recheck(name, own).message)
"""


def test_certificates_over_parameters_are_rechecked_in_a_new_process(tmp_path: Path) -> None:
    files = [large_output(width).write(tmp_path / f"{width}.json") for width in (6, 4, 2)]
    command = [sys.executable, "-c", RECHECKS, __file__, *map(str, files)]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    lines = printed.stdout.splitlines()
    assert len(lines) == 3
    assert all(line.startswith("the violation is proved") for line in lines), printed.stdout


def test_the_start_is_the_same_in_either_precision_and_inside_a_trace() -> None:
    drawn = {}
    for wide in (False, True):
        space = Parameters("arda2026", 2, 2, 4)
        with jax.enable_x64(wide):
            inside = jax.jit(lambda space=space: space.start({})[1].U)()
        drawn[wide] = np.asarray(inside), space.start({})[1].U
    np.testing.assert_array_equal(drawn[True][1], drawn[False][1])
    np.testing.assert_array_equal(drawn[True][0], drawn[True][1])
