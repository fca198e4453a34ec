"""What an audit looks at: one trained run, its smallest loss and its logits."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headcount.training import TrainConfig, run_config

from .claims import Logits


@dataclass(frozen=True)
class Setting:
    """Sizes of a run: all that Theorem 1 depends on."""

    width: int
    steps: int
    width_step: int = 1

    @classmethod
    def of(cls, config: TrainConfig, *, delta: float) -> "Setting":
        """The setting of a configuration; nothing is random, so delta plays no part."""
        return cls(config.width, config.steps)

    def resized(
        self, *, width: int | None = None, steps: int | None = None, step_size: Any = None
    ) -> "Setting":
        """Another width or number of steps."""
        return replace(self, width=width or self.width, steps=steps or self.steps)

    def describe(self) -> str:
        """The numbers in one line."""
        return f"width = {self.width}, steps = {self.steps}"


@dataclass(frozen=True)
class Subject:
    """One trained run."""

    setting: Setting
    loss: float
    logits: list[Logits]

    def instances(self, kind: type) -> list[Any]:
        """Logits of the trained weights, if the claim is about logits."""
        return self.logits if kind is Logits else []


def subject(config: TrainConfig, seed: int, *, delta: float, progress: Any = None) -> Subject:
    """Train one seed and collect what the claims ask about."""
    one = config.model_copy(update={"seeds": (seed,), "dtype": "float64"})
    run = run_config(one, progress=progress)
    U = run.parameters().U
    logits = [Logits(np.asarray(U @ mean)) for mean in np.eye(U.shape[1])]
    return Subject(Setting.of(one, delta=delta), float(run.min_loss[0]), logits)


def slack(subject: Subject, variant: str) -> list[dict[str, Any]]:
    """Where the bound loses."""
    bound = subject.setting.steps**-0.5 + 1 / subject.setting.width
    orders = float(np.log10(bound / subject.loss))
    return [{"factor": "loss", "bound": bound, "measured": subject.loss, "orders": orders}]
