"""Figure 2 of arda2026 at paper scale: a step with all its norms, in one pass or in several."""

from __future__ import annotations

from typing import Any

from benchmarks._timing import in_new_process, interleaved, target

N, N_VAL, M, STEPS, SEEDS = 4000, 1000, 64, 2000, 20
LAGS = (4, 16, 72, 96)
MODELS = ("Transformer", "IndRNN")
CORES = 2
OPTIONS = {"gamma": "1.5", "step": "paper", "data": "clean"}


def steps_of(model: str, L: int, normalise: bool) -> dict[str, Any]:
    """Compiled functions: a traced step on positional tokens; a plain step; what it records."""
    import jax

    from headcount.core import cast
    from headcount.papers.arda2026.figures import fig2
    from headcount.training import Snapshot, TrainConfig, build, gradient_path, recorders, tracers
    from headcount.training._tracers import Pass

    sizes = {"n": N, "n_val": N_VAL, "m": M, "steps": STEPS, "record_every": 1}
    built = build(TrainConfig.of(fig2.run_config(sizes, model, L, 0, normalise, OPTIONS)))
    params = cast(jax.tree.map(lambda leaf: leaf[0], built.initial), "float32")
    x, y, xv, yv = cast((built.x[0], built.y[0], *(v[0] for v in built.validation)), "float32")
    form = {"n": N, "T": L + 1}
    fast = gradient_path(built.model, built.loss, tokens=built.token_form, **form)
    slow = gradient_path(built.model, built.loss, **form)
    prepared = [
        jax.jit(path.prepare)(*pair) for path in (fast, slow) for pair in ((x, y), (xv, yv))
    ]

    @jax.jit
    def shared(p: Any, data: Any, held_out: Any) -> Any:
        loss, gradient, jacobian = fast.with_jacobian(p, data)
        noted = tracers["jacobian"](Pass(gradient, jacobian, lambda: loss))
        return loss, gradient, noted, fast.outputs(p, held_out)

    @jax.jit
    def several(p: Any, data: Any, x: Any, y: Any, xv: Any, yv: Any) -> Any:
        now = Snapshot(built.model, built.loss, slow, p, p, x, y, (xv, yv), 4096 // (L + 1))
        records = [recorders[name](now) for name in ("jacobian", "gradient", "validation")]
        return slow.loss_and_gradient(p, data), records

    plain = jax.jit(slow.loss_and_gradient)
    return {
        "shared": lambda: jax.block_until_ready(shared(params, prepared[0], prepared[1])),
        "several": lambda: jax.block_until_ready(several(params, prepared[2], x, y, xv, yv)),
        "plain": lambda: jax.block_until_ready(plain(params, prepared[2])),
    }


def one(model: str, L: int) -> dict[str, Any]:
    """Milliseconds of processor time for both kinds of tokens, the slower of the two."""
    rows = [interleaved(steps_of(model, L, normalise), repeats=5) for normalise in (True, False)]
    shared, several, plain = (
        1e3 * max(row[name] for row in rows) for name in ("shared", "several", "plain")
    )
    return {
        "model": model,
        "L": L,
        "shared_ms": shared,
        "plain_without_norms_ms": plain,
        "several_ms": several,
        "several / shared": several / shared,
    }


def run() -> dict[str, Any]:
    """Steps of both models at all lags, and what they make for the whole figure on two cores."""
    rows = [in_new_process(one, model=model, L=L) for model in MODELS for L in LAGS]
    hours = sum(2 * SEEDS * STEPS * row["shared_ms"] for row in rows) / 3.6e6 / CORES
    longest = {row["model"]: row for row in rows if row["L"] == LAGS[-1]}
    return {
        "name": "arda2026_fig2",
        "setting": f"n={N}, n_val={N_VAL}, m={M}, float32, one thread, processor time",
        "steps": rows,
        "hours": hours,
        "targets": [
            *(
                target(
                    f"norms and step / plain step, {model}, L={LAGS[-1]}",
                    row["shared_ms"] / row["plain_without_norms_ms"],
                    at_most=0.95,
                )
                for model, row in longest.items()
            ),
            target(f"hours of the figure on {CORES} cores", hours, at_most=4.0, aim=2.0),
        ],
    }
