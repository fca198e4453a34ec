"""What the arda2026 figures share: a student on the teacher's labels, as a `TrainConfig`.

Inputs, anchors, pool and student have key streams of their own, so the data of a seed are the same
for every width, and a wider student does not change its teacher.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ....lab import Context

if TYPE_CHECKING:
    from jaxtyping import Float

    from ....core import Array
    from ....data import DataModel
    from ..model import PooledAttention, PooledAttentionParams

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


def teacher_student(
    settings: Mapping[str, Any],
    m: int,
    seed: int,
    teacher: str,
    anchors: int = ANCHORS,
    **more: Any,
) -> dict[str, Any]:
    """A student of width m on a teacher's labels; `more` are other fields of a `TrainConfig`."""
    sizes = {name: settings[name] for name in ("T", "d", "pool")}
    data = {**sizes, "anchors": anchors, "nu": RADIUS, "dtype": "float64", **TEACHERS[teacher]}
    return complete(
        width=m,
        n=settings["n"],
        seeds=[seed],
        data="transport-teacher",
        data_options=data,
        rho=RADIUS,
        **more,
    )


def complete(**values: Any) -> dict[str, Any]:
    """Every field of the configuration of these values, for a trial's address and record."""
    from ....training import TrainConfig

    return TrainConfig.of({"model": "arda2026", **values}).model_dump(mode="json")


class Student(NamedTuple):
    """One seed of a problem."""

    model: PooledAttention
    initial: PooledAttentionParams
    x: Float[Array, "n T d"]
    y: Float[Array, "n"]
    data: DataModel


def student(config: Mapping[str, Any]) -> Student:
    """The problem of a trial."""
    import jax

    from ....training import TrainConfig, build_problem

    built = build_problem(TrainConfig.of(config))
    initial = jax.tree.map(lambda leaf: leaf[0], built.initial)
    return Student(built.model, initial, built.x[0], built.y[0], built.data)


def transport_shift(config: Mapping[str, Any], own: Student) -> PooledAttentionParams:
    """phi~ - phi0 for the teacher's transport map [arda2026, Eq. (10)]."""
    from ..transport_map import transported

    teacher: Any = own.data
    v = teacher.transport(config["seeds"][0], own.x)(*own.initial)
    point = transported(own.initial, v)
    moved = (after - before for after, before in zip(point, own.initial, strict=True))
    return type(own.initial)(*moved)


def label_seconds(config: Mapping[str, Any]) -> float:
    """Computing time of the labels: 5 s for n = 5000, T = 16, d = 8 and 8192 heads in float64."""
    data = config["data_options"]
    return 5.0 * config["n"] / 5000 * data["pool"] / 8192 * data["T"] / 16


def sample_numbers(config: Mapping[str, Any]) -> int:
    """Numbers in the inputs of a trial."""
    return config["n"] * config["data_options"]["T"] * config["data_options"]["d"]


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
