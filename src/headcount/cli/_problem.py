"""The flags that say which model, start and data `headcount train` and `headcount ntk` mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from ._flags import Repeated, Whole


@Parameter(name="*")
@dataclass(frozen=True)
class ProblemFlags:
    """A model at its initialisation and a data model; None leaves the configuration's value.

    Parameters
    ----------
    model
        See `headcount list`.
    width
        Heads, or hidden features.
    model_option
        An option of the model, as name=value; may be repeated.
    activation
        Model option: the activation function.
    query
        Model option: last (the last token), or seeded:K.
    readout
        Model option: full, pooling or last.
    scaling
        Model option: the softmax scale, realistic (width^-1/2) or ntk (width^-1).
    pooling
        Model option: mean or sum over tokens.
    residual
        Model option: with a residual connection.
    init
        Initialisation; default: the paper's own for this model.
    init_option
        An option of the initialisation, as name=value; may be repeated.
    gamma
        Initialisation option: the size of the recurrent weights.
    n_init
        Initialisation option: fresh samples that it looks at.
    data
        Data model; default: the paper's own for this model.
    n
        Samples to train on, or of the kernel.
    data_option
        An option of the data model, as name=value; may be repeated.
    d
        Data option: features per token.
    T
        Data option: tokens per sample.
    nu
        Data option: bounds of the teacher's transport map, as 3,3,3.
    pool
        Data option: heads of the teacher's pool.
    """

    model: str | None = None
    width: Whole | None = None
    model_option: Repeated = None
    activation: str | None = None
    query: str | None = None
    readout: str | None = None
    scaling: str | None = None
    pooling: str | None = None
    residual: bool | None = None
    init: str | None = None
    init_option: Repeated = None
    gamma: float | None = None
    n_init: Whole | None = None
    data: str | None = None
    n: Whole | None = None
    data_option: Repeated = None
    d: Whole | None = None
    T: Annotated[Whole | None, Parameter(name="--T")] = None
    nu: str | None = None
    pool: Whole | None = None


NO_FLAGS = ProblemFlags()
"""Everything as the configuration has it."""
