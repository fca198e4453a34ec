"""What can be moved on the page: each control with its positions, and the state in the address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from ..core import papers
from ..training import recipe_of
from ._curves import LARGEST_POWER
from ._sizes import Sizes, has_meaning, setting_of

OWN_STEP = 0.0
"""The position of the step size that stands for the paper's own."""


@dataclass(frozen=True)
class Control:
    """A field of `Sizes` with the positions it may take: numbers in order, or names."""

    name: str
    label: str
    positions: tuple[Any, ...]

    @property
    def default(self) -> Any:
        """The position of a page without a state."""
        value = {field.name: field.default for field in fields(Sizes)}[self.name]
        value = OWN_STEP if value is None else value
        return value if value in self.positions else self.positions[0]

    def read(self, text: str | None) -> Any:
        """The position that an address names; the default where it names none."""
        return {str(value): value for value in self.positions}.get(text or "", self.default)


def _series(low: int, high: int) -> tuple[int | float, ...]:
    """1, 2, 5 times the powers of ten, both ends inside; whole numbers where they are."""
    made = (float(f"{lead}e{k}") for k in range(low, high + 1) for lead in (1, 2, 5))
    return tuple(int(value) if value >= 1 else value for value in made)


_RADII = (*(k / 10 for k in range(1, 10)), *(k / 4 for k in range(4, 41)))
CONTROLS = (
    Control("width", "width", tuple(2**k for k in range(LARGEST_POWER + 1))),
    Control("n", "samples n", tuple(range(4, 201))),
    Control("T", "tokens T", tuple(range(2, 21))),
    Control("d", "features d", tuple(range(3, 21))),
    Control("steps", "steps", _series(1, 12)),
    Control("eta", "step size (0: the paper's own)", (OWN_STEP, *_series(-8, 1))),
    Control("delta", "delta", tuple(value for value in _series(-6, -1))),
    Control("rho", "radius rho", _RADII),
    Control("nu", "teacher nu", _RADII),
    Control("scaling", "softmax scaling", ("realistic", "ntk")),
    Control("init", "initialisation", ()),
)
"""Everything that may be moved, in the order of the page."""


def controls_of(paper: str) -> list[Control]:
    """The controls that have a meaning for a paper, with the positions it allows."""
    own = has_meaning(paper)
    step = setting_of(Sizes(paper)).width_step
    allowed = {
        "width": tuple(width for width in CONTROLS[0].positions if width % step == 0),
        "init": starts_of(paper),
    }
    found = [replace(c, positions=allowed.get(c.name, c.positions)) for c in CONTROLS]
    return [control for control in found if control.name in own and len(control.positions) > 1]


def starts_of(paper: str) -> tuple[str, ...]:
    """The initialisations of a paper's first model, its own first."""
    recipe = recipe_of(next(iter(papers[paper].models)))
    others = ("lecun", "he", "ntk") if "scaling" in recipe.options else ()
    return tuple(dict.fromkeys((recipe.init, *recipe.starts, *others)))


def sizes_at(paper: str, positions: Mapping[str, Any]) -> Sizes:
    """The sizes that controls stand at."""
    values = dict(positions)
    if values.get("eta") == OWN_STEP:
        values["eta"] = None
    return Sizes(paper, **values)


def address(paper: str, positions: Mapping[str, Any], **more: str) -> dict[str, str]:
    """The state as parameters of an address: what differs from the defaults."""
    moved = {
        control.name: str(positions[control.name])
        for control in controls_of(paper)
        if positions[control.name] != control.default
    }
    return {"paper": paper, **more, **moved}
