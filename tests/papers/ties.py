"""The setting of an instance, paper by paper: what `bound(setting)` needs to be asked about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from headcount.core import float64, papers
from headcount.papers.deora2024 import quantities as model
from headcount.papers.wu2023.quantities import norms, sizes
from headcount.papers.wu2023.setting import Start
from headcount.theory.domain import arrays_of


def arda2026(i: Any) -> Any:
    """With the realised B_U."""
    fields = arrays_of(i)
    heads = fields.get("U0", fields.get("U", np.zeros((1, 1))))
    m = len(fields["c0"]) if "c0" in fields else 2 * len(np.atleast_2d(heads))
    rho = tuple(map(float, fields.get("rho", np.zeros(3))))
    longest = float(np.max(np.linalg.norm(np.atleast_2d(heads), axis=-1)))
    return papers["arda2026"].part("setting")(
        d=fields["X"].shape[-1] if "X" in fields else 1,
        m=m,
        n=len(fields["X"]) if fields.get("X", np.zeros(1)).ndim == 3 else 1,
        activation=fields.get("activation", "tanh"),
        rho=rho,
        nu=tuple(map(float, fields.get("nu", np.ones(3)))),
        delta=float(fields.get("delta", 0.05)),
        tau=int(fields.get("tau", 1)),
        eta=float(fields["eta"]) if "eta" in fields else None,
        B_U=longest + rho[1] / math.sqrt(m),
    )


def deora2024(i: Any) -> Any:
    """With the realised start and, where there is one, the target."""
    with float64():
        of_start = {"B_2": i.B_2, "B_Phi": i.B_Phi, "gamma": i.gamma} if hasattr(i, "vU") else {}
        of_target = {}
        if hasattr(i, "dU"):
            loss = model.loss(i, i.target)
            of_target = {"target_distance": i.D, "target_width": i.N, "target_loss": loss}
        numbers = {**of_start, **of_target, "R": i.R, "eta": i.eta, "L_0": model.loss(i, i.rows)}
        return papers["deora2024"].part("setting")(
            **{name: float(value) for name, value in numbers.items()},
            **{"T": i.T, "d": i.d, "K": i.K, "readout": i.readout},
            H=int(i.H),
            n=getattr(i, "m", len(i.y)),
        )


def wu2023(i: Any) -> Any:
    """With the start measured on the instance."""
    with float64():
        numbers = [sizes(i), norms(i.theta)]
        plain = [type(part)(*(float(value) for value in part)) for part in numbers]
        return papers["wu2023"].part("setting")(
            n=len(i.y),
            T=i.X.shape[1],
            d=i.X.shape[2],
            d_m=len(i.w_O),
            problem="",
            tau=i.steps,
            gamma=float(i.gamma),
            measured=Start(*plain, float(i.alpha), float(i.start_loss)),
        )


SETTINGS: Mapping[str, Callable[[Any], Any]] = {
    "arda2026": arda2026,
    "deora2024": deora2024,
    "wu2023": wu2023,
}
