"""App. C.7 of wu2023: the variant with a residual connection."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...theory import Family, Sides, instance_class
from ...theory.slow import Arithmetic, flat, norm
from . import naive, naive_constants
from . import quantities as model
from .declare import claim, false
from .instances import SHAPES, ModelInstance, bounded, draw_model
from .naive import Data, Number


@instance_class
@dataclass(frozen=True)
class WideInstance(ModelInstance):
    """An encoder with d_m >= d: tokens are padded with zeros."""

    def outside(self) -> str | None:
        """X + A_1 must make sense."""
        d_m, d = self.W_V.shape
        return None if d_m >= d else f"d_m = {d_m} is below d = {d}"


def _draw(rng: Any, count: int, **shape: int) -> WideInstance:
    return WideInstance(**draw_model(rng, count, **shape))


WIDE = tuple(
    Family(f"residual encoder {shape}", functools.partial(_draw, **shape), bounded)
    for shape in SHAPES[:2]
)


def _features(i: ModelInstance) -> Any:
    """tau1 sum_k relu(W_V X^T beta_k + x_k)."""
    room = i.W_V.shape[0] - i.X.shape[-1]
    h = model.hidden(i, i.theta) + jnp.pad(i.X, ((0, 0), (0, 0), (0, room)))
    return i.tau[1] * jnp.sum(jax.nn.relu(h), axis=1)


def _features_naively(num: Arithmetic, data: Data) -> list[list[Number]]:
    room = [num.number(0)] * (len(data["W_V"]) - len(data["W_V"][0]))
    theta = naive.theta_of(data)
    return [
        naive.sample(num, X, theta, data["tau"], [[*x, *room] for x in X]).f_pre for X in data["X"]
    ]


def _size(i: ModelInstance, variant: str) -> Sides:
    s, V = model.sizes(i), model.norms(i.theta).V
    rows = jnp.linalg.norm(_features(i), axis=1)
    return Sides(jnp.max(rows), s.tau1 * s.d_s * (V * s.d_s**0.5 * s.C_x + s.C_x))


def _size_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    lam, d_s = naive.theta_of(data).norms(num), len(data["X"][0])
    C_x = naive_constants.C_x_of(num, data["X"])
    rhs = data["tau"][1] * d_s * C_x * (lam[2] * num.sqrt(num.number(d_s)) + 1)
    return num.largest([norm(num, row) for row in _features_naively(num, data)]), rhs


on_residual = functools.partial(claim, families=WIDE, where="App. C.7")

on_residual(
    "residual-lemma-10",
    "Size of the last hidden layer with a residual connection",
    "App. C.7",
    "|f_pre| <= tau1 d_s (||W_V|| sqrt(d_s) C_x + C_x) for every sample: sum_i |x_i| <= "
    "sqrt(d_s) |X|_F.",
    r"\|f_{\rm pre}\|_2\le\tau_1d_s(\|W_V\|_2d_s^{1/2}C_x+C_x)",
    sides=_size,
    naive=_size_naive,
)


def _change(i: ModelInstance, variant: str) -> Sides:
    s, lam = model.sizes(i), model.norms(i.theta)
    gap = _features(i) - model.features(i, i.theta)
    rhs = s.N**0.5 * s.tau1 * s.d_s * s.C_x
    if variant == "printed":
        rhs = rhs * lam.O * lam.V
    return Sides(jnp.linalg.norm(jnp.ravel(gap)), rhs)


def _change_naive(num: Arithmetic, data: Data, variant: str) -> tuple[Any, Any]:
    theta, N, d_s = naive.theta_of(data), len(data["X"]), len(data["X"][0])
    with_x = flat(_features_naively(num, data))
    without = flat(naive.features(num, data, theta))
    rhs = num.sqrt(num.number(N)) * data["tau"][1] * d_s * naive_constants.C_x_of(num, data["X"])
    if variant == "printed":
        lam = theta.norms(num)
        rhs = rhs * lam[2] * lam[3]
    return norm(num, [x - y for x, y in zip(with_x, without, strict=True)]), rhs


def small_weights() -> WideInstance:
    """One token, weights of size 1/10: the residual changes f_pre by 1."""
    tenth = np.full((1, 1), 0.1)
    return WideInstance(
        np.ones((1, 1, 1)), np.zeros(1), tenth, tenth, tenth, np.array([0.1]), np.ones(2)
    )


on_residual(
    "eq-62",
    "How much the residual connection changes the last hidden layer",
    "(62)",
    "||F_res - F_pre||_F <= sqrt(N) tau1 d_s |w_O| ||W_V|| C_x.",
    r"\|F_{\rm pre}-F_{\rm pre}^*\|_F\le\sqrt N\tau_1d_s\|w_O\|_2\|W_V\|_2C_x",
    sides=_change,
    naive=_change_naive,
    targets=lambda: (small_weights(),),
    forms={
        "printed": false("w_O and W_V do not belong there: fails for small weights", "E13"),
        "corrected": ("sqrt(N) tau1 d_s C_x, since relu is 1-Lipschitz", "E13"),
    },
)
