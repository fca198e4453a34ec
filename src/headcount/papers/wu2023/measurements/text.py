"""Assumption 3 on sentences [wu2023, Fig. 1]."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....lab import Context, Measurement
from .tails import QUANTILES, TAIL_OUTPUTS, tail_of


def measure_text(config: dict[str, Any], context: Context) -> dict[str, Any]:
    """The tail over the pairs of `sentences` random sentences, each divided by |X|_F."""
    import jax

    from ....core import BadArgument, stream
    from ....data import embedded, load_sentences, random_table, read_vectors, vectors_file

    sentences = load_sentences(config["text"], config["shortest"])
    if config["vectors"] == "random":
        table = random_table(sentences, config["d"])
    else:
        path, checksum = vectors_file()
        if checksum != config["vectors"]:
            problem = f"{path} has changed: sha256 {checksum}, expected {config['vectors']}"
            raise BadArgument("vectors", path.name, problem, fix="plan the figure again")
        table = read_vectors(path)
    context.progress(1, 2)
    order = np.asarray(
        jax.random.permutation(stream(config["seed"], "wu2023", "sentences"), len(sentences))
    )
    chosen = [sentences[i] for i in order[: config["sentences"]]]
    x = embedded(chosen, table, config["longest"])
    lengths = np.sum(np.any(x != 0, axis=2), axis=1)
    return {
        "tail_point": np.arange(QUANTILES),
        **tail_of(x),
        "used_sentences": len(x),
        "mean_length": np.mean(lengths),
    }


text_tail = Measurement(
    name="wu2023-text-tail",
    version=1,
    function=measure_text,
    outputs={
        "tail_point": ("tail_point",),
        **TAIL_OUTPUTS,
        "used_sentences": (),
        "mean_length": (),
    },
    estimate=lambda config: (3.0, 3e8),
    may_be_nan=("tail_exponent",),
)
