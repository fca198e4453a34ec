"""The manifest of deora2024."""

from ...core import Paper

_HERE = "headcount.papers.deora2024"

paper = Paper(
    key="deora2024",
    title="On the Optimization and Generalization of Multi-head Attention",
    citation="Deora, Ghaderi, Taheri and Thrampoulidis (2024)",
    models={
        "deora2024": f"{_HERE}.models:HEADS",
        "deora2024-groups": f"{_HERE}.models:GROUPS",
        "deora2024-linear": f"{_HERE}.models:LINEAR",
    },
    errata=f"{_HERE}.errata",
)
