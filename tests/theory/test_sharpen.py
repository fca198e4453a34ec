"""The best constant from both sides: points, limits, closed forms, upper ends, laws."""

from __future__ import annotations

import json
import math

import jax
import jax.numpy as jnp
import mpmath
import pytest
from benchmarks import sharpen as ten
from matplotlib.figure import Figure

from headcount.cli import run
from headcount.cli._sharpen import _draw_point
from headcount.core import BadArgument
from headcount.theory import Box, Reals, Size, equality, given, lemma, sharpen
from headcount.theory._closed_form import ClosedForm, closed_form
from headcount.theory._sharpened import Best, Sharpened, law_of

T = Size("T", 2, 3)
D = Size("d", 2, 4)


def decimal(value: object, digits: int = 40) -> str:
    return str(mpmath.nstr(value, digits + 10))


@pytest.fixture(autouse=True)
def many_digits():
    with mpmath.workdps(80):
        yield


@pytest.mark.parametrize(
    "text",
    ["1/2", "32/27", "4/(3 sqrt 3)", "2 sqrt 2/sqrt (pi e)", "ln 2", "1 + 1/2 pi",
     "1/2 + 1/2 sqrt 5", "1/2 + 1/2 erf 1 + 1/(e sqrt pi)", "2^(1/3)"],
)  # fmt: skip
def test_numbers_are_called_by_their_names(text: str) -> None:
    m = mpmath
    values = {
        "1/2": m.mpf(1) / 2, "32/27": m.mpf(32) / 27, "4/(3 sqrt 3)": 4 / (3 * m.sqrt(3)),
        "2 sqrt 2/sqrt (pi e)": m.sqrt(8 / (m.pi * m.e)), "ln 2": m.ln(2),
        "1 + 1/2 pi": 1 + m.pi / 2, "1/2 + 1/2 sqrt 5": (1 + m.sqrt(5)) / 2,
        "1/2 + 1/2 erf 1 + 1/(e sqrt pi)": (1 + m.erf(1)) / 2 + 1 / (m.e * m.sqrt(m.pi)),
        "2^(1/3)": m.cbrt(2),
    }  # fmt: skip
    assert closed_form(decimal(values[text]), 40) == ClosedForm(text, 40)


def test_what_has_no_simple_name_gets_none():
    root = mpmath.findroot(lambda x: x**4 + x - 3, 1.1)
    assert closed_form(decimal(root), 40).text == "the root 1.16404 of x^4 + x - 3"
    assert closed_form(decimal(mpmath.sin(1)), 40) is None
    assert closed_form(decimal(4 / (3 * mpmath.sqrt(3)) + mpmath.mpf(10) ** -35), 40) is None
    assert closed_form("0.5", 14) is None  # too few digits to say anything


@pytest.mark.parametrize("name", ["curvature_of_tanh", "slope_of_silu", "slope_of_gelu"])
def test_known_constants_are_found_named_and_proved(name: str) -> None:
    """The cheap ones of the ten; `python -m benchmarks.sharpen` has all."""
    (best,) = sharpen(ten.CONSTANTS[name], budget=300).rows
    constant = ten.known()[name]
    assert ten.agreeing(best, constant) >= ten.DIGITS
    assert best.found <= constant <= best.proved <= best.found * (1 + 2e-6)
    assert (best.form is None) == (name == ten.NO_FORM)
    assert best.kind == "attained"


def test_the_ten_are_ten():
    assert len(ten.CONSTANTS) == 10
    assert set(ten.known()) == set(ten.CONSTANTS)


@lemma(z=Reals(T), u=Reals(T))
def softmax_moves(z, u):
    """|softmax(z + u) - softmax(z)| <= c |u|; the best constant is 1/2 at every T."""
    return jnp.linalg.norm(jax.nn.softmax(z + u) - jax.nn.softmax(z)), jnp.linalg.norm(u)


def test_limits_are_recognised_and_told():
    found = sharpen(softmax_moves, budget="small")
    assert [row.sizes for row in found.rows] == [{"T": 2}, {"T": 3}]
    for row in found.rows:
        assert row.form.text == "1/2"
        assert row.digits >= 30
        assert row.approached[0] == "u -> 0"
        assert row.proved is None
        assert "in Reals, which verify cannot cover by boxes" in row.problem
        assert row.found <= 0.5
    assert any("-> -infinity" in words for words in found.rows[1].approached)
    assert found.law == ()


def quick(function, **variables):
    (best,) = sharpen(lemma(**variables)(function), budget=400, boxes=0).rows
    return best


def test_other_kinds_of_extrema():
    def far(x):
        return jnp.abs(x) / (1 + jnp.abs(x)), 1.0

    def flat(x):
        return 2 - (x - 0.125) ** 4, 1.0

    def without_bound(x):
        return x * x, jnp.abs(x)

    best = quick(far, x=Reals())
    assert (best.form.text, best.approached) == ("1", ("|x| -> infinity",))
    best = quick(flat, x=Box())
    assert (best.form.text, best.kind) == ("2", "degenerate")
    best = quick(without_bound, x=Reals())
    assert best.kind == "unbounded"
    assert "grows without bound" in best.shown


def test_active_hypotheses_and_bounds_are_kept():
    inside = lemma(given("short", lambda x: x @ x, 1.0), x=Reals(2))
    (best,) = sharpen(inside(lambda x: (jnp.abs(x[0] + 2 * x[1]), 1.0)), budget=400).rows
    assert best.form.text == "sqrt 5"
    at_a_bound = quick(lambda x: (jnp.exp(x), 1.0), x=Box(low=0, high=0.5))
    assert at_a_bound.form.text == "sqrt e"
    assert at_a_bound.point == {"x": "0.5"}


@lemma(x=Reals(D))
def fourth_norm(x):
    """|x|_4 <= |x|_2: constant by zeros."""
    return jnp.sum(x**4) ** 0.25, jnp.linalg.norm(x)


@lemma(x=Reals(D))
def one_entry(x):
    """The first entry: constant whatever the others are."""
    return jnp.abs(x[0]), jnp.linalg.norm(x)


@lemma(x=Box(D, low=0, high=1))
def square_of_the_mean(x):
    """mean(x)^2 <= mean(x^2): constant by copies."""
    return jnp.mean(x) ** 2, jnp.mean(x**2)


@pytest.mark.parametrize("own", [fourth_norm, one_entry, square_of_the_mean])
def test_a_ratio_that_is_constant_by_embedding_gets_no_law(own):
    found = sharpen(own, budget=400, boxes=0)
    assert len(found.rows) >= 3
    assert all(math.isclose(row.found, 1.0, rel_tol=1e-9) for row in found.rows)
    assert found.law == ()


def table(lower, upper=(None,) * 5):
    sizes = [1, 2, 4, 8, 16]
    return [Best({"T": k}, a, b) for k, a, b in zip(sizes, lower, upper, strict=True)]


def test_a_law_needs_both_ends_unless_it_grows():
    falls = [1 / k for k in (1, 2, 4, 8, 16)]
    grows = [1.0 * k for k in (1, 2, 4, 8, 16)]
    ones = [1.0] * 5
    assert law_of(table(falls)) == ()
    assert law_of(table(falls, ones)) == ()
    assert "falls like 1/T" in law_of(table(falls, [1.001 * x for x in falls]))[0]
    assert "grows like T" in law_of(table(grows))[0]
    assert law_of(table(grows, [16.0] * 5)) == ()
    assert law_of(table(ones, ones)) == ()


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    head = "from headcount.theory import Box, lemma\n@lemma(p=Box(low=0, high=1))\n"
    (tmp_path / "mine.py").write_text(head + "def f(p): return p * (1 - p), 1.0\n")
    arguments = ["sharpen", "mine.py:f", "--budget", "200"]
    assert run([*arguments, "--json", "--plot", "best.png"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"found", "proved", "digits", "closed_form", "point", "law"} <= set(told)
    assert (told["closed_form"], told["point"]) == ("1/4", {"p": "0.5"})
    assert told["found"] == 0.25 < told["proved"] < 0.2500001
    assert (tmp_path / "best.png").stat().st_size > 1000
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert "= 1/4 to" in out
    assert max(map(len, out.splitlines())) <= 80
    assert run(["sharpen", "mine.py:g"]) == 2


def test_the_extremal_point_is_drawn():
    small = Best({"T": 1}, 0.25, 0.3, point={"x": "1"})
    large = Best({"T": 2}, 0.5, None, point={"x": ["0.5", "-1"], "y": "2"}, approached=("u -> 0",))
    axes = Figure().subplots()
    _draw_point(axes, Sharpened("c", "v", (large, small), 1, 0.0))
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines[:2]}
    assert drawn == {"x": [0.5, -1.0], "y": [2.0]}
    assert axes.get_title() == "extremal point at T=2"
    assert axes.get_xlabel() == "direction: u -> 0"


def test_what_has_no_constant_is_refused():
    with pytest.raises(BadArgument, match="there is no constant"):
        sharpen(equality(x=Box())(lambda x: (x, x)))
