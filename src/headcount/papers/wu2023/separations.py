"""Separations of wu2023, App. C.5 and C.6, the step behind Theorem 2, and the PSD step of C.3."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array
from ...theory import Sides, instance_class
from ...theory.domain import Domain
from ...theory.families import shaped
from ...theory.slow import Arithmetic, dot, flat, norm
from ...theory.slow_spectrum import extreme_eigenvalues, outer_gram
from . import naive
from . import quantities as model
from .declare import claim, false
from .instances import LARGEST, MODELS, ModelInstance
from .naive import Data, Number


@instance_class
@dataclass(frozen=True)
class ValueInstance(Domain):
    """Rows Phi that attention has made, and standard normals for W_V; d_m >= N."""

    Phi: Float[Array, "n d"]
    W_V: Float[Array, "d_m d"]

    def outside(self) -> str | None:
        """alpha needs d_m >= N."""
        few = self.W_V.shape[0] < self.Phi.shape[0]
        return "d_m is below N" if few else None


def _draw(rng: np.random.Generator, count: int, *, n: int, d: int, d_m: int) -> ValueInstance:
    scale = np.exp(rng.uniform(-1, 1, (count, 1, 1)))
    return ValueInstance(scale * rng.normal(size=(count, n, d)), rng.normal(size=(count, d_m, d)))


def _project(i: ValueInstance) -> ValueInstance:
    return jax.tree.map(lambda leaf: jnp.clip(leaf, -LARGEST, LARGEST), i)


FAMILIES = tuple(
    shaped("values", _draw, _project, n=n, d=d, d_m=d_m) for n, d, d_m in ((2, 2, 3), (1, 3, 1))
)


def _alpha2(i: ValueInstance, copies: int, eta: Any, tau1: Any) -> Any:
    """lambda_min(F F^T) for F = tau1 relu(sqrt(eta) Phi W_V^T) with every unit copied."""
    W = jnp.concatenate([i.W_V] * copies)
    F = tau1 * jax.nn.relu(eta**0.5 * i.Phi @ W.T)
    return jnp.linalg.svd(F, compute_uv=False)[-1] ** 2


def _alpha2_naively(num: Arithmetic, data: Data, copies: int, eta: Any, tau1: Any) -> Number:
    rows = [
        [tau1 * num.root(eta) * num.positive_part(dot(phi, w)) for w in data["W_V"]] * copies
        for phi in data["Phi"]
    ]
    return extreme_eigenvalues(num, outer_gram(rows))[0]


def _common(i: ValueInstance) -> Any:
    return jnp.sum(jax.nn.relu(i.Phi @ i.W_V.T) ** 2)


def _common_naively(num: Arithmetic, data: Data) -> Number:
    return num.total(
        [num.positive_part(dot(phi, w)) ** 2 for phi in data["Phi"] for w in data["W_V"]]
    )


def _theorem_2(i: ValueInstance, variant: str) -> Sides:
    d_m = i.W_V.shape[0]
    one, four = _alpha2(i, 1, 1.0, d_m**-0.5), _alpha2(i, 4, 1.0, (4 * d_m) ** -0.5)
    common = _common(i)
    return Sides((4.0 if variant == "printed" else 1.0) * one + common, four + common)


def _theorem_2_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    d_m, unit, common = len(data["W_V"]), num.number(1), _common_naively(num, data)
    one, four = (
        _alpha2_naively(num, data, copies, unit, 1 / num.sqrt(num.number(copies * d_m)))
        for copies in (1, 4)
    )
    return (4 if variant == "printed" else 1) * one + common, four + common


def one_unit(d: int = 1) -> ValueInstance:
    """One sample, one unit, everything 1."""
    return ValueInstance(np.ones((1, d)), np.ones((1, d)))


on_values = functools.partial(claim, families=FAMILIES)

on_values(
    "theorem-2-step",
    "alpha^2 at the NTK initialisation",
    "Theorem 2, (60), (61)",
    "alpha^2 grows with the width like d_m lambda_0/4: with four copies of every unit it is four "
    "times as large. tau1^2 = 1/d_m is forgotten: alpha^2 stays exactly the same. Both sides "
    "carry a common summand.",
    r"\alpha^2\ge d_m\lambda_0/4",
    sides=_theorem_2,
    naive=_theorem_2_naive,
    targets=lambda: (one_unit(),),
    forms={
        "printed": false("alpha^2 of order d_m", "E15"),
        "corrected": ("alpha^2 does not depend on the number of copies", "E15"),
    },
    errata=("E2",),
    where="App. C.4",
)


def _init(i: ValueInstance, variant: str) -> Sides:
    (d_m, d), common = i.W_V.shape, _common(i)
    wide = _alpha2(i, 1, 1 / d, 1.0)
    narrow = _alpha2(i, 1, 1.0, d_m**-0.5) * (1.0 if variant == "printed" else d_m / d)
    return Sides(narrow + common, wide + common)


def _init_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    d_m, d = len(data["W_V"]), len(data["W_V"][0])
    one, common = num.number(1), _common_naively(num, data)
    wide = _alpha2_naively(num, data, 1, one / d, one)
    narrow = _alpha2_naively(num, data, 1, one, 1 / num.sqrt(num.number(d_m)))
    return narrow * (one if variant == "printed" else one * d_m / d) + common, wide + common


on_values(
    "separation-initialisation",
    "LeCun against NTK at the start",
    "App. C.5",
    "alpha^2 is larger for LeCun than for NTK, for the same attention and the same normals. "
    "Exactly, it is d_m/d times that of NTK (and He twice LeCun), so the order reverses for "
    "d_m < d. Both sides carry a common summand.",
    r"\alpha^2_{\rm LeCun}=\frac{d_m}d\alpha^2_{\rm NTK}",
    sides=_init,
    naive=_init_naive,
    targets=lambda: (one_unit(3),),
    forms={
        "printed": false("at every width; the part N/d of the bound is that of Lemma 17", "E18"),
        "corrected": ("d_m/d times", "E18"),
    },
    where="App. C.5",
)


def _psd(i: ModelInstance, variant: str) -> Sides:
    h = i.tau[1] * jax.nn.relu(model.hidden(i, i.theta))
    F, first = jnp.sum(h, axis=1), h[:, 0]
    common = jnp.sum(h**2)
    if variant == "printed":
        low, high = (jnp.linalg.eigvalsh(A @ A.T)[0] for A in (first, F))
        return Sides(low + common, high + common)
    low, high = (jnp.sqrt(jnp.maximum(jnp.linalg.eigvalsh(A @ A.T)[0], 0.0)) for A in (first, F))
    away, root = jnp.linalg.norm(jnp.ravel(F - first)), jnp.sqrt(common)
    return Sides(low - away + root, high + root)


def _psd_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    theta, zero = naive.theta_of(data), num.number(0)
    first, squares = [], []
    for X in data["X"]:
        one = naive.sample(num, X, theta, data["tau"])
        h = [
            [data["tau"][1] * dot(w, phi) if on else zero
             for w, on in zip(theta.W_V, row, strict=True)]
            for phi, row in zip(one.phi, one.on, strict=True)
        ]  # fmt: skip
        first.append(h[0])
        squares += flat(h)
    F = naive.features(num, data, theta)
    common = num.total([x**2 for x in squares])
    low, high = (extreme_eigenvalues(num, outer_gram(A))[0] for A in (first, F))
    if variant == "printed":
        return low + common, high + common
    away = norm(num, [x - y for x, y in zip(flat(F), flat(first), strict=True)])
    return num.root(low) - away + num.root(common), num.root(high) + num.root(common)


def swapped() -> ModelInstance:
    """Erratum E16: the second sample has the first one's tokens in the other order."""
    eye = np.eye(2)
    return ModelInstance(
        X=np.stack([eye, eye[::-1]]),
        y=np.zeros(2),
        W_Q=2.0 * np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]),
        W_K=2.0 * np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]),
        W_V=np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0]]),
        w_O=np.ones(3),
        tau=np.ones(2),
    )


claim(
    "sum-of-psd",
    "The first token's features against all of them",
    "App. C.3, before (47)",
    "F_pre F_pre^T is a sum of positive semi-definite matrices, so that lambda_min(F_pre F_pre^T) "
    ">= lambda_min(F^ F^^T) for the part F^ of the first token. Both sides carry a common summand.",
    r"\lambda_{\min}(F_{\rm pre}F_{\rm pre}^\top)\ge\lambda_{\min}(\hat F\hat F^\top)",
    sides=_psd,
    naive=_psd_naive,
    families=MODELS,
    targets=lambda: (swapped(),),
    forms={
        "printed": false("cross terms of different tokens are not semi-definite", "E16"),
        "corrected": ("Weyl: sigma_min(F_pre) >= sigma_min(F^) - ||F_pre - F^||_F", "E16"),
    },
    where="App. C.3",
)


def _scaling(i: ModelInstance, variant: str) -> Sides:
    """tau[0] is d_m^{-1/2}; the other scaling is its square."""
    weak = ModelInstance(**{**vars(i), "tau": jnp.stack([i.tau[0] ** 2, i.tau[1]])})
    if variant == "corrected":
        both = [jnp.sum(model.attention(j, j.theta) ** 2, axis=-1) for j in (i, weak)]
        return Sides(1 / i.X.shape[1], jnp.min(jnp.stack(both)))
    F, G = (model.features(j, j.theta) for j in (i, weak))
    strong, other = (jnp.linalg.eigvalsh(A @ A.T)[0] for A in (F, G))
    common = jnp.sum(F**2) + jnp.sum(G**2)
    return Sides(other + common, strong + common)


def _scaling_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    weak = {**data, "tau": [data["tau"][0] ** 2, data["tau"][1]]}
    theta = naive.theta_of(data)
    if variant == "corrected":
        sizes = [
            num.total([p**2 for p in row])
            for d in (data, weak)
            for X in d["X"]
            for row in naive.attention(num, X, theta, d["tau"][0])
        ]
        return num.number(1) / len(data["X"][0]), num.smallest(sizes)
    F, G = (naive.features(num, d, theta) for d in (data, weak))
    strong, other = (extreme_eigenvalues(num, outer_gram(A))[0] for A in (F, G))
    common = num.total([x**2 for x in [*flat(F), *flat(G)]])
    return other + common, strong + common


def sharp_attention() -> ModelInstance:
    """Erratum E26: d_m = 4; sharper attention prefers the token that no unit likes."""
    return ModelInstance(
        X=np.array([[[1.0, 1.0], [1.0, -2.0]]]),
        y=np.zeros(1),
        W_Q=np.tile([0.2, 0.0], (4, 1)),
        W_K=np.tile([0.0, 1.0], (4, 1)),
        W_V=np.tile([0.0, -1.0], (4, 1)),
        w_O=np.ones(4),
        tau=np.array([0.5, 1.0]),
    )


claim(
    "separation-scaling",
    "tau0 = d_m^{-1/2} against d_m^{-1}",
    "App. C.6",
    "alpha^2 is at least as large for tau0 = d_m^{-1/2} as for tau0 = d_m^{-1}, the square; "
    "1/d_s bounds |beta|^2 from below for both. Both sides of the first carry a common summand.",
    r"\alpha^2(d_m^{-1/2})\ge\alpha^2(d_m^{-1})",
    sides=_scaling,
    naive=_scaling_naive,
    families=MODELS,
    targets=lambda: (sharp_attention(),),
    forms={
        "printed": false("the order of alpha at the start", "E26"),
        "corrected": ("what the argument shows: |beta_i|^2 >= 1/d_s for both scalings", "E26"),
    },
    where="App. C.6",
)
