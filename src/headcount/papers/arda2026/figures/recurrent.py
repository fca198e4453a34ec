"""Transformer or IndRNN on AR(L): one training run, and the memory that streaming needs.

[arda2026, Sec. 6.2 and App. B]
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ....core import Array
from ....lab import Context, Measurement
from ..model import IndRNN, PooledAttention
from .problem import TrainingCheckpoint

MODELS = {"Transformer": "arda2026", "IndRNN": "indrnn"}
"""The figure's names of the models, and those of their configurations."""
NORMS = {
    "jacobian_of_mean": "jacobian_of_mean",
    "mean_jacobian": "jacobian_mean",
    "largest_jacobian": "jacobian_max",
    "loss_gradient": "gradient",
}
"""Four readings of "the Jacobian norm" of the recurrent or attention weights, and
what the tracer "jacobian" calls them."""
BLOCKS = {"arda2026": "W", "indrnn": "w"}


def measure_recurrent(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Maxima over s < tau of the four norms, the smallest validation loss, and their traces.

    Noted every `record_every` steps; `end_...` are the numbers at tau itself.
    """
    from ....training import TrainConfig, run_config

    chosen = TrainConfig.of(config).naming_seeds()
    run = run_config(
        chosen,
        trace=("jacobian", "validation"),
        checkpoint=TrainingCheckpoint(context),
        progress=lambda done, total, loss: context.progress(done, total, loss=loss),
    )
    if run.diverged_at[0] >= 0:
        context.diverged(run.outcomes[0])
    steps = np.unique([*range(0, chosen.steps, chosen.record_every or chosen.steps), chosen.steps])
    block = BLOCKS[chosen.model]
    norms = {ours: run.traces[f"{name}_{block}"][0][steps] for ours, name in NORMS.items()}
    validation = run.traces["validation_loss"][0][steps]
    return {
        **{f"max_{name}": np.max(values[:-1]) for name, values in norms.items()},
        **{f"first_{name}": values[0] for name, values in norms.items()},
        **{f"end_{name}": values[-1] for name, values in norms.items()},
        "min_validation_loss": np.min(validation[:-1]),
        "end_validation_loss": validation[-1],
        "min_training_loss": run.min_loss[0],
        "validation_loss": validation,
        "jacobian_of_mean": norms["jacobian_of_mean"],
        "recorded_step": steps,
    }


def measure_memory(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Bytes that predicting the next value of a stream needs beyond the weights, as compiled.

    One step takes a state and a token, and returns the new state and the prediction. The state is
    the window of the last T tokens for the Transformer, the hidden vector for the IndRNN; its size
    and the program's working memory are what the compiler reports. For training, the working
    memory of one sample's gradient.
    """
    from ....training import TrainConfig
    from ....training._build import build_data, build_model

    chosen = TrainConfig.of(config)
    data = build_data(chosen)
    model, T, d = build_model(chosen, data), data.T, data.d
    transformer = chosen.model == MODELS["Transformer"]
    stream: Any = stream_transformer if transformer else stream_indrnn
    state = (T, d) if transformer else (model.m,)
    blank = jax.tree.map(
        lambda shape: jax.ShapeDtypeStruct(shape, jnp.float32),
        (model.shapes(), state, (d,), (T, d)),
        is_leaf=lambda leaf: isinstance(leaf, tuple) and all(isinstance(k, int) for k in leaf),
    )
    params, held, token, sample = blank
    predict = jax.jit(lambda p, s, x: stream(model, p, s, x)).lower(params, held, token).compile()
    learn = jax.jit(jax.grad(lambda p, x: model(p, x))).lower(params, sample).compile()
    return {
        "state_bytes": 4 * math.prod(state),
        "streaming_bytes": 4 * math.prod(state) + _working_bytes(predict),
        "gradient_bytes": _working_bytes(learn),
    }


def stream_transformer(
    model: PooledAttention, params: Any, window: Float[Array, "T d"], token: Float[Array, "d"]
) -> tuple[Float[Array, "T d"], Float[Array, ""]]:
    """Drop the oldest token, add the new one, predict from the whole window."""
    window = jnp.concatenate([window[1:], token[None]])
    return window, model(params, window)


def stream_indrnn(
    model: IndRNN, params: Any, h: Float[Array, "m"], token: Float[Array, "d"]
) -> tuple[Float[Array, "m"], Float[Array, ""]]:
    """One recurrence, then the read-out."""
    h = model.activation(params.U @ token + params.w * h)
    return h, params.c @ h / math.sqrt(model.m)


def _working_bytes(program: Any) -> int:
    return int(program.memory_analysis().temp_size_in_bytes)


def _recurrent_cost(config: dict[str, Any]) -> tuple[float, float]:
    """With all norms and the validation, on one thread of a machine of 2024.

    At n = 4000, m = 64 and L = 96 a step of the Transformer takes 45 ms, of the IndRNN 33 ms.
    """
    T, lanes = (
        config["data_options"]["L"] + 1,
        config["width"] * (config["n"] + config["n_val"] / 2),
    )
    transformer = config["model"] == MODELS["Transformer"]
    each = lanes * (6e-9 + 1.6e-9 * T if transformer else 1.2e-9 * T)
    numbers = (config["n"] + config["n_val"]) * T * 17
    return 0.02 + (3e-4 + each) * config["steps"], 3e8 + 24.0 * numbers


recurrent = Measurement(
    name="arda2026-recurrent",
    version=3,
    function=measure_recurrent,
    outputs={
        **{f"{when}_{name}": () for when in ("max", "first", "end") for name in NORMS},
        "min_validation_loss": (),
        "end_validation_loss": (),
        "min_training_loss": (),
        "validation_loss": ("recorded_step",),
        "jacobian_of_mean": ("recorded_step",),
        "recorded_step": ("recorded_step",),
    },
    estimate=_recurrent_cost,
)

memory = Measurement(
    name="arda2026-memory",
    version=1,
    function=measure_memory,
    outputs={"state_bytes": (), "streaming_bytes": (), "gradient_bytes": ()},
    estimate=lambda config: (0.02, 3e8),
    compiling=0.5,
)
