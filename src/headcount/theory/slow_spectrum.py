"""Norms and extreme eigenvalues of small matrices in slow arithmetic, enclosed on balls."""

from __future__ import annotations

from .slow import Arithmetic, Matrix, Number, flat, norm, times

_DOUBLINGS = 65
"""Powers up to 2^64: the enclosure of a norm is then narrower than 1e-18 of it."""


def operator_norm(num: Arithmetic, A: Matrix) -> Number:
    """|A| from G = A^T A and p = 2^64: tr(G^p)/k <= |A|^{2p} <= tr(G^p), by repeated squaring."""
    columns = [list(column) for column in zip(*A, strict=True)]
    power = [times(columns, column) for column in columns]
    logarithm, p = num.number(0), 1
    for doubling in range(_DOUBLINGS):
        power = power if doubling == 0 else [times(power, row) for row in power]
        trace = num.total([power[r][r] for r in range(len(power))])
        if trace == 0:
            return num.number(0)
        power = [[entry / trace for entry in row] for row in power]
        logarithm, p = 2 * logarithm + num.log(trace), 2**doubling
    low, high = (logarithm - num.log(num.number(len(A)))) / p, logarithm / p
    return num.exp(num.between(low, high) / 2)


def smallest_eigenvalue(num: Arithmetic, S: Matrix) -> Number:
    """That of a symmetric matrix: c - |c I - S| with c = |S|_F, which no eigenvalue exceeds."""
    c = norm(num, flat(S))
    shifted = [[(c if r == s else 0) - S[r][s] for s in range(len(S))] for r in range(len(S))]
    return c - operator_norm(num, shifted)
