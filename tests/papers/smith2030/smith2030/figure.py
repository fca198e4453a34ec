"""One figure: the norm of a softmax against the number of tokens."""

from typing import Any

import numpy as np

from headcount import lab


def measure(config: dict[str, Any], context: Any) -> dict[str, Any]:
    """The norm of the softmax of T standard normal logits."""
    z = np.random.default_rng(config["seed"]).normal(size=config["T"])
    weights = np.exp(z) / np.exp(z).sum()
    return {"norm": float(np.linalg.norm(weights))}


norm = lab.Measurement("smith2030-norm", 1, measure, {"norm": ()})


def _trials(settings: Any, seeds: Any, options: Any) -> list[lab.Trial]:
    return [
        lab.Trial(norm, {"T": T, "seed": seed}, {"T": T, "seed": seed})
        for T in settings["tokens"]
        for seed in seeds
    ]


lab.register(
    lab.Figure(
        id="smith2030/fig1",
        title="Norm of a softmax against T",
        reference="[smith2030, Figure 1]",
        scales={scale: {"seeds": 3, "tokens": [2, 8]} for scale in lab.SCALES},
        trials=_trials,
        statistics=lambda data: lab.over_seeds(data["norm"]),
        verdicts=lambda data: [
            lab.threshold("the norm is below 1", data["norm"].mean("T").values, below=1.0)
        ],
        plot=lambda data, axes: lab.draw_interval(axes[0], data, "mean_norm", "T"),
    )
)
