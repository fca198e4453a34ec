"""Linear algebra on balls: enclosures of eigenvalues, singular values, Cholesky factors.

The eigenvalues of a symmetric A are enclosed without isolating them. With any invertible V,
A = S B S^T for S = V^{-T} and B = V^T A V, so by Ostrowski's theorem lambda_k(A) = t_k
lambda_k(B) with every t_k between the extreme eigenvalues of (V^T V)^{-1}; by Weyl's inequality
lambda_k(B) is within |B - diag B|_F of the k-th smallest entry of diag B. V only has to be good,
not proved: it comes from Jacobi's method on the midpoints.
"""

from __future__ import annotations

from typing import Any

import flint
import numpy as np
from flint import arb, arb_mat

from ._ball_array import Balls, contracted
from ._ball_value import Equation, Rule, Value
from ._balls import Undecided, hull, root, square
from ._term import Term, eigenvalues_of_terms

_MOST_SWEEPS = 30
_ROWS, _COLUMNS = (((1,), (1,)), ((), ())), (((0,), (0,)), ((), ()))
"""Of a matrix with itself: over which axis its Gram matrix is contracted."""


def eigenvalues(matrix: Balls) -> list[Any]:
    """Enclosures of the eigenvalues of a symmetric matrix of balls, smallest first."""
    size = len(matrix)
    if size == 0:
        return []
    if (term := next((x for x in matrix.flat if isinstance(x, Term)), None)) is not None:
        return eigenvalues_of_terms(matrix, term.tape, eigenvalues)
    A = arb_mat(size, size, matrix.ravel().tolist())
    if not all(entry.is_finite() for entry in A.entries()):
        return [arb.nan()] * size
    V = _basis(A)
    B, gram = V.transpose() * A * V, V.transpose() * V
    off = root(_sum(square(B[i, j]) for i in range(size) for j in range(size) if i != j))
    skew = root(_sum(square(gram[i, j] - (i == j)) for i in range(size) for j in range(size)))
    if not skew < 1:
        raise Undecided("eigh: the approximate eigenvectors are not independent")
    stretch = hull(1 / (1 + skew.upper()), 1 / (1 - skew.upper()))
    diagonal = [B[i, i] for i in range(size)]
    lows, highs = sorted(x.lower() for x in diagonal), sorted(x.upper() for x in diagonal)
    error = hull(-off.upper(), off.upper())
    return [stretch * (hull(a, b) + error) for a, b in zip(lows, highs, strict=True)]


def _sum(values: Any) -> arb:
    total = arb(0)
    for value in values:
        total = total + value
    return total


def _basis(A: arb_mat) -> arb_mat:
    """Approximate eigenvectors as columns: float64's, then cyclic Jacobi at full precision."""
    size = A.nrows()
    middle = np.array([float(x.mid()) for x in A.entries()]).reshape(size, size)
    scale = np.max(np.abs(middle))
    start = np.eye(size)
    if np.isfinite(scale) and scale > 0:
        middle = middle / scale  # before they are added, which may overflow
        start = np.linalg.eigh((middle + middle.T) / 2)[1]
    V = arb_mat(size, size, [arb(x) for x in start.ravel().tolist()])
    V = _orthonormal(V)
    B = (V.transpose() * A.mid() * V).mid()
    for _ in range(_MOST_SWEEPS):
        if not _sweep(B, V):
            break
    return V


def _orthonormal(V: arb_mat) -> arb_mat:
    """Newton's step V (3 - V^T V) / 2, from 16 digits to full precision."""
    size = V.nrows()
    three = arb_mat(size, size, [arb(3 * (i == j)) for i in range(size) for j in range(size)])
    for _ in range(8):
        V = (V * (three - V.transpose() * V)).mid()
        V = arb_mat(size, size, [(x / 2).mid() for x in V.entries()])
    return V


def _sweep(B: arb_mat, V: arb_mat) -> bool:
    """One sweep of Jacobi rotations of B, gathered in V; False when B was diagonal already."""
    size, turned = B.nrows(), False
    for p in range(size):
        for q in range(p + 1, size):
            if abs(B[p, q]) <= _negligible(B[p, p], B[q, q]):
                continue
            turned = True
            theta = ((B[q, q] - B[p, p]) / (2 * B[p, q])).mid()
            sign = 1 if theta >= 0 else -1
            t = sign / (abs(theta) + (theta * theta + 1).sqrt())
            c = (1 / (t * t + 1).sqrt()).mid()
            s = (t * c).mid()
            _rotate(B, V, p, q, c, s)
    return turned


def _negligible(x: arb, y: arb) -> arb:
    """Relative to the two diagonal entries, less than the working precision can show."""
    bits = int(flint.ctx.prec)
    return arb(2) ** (10 - bits) * (abs(x) + abs(y)) + arb(2) ** (-8 * bits)


def _rotate(B: arb_mat, V: arb_mat, p: int, q: int, c: arb, s: arb) -> None:
    for k in range(B.nrows()):
        x, y = B[k, p], B[k, q]
        B[k, p], B[k, q] = (c * x - s * y).mid(), (s * x + c * y).mid()
    for k in range(B.nrows()):
        x, y = B[p, k], B[q, k]
        B[p, k], B[q, k] = (c * x - s * y).mid(), (s * x + c * y).mid()
        x, y = V[k, p], V[k, q]
        V[k, p], V[k, q] = (c * x - s * y).mid(), (s * x + c * y).mid()


def singular_values(matrix: Balls) -> list[arb]:
    """Enclosures of the singular values, largest first: roots of the smaller Gram matrix."""
    gram = contracted(matrix, matrix, _ROWS if len(matrix) <= matrix.shape[1] else _COLUMNS)
    squares = eigenvalues(gram)
    return [root(x) for x in reversed(squares)]


def cholesky(matrix: Balls) -> Balls:
    """The lower factor L of A = L L^T; the upper triangle of the result is zero."""
    size = len(matrix)
    L = np.full((size, size), arb(0), dtype=object)
    for j in range(size):
        rest = matrix[j, j] - _sum(square(L[j, k]) for k in range(j))
        L[j, j] = rest.sqrt()
        for i in range(j + 1, size):
            rest = matrix[i, j] - _sum(L[i, k] * L[j, k] for k in range(j))
            L[i, j] = rest / L[j, j]
    return L


def triangular_solve(a: Balls, b: Balls, lower: bool, unit: bool) -> Balls:
    """x with a x = b, reading one triangle of a only."""
    size = len(a)
    x = np.empty(b.shape, dtype=object)
    for i in range(size) if lower else reversed(range(size)):
        known = range(i) if lower else range(i + 1, size)
        for column in range(b.shape[1]):
            rest = b[i, column] - _sum(a[i, k] * x[k, column] for k in known)
            x[i, column] = rest if unit else rest / a[i, i]
    return x


def _batched(matrices: Balls) -> Any:
    return [matrices[place] for place in np.ndindex(matrices.shape[:-2])]


def _eigh(equation: Equation, x: Value) -> list[Value]:
    """Vectors and values; the vectors are not enclosed."""
    p = equation.params
    if p.get("subset_by_index") is not None or not p.get("sort_eigenvalues", True):
        raise NotImplementedError("eigh: only all eigenvalues, sorted")
    keep = np.tril if p["lower"] else np.triu
    mirrored = []
    for matrix in _batched(x.array):
        here = keep(np.ones(matrix.shape)).astype(bool)
        mirrored.append(np.where(here, matrix, matrix.T))
    vectors, values = (variable.aval.shape for variable in equation.outvars)
    found = np.array([eigenvalues(matrix) for matrix in mirrored], dtype=object)
    nothing = np.full(vectors, arb.nan(), dtype=object)
    unknown = Value(nothing, missing="eigh: eigenvectors cannot be enclosed")
    return [unknown, Value(found.reshape(values))]


def _svd(equation: Equation, x: Value) -> list[Value]:
    if equation.params["compute_uv"]:
        raise NotImplementedError("svd: only the singular values")
    found = np.array([singular_values(matrix) for matrix in _batched(x.array)], dtype=object)
    return [Value(found.reshape(equation.outvars[0].aval.shape), True)]


def _cholesky(equation: Equation, x: Value) -> Value:
    found = np.array([cholesky(matrix) for matrix in _batched(x.array)], dtype=object)
    return Value(found.reshape(x.array.shape))


def _triangular_solve(equation: Equation, a: Value, b: Value) -> Value:
    p = equation.params
    found = []
    for left, right in zip(_batched(a.array), _batched(b.array), strict=True):
        lower = p["lower"] != p["transpose_a"]
        left = left.T if p["transpose_a"] else left
        if p["left_side"]:
            found.append(triangular_solve(left, right, lower, p["unit_diagonal"]))
        else:
            transposed = triangular_solve(left.T, right.T, not lower, p["unit_diagonal"])
            found.append(transposed.T)
    return Value(np.array(found, dtype=object).reshape(b.array.shape))


RULES: dict[str, Rule] = {
    "eigh": _eigh,
    "svd": _svd,
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
}
