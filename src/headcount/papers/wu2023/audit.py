"""What an audit of wu2023 looks at: one seed of a configuration, trained in float64.

Beside the claims it reports alpha, norms, sign changes of units between steps, the smallest
eigenvalues of all kernels, the Hessian's norm, and (4) step by step. The claims about runs, and
(4), are about plain gradient descent; the others are asked after any rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ...core import Array, BadArgument, float64
from ...data import DataModel
from ...kernels import ntk
from ...theory import Observed, iterates_of, stored_iterates
from ...theory._subject import slack_table
from ...theory.domain import MOST_ENTRIES, NotFinite
from ...training import Run as Trained
from ...training import TrainConfig, build
from ...training._build import Built
from . import quantities as model
from .constants import Constants, effective_tau1
from .hessian import hessian_norm
from .model import Encoder, EncoderParams
from .records import (
    ManyRows,
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
from .setting import Setting, Start, measure_start

MOST_KEPT = 2**25
"""Numbers in the iterates of gradient descent that are held at a time: 256 MiB."""
_AT_ONCE = 20
"""Iterates that one call of the compiled program looks at."""


@dataclass(frozen=True)
class History:
    """One run: values at theta^0 .. theta^t, sign changes between neighbours, some iterates."""

    loss: Float[Array, "points"]
    """(1/2)|f - y|^2."""
    alpha: Float[Array, "points"]
    """sigma_min(F_pre)."""
    norms: Float[Array, "points 4"]
    flips: Int[Array, "steps"]
    """Units, counted per sample and token, that change sign from one step to the next."""
    units: int
    pairs: tuple[tuple[EncoderParams, EncoderParams], ...]
    """The first and the last two neighbouring iterates."""
    last: EncoderParams
    top_of_kernel: float
    """lambda_max of the tangent kernel at the start."""
    largest_feature: float
    """max_n |f_pre(X_n)| at the start."""


def trained(config: TrainConfig, built: Built, progress: Any = None) -> Iterator[EncoderParams]:
    """The iterates of the one seed of `config`, in pieces whose ends are shared.

    Gradient descent has no memory: it is stopped and taken up again where a piece is full. Other
    rules have, and are one piece. `config` names its eta: by default that depends on the steps.
    """
    size = sum(leaf.size for leaf in jax.tree.leaves(built.initial))
    most = max(1, MOST_KEPT // size) if config.optimiser == "gd" else config.steps
    for done in range(0, config.steps, most):
        part = config.model_copy(update={"steps": min(most, config.steps - done)})
        told = progress and _shifted(progress, done, config.steps)
        piece, _ = iterates_of(part, built, progress=told)
        yield piece
        built = replace(built, initial=_some(piece, slice(-1, None)))


def _shifted(progress: Any, done: int, steps: int) -> Any:
    """Progress of a piece as that of the run."""
    return lambda count, _, loss: progress(done + count, steps, loss)


def history_of(i: Network, pieces: Iterable[EncoderParams]) -> History:
    """What was seen along a run from i.theta: its iterates in pieces whose ends are shared."""
    look = jax.jit(_looked_at)
    parts: list[dict[str, Any]] = []
    pairs: list[tuple[EncoderParams, EncoderParams]] = []
    with float64():
        signs = jax.jit(_signs)(i, i.theta)
        for piece in pieces:
            for begin in range(1 if pairs else 0, len(piece.w_O), _AT_ONCE):  # shared ends once
                signs, seen = look(i, signs, _some(piece, slice(begin, begin + _AT_ONCE)))
                parts.append(jax.device_get(seen))
            neighbours = [(_some(piece, at), _some(piece, at + 1)) for at in (0, -2)]
            pairs = [pairs[0] if pairs else neighbours[0], neighbours[1]]
        top, largest = jax.jit(_sizes_at_start)(i)
    seen_all = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if not np.all(np.isfinite(seen_all["loss"])):
        raise NotFinite("run", "loss", "is not finite at every step", fix="use a smaller eta")
    return History(
        **{name: seen_all[name] for name in ("loss", "alpha", "norms")},
        flips=seen_all["flips"][1:],
        units=int(np.prod(i.X.shape[:2])) * len(i.w_O),
        pairs=tuple(pairs),
        last=pairs[-1][-1],
        top_of_kernel=float(top),
        largest_feature=float(largest),
    )


def _some(piece: EncoderParams, at: Any) -> EncoderParams:
    """One iterate of a piece, or some; a copy, so that the piece can go."""
    return EncoderParams(*(np.array(block[at]) for block in piece))


def _signs(i: Network, theta: EncoderParams) -> Any:
    return model.hidden(i, theta) > 0


def _looked_at(i: Network, before: Any, thetas: EncoderParams) -> tuple[Any, dict[str, Any]]:
    """One iterate after the other: what is seen there, and the units that changed sign since."""

    def look(signs: Any, theta: EncoderParams) -> tuple[Any, dict[str, Any]]:
        now = _signs(i, theta)
        return now, {**_observed(i, theta), "flips": jnp.sum(now != signs)}

    return jax.lax.scan(look, before, thetas)


def _observed(i: Network, theta: EncoderParams) -> dict[str, Any]:
    F = model.features(i, theta)
    residual = F @ theta.w_O - i.y
    lowest = jnp.linalg.eigvalsh(F @ F.T)[0] if F.shape[0] <= F.shape[1] else 0.0
    return {
        "loss": jnp.sum(residual**2) / 2,
        "alpha": jnp.sqrt(jnp.maximum(lowest, 0.0)),
        "norms": jnp.stack(list(model.norms(theta))),
    }


def _sizes_at_start(i: Network) -> tuple[Any, Any]:
    F, J = model.features(i, i.theta), model.jacobian(i, i.theta)
    return jnp.linalg.eigvalsh(J @ J.T)[-1], jnp.max(jnp.linalg.norm(F, axis=1))


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
    instance = instance_at(built, EncoderParams(*(np.asarray(block[0]) for block in built.initial)))
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


def instance_at(built: Built, theta: EncoderParams) -> Network:
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
    fields, Phi = last.fields(), np.einsum("nt,ntd->nd", weights[:, 0], x)
    return {
        Network: [last],
        ScalarTokens: [ScalarTokens(**fields)] if d == 1 else [],
        OneToken: [OneToken(**fields)] if T == 1 else [],
        WideNetwork: [WideNetwork(**fields)] if len(whole.w_O) >= d else [],
        Move: moves,
        SmoothMove: [SmoothMove(**move.fields()) for move in moves],
        **{kind: [kind(**run.fields()) for run in runs] for kind in (Run, Step, SmoothStep)},
        Rows: [Rows(Phi=Phi)],
        ManyRows: [ManyRows(Phi=Phi)] if n >= d**4 else [],
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
