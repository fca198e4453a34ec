"""On-average stability, its bounds and the generalisation gap along one run [deora2024, App. C]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import Context, Measurement
from .runs import logarithmic, problem_of

if TYPE_CHECKING:
    from ..stability import LeftOut
    from ..stability_bounds import Target

INEQUALITIES = {
    "expansiveness": "(19)",
    "one_step": "(20)",
    "one_small_step": "(21)",
    "unrolled_step": "(22)",
}


def measure_stability(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Leave-one-out runs for all i; bounds with theta = theta_K, the run's own last iterate."""
    from ..stability import leave_one_out
    from ..stability_bounds import target

    chosen, built = problem_of(config)
    (x, y), start = (built.x[0], built.y[0]), type(built.initial)(*(v[0] for v in built.initial))
    test = tuple(part[0] for part in built.validation)
    context.progress(0, 1)
    run = leave_one_out(
        built.model, start, x, y, eta=chosen.step_size, steps=chosen.steps, test=test
    )
    return described(run, target(built.model, start, run.final, x, y), config["tier"])


def described(run: LeftOut, theta: Target, tier: str) -> dict[str, Any]:
    """Curves along k, the worst ratio of every inequality, and what its hypotheses ask."""
    from .. import stability_bounds as bounds

    at = logarithmic(np.arange(run.steps + 1))
    before = at - 1
    stable, lemma, losses = (
        run.on_average,
        bounds.lemma_11(run, theta),
        bounds.from_losses(run, theta),
    )
    lipschitz = np.maximum.accumulate(np.max(run.own_gradient, axis=1))
    worst = {
        "expansiveness": bounds.expansiveness(run, tier),
        "one_step": bounds.one_step(run, tier),
        "one_small_step": bounds.one_small_step(run, theta, tier),
        "unrolled_step": bounds.unrolled_step(run, theta, tier),
    }
    return {
        "stability": stable[at],
        "largest_distance": np.max(run.distance, axis=1)[at],
        "stability_from_losses": losses.right[before],
        "lemma_11": lemma.right[before],
        "theorem_4": bounds.theorem_4(run, theta)[before],
        "lemma_3": 2 * lipschitz[before] * stable[at],
        "train_loss": np.append(run.loss, run.final_loss)[at],
        "gap": run.gap[at],
        "lemma_11_ratio": np.max(lemma.ratio),
        **{f"{name}_ratio": np.max(sides.ratio) for name, sides in worst.items()},
        "summed_growth": np.max(bounds.summed_growth(run, theta, tier).left),
        "step_over_allowed": bounds.small_step(run, theta, tier).ratio,
        "moved": run.moved,
        "k": at,
    }


def _cost(config: dict[str, Any]) -> tuple[float, float]:
    n, data = config["n"], config["data_options"]
    numbers = 2 * n * (n + 1) * data["T"] ** 2
    return 0.1 + config["steps"] * 8e-9 * numbers, 4e8 + 8.0 * 8 * n * config["steps"]


CURVES = (
    "stability", "largest_distance", "stability_from_losses", "lemma_11", "theorem_4", "lemma_3",
    "train_loss", "gap",
)  # fmt: skip

stability = Measurement(
    name="deora2024-stability",
    version=2,
    function=measure_stability,
    outputs={
        **dict.fromkeys(CURVES, ("k",)),
        **dict.fromkeys((f"{name}_ratio" for name in ("lemma_11", *INEQUALITIES)), ()),
        **dict.fromkeys(("summed_growth", "step_over_allowed", "moved"), ()),
        "k": ("k",),
    },
    estimate=_cost,
)
