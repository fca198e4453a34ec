"""Lemmas 1, 15 and 17 to 19 of wu2023: kernels of relu on fixed rows Phi, and their eigenvalues.

The expectations are known in closed form (arc-cosine kernels), so every statement is about
numbers. Both sides of an inequality between eigenvalues that may vanish carry the mean squared
row |Phi|_F^2/N as a common summand.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...theory import Sides
from ...theory.slow import Arithmetic, dot, flat, norm
from ...theory.slow_spectrum import extreme_eigenvalues, gram, outer_gram
from .declare import claim, false, identity
from .instances import FEATURES, FeatureInstance
from .limit import arc_cosine
from .naive import Data, Number

Matrix = list[list[Number]]


def _moments(Phi: Any) -> tuple[Any, Any]:
    """E[relu(Phi w) relu(Phi w)^T] and E[relu'(Phi w) relu'(Phi w)^T], w ~ N(0, I)."""
    rows = jax.vmap(jax.vmap(arc_cosine, in_axes=(None, 0)), in_axes=(0, None))
    values, slopes = rows(Phi, Phi)
    size = jnp.sum(Phi**2, axis=1)
    same = jnp.eye(Phi.shape[0], dtype=bool)
    return jnp.where(same, size / 2, values), jnp.where(same & (size > 0)[:, None], 0.5, slopes)


def _limit(Phi: Any) -> Any:
    """K of Lemma 1 for d_s = 1, with the entry-wise product."""
    values, slopes = _moments(Phi)
    return values + slopes * (Phi @ Phi.T)


def _lowest(matrix: Any) -> Any:
    return jnp.linalg.eigvalsh((matrix + matrix.T) / 2)[0]


def _angle(num: Arithmetic, u: Any, v: Any) -> Number:
    """2 atan(|u/|u| - v/|v|| / |u/|u| + v/|v||), from the side where nothing is divided by zero."""
    a, b = norm(num, u), norm(num, v)
    difference = norm(num, [x / a - y / b for x, y in zip(u, v, strict=True)])
    together = norm(num, [x / a + y / b for x, y in zip(u, v, strict=True)])
    if num.roughly(together) < num.roughly(difference):
        return num.pi - 2 * num.atan(together / difference)
    return 2 * num.atan(difference / together)


def moments_naively(num: Arithmetic, Phi: Any) -> tuple[Matrix, Matrix]:
    """The same in slow arithmetic; rows must not vanish."""
    N, half = len(Phi), num.number(1) / 2
    values = [[num.number(0)] * N for _ in range(N)]
    slopes = [[half] * N for _ in range(N)]
    for i in range(N):
        values[i][i] = dot(Phi[i], Phi[i]) / 2
        for j in range(i):
            t, size = _angle(num, Phi[i], Phi[j]), norm(num, Phi[i]) * norm(num, Phi[j])
            share = (num.pi - t) / (2 * num.pi)
            slopes[i][j] = slopes[j][i] = share
            values[i][j] = size * num.sin(t) / (2 * num.pi) + share * size * num.cos(t)
            values[j][i] = values[i][j]
    return values, slopes


def _limit_naively(num: Arithmetic, Phi: Any) -> Matrix:
    values, slopes = moments_naively(num, Phi)
    products, size = outer_gram(Phi), range(len(Phi))
    return [[values[i][j] + slopes[i][j] * products[i][j] for j in size] for i in size]


def _lowest_naively(num: Arithmetic, matrix: Matrix) -> Number:
    return extreme_eigenvalues(num, matrix)[0]


def lowest_of_relu(Phi: Any) -> Any:
    """lambda_0 = lambda_min E[relu(Phi w) relu(Phi w)^T], w ~ N(0, I)."""
    return _lowest(_moments(Phi)[0])


def lowest_of_relu_naively(num: Arithmetic, Phi: Any) -> Number:
    """The same in slow arithmetic."""
    return _lowest_naively(num, moments_naively(num, Phi)[0])


def _mean_square(Phi: Any) -> Any:
    return jnp.mean(jnp.sum(Phi**2, axis=1))


def _mean_square_naively(num: Arithmetic, Phi: Any) -> Number:
    return num.total([x**2 for x in flat(Phi)]) / len(Phi)


def _above(share: float, kernel: Any, source: Any) -> Any:
    """share * lambda_min(source(Phi)) <= lambda_min(kernel(Phi)), both plus the common summand."""

    def sides(i: FeatureInstance, variant: str) -> Sides:
        common = _mean_square(i.Phi)
        low = share * _lowest(source(i.Phi, variant))
        return Sides(low + common, _lowest(kernel(i.Phi)) + common)

    return sides


def _above_naively(quarters: tuple[int, int], kernel: Any, source: Any) -> Any:
    def slow(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
        Phi = data["Phi"]
        common = _mean_square_naively(num, Phi)
        low = num.number(quarters[0]) / quarters[1] * _lowest_naively(num, source(Phi, variant))
        return low + common, _lowest_naively(num, kernel(num, Phi)) + common

    return slow


def _source(Phi: Any, variant: str) -> Any:
    """Phi^T Phi where the print confuses the two Gram matrices, else Phi Phi^T."""
    return Phi.T @ Phi if variant == "printed" else Phi @ Phi.T


def _source_naively(Phi: Any, variant: str) -> Matrix:
    return outer_gram(list(zip(*Phi, strict=True)) if variant == "printed" else Phi)


def three_rows() -> FeatureInstance:
    """More samples than features: (1, 0), (0, 1) and (1, 1)."""
    return FeatureInstance(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))


on_features = functools.partial(claim, families=FEATURES)

on_features(
    "eq-38",
    "First Hermite coefficient below the kernel of relu",
    "(38), Lemma 15",
    "lambda_0 = lambda_min E[relu(Phi w) relu(Phi w)^T] >= eta_V mu^2 lambda_min(Phi Phi^T), "
    "mu = 1/2; here eta_V = 1, to which everything scales.",
    r"\lambda_0\ge\eta_V\mu(\sigma_r)^2\lambda_{\min}(\Phi\Phi^\top)",
    sides=_above(0.25, lambda Phi: _moments(Phi)[0], lambda Phi, _: Phi @ Phi.T),
    naive=_above_naively(
        (1, 4), lambda num, Phi: moments_naively(num, Phi)[0], lambda Phi, _: outer_gram(Phi)
    ),
    forms="also for rows that are not unit vectors",
    where="App. C.3",
)

on_features(
    "eq-42",
    "The kernel of relu from above",
    "Remark after Lemma 15, (42), (43)",
    "lambda_0 <= eta_V sum_n |Phi_n|^2/(2 N): the smallest eigenvalue is at most their mean.",
    r"\lambda_0\le\frac{\eta_V}{2N}\sum_n\|\Phi^{(n,:)}\|_2^2",
    sides=lambda i, variant: Sides(_lowest(_moments(i.Phi)[0]), _mean_square(i.Phi) / 2),
    naive=lambda num, data, variant: (
        _lowest_naively(num, moments_naively(num, data["Phi"])[0]),
        _mean_square_naively(num, data["Phi"]) / 2,
    ),
    forms={"printed": ("attained by one sample", "E20")},
    where="App. C.3",
)


def _discs(i: FeatureInstance, variant: str) -> Sides:
    products = i.Phi @ i.Phi.T
    N = products.shape[0]
    others = products * (1 - jnp.eye(N))
    radii = jnp.sum(others if variant == "printed" else jnp.abs(others), axis=1)
    common = _mean_square(i.Phi)
    return Sides(jnp.min(jnp.diag(products) - radii) + common, _lowest(products) + common)


def _discs_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    products, common = outer_gram(data["Phi"]), _mean_square_naively(num, data["Phi"])
    rows = []
    for k, row in enumerate(products):
        rest = [x if variant == "printed" else abs(x) for j, x in enumerate(row) if j != k]
        rows.append(row[k] - num.total(rest))
    return num.smallest(rows) + common, _lowest_naively(num, products) + common


on_features(
    "eq-39",
    "Gershgorin's theorem for Phi Phi^T",
    "(39), Lemma 15",
    "lambda_min(Phi Phi^T) is at least the smallest diagonal entry minus the sum of its row.",
    r"\lambda_{\min}(\Phi\Phi^\top)\ge\min_k(\Phi\Phi^\top)_{kk}-\sum_{j\ne k}(\Phi\Phi^\top)_{kj}",
    sides=_discs,
    naive=_discs_naive,
    targets=lambda: (FeatureInstance(np.array([[1.0], [-1.0]])),),
    forms={
        "printed": false("without absolute values: opposite rows break it", "E17"),
        "corrected": ("with absolute values", "E17"),
    },
    where="App. C.3",
)

on_features(
    "lemma-17",
    "Smallest eigenvalues of Phi* Phi*^T and Phi*^T Phi*",
    "Lemma 17, App. C.5, C.8",
    "lambda_min(Phi*^T Phi*), of order N/d, is at most lambda_min(Phi* Phi*^T): the first step of "
    "the proof, with equality. The N x N matrix has rank d, so that it fails for N > d.",
    r"\lambda_{\min}(\Phi^*\Phi^{*\top})=\lambda_{\min}(\Phi^{*\top}\Phi^*)",
    sides=lambda i, variant: Sides(
        _lowest(i.Phi.T @ i.Phi) + _mean_square(i.Phi),
        (
            _lowest(i.Phi @ i.Phi.T)
            if variant == "printed"
            else jnp.linalg.svd(i.Phi, compute_uv=False)[-1] ** 2
        )
        + _mean_square(i.Phi),
    ),
    naive=lambda num, data, variant: (
        _lowest_naively(num, _source_naively(data["Phi"], "printed"))
        + _mean_square_naively(num, data["Phi"]),
        _lowest_naively(num, outer_gram(data["Phi"]) if variant == "printed" else gram(data["Phi"]))
        + _mean_square_naively(num, data["Phi"]),
    ),
    targets=lambda: (three_rows(),),
    forms={
        "printed": false("lambda_min(Phi* Phi*^T) is zero for N > d", "E18"),
        "corrected": ("the min(N, d)-th largest eigenvalue of Phi* Phi*^T in its place", "E18"),
    },
    errata=("E19",),
    where="App. D.2",
)

on_features(
    "lemma-18",
    "The kernel of relu and the number of samples",
    "Lemma 18",
    "lambda_0 >= (3/4) eta_V mu^2 lambda_*, with lambda_* of order N/d through Lemma 17. Here "
    "eta_V = 1, mu = 1/2 and Phi = Phi*.",
    r"\lambda_0\ge\tfrac34\eta_V\mu(\sigma_r)^2\lambda_*\ge\Theta(\eta_VN/d)",
    sides=_above(3 / 16, lambda Phi: _moments(Phi)[0], _source),
    naive=_above_naively((3, 16), lambda num, Phi: moments_naively(num, Phi)[0], _source_naively),
    targets=lambda: (three_rows(),),
    forms={
        "printed": false("lambda_* = lambda_min(Phi*^T Phi*), as Lemma 17 has it", "E18"),
        "corrected": ("lambda_* = lambda_min(Phi* Phi*^T), which is 0 for N > d", "E18"),
    },
    where="App. D.2",
)

on_features(
    "lemma-19",
    "Smallest eigenvalue of the limiting kernel",
    "Lemma 19",
    "lambda_min(K) >= mu^2 lambda_min(Phi* Phi*^T), of order N/d through Lemma 17; d_s = 1.",
    r"\lambda_{\min}(K)\ge\mu(\sigma_r)^2\Omega(N/d)",
    sides=_above(0.25, _limit, _source),
    naive=_above_naively((1, 4), _limit_naively, _source_naively),
    targets=lambda: (FeatureInstance(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.9]])),),
    forms={
        "printed": false("with lambda_min(Phi*^T Phi*)", "E18"),
        "corrected": ("with lambda_min(Phi* Phi*^T)", "E18"),
    },
    where="App. D.2",
)

on_features(
    "lemma-19-upper",
    "The limiting kernel's smallest eigenvalue does not grow with N",
    "Lemma 19, against it",
    "lambda_min(K) <= tr K/N = mean_n d_s^2 |phi*_n|^2, whatever N; d_s = 1.",
    r"\lambda_{\min}(K)\le\frac{d_s^2}N\sum_n\|\phi^*_n\|_2^2",
    sides=lambda i, variant: Sides(_lowest(_limit(i.Phi)), _mean_square(i.Phi)),
    naive=lambda num, data, variant: (
        _lowest_naively(num, _limit_naively(num, data["Phi"])),
        _mean_square_naively(num, data["Phi"]),
    ),
    forms={"measured": ("a bound that Lemma 19 would exceed for large N", "E18")},
    where="App. D.2",
)


def _diagonal(i: FeatureInstance, variant: str) -> Sides:
    values, slopes = _moments(i.Phi)
    products = i.Phi @ i.Phi.T
    second = slopes @ products if variant == "printed" else slopes * products
    return Sides(jnp.sum(i.Phi**2, axis=1), jnp.diag(values + second))


def _diagonal_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    Phi = data["Phi"]
    values, slopes = moments_naively(num, Phi)
    products, size = outer_gram(Phi), range(len(Phi))
    entries = [
        values[n][n]
        + (dot(slopes[n], products[n]) if variant == "printed" else slopes[n][n] * products[n][n])
        for n in size
    ]
    return [dot(row, row) for row in Phi], entries


identity(
    "lemma-1-diagonal",
    "The diagonal of the limiting kernel",
    "Lemma 1",
    "K_nn = |phi*_n|^2 (d_s = 1): half from w_O, E relu(phi.w)^2, and half from W_V. Left: this; "
    "right: the diagonal of the formula.",
    r"K=d_s^2E[\sigma_r(\Phi^*w)\sigma_r(\Phi^*w)^\top]+d_s^2E[\dot\sigma_r(\Phi^*w)"
    r"\dot\sigma_r(\Phi^*w)^\top]\circ\Phi^*\Phi^{*\top}",
    sides=_diagonal,
    naive=_diagonal_naive,
    families=FEATURES,
    targets=lambda: (three_rows(),),
    forms={
        "printed": false("a matrix product", "E14"),
        "corrected": ("an entry-wise product", "E14"),
    },
    where="Sec. 4.3 and App. D.1",
)
