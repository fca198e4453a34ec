"""Wu et al. (2023), On the Convergence of Encoder-only Shallow Transformers.

Its models, data laws, fast paths and kernels by name, and its claims: `wu2023.claims["..."]`.
"""

from typing import Any

from ...core._facade import facade

_find = facade(
    __name__,
    model="Encoder EncoderParams TwoLayerReLU TwoLayerParams output_scale softmax_scale",
    vit="BLOCKS VisionTransformer VisionParams Collapsed collapse vision_start",
    starts="lecun he ntk_normal",
    data="GaussianRegression VectorInput DigitPair encoder_assumptions pair_products tail_exponent",
    fast="wu2023_path wu2023_chunk",
    kernel="features_wu2023 prepare_wu2023",
    limit="limit_wu2023 arc_cosine",
    setting="Setting",
)


def __getattr__(name: str) -> Any:
    return _find(name)
