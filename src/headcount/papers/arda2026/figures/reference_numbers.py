"""Numbers of earlier runs to compare with: facts, not targets.

RELEASED: the authors' released code (https://github.com/enesarda22/nonasymptotic-transformer) run
unmodified but for one `.view` -> `.reshape`, CPU, float32, sizes reduced as noted.
FAITHFUL: an independent NumPy/torch re-run that follows the text of the paper, float64, n = 300.
Levels are geometric means over seeds; slopes are log-log slopes of the medians over seeds, with a
95 % bootstrap interval over seeds.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class ReferenceSlope:
    """Levels at each width, and the fitted log-log slope with its interval.

    `log_error` is the standard error over seeds of the mean over widths of the log level.
    """

    source: str
    widths: tuple[int, ...]
    levels: tuple[float, ...]
    log_error: float
    slope: float
    low: float
    high: float
    seeds: int

    @property
    def spread(self) -> float:
        """The factor up and down within which the level lies with 95 %, by Student's law."""
        from scipy import stats

        return math.exp(stats.t.ppf(0.975, self.seeds - 1) * self.log_error)

    def named(self, data: xr.Dataset) -> str:
        """The source, with its sizes where the figure that it stands beside has them too."""
        small = json.loads(data.attrs["plan"])["scale"] == "smoke"
        return self.source.split(" (")[0] if small else self.source


WORDS = {
    "linearisation_sup": "largest linearisation error",
    "linearisation_mean": "mean linearisation error",
    "second_order_sup": "second-order term",
    "approximation_sup": "approximation error",
    "relative_min_loss": "minimum loss over mean y^2",
}
"""What the quantities are called in claims."""
_WIDTHS = (8, 16, 64, 128, 256)

RELEASED: dict[str, ReferenceSlope] = {
    "linearisation_mean": ReferenceSlope(
        "the released code (n = 1000)",
        _WIDTHS, (0.355493, 0.231991, 0.118711, 0.085588, 0.060151), 0.0147,
        -0.510, -0.533, -0.477, 10,
    ),
    "approximation_sup": ReferenceSlope(
        "the released code (n = 500)",
        _WIDTHS, (0.072910, 0.045024, 0.025292, 0.021486, 0.012941), 0.0488,
        -0.478, -0.547, -0.406, 10,
    ),
    # Divided by the loss at the start, mean y^2: teachers differ by a factor of four in it.
    "relative_min_loss": ReferenceSlope(
        "the released code (n = 2000, 1000 steps)",
        (8, 16, 32), (0.247, 0.200, 0.135), 0.208,
        -0.47, -0.63, -0.24, 2,
    ),
}  # fmt: skip

_of_the_text = partial(
    ReferenceSlope, "an independent re-run of the text (n = 300)", _WIDTHS, seeds=10
)
FAITHFUL: dict[str, ReferenceSlope] = {
    "linearisation_sup": _of_the_text(
        (1.279605, 0.879370, 0.406148, 0.284944, 0.203339), 0.0294, -0.533, -0.563, -0.497
    ),
    "linearisation_mean": _of_the_text(
        (0.376176, 0.271001, 0.130519, 0.091030, 0.063963), 0.0276, -0.514, -0.533, -0.489
    ),
    "second_order_sup": _of_the_text(
        (0.096825, 0.050654, 0.011875, 0.005977, 0.003170), 0.0551, -1.006, -1.056, -0.943
    ),
    "approximation_sup": _of_the_text(
        (0.121085, 0.103130, 0.053465, 0.043488, 0.029407), 0.0784, -0.412, -0.511, -0.299
    ),
}

VALIDATION: dict[tuple[str, int], tuple[float, float]] = {
    ("Transformer", 4): (0.654, 0.610),
    ("IndRNN", 4): (0.448, 0.371),
    ("Transformer", 16): (0.680, 0.569),
    ("IndRNN", 16): (0.752, 0.700),
}
"""Minimum validation loss of the released comparison by (model, L): n = 5000, m = 64, 500 steps of
0.05, raw tokens; two seeds."""

LOSS_GRADIENT: dict[tuple[str, int], tuple[float, float]] = {
    ("Transformer", 4): (0.096, 0.068),
    ("IndRNN", 4): (0.170, 0.200),
    ("Transformer", 16): (0.142, 0.167),
    ("IndRNN", 16): (1.65, 1.77),
}
"""Maximum over training of the loss gradient's norm in the same runs."""
