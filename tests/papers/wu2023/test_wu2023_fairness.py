"""What wu2023 is accused of: under its own hypotheses, with its own left sides and words."""

from __future__ import annotations

import json

import numpy as np
import pytest

from headcount.core import BadArgument
from headcount.lab import CONFIRMED, NOT_CONFIRMED, figures
from headcount.papers import wu2023
from headcount.papers.wu2023.constants import Norms
from headcount.papers.wu2023.figures import fig5
from headcount.papers.wu2023.records import ManyRows, Rows, Values, WidthTable
from headcount.papers.wu2023.setting import measure_start, ratios_at
from headcount.theory import Outcome, claims, judge


def of_paper():
    return claims.of_paper("wu2023")


def test_every_refuted_form_of_the_paper_is_defended_and_checked() -> None:
    refuted = {
        (claim.id, name): form
        for claim in of_paper()
        for name, form in claim.forms.items()
        if form.fails
    }
    assert {form.role for form in refuted.values()} == {
        "statement", "step", "implication", "reading",
    }  # fmt: skip
    for name, form in refuted.items():
        assert form.defence, name
        assert form.checked, name
        assert form.role != "step" or form.becomes, name
    statements = {name for (name, _), form in refuted.items() if "false as printed" in form.called}
    numbers = ("lemma-1-diagonal", "lemma-14", "lemma-17", "lemma-19")
    assert statements == {f"wu2023/{number}" for number in numbers}


@pytest.mark.parametrize(
    ("claim", "form", "role"),
    [
        ("separation-scaling", "printed", "informal"),
        ("separation-initialisation", "printed", "informal"),
        ("theorem-2-step", "printed", "step"),
        ("descent", "printed", "implication"),  # (2) and (3) do not hold at its point
        ("assumption-1", "printed", "implication"),
        ("eq-48", "printed", "step"),
        ("eq-48", "reused", "step"),
        ("lemma-18", "printed", "reading"),
        ("theorem-3", "printed", "reading"),
        ("proposition-1", "printed", "reading"),
        ("remark-step-size", "printed", "implication"),
    ],
)
def test_forms_are_called_what_they_are(claim: str, form: str, role: str) -> None:
    found = claims[f"wu2023/{claim}"].forms[form]
    assert found.role == role
    assert "false as printed" not in found.called


def test_discussions_and_assumptions_are_not_refuted() -> None:
    for name in ("separation-scaling", "separation-initialisation", "assumption-3", "assumption-4"):
        assert not any(form.fails for form in claims[f"wu2023/{name}"].forms.values())
    assert not claims["wu2023/eq-48"].forms["printed"].fails


def test_the_order_of_initialisations_is_asked_where_the_theorems_speak() -> None:
    """C.5 rests on d_m >= d; the point that was shipped before, d_m = 1 and d = 3, is outside."""
    with pytest.raises(BadArgument, match="d_m is below N or d"):
        Values(Phi=np.ones((1, 3)), W_V=np.ones((1, 3)))
    claim, rng = claims["wu2023/separation-initialisation"], np.random.default_rng(0)
    inside = Values(Phi=rng.normal(size=(2, 3)), W_V=rng.normal(size=(5, 3)))
    for form in ("printed", "corrected"):
        assert judge(claim, inside, form).outcome is Outcome.HOLDS


def test_lemmas_17_to_19_are_asked_of_many_samples() -> None:
    """N >= d^4: three rows at d = 2, shipped before, are outside; N = 16 to 64 break the print."""
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert Rows(Phi=rows).Phi.shape == (3, 2)
    with pytest.raises(BadArgument, match="N = 3 is below"):
        ManyRows(Phi=rows)
    for count in (16, 32):
        angles = np.arange(float(count))
        point = ManyRows(Phi=np.stack([np.cos(angles), np.sin(angles)], axis=1))
        for name in ("lemma-17", "lemma-18", "lemma-19"):
            claim = claims[f"wu2023/{name}"]
            assert judge(claim, point, "printed").outcome is Outcome.VIOLATED
            assert judge(claim, point, "corrected").outcome is Outcome.HOLDS


def test_lemma_17_is_about_its_own_eigenvalue() -> None:
    """Its left side is lambda_min(Phi* Phi*^T): zero, up to the common summand."""
    angles = np.arange(16.0)
    point = ManyRows(Phi=np.stack([np.cos(angles), np.sin(angles)], axis=1))
    sides = claims["wu2023/lemma-17"].sides(point, "printed")
    np.testing.assert_allclose(float(sides.rhs), 1.0, rtol=1e-12)
    np.testing.assert_allclose(
        float(sides.lhs) - 1.0, np.linalg.eigvalsh(point.Phi.T @ point.Phi)[0] / 2000, rtol=1e-9
    )


def test_eq_62_has_w_O_on_both_sides() -> None:
    (point,) = claims["wu2023/eq-62"].targets()
    sides = claims["wu2023/eq-62"].sides(point, "printed")
    np.testing.assert_allclose([float(sides.lhs), float(sides.rhs)], [0.1, 0.01])
    sides = claims["wu2023/eq-62"].sides(point, "corrected")
    np.testing.assert_allclose([float(sides.lhs), float(sides.rhs)], [1.0, 1.0])


def test_theorem_2_is_tested_on_alpha_and_not_on_four_copies() -> None:
    """Both forms differ by the factor d_m alone; at tau1 = 1 nothing is wrong with (48)."""
    claim = claims["wu2023/theorem-2-step"]
    case, rng = claim.experiment.cases[0], np.random.default_rng(3)
    assert case["d_m"] >= 10 * case["N"] / 0.075
    points = claim.experiment.draw(case, rng, 1)
    point = type(points)(**{name: getattr(points, name)[0] for name in points.spaces})
    printed, corrected = (claim.sides(point, form) for form in ("printed", "corrected"))
    np.testing.assert_allclose(printed.lhs, case["d_m"] * corrected.lhs)
    F = np.asarray(point.F_pre)
    np.testing.assert_allclose(float(printed.rhs), np.linalg.eigvalsh(F @ F.T)[0], rtol=1e-9)


def ratios(init: str, scaling: str, room: float, width: int, seed: int, counts: tuple) -> list:
    """The worse ratio of (2) and (3) for samples at right angles."""
    found = []
    for n in counts:
        rng = np.random.default_rng([seed, n])
        x = np.linalg.qr(rng.normal(size=(max(counts),) * 2))[0][:n, None]
        tau0, tau1 = wu2023.softmax_scale(scaling, width), wu2023.output_scale(init, width)
        model = wu2023.Encoder(max(counts), width, tau0, tau1, "sum")
        start = {"lecun": wu2023.lecun, "ntk": wu2023.ntk_normal}[init](model, seed)
        begun = measure_start(model, start, x, rng.choice([-1.0, 1.0], n))
        found.append(max(ratios_at(begun, Norms(room, room, room, room))))
    return found


@pytest.mark.parametrize("init", ["lecun", "ntk"])
def test_the_dependence_on_the_number_of_samples(init: str) -> None:
    """(2) and (3) ask for widths of order N^3: LeCun as Theorem 1 says, NTK unlike Theorem 2."""
    width, counts = 2**14, (4, 8, 16)
    name, scaling, room = {
        "lecun": ("theorem-1-samples", "realistic", 1.0),
        "ntk": ("theorem-2-samples", "ntk", width**0.5),
    }[init]
    values = np.array([ratios(init, scaling, room, width, seed, counts) for seed in range(6)])
    claim, sizes = claims[f"wu2023/{name}"], np.array(counts, float)
    found = judge(claim, WidthTable(widths=sizes, values=values), "measured")
    assert found.outcome is not Outcome.VIOLATED, found.message
    assert 1.3 < found.constants["exponent"] < 1.75
    steeper = WidthTable(widths=sizes, values=values * sizes)
    assert judge(claim, steeper, "measured").outcome is Outcome.VIOLATED
    if init == "ntk":
        table = WidthTable(widths=sizes, values=values)
        assert judge(claim, table, "printed").outcome is Outcome.VIOLATED


def of_epochs(figure: str, ends: float) -> list:
    """Verdicts of a figure on curves of the loss that all die (NaN) or never fall (1)."""
    import xarray as xr

    panels = {"panel": list(fig5.PANELS)} if figure == "wu2023/fig5" else {}
    panels = panels or {"scaling": ["realistic", "ntk"]}
    (name, values), widths = next(iter(panels.items())), [10, 100, 1000]
    shape = (5, len(values), len(widths), 9)
    loss = np.full(shape, ends)
    loss[..., :2] = 1.0
    places = {"seed": range(5), name: values, "d_m": widths, "epoch": range(9)}
    data = xr.Dataset(
        {
            "loss": (tuple(places), loss),
            "finite": (("seed", name, "d_m"), np.full(shape[:3], float(np.isfinite(ends)))),
        },
        coords={key: list(value) for key, value in places.items()},
        attrs={"plan": json.dumps({"options": figures[figure].choose({})})},
    )
    return list(figures[figure].verdicts(data))


@pytest.mark.parametrize("figure", ["wu2023/fig5", "wu2023/scaling"])
@pytest.mark.parametrize("ends", [np.nan, 1.0], ids=["died", "never"])
def test_runs_that_died_or_never_got_there_confirm_nothing(figure: str, ends: float) -> None:
    """With all 12 runs of fig5 diverged `He is as fast as LeCun` was confirmed once."""
    judged = [v for v in of_epochs(figure, ends) if v.source.kind != "sanity"]
    assert judged
    assert not {v.outcome for v in judged} & {CONFIRMED, NOT_CONFIRMED}
