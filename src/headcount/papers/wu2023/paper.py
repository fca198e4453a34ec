"""The manifest of wu2023."""

from ...core import Paper

_HERE = "headcount.papers.wu2023"

FIGURES = (*(f"fig{number}" for number in range(1, 10)), "hessian", "limit", "scaling")

paper = Paper(
    key="wu2023",
    title="On the Convergence of Encoder-only Shallow Transformers",
    citation="Wu, Liu, Chrysos and Cevher (2023)",
    models={
        "wu2023": f"{_HERE}.recipes:ENCODER",
        "two-layer-relu": f"{_HERE}.recipes:TWO_LAYER",
    },
    claims=tuple(
        f"{_HERE}.{module}"
        for module in (
            "claims.assumptions",
            "claims.proposition_1",
            "claims.relu_kernels",
            "claims.subexponential",
            "claims.random_weights",
            "claims.softmax",
            "claims.drift",
            "claims.gradients",
            "claims.lemma_14",
            "claims.lemma_15",
            "claims.first_token",
            "claims.separations",
            "claims.theorem_3",
            "claims.corollary_1",
            "claims.residual",
            "claims.rates",
        )
    ),
    brings=tuple(
        f"{_HERE}.{module}" for module in ("model", "starts", "data", "fast", "kernel", "limit")
    ),
    setting=f"{_HERE}.setting:Setting",
    subject=f"{_HERE}.audit:subject",
    slack=f"{_HERE}.audit:slack",
    leading=("wu2023/proposition-1", "wu2023/proposition-1-alpha"),
    errata=f"{_HERE}:notes.toml",
    certificates=_HERE,
    facts=(f"{_HERE}.scalar_facts",),
    choices=f"{_HERE}:choices.toml",
    quotes=f"{_HERE}:quotes.toml",
    figures=tuple(f"{_HERE}.figures.{name}" for name in FIGURES),
)
