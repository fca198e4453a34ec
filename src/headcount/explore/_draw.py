"""Pictures of the explorer: curves against the width, a run, attention, and the spectrum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from ..core._rounding import round_up
from ..kernels import ntk
from ..theory._promise import Promised
from ..training import build_problem
from ..training._recorders import attention_rows
from ._curves import LOSS, Curve, Ran, curves, groups, same_but_width, spanned, state
from ._plot import Axis, Plot, swatch
from ._sizes import Sizes, config_of, loss_at_zero, runnable

WORDS = {
    "says": "says something",
    "vacuous": "vacuous",
    "fails": "a hypothesis fails",
}
"""States of a promise, for people."""
_SHOWN_CELLS = 20
"""An attention map shows so many queries and tokens at most."""


def draw_curves(sizes: Sizes, group: str, runs: Sequence[Ran] = ()) -> str:
    """Every bound of a group against the width, the point of the sliders, and the runs so far."""
    found = curves(sizes, group)
    about_loss = groups(sizes.paper)[group][0][0].quantity == LOSS
    dots = [run for run in runs if run.sizes.paper == sizes.paper and about_loss]
    zero = loss_at_zero(sizes) if about_loss else None
    heights = [*spanned(found), *(run.smallest for run in dots), *([zero] if zero else [])]
    x = Axis.over("width", [*found[0].widths, sizes.width, *(run.sizes.width for run in dots)])
    plot = Plot(f"Bounds of {group} against the width", x, Axis.over(escape(group), heights))
    if zero:
        plot.shade_above(zero, f"loss at zero: {zero:.3g}")
    plot.here(sizes.width)
    # What promises nothing first: where curves coincide, the one that speaks is on top.
    for colour, curve in sorted(_coloured(found), key=lambda pair: state(pair[1].here) != "fails"):
        for kind, points in curve.pieces():
            plot.line(points, colour, f"{kind} {_form(curve)}")
        if math.isfinite(curve.here.bound) and curve.here.bound > 0:
            at = min(sizes.width, curve.widths[-1])
            plot.mark(at, curve.here.bound, colour, f"at {state(curve.here)}", curve.called)
    for run in dots:
        kind = "ran" if same_but_width(run.sizes, runnable(sizes)) else "ran other"
        plot.mark(run.sizes.width, run.smallest, 6, kind, ran_text(run))
    return plot.html + _key(found, dots, sizes)


def _coloured(found: Sequence[Curve]) -> list[tuple[int, Curve]]:
    """A colour for the claims of a curve; its forms share it."""
    names = list(dict.fromkeys(curve.claims[0] for curve in found))
    return [(names.index(curve.claims[0]), curve) for curve in found]


def _form(curve: Curve) -> str:
    return "sharp" if curve.variant == "sharp" else "printed"


def _key(found: Sequence[Curve], dots: Sequence[Ran], sizes: Sizes) -> str:
    items = "".join(
        f"<li>{swatch(colour, f'says {_form(curve)}')}<span>{escape(curve.called)}</span>"
        f"<strong>{round_up(curve.here.bound)}</strong>"
        f"<em class='{state(curve.here)}'>{WORDS[state(curve.here)]}</em></li>"
        for colour, curve in _coloured(found)
    )
    at = min(sizes.width, found[0].widths[-1])
    limit = "; wider starts are not drawn" if at < sizes.width else ""
    note = (
        f"Values at width {at:,}{limit}. Thick: says something. Thin: vacuous. "
        "Dotted: a hypothesis fails, nothing is promised."
    )
    if dots:
        note += " Dots: the smallest loss of a run, hollow where other sizes than the width differ."
    return f"<ul class='key'>{items}</ul><p class='soft'>{note}</p>"


def ran_text(run: Ran) -> str:
    """A run in one line."""
    sizes = run.sizes
    return (
        f"width {sizes.width}, n = {sizes.n}, T = {sizes.T}, d = {sizes.d}, {sizes.steps} steps. "
        f"{run.told}"
    )


def draw_loss(sizes: Sizes, losses: Sequence[float], rows: Sequence[Promised]) -> str:
    """The losses of a run so far at `sizes`, beside the bounds of a loss that promise something."""
    from ..theory import claims

    bounds = [row for row in rows if claims[row.claim].quantity == LOSS and row.value < math.inf]
    seen = [*losses, *(row.bound for row in bounds)]
    drawn = [(k, loss) for k, loss in enumerate(losses) if math.isfinite(loss)]
    x = Axis("step", 0, max(len(losses) - 1, 1), log=False)
    last = f"{losses[-1]:.3g}" if losses else "none yet"
    words = f"Loss against steps at width {sizes.width}, now {last}, beside the theorems' bounds"
    plot = Plot(words, x, Axis.over("loss", seen))
    for place, row in enumerate(bounds, start=1):
        plot.level(row.bound, place, "vacuous" if row.vacuous else "says")
    plot.line(drawn, 0, "says")
    key = "".join(
        f"<li>{swatch(place, state(row))}<span>{escape(row.claim.split('/')[1])} ({row.variant})"
        f"</span><strong>{round_up(row.bound)}</strong><em>{WORDS[state(row)]}</em></li>"
        for place, row in enumerate(bounds, start=1)
    )
    first = f"<li>{swatch(0, 'says')}<span>training loss at width {sizes.width:,}</span></li>"
    return f"{plot.html}<ul class='key'>{first}{key}</ul>"


def draw_model(sizes: Sizes, params: Any = None) -> str:
    """Attention of the first head on the first sample, and the eigenvalues of the kernel.

    Of `runnable(sizes)`, at the start where no parameters are given.
    """
    ran = runnable(sizes)
    built = build_problem(config_of(ran))
    first = type(built.initial)(*(block[0] for block in built.initial))
    now = first if params is None else params
    x = np.asarray(built.x).reshape(-1, *np.shape(built.x)[-2:])[: ran.n]
    attention = np.atleast_2d(np.asarray(attention_rows(built.model)(now, x[0]))[0])
    values = np.linalg.eigvalsh(ntk(built.model, now, x).total)[::-1]
    when = "at the start" if params is None else "after training"
    title = f"<h3>At width {ran.width:,}, {when}</h3>"
    return f"{title}<div class='pair'>{_map(attention)}{_spectrum(values)}</div>"


def _map(attention: np.ndarray) -> str:
    """Weights as a grid of cells: queries down, tokens across; one row has no scale of queries."""
    shown = attention[:_SHOWN_CELLS, :_SHOWN_CELLS]
    largest = float(shown.max())
    tokens = "".join(f"<b>{t}</b>" for t in range(1, shown.shape[1] + 1))
    body = ""
    for query, row in enumerate(shown, start=1):
        name = str(query) if len(shown) > 1 else "query"
        cells = "".join(
            f"<i style='--share:{100 * value / largest:.1f}%' title='{value:.3g}'></i>"
            for value in row
        )
        body += f"<b>{name}</b>{cells}"
    words = f"Attention of head 1 on sample 1, weights up to {largest:.3g}"
    across = "token" if len(shown) == 1 else "token (across), query (down)"
    return (
        f"<div class='map' role='img' aria-label='{words}'><p>attention, head 1, sample 1; "
        f"0 <span class='scale'></span> {largest:.2g}</p>"
        f"<div class='cells' style='--columns:{shown.shape[1]}'>{body}<b></b>{tokens}</div>"
        f"<p class='soft'>{across}</p></div>"
    )


def _spectrum(values: np.ndarray) -> str:
    """Eigenvalues by rank; those that rounding made are counted, not drawn."""
    noise = len(values) * np.finfo(np.float64).eps * max(float(values[0]), 0.0)
    real = [float(value) for value in values if value > noise]
    span = f"from {real[-1]:.2g} to {real[0]:.2g}" if real else "none above rounding"
    x = Axis("rank", 1, max(len(values), 2), log=False)
    plot = Plot(f"Eigenvalues of the tangent kernel {span}", x, Axis.over("eigenvalue", real))
    for rank, value in enumerate(real, start=1):
        plot.mark(rank, value, 0, "small", f"{value:.3g}")
    lost = len(values) - len(real)
    note = f"; {lost} below rounding are not drawn" if lost else ""
    return f"<div><p>tangent kernel, {len(values)} eigenvalues{note}</p>{plot.html}</div>"
