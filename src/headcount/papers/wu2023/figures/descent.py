"""One run of full-batch descent on Gaussian data [wu2023, Sec. 5.1]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ....core import Array
from ....lab import Context, Measurement

NORMALISATIONS: dict[str, dict[str, Any]] = {
    "stable": {"tokens": "scaled", "pooling": "mean", "loss": "mean-squared"},
    "printed": {"tokens": "raw", "pooling": "mean", "loss": "half-squared-sum"},
    "formulas": {"tokens": "raw", "pooling": "sum", "loss": "half-squared-sum"},
}
"""stable: entries N(0, 1/d), mean pooling, loss (1/N)|f - y|^2, under which gamma = 1 converges.
printed: entries N(0, 1), mean pooling, loss (1/2)|f - y|^2, as the text says. formulas: the same
with sum pooling, as every formula of the appendix has it."""


FIXED = 0.1
"""gamma of `scaled_settings` where it is not left to the run."""


def run_settings(
    normalisation: str,
    *,
    d_m: int,
    init: str,
    scaling: str,
    gamma: float,
    settings: Mapping[str, Any],
    seed: int,
    options: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The encoder on X: 10 x 100 as a `TrainConfig`, every field, for the trial's address.

    Of the `options`, gamma=lambda leaves the step to the run, and dtype is its precision.
    """
    from ....training import TrainConfig

    options = options or {}
    chosen = NORMALISATIONS[normalisation]
    return TrainConfig.of(
        {
            "model": "wu2023",
            "width": d_m,
            "init": init,
            "model_options": {"scaling": scaling, "pooling": chosen["pooling"]},
            "data": "gaussian-regression",
            "data_options": {"T": settings["T"], "d": settings["d"], "tokens": chosen["tokens"]},
            "n": settings["n"],
            "seeds": [seed],
            "loss": chosen["loss"],
            "optimiser": "gd",
            "eta": None if options.get("gamma") == "lambda" else gamma,
            "steps": settings["epochs"],
            "dtype": options.get("dtype", "float32"),
        }
    ).model_dump(mode="json")


def scaled_settings(
    *, d_m: int, scaling: str, settings: Mapping[str, Any], seed: int, options: Mapping[str, str]
) -> dict[str, Any]:
    """Mean pooling, squared error, float64; gamma=lambda: the run's own 1/lambda_max(c K_0)."""
    config = run_settings(
        "stable", d_m=d_m, init=options["init"], scaling=scaling, gamma=FIXED, settings=settings,
        seed=seed, options={**options, "dtype": "float64"},
    )  # fmt: skip
    config["data_options"]["tokens"] = options["tokens"]
    return config


def measure_scaled_descent(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Like `measure_descent`, with gamma = 1/lambda_max(c K_0) of the run's own kernel."""
    return _descend(config, context, ())[0]


def measure_descent(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Loss and relative movement per epoch, and gamma c lambda_max(K_0), stable below 2.

    loss: (1/2N)|f - y|^2 whatever was trained on. movement: |theta_{t+1} - theta_t| / |theta_t|,
    which is gamma |grad| / |theta_t|.
    """
    return _descend(config, context, ())[0]


def measure_drift(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """The same, with the tangent kernel's distance to its start and to the epoch before."""
    from ....kernels import kernel_distance, tangent_kernel

    found, records = _descend(config, context, (tangent_kernel,))
    kernels = records["tangent_kernel"][0].astype(np.float64)
    usable = np.isfinite(kernels).all(axis=(1, 2))

    def distance(i: int, j: int) -> float:
        return float(kernel_distance(kernels[i], kernels[j])) if usable[i] & usable[j] else np.nan

    count = len(kernels)
    found["kernel_from_start"] = np.array([distance(t, 0) for t in range(count)])
    steps = [0.0, *(distance(t, t - 1) for t in range(1, count))]
    return {**found, "kernel_from_previous": np.array(steps)}


def _descend(
    config: dict[str, Any], context: Context, more: tuple[Callable[..., Any], ...]
) -> tuple[dict[str, Any], Mapping[str, Array]]:
    import jax

    from ....kernels import ntk
    from ....training import TrainConfig, build, gd, train

    chosen = TrainConfig.of(config)
    built = build(chosen)
    start = jax.tree.map(lambda leaf: leaf[0], built.initial)
    half, c = (0.5, 2 / chosen.n) if chosen.loss == "mean-squared" else (1 / chosen.n, 1.0)
    largest = c * np.linalg.eigvalsh(ntk(built.model, start, built.x[0], blocks="total").total)[-1]
    gamma = 1 / largest if config["eta"] is None else chosen.step_size
    run = train(
        built.model,
        built.initial,
        built.x,
        built.y,
        rule=gd(float(gamma)),
        steps=chosen.steps,
        loss=built.loss,
        seeds=chosen.seeds,
        record=("loss", "gradient", parameter_norm, *more),
        record_every=1,
        dtype=chosen.dtype,
        progress=lambda done, total, loss: context.progress(done, total, loss=loss),
    )
    if run.diverged_at[0] >= 0:
        context.diverged(run.outcomes[0])
    diverged = int(run.diverged_at[0])
    alive = (diverged < 0) | (np.arange(chosen.steps + 1) <= diverged)
    gradient, size = run.records["gradient"][0], run.records["parameter_norm"][0]
    return {
        "epoch": np.arange(chosen.steps + 1),
        "loss": np.where(alive, half * run.records["loss"][0], np.nan),
        "movement": np.where(alive, gamma * gradient / size, np.nan),
        "stability": gamma * largest,
        "finite": float(diverged < 0),
        "diverged_at": diverged if diverged >= 0 else np.nan,
    }, run.records


def parameter_norm(now: Any) -> dict[str, Array]:
    """A recorder: |theta| over all blocks."""
    import optax

    return {"parameter_norm": optax.tree.norm(now.params)}


def _cost(per_unit: float) -> Callable[[dict[str, Any]], tuple[float, float]]:
    """Seconds from the tokens x width product: 15 ms a step, 90 ms a kernel, for 1000 x 4000."""

    def estimate(config: dict[str, Any]) -> tuple[float, float]:
        hidden = config["n"] * config["data_options"].get("T", 1) * config["width"]
        return 5.0 + config["steps"] * max(1e-3, per_unit * hidden), 4e8 + 60.0 * hidden

    return estimate


_CURVES: dict[str, tuple[str, ...]] = {
    "epoch": ("epoch",),
    "loss": ("epoch",),
    "movement": ("epoch",),
    "stability": (),
    "finite": (),
    "diverged_at": (),
}

_ENDINGS = ("stability", "finite", "diverged_at")
"""Known of runs that diverge, too: the first comes from the start, the others tell of the end."""

descent = Measurement(
    name="wu2023-descent",
    version=1,
    function=measure_descent,
    outputs=_CURVES,
    estimate=_cost(8e-9),
    may_be_nan=("diverged_at",),
    endings=_ENDINGS,
)

drift = Measurement(
    name="wu2023-drift",
    version=1,
    function=measure_drift,
    outputs={**_CURVES, "kernel_from_start": ("epoch",), "kernel_from_previous": ("epoch",)},
    estimate=_cost(3e-8),
    may_be_nan=("diverged_at",),
    endings=_ENDINGS,
)

scaled_descent = Measurement(
    name="wu2023-scaled-descent",
    version=1,
    function=measure_scaled_descent,
    outputs=_CURVES,
    estimate=_cost(8e-9),
    may_be_nan=("diverged_at",),
    endings=_ENDINGS,
)
