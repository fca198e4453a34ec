"""The loss along a segment in plain loops: the slow twin of `along`."""

from __future__ import annotations

from typing import Any

from ...theory.slow import Arithmetic, dot, softmax, times
from . import twins, twins_constants
from .twins import Data

CELLS = 16
SEEN = slice(None, None, 4)


class SlowSegment:
    """The twin of `Segment`."""

    def __init__(
        self, num: Arithmetic, data: Data, start: Any, move: Any, weights: Any = None
    ) -> None:
        self.num, self.H = num, twins.total(num, data)
        self.length = twins.length(num, data, move)
        along = [num.number(j) / CELLS for j in range(CELLS + 1)]
        self.points = [twins.combined(start, move, a) for a in along]
        n = len(data["y"])
        share = [num.number(1) / n] * n if weights is None else weights
        margins = [twins.margins(num, data, point) for point in self.points]
        losses = [[twins.softplus(num, -z) for z in row] for row in margins]
        self.losses = [dot(share, row) for row in losses]
        self.tops = [self._top(data, start, move, share, margins, c) for c in range(CELLS)]
        widths = [twins.widest(num, point) for point in self.points]
        self.N = num.largest([widths[0], widths[-1]])
        self.widths = [num.largest(list(pair)) for pair in zip(widths[1:], widths, strict=False)]
        self.R, self.readout = twins.token_bound(num, data), data["readout"]
        self.T, self.d = twins.shape(data)

    def _top(self, data: Data, start: Any, move: Any, share: Any, margins: Any, cell: int) -> Any:
        """An upper bound of the loss in one cell."""
        num, root = self.num, self.num.sqrt(self.H)
        room, covered = num.number(0), num.number(0)
        for i, (X, y) in enumerate(zip(data["X"], data["y"], strict=True)):
            parts = [
                _head_bounds(num, X, y, row, step, data["readout"], cell)
                for row, step in zip(start, move, strict=True)
            ]
            low, bend = (dot(data["k"], [p[j] for p in parts]) / root for j in (0, 1))
            fall = bend / (8 * CELLS**2)
            ends = num.smallest([margins[cell][i], margins[cell + 1][i]])
            low = num.largest([low, ends - fall])
            room = room + share[i] * fall * num.exp(-twins.softplus(num, low))
            covered = covered + share[i] * twins.softplus(num, -low)
        ends = num.largest([self.losses[cell], self.losses[cell + 1]])
        return num.smallest([ends + room, covered])

    def beta_3(self, tier: str) -> Any:
        """The larger of the two ends'."""
        sizes_ = (self.N, self.R, self.T, self.d, tier, self.readout)
        return twins_constants.beta_3(self.num, *sizes_)

    def highest(self) -> Any:
        """An upper bound of the loss on the segment."""
        return self.num.largest(self.tops)

    def expansion(self, eta: Any, tier: str) -> Any:
        """The factor of (19), from above."""
        num, sizes = self.num, (self.R, self.T, self.d, tier, self.readout)
        steepest = num.largest(
            twins_constants.beta_3(num, N, *sizes) * top
            for N, top in zip(self.widths, self.tops, strict=True)
        )
        smooth = twins_constants.beta_2(
            num, self.N, self.R, self.H, self.T, self.d, tier, self.readout
        )
        return num.largest([1 + eta / num.sqrt(self.H) * steepest, eta * smooth])


def _head_bounds(
    num: Arithmetic, X: Any, y: Any, row: Any, step: Any, readout: str, cell: int
) -> tuple[Any, Any]:
    """(the least y f, the largest |f''|) of one head on one sample in one cell."""
    low, bend = num.number(0), num.number(0)
    (U, W), (dU, dW) = twins.split(row, len(X[0])), twins.split(step, len(X[0]))
    first, middle, last = (num.number(2 * cell + j) / (2 * CELLS) for j in range(3))
    for t, slot in twins.queries(len(X), readout):
        s, ds = ([dot(X[t], times(A, x)) for x in X] for A in (W, dW))
        v, dv = ([dot(u[slot], x) for x in X] for u in (U, dU))
        reads = [[a + at * b for a, b in zip(v, dv, strict=True)] for at in (first, last)]
        P = [softmax(num, [a + at * b for a, b in zip(s, ds, strict=True)]) for at in (first, last)]
        weights = [num.smallest(list(pair)) for pair in zip(*P, strict=True)]
        lowest = [num.smallest([y * a, y * b]) for a, b in zip(*reads, strict=True)]
        rest = (1 - num.total(weights)) * num.smallest(lowest)
        low = low + dot(weights, lowest) + rest
        scores = [a + middle * b for a, b in zip(s, ds, strict=True)]
        mean = dot(softmax(num, scores), ds)
        off = [num.absolute(b - mean) for b in ds]
        most = _heaviest(num, scores, [x / (2 * CELLS) for x in off])
        spread = num.largest([num.largest(r) - num.smallest(r) for r in reads])
        bend = bend + 2 * dot(most, off) * (num.largest(dv) - num.smallest(dv))
        bend = bend + dot(most, [x * x for x in off]) * spread
    return low, bend


def _heaviest(num: Arithmetic, scores: Any, tilt: Any) -> list[Any]:
    """What the weights can be at most where each score moves by its tilt, up or down."""
    least = [s - x for s, x in zip(scores, tilt, strict=True)]
    top = num.largest(least)
    whole = top + num.log(num.total([num.exp(s - top) for s in least]))
    zero = num.number(0)
    return [num.exp(num.smallest([s + x - whole, zero])) for s, x in zip(scores, tilt, strict=True)]
