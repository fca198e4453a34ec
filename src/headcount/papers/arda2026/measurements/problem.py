"""What the arda2026 figures share: the teacher-student problem, built from a trial's config.

Inputs, anchors, pool and student have key streams of their own, so the data of a seed are the same
for every width, and a wider student does not change its teacher.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ....lab import Context

if TYPE_CHECKING:
    from jaxtyping import Float

    from ....core import Array
    from ....data import TransportMap, TransportTeacher

TEACHERS: dict[str, dict[str, str]] = {
    "paper": {"attention": "full", "weights": "uniform", "anchors_from": "law"},
    "code": {"attention": "diagonal", "weights": "signed", "anchors_from": "data"},
}
"""The teacher of Sec. 6, and that of the released code: only diag(W) in its softmax, random signed
weights in place of 1/R, and anchors that are rows of the training data."""

STEP_FACTORS = {"paper": 1.0, "code": 1.75}
"""eta sqrt(tau): the paper's step size, and the one in the released code."""

ANCHORS = 16
"""R. The paper does not give it; the released code uses 16."""

RADIUS = [3.0, 3.0, 3.0]
"""nu-bar = rho = (3, 3, 3) [arda2026, Sec. 6.1]."""


def teacher_settings(settings: Mapping[str, Any], teacher: str) -> dict[str, Any]:
    """The part of a trial's config that determines its labelled data, but for the seed."""
    return {
        "n": settings["n"],
        "T": settings["T"],
        "d": settings["d"],
        "pool": settings["pool"],
        "anchors": ANCHORS,
        "nu": RADIUS,
        "label_dtype": "float64",
        **TEACHERS[teacher],
    }


def labelled(
    config: Mapping[str, Any],
) -> tuple[Float[Array, "n T d"], Float[Array, "n"], TransportMap]:
    """Inputs, labels and transport map of a trial.

    Labels from a pool of 8192 heads take seconds, and every width needs the same ones: a process
    keeps those it has made.
    """
    from ....data import TransportTeacher

    teacher = TransportTeacher(
        T=config["T"],
        d=config["d"],
        anchors=config["anchors"],
        nu=tuple(config["nu"]),
        pool=config["pool"],
        weights=config["weights"],
        attention=config["attention"],
        anchors_from=config["anchors_from"],
        dtype=config["label_dtype"],
    )
    return _labelled(teacher, config["n"], config["seed"])


@lru_cache(maxsize=32)
def _labelled(
    teacher: TransportTeacher, n: int, seed: int
) -> tuple[Float[Array, "n T d"], Float[Array, "n"], TransportMap]:
    x = teacher.law.inputs(n, seed)
    transport = teacher.transport(seed, x)
    y = teacher.labels(x, transport, seed)
    x.flags.writeable = y.flags.writeable = False
    return x, y, transport


def label_seconds(config: Mapping[str, Any]) -> float:
    """Computing time of the labels: 5 s for n = 5000, T = 16, d = 8 and 8192 heads in float64."""
    return 5.0 * config["n"] / 5000 * config["pool"] / 8192 * config["T"] / 16


class TrainingCheckpoint:
    """A trial's context as the checkpoint that `training.train` asks for."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def restore(self) -> Mapping[str, Array] | None:
        """What an interrupted run of this trial saved."""
        return self._context.restore()

    def save(self, arrays: Callable[[], Mapping[str, Array]]) -> None:
        """Save when it is time; the arrays are only gathered then."""
        if self._context.checkpoint_due():
            self._context.checkpoint(arrays())
