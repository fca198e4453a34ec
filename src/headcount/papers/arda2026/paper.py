"""The manifest of arda2026."""

from ...core import Choice, Paper

_HERE = "headcount.papers.arda2026"

_TEACHER, _AR = ("transport-teacher",), ("ar",)

CHOICES = (
    Choice(
        "query q_X",
        "last: the last token, as in all of the paper's width experiments",
        "seeded:K: a fixed random unit vector; the paper also allows a constant CLS vector",
        ("arda2026",),
        "query",
    ),
    Choice(
        "steps that a minimum or mean covers",
        "s = 0..tau-1, as Theorem 1 says",
        "s <= tau, as (45) prints",
        ("arda2026", "indrnn"),
    ),
    Choice(
        "step size",
        "1/sqrt(tau), the paper's",
        "released code: 1.75/sqrt(tau) for the teacher's labels, 0.05 for AR(L)",
        ("arda2026", "indrnn"),
        "eta",
    ),
    Choice(
        "projection radii",
        "(3, 3, 3) for arda2026, as in Sec. 6.1; none for indrnn, as in Sec. 6.2",
        "the released code does not project when a radius is missing or zero",
        ("projgd", "projsgd"),
        "rho",
    ),
    Choice(
        "odd width",
        "refused: pairs need an even m",
        "the released Transformer then starts unpaired, so that f is not 0 at the start",
        ("paired",),
    ),
    Choice(
        "gamma = |w| of the IndRNN at the start",
        "1.0: the paper gives none, and Proposition 2 changes there",
        "1.5 in the released code (0.5 and 1.5 are options of fig2)",
        ("paired-indrnn",),
        "gamma",
    ),
    Choice(
        "clipping of tokens",
        "each token N(0, I) is moved radially into the unit ball",
        "none: the same in the released code",
        ("transport-teacher", "gaussian-tokens"),
    ),
    Choice(
        "attention of the teacher",
        "full: softmax(X W q)",
        "diagonal: the released code uses diag(W) alone",
        _TEACHER,
        "attention",
    ),
    Choice(
        "weights of the teacher's anchors",
        "uniform: 1/R",
        "signed: N(0, 1) divided by the sum of absolute values (released code)",
        _TEACHER,
        "weights",
    ),
    Choice(
        "where anchors come from",
        "law: drawn from the input law apart from the data",
        "data: random rows of the training data (released code)",
        _TEACHER,
        "anchors_from",
    ),
    Choice(
        "number of anchors R",
        "16, as in the released code; the paper gives none",
        "any",
        _TEACHER,
        "anchors",
    ),
    Choice(
        "W branch of the teacher",
        "clipped: clip_F(phi_w, nu_w), as printed, though c and U branches are scaled by nu",
        "scaled: clip_F(nu_w phi_w / sigma_1, nu_w)",
        _TEACHER,
        "w_branch",
    ),
    Choice(
        "expectation over heads in the labels",
        "8192 heads, the paper's pool",
        "8196 heads in one script of the released code",
        _TEACHER,
        "pool",
    ),
    Choice(
        "AR tokens",
        "true: clipped to the unit ball, as Sec. 3.1 asks",
        "false: as they are, norms 2.8 to 3.9 (released code)",
        _AR,
        "normalise_tokens",
    ),
    Choice(
        "AR windows",
        "disjoint",
        "overlapping: one window per step (released code)",
        _AR,
        "windows",
    ),
    Choice(
        "AR validation",
        "separate: windows of another series",
        "random: a random fifth of all windows, which overlap those for training (released code)",
        _AR,
        "split",
    ),
    Choice(
        "AR labels",
        "train: standardised with mean and deviation of the training labels",
        "train+val: of both (released code); none",
        _AR,
        "standardise_labels",
    ),
)

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
            "indrnn",
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
    errata=f"{_HERE}.errata",
    certificates=_HERE,
    facts=(f"{_HERE}.scalar_facts",),
    choices=CHOICES,
)
