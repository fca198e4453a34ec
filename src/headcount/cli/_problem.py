"""The flags that say which model, start and data `headcount train` and `headcount ntk` mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

Repeated = Annotated[list[str] | None, Parameter(negative=())]


@Parameter(name="*")
@dataclass(frozen=True)
class ProblemFlags:
    """A model at its initialisation and a data model; None leaves the configuration's value.

    Parameters
    ----------
    model
        See `headcount list`; default arda2026.
    width
        Heads m or H, or hidden features d_m.
    activation
        Of arda2026 and indrnn.
    query
        Of arda2026: last, or seeded:K.
    readout
        Of deora2024: full, pooling or last.
    scaling
        Softmax scale of wu2023: realistic (d_m^-1/2) or ntk (d_m^-1).
    pooling
        Of wu2023: mean or sum.
    residual
        The residual variant of wu2023.
    init
        Initialisation; default: the paper's own.
    gamma
        |w| of the IndRNN at the start.
    n_init
        Fresh samples of the two-phase initialisation.
    data
        Data model; default transport-teacher.
    n
        Samples to train on, or of the kernel.
    data_option
        An option of the data model, as name=value; may be repeated.
    """

    model: str | None = None
    width: int | None = None
    activation: str | None = None
    query: str | None = None
    readout: str | None = None
    scaling: str | None = None
    pooling: str | None = None
    residual: bool | None = None
    init: str | None = None
    gamma: float | None = None
    n_init: int | None = None
    data: str | None = None
    n: int | None = None
    data_option: Repeated = None


NO_FLAGS = ProblemFlags()
"""Everything as the configuration has it."""
