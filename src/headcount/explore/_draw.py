"""Pictures of the explorer: the loss beside the bounds, attention, and the kernel's spectrum."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..kernels import ntk
from ..lab import COLOURS
from ..theory._promise import Promised
from ..training import build_problem
from ..training._recorders import attention_rows
from ._sizes import WIDEST_RUN, Sizes, config_of


def _svg(canvas: Any, words: str) -> str:
    """The figure as inline SVG with a description."""
    buffer = io.StringIO()
    canvas.savefig(buffer, format="svg", metadata={"Date": None})
    drawn = buffer.getvalue().partition("<svg")[2]
    return f'<div role="img" aria-label="{words}" style="background:#fff"><svg{drawn}</div>'


def _canvas(columns: int) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(4.2 * columns, 3.0), layout="constrained")


def draw_loss(steps: Sequence[int], losses: Sequence[float], rows: Sequence[Promised]) -> str:
    """The loss so far, and every bound of a loss that says something about it."""
    from ..theory import claims

    canvas = _canvas(1)
    ax = canvas.subplots()
    ax.plot(steps, losses, color=COLOURS[0], label="training loss")
    bounds = [
        row for row in rows
        if claims[row.claim].quantity == "loss" and row.value < math.inf
    ]  # fmt: skip
    for place, row in enumerate(bounds[: len(COLOURS) - 1], start=1):
        vacuous = ", vacuous" if row.vacuous else ""
        label = f"{row.claim.split('/')[1]} ({row.variant}{vacuous})"
        ax.axhline(row.bound, color=COLOURS[place], linestyle="--", label=label)
    ax.set(yscale="log", xlabel="step", ylabel="loss")
    canvas.legend(loc="outside lower center", ncols=2, fontsize=6, frameon=False)
    last = f"{losses[-1]:.3g}" if losses else "none yet"
    return _svg(canvas, f"Loss against steps, now {last}, beside the bounds of the theorems")


def draw_model(sizes: Sizes, params: Any = None) -> str:
    """Attention of the first head on the first sample, and the eigenvalues of the kernel."""
    config = config_of(sizes, min(sizes.width, WIDEST_RUN))
    built = build_problem(config)
    first = type(built.initial)(*(block[0] for block in built.initial))
    now = first if params is None else params
    x = np.asarray(built.x).reshape(-1, *np.shape(built.x)[-2:])[: config.n]
    attention = np.asarray(attention_rows(built.model)(now, x[0]))[0]
    values = np.linalg.eigvalsh(ntk(built.model, now, x).total)[::-1]
    canvas = _canvas(2)
    left, right = canvas.subplots(1, 2)
    image = left.imshow(np.atleast_2d(attention), vmin=0, cmap="viridis")
    canvas.colorbar(image, ax=left, shrink=0.8)
    left.set(xlabel="token", ylabel="query", title="attention, head 1, sample 1")
    right.plot(np.arange(1, len(values) + 1), np.maximum(values, 1e-18), ".-", color=COLOURS[0])
    right.set(yscale="log", xlabel="rank", ylabel="eigenvalue", title="tangent kernel")
    span = f"from {values[-1]:.2g} to {values[0]:.2g}"
    return _svg(canvas, f"Attention map, and eigenvalues of the tangent kernel {span}")
