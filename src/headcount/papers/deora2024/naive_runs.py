"""Gradient descent in plain loops: the slow twin of `runs` for rechecking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...theory.slow import Arithmetic, dot
from . import naive, naive_constants
from .naive import Data, Number, Rows
from .naive_along import NaiveSegment


@dataclass(frozen=True)
class NaiveRun:
    """The terms of `RunTrace`, as lists."""

    num: Arithmetic
    loss: list[Number]
    gradient: list[Number]
    away: list[Number]
    moved: list[Number]
    widths: list[Number]
    highest: list[Number]
    tangent: list[Number]
    D: Number
    N: Number
    L_theta: Number
    R: Number
    H: Number
    shape: tuple[int, int]
    readout: str

    def beta_3(self, tier: str) -> list[Number]:
        """beta_3(theta) v beta_3(theta_k), k = 0..K-1."""
        N = [self.num.largest([self.N, width]) for width in self.widths[:-1]]
        return [
            naive_constants.beta_3(self.num, x, self.R, *self.shape, tier, self.readout) for x in N
        ]

    def beta_2(self, tier: str) -> list[Number]:
        """beta_2(theta_k) v beta_2(theta_{k+1}), k = 0..K-1."""
        pairs = zip(self.widths[:-1], self.widths[1:], strict=True)
        N = [self.num.largest(list(pair)) for pair in pairs]
        rest = (*self.shape, tier, self.readout)
        return [naive_constants.beta_2(self.num, x, self.R, self.H, *rest) for x in N]


def target(num: Arithmetic, data: Data) -> Rows:
    """theta."""
    root = num.sqrt(naive.total(num, data))
    return naive.combined(naive.parameters(data), naive.move(data), 1 / root)


def distance(num: Arithmetic, data: Data) -> Number:
    """D."""
    return naive.length(num, data, naive.move(data)) / num.sqrt(naive.total(num, data))


def width(num: Arithmetic, data: Data) -> Number:
    """N."""
    return naive.widest(num, target(num, data))


def path(num: Arithmetic, data: Data, weights: list[Any] | None = None) -> list[Rows]:
    """theta_0..theta_K; `weights` replace 1/n."""
    points = [naive.parameters(data)]
    for _ in range(int(data["K"])):
        parts = naive.samples(num, data, points[-1])
        g = naive.loss_gradient(num, data, parts, weights)
        points.append(naive.combined(points[-1], g, -data["eta"]))
    return points


def run(num: Arithmetic, data: Data) -> NaiveRun:
    """Every term of a run."""
    goal, points = target(num, data), path(num, data)
    start = points[0]
    samples = [naive.samples(num, data, point) for point in points]
    gradients = [naive.loss_gradient(num, data, parts) for parts in samples[:-1]]
    L_theta = naive.loss(num, data, goal)
    towards = [naive.difference(goal, p) for p in points[:-1]]
    rises = [
        num.total([k * dot(a, b) for k, a, b in zip(data["k"], g, t, strict=True)])
        for g, t in zip(gradients, towards, strict=True)
    ]
    return NaiveRun(
        num=num,
        loss=[naive.mean_loss(num, parts) for parts in samples],
        gradient=[naive.squared_length(num, data, g) for g in gradients],
        away=[naive.length(num, data, naive.difference(p, goal)) for p in points],
        moved=[naive.length(num, data, naive.difference(p, start)) for p in points],
        widths=[naive.widest(num, p) for p in points],
        highest=[
            NaiveSegment(num, data, goal, naive.difference(p, goal)).highest() for p in points[:-1]
        ],
        tangent=[
            naive.mean_loss(num, parts) + rise - L_theta
            for parts, rise in zip(samples[:-1], rises, strict=True)
        ],
        D=distance(num, data),
        N=naive.widest(num, goal),
        L_theta=L_theta,
        R=naive.token_bound(num, data),
        H=naive.total(num, data),
        shape=naive.shape(data),
        readout=data["readout"],
    )
