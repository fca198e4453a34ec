"""The smallest transport: which nu-bar do these labels need? [arda2026, Sec. 5.4]

For data without a known teacher: the least-norm (v_c, v_u, v_w) on the sampled heads with which
the linearised model fits the labels. It is a kernel problem: with K the tangent kernel at the
start, phi~ - phi0 = J^T (K + lambda I)^{-1} (y - f(phi0)), and v is sqrt(m) times that (times c_0
in the blocks U and W). What the theorem needs of v is its largest entry over heads: v in V_nu.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import Array, BadArgument, check_samples, float64
from ...kernels import kernel_regression, ntk
from ...kernels._regression import spectrum_of
from ...training._build import Built
from .constants import approximation, label_envelope
from .model import PooledAttention, PooledAttentionParams
from .teacher import TransportTeacher
from .transport_map import TransportVectors, transported

TINY = 1e-9
"""The least nu of a run: displacements are kept in units of nu, so it must be positive."""
LEARNABLE = "The smallest transport that Theorem 1 can work with"
TOO_LARGE = "No transport is one that Theorem 1 can work with: that without ridge"
ROUNDING = 1e-8
"""Times the largest label: a residual up to which the labels count as interpolated."""
LEAST, MOST = -12, 3
"""Powers of ten between which the ridge is sought, in units of the mean eigenvalue of K."""
SHOWN = 512
"""Samples on which the need of a teacher's labels is shown: it enters no verdict."""


@dataclass(frozen=True)
class SmallestTransport:
    """v at every head, and what it needs.

    `nu` are the largest |v_c|, |v_u| and ||v_w||_F over heads, `norm` is sqrt(mean_i |v_i|^2),
    `residual` is max_j |f_lin(X_j; phi~) - y_j|, `ridge` the lambda, `rank` that of the kernel.
    """

    v: TransportVectors
    nu: tuple[float, float, float]
    norm: float
    residual: float
    ridge: float
    rank: int

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the audit."""
        return {
            "lambda": self.ridge,
            "residual max |f_lin - y|": self.residual,
            "rank of the kernel": self.rank,
            "nu_c": self.nu[0],
            "nu_u": self.nu[1],
            "nu_w": self.nu[2],
            "norm of v (mean over heads)": self.norm,
        }


class TransportProblem:
    """The kernel problem of one start on one data set: many ridges, one eigendecomposition.

    `start` needs c_i != 0; Theorem 1 asks for |c_i| = 1.
    """

    def __init__(
        self,
        model: PooledAttention,
        start: PooledAttentionParams,
        x: Float[Array, "n T d"],
        y: Float[Array, "n"],
    ) -> None:
        check_samples(x, y)
        if np.any(np.asarray(start.c) == 0):
            raise BadArgument("start", "c = 0", "has no transport map", fix="use a paired start")
        self.model, self.y = model, np.asarray(y, np.float64)
        self.c0 = np.asarray(start.c)
        self.kernel = ntk(model, start, x, blocks="total").matrix
        self.spectrum = spectrum_of(self.kernel)
        with float64():
            self.start = jax.tree.map(jnp.asarray, start)
            self.x = jnp.asarray(x, jnp.float64)
            self.f0 = np.asarray(_outputs(model, self.start, self.x))

    def solve(self, ridge: float) -> SmallestTransport:
        """The v that minimises |f_lin - y|^2 + ridge |phi~ - phi0|^2; the limit for ridge 0."""
        fit = kernel_regression(
            self.kernel, self.y, ridge=ridge, f0=self.f0, spectrum=self.spectrum
        )
        with float64():
            weights = jnp.asarray(fit.coefficients)
            moved = _pull_back(self.model, self.start, self.x, weights)
        c0, root = self.c0, math.sqrt(len(self.c0))
        v = TransportVectors(
            root * np.asarray(moved.c),
            root * np.asarray(moved.U) / c0[:, None],
            root * np.asarray(moved.W) / c0[:, None, None],
        )
        lengths = [np.linalg.norm(block.reshape(len(c0), -1), axis=1) for block in v]
        nu_c, nu_u, nu_w = (float(np.max(length)) for length in lengths)
        norm = float(np.sqrt(np.mean(sum(length**2 for length in lengths))))
        return SmallestTransport(v, (nu_c, nu_u, nu_w), norm, fit.residual, fit.ridge, fit.rank)

    def suffices(self, found: SmallestTransport, delta: float) -> bool:
        """Whether Theorem 1 can work with it: E_app holds, and labels fit a target in F_nu."""
        sigma, n, m = self.model.activation, len(self.y), self.model.m
        y_max = label_envelope(sigma, found.nu, self.model.d, "sharp")
        fits = float(np.max(np.abs(self.y))) <= y_max
        return fits and found.residual <= approximation(sigma, found.nu, n, m, delta)


def easiest_transport(problem: TransportProblem, delta: float) -> SmallestTransport:
    """The smallest v that Theorem 1 can work with: the largest ridge that still suffices.

    The theorem lets f_lin(phi~) miss the labels by B_app(nu): a larger lambda needs a smaller nu
    and leaves a larger residual. Powers of ten times the mean eigenvalue are bisected; if none
    suffices there is no ridge.
    """
    size = float(np.trace(problem.kernel)) / len(problem.y)
    best, low, high = problem.solve(0.0), LEAST, MOST + 1
    while low < high:  # below `low` it suffices, from `high` on it does not
        middle = (low + high) // 2
        found = problem.solve(size * 10.0**middle)
        if problem.suffices(found, delta):
            best, low = found, middle + 1
        else:
            high = middle
    return best


@functools.partial(jax.jit, static_argnums=0)
def _outputs(model: PooledAttention, phi: Any, x: Array) -> Array:
    return jax.lax.map(lambda one: model(phi, one), x, batch_size=64)


@functools.partial(jax.jit, static_argnums=0)
def _pull_back(model: PooledAttention, phi: Any, x: Array, weights: Array) -> Any:
    """sum_j weights_j grad f(X_j; phi): what moves f_lin by K weights."""

    def add_one(total: Any, sample: tuple[Array, Array]) -> tuple[Any, None]:
        one, weight = sample
        slope = jax.grad(model)(phi, one)
        return jax.tree.map(lambda t, g: t + weight * g, total, slope), None

    return jax.lax.scan(add_one, jax.tree.map(jnp.zeros_like, phi), (x, weights))[0]


@dataclass(frozen=True)
class Goal:
    """The transport map that a run is measured against: the teacher's, or the smallest one."""

    v: TransportVectors
    nu: tuple[float, float, float]
    independent: bool
    """Whether v was drawn apart from the start and gives the labels, as Lemma 5 asks."""
    findings: dict[str, dict[str, Any]]

    def transported(self, start: PooledAttentionParams) -> PooledAttentionParams:
        """phi~."""
        return transported(start, self.v)


def _without_ridge(exact: SmallestTransport, y: Float[Array, "n"]) -> str:
    """The title of its table: a kernel of lower rank than samples may miss the labels."""
    fits = exact.residual <= ROUNDING * float(np.max(np.abs(y)))
    missed = f"missed by {exact.residual:.3g} (rank {exact.rank} for {len(y)} samples)"
    return f"The same without ridge: the labels are {'interpolated' if fits else missed}"


def goal_of(built: Built, start: PooledAttentionParams, seed: int, delta: float) -> Goal:
    """The teacher's map where the data have one; else the smallest that Theorem 1 can work with.

    The findings say in either case what nu the labels need on the sampled heads.
    """
    model, data, x, y = built.model, built.data, built.x[0], built.y[0]
    taught = isinstance(data, TransportTeacher)
    some = slice(SHOWN if taught else None)
    problem = TransportProblem(model, start, x[some], y[some])
    least, exact = easiest_transport(problem, delta), problem.solve(0.0)
    shown = {"samples": len(y[some])}
    findings = {
        LEARNABLE if problem.suffices(least, delta) else TOO_LARGE: {**shown, **least.to_json()},
        _without_ridge(exact, y[some]): {**shown, **exact.to_json()},
    }
    if not isinstance(data, TransportTeacher):
        nu_c, nu_u, nu_w = (max(size, TINY) for size in least.nu)
        return Goal(least.v, (nu_c, nu_u, nu_w), False, findings)
    v = data.transport(seed, x)(*start)
    same = data.attention == "full" and data.activation == model.activation
    return Goal(v, data.nu, same and data.query == model.query, findings)
