"""What one head would do: from zero, H heads are one head with rescaled steps [not in the paper].

From zero all heads stay equal, and Phi~ = sqrt(H) Phi(X; U, W) = Phi(X; U', W), U' = sqrt(H) U.
A head's gradient is that of the single head (U', W) divided by sqrt(H) for U and by H for W. So
descent with step eta, with or without momentum, is descent of one head with step eta on U' and
eta/H on W. Adam with (eta, eps) is Adam with (sqrt(H) eta, sqrt(H) eps) on U', (eta, H eps) on W.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import optax

from ...theory import Answer
from ...training import Run, TrainConfig, build, from_optax, stack_seeds, train
from ...training._rules import UpdateRule
from .model import MultiHeadAttention, MultiHeadParams
from .starts import zero

REDUCIBLE = ("gd", "momentum", "adam")
"""Update rules that move H equal heads as one head with other steps."""


def one_head(config: TrainConfig) -> list[Answer]:
    """A row for `headcount count`: the loss of one head that takes the steps of these H heads."""
    fits = config.init == "zero" and config.optimiser in REDUCIBLE and config.model in _MODELS
    if not fits or config.width == 1:
        return []
    H, eta = config.width, config.step_size
    run = single_head(build(config), config, {})
    loss = float(np.median(np.nan_to_num(np.atleast_1d(run.min_loss), nan=np.inf)))
    on_U, on_W = (math.sqrt(H) * eta, eta) if config.optimiser == "adam" else (eta, eta / H)
    note = (
        f"from zero, {H} heads are one head with steps {on_U:.4g} on U and {on_W:.4g} on W: "
        f"its smallest loss is {loss:.3g}"
    )
    return [Answer("width", "one head", "exact", 1.0, note)]


_MODELS = ("deora2024", "deora2024-groups")


def single_head(built: Any, chosen: Any, options: dict[str, Any]) -> Run:
    """One head from zero with the steps that make it H heads."""
    model = MultiHeadAttention(built.data.T, built.data.d, 1, built.model.readout)
    rule = rescaled(chosen.optimiser, chosen.step_size, chosen.width, tuple(options.items()))
    return trained(built, model, stack_seeds([zero(model)] * len(chosen.seeds)), rule, chosen)


def trained(built: Any, model: Any, initial: Any, rule: UpdateRule, chosen: Any) -> Run:
    """A run of `model` on the problem's data."""
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
