"""One training run of App. G: losses, average norms, margin, attention or alignment along k."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from ....core import Array
from ....lab import Context, Measurement

if TYPE_CHECKING:
    from ....training import Run, Snapshot
    from ..dm1 import DM1
    from ..dm2 import DM2

TRACE_POINTS = 120
"""Most iterations of a run that are kept, evenly spread on a logarithmic axis."""
EARLY = 50
"""So many first iterations are all recorded, whatever `record_every` is."""
LEVEL = 0.01
"""`iterations_to_level` is the first k with a training loss below this."""


@dataclass(frozen=True)
class RelevantAttention:
    """The mean attention on tokens that equal mu_y, over samples, heads and query rows."""

    law: DM1

    def __call__(self, now: Snapshot) -> dict[str, Array]:
        """The attention score of Fig. 2; it starts at zeta."""
        import jax.numpy as jnp

        from ....training import AttentionMass

        both = np.stack([self.law.mu_minus, self.law.mu_plus])
        mu = jnp.asarray(both, now.x.dtype)[(now.y > 0).astype(int)][:, None, :]
        return AttentionMass(jnp.all(now.x == mu, axis=-1))(now)


def recorded_heads(now: Snapshot) -> dict[str, Array]:
    """The parameters themselves, one entry per group of equal heads."""
    return {"U": now.params.U, "W": now.params.W}


def measure_run(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """One run of H heads, reduced to its groups of equal heads, as Figs. 2-5 show it.

    `config` holds a `TrainConfig` with one seed, and `rule_options`: what the optimiser takes
    besides its step size, which the paper does not give.
    """
    from ....models import outputs
    from ....training import optimisers, train
    from ..dm1 import DM1

    chosen, built = problem_of(config)
    seen: list[Any] = ["validation", "margin", recorded_heads]
    if isinstance(built.data, DM1):
        seen.append(RelevantAttention(built.data))
    follow = partial(
        train,
        built.model,
        built.initial,
        built.x,
        built.y,
        rule=optimisers[chosen.optimiser](chosen.step_size, **config["rule_options"]),
        loss=built.loss,
        seeds=chosen.seeds,
        validation=built.validation,
        record=seen,
        dtype=chosen.dtype,
    )
    # The first steps, each recorded, then all of them from the start: the same compiled program.
    early = follow(steps=min(EARLY, chosen.steps), record_every=1)
    run = follow(
        steps=chosen.steps,
        record_every=chosen.record_every,
        progress=lambda done, total, loss: context.progress(done, total, loss=loss),
    )
    if run.diverged_at[0] >= 0:
        context.diverged(run.outcomes[0])
    found = described(early, run, built.model, built.data)
    if isinstance(built.data, DM1):
        first = outputs(built.model, run.parameters("initial"), built.x[0])
        found["start_output"] = np.sqrt(np.mean(np.asarray(first) ** 2))
    return found


def problem_of(config: Mapping[str, Any]) -> tuple[Any, Any]:
    """The configuration of a trial without what is not part of a `TrainConfig`, and its objects."""
    from ....training import TrainConfig, build

    own = {name: value for name, value in config.items() if name in TrainConfig.model_fields}
    chosen = TrainConfig.of(own).naming_seeds()
    return chosen, build(chosen)


def described(early: Run, run: Run, model: Any, law: Any) -> dict[str, Any]:
    """The outputs of a run: what the panels show, at a logarithmic selection of iterations."""
    from ..dm1 import DM1

    steps, found = joined(early, run)
    at = logarithmic(steps)
    k, records = steps[at], {name: values[at] for name, values in found.items()}
    U, W = records["U"], records["W"]
    trace = np.append(run.loss[0], run.final_loss[0])
    norm_W, norm_U = average_norms(U, W, model.multiplicities)
    if isinstance(law, DM1):
        own = {"attention": records["attention_mass"]}
    else:
        own = dict(
            zip(("alignment_W", "alignment_U"), alignments(U, W, law, run.seeds[0]), strict=True)
        )
    return {
        "train_loss": trace[k],
        "test_loss": records["validation_loss"],
        "norm_W": norm_W,
        "norm_U": norm_U,
        "margin": records["normalised_margin"],
        **own,
        "iterations_to_level": first_below(trace, LEVEL),
        "late_slope": late_slope(trace),
        "k": k,
    }


def joined(early: Run, run: Run) -> tuple[Int[Array, "records"], dict[str, Array]]:
    """The recorded steps of two runs that are the same as far as the first goes, each once."""
    steps = np.concatenate([early.recorded_steps, run.recorded_steps])
    steps, first = np.unique(steps, return_index=True)
    return steps, {
        name: np.concatenate([early.records[name][0], run.records[name][0]])[first]
        for name in run.records
    }


def logarithmic(steps: Int[Array, "records"]) -> Int[Array, "kept"]:
    """Indices of at most 120 of the recorded steps from 1 on, evenly spread in log k."""
    wanted = np.geomspace(1, steps[-1], TRACE_POINTS)
    return np.unique(np.clip(np.searchsorted(steps, wanted), 1, len(steps) - 1))


def average_norms(
    U: Float[Array, "k G T d"], W: Float[Array, "k G d d"], counts: tuple[int, ...]
) -> tuple[Float[Array, "k"], Float[Array, "k"]]:
    """(1/H) sum_h |W_h| and H^{-1/2} sum_h |U_h| [deora2024, caption of Fig. 2]."""
    H = sum(counts)
    heads = np.asarray([float(c) for c in counts])
    lengths_W = np.sqrt(np.sum(W**2, axis=(2, 3)))
    lengths_U = np.sqrt(np.sum(U.reshape(*U.shape[:2], -1) ** 2, axis=2))
    return lengths_W @ heads / H, lengths_U @ heads / math.sqrt(H)


def alignments(
    U: Float[Array, "k G T d"], W: Float[Array, "k G d d"], law: DM2, seed: int
) -> tuple[Float[Array, "k"], Float[Array, "k"]]:
    """cos(W~, W~*) and cos(U~, U~*), the planted head repeated H times; NaN where W~ or U~ is 0.

    The runs start from zero, so that there is one group and H cancels [deora2024, Fig. 4].
    """
    planted = law.planted(seed)

    def cosine(heads: Array, target: Array) -> Float[Array, "k"]:
        (own,) = np.moveaxis(heads, 1, 0)
        inner = np.tensordot(own, target, axes=2)
        length = np.linalg.norm(own, axis=(1, 2)) * np.linalg.norm(target)
        return np.divide(inner, length, out=np.full(len(own), np.nan), where=length > 0)

    return cosine(W, planted.W), cosine(U, planted.U)


def first_below(trace: Float[Array, "k"], level: float) -> float:
    """The first k with trace[k] < level; NaN if there is none."""
    below = np.flatnonzero(trace < level)
    return float(below[0]) if below.size else math.nan


def late_slope(trace: Float[Array, "k"]) -> float:
    """d log L / d log k from a tenth of the run to its end: -1 is O(1/k)."""
    last = len(trace) - 1
    k = np.unique(np.geomspace(max(1, last // 10), last, 50).round().astype(int))
    return float(np.polyfit(np.log(k), np.log(trace[k]), 1)[0]) if len(k) > 1 else math.nan


def run_config(settings: Mapping[str, Any], **values: Any) -> dict[str, Any]:
    """The configuration of a trial; `settings` are the numbers of a figure's scale."""
    from ....training import TrainConfig

    optimiser = values["optimiser"]
    base = {
        "model": "deora2024-groups",
        "n": settings["n"],
        "n_val": settings["n_test"],
        "steps": settings["steps"],
        "record_every": settings["record_every"],
        "dtype": "float64",
    }
    options = dict(settings["optimiser_options"].get(optimiser, {}))
    dump = TrainConfig.of({**base, **values}).model_dump(mode="json")
    return {**dump, "rule_options": options}


def _cost(config: dict[str, Any]) -> tuple[float, float]:
    data = config["data_options"]
    heads = config["width"] if config["model"] == "deora2024" else 2
    numbers = heads * data["T"] ** 2 * data["d"]
    per_step = 2e-5 + 6e-10 * numbers * config["n"]
    per_record = 4e-4 + 1e-9 * numbers * (config["n"] + config["n_val"])
    steps = config["steps"]
    records = EARLY + steps / config["record_every"]
    seconds = 0.05 + steps * per_step + records * per_record
    return seconds, 3e8 + 32.0 * data["T"] * data["d"] * (config["n"] + config["n_val"])


_SHARED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("train_loss", "test_loss", "norm_W", "norm_U", "margin"), ("k",)),
    "iterations_to_level": (),
    "late_slope": (),
    "k": ("k",),
}
_NONE = ("iterations_to_level", "late_slope")
_measurement = partial(Measurement, version=1, function=measure_run, estimate=_cost)

dm1_run = _measurement(
    name="deora2024-dm1-run",
    outputs={"attention": ("k",), "start_output": (), **_SHARED},
    may_be_nan=_NONE,
)
dm2_run = _measurement(
    name="deora2024-dm2-run",
    outputs={"alignment_W": ("k",), "alignment_U": ("k",), **_SHARED},
    may_be_nan=(*_NONE, "alignment_W", "alignment_U"),
)
