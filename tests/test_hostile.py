"""Malformed values at every public door: the right result or one clear line, and no side effects.

Few examples here, always the same. A longer run by hand:
HOSTILE_EXAMPLES=2000 python -m pytest tests/test_hostile.py
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

from headcount import core, lab, training
from headcount.cli import app, run
from headcount.lab._seeds import parse_options

COUNT = int(os.environ.get("HOSTILE_EXAMPLES", "0"))
few = settings(
    max_examples=COUNT or 40,
    derandomize=not COUNT,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
CODE = "__import__('pathlib').Path('owned').touch()"
TEXTS = [
    *("", " ", ",", "=", "a=b", "-1", "0", "1.5", "nan", "-inf", "1e999", "1e-320", "1" * 400),
    *("0:1000000000000", "5:-5", "1,1", "nan,nan,nan", "[1,", "{}", "null", "true", "0x10"),
    *("../../evil", "/proc/nope/x", "a\nb", "\0", "ü💥", "--json", CODE, f"$({CODE})"),
]
texts = st.sampled_from(TEXTS) | st.text(max_size=12)
COMMANDS = {
    "train": ["--dry-run", "--n", "8", "--width", "4", "--steps", "2"],
    "ntk": ["--dry-run", "--n", "4", "--width", "4"],
    "reproduce": ["arda2026/fig1", "--scale", "smoke", "--dry-run"],
    "show": ["arda2026/fig1"],
    "status": [],
    "list": [],
    "recheck": ["nothing.json"],
    "falsify": ["nothing"],
}
"""What computes nothing, or stops before it does."""


def flags_of(command: str) -> list[str]:
    """The flags that a command knows; without those that would make it compute."""
    names = [name for flag in app[command].assemble_argument_collection() for name in flag.names]
    return [name for name in names if name.startswith("--") and name != "--dry-run"]


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    """A command with one or two of its flags, or with an argument, all of them malformed."""
    command = draw(st.sampled_from(sorted(COMMANDS)))
    line = [command, *COMMANDS[command]]
    for _ in range(draw(st.integers(1, 2))):
        line += [draw(st.sampled_from([*flags_of(command), ""])), draw(texts)]
    return [word for word in line if word or draw(st.booleans())]


@pytest.fixture(scope="module")
def inner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outer") / "a" / "b" / "inner"
    folder.mkdir(parents=True)
    return folder


@settings(few, max_examples=COUNT or 20)
@given(line=command_lines())
def test_a_command_line_never_ends_in_a_traceback(inner: Path, line: list[str]) -> None:
    """`run` raises nothing, and a dry run or a view leaves no file anywhere near."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(inner)
        patch.setenv("HEADCOUNT_DATA", str(inner))
        assert run(line) in (0, 1, 2, 3)
    outer = inner.parents[2]
    assert [path.name for path in outer.rglob("*")] == ["a", "b", "inner"]


JUNK = [
    *(None, True, -1, 0, 1.5, np.nan, np.inf, 10**400, 10**18, "", "x", "../../e", "\0", b"x"),
    *([], [1], [[1], [1, 2]], {}, {"a": 1}, {1: 2}, (), object(), np.zeros(0), np.zeros((2, 2))),
    *(np.array("a"), np.array([1j]), np.array([None]), [np.nan], np.int64(3), CODE),
]
junk = st.sampled_from(JUNK) | st.text(max_size=5) | st.floats() | st.integers()


def problem() -> dict[str, Any]:
    """A small training that works; single arguments are replaced by junk."""
    config = {"n": 4, "width": 4, "steps": 1, "data_options": {"T": 3, "d": 2, "pool": 4}}
    built = training.build(training.TrainConfig.of(config))
    shared = {"model": built.model, "initial": built.initial, "seeds": [0]}
    return {**shared, "x": built.x, "y": built.y, "rule": built.rule, "steps": 1}


PROBLEM = problem()
DOORS: dict[str, Callable[[Any], Any]] = {
    "seeds": lab.parse_seeds,
    "options": parse_options,
    "an option": lambda value: parse_options([value]),
    "figure": lab.make_plan,
    "scale": lambda value: lab.make_plan("arda2026/fig1", value),
    "plan's seeds": lambda value: lab.make_plan("arda2026/fig1", "smoke", value),
    "plan's options": lambda value: lab.make_plan("arda2026/fig1", "smoke", None, value),
    "configuration": lambda value: lab.content_address("m", 1, {"a": value}),
    "executor": lambda value: lab.open_executor(value, None),
    "workers": lambda value: lab.open_executor("processes", value).close(gently=True),
    "mean": lab.mean,
    "median": lab.median,
    "difference": lambda value: lab.paired_difference(value, value),
    "slope": lambda value: lab.loglog_slope(value, value),
    "stream": lambda value: core.stream(value, "a"),
    "stream's name": lambda value: core.stream(0, value),
    "devices": lambda value: training.train(**{**PROBLEM, "devices": value, "steps": 0}),
}
FIELDS = list(training.TrainConfig.model_fields)
ARGUMENTS = ["x", "y", "rule", "loss", "validation", "record", "trace", "keep", "dtype", "tokens"]


@few
@given(door=st.sampled_from(sorted(DOORS)), value=junk)
def test_a_function_answers_or_says_what_is_wrong(door: str, value: Any) -> None:
    refused(DOORS[door], value)


@few
@given(field=st.sampled_from(FIELDS), value=junk)
def test_a_configuration_answers_or_says_what_is_wrong(field: str, value: Any) -> None:
    refused(lambda value: training.TrainConfig.of({field: value}), value)


@few
@given(argument=st.sampled_from(ARGUMENTS), value=junk)
def test_training_says_what_is_wrong_before_it_computes(argument: str, value: Any) -> None:
    """No step is asked for: what is not refused for its own sake is refused for that."""
    with pytest.raises((core.BadArgument, TypeCheckError)):
        training.train(**{**PROBLEM, "steps": 0, argument: value})


def refused(function: Callable[[Any], Any], value: Any) -> None:
    """It returns, or raises an error of ours (or, in tests, the one of the annotations)."""
    try:
        function(value)
    except (core.HeadcountError, TypeCheckError) as error:
        text = str(error)
        assert text
