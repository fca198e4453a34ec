"""The manifest of arda2026."""

from ...core import Paper

_HERE = "headcount.papers.arda2026"

paper = Paper(
    key="arda2026",
    title="Finite-Time Analysis of Gradient Descent for Shallow Transformers",
    citation="Arda, Cayci and Eryilmaz (2026)",
    models={
        "arda2026": f"{_HERE}.recipes:POOLED",
        "indrnn": f"{_HERE}.recipes:INDRNN",
    },
    brings=tuple(
        f"{_HERE}.{module}"
        for module in (
            "model",
            "starts",
            "teacher",
            "ar",
            "fast",
            "fast_indrnn",
            "fast_positional",
            "kernel",
            "limit",
        )
    ),
    setting=f"{_HERE}.setting:Setting",
    claims=tuple(
        f"{_HERE}.claims.{module}"
        for module in (
            "facts_1_to_3",
            "fact_4",
            "lemma_1",
            "lemma_2",
            "lemma_3",
            "lemma_4",
            "inner_product",
            "lemma_5",
            "lemma_5_steps",
            "lemma_6",
            "eq_23",
            "drift_terms",
            "gradient_sizes",
            "drift",
            "theorem_1",
            "proposition_1",
            "proposition_2",
            "rates",
        )
    ),
    figures=tuple(
        f"{_HERE}.figures.{figure}"
        for figure in (
            "fig1",
            "fig2",
            "steps",
            "iterates",
            "projsgd",
            "samples",
            "tokens",
            "reference",
        )
    ),
    subject=f"{_HERE}.audit:subject",
    slack=f"{_HERE}.audit:slack",
    leading=("arda2026/drift", "arda2026/mean-loss"),
    errata=f"{_HERE}:notes.toml",
    certificates=_HERE,
    facts=(f"{_HERE}.scalar_facts",),
    choices=f"{_HERE}:choices.toml",
    quotes=f"{_HERE}:quotes.toml",
)
