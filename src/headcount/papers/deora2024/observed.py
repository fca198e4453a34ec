"""What a run of deora2024 offers to the claims: heads, models, segments, the run, its start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...core import float64
from .model import MultiHeadParams
from .records import Head, LeftOut, Model, Run, Start, TwoPoints
from .runs import RunTrace, step_terms, trace_of
from .start import GoodStart, Heads

MOST_SAMPLES = 64
"""Samples at which the claims about models are asked; the run itself uses all of them."""
_PAIRS = 32
"""(head, sample) pairs at which the claims about heads are asked."""
_LARGEST = 400
"""Entries G p of the parameters up to which Hessians of the loss are formed."""
MOST_LEFT_OUT = 2e7
"""n^2 K G T^2, the attention weights of all leave-one-out runs, up to which they are run."""


@dataclass(frozen=True)
class Groups:
    """Heads that start equal, merged: representatives and how many heads each stands for."""

    index: Any
    k: Any

    def of(self, params: MultiHeadParams, r: int) -> dict[str, Any]:
        """U (G, r, d) and W (G, d, d) of the representatives."""
        U, W = (np.asarray(leaf, np.float64)[self.index] for leaf in params)
        return {"U": U.reshape(len(U), r, -1), "W": W}


def merged(heads: Heads, start: MultiHeadParams) -> Groups:
    """Groups of equal heads; they stay equal under every deterministic rule."""
    flat = [np.reshape(leaf, (len(leaf), -1)) for leaf in start]
    rows = np.concatenate(flat, axis=1)
    _, index, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    weights = np.asarray(heads.multiplicities, np.float64)
    return Groups(index, np.bincount(inverse.ravel(), weights=weights))


def witness(groups: Groups, found: GoodStart, r: int, root: float, K: int) -> Any:
    """sqrt(H) (theta - theta_0) for the target of Proposition 7, theta = theta_0 + G theta_*."""
    assert found.direction is not None
    G = (2 * found.B_Phi + np.log(K)) / found.gamma
    move = groups.of(found.direction, r)
    return {"dU": root * G * move["U"], "dW": root * G * move["W"]}


def run_instances(
    heads: Heads, groups: Groups, path: Any, found: GoodStart, data: tuple[Any, Any], eta: float
) -> list[Run]:
    """The run with two targets: its own last iterate and, if there is one, that of Prop. 7."""
    r, d = (heads.T if heads.readout == "full" else 1), heads.d
    G, K, root = path.shape[1], len(path) - 1, float(np.sqrt(float(heads.H)))

    def cut(rows: Any, names: tuple[str, str]) -> dict[str, Any]:
        blocks = rows[:, : r * d].reshape(G, r, d), rows[:, r * d :].reshape(G, d, d)
        return dict(zip(names, blocks, strict=True))

    moves = [cut(root * (path[-1] - path[0]), ("dU", "dW"))]
    if found.direction is not None:
        moves.append(witness(groups, found, r, root, K))
    return [
        Run(
            X=np.asarray(data[0], np.float64),
            y=np.asarray(data[1], np.float64),
            k=groups.k,
            **cut(path[0], ("U", "W")),
            readout=heads.readout,
            **move,
            eta=np.asarray(eta),
            K=K,
        )
        for move in moves
    ]


def trace(run: Run, path: Any) -> RunTrace:
    """The terms of every step, from the iterates (K+1, G, p) that training recorded."""
    with float64():
        moved = jnp.asarray(path) - path[:1]
        terms = jax.jit(lambda i, p: jax.lax.map(lambda x: step_terms(i, x)[1], p))(run, moved[:-1])
        return jax.tree.map(np.asarray, jax.jit(trace_of)(run, moved[-1], terms))


def seen(run: Run, done: RunTrace) -> Run:
    """The run as its statements see it: what it did, and the numbers of its target."""
    names = ("D", "N", "L_theta", "R", "H", "eta", "T", "d", "K", "readout")
    known = {name: getattr(done, name) for name in names}
    return Run.seen(measured={}, trace=done, L_0=done.loss[0], **known)


def offers_of(
    runs: list[Run], path: Any, found: GoodStart, descent: bool
) -> dict[type, Sequence[Any]]:
    """Instance class to instances; runs only where they are plain gradient descent."""
    run = runs[-1]
    n, _, d = run.X.shape
    G, p = path.shape[1:]
    some = np.unique(np.linspace(0, n - 1, min(n, MOST_SAMPLES)).astype(int))
    data = {"X": run.X[some], "y": run.y[some], "k": run.k, "readout": run.readout}
    r = run.U.shape[1]

    def blocks(rows: Any) -> dict[str, Any]:
        return {"U": rows[:, : r * d].reshape(G, r, d), "W": rows[:, r * d :].reshape(G, d, d)}

    offers: dict[type, Sequence[Any]] = {Head: _heads(run, blocks(path[-1]), some)}
    if G * p <= _LARGEST:
        offers[Model] = [Model(**data, **blocks(at)) for at in (path[0], path[-1])]
        goal = path[0] + np.concatenate([b.reshape(G, -1) for b in _shift(run)], axis=1)
        ends = [(path[-1], goal), (path[0], path[len(path) // 2])]
        offers[TwoPoints] = [_segment(data, blocks, a, b, run.eta) for a, b in ends]
    if descent:
        offers[Run] = [seen(one, trace(one, path)) for one in runs]
        if found.direction is not None:
            offers[Start] = [_start(run, found)]
        if left_out_cost(run) <= MOST_LEFT_OUT:
            offers[LeftOut] = [LeftOut(**run.fields())]
    return offers


def left_out_cost(run: Run) -> float:
    """n^2 K G T^2."""
    n, T, _ = run.X.shape
    return float(n) ** 2 * run.K * len(run.k) * T**2


def _shift(run: Run) -> tuple[Any, Any]:
    root = np.sqrt(np.sum(run.k))
    return np.asarray(run.dU) / root, np.asarray(run.dW) / root


def _segment(data: dict[str, Any], blocks: Any, a: Any, b: Any, eta: Any) -> TwoPoints:
    move = blocks(b - a)
    return TwoPoints(**data, **blocks(a), dU=move["U"], dW=move["W"], eta=eta)


def _heads(run: Run, last: dict[str, Any], some: Any) -> list[Head]:
    """Heads of the last iterate on samples; read-outs with one row are written as a full U."""
    T, d = run.X.shape[1:]
    G = len(run.k)
    pairs = np.unique(np.linspace(0, G * len(some) - 1, _PAIRS).astype(int))
    found = []
    for pair in pairs:
        g, X = pair % G, run.X[some[pair // G]]
        U = np.zeros((T, d))
        U[slice(None) if run.readout != "last" else slice(-1, None)] = last["U"][g]
        ones = np.ones(d)
        found.append(Head(X=X, U=U, W=last["W"][g], a=np.ones(T), b=ones, c=ones))
    return found


def _start(run: Run, found: GoodStart) -> Start:
    vU, vW = (run.dU, run.dW)
    G = (2 * found.B_Phi + np.log(run.K)) / found.gamma
    return Start(
        X=run.X,
        y=run.y,
        k=run.k,
        U=run.U,
        W=run.W,
        readout=run.readout,
        vU=vU / G,
        vW=vW / G,
        eps=np.asarray(1 / run.K),
        eta=run.eta,
        K=run.K,
    )


def measured_rows(groups: Groups, records: dict[str, Any]) -> Any:
    """The iterates (K+1, G, p) of the representatives."""
    U, W = (np.asarray(records[name], np.float64)[:, groups.index] for name in ("U", "W"))
    return np.concatenate([U.reshape(*U.shape[:2], -1), W.reshape(*W.shape[:2], -1)], axis=-1)
