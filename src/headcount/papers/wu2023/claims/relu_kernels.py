"""Lemmas 1, 15 and 17 to 19 of wu2023: kernels of relu on fixed rows Phi, and their eigenvalues.

The expectations are known in closed form (arc-cosine kernels), so every statement is about
numbers. Both sides of an inequality between eigenvalues that may vanish carry the mean squared
row |Phi|_F^2/N as a common summand.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from ....theory import false
from ....theory.slow import dot, flat, norm
from ....theory.slow_spectrum import gram, outer_gram, smallest_eigenvalue
from ..constants import state
from ..limit import arc_cosine
from ..records import ManyRows, Rows

NOTHING = "without the claim an eigenvalue is known to be at least zero, and no more"
on_rows = functools.partial(state.claim, on=Rows, proved="App. D.2", no_rival=NOTHING)
on_many_rows = functools.partial(on_rows, on=ManyRows)


def moments(Phi):
    """E[relu(Phi w) relu(Phi w)^T] and E[relu'(Phi w) relu'(Phi w)^T], w ~ N(0, I)."""
    rows = jax.vmap(jax.vmap(arc_cosine, in_axes=(None, 0)), in_axes=(0, None))
    values, slopes = rows(Phi, Phi)
    size = jnp.sum(Phi**2, axis=1)
    same = jnp.eye(Phi.shape[0], dtype=bool)
    return jnp.where(same, size / 2, values), jnp.where(same & (size > 0)[:, None], 0.5, slopes)


def limit(Phi):
    """K of Lemma 1 for d_s = 1, with the entry-wise product."""
    values, slopes = moments(Phi)
    return values + slopes * (Phi @ Phi.T)


def lowest(matrix):
    """The smallest eigenvalue."""
    return jnp.linalg.eigvalsh((matrix + matrix.T) / 2)[0]


def lowest_of_relu(Phi):
    """lambda_0 = lambda_min E[relu(Phi w) relu(Phi w)^T], w ~ N(0, I)."""
    return lowest(moments(Phi)[0])


def mean_square(Phi):
    """|Phi|_F^2/N."""
    return jnp.mean(jnp.sum(Phi**2, axis=1))


def angle(num, u, v):
    """2 atan(|u/|u| - v/|v|| / |u/|u| + v/|v||), from the side where nothing is divided by zero."""
    a, b = norm(num, u), norm(num, v)
    difference = norm(num, [x / a - y / b for x, y in zip(u, v, strict=True)])
    together = norm(num, [x / a + y / b for x, y in zip(u, v, strict=True)])
    if num.roughly(together) < num.roughly(difference):
        return num.pi - 2 * num.atan(together / difference)
    return 2 * num.atan(difference / together)


def slow_moments(num, Phi):
    """The moments in slow arithmetic; rows must not vanish."""
    N, half = len(Phi), num.number(1) / 2
    values = [[num.number(0)] * N for _ in range(N)]
    slopes = [[half] * N for _ in range(N)]
    for i in range(N):
        values[i][i] = dot(Phi[i], Phi[i]) / 2
        for j in range(i):
            t, size = angle(num, Phi[i], Phi[j]), norm(num, Phi[i]) * norm(num, Phi[j])
            share = (num.pi - t) / (2 * num.pi)
            slopes[i][j] = slopes[j][i] = share
            values[i][j] = size * num.sin(t) / (2 * num.pi) + share * size * num.cos(t)
            values[j][i] = values[i][j]
    return values, slopes


def slow_limit(num, Phi):
    """K in slow arithmetic."""
    values, slopes = slow_moments(num, Phi)
    products, size = outer_gram(Phi), range(len(Phi))
    return [[values[i][j] + slopes[i][j] * products[i][j] for j in size] for i in size]


def slow_lowest_of_relu(num, Phi):
    """lambda_0 in slow arithmetic."""
    return smallest_eigenvalue(num, slow_moments(num, Phi)[0])


def slow_mean_square(num, Phi):
    """|Phi|_F^2/N in slow arithmetic."""
    return num.total([x**2 for x in flat(Phi)]) / len(Phi)


def products(Phi, form):
    """Phi^T Phi where the print confuses the two Gram matrices, else Phi Phi^T."""
    return Phi.T @ Phi if form == "printed" else Phi @ Phi.T


def slow_products(Phi, form):
    """The same as nested lists."""
    return outer_gram(list(zip(*Phi, strict=True)) if form == "printed" else Phi)


def above(share, matrix, kernel, Phi):
    """share * lambda_min(matrix) <= lambda_min(kernel), both plus the common summand."""
    common = mean_square(Phi)
    return share * lowest(matrix) + common, lowest(kernel) + common


def slow_above(num, share, matrix, kernel, Phi):
    """The same in slow arithmetic, the share as a pair of whole numbers."""
    common = slow_mean_square(num, Phi)
    low = num.number(share[0]) / share[1] * smallest_eigenvalue(num, matrix)
    return low + common, smallest_eigenvalue(num, kernel) + common


def around(count=16):
    """N = d^4 samples at d = 2: unit vectors at 0, 1, 2, ... radians."""
    angles = np.arange(float(count))
    return ManyRows(Phi=np.stack([np.cos(angles), np.sin(angles)], axis=1))


@on_rows(
    "eq-38",
    "First Hermite coefficient below the kernel of relu",
    lower=True,
    where="(38), Lemma 15",
    proved="App. C.3",
    says=r"\lambda_0\ge\eta_V\mu(\sigma_r)^2\lambda_{\min}(\Phi\Phi^\top)",
    forms="also for rows that are not unit vectors",
)
def eq_38(Phi):
    """lambda_0 = lambda_min E[relu(Phi w) relu(Phi w)^T] >= eta_V mu^2 lambda_min(Phi Phi^T),
    mu = 1/2; here eta_V = 1, to which everything scales."""
    return above(0.25, Phi @ Phi.T, moments(Phi)[0], Phi)


@eq_38.twin
def _(num, Phi):
    return slow_above(num, (1, 4), outer_gram(Phi), slow_moments(num, Phi)[0], Phi)


@on_rows(
    "eq-42",
    "The kernel of relu from above",
    where="Remark after Lemma 15, (42), (43)",
    proved="App. C.3",
    says=r"\lambda_0\le\frac{\eta_V}{2N}\sum_n\|\Phi^{(n,:)}\|_2^2",
    forms={"printed": ("attained by one sample", "E20")},
)
def eq_42(Phi):
    """lambda_0 <= eta_V sum_n |Phi_n|^2/(2 N): the smallest eigenvalue is at most their mean."""
    return lowest_of_relu(Phi), mean_square(Phi) / 2


@eq_42.twin
def _(num, Phi):
    return slow_lowest_of_relu(num, Phi), slow_mean_square(num, Phi) / 2


@on_rows(
    "eq-39",
    "Gershgorin's theorem for Phi Phi^T",
    lower=True,
    where="(39), Lemma 15",
    proved="App. C.3",
    says=r"\lambda_{\min}(\Phi\Phi^\top)\ge\min_k(\Phi\Phi^\top)_{kk}"
    r"-\sum_{j\ne k}(\Phi\Phi^\top)_{kj}",
    forms={
        "printed": false("without absolute values: opposite rows break it", "E17"),
        "corrected": ("with absolute values", "E17"),
    },
    tight=lambda: (Rows(Phi=np.array([[1.0], [-1.0]])),),
)
def eq_39(Phi, form):
    """lambda_min(Phi Phi^T) is at least the smallest diagonal entry minus the sum of its row. Both
    sides carry the mean squared row."""
    rows, common = Phi @ Phi.T, mean_square(Phi)
    others = rows * (1 - jnp.eye(len(Phi)))
    radii = jnp.sum(others if form == "printed" else jnp.abs(others), axis=1)
    return jnp.min(jnp.diag(rows) - radii) + common, lowest(rows) + common


@eq_39.twin
def _(num, Phi, form):
    rows, common = outer_gram(Phi), slow_mean_square(num, Phi)
    ends = []
    for k, row in enumerate(rows):
        rest = [x if form == "printed" else abs(x) for j, x in enumerate(row) if j != k]
        ends.append(row[k] - num.total(rest))
    return num.smallest(ends) + common, smallest_eigenvalue(num, rows) + common


@on_many_rows(
    "lemma-17",
    "Smallest eigenvalue of Phi* Phi*^T",
    lower=True,
    where="Lemma 17, App. C.5, C.8",
    says=r"\lambda_{\min}(\Phi^*\Phi^{*\top})\ge\Theta(N/d)",
    forms={
        "printed": false("zero for N > d, whatever constant Theta hides; here 1/1000", "E18"),
        "corrected": ("the min(N, d)-th largest eigenvalue of Phi* Phi*^T in its place", "E18"),
    },
    notes=("E19",),
    tight=lambda: (around(),),
)
def lemma_17(Phi, form):
    """lambda_min(Phi* Phi*^T) >= Theta(N/d) for N >= d^4, where N/d stands for
    lambda_min(Phi*^T Phi*)/d: N/d times the smallest eigenvalue of the samples' second moment. The
    N x N matrix has rank d, so that its smallest eigenvalue is zero for N > d. Both sides carry the
    mean squared row."""
    common, smallest = mean_square(Phi), jnp.linalg.svd(Phi, compute_uv=False)[-1] ** 2
    printed = form == "printed"
    right = lowest(Phi @ Phi.T) if printed else smallest
    share = 1 / (1000 * Phi.shape[1]) if printed else 1.0
    return share * lowest(Phi.T @ Phi) + common, right + common


@lemma_17.twin
def _(num, Phi, form):
    common, left = slow_mean_square(num, Phi), smallest_eigenvalue(num, gram(Phi))
    if form == "printed":
        right = smallest_eigenvalue(num, outer_gram(Phi))
        return left / (1000 * len(Phi[0])) + common, right + common
    return left + common, left + common


@on_many_rows(
    "lemma-18",
    "The kernel of relu and the number of samples",
    lower=True,
    where="Lemma 18",
    says=r"\lambda_0\ge\tfrac34\eta_V\mu(\sigma_r)^2\lambda_*\ge\Theta(\eta_VN/d)",
    forms={
        "printed": false("lambda_* = lambda_min(Phi*^T Phi*), as Lemma 17 has it", "E18"),
        "corrected": (
            "lambda_* = lambda_min(Phi* Phi*^T), which is 0 for N > d: the width that the lemma "
            "asks for is then infinite",
            "E18",
        ),
    },
    tight=lambda: (around(),),
)
def lemma_18(Phi, form):
    """lambda_0 >= (3/4) eta_V mu^2 lambda_* for N >= d^4, with lambda_* of order N/d through
    Lemma 17. Here eta_V = 1, mu = 1/2 and Phi = Phi*; both sides carry the mean squared row."""
    return above(3 / 16, products(Phi, form), moments(Phi)[0], Phi)


@lemma_18.twin
def _(num, Phi, form):
    return slow_above(num, (3, 16), slow_products(Phi, form), slow_moments(num, Phi)[0], Phi)


@on_many_rows(
    "lemma-19",
    "Smallest eigenvalue of the limiting kernel",
    lower=True,
    where="Lemma 19",
    says=r"\lambda_{\min}(K)\ge\mu(\sigma_r)^2\Omega(N/d)",
    forms={
        "printed": false("bounded in N; here with lambda_min(Phi*^T Phi*) for N/d", "E18"),
        "corrected": ("with lambda_min(Phi* Phi*^T)", "E18"),
    },
    tight=lambda: (around(),),
)
def lemma_19(Phi, form):
    """lambda_min(K) >= mu^2 lambda_min(Phi* Phi*^T) for N >= d^4, of order N/d through Lemma 17;
    d_s = 1. Its mean eigenvalue does not grow with N, so that no constant helps. Both sides carry
    the mean squared row."""
    return above(0.25, products(Phi, form), limit(Phi), Phi)


@lemma_19.twin
def _(num, Phi, form):
    return slow_above(num, (1, 4), slow_products(Phi, form), slow_limit(num, Phi), Phi)


@on_rows(
    "lemma-19-upper",
    "The limiting kernel's smallest eigenvalue does not grow with N",
    where="Lemma 19, against it",
    says=r"\lambda_{\min}(K)\le\frac{d_s^2}N\sum_n\|\phi^*_n\|_2^2",
    forms={"measured": ("a bound that Lemma 19 would exceed for large N", "E18")},
)
def lemma_19_upper(Phi):
    """lambda_min(K) <= tr K/N = mean_n d_s^2 |phi*_n|^2, whatever N; d_s = 1."""
    return lowest(limit(Phi)), mean_square(Phi)


@lemma_19_upper.twin
def _(num, Phi):
    return smallest_eigenvalue(num, slow_limit(num, Phi)), slow_mean_square(num, Phi)


@state.identity(
    "lemma-1-diagonal",
    "The diagonal of the limiting kernel",
    where="Lemma 1",
    proved="Sec. 4.3 and App. D.1",
    on=Rows,
    says=r"K=d_s^2E[\sigma_r(\Phi^*w)\sigma_r(\Phi^*w)^\top]+d_s^2E[\dot\sigma_r(\Phi^*w)"
    r"\dot\sigma_r(\Phi^*w)^\top]\circ\Phi^*\Phi^{*\top}",
    forms={
        "printed": false("a matrix product", "E14"),
        "corrected": ("an entry-wise product", "E14"),
    },
    tight=lambda: (Rows(Phi=np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])),),
)
def lemma_1_diagonal(Phi, form):
    """K_nn = |phi*_n|^2 (d_s = 1): half from w_O, E relu(phi.w)^2, and half from W_V. Left: this;
    right: the diagonal of the formula."""
    values, slopes = moments(Phi)
    second = slopes @ (Phi @ Phi.T) if form == "printed" else slopes * (Phi @ Phi.T)
    return jnp.sum(Phi**2, axis=1), jnp.diag(values + second)
