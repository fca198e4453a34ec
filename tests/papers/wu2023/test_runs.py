"""Proposition 1 on runs: where it holds, and where the print breaks it."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from headcount.core import float64, stream
from headcount.kernels import ntk
from headcount.models import initialisations
from headcount.papers.wu2023 import quantities
from headcount.papers.wu2023.claims import proposition_1
from headcount.papers.wu2023.constants import Constants, Symbols
from headcount.papers.wu2023.hessian import scalar_hessian
from headcount.papers.wu2023.limit import limit_wu2023
from headcount.papers.wu2023.model import Encoder, EncoderParams, output_scale, softmax_scale
from headcount.papers.wu2023.records import WidthTable
from headcount.papers.wu2023.runs import Run
from headcount.theory import Outcome, claims, judge
from headcount.theory._prove import prove
from headcount.theory.slow import FLOATS, balls
from headcount.theory.slow_spectrum import extreme_eigenvalues, operator_norm

RUNS = Run.families()[0]


def test_jacobis_rotations_find_extreme_eigenvalues() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 6):
        A = rng.normal(size=(size, size + 1))
        exact = np.linalg.eigvalsh(A @ A.T)
        np.testing.assert_allclose(
            extreme_eigenvalues(FLOATS, (A @ A.T).tolist()), exact[[0, -1]], rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(
            operator_norm(FLOATS, A.tolist()), np.linalg.norm(A, 2), rtol=1e-12
        )
    with balls(200) as num:
        exact_low, exact_high = (3 - num.sqrt(num.number(5))) / 2, (3 + num.sqrt(num.number(5))) / 2
        low, high = extreme_eigenvalues(
            num, [[num.number(2), num.number(1)], [num.number(1), num.number(1)]]
        )
        assert abs(low - exact_low) < num.number("1e-50")
        assert abs(high - exact_high) < num.number("1e-50")


def test_a_run_inside_the_conditions_keeps_every_promise() -> None:
    for name in ("proposition-1", "proposition-1-norms", "proposition-1-alpha"):
        claim = claims[f"wu2023/{name}"]
        verdict = judge(claim, RUNS.sample(stream(3, "wu2023")), "corrected")
        assert verdict.outcome is Outcome.HOLDS, verdict.message


def test_the_printed_constants_allow_a_step_that_diverges() -> None:
    claim = claims["wu2023/proposition-1"]
    step = proposition_1.too_long_a_step()
    proof = prove(claim, "printed", step)
    assert proof.proved
    assert proof.twin.lhs > 4 * proof.twin.rhs
    # With the corrected constants the same step is refused.
    assert "the proposition asks gamma <= 1/C" in judge(claim, step, "corrected").message


def test_the_corrected_step_size_falls_like_one_over_N() -> None:
    """E23: four times the samples and the loss make C four times as large, and not eight."""
    i = RUNS.sample(stream(5, "wu2023"))
    with float64():
        C = [
            Constants(
                Symbols(i.sizes._replace(N=k * i.sizes.N), i.lam, start_loss=k * i.start_loss),
                "corrected",
            ).C
            for k in (1, 4)
        ]
    np.testing.assert_allclose(C[1], 4 * C[0], rtol=1e-12)


def test_a_tiny_step_is_compared_with_a_tinier_limit() -> None:
    """1/C is 3e-16 here: a check with an absolute slack of 1e-12 would let any such step pass."""
    claim = claims["wu2023/descent"]
    small = replace(
        proposition_1.step_over_a_kink(),
        X=np.array([[[1e4], [0.0]]]),
        room=np.full(4, 1.0),
        gamma=np.asarray(1e-13),
    )
    with float64():
        limit = 1 / float(Constants(small, "jump").C)
    assert limit < 1e-14
    assert "the proposition asks gamma <= 1/C" in judge(claim, small, "jump").message
    inside = replace(small, gamma=np.asarray(0.5 * limit))
    assert "gamma <= 1/C fails" not in judge(claim, inside, "jump").message


def test_watched_values_are_those_of_plain_descent() -> None:
    i = RUNS.sample(stream(1, "wu2023"))
    theta = i.theta
    y = np.asarray(i.y)
    for loss in np.asarray(i.losses):
        slope = jax.grad(lambda t: ((quantities.outputs(i, t) - y) ** 2).sum() / 2)(theta)
        theta = EncoderParams(*(a - i.gamma * g for a, g in zip(theta, slope, strict=True)))
        np.testing.assert_allclose(
            loss, np.sum((np.asarray(quantities.outputs(i, theta)) - y) ** 2) / 2, rtol=1e-9
        )


WIDTHS = np.array([128.0, 512.0, 2048.0])


def hessian_table(init: str) -> WidthTable:
    x = np.array([[1.0], [-0.4], [0.3]])
    rows = []
    for seed in range(4):
        row = []
        for width in WIDTHS.astype(int):
            encoder = Encoder(1, int(width), 1 / width, output_scale(init, int(width)), "sum")
            params = initialisations[init](encoder, seed)
            row.append(scalar_hessian(params, x, tau0=encoder.tau0, tau1=encoder.tau1).norm())
        rows.append(row)
    return WidthTable(widths=WIDTHS, values=np.array(rows))


def test_the_hessian_falls_for_ntk_and_not_for_lecun() -> None:
    claim = claims["wu2023/theorem-3-rate"]
    assert judge(claim, hessian_table("ntk")).outcome is Outcome.HOLDS
    refuted = judge(claim, hessian_table("lecun"))
    assert refuted.outcome is Outcome.VIOLATED
    assert abs(refuted.constants["exponent"]) < 0.1


def test_the_kernel_converges_to_the_limit_of_lemma_1() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4, 3, 5)) / np.sqrt(5)
    limit = limit_wu2023(x, pooling="sum").total
    rows = []
    for seed in range(6):
        row = []
        for width in (64, 256, 1024):
            encoder = Encoder(5, width, softmax_scale("ntk", width), width**-0.5, "sum")
            kernel = ntk(encoder, initialisations["ntk"](encoder, seed), x).total
            row.append(np.linalg.norm(kernel - limit) / np.linalg.norm(limit))
        rows.append(row)
    table = WidthTable(widths=np.array([64.0, 256.0, 1024.0]), values=np.array(rows))
    verdict = judge(claims["wu2023/lemma-1"], table)
    assert verdict.outcome is not Outcome.VIOLATED, verdict.message
    assert -0.75 < verdict.constants["exponent"] < -0.25
    slow = claims["wu2023/lemma-1"].naive(
        FLOATS, {"widths": table.widths.tolist(), "values": table.values.tolist()}, "measured"
    )
    np.testing.assert_allclose(slow, [verdict.lhs, verdict.rhs], rtol=1e-12)
