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
from ....models import IndRNN, IndRNNParams, PooledAttention, PooledAttentionParams
from .problem import TrainingCheckpoint
from .training import step_seconds

MODELS = ("Transformer", "IndRNN")
NORMS = ("jacobian_of_mean", "mean_jacobian", "largest_jacobian", "loss_gradient")
"""Four readings of "the Jacobian norm" of the recurrent or attention weights (ledger 1.10)."""


def measure_recurrent(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Maxima over training of the four norms, the smallest validation loss, and their traces.

    Recorded every `record_every` steps and at the end; tau itself counts, too.
    """
    from ....data import ARWindows
    from ....models import paired, paired_indrnn
    from ....training import gd, train

    law = ARWindows(
        L=config["L"],
        normalise_tokens=config["normalise_tokens"],
        standardise_labels=config["standardise_labels"],
        windows=config["windows"],
        split=config["split"],
    )
    data, validation = law.sample_split(config["n"], config["n_val"], config["seed"])
    model: Any
    if config["model"] == "Transformer":
        model = PooledAttention(law.d, config["m"])
        start: Any = paired(model, config["seed"])
    else:
        model = IndRNN(law.d, config["m"])
        start = paired_indrnn(model, config["seed"], gamma=config["gamma"])
    run = train(
        model,
        start,
        data.x,
        data.y,
        rule=gd(config["eta"]),
        steps=config["steps"],
        validation=(validation.x, validation.y),
        record=("validation", block_norms),
        record_every=config["record_every"],
        dtype=config["dtype"],
        checkpoint=TrainingCheckpoint(context),
        progress=lambda done, total, loss: context.progress(done, total, loss=loss),
    )
    if run.diverged_at >= 0:
        context.diverged(run.outcomes[0])
    traces = {name: run.records[name] for name in (*NORMS, "validation_loss")}
    return {
        **{f"max_{name}": np.max(traces[name]) for name in NORMS},
        **{f"first_{name}": traces[name][0] for name in NORMS},
        "min_validation_loss": np.min(traces["validation_loss"]),
        "min_training_loss": run.min_loss,
        "validation_loss": traces["validation_loss"],
        "jacobian_of_mean": traces["jacobian_of_mean"],
        "recorded_step": run.recorded_steps,
    }


def block_norms(now: Any) -> dict[str, Array]:
    """Norms of grad_W (Transformer) or grad_w (IndRNN), of the outputs and of the loss.

    The block alone and in closed form, for a fraction of the cost of the recorders "jacobian" and
    "gradient", whose numbers for that block these are; grad L = sum_j r_j grad f(X_j) with
    r_j = dL/df_j.
    """
    from ....training import fold_chunks

    one = transformer_block if isinstance(now.model, PooledAttention) else indrnn_block
    n = now.x.shape[0]

    def sums_and_lengths(samples: Any) -> tuple[tuple[Array, Array], Array]:
        """Sums over one chunk of grad f and of r grad f, and the length of every grad f."""
        x, y, weight = samples
        f, left, q = jax.vmap(lambda X: one(now.model, now.params, X))(x)
        flat = left.reshape(len(x), -1)
        fresh = (weight > 0).astype(x.dtype)  # the last chunk repeats some samples
        r = weight * now.loss.slope(f, y)
        lengths = jnp.sqrt(jnp.sum(flat**2, axis=1) * jnp.sum(q**2, axis=1))
        return ((fresh[:, None] * q).T @ flat, (r[:, None] * q).T @ flat), lengths

    (outputs, loss), lengths = fold_chunks(sums_and_lengths, now.chunks())
    return {
        "jacobian_of_mean": jnp.linalg.norm(outputs) / n,
        "mean_jacobian": jnp.mean(lengths),
        "largest_jacobian": jnp.max(lengths),
        "loss_gradient": jnp.linalg.norm(loss),
    }


def transformer_block(
    model: PooledAttention, params: PooledAttentionParams, X: Float[Array, "T d"]
) -> tuple[Float[Array, ""], Float[Array, "d m"], Float[Array, "d"]]:
    """f, left and q: grad_{W_i} f = left_i q^T, left_i = m^{-1/2} c_i sigma'(U_i.a_i) M_i U_i.

    Heads are the last axis, which is what vectorises: M U = sum_t alpha_t (U.X_t - U.a) X_t.
    """
    q = model.query(X)
    alpha = jax.nn.softmax(X @ jnp.einsum("mij,j->im", params.W, q), axis=0)
    values = X @ params.U.T
    s = jnp.sum(alpha * values, axis=0)
    weight = params.c / math.sqrt(model.m)
    left = X.T @ (alpha * (values - s)) * (weight * model.activation.derivative(s))
    return model.activation(s) @ weight, left, q


def indrnn_block(
    model: IndRNN, params: IndRNNParams, X: Float[Array, "T d"]
) -> tuple[Float[Array, ""], Float[Array, "1 m"], Float[Array, "1"]]:
    """f, and grad_w f = m^{-1/2} c o D_T with D_t = sigma'(pre_t) o (h_{t-1} + w o D_{t-1})."""

    def step(carry: tuple[Array, Array], drive: Array) -> tuple[tuple[Array, Array], None]:
        h, D = carry
        pre = drive + params.w * h
        slope = model.activation.derivative(pre)
        return (model.activation(pre), slope * (h + params.w * D)), None

    zero = jnp.zeros_like(params.w)
    (h, D), _ = jax.lax.scan(step, (zero, zero), X @ params.U.T)
    root = math.sqrt(model.m)
    return params.c @ h / root, (params.c * D / root)[None], jnp.ones((1,), X.dtype)


def measure_memory(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """Bytes that predicting the next value of a stream needs beyond the weights, as compiled.

    One step takes a state and a token, and returns the new state and the prediction. The state is
    the window of the last T tokens for the Transformer, the hidden vector for the IndRNN; its size
    and the program's working memory are what the compiler reports. For training, the working
    memory of one sample's gradient.
    """
    d, m, T = config["d"], config["m"], config["L"] + 1
    model: Any = PooledAttention(d, m) if config["model"] == "Transformer" else IndRNN(d, m)
    stream = stream_transformer if config["model"] == "Transformer" else stream_indrnn
    state = (T, d) if config["model"] == "Transformer" else (m,)
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
    T, n = config["L"] + 1, config["n"]
    transformer = config["model"] == "Transformer"
    each = step_seconds(n, T, 17, config["m"]) * (1.15 if transformer else 0.8)
    # A record costs about a step, and for the Transformer the sums of m d^2 numbers per sample.
    record = 1.2 * each + (5.5e-8 * n * config["m"] if transformer else 0.0)
    records = config["steps"] / config["record_every"]
    return 3.0 + each * config["steps"] + record * records, 3e8 + 24.0 * n * T * 17


recurrent = Measurement(
    name="arda2026-recurrent",
    version=2,
    function=measure_recurrent,
    outputs={
        **{f"max_{name}": () for name in NORMS},
        **{f"first_{name}": () for name in NORMS},
        "min_validation_loss": (),
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
    estimate=lambda config: (2.0, 3e8),
)
