"""Steps of the proof of Lemma 5 of arda2026 as written; the lemma does not need them so."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp

from ....core import pooled_attention
from ....core._attention import softmax_covariance_times
from ....theory import Box, Positive, Reals, Record, false
from ....theory.families import safe_norm
from ....theory.slow import dot, norm, softmax, times
from .. import twins
from ..constants import state
from ..records import Head
from .facts_1_to_3 import antipodal

step = functools.partial(state.claim, proved="App. A.6")
NO_RIVAL = "a step about any random variable"
LARGEST = 400


class Atoms(Record):
    """A variable with finitely many values z in [-1, 1] and probabilities softmax(logits)."""

    z = Box("k", says="values in [-1, 1]")
    logits = Reals("k", largest=40.0)

    shapes = ({"k": 3},)


@step(
    "psi-2",
    "Orlicz norm of a bounded variable",
    where="App. A.6 (i), (ii)",
    on=Atoms,
    says=r"|Z|\le K\Rightarrow\|Z\|_{\psi_2}\le K",
    no_rival=NO_RIVAL,
    forms={
        "printed": false("t = K", "E4"),
        "corrected": ("t = K/sqrt(ln 2) = 1.2011 K, attained by fair signs", "E4"),
    },
    tight=lambda: (Atoms(z=np.array([1.0, -1.0]), logits=np.zeros(2)),),
)
def psi_2(z, logits, form):
    """|Z| <= K implies a psi_2 norm of at most K (printed) or K/sqrt(ln 2) (corrected), that is
    E exp(Z^2/t^2) <= 2 at this t; here K = 1."""
    rate = 1.0 if form == "printed" else math.log(2)
    return jax.nn.softmax(logits) @ jnp.exp(rate * z**2), 2.0


@psi_2.twin
def _(num, z, logits, form):
    rate = num.number(1) if form == "printed" else num.log(num.number(2))
    return dot(softmax(num, logits), [num.exp(rate * x * x) for x in z]), num.number(2)


class FairSigns(Record):
    """Fair signs, N of them, and a level: the event |sum| >= level, so |mean| >= t = level/N."""

    N = Positive(low=1.0, high=float(LARGEST))
    level = Positive(low=1.0, high=float(LARGEST))

    shapes = ({},)
    slopes = False

    def outside(self) -> str | None:
        """Both are whole, level <= N <= 400."""
        if self.N % 1 or self.level % 1 or self.N > LARGEST or self.level > self.N:
            return f"N = {self.N}, level = {self.level} are not whole, or not level <= N <= 400"
        return None

    def within(self):
        """Whole numbers."""
        N = jnp.round(self.N)
        return self.changed(N=N, level=jnp.minimum(jnp.round(self.level), N))


@step(
    "subgaussian-tail",
    "Tail of a mean with the psi_2 norm as its scale",
    where="App. A.6, the tail after Eq. (23)",
    on=FairSigns,
    says=r"\mathbb{P}(|\tfrac1N\sum_iZ_i|\ge t)\le2e^{-Nt^2/K^2}",
    trivial=lambda k: 1.0,
    forms={
        "implied": false("scale K = psi_2 norm", "E5"),
        "corrected": ("Hoeffding's scale", "E5"),
    },
    tight=lambda: tuple(
        FairSigns(N=np.array(float(N)), level=np.array(float(level)))
        for N, level in ((16, 12), (64, 48), (400, 300))
    ),
)
def subgaussian_tail(N, level, form):
    """P(|mean of N| >= t) <= 2 exp(-N t^2/K^2) with K the psi_2 norm (implied), for fair signs:
    K^2 = 1/ln 2. Corrected: Hoeffding's 2 exp(-N t^2/2)."""
    k = jnp.arange(LARGEST + 1, dtype=N.dtype)
    inside = k <= N
    safe = jnp.where(inside, N - k, 0.0)
    log_pmf = gammaln(N + 1) - gammaln(k + 1) - gammaln(safe + 1) - N * math.log(2)
    counted = inside & (jnp.abs(2 * k - N) >= level)
    log_tail = logsumexp(jnp.where(counted, log_pmf, -jnp.inf))
    rate = math.log(2) if form == "implied" else 0.5
    return jnp.exp(log_tail), jnp.exp(math.log(2) - rate * level**2 / N)


@subgaussian_tail.twin
def _(num, N, level, form):
    N, level = num.whole(N), num.whole(level)
    ways = sum(math.comb(N, k) for k in range(N + 1) if abs(2 * k - N) >= level)
    rate = num.log(num.number(2)) if form == "implied" else num.number("0.5")
    return num.number(ways) / num.number(2**N), 2 * num.exp(-rate * level * level / N)


class TwoPoints(Record):
    """A variable Z = a or Z = -b, with probabilities for which E exp(Z^2) = 2: psi_2 norm 1."""

    a = Positive(low=0.01, high=0.83)
    b = Positive(low=0.84, high=6.0)

    shapes = ({},)

    def outside(self) -> str | None:
        """a^2 < ln 2 < b^2, so that the probabilities exist; exp(b^2) is a float."""
        if self.a**2 < math.log(2) < self.b**2 and self.b <= 10:
            return None
        return f"a = {self.a}, b = {self.b} are not a < sqrt(ln 2) < b <= 10"


@step(
    "lemma-5-centring",
    "Centring and the psi_2 norm",
    where="App. A.6, after Eq. (23)",
    on=TwoPoints,
    says=r"\|Z\|_{\psi_2}\le K\Rightarrow\|Z-\mathbb EZ\|_{\psi_2}\le K",
    no_rival=NO_RIVAL,
    forms={
        "implied": false("the same K", "E5"),
        "corrected": ("2 K", "E5"),
    },
    tight=lambda: (TwoPoints(a=np.array(0.75), b=np.array(2.0)),),
)
def lemma_5_centring(a, b, form):
    """|Z|_psi2 <= K implies |Z - EZ|_psi2 <= K (implied: the tail uses the same K after centring)
    or <= 2 K (corrected: |EZ|_psi2 <= K by Jensen, then the triangle inequality); here K = 1."""
    p = (2 - jnp.exp(a**2)) / (jnp.exp(b**2) - jnp.exp(a**2))
    values, weights = jnp.stack([a, -b]), jnp.stack([1 - p, p])
    scale = 1.0 if form == "implied" else 4.0
    return weights @ jnp.exp((values - weights @ values) ** 2 / scale), 2.0


@lemma_5_centring.twin
def _(num, a, b, form):
    low, high = num.exp(a * a), num.exp(b * b)
    rare = (2 - low) / (high - low)
    mean = a - rare * (a + b)
    scale = num.number(1 if form == "implied" else 4)
    terms = [num.exp((z - mean) ** 2 / scale) for z in (a, -b)]
    return terms[0] + rare * (terms[1] - terms[0]), num.number(2)


class Stretch(Record):
    """A diagonal D, 0 <= D <= 1, and w(U) = D^2 U/|DU|: |w| <= 1 and <U, w> = |DU|."""

    l = Box("k", low=0.0, high=1.0)

    shapes = ({"k": 3},)

    def outside(self) -> str | None:
        """0 <= l <= 1."""
        return None if np.all((self.l >= 0) & (self.l <= 1)) else "l has entries outside [0, 1]"


@step(
    "lemma-5-independence",
    "A vector that depends on U",
    where="App. A.6 (iii)",
    on=Stretch,
    asks=(),
    says=r"\|w\|_2\le1\Rightarrow\|\langle U,w\rangle\|_{\psi_2}\le\sqrt{8/3}",
    no_rival=NO_RIVAL,
    forms={
        "implied": false("as if w did not depend on U", "E6"),
        "corrected": ("2^(tr D), by convexity in each entry; attained by entries 0 and 1", "E6"),
    },
    tight=lambda: (Stretch(l=np.ones(2)), Stretch(l=np.array([1.0, 0.0]))),
)
def lemma_5_independence(l, form):
    """For U ~ N(0, I) and |w| <= 1 almost surely, <U, w> has psi_2 norm at most sqrt(8/3), that is
    E exp(3 <U, w>^2/8) <= 2 (implied; true if w does not depend on U). Corrected, for
    w = D^2 U/|DU|: at most 2^(tr D); with D = M and tr M <= 1 the proof's bound is right."""
    mean = jnp.exp(-0.5 * jnp.sum(jnp.log1p(-0.75 * l**2)))
    return mean, 2.0 if form == "implied" else 2.0 ** jnp.sum(l)


@lemma_5_independence.twin
def _(num, l, form):
    product = num.number(1)
    for entry in l:
        product = product * (4 - 3 * entry * entry) / 4
    two = num.number(2)
    bound = two if form == "implied" else num.exp(num.log(two) * num.total(l))
    return 1 / num.sqrt(product), bound


@step(
    "lemma-5-step",
    "Size of the vector that meets U in the proof of Lemma 5",
    where="App. A.6 (iii)",
    on=Head,
    says=r"\|\sigma'(U^\top a)Mv_wq_X\|_2\le\nu_w",
    no_rival=NO_RIVAL,
    forms={
        "printed": false("without s1: fails when s1 > 1", "E6"),
        "corrected": ("with s1", "E6"),
    },
    tight=lambda: (antipodal("erf", U=0.0),),
)
def lemma_5_step(head, form):
    """|s'(U.a) M v_w q| <= nu_w (printed) or s1 nu_w (corrected); here nu_w = 1."""
    alpha = pooled_attention(head.X, head.W, head.q)
    image = softmax_covariance_times(head.X, alpha, head.v @ head.q)
    lhs = jnp.abs(head.sigma.derivative(head.U @ (alpha @ head.X))) * safe_norm(image)
    return lhs, 1.0 if form == "printed" else head.sigma.sigma1


@lemma_5_step.twin
def _(num, head, k, form):
    unit = twins.one_head(num, head)
    image = times(unit.M, times(head["v"], head["q"]))
    lhs = abs(unit.slope) * norm(num, image)
    return lhs, num.number(1) if form == "printed" else k.bounds[1]
