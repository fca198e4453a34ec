"""The models of wu2023: the encoder, and the two-layer network on vectors."""

from ...models import Encoder, TwoLayerReLU, output_scale, softmax_scale
from ...training import Recipe


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
    tau0, tau1 = softmax_scale(scaling, width), output_scale(init, width)
    return Encoder(d, width, tau0, tau1, pooling, residual)


def _two_layer(T: int, d: int, width: int, *, init: str) -> TwoLayerReLU:
    return TwoLayerReLU(T * d, width, output_scale(init, width))


ENCODER = Recipe(_encoder, "lecun", "half-squared-sum")
TWO_LAYER = Recipe(_two_layer, "lecun", "half-squared-sum")
