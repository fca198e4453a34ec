"""The manifest of deora2024."""

from ...core import Paper

_HERE = "headcount.papers.deora2024"

paper = Paper(
    key="deora2024",
    title="On the Optimization and Generalization of Multi-head Attention",
    citation="Deora, Ghaderi, Taheri and Thrampoulidis (2024)",
    models={
        "deora2024": f"{_HERE}.recipes:HEADS",
        "deora2024-groups": f"{_HERE}.recipes:GROUPS",
        "deora2024-linear": f"{_HERE}.recipes:LINEAR",
    },
    claims=tuple(
        f"{_HERE}.claims.{module}"
        for module in (
            "lemma_1",
            "proposition_1",
            "corollary_1",
            "proposition_4",
            "lemmas_7_to_10",
            "theorem_3",
            "lemma_11",
            "proposition_2",
            "lemma_12",
            "lemma_16",
            "proposition_3",
            "eq_12",
            "lemma_2",
            "corollary_5",
            "theorem_4",
        )
    ),
    figures=tuple(
        f"{_HERE}.figures.{figure}"
        for figure in (
            "fig2",
            "fig3",
            "fig4",
            "fig5",
            "fig6",
            "text_kernel",
            "one_head",
            "random_start",
            "samples",
            "stability",
            "required_heads",
            "noise",
        )
    ),
    brings=tuple(
        f"{_HERE}.{module}" for module in ("model", "starts", "dm1", "dm2", "fast", "kernel")
    ),
    setting=f"{_HERE}.setting:Setting",
    subject=f"{_HERE}.audit:subject",
    slack=f"{_HERE}.audit:slack",
    reduction=f"{_HERE}.reduction:one_head",
    leading=("deora2024/eq-70", "deora2024/corollary-1-1", "deora2024/corollary-1-3"),
    errata=f"{_HERE}:notes.toml",
    certificates=_HERE,
    quotes=f"{_HERE}:quotes.toml",
    facts=(f"{_HERE}.scalar_facts",),
    choices=f"{_HERE}:choices.toml",
)
