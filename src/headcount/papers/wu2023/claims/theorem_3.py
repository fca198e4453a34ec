"""Theorem 3 of wu2023: the Hessian shrinks with the width, for which initialisations?

Four copies of every unit are a network of four times the width, whose weights are as typical of
the initialisation as one copy's. The Hessian of both is exact for d = 1, so a single point shows
how its norm goes with the width, whatever constant the theorem's O hides.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from ....core import self_attention
from ....theory import Sides, false
from ....theory.slow import dot, norm, softmax
from ....theory.slow_spectrum import extreme_eigenvalues
from ..constants import state
from ..model import EncoderParams
from ..records import ScalarWeights, SwitchedOn
from ..twins import Theta, gradient

COPIES = 4


def scales(initialisation, d_m):
    """Standard deviations of inner and output weights (d = 1) and tau1 [wu2023, Table 1]."""
    inner = 2**0.5 if initialisation == "he" else 1.0
    if initialisation == "ntk":
        return inner, 1.0, d_m**-0.5
    return inner, inner / d_m**0.5, 1.0


def network(point, copies):
    """f of a flat theta, and theta, for `copies` copies of every unit and tau0 = 1/d_m."""
    d_m = copies * point.g_Q.shape[0]
    inner, outer, tau1 = scales(point.initialisation, d_m)
    normals = (point.g_Q, point.g_K, point.g_V, point.g_O)
    g_Q, g_K, g_V, g_O = (jnp.concatenate([g] * copies) for g in normals)
    theta = EncoderParams(inner * g_Q, inner * g_K, inner * g_V, outer * g_O)
    flat, unravel = ravel_pytree(theta)

    def f(t):
        w_Q, w_K, w_V, w_O = unravel(t)
        logit = jnp.reshape(w_Q @ w_K / d_m, (1, 1))
        mean = self_attention(point.x[:, None], logit) @ point.x
        return tau1 * jnp.sum(jax.nn.relu(jnp.outer(mean, w_V)) @ w_O)

    return f, flat


def hessian(point, copies):
    """Hess_theta f, by autodiff."""
    f, flat = network(point, copies)
    return jax.hessian(f)(flat)


def size(matrix):
    """The spectral norm."""
    return jnp.max(jnp.abs(jnp.linalg.eigvalsh((matrix + matrix.T) / 2)))


def slow_weights(num, point, copies):
    """(w_Q, w_K, w_V, w_O) and tau1."""
    d_m, name = copies * len(point["g_Q"]), point["initialisation"]
    inner, root = num.sqrt(num.number(2 if name == "he" else 1)), num.sqrt(num.number(d_m))
    outer, tau1 = (num.number(1), 1 / root) if name == "ntk" else (inner / root, root / root)
    inside = ([inner * g for g in point[k]] * copies for k in ("g_Q", "g_K", "g_V"))
    return (*inside, [outer * g for g in point["g_O"]] * copies), tau1


def slow_gradient(num, point):
    """grad f of one copy."""
    (w_Q, w_K, w_V, w_O), tau1 = slow_weights(num, point, 1)
    columns = ([[w] for w in block] for block in (w_Q, w_K, w_V))
    tau = (num.number(1) / len(w_Q), tau1)
    return gradient(num, [[x] for x in point["x"]], Theta(*columns, w_O), tau).flat()


def slow_hessian(num, point, copies):
    """The closed form, entry by entry."""
    x, d_m = point["x"], copies * len(point["g_Q"])
    (w_Q, w_K, w_V, w_O), tau1 = slow_weights(num, point, copies)
    tau0 = num.number(1) / d_m
    M = tau0 * dot(w_Q, w_K)
    zero = num.number(0)
    a, b, c, e = zero, zero, [zero] * d_m, [zero] * d_m
    for token in x:
        beta = softmax(num, [token * M * other for other in x])
        m = dot(beta, x)
        v = dot(beta, [(other - m) ** 2 for other in x])
        third = dot(beta, [(other - m) ** 3 for other in x])
        on = [bool(w * m > 0) for w in w_V]
        s = num.total([p * q for p, q, k in zip(w_V, w_O, on, strict=True) if k])
        a = a + tau0**2 * tau1 * token**2 * s * third
        b = b + tau0 * tau1 * token * s * v
        c = [old + tau1 * m if k else old for old, k in zip(c, on, strict=True)]
        e = [old + tau0 * tau1 * token * v if k else old for old, k in zip(e, on, strict=True)]
    return assembled(num, (w_Q, w_K, w_V, w_O), a, b, c, e)


def assembled(num, w, a, b, c, e):
    """The Hessian from its coefficients."""
    w_Q, w_K, w_V, w_O = w
    d_m = len(w_Q)
    H = [[num.number(0)] * (4 * d_m) for _ in range(4 * d_m)]
    logit = [*w_K, *w_Q]
    other = [p * q for p, q in zip([*w_O, *w_V], [*e, *e], strict=True)]
    for k in range(2 * d_m):
        for l in range(2 * d_m):
            H[k][l] = a * logit[k] * logit[l]
            H[k][2 * d_m + l] = H[2 * d_m + l][k] = logit[k] * other[l]
    for k in range(d_m):
        H[k][d_m + k] = H[d_m + k][k] = H[k][d_m + k] + b
        H[2 * d_m + k][3 * d_m + k] = H[3 * d_m + k][2 * d_m + k] = c[k]
    return H


def slow_size(num, matrix):
    """The spectral norm in slow arithmetic."""
    low, high = extreme_eigenvalues(num, matrix)
    return num.largest([abs(low), abs(high)])


def lecun(kind=ScalarWeights, initialisation="lecun"):
    """Tokens 1 and 0.5, every normal 1, LeCun: H_OV does not shrink."""
    normals = dict.fromkeys(("g_Q", "g_K", "g_V", "g_O"), np.ones(1))
    return kind(x=np.array([1.0, 0.5]), **normals, initialisation=initialisation)


@state.claim(
    "theorem-3",
    "The Hessian shrinks like d_m^{-1/2}",
    where="Theorem 3, (69)-(75)",
    proved="Sec. 4.3 and App. D.3",
    on=ScalarWeights,
    says=r"\|H(\theta)\|_2\le O(d_m^{-1/2})",
    forms={
        "printed": false("any initialisation of Table 1: H_OV does not shrink for LeCun", "E21"),
        "corrected": (
            "NTK, where it halves exactly; LeCun and He: at most ||H||_F of one copy",
            "E21",
        ),
    },
    notes=("E3",),
    no_rival="the norm of a Hessian is known in no other way",
    tight=lambda: (lecun(), lecun(initialisation="ntk")),
)
def theorem_3(point, form):
    """With tau0 = 1/d_m and d = 1, ||H|| is of order d_m^{-1/2}: four copies of every unit halve
    it. The theorem names no initialisation."""
    one, four = hessian(point, 1), hessian(point, COPIES)
    halved = form == "printed" or point.initialisation == "ntk"
    return size(four), 0.5 * size(one) if halved else jnp.sqrt(jnp.sum(one**2))


@theorem_3.twin
def _(num, point, form):
    one, four = (slow_hessian(num, point, copies) for copies in (1, COPIES))
    if form == "printed" or point["initialisation"] == "ntk":
        return slow_size(num, four), slow_size(num, one) / 2
    return slow_size(num, four), norm(num, [entry for row in one for entry in row])


@state.identity(
    "theorem-3-mixed",
    "The block of queries and keys",
    where="(71)-(73)",
    proved="App. D.3",
    on=SwitchedOn,
    says=r"H_{QK}=a\,w_Kw_Q^\top+bI",
    forms={
        "printed": false("without b I", "E21"),
        "corrected": ("with b I", "E21"),
    },
    tight=lambda: (lecun(SwitchedOn),),
)
def theorem_3_mixed(point, form):
    """H_QK = a w_K w_Q^T, as printed; the derivative of the logit itself adds b I. Left:
    derivatives; right: the formula."""
    # a is that of H_QQ = a w_K w_K^T.
    H, d_m = hessian(point, 1), point.g_Q.shape[0]
    inner, outer, tau1 = scales(point.initialisation, d_m)
    w_Q, w_K, w_V = (inner * g for g in (point.g_Q, point.g_K, point.g_V))
    beta = self_attention(point.x[:, None], jnp.reshape(w_Q @ w_K / d_m, (1, 1)))
    mean = beta @ point.x
    gaps = point.x[None, :] - mean[:, None]
    outputs = (w_V * outer * point.g_O)[None, :]
    s = jnp.where(jnp.outer(mean, w_V) > 0, outputs, 0.0).sum(axis=1)
    a = tau1 / d_m**2 * jnp.sum(point.x**2 * s * jnp.sum(beta * gaps**3, axis=1))
    b = tau1 / d_m * jnp.sum(point.x * s * jnp.sum(beta * gaps**2, axis=1))
    closed = a * jnp.outer(w_K, w_Q) + (0.0 if form == "printed" else b) * jnp.eye(d_m)
    return Sides(jnp.ravel(H[:d_m, d_m : 2 * d_m]), jnp.ravel(closed), scale=jnp.max(jnp.abs(H)))


@state.claim(
    "remark-theorem-3",
    "A small Hessian keeps the tangent kernel",
    where="Remark after Theorem 3",
    proved="Sec. 4.3",
    on=ScalarWeights,
    says=r"\|\nabla_\theta K(x,x)\|_2\le2\|H\|_2\|\nabla_\theta f\|_2",
    forms="the step of [Liu et al., 2020], for one sample and without its constants",
    no_rival="how fast the kernel turns is known in no other way",
)
def remark_theorem_3(point):
    """The kernel K(x, x) = |grad f|^2 changes along theta at most at the rate 2 ||H|| |grad f|:
    its gradient is 2 H grad f."""
    f, flat = network(point, 1)
    kernel = jax.grad(lambda t: jnp.sum(jax.grad(f)(t) ** 2))(flat)
    slope = jnp.linalg.norm(jax.grad(f)(flat))
    return jnp.linalg.norm(kernel), 2 * size(jax.hessian(f)(flat)) * slope


@remark_theorem_3.twin
def _(num, point):
    H, slope = slow_hessian(num, point, 1), slow_gradient(num, point)
    turned = [dot(row, slope) for row in H]
    return 2 * norm(num, turned), 2 * slow_size(num, H) * norm(num, slope)
