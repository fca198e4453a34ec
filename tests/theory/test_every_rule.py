"""Every rule of the ball interpreter, on random programs that contain its primitive."""

from __future__ import annotations

import zlib

import jax
import numpy as np
import pytest
from jax import lax
from programs import CALLS, box_of, enclosure, faults, known_primitives
from programs_composed import chains
from programs_control import GENERATORS as CONTROL
from programs_elementwise import GENERATORS as ELEMENTWISE
from programs_indexing import GENERATORS as INDEXING
from programs_structure import GENERATORS as STRUCTURE

from headcount.theory.balls import RULES

GENERATORS = {**ELEMENTWISE, **STRUCTURE, **INDEXING, **CONTROL}


NEWER = ("one_minus_square", "log2", "polynomial")
MISSING_HERE = {name for name in NEWER if not hasattr(lax, name)}
"""Primitives of a newer JAX than this one."""
OTHER_NAMES = {
    **{"copy_p": "copy", "pjit": "jit", "checkpoint": "remat2"},
    **dict.fromkeys(("closed_call", "core_call"), "jit"),
    "custom_lin": "custom_jvp_call",
}
"""Names that other versions of JAX give to a primitive."""


def seeded(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def test_every_rule_has_a_generator() -> None:
    assert known_primitives() - set(OTHER_NAMES) - MISSING_HERE == set(GENERATORS)
    for other, name in OTHER_NAMES.items():
        assert RULES.get(other) is RULES.get(name)
        assert CALLS.get(other) in (CALLS.get(name), "call_jaxpr")


@pytest.mark.parametrize("name", GENERATORS)
def test_a_rule_holds_what_its_primitive_computes(name: str) -> None:
    rng = seeded(name)
    assert faults(list(GENERATORS[name](rng)), rng, name) == []


def test_chains_of_five_rules_are_enclosed() -> None:
    """At a point beside JAX's value; on a box, around the points in it."""
    rng, enclosed = seeded("chains"), 0
    for program in chains(list(GENERATORS.values()), rng, 6):
        closed, by_jax = (
            jax.make_jaxpr(program.function)(*program.arguments),
            jax.jit(program.function),
        )
        box = enclosure(closed, [box_of(*program.ends(x)) for x in program.arguments])
        for point in program.points(rng):
            ball = enclosure(closed, [box_of(x, x) for x in point])
            floats = np.asarray(by_jax(*point))
            assert ball is not None
            middles = np.array([float(entry.mid()) for entry in ball[0].array])
            np.testing.assert_allclose(middles, floats, rtol=1e-6, atol=1e-6)
            inside = zip(box[0].array, ball[0].array, strict=True) if box else ()
            assert all(b.overlaps(p) or not b.is_finite() for b, p in inside)
        enclosed += box is not None and all(entry.is_finite() for entry in box[0].array)
    assert enclosed >= 3
