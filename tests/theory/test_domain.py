"""Domains and shapes: what is an instance at all, to the last boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from jaxtyping import Float

from headcount.core import Array, BadArgument
from headcount.theory import claims, instance_class
from headcount.theory.domain import (
    MOST_ENTRIES,
    MOST_HEADS,
    Domain,
    arrays_of,
    axes_of,
    case_problem,
    instance_from,
)


@instance_class
@dataclass(frozen=True)
class Heads(Domain):
    """Some heads, a radius, a fraction, a count."""

    U: Float[Array, "m d"]
    V: Float[Array, "d d"]
    rho: Float[Array, "3"]
    delta: Float[Array, ""]
    activation: str = "tanh"
    tau: int = 1

    positive = ("rho",)
    fractions = ("delta",)
    ranges = (("d", 1, 998), ("tau", 1, 10**6))

    def outside(self) -> str | None:
        """U must not start with 7."""
        return "it starts with 7" if self.U[0, 0] == 7 else None


def fields(**changes: Any) -> dict[str, Any]:
    usual = {
        "U": np.ones((2, 3)),
        "V": np.ones((3, 3)),
        "rho": np.ones(3),
        "delta": np.array(0.5),
        "activation": "tanh",
        "tau": 1,
    }
    return {**usual, **changes}


def problem(**changes: Any) -> str | None:
    """What the constructor says, or None."""
    try:
        Heads(**fields(**changes))
    except BadArgument as error:
        return str(error)
    return None


def test_an_instance_inside_its_domain() -> None:
    assert problem() is None
    assert problem(U=np.ones((10**4, 3))) is None
    instance = Heads(**fields())
    assert instance.problem() is None
    assert instance.sigma.sigma1 == 1.0
    assert problem(rho=np.full(3, 5e-324)) is None
    assert problem(delta=np.array(1 - 2**-53)) is None
    assert problem(tau=10**6) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rho": np.array([1.0, 0.0, 1.0])}, "must be positive"),
        ({"rho": np.array([1.0, -1.0, 1.0])}, "must be positive"),
        ({"rho": np.ones(2)}, "rho has shape"),
        ({"delta": np.array(0.0)}, "must be positive"),
        ({"delta": np.array(1.0)}, "must be below 1"),
        ({"delta": np.ones(2)}, "delta has shape"),
        ({"U": np.ones((2, 4))}, "where d is 4"),
        ({"U": np.ones((0, 3))}, "U has shape"),
        ({"U": np.ones(3)}, "U has shape"),
        ({"V": np.ones((3, 2))}, "V has shape"),
        ({"U": np.array([[1.0, np.nan, 1.0]])}, "not finite"),
        ({"V": np.full((3, 3), np.inf)}, "not finite"),
        ({"U": np.full((1, 3), 7.0)}, "it starts with 7"),
        ({"U": np.ones((2, 999)), "V": np.ones((999, 999))}, "d = 999 is not from 1 to 998"),
        ({"tau": 10**6 + 1}, "tau = 1000001 is not from 1 to 1000000"),
        ({"tau": 0}, "at least 1"),
        ({"tau": True}, "at least 1"),
        ({"tau": 2.0}, "at least 1"),
        ({"activation": 3}, "is not a name"),
        ({"activation": "no such"}, "activation"),
        ({"activation": "-1*tanh(1*x)"}, "activation"),
    ],
    ids=str,
)
def test_an_instance_outside_its_domain(changes: dict[str, Any], words: str) -> None:
    said = problem(**changes)
    assert said is not None
    assert words in said


def test_sizes_have_limits() -> None:
    def said(m: int, d: int) -> str | None:
        return problem(U=np.ones((m, d)), V=np.ones((d, d)))

    assert said(MOST_HEADS, 1) is None
    assert "too many" in str(said(MOST_HEADS + 1, 1))
    width = 998  # 998^2 entries of V, 4 x 998 of U and 4 more make 10^6
    assert width**2 + 4 * width + 4 == MOST_ENTRIES
    assert said(4, width) is None
    assert "too many" in str(said(5, width))


@instance_class
@dataclass(frozen=True)
class Halves(Domain):
    """Half of the heads of a paired start."""

    U: Float[Array, "half"]


def test_half_the_heads_count_twice() -> None:
    assert Halves(np.ones(MOST_HEADS // 2)).problem() is None
    with pytest.raises(BadArgument, match="too many"):
        Halves(np.ones(MOST_HEADS // 2 + 1))


def test_a_batch_is_raw_material_and_is_not_checked() -> None:
    batch = {
        name: v if isinstance(v, (str, int)) else -np.stack([v, v]) for name, v in fields().items()
    }
    assert Heads(**batch).U.shape == (2, 2, 3)
    ragged = {**batch, "rho": -np.ones((5, 3))}
    with pytest.raises(BadArgument):
        Heads(**ragged)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"zz": np.ones(1)}, "is no field"),
        ({"U": "text"}, "must be a number array"),
        ({"U": 3}, "must be a number array"),
        ({"tau": "3"}, "must be int"),
        ({"tau": True}, "must be int"),
        ({"activation": 3}, "must be str"),
        ({"V": np.ones((2, 2))}, "V"),
    ],
    ids=str,
)
def test_a_file_gives_every_field_of_the_right_sort(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument, match=words):
        instance_from(Heads, fields(**changes))
    assert instance_from(Heads, fields()).tau == 1
    missing = fields()
    del missing["V"]
    with pytest.raises(BadArgument, match="is missing"):
        instance_from(Heads, missing)


def test_letters_and_arrays_of_a_class() -> None:
    assert axes_of(Heads) == {"U": ("m", "d"), "V": ("d", "d"), "rho": ("3",), "delta": ()}
    assert arrays_of(Heads(**fields()))["delta"].dtype == np.float64
    assert set(arrays_of(Heads(**fields()))) == set(fields())


def said_of(**changes: Any) -> str | None:
    case = {"n": 3, "m": 4, "nu": 1.5, "kind": "a", "delta": 0.5, **changes}
    return case_problem(
        case, whole={"n": 10, "m": 8}, positive=("nu",), choices={"kind": ("a", "b")}
    )


def test_a_case_inside_its_domain() -> None:
    for changes in ({}, {"n": 1}, {"n": 10}, {"m": 8}, {"nu": 1}, {"delta": 1e-300}, {"kind": "b"}):
        assert said_of(**changes) is None, changes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n": 0}, "from 1 to 10"),
        ({"n": 11}, "from 1 to 10"),
        ({"n": True}, "from 1 to 10"),
        ({"n": 3.0}, "from 1 to 10"),
        ({"m": 3}, "not even"),
        ({"nu": 0}, "finite positive"),
        ({"nu": -1.0}, "finite positive"),
        ({"nu": float("inf")}, "finite positive"),
        ({"nu": float("nan")}, "finite positive"),
        ({"nu": "1"}, "finite positive"),
        ({"nu": True}, "finite positive"),
        ({"delta": 1.0}, "does not lie"),
        ({"delta": 0.0}, "finite positive"),
        ({"kind": "c"}, "is not one of"),
        ({"more": 1}, "exactly"),
    ],
    ids=str,
)
def test_a_case_outside_its_domain(changes: dict[str, Any], words: str) -> None:
    assert words in str(said_of(**changes))


def test_a_case_is_a_table_with_every_entry() -> None:
    assert "exactly" in str(case_problem([], whole={}))  # type: ignore[arg-type]
    assert "exactly" in str(case_problem({"n": 3}, whole={"n": 10}))


@pytest.mark.parametrize("L", [3, 4])
def test_scores_of_lemma_18_are_not_all_high(L: int) -> None:
    """Of no other scores there is no largest one."""
    kind = claims["deora2024/lemma-18"].instance_class
    assert kind is not None
    numbers = {"A": np.array(1.0), "B": np.array(0.0), "Gamma": np.array(1.0), "eps": np.array(0.5)}
    assert kind(r=np.ones(3), **numbers, L=2).problem() is None
    with pytest.raises(BadArgument, match="leaves none of 3 scores outside"):
        kind(r=np.ones(3), **numbers, L=L)
