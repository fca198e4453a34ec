"""Every numbered statement of wu2023 that is called false, at the shipped point, in mpmath alone.

Written from `says` of quotes.toml and the paper's definitions; shares no code with the claims.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources

import mpmath as mp
import pytest

from headcount.theory import claims

mp.mp.dps = 40
FOLDER = resources.files("headcount.papers.wu2023") / "certificates"
STATEMENTS = {
    (claim.id, name)
    for claim in claims.of_paper("wu2023")
    for name, form in claim.forms.items()
    if form.fails and form.role == "statement"
}


def shipped(claim: str, form: str) -> dict[str, mp.matrix]:
    """The arrays of a certificate: X as a list of matrices, others as matrices."""
    file = FOLDER / f"{claim.replace('/', '-')}-{form}.json"
    found = {}
    for name, array in json.loads(file.read_text())["instance"].items():
        values, shape = [mp.mpf(v) for v in array["values"]], array["shape"]
        if len(shape) == 3:
            step = shape[1] * shape[2]
            parts = [values[i : i + step] for i in range(0, len(values), step)]
            found[name] = [reshaped(part, shape[1:]) for part in parts]
        else:
            found[name] = reshaped(values, shape if len(shape) == 2 else [len(values), 1])
    return found


def reshaped(values: list, shape: list[int]) -> mp.matrix:
    rows, columns = shape
    return mp.matrix([values[i * columns : (i + 1) * columns] for i in range(rows)])


def lowest(A: mp.matrix) -> mp.mpf:
    return min(mp.eigsy(A, eigvals_only=True))


def length(row: mp.matrix) -> mp.mpf:
    return mp.sqrt(mp.fsum(x**2 for x in row))


def relu_moments(Phi: mp.matrix) -> tuple[mp.matrix, mp.matrix]:
    """E relu(Phi w) relu(Phi w)^T and E relu'(Phi w) relu'(Phi w)^T, from the angle of two rows."""
    N = Phi.rows
    values, slopes = mp.matrix(N), mp.matrix(N)
    for i in range(N):
        for j in range(N):
            u, v = Phi[i, :], Phi[j, :]
            size = length(u) * length(v)
            cosine = mp.fsum(a * b for a, b in zip(u, v, strict=True)) / size
            t = mp.mpf(0) if i == j else mp.acos(max(-1, min(1, cosine)))
            values[i, j] = size * (mp.sin(t) + (mp.pi - t) * mp.cos(t)) / (2 * mp.pi)
            slopes[i, j] = (mp.pi - t) / (2 * mp.pi)
    return values, slopes


def agrees(claim: str, form: str, lhs: mp.mpf, rhs: mp.mpf) -> None:
    """Both sides are those of the certificate."""
    file = FOLDER / f"{claim.replace('/', '-')}-{form}.json"
    claimed = json.loads(file.read_text())["claimed"]
    for own, name in ((lhs, "lhs"), (rhs, "rhs")):
        assert abs(mp.mpf(claimed[name]) - own) < 1e-9 * max(1, abs(own)), name


def many_samples(Phi: mp.matrix) -> None:
    """N >= d^4, and Assumption 4: the second moment is regular."""
    assert Phi.rows >= Phi.cols**4
    assert lowest(Phi.T * Phi) / Phi.rows > 0.1


def lemma_1_diagonal(form: str) -> None:
    """K_nn beside the n-th diagonal entry of the printed formula, for d_s = 1: no hypotheses."""
    Phi = shipped("wu2023/lemma-1-diagonal", form)["Phi"]
    values, slopes = relu_moments(Phi)
    printed = values + slopes * (Phi * Phi.T)
    # By the law of large numbers: E relu(u)^2 + E w_O^2 relu'(u)^2 |phi|^2 = |phi|^2.
    kernel = [length(Phi[n, :]) ** 2 for n in range(Phi.rows)]
    apart = max(abs(printed[n, n] - kernel[n]) for n in range(Phi.rows))
    assert apart > 0.1 * max(kernel)
    diagonal = mp.matrix([printed[n, n] for n in range(Phi.rows)])
    agrees("wu2023/lemma-1-diagonal", form, length(mp.matrix(kernel)), length(diagonal))
    for n in range(Phi.rows):  # the defence: the entry-wise product is right
        assert abs(values[n, n] + slopes[n, n] * kernel[n] - kernel[n]) < mp.mpf(10) ** -30


def lemma_14(form: str) -> None:
    """N = d = d_s = d_m = 1 or scalar blocks: |grad f' - grad f| against c_3 |theta' - theta|."""
    data = shipped("wu2023/lemma-14", form)
    (X,), tau = data["X"], data["tau"]
    assert X.rows == X.cols == 1
    assert data["w_O"].rows == 1
    here = [data[name][0] for name in ("W_Q", "W_K", "W_V", "w_O")]
    step = [data[name][0] for name in ("d_Q", "d_K", "d_V", "d_O")]
    there = [a + b for a, b in zip(here, step, strict=True)]
    x, tau0, tau1 = X[0], tau[0], tau[1]

    def gradient(theta: list) -> list:
        """One token: attention is 1, f = tau1 w_O relu(w_V x)."""
        _, _, w_V, w_O = theta
        on = 1 if w_V * x > 0 else 0
        return [0, 0, tau1 * w_O * on * x, tau1 * max(w_V * x, 0)]

    assert here[2] * x != 0
    assert there[2] * x != 0  # no choice of relu'(0) matters
    lam = [max(abs(a), abs(b)) for a, b in zip(here, there, strict=True)]
    Q, K, V, O = lam
    C, d_s, N = abs(x), 1, 1
    z = 2 * tau0 * C**2 * d_s * (Q + K)
    kink = V * (O * C * mp.sqrt(d_s) * (1 + V * z) + 1) + O
    lines = [
        tau1 * C * (1 + V * z),
        tau1 * C * (O * z + O * C * (1 + V * z) + 1),
        *(
            tau0 * tau1 * C * (2 * side * C**2 * kink + V * O * (C**2 + 3 * K * z))
            for side in (K, Q)
        ),
    ]
    c_3 = mp.sqrt(N * mp.fsum(line**2 for line in lines))
    left = length(mp.matrix(gradient(there)) - mp.matrix(gradient(here)))
    right = c_3 * length(mp.matrix(step))
    assert left > 2 * right > 0
    agrees("wu2023/lemma-14", form, left, right)


def lemma_17(form: str) -> None:
    """lambda_min(Phi* Phi*^T) is zero, Theta(N/d) is not."""
    Phi = shipped("wu2023/lemma-17", form)["Phi"]
    many_samples(Phi)
    assert abs(lowest(Phi * Phi.T)) < mp.mpf(10) ** -30
    assert Phi.rows > Phi.cols  # rank at most d: zero for every constant
    # The claim's sides carry the mean squared row; for N/d stands lambda_min(Phi^T Phi)/d, here
    # with the constant 1/1000.
    common = mp.fsum((Phi * Phi.T)[n, n] for n in range(Phi.rows)) / Phi.rows
    least = lowest(Phi.T * Phi) / Phi.cols
    agrees("wu2023/lemma-17", form, least / 1000 + common, common)


def lemma_19(form: str) -> None:
    """lambda_min(K), K with the entry-wise product, against mu^2 N/d and a twentieth of it."""
    Phi = shipped("wu2023/lemma-19", form)["Phi"]
    many_samples(Phi)
    values, slopes = relu_moments(Phi)
    gram = Phi * Phi.T
    K = mp.matrix(Phi.rows)
    for i in range(Phi.rows):
        for j in range(Phi.rows):
            K[i, j] = values[i, j] + slopes[i, j] * gram[i, j]
    bound = mp.mpf(1) / 4 * Phi.rows / Phi.cols
    assert 0 < lowest(K) < bound / 20
    mean = mp.fsum(K[n, n] for n in range(Phi.rows)) / Phi.rows
    assert lowest(K) <= mean  # does not grow with N, as N/d does
    # The claim's sides carry the mean squared row, and lambda_min(Phi^T Phi) for N/d.
    common = mp.fsum(gram[n, n] for n in range(Phi.rows)) / Phi.rows
    agrees("wu2023/lemma-19", form, lowest(Phi.T * Phi) / 4 + common, lowest(K) + common)


ALONE: dict[tuple[str, str], Callable[[str], None]] = {
    ("wu2023/lemma-1-diagonal", "printed"): lemma_1_diagonal,
    ("wu2023/lemma-14", "printed"): lemma_14,
    ("wu2023/lemma-17", "printed"): lemma_17,
    ("wu2023/lemma-19", "printed"): lemma_19,
}


def test_every_refuted_statement_is_recomputed() -> None:
    assert set(ALONE) == STATEMENTS


@pytest.mark.parametrize("form", sorted(ALONE), ids="-".join)
def test_a_refuted_statement_fails_at_its_point(form: tuple[str, str]) -> None:
    ALONE[form](form[1])
