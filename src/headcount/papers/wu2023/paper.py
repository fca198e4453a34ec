"""The manifest of wu2023."""

from ...core import Choice, Paper

_HERE = "headcount.papers.wu2023"

_MODELS = ("wu2023", "two-layer-relu")

CHOICES = (
    Choice(
        "pooling over tokens",
        "mean, as the text says",
        "sum, as every formula of the appendix has it: tau_1 times d_s",
        ("wu2023",),
        "pooling",
    ),
    Choice(
        "loss",
        "half-squared-sum: (1/2)|f - y|^2 over all samples, Sec. 3.2",
        "mean-squared: under which the printed step size is stable",
        _MODELS,
        "loss",
    ),
    Choice(
        "step size gamma = 1 of Fig. 2",
        "1 on the mean squared error, which is 2/n on the paper's loss",
        "1 on the paper's loss: diverges within 8 steps at widths 10 to 1000, N = 100",
        _MODELS,
        "eta",
    ),
    Choice(
        "scale of the tokens",
        "scaled: entries N(0, 1/d), token norms near 1, as the remark after Assumption 1 allows",
        "raw: entries N(0, 1), as Sec. 5.1 says; gamma = 1 then diverges from width 100 on",
        ("gaussian-regression", "vector-input"),
        "tokens",
    ),
    Choice(
        "softmax scale tau_0",
        "realistic: d_m^(-1/2)",
        "ntk: d_m^(-1); independent of the initialisation",
        ("wu2023",),
        "scaling",
    ),
    Choice(
        "residual variant",
        "false; with true, X is padded with zeros to d_m >= d features",
        "printed only for d_m = d (App. C.7)",
        ("wu2023",),
        "residual",
    ),
    Choice(
        "Table 1",
        "its entries are variances",
        "none",
        ("lecun", "he", "ntk"),
    ),
)

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
            "proposition_1",
            "claims.features",
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
        f"{_HERE}.{module}"
        for module in ("model", "starts", "regression", "digit_pair", "fast", "kernel", "limit")
    ),
    setting=f"{_HERE}.setting:Setting",
    subject=f"{_HERE}.subject:subject",
    slack=f"{_HERE}.subject:slack",
    leading=("wu2023/proposition-1", "wu2023/proposition-1-alpha"),
    errata=f"{_HERE}.errata",
    certificates=_HERE,
    facts=(f"{_HERE}.scalar_facts",),
    choices=CHOICES,
    figures=tuple(f"{_HERE}.figures.{name}" for name in FIGURES),
)
