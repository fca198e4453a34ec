"""Numbers of earlier runs to compare with: facts, not targets.

RELEASED: the authors' released code (https://github.com/enesarda22/nonasymptotic-transformer) run
unmodified but for one `.view` -> `.reshape`, CPU, float32, sizes reduced as noted.
FAITHFUL: an independent NumPy/torch re-run that follows the text of the paper, float64, n = 300.
Slopes are log-log slopes of the medians over seeds, with a 95 % bootstrap interval over seeds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReferenceSlope:
    """Medians over seeds at each width, and their fitted log-log slope with its interval."""

    source: str
    widths: tuple[int, ...]
    medians: tuple[float, ...]
    slope: float
    low: float
    high: float
    seeds: int


_WIDTHS = (8, 16, 64, 128, 256)

RELEASED: dict[str, ReferenceSlope] = {
    "linearisation_mean": ReferenceSlope(
        "the released code (n = 1000)",
        _WIDTHS, (0.362274, 0.247297, 0.117932, 0.088099, 0.061469), -0.510, -0.533, -0.477, 10,
    ),
    "approximation_sup": ReferenceSlope(
        "the released code (n = 500)",
        _WIDTHS, (0.079064, 0.041449, 0.025348, 0.021484, 0.012357), -0.478, -0.547, -0.406, 10,
    ),
    # Divided by the loss at the start, mean y^2: teachers differ by a factor of four in it.
    "relative_min_loss": ReferenceSlope(
        "the released code (n = 2000, 1000 steps)",
        (8, 16, 32), (0.259, 0.207, 0.135), -0.47, -0.63, -0.24, 2,
    ),
}  # fmt: skip

FAITHFUL: dict[str, ReferenceSlope] = {
    "linearisation_sup": ReferenceSlope(
        "an independent re-run of the text (n = 300)",
        _WIDTHS, (1.26041, 0.907782, 0.411818, 0.285618, 0.205089), -0.533, -0.563, -0.497, 10,
    ),
    "linearisation_mean": ReferenceSlope(
        "an independent re-run of the text (n = 300)",
        _WIDTHS, (0.373107, 0.283677, 0.131982, 0.0926, 0.064913), -0.514, -0.533, -0.489, 10,
    ),
    "second_order_sup": ReferenceSlope(
        "an independent re-run of the text (n = 300)",
        _WIDTHS, (0.093297, 0.053346, 0.011914, 0.005989, 0.003044), -1.006, -1.056, -0.943, 10,
    ),
    "approximation_sup": ReferenceSlope(
        "an independent re-run of the text (n = 300)",
        _WIDTHS, (0.128441, 0.096026, 0.048513, 0.043603, 0.030183), -0.412, -0.511, -0.299, 10,
    ),
}  # fmt: skip

VALIDATION = {
    ("Transformer", 4): 0.632,
    ("IndRNN", 4): 0.410,
    ("Transformer", 16): 0.624,
    ("IndRNN", 16): 0.726,
}
"""Minimum validation loss of the released comparison by (model, L): n = 5000, m = 64, 500 steps of
0.05, raw tokens; means of two seeds."""
