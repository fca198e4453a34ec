"""The sentences of arda2026 that verdicts judge, with their places; all other verdicts are ours."""

from ....lab import Source

SLOPES = Source(
    r"The fitted slopes are in close agreement with the predicted $m^{-1/2}$ rate.", "Sec. 6.1"
)
DECREASE = Source(
    "decrease monotonically with width and exhibit a clear power-law dependence on $m$", "Sec. 6.1"
)
IN_TIME = Source(
    r"The training loss decays at the canonical $1/\sqrt{\tau}$ optimization rate", "Sec. 4"
)
IN_SAMPLES = Source(
    r"The dependence on the sample size enters only via $\sqrt{\log(n/\delta)/m}$", "Sec. 4"
)
IN_TOKENS = Source("The displayed rate has no $T$ dependence", "Sec. 4")
APPROXIMATION_IN_TOKENS = Source(
    "stable attention gradient norms give an approximation bound that does not depend on $T$",
    "Remark 10",
)
NORMS = Source("Transformer norms consistently take smaller values", "Sec. 6.2, Fig. 2")
FLUCTUATIONS = Source("maximum IndRNN norms are large with higher fluctuations", "Sec. 6.2, Fig. 2")
SHORT_LAGS = Source(
    "when the problem has a short-term dependency (low $L$ ), IndRNN achieves better results with "
    "degrading performance as $L$ increases",
    "Sec. 6.2, Fig. 2",
)
LONG_LAGS = Source(
    "Transformer gives a consistent performance that does not degrade with $L$", "Sec. 6.2, Fig. 2"
)
MEMORY = Source(r"memory footprint $\mathcal{O}(L)$ compared to IndRNN", "Sec. 6.2")
