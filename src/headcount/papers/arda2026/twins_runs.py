"""ProjGD in plain loops: the slow twin of `runs`."""

from __future__ import annotations

from dataclasses import dataclass

from ...theory.slow import Arithmetic, dot, flat, norm
from .twins import (
    Data,
    Number,
    Parameters,
    difference,
    gradients,
    initial,
    labels,
    linear,
    output,
    samples,
    squared,
    transported,
)


@dataclass(frozen=True)
class NaiveStep:
    """The terms of one step."""

    loss: Number
    gradient: Number
    distance: Number
    distance_after: Number
    excess: Number
    cross: Number
    residual: Number
    e_lin: Number
    e_cof: Number


@dataclass(frozen=True)
class NaiveRun:
    """The terms of every step, and what is known once per run."""

    steps: list[NaiveStep]
    average_loss: Number
    average_e_lin: Number
    e_app: Number


def _rows(phi: Parameters) -> list[list[Number]]:
    return [[c, *U, *flat(W)] for c, U, W in zip(phi.c, phi.U, phi.W, strict=True)]


def _parameters(rows: list[list[Number]], d: int) -> Parameters:
    return Parameters(
        [row[0] for row in rows],
        [row[1 : d + 1] for row in rows],
        [[row[1 + d + d * k : 1 + 2 * d + d * k] for k in range(d)] for row in rows],
    )


def _projected(num: Arithmetic, data: Data, phi: Parameters) -> Parameters:
    """Each head's c, U and W back into its own ball."""
    start = initial(data)
    d, root = len(data["q"][0]), num.sqrt(num.number(len(start.c)))
    parts = (slice(0, 1), slice(1, d + 1), slice(d + 1, None))
    rows = []
    for here, origin in zip(_rows(phi), _rows(start), strict=True):
        row: list[Number] = []
        for radius, part in zip(data["rho"], parts, strict=True):
            moved = [x - y for x, y in zip(here[part], origin[part], strict=True)]
            length, limit = norm(num, moved), radius / root
            factor = limit / num.largest([length, limit])
            row += [y + factor * x for x, y in zip(moved, origin[part], strict=True)]
        rows.append(row)
    return _parameters(rows, d)


def _mean(tables: list[list[list[Number]]]) -> list[list[Number]]:
    first, count = tables[0], len(tables)
    return [
        [sum(t[i][k] for t in tables) / count for k in range(len(row))]
        for i, row in enumerate(first)
    ]


def run(num: Arithmetic, data: Data, indices: list[int] | None = None) -> NaiveRun:
    """ProjGD for tau steps; ProjSGD along these indices where they are given."""
    phi, target, y = initial(data), transported(num, data), labels(num, data)
    n, d = len(y), len(data["q"][0])
    lin_target = [linear(num, data, j, target) for j in samples(data)]
    iterates = []
    steps = []
    for s in range(int(data["tau"])):
        iterates.append(_rows(phi))
        chosen = None if indices is None else indices[s]
        step, phi = _step(num, data, phi, target, y, lin_target, chosen)
        steps.append(step)
    average = _parameters(_mean(iterates), d)
    f = [output(num, data, j, average) for j in samples(data)]
    lin = [linear(num, data, j, average) for j in samples(data)]
    return NaiveRun(
        steps,
        average_loss=sum((f[j] - y[j]) ** 2 for j in range(n)) / n,
        average_e_lin=num.largest(abs(f[j] - lin[j]) for j in range(n)),
        e_app=num.largest(abs(lin_target[j] - y[j]) for j in range(n)),
    )


def _step(
    num: Arithmetic,
    data: Data,
    phi: Parameters,
    target: Parameters,
    y: list[Number],
    lin_target: list[Number],
    chosen: int | None,
) -> tuple[NaiveStep, Parameters]:
    n, d = len(y), len(data["q"][0])
    f = [output(num, data, j, phi) for j in samples(data)]
    lin = [linear(num, data, j, phi) for j in samples(data)]
    slopes = [gradients(num, data, j, phi) for j in samples(data)]
    towards = flat(difference(target, phi))
    e_cof = [dot(flat(slopes[j]), towards) - (lin_target[j] - lin[j]) for j in range(n)]
    errors = [(lin_target[j] - y[j]) + (f[j] - lin[j]) + e_cof[j] for j in range(n)]
    share = [num.number(1) / n if chosen is None else num.number(j == chosen) for j in range(n)]
    weights = [2 * share[j] * (f[j] - y[j]) for j in range(n)]
    grad = [
        [sum(weights[j] * slopes[j][i][k] for j in range(n)) for k in range(len(row))]
        for i, row in enumerate(slopes[0])
    ]
    raw = _parameters(
        [
            [x - data["eta"] * g for x, g in zip(row, slope, strict=True)]
            for row, slope in zip(_rows(phi), grad, strict=True)
        ],
        d,
    )
    after = _projected(num, data, raw)
    step = NaiveStep(
        loss=sum((f[j] - y[j]) ** 2 for j in range(n)) / n,
        gradient=squared(grad),
        distance=squared(difference(phi, target)),
        distance_after=squared(difference(after, target)),
        excess=squared(difference(raw, after)),
        cross=sum((f[j] - y[j]) * errors[j] for j in range(n)) / n,
        residual=num.largest(abs(f[j] - y[j]) for j in range(n)),
        e_lin=num.largest(abs(f[j] - lin[j]) for j in range(n)),
        e_cof=num.largest(abs(e) for e in e_cof),
    )
    return step, after
