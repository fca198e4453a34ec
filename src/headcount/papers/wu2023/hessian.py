"""The Hessian of the encoder in its parameters [wu2023, Theorem 3, App. D.3].

For d = 1 it is known in closed form away from the kinks of relu: its product with a vector costs
O(d_m), so Lanczos gives its norm at any width. For d > 1 Hessian-vector products do the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ...core import Array, BadArgument, check_shape, float64, normal, self_attention, stream
from ...kernels import hessian_extremes, model_function
from .model import Encoder, EncoderParams

BLOCKS = ("QQ", "KK", "QK", "QV", "QO", "KV", "KO", "OV")
_SPACE = 24
"""Krylov vectors: the Hessian has few distinct eigenvalues, so Lanczos ends early."""
_RELATIVE = 1e-10
"""Lanczos stops at this relative accuracy of the norm."""


@dataclass(frozen=True, eq=False)
class ScalarHessian:
    """The Hessian of f(X; theta) for d = 1 in (w_Q, w_K, w_V, w_O), each in R^{d_m}.

    With beta_i, m_i, v_i, k_i the weights of row i and the mean, variance and third central moment
    of the tokens under them, D_i = 1[w_V m_i > 0] and s_i = sum_k w_Vk w_Ok D_ik:
    a = tau0^2 tau1 sum_i x_i^2 s_i k_i, b = tau0 tau1 sum_i x_i s_i v_i,
    e = tau0 tau1 sum_i x_i v_i D_i, c = tau1 sum_i m_i D_i. The paper's H_QK lacks b I.
    """

    w_Q: Float[Array, "d_m"]
    w_K: Float[Array, "d_m"]
    w_V: Float[Array, "d_m"]
    w_O: Float[Array, "d_m"]
    a: float
    b: float
    c: Float[Array, "d_m"]
    e: Float[Array, "d_m"]

    @property
    def d_m(self) -> int:
        """The width."""
        return len(self.w_Q)

    def apply(self, vector: Float[Array, "p"]) -> Float[Array, "p"]:
        """H vector, for a vector (q, k, v, o) of length 4 d_m."""
        q, k, v, o = np.asarray(vector).reshape(4, self.d_m)
        logit = self.w_K @ q + self.w_Q @ k
        value_side, output_side = self.w_O * self.e, self.w_V * self.e
        both = self.a * logit + value_side @ v + output_side @ o
        return np.concatenate(
            [
                both * self.w_K + self.b * k,
                both * self.w_Q + self.b * q,
                logit * value_side + self.c * o,
                logit * output_side + self.c * v,
            ]
        )

    def dense(self) -> Float[Array, "p p"]:
        """All entries, for small widths."""
        return np.stack([self.apply(row) for row in np.eye(4 * self.d_m)])

    def norm(self, seed: int = 0) -> float:
        """The spectral norm: the larger end of the spectrum in absolute value, by Lanczos."""
        size = 4 * self.d_m
        if size <= _SPACE:
            return float(np.max(np.abs(np.linalg.eigvalsh(self.dense()))))
        first = normal(stream(seed, "wu2023", "hessian", "lanczos"), (size,))
        if not np.any(self.apply(first)):
            return 0.0  # a random vector finds every nonzero Hessian
        import scipy.sparse.linalg  # what only reads a claim need not wait for it

        operator = scipy.sparse.linalg.LinearOperator(
            (size, size), matvec=self.apply, dtype=np.float64
        )
        value = scipy.sparse.linalg.eigsh(
            operator,
            k=1,
            which="LM",
            v0=first,
            ncv=_SPACE,
            tol=_RELATIVE,
            return_eigenvectors=False,
        )
        return float(np.abs(value[0]))

    def block_norms(self) -> dict[str, float]:
        """Spectral norms of the blocks, in closed form; H_VV and H_OO vanish."""
        n_Q, n_K = float(np.linalg.norm(self.w_Q)), float(np.linalg.norm(self.w_K))
        on_v = float(np.linalg.norm(self.w_O * self.e))
        on_o = float(np.linalg.norm(self.w_V * self.e))
        return {
            "QQ": abs(self.a) * n_K**2,
            "KK": abs(self.a) * n_Q**2,
            "QK": self._mixed_norm(),
            "QV": n_K * on_v,
            "QO": n_K * on_o,
            "KV": n_Q * on_v,
            "KO": n_Q * on_o,
            "OV": float(np.max(np.abs(self.c))),
        }

    def _mixed_norm(self) -> float:
        """||a w_K w_Q^T + b I||: |b| off the plane of w_Q and w_K, and a 2 x 2 matrix on it."""
        basis, _ = np.linalg.qr(np.stack([self.w_K, self.w_Q], axis=1))
        left, right = basis.T @ self.w_K, basis.T @ self.w_Q
        inside = self.a * np.outer(left, right) + self.b * np.eye(basis.shape[1])
        outside = abs(self.b) if self.d_m > basis.shape[1] else 0.0
        return max(float(np.linalg.norm(inside, 2)), outside)


def scalar_hessian(
    params: EncoderParams, x: Float[Array, "T 1"], *, tau0: float, tau1: float
) -> ScalarHessian:
    """The closed form at (params, x) for sum pooling; mean pooling is tau1 / T."""
    check_shape("x", x, (None, 1))
    W_Q, W_K, W_V, w_O = (np.asarray(block, np.float64).reshape(-1) for block in params)
    tokens = np.asarray(x, np.float64)[:, 0]
    with float64():
        weights = self_attention(tokens[:, None], np.array([[tau0 * (W_Q @ W_K)]]))
    beta = np.asarray(weights)
    mean = beta @ tokens
    centred = tokens[None, :] - mean[:, None]
    variance, third = np.sum(beta * centred**2, axis=1), np.sum(beta * centred**3, axis=1)
    # Row i is active at feature k where w_Vk m_i > 0: only the sign of w_Vk matters.
    active = {sign: np.sign(mean) == sign for sign in (1.0, -1.0)}
    signs = np.sign(W_V)
    sides = {sign: float(np.sum((W_V * w_O)[signs == sign])) for sign in active}
    s = sum(side * active[sign] for sign, side in sides.items())

    def per_feature(terms: Float[Array, "T"]) -> Float[Array, "d_m"]:
        return np.asarray(sum(np.sum(terms[on]) * (signs == sign) for sign, on in active.items()))

    return ScalarHessian(
        W_Q,
        W_K,
        W_V,
        w_O,
        a=float(tau0**2 * tau1 * np.sum(tokens**2 * s * third)),
        b=float(tau0 * tau1 * np.sum(tokens * s * variance)),
        c=tau1 * per_feature(mean),
        e=tau0 * tau1 * per_feature(tokens * variance),
    )


def hessian_norm(
    model: Encoder, params: EncoderParams, x: Float[Array, "T d"], seed: int = 0
) -> float:
    """||Hess_theta f(X; theta)||: the closed form for d = 1, Hessian-vector products otherwise."""
    if not isinstance(model, Encoder):
        name = type(model).__name__
        raise BadArgument("model", name, "is not the encoder of wu2023", fix="use wu2023.Encoder")
    if model.d == 1 and not model.residual:
        tau1 = model.tau1 / len(x) if model.pooling == "mean" else model.tau1
        return scalar_hessian(params, x, tau0=model.tau0, tau1=tau1).norm(seed)
    return hessian_extremes(model_function(model, x), params, seed=seed).norm
