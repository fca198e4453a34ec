"""The manifest of wu2023."""

from ...core import Paper

_HERE = "headcount.papers.wu2023"

paper = Paper(
    key="wu2023",
    title="On the Convergence of Encoder-only Shallow Transformers",
    citation="Wu, Liu, Chrysos and Cevher (2023)",
    models={
        "wu2023": f"{_HERE}.models:ENCODER",
        "two-layer-relu": f"{_HERE}.models:TWO_LAYER",
    },
    errata=f"{_HERE}.errata",
)
