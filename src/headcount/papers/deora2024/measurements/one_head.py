"""H equal heads beside one head with rescaled steps: the same run [not in the paper].

From zero all heads stay equal, and Phi~ = sqrt(H) Phi(X; U, W) = Phi(X; U', W), U' = sqrt(H) U.
A head's gradient is that of the single head (U', W) divided by sqrt(H) for U and by H for W. So
descent with step eta, with or without momentum, is descent of one head with step eta on U' and
eta/H on W. Adam with (eta, eps) is Adam with (sqrt(H) eta, sqrt(H) eps) on U', (eta, H eps) on W.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ....lab import Context, Measurement
from .runs import logarithmic, problem_of

if TYPE_CHECKING:
    from ....training import Run, UpdateRule


def measure_one_head(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Losses of all H heads, each trained, and of one head with rescaled steps; how far apart."""
    from ....training import optimisers

    chosen, built = problem_of(config)
    H, options = chosen.width, config["rule_options"]
    usual = optimisers[chosen.optimiser](chosen.step_size, **options)
    many = trained(built, built.model, built.initial, usual, chosen)
    context.progress(1, 2)
    one = single_head(built, chosen, options)
    theirs, own = (np.append(run.loss[0], run.final_loss[0]) for run in (many, one))
    if max(many.diverged_at[0], one.diverged_at[0]) >= 0:
        context.diverged(f"{many.outcomes[0]}; one head: {one.outcomes[0]}")
    heads, head = many.parameters(), one.parameters()
    k = np.arange(len(own))[1:][logarithmic(np.arange(len(own))) - 1]
    error = np.abs(theirs - own) / own
    return {
        "loss_many": theirs[k],
        "loss_one": own[k],
        "error": error[k],
        "largest_error": np.max(error),
        "error_U": _apart(math.sqrt(H) * heads.U, head.U),
        "error_W": _apart(heads.W, head.W),
        "k": k,
    }


def single_head(built: Any, chosen: Any, options: dict[str, Any]) -> Run:
    """One head from zero with the steps that make it H heads."""
    from ....models import MultiHeadAttention, zero
    from ....training import stack_seeds

    model = MultiHeadAttention(built.data.T, built.data.d, 1)
    rule = rescaled(chosen.optimiser, chosen.step_size, chosen.width, tuple(options.items()))
    return trained(built, model, stack_seeds([zero(model)]), rule, chosen)


def trained(built: Any, model: Any, initial: Any, rule: UpdateRule, chosen: Any) -> Run:
    """A run of `model` on the problem's data."""
    from ....training import train

    return train(
        model,
        initial,
        built.x,
        built.y,
        rule=rule,
        steps=chosen.steps,
        loss=built.loss,
        seeds=chosen.seeds,
        dtype=chosen.dtype,
    )


@lru_cache(maxsize=64)
def rescaled(
    optimiser: str, eta: float, H: int, options: tuple[tuple[str, float], ...] = ()
) -> UpdateRule:
    """The rule of a single head that moves it as `optimiser` with step eta moves H equal heads."""
    import optax

    from ....models import MultiHeadParams
    from ....training import from_optax

    root, given = math.sqrt(H), dict(options)
    if optimiser == "adam":
        eps = given.pop("eps", 1e-8)
        parts = {
            "U": optax.adam(root * eta, eps=root * eps, **given),
            "W": optax.adam(eta, eps=H * eps, **given),
        }
    else:
        beta = given.get("beta", 0.9) if optimiser == "momentum" else None
        parts = {"U": optax.sgd(eta, momentum=beta), "W": optax.sgd(eta / H, momentum=beta)}
    return from_optax(optax.multi_transform(parts, MultiHeadParams("U", "W")), name=optimiser)


def _apart(heads: Any, head: Any) -> float:
    """The largest difference of any head's entry to that of the one head, by its largest entry."""
    return float(np.max(np.abs(heads - head)) / np.max(np.abs(head)))


def _cost(config: dict[str, Any]) -> tuple[float, float]:
    numbers = config["width"] * config["n"] * config["data_options"]["T"] ** 2
    return 3.0 + config["steps"] * (5e-5 + 8e-9 * numbers), 4e8


one_head = Measurement(
    name="deora2024-one-head",
    version=1,
    function=measure_one_head,
    outputs={
        **dict.fromkeys(("loss_many", "loss_one", "error"), ("k",)),
        **dict.fromkeys(("largest_error", "error_U", "error_W"), ()),
        "k": ("k",),
    },
    estimate=_cost,
)
