"""Gradient descent in plain loops: the slow twin of `runs` for rechecking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...theory.slow import Arithmetic, dot
from . import twins, twins_constants
from .twins import Data, Number, Rows
from .twins_segments import SlowSegment


@dataclass(frozen=True)
class SlowRun:
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
            twins_constants.beta_3(self.num, x, self.R, *self.shape, tier, self.readout) for x in N
        ]

    def beta_2(self, tier: str) -> list[Number]:
        """beta_2(theta_k) v beta_2(theta_{k+1}), k = 0..K-1."""
        pairs = zip(self.widths[:-1], self.widths[1:], strict=True)
        N = [self.num.largest(list(pair)) for pair in pairs]
        rest = (*self.shape, tier, self.readout)
        return [twins_constants.beta_2(self.num, x, self.R, self.H, *rest) for x in N]


def target(num: Arithmetic, data: Data) -> Rows:
    """theta."""
    root = num.sqrt(twins.total(num, data))
    return twins.combined(twins.parameters(data), twins.move(data), 1 / root)


def distance(num: Arithmetic, data: Data) -> Number:
    """D."""
    return twins.length(num, data, twins.move(data)) / num.sqrt(twins.total(num, data))


def width(num: Arithmetic, data: Data) -> Number:
    """N."""
    return twins.widest(num, target(num, data))


def path(num: Arithmetic, data: Data, weights: list[Any] | None = None) -> list[Rows]:
    """theta_0..theta_K; `weights` replace 1/n."""
    points = [twins.parameters(data)]
    for _ in range(int(data["K"])):
        parts = twins.samples(num, data, points[-1])
        g = twins.loss_gradient(num, data, parts, weights)
        points.append(twins.combined(points[-1], g, -data["eta"]))
    return points


def run(num: Arithmetic, data: Data) -> SlowRun:
    """Every term of a run."""
    goal, points = target(num, data), path(num, data)
    start = points[0]
    samples = [twins.samples(num, data, point) for point in points]
    gradients = [twins.loss_gradient(num, data, parts) for parts in samples[:-1]]
    L_theta = twins.loss(num, data, goal)
    towards = [twins.difference(goal, p) for p in points[:-1]]
    rises = [
        num.total([k * dot(a, b) for k, a, b in zip(data["k"], g, t, strict=True)])
        for g, t in zip(gradients, towards, strict=True)
    ]
    return SlowRun(
        num=num,
        loss=[twins.mean_loss(num, parts) for parts in samples],
        gradient=[twins.squared_length(num, data, g) for g in gradients],
        away=[twins.length(num, data, twins.difference(p, goal)) for p in points],
        moved=[twins.length(num, data, twins.difference(p, start)) for p in points],
        widths=[twins.widest(num, p) for p in points],
        highest=[
            SlowSegment(num, data, goal, twins.difference(p, goal)).highest() for p in points[:-1]
        ],
        tangent=[
            twins.mean_loss(num, parts) + rise - L_theta
            for parts, rise in zip(samples[:-1], rises, strict=True)
        ],
        D=distance(num, data),
        N=twins.widest(num, goal),
        L_theta=L_theta,
        R=twins.token_bound(num, data),
        H=twins.total(num, data),
        shape=twins.shape(data),
        readout=data["readout"],
    )
