"""The manifest of arda2026."""

from ...core import Paper

_HERE = "headcount.papers.arda2026"

paper = Paper(
    key="arda2026",
    title="Finite-Time Analysis of Gradient Descent for Shallow Transformers",
    citation="Arda, Cayci and Eryilmaz (2026)",
    models={
        "arda2026": f"{_HERE}.models:POOLED",
        "indrnn": f"{_HERE}.models:INDRNN",
    },
    setting=f"{_HERE}.setting:Setting",
    claims=tuple(
        f"{_HERE}.{module}"
        for module in (
            "facts",
            "fact_4",
            "lemma_1",
            "lemma_2",
            "lemma_3",
            "lemma_4",
            "inner_product",
            "lemma_5",
            "subgaussian",
            "lemma_6",
            "drift_terms",
            "gradient_sizes",
            "realised",
            "theorem_1",
            "proposition_1",
            "proposition_2",
            "informal",
        )
    ),
    figures=tuple(
        f"{_HERE}.figures.{figure}" for figure in ("fig1", "fig2", "steps", "tokens", "reference")
    ),
    subject=f"{_HERE}.subject:subject",
    slack=f"{_HERE}.subject:slack",
    leading=("arda2026/drift", "arda2026/mean-loss"),
    errata=f"{_HERE}.errata",
    certificates=_HERE,
)
