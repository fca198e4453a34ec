"""A binary classifier as one number, with a block of parameters per layer of attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float, Num

from ...core import Array
from ._encoder import TextClassifier, TextParams

REST = "rest"
"""The block with everything that is neither attention nor read-out."""


@dataclass(frozen=True)
class LayerwiseMargin:
    """f_1(x) - f_0(x), the logit of the second class, on the blocks of `split`.

    Tangent kernels are sums over blocks: with one block per layer they can be looked at, and held
    in memory, layer by layer.
    """

    classifier: TextClassifier

    def split(self, params: TextParams) -> dict[str, Any]:
        """Blocks "readout", "attention 1" to "attention L", and the rest."""
        layers = {f"attention {i}": layer for i, layer in enumerate(params.attention, 1)}
        rest = (params.embedding, params.feedforward)
        return {"readout": params.readout, **layers, REST: rest}

    def __call__(self, blocks: dict[str, Any], x: Num[Array, "T 2"]) -> Float[Array, ""]:
        """The difference of the two outputs."""
        layers = range(1, self.classifier.layers + 1)
        embedding, feedforward = blocks[REST]
        attention = tuple(blocks[f"attention {i}"] for i in layers)
        params = TextParams(embedding, attention, feedforward, blocks["readout"])
        f = self.classifier(params, x)
        return f[1] - f[0]
