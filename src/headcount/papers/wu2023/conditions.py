"""Conditions (2) and (3) of wu2023 at a given start: what they need, and the best C_*.

In the logarithms of the C_* both conditions are maxima of logarithms of posynomials, hence convex:
a geometric program, whose optimum is global.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
from jaxtyping import Float

from ...core import Array, BadArgument, check_count, check_samples, float64, self_attention
from .constants import Constants, Norms, Sizes, Symbols, effective_tau1
from .model import Encoder, EncoderParams

CHUNK = 2**11
"""Units whose features are held at a time: few enough to stay in the cache, twice as fast."""


_FAR = 40.0
"""Bounds |log C_*| while the optimiser looks around."""


@dataclass(frozen=True)
class Start:
    """theta^0 on a data set, as Prop. 1 sees it."""

    sizes: Sizes
    norms: Norms
    alpha: float
    """sigma_min(F_pre), from the N x N matrix F_pre F_pre^T: exact to about 1e-8 of sigma_max."""
    loss: float
    """(1/2)|f - y|^2."""


def measure_start(
    model: Encoder, params: EncoderParams, x: Float[Array, "n T d"], y: Float[Array, "n"]
) -> Start:
    """Norms, alpha, C_x and the loss at theta^0; features are streamed over the width."""
    n, T, _ = check_samples(x, y)
    if model.residual:
        raise BadArgument("residual", True, "is not what Prop. 1 is about", fix="use false")
    W_Q, W_K, W_V, w_O = (np.asarray(block, np.float64) for block in params)
    tau1 = float(effective_tau1(model.tau1, model.pooling, T))
    with float64():
        M = model.tau0 * W_Q.T @ W_K
        phi = np.stack([np.asarray(self_attention(one, M)) @ one for one in np.asarray(x)])
    products, f = np.zeros((n, n)), np.zeros(n)
    for begin in range(0, len(w_O), CHUNK):
        part = slice(begin, begin + CHUNK)
        features = tau1 * np.sum(np.maximum(phi @ W_V[part].T, 0.0), axis=1)
        products += features @ features.T
        f += features @ w_O[part]
    alpha = math.sqrt(max(float(np.linalg.eigvalsh(products)[0]), 0.0)) if len(w_O) >= n else 0.0
    C_x = float(np.max(np.linalg.norm(np.asarray(x).reshape(n, -1), axis=1))) / math.sqrt(T)
    norms = Norms(_norm(W_Q), _norm(W_K), _norm(W_V), float(np.linalg.norm(w_O)))
    loss = float(np.sum((f - np.asarray(y)) ** 2) / 2)
    return Start(Sizes(float(n), float(T), model.tau0, tau1, C_x), norms, alpha, loss)


def _norm(W: Float[Array, "d_m d"]) -> float:
    """The spectral norm, from the d x d matrix W^T W where that is the smaller."""
    if W.shape[0] < W.shape[1]:
        return float(np.linalg.norm(W, 2))
    return math.sqrt(max(float(np.linalg.eigvalsh(W.T @ W)[-1]), 0.0))


@dataclass(frozen=True)
class Room:
    """C_* for every block, and right over left side of (2) and of (3) with them."""

    C: Norms
    ratios: tuple[float, float]

    @property
    def worst(self) -> float:
        """The larger of the two: both conditions hold where it is at most 1."""
        return max(self.ratios)


def constants_at(start: Start, room: Norms) -> Constants:
    """The constants of (2) and (3), which the forms share, for given C_*."""
    lam = start.norms + room
    return Constants(Symbols(start.sizes, lam, room, start.alpha, start.loss), "printed")


def ratios_at(start: Start, room: Norms) -> tuple[float, float]:
    """Right over left side of (2) and of (3) for given C_*; infinite where alpha is 0."""
    if start.alpha <= 0:
        return math.inf, math.inf
    k = constants_at(start, room)
    return float(k.condition_2), float(k.condition_3)


def best_room(start: Start) -> Room:
    """The C_* that make the worse of (2) and (3) as good as it can be."""
    sizes = [max(norm, 1e-12) for norm in start.norms]
    if start.alpha <= 0 or start.loss <= 0:
        unit = Norms(*sizes)
        return Room(unit, ratios_at(start, unit) if start.loss > 0 else (0.0, 0.0))

    def logs(u: Float[Array, "4"]) -> Float[Array, "5"]:
        k = constants_at(start, Norms(*np.exp(np.clip(u, -_FAR, _FAR))))
        return np.log([*k.condition_2_terms, k.condition_3])

    found = [_minimax(logs, u) for u in (np.log(sizes), np.zeros(4), np.log(sizes) - 3.0)]
    rooms = [Norms(*np.exp(np.clip(u, -_FAR, _FAR)).tolist()) for u in found]
    best = min(rooms, key=lambda room: max(ratios_at(start, room)))
    return Room(best, ratios_at(start, best))


def _minimax(logs: Any, u: Float[Array, "4"]) -> Float[Array, "4"]:
    """The minimiser of max logs(u), as min t subject to logs(u) <= t."""
    found = scipy.optimize.minimize(
        lambda v: v[-1],
        np.append(u, np.max(logs(u))),
        jac=lambda v: np.append(np.zeros(4), 1.0),
        constraints={"type": "ineq", "fun": lambda v: v[-1] - logs(v[:-1])},
        method="SLSQP",
        options={"maxiter": 300, "ftol": 1e-10},
    )
    return np.asarray(found.x[:-1])


@dataclass(frozen=True)
class RequiredWidth:
    """The least width of a grid at which (2) and (3) hold, and every width that was tried."""

    width: int | None
    tried: tuple[tuple[int, float], ...]
    """(width, worse ratio with the best C_*)."""


def required_width(
    start_at: Any, *, least: int = 1, most: int = 2**22, factor: int = 2
) -> RequiredWidth:
    """Walk widths least, factor * least, ... up to `most`; `start_at(width)` draws a `Start`."""
    check_count("least", least)
    check_count("factor", factor, least=2)
    tried: list[tuple[int, float]] = []
    width = least
    while width <= most:
        worst = best_room(start_at(width)).worst
        tried.append((width, worst))
        if worst <= 1:
            return RequiredWidth(width, tuple(tried))
        width *= factor
    return RequiredWidth(None, tuple(tried))
