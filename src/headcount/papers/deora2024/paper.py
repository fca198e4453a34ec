"""The manifest of deora2024."""

from ...core import Choice, Paper

_HERE = "headcount.papers.deora2024"

_CLAIMS = (
    "lemma_1",
    "proposition_1",
    "corollary_1",
    "segments",
    "training",
    "theorem_3",
    "leave_one_out",
    "tokenised_mixture",
    "first_phase",
    "saturation",
    "far_target",
    "facts",
    "good_start",
    "generalisation",
)

_FIGURES = (
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

CHOICES = (
    Choice(
        "read-out U",
        "full: T x d, free",
        "pooling (U = 1_T u^T, printed transposed) or last (only row T)",
        ("deora2024", "deora2024-groups"),
        "readout",
    ),
    Choice(
        "signs alpha_h of the first phase",
        "Rademacher, +1 or -1: the reading under which gamma_* of (7) holds",
        "uniform on [-1, 1]: Lemma 13 is then false without noise",
        ("two-phase",),
    ),
    Choice(
        "samples of the first phase",
        "100 fresh ones, seen neither in training nor in validation",
        "any n_1; the paper's figures start from zero",
        ("two-phase",),
        "n_init",
    ),
    Choice(
        "step size",
        "1, as in Fig. 2",
        "proportional to sqrt(H) (Figs. 3 and 4); Adam 0.06 (Fig. 3)",
        ("deora2024", "deora2024-groups", "deora2024-linear"),
        "eta",
    ),
    Choice(
        "momentum and Adam",
        "heavy ball with 0.9; 0.9, 0.999 and 1e-8: the paper gives none",
        "any",
        ("momentum", "adam"),
    ),
    Choice(
        "positions of the relevant tokens",
        "random: a new set for each sample; the paper does not say",
        "fixed: the first zeta T tokens",
        ("dm1",),
        "relevant",
    ),
    Choice(
        "noise",
        "gaussian: N(0, 0.1^2 I), the paper's experiments",
        "bounded: as Assumption 3 asks, which Gaussian noise breaks",
        ("dm1",),
        "noise",
    ),
    Choice(
        "law of the planted head",
        "N(0, 1) entries, U* divided by its norm, so that 0.2 is the margin of a unit read-out",
        "the paper does not say",
        ("dm2",),
    ),
)

paper = Paper(
    key="deora2024",
    title="On the Optimization and Generalization of Multi-head Attention",
    citation="Deora, Ghaderi, Taheri and Thrampoulidis (2024)",
    models={
        "deora2024": f"{_HERE}.recipes:HEADS",
        "deora2024-groups": f"{_HERE}.recipes:GROUPS",
        "deora2024-linear": f"{_HERE}.recipes:LINEAR",
    },
    claims=tuple(f"{_HERE}.claims.{module}" for module in _CLAIMS),
    figures=tuple(f"{_HERE}.figures.{figure}" for figure in _FIGURES),
    brings=tuple(
        f"{_HERE}.{module}" for module in ("model", "starts", "dm1", "dm2", "fast", "kernel")
    ),
    setting=f"{_HERE}.setting:Setting",
    subject=f"{_HERE}.subject:subject",
    slack=f"{_HERE}.subject:slack",
    reduction=f"{_HERE}.one_head:one_head",
    leading=("deora2024/eq-70", "deora2024/corollary-1-1", "deora2024/corollary-1-3"),
    errata=f"{_HERE}.errata",
    certificates=_HERE,
    facts=(f"{_HERE}.scalar_facts",),
    choices=CHOICES,
)
