"""A claim: one numbered statement of a paper as an object that can be asked.

A claim knows its statement, its hypotheses, both of its sides as functions of an instance, its
right side as a function of a setting, an independent slow evaluation, and where it is tight.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from ..core import BadArgument, float64
from ._frequency import Experiment

Instance = Any
"""A frozen pytree of arrays (names and flags static) on which a claim can be evaluated."""

NaiveSides = tuple[Any, Any]


class Kind(enum.StrEnum):
    """What sort of statement a claim is."""

    IDENTITY = "identity"
    DETERMINISTIC = "deterministic"
    HIGH_PROBABILITY = "high-probability"
    EXPECTATION = "expectation"
    RATE = "rate"


class Sides(NamedTuple):
    """Both sides of a claim on one instance, and every constant that went into them.

    For an identity `lhs` and `rhs` may be arrays; `scale` is the size against which their
    difference is measured where both vanish. `trivial` is a bound that holds without the claim.
    """

    lhs: Any
    rhs: Any
    constants: dict[str, Any] = {}  # noqa: RUF012  (a NamedTuple default, never mutated)
    trivial: Any = None
    scale: Any = 0.0


class Bound(NamedTuple):
    """The right side of a claim for a setting, with its constants and its trivial rival."""

    rhs: float
    constants: dict[str, float] = {}  # noqa: RUF012  (a NamedTuple default, never mutated)
    trivial: float | None = None


class Check(NamedTuple):
    """One hypothesis measured: it holds when value <= threshold (up to rounding)."""

    name: str
    value: float
    threshold: float

    @property
    def margin(self) -> float:
        """threshold - value: negative when the hypothesis fails."""
        return self.threshold - self.value

    @property
    def holds(self) -> bool:
        """Whether value <= threshold, allowing one part in 10^12 of rounding."""
        return bool(self.value <= self.threshold + 1e-12 * max(1.0, abs(self.threshold)))

    def to_json(self) -> dict[str, Any]:
        """The keys that `audit --json` prints."""
        return {
            "name": self.name,
            "value": self.value,
            "threshold": self.threshold,
            "holds": self.holds,
            "margin": self.margin,
        }


@dataclass(frozen=True)
class Hypothesis:
    """A named condition value(instance) <= threshold.

    `naive` measures the same value with slow arithmetic, for rechecking a certificate.
    """

    name: str
    value: Callable[[Instance], Any]
    naive: Callable[[Any, Mapping[str, Any]], Any]
    threshold: float = 1.0

    def check(self, instance: Instance) -> Check:
        """The condition measured on one instance."""
        return Check(self.name, float(self.value(instance)), self.threshold)


@dataclass(frozen=True)
class Family:
    """A set of admissible instances of one shape.

    `draw(rng, count)` gives `count` instances along a leading axis, as NumPy arrays; `project`
    maps the arrays of one instance into the hypotheses: it makes draws admissible and keeps
    gradient ascent inside. `differentiable` is false where only search helps.
    """

    name: str
    draw: Callable[[np.random.Generator, int], Instance]
    project: Callable[[Instance], Instance]
    differentiable: bool = True

    def sample(self, key: PRNGKeyArray) -> Instance:
        """One random admissible instance."""
        batch = self.draw(generator(key), 1)
        with float64():
            one = self.project(jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), batch))
        return jax.tree.map(np.asarray, one)


def generator(key: PRNGKeyArray) -> np.random.Generator:
    """A NumPy generator of this key's stream: drawing on the host costs no compilation."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())


@dataclass(frozen=True)
class Variant:
    """One form of a claim: as printed, corrected, sharp or measured, and why it exists."""

    text: str
    erratum: str | None = None
    fails: bool = False
    """Known to be false: a certificate is shipped."""


@dataclass(frozen=True, eq=False)
class Claim:
    """One statement of a paper; see the module's docstring and docs/theory.md."""

    id: str
    title: str
    kind: Kind
    equations: str
    statement: str
    latex: str
    sides: Callable[[Instance, str], Sides]
    naive: Callable[[Any, Mapping[str, Any], str], NaiveSides]
    families: tuple[Family, ...]
    variants: Mapping[str, Variant]
    default: str
    hypotheses: tuple[Hypothesis, ...] = ()
    targets: Callable[[], tuple[Instance, ...]] = tuple
    bound: Callable[[Any, str], Bound] | None = None
    experiment: Experiment | None = None
    quantity: str | None = None
    """What the left side is, where claims are compared by it: "loss" for head counting."""
    measured: Callable[[Any], Any] | None = None
    """The left side on an audited run, for claims whose right side is that of the setting."""
    needs_event: bool = False
    """Whether the printed statement is conditioned on an event; instances use what was realised."""
    errata: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    factor: float = field(default=1.0, repr=False)

    def __post_init__(self) -> None:
        if self.default not in self.variants:
            raise RuntimeError(f"{self.id}: default variant {self.default!r} is not a variant")

    @property
    def paper(self) -> str:
        """The citation key, the part of the id before the slash."""
        return self.id.split("/")[0]

    def variant(self, name: str | None) -> str:
        """The variant's name, checked; None means the default one."""
        if name is None:
            return self.default
        if name not in self.variants:
            listed = ", ".join(self.variants)
            raise BadArgument(
                "variant", name, f"{self.id} has no such variant", fix=f"use {listed}"
            )
        return name

    def evaluate(self, instance: Instance, variant: str) -> Sides:
        """Both sides; the right side carries the factor of `with_bound_scaled`."""
        sides = self.sides(instance, variant)
        return sides if self.factor == 1.0 else sides._replace(rhs=self.factor * sides.rhs)

    def with_bound_scaled(self, factor: float) -> Claim:
        """The same claim with its right side multiplied: below the tightness it must fail."""
        return replace(self, factor=self.factor * factor)

    def without_hypothesis(self, name: str) -> Claim:
        """The same claim with one hypothesis dropped, to see that it is needed."""
        kept = tuple(h for h in self.hypotheses if h.name != name)
        if len(kept) == len(self.hypotheses):
            known = ", ".join(h.name for h in self.hypotheses) or "none"
            raise BadArgument("hypothesis", name, f"{self.id} has none of this name", fix=known)
        return replace(self, hypotheses=kept)
