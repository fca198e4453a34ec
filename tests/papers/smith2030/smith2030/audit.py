"""What an audit looks at: one trained run, its smallest loss and its logits."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headcount.theory import Observed, slack_table
from headcount.training import TrainConfig, run_config

from .claims import Constants, Logits, Trained


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


def subject(config: TrainConfig, seed: int, *, delta: float, progress: Any = None) -> Observed:
    """Train one seed and offer what the statements speak about."""
    one = config.model_copy(update={"seeds": (seed,), "dtype": "float64"})
    run = run_config(one, progress=progress)
    setting, U = Setting.of(one, delta=delta), run.parameters().U
    trained = Trained.seen(measured={}, loss=float(run.min_loss[0]), setting=setting)
    logits = [Logits(z=np.asarray(U @ mean)) for mean in np.eye(U.shape[1])]
    return Observed(seed, setting, {Trained: [trained], Logits: logits})


def slack(subject: Observed, variant: str) -> list[dict[str, Any]]:
    """Where the bound loses."""
    (run,) = subject.instances(Trained)
    return slack_table([("loss", Constants(run.setting, variant).rate, run.loss)])
