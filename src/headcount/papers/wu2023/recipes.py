"""The models of wu2023: the encoder, and the two-layer network on vectors."""

from ...core import check_choice
from ...training import Recipe
from .model import Encoder, TwoLayerReLU, output_scale, softmax_scale


def _encoder(
    T: int,
    d: int,
    width: int,
    *,
    init: str,
    scaling: str = "realistic",
    pooling: str = "mean",
    residual: bool = False,
) -> Encoder:
    check_choice("residual", residual, (True, False))
    tau0, tau1 = softmax_scale(scaling, width), output_scale(init, width)
    return Encoder(d, width, tau0, tau1, pooling, residual)


def _two_layer(T: int, d: int, width: int, *, init: str) -> TwoLayerReLU:
    return TwoLayerReLU(T * d, width, output_scale(init, width))


def _printed_step(steps: int, n: int, loss: str) -> float:
    """gamma = 1 as printed for Fig. 2, on the loss under which that step is stable.

    On the paper's loss (1/2) |f - y|^2, a sum over samples, descent with gamma = 1 blows up at
    once at every width. On the mean squared error it is stable, and that run is descent with
    step 2/n on the paper's loss.
    """
    return 1.0 if loss == "mean-squared" else 2 / n


ENCODER = Recipe(
    _encoder, "lecun", "half-squared-sum", "gaussian-regression", step_size=_printed_step
)
TWO_LAYER = Recipe(_two_layer, "lecun", "half-squared-sum", "vector-input", step_size=_printed_step)
