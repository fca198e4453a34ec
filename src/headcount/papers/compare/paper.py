"""The manifest of what no single paper says: the papers beside each other."""

from ...core import Paper

_HERE = "headcount.papers.compare"

paper = Paper(
    key="compare",
    title="One question, several answers: the papers beside each other",
    citation="Headcount",
    figures=(f"{_HERE}.figures.width",),
)
