"""What an audit of wu2023 looks at: one seed of a configuration, trained in float64.

Beside the claims it reports alpha, norms, sign changes of units between steps, the smallest
eigenvalues of all kernels, the Hessian's norm, and (4) step by step. The claims about runs, and
(4), are about plain gradient descent; the others are asked after any rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from ...core import BadArgument, float64
from ...data import DataModel
from ...kernels import ntk
from ...theory import Observed, slack_table, stored_iterates
from ...theory.domain import MOST_ENTRIES
from ...training import Built, TrainConfig, build
from ...training import Run as Trained
from . import quantities as model
from .conditions import Start, measure_start
from .constants import Constants, effective_tau1
from .hessian import hessian_norm
from .history import History, history_of, trained
from .model import Encoder, EncoderParams
from .records import (
    Move,
    Network,
    OneToken,
    Rows,
    Samples,
    ScalarTokens,
    SmoothMove,
    Softmax,
    WideNetwork,
)
from .runs import Run, SmoothStep, Step
from .setting import Setting

_SAMPLES = 16
"""Samples at which the claims about encoders are asked; the run itself uses all of them."""


@dataclass(frozen=True, kw_only=True)
class Subject(Observed):
    """One audited run: what it offers, its history, and tables of what was measured on it."""

    history: History = field(repr=False)


def check_config(config: TrainConfig) -> None:
    """Raise unless the configuration trains the encoder that the theorems speak about."""
    if config.model != "wu2023":
        problem = "is outside what wu2023's theorems speak about"
        raise BadArgument("model", config.model, problem, fix="use model=wu2023")
    if config.model_options.get("residual", False):
        problem = "is a variant that the theorems do not cover"
        raise BadArgument("residual", True, problem, fix="use residual=false")


def subject(
    config: TrainConfig,
    seed: int,
    *,
    delta: float,
    run: Trained | None = None,
    data: DataModel | None = None,
    progress: Any = None,
) -> Subject:
    """Train seed `seed` of `config`, unless `run` holds it, and collect what the claims ask."""
    check_config(config)
    changes = {"seeds": (seed,), "dtype": "float64", "n_val": 0, "eta": config.step_size}
    one = config.model_copy(update=changes)
    built = build(one, data)
    setting = _setting(one, built, delta, own_data=data is not None)
    recorded = one.model_copy(update={"record": ("iterates",), "record_every": 1, "keep": ()})
    path, source = stored_iterates(run, seed, recorded, built)
    instance = _instance(built, EncoderParams(*(np.asarray(block[0]) for block in built.initial)))
    pieces = trained(recorded, built, progress) if path is None else (path,)
    history = history_of(instance, pieces)
    descent = _is_descent(one)
    notes = [source]
    if not descent:
        notes.append(f"{one.optimiser} is no gradient descent: no claim about runs")
    if _too_wide_for_pairs(instance):
        notes.append(f"width {one.width} is too wide for claims about two iterates at once")
    gamma = one.step_size * setting.loss_scale if descent else None
    return Subject(
        seed=seed,
        setting=setting,
        history=history,
        offers=_offers(instance, history, setting, gamma),
        findings=_findings(built.model, instance, history, setting, gamma),
        note="; ".join(filter(None, notes)),
    )


def _is_descent(config: TrainConfig) -> bool:
    """Whether every step is one of gradient descent on the loss of all samples."""
    return config.optimiser == "gd" and config.batch_size is None


def _setting(config: TrainConfig, built: Built, delta: float, *, own_data: bool) -> Setting:
    """The start is drawn from the configuration, or measured on data that it does not name."""
    if _is_descent(config) and not own_data:
        return Setting.of(config, delta=delta)
    start = EncoderParams(*(block[0] for block in built.initial))
    measured = measure_start(built.model, start, built.x[0], built.y[0]) if own_data else None
    setting = Setting.of_problem(config, built.data, delta=delta, measured=measured)
    return setting.resized(step_size=config.eta) if _is_descent(config) else setting


def _instance(built: Built, theta: EncoderParams) -> Network:
    encoder: Encoder = built.model
    tau1 = effective_tau1(encoder.tau1, encoder.pooling, built.x[0].shape[1])
    tau = np.array([encoder.tau0, tau1])
    return Network(X=np.asarray(built.x[0]), y=np.asarray(built.y[0]), tau=tau, **theta._asdict())


def _too_wide_for_pairs(whole: Network) -> bool:
    """Two neighbouring iterates are one instance, which may hold so many numbers."""
    weights = sum(np.size(block) for block in whole.theta)
    return np.size(whole.X[:_SAMPLES]) + 2 * weights + 2 * _SAMPLES > MOST_ENTRIES


def _offers(
    whole: Network, history: History, setting: Setting, gamma: float | None
) -> dict[type, list[Any]]:
    x, y, tau = whole.X[:_SAMPLES], whole.y[:_SAMPLES], whole.tau
    with float64():
        last = Network(X=x, y=y, tau=tau, **history.last._asdict())
        weights = np.asarray(jax.jit(lambda i: model.attention(i, i.theta))(last))
        residual = np.asarray(jax.jit(model.outputs)(whole, whole.theta)) - whole.y
    pairs = () if _too_wide_for_pairs(whole) else history.pairs
    moves = [_move(Network(X=x, y=y, tau=tau, **a._asdict()), b) for a, b in pairs]
    logits = np.log(np.maximum(weights[0, :_SAMPLES], 1e-300))
    runs = []
    if gamma is not None and setting.d_m >= setting.n:
        numbers = {"room": np.array(setting.room.C), "gamma": np.asarray(gamma), "tau": tau}
        steps, start = len(history.loss) - 1, whole.theta._asdict()
        runs.append(Run(X=whole.X, residual=residual, **start, **numbers, steps=steps))
    n, T, d = x.shape
    fields = last.fields()
    return {
        Network: [last],
        ScalarTokens: [ScalarTokens(**fields)] if d == 1 else [],
        OneToken: [OneToken(**fields)] if T == 1 else [],
        WideNetwork: [WideNetwork(**fields)] if len(whole.w_O) >= d else [],
        Move: moves,
        SmoothMove: [SmoothMove(**move.fields()) for move in moves],
        **{kind: [kind(**run.fields()) for run in runs] for kind in (Run, Step, SmoothStep)},
        Rows: [Rows(Phi=np.einsum("nt,ntd->nd", weights[:, 0], x))],
        Samples: [Samples(X=x, u=logits[0])] if n >= 2 else [],
        Softmax: [Softmax(u=row, v=np.eye(len(row))[0]) for row in logits],
    }


def _move(network: Network, after: EncoderParams) -> Move:
    steps = (b - a for a, b in zip(network.theta, after, strict=True))
    return Move(**network.fields(), **dict(zip(("d_Q", "d_K", "d_V", "d_O"), steps, strict=True)))


def _findings(
    encoder: Encoder, i: Network, history: History, setting: Setting, gamma: float | None
) -> dict[str, dict[str, Any]]:
    start = setting.start
    second, third = setting.room.ratios
    return {
        "at the start": {
            **_start_table(start),
            "(2): right over left side": second,
            "(3): right over left side": third,
            **({} if gamma is None else {"gamma": gamma}),
            "1/C printed": 1 / setting.smoothness("printed"),
            "1/C corrected": 1 / setting.smoothness("corrected"),
        },
        "along the run": {
            "last loss": float(history.loss[-1]),
            **({} if gamma is None else _beside_promise(history, gamma * start.alpha**2 / 2)),
            "smallest sigma_min(F_pre) over alpha": _over(np.min(history.alpha), start.alpha),
            **{
                f"largest ||W_{block}|| over its start": _over(np.max(column), column[0])
                for block, column in zip("QKVO", history.norms.T, strict=True)
            },
        },
        "sign changes of units": {
            "in all": int(np.sum(history.flips)),
            "steps with any": int(np.sum(history.flips > 0)),
            "last step with one": int(np.max(np.flatnonzero(history.flips), initial=0)),
            "units times tokens times samples": history.units,
        },
        **_kernel_tables(encoder, i, history),
    }


def _beside_promise(history: History, rate: float) -> dict[str, Any]:
    """The loss of every step beside (4), (1 - rate)^t l_0."""
    promise = (1 - rate) ** np.arange(len(history.loss)) * history.loss[0]
    broken = np.flatnonzero(~(history.loss <= promise * (1 + 1e-9)))
    return {
        "(4) fails first at step": int(broken[0]) if len(broken) else "never",
        "largest l_t over (4)": float(np.max(history.loss / promise)),
    }


def _over(value: Any, start: float) -> float:
    return float(value / start) if start > 0 else float("nan")


def _start_table(start: Start) -> dict[str, float]:
    norms = {f"||W_{block}||": value for block, value in zip("QKVO", start.norms, strict=True)}
    return {"alpha": start.alpha, **norms, "C_x": start.sizes.C_x, "l_0": start.loss}


def _kernel_tables(encoder: Encoder, i: Network, history: History) -> dict[str, dict[str, Any]]:
    """lambda_min of every block's kernel and ||H|| on the first sample, at both ends of the run."""
    tables = {}
    for name, theta in (("at the start", i.theta), ("at the end", history.last)):
        kernel = ntk(encoder, theta, i.X)
        blocks = {**kernel.blocks, "all": kernel.total}
        lowest = {
            f"lambda_min of K, {block}": float(np.linalg.eigvalsh(np.asarray(value))[0])
            for block, value in blocks.items()
        }
        norm = {"||H|| on the first sample": hessian_norm(encoder, theta, i.X[0])}
        tables[f"kernels and Hessian {name}"] = {**lowest, **norm}
    return tables


def slack(subject: Subject, variant: str) -> list[dict[str, float | str]]:
    """Where the constants lose: each beside what it stands for on the run."""
    start, history, k = subject.setting.start, subject.history, Constants(subject.setting, variant)
    top = history.top_of_kernel
    pairs = [
        ("c2 / ||Jacobian||", k.c2, top**0.5),
        ("C / lambda_max(K)", k.C, top),
        ("rho lam_V / max |f_pre|", k.rho * k.lam.V, history.largest_feature),
        ("lam_V / ||W_V||", k.lam.V, start.norms.V),
        ("lam_O / |w_O|", k.lam.O, start.norms.O),
    ]
    return slack_table(pairs)
