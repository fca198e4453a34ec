"""Ten constants that are known in closed form, found from both sides by `sharpen`.

    python -m benchmarks.sharpen [names ...]

prints one JSON object: for each constant the digits that agree with what is known, the closed form
that was guessed, and by how much the proved upper end is above it. Searches have the small budget.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import mpmath

from benchmarks._timing import target
from headcount.theory import Box, Claim, Simplex, Sphere, lemma, sharpen
from headcount.theory._sharpened import Best

DIGITS = 30


@lemma(p=Simplex(2), v=Sphere(2))
def softmax(p: Any, v: Any) -> Any:
    """The slope of softmax moves v by at most 1/2."""
    return jnp.linalg.norm(p * v - p * (p @ v)), 1.0


@lemma(p=Box(low=0, high=1), x=Box(2))
def third_moment(p: Any, x: Any) -> Any:
    """The third central moment of two tokens is at most 4/(3 sqrt 3)."""
    share = jnp.stack([p, 1 - p])
    return jnp.abs(share @ (x - share @ x) ** 3), 1.0


@lemma(x=Box(low=-4, high=4))
def curvature_of_tanh(x: Any) -> Any:
    """|tanh''| <= 4/(3 sqrt 3)."""
    return jnp.abs(2 * jnp.tanh(x) * (1 - jnp.tanh(x) ** 2)), 1.0


def silu(x: Any) -> Any:
    """x/(1 + exp(-x))."""
    return x / (1 + jnp.exp(-x))


@lemma(x=Box(low=-8, high=8))
def slope_of_silu(x: Any) -> Any:
    """SiLU's Lipschitz constant."""
    return jnp.abs(jax.grad(silu)(x)), 1.0


def gelu(x: Any) -> Any:
    """x Phi(x), its constants written so that they have more digits than a float64."""
    return x * (1 + jax.lax.erf(x / jnp.sqrt(2.0))) / 2


@lemma(x=Box(low=-8, high=8))
def slope_of_gelu(x: Any) -> Any:
    """GELU's Lipschitz constant, Phi(sqrt 2) + sqrt 2 phi(sqrt 2)."""
    root_of_two_pi = jnp.sqrt(8 * jnp.arctan(1.0))
    density = jnp.exp(-(x**2) / 2) / root_of_two_pi
    return jnp.abs((1 + jax.lax.erf(x / jnp.sqrt(2.0))) / 2 + x * density), 1.0


@lemma(x=Box(low=-8, high=8))
def curvature_of_logistic(x: Any) -> Any:
    """|sigma''| <= 1/(6 sqrt 3)."""
    p = 1 / (1 + jnp.exp(-x))
    return jnp.abs(p * (1 - p) * (1 - 2 * p)), 1.0


@lemma(x=Box(2), v=Sphere(2))
def slope_of_layer_norm(x: Any, v: Any) -> Any:
    """Layer norm of two numbers with epsilon = 1/2 is sqrt 2-Lipschitz."""
    centre, move = (x[0] - x[1]) / 2, (v[0] - v[1]) / 2
    return jnp.sqrt(2.0) * jnp.abs(move) * 0.5 / (centre**2 + 0.5) ** 1.5, 1.0


@lemma(b=Box(low=0.25, high=1), t=Box(low=0.5, high=3))
def dunkl_williams(b: Any, t: Any) -> Any:
    """|x/|x| - y/|y|| (|x| + |y|) <= 2 |x - y|, squared, for lengths 1 and b and the angle t."""
    chord = 2 - 2 * jnp.cos(t)
    return chord * (1 + b) ** 2, (1 - b) ** 2 + b * chord


@lemma(a=Box(low=0, high=1), b=Box(low=1, high=3), t=Box(low=0.5, high=3))
def ball_projection(a: Any, b: Any, t: Any) -> Any:
    """Projected to the unit ball, a point outside moves no further from one inside: squared."""
    turn = 2 - 2 * jnp.cos(t)
    return (a - 1) ** 2 + a * turn, (a - b) ** 2 + a * b * turn


@lemma(x=Box(low=0, high=8))
def curvature_of_erf(x: Any) -> Any:
    """|erf''| <= sqrt(8/(pi e))."""
    return 4 * x * jnp.exp(-(x**2)) / jnp.sqrt(4 * jnp.arctan(1.0)), 1.0


CONSTANTS: dict[str, Claim] = {
    "softmax": softmax,
    "third_moment": third_moment,
    "curvature_of_tanh": curvature_of_tanh,
    "slope_of_silu": slope_of_silu,
    "slope_of_gelu": slope_of_gelu,
    "curvature_of_logistic": curvature_of_logistic,
    "slope_of_layer_norm": slope_of_layer_norm,
    "dunkl_williams": dunkl_williams,
    "ball_projection": ball_projection,
    "curvature_of_erf": curvature_of_erf,
}
NO_FORM = "slope_of_silu"
"""Its extremal point solves an equation with an exponential: there is nothing to guess."""


def known() -> dict[str, Any]:
    """What the ten are, with 60 digits."""
    mp = mpmath.mp.clone()
    mp.dps = 60
    peak = mp.findroot(lambda x: (x + 2) * mp.exp(-x) - x + 2, 2.4)
    slope = 1 / (1 + mp.exp(-peak))
    return {
        "softmax": mp.mpf(1) / 2,
        "third_moment": 4 / (3 * mp.sqrt(3)),
        "curvature_of_tanh": 4 / (3 * mp.sqrt(3)),
        "slope_of_silu": slope + peak * slope * (1 - slope),
        "slope_of_gelu": (1 + mp.erf(1)) / 2 + 1 / (mp.e * mp.sqrt(mp.pi)),
        "curvature_of_logistic": 1 / (6 * mp.sqrt(3)),
        "slope_of_layer_norm": mp.sqrt(2),
        "dunkl_williams": mp.mpf(4),
        "ball_projection": mp.mpf(1),
        "curvature_of_erf": mp.sqrt(8 / (mp.pi * mp.e)),
    }


def agreeing(best: Best, constant: Any) -> int:
    """To how many digits a polished constant is what it should be."""
    mp = mpmath.mp.clone()
    mp.dps = 60
    apart = abs(mp.mpf(best.value) / constant - 1)
    return best.digits if apart == 0 else min(best.digits, int(-mp.log10(apart)))


def row(name: str) -> dict[str, Any]:
    """One constant from both sides."""
    started = time.perf_counter()
    (best,) = sharpen(CONSTANTS[name], budget="small").rows
    low, high = best.found or 0.0, best.proved
    return {
        "constant": name,
        "found": low,
        "proved": high,
        "digits": agreeing(best, known()[name]),
        "closed_form": None if best.form is None else best.form.text,
        "seconds": time.perf_counter() - started,
    }


def run(names: Sequence[str] = ()) -> dict[str, Any]:
    """The named constants, or all ten."""
    rows = [row(name) for name in names or CONSTANTS]
    named = sum(entry["closed_form"] is not None for entry in rows)
    return {
        "name": "sharpen",
        "rows": rows,
        "targets": [
            target("digits", min(entry["digits"] for entry in rows), at_least=DIGITS),
            target("upper ends", sum(e["proved"] is not None for e in rows), at_least=len(rows)),
            target(
                "closed forms",
                named,
                at_least=sum(entry["constant"] != NO_FORM for entry in rows),
            ),
        ],
    }


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1:]), indent=1))
