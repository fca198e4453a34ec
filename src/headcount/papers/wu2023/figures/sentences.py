"""What wu2023 says about its figures, word for word."""

from ....lab import Source

DECAY = Source("We can observe an exponential decay as $t$ increases", "Sec. 4.2, Fig. 1")
DECAY_OF_IMAGES = Source("where we could see exponential decay", "App. E.2, Fig. 6")
LINEAR = Source(
    "The result shows that the training can converge except for the case with sub-linear width, "
    "see the linear convergence rate in Figure 2a",
    "Sec. 5.1, Fig. 2 (Fig. 9: `similar results`)",
)
SETTLED = Source(
    "For these cases, the weights do not change much after 50 epochs while the losses are still "
    "decreasing.",
    "Sec. 5.1, Fig. 2 (Fig. 9: `similar results`)",
)
KERNEL = Source(
    "Figure 2c shows that the kernel changes rapidly at the beginning of training while being "
    "approximately constant at later stages.",
    "Sec. 5.1, Fig. 2 (Fig. 9: `similar results`)",
)
STABLE = Source(
    "As the width increases, the empirical NTK becomes more stable.",
    "Figs. 2, 9",
)
SAME_AS_TWO_LAYERS = Source(
    "Figure 3 shows that the training of Transformer with $d_s = 1, d = 100$ is similar to that of "
    "two-layer FCNN with the same width $d_m = 100$ .",
    "Sec. 5.1, Fig. 3",
)
ONE_TOKEN = Source(
    "by setting $d_s = 1, d = \\tilde{d}$ , then training with GD can converge to a global minimum",
    "Corollary 1",
)
MANY_TOKENS = Source(
    "However, the case of $d_s = 100, d = 1$ fails to converge", "Sec. 5.1, Fig. 3"
)
INITIALISATIONS = Source(
    "when using the same step size $\\gamma = 1$ for LeCun and He initialization exhibits similar "
    "behavior while NTK initialization leads to slower convergence",
    "App. E.1, Fig. 5",
)
FASTER = Source(
    "for a large enough $d_m$ , the $\\tau_0 = d_m^{-1/2}$ scaling admits a faster convergence "
    "rate",
    "Sec. 4.4",
)
ALIKE = Source(
    "when the width is smaller, e.g., 16, both $\\tau_0 = d_m^{-1}$ and $\\tau_0 = d_m^{-1/2}$ "
    "scaling have similar",
    "Sec. 5.2, Fig. 4a",
)
SLOWER = Source(
    "as the width increases to 1024 and 16384, the $\\tau_0 = d_m^{-1}$ setting admits a slower "
    "rate than that of $\\tau_0 = d_m^{-1/2}$",
    "Sec. 5.2, Fig. 4a",
)
EXTREMELY = Source("a extremely slow rate under $d_m = 16384$", "Sec. 5.2, Fig. 4a")
ATTENTION = Source("the self-attention layer changes a lot during training", "Sec. 5.2, Fig. 4b")
ACCURACY = Source(
    "$d_m^{-1/2}$ setting achieves faster convergence in training loss and higher test accuracy",
    "App. E.2, Fig. 7",
)
REGRESSION = Source(
    "the convergence speed of $d_m^{-1/2}$ is faster than that of $d_m^{-1}$", "App. E.2, Fig. 8"
)
HESSIAN = Source(
    "the Hessian spectral norm of Transformer satisfies: $\\|\\mathbf{H}(\\theta^t)\\|_2 \\leq "
    "\\mathcal{O}(d_m^{-1/2})$",
    "Theorem 3",
)
BLOCKS = Source("= \\mathcal{O}(1/d_m).", "App. D.3")
LIMIT = Source(
    "then the limiting NTK matrix $\\mathbf{K} \\in \\mathbb{R}^{N \\times N}$ of Transformer "
    "under the NTK initialization with $\\tau_0 = d_m^{-1}$ has the following form",
    "Lemma 1",
)
