"""Norms and extreme eigenvalues of small matrices in slow arithmetic, enclosed on balls.

By Jacobi's method. A rotation with any tangent is orthogonal, so its angle may come from rough
numbers: what the rotated matrix encloses is similar to the given one. By Weyl's inequality its
extreme eigenvalues are within the size of its off-diagonal part of its extreme diagonal entries.
"""

from __future__ import annotations

import math
from typing import Any

from .slow import Arithmetic, Matrix, Number, dot

_SWEEPS = 12
"""Each sweep with float64 angles gains about 16 digits once the first few have converged."""


def gram(matrix: Matrix) -> list[list[Number]]:
    """A A^T or A^T A, whichever is smaller: the same nonzero eigenvalues."""
    columns = [list(column) for column in zip(*matrix, strict=True)]
    rows: Any = matrix if len(matrix) <= len(columns) else columns
    return outer_gram(rows)


def outer_gram(rows: Matrix) -> list[list[Number]]:
    """A A^T."""
    return [[dot(x, y) for y in rows] for x in rows]


def operator_norm(num: Arithmetic, matrix: Matrix) -> Number:
    """The largest singular value."""
    return num.root(extreme_eigenvalues(num, gram(matrix))[1])


def smallest_eigenvalue(num: Arithmetic, matrix: Matrix) -> Number:
    """That of a symmetric matrix."""
    return extreme_eigenvalues(num, matrix)[0]


def extreme_eigenvalues(num: Arithmetic, matrix: Matrix) -> tuple[Number, Number]:
    """The smallest and the largest eigenvalue of a symmetric matrix."""
    B, size = [list(row) for row in matrix], len(matrix)
    for _ in range(_SWEEPS if size > 1 else 0):
        for p in range(size):
            for q in range(p + 1, size):
                _rotate(num, B, p, q)
    pairs = [(p, q) for p in range(size) for q in range(size) if p != q]
    off = num.root(num.total([B[p][q] ** 2 for p, q in pairs]))
    diagonal = [B[p][p] for p in range(size)]
    low, high = num.smallest(diagonal), num.largest(diagonal)
    return num.between(low - off, low), num.between(high, high + off)


def _rotate(num: Arithmetic, B: list[list[Number]], p: int, q: int) -> None:
    """Turn the plane of p and q so that B[p][q] is about zero."""
    mixed = num.roughly(B[p][q])
    if mixed == 0:
        return
    theta = (num.roughly(B[q][q]) - num.roughly(B[p][p])) / (2 * mixed)
    tangent = math.copysign(1.0, theta) / (abs(theta) + math.hypot(theta, 1.0))
    t = num.number(tangent)
    c = 1 / num.sqrt(1 + t * t)
    s = t * c
    for row in B:
        row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
    upper, lower = B[p], B[q]
    B[p] = [c * x - s * y for x, y in zip(upper, lower, strict=True)]
    B[q] = [s * x + c * y for x, y in zip(upper, lower, strict=True)]
