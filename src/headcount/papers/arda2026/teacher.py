"""The transport-map teacher of arda2026, Sec. 6."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from ...core import (
    Activation,
    Array,
    BadArgument,
    activations,
    check_choice,
    check_count,
    check_finite,
    check_samples,
    check_shape,
    normal,
    precision,
    stream,
)
from ...core._activations import activation_of
from ...core._keys import substream
from ...core._queries import LAST_TOKEN, Query, check_query
from ...data import Dataset, GaussianTokens, Measurement, data_models
from ...data._base import token_norms
from .transport_map import (
    ATTENTIONS,
    W_BRANCHES,
    AnchorArrays,
    TransportMap,
    TransportSpec,
    attention_matrix,
    check_nu,
    transport_vectors,
)

WEIGHTS = ("uniform", "signed")
ANCHOR_SOURCES = ("law", "data")
_POOL_BLOCK = 512
"""Heads drawn at a time. A part of the pool's law: changing it changes every label."""
_CHUNK_NUMBERS = 2**18
"""How many numbers one (samples, T, heads) array of a chunk holds: about one megabyte."""


@dataclass(frozen=True)
class TransportTeacher:
    """y = mean over a pool of heads of phi_c v_c + <phi_u, v_u> + <phi_w, v_w> [arda2026, Sec. 6].

    The pool stands for the expectation over one head (U, W) ~ N(0, I) of Eq. (9). Inputs, anchors,
    weights and pool have separate key streams, all apart from the student's.

    weights: "uniform" is 1/R (paper); "signed" is N(0, 1) divided by the sum of absolute values
    (released code). attention: "full" (paper) or "diagonal" (released code: only diag W enters the
    teacher's softmax, so its labels are not in the student's class). w_branch: see `TransportMap`.
    anchors_from: "law" draws anchors apart from the data (paper); "data" takes random training
    inputs (released code). dtype is that of the label computation. teacher_seed fixes anchors,
    weights and pool for all data seeds; None means a new teacher with every seed.
    """

    T: int = 16
    d: int = 8
    anchors: int = 16
    nu: tuple[float, float, float] = (3.0, 3.0, 3.0)
    pool: int = 8192
    activation: Activation = activations["tanh"]
    query: Query = LAST_TOKEN
    weights: str = "uniform"
    attention: str = "full"
    w_branch: str = "clipped"
    anchors_from: str = "law"
    dtype: str = "float64"
    teacher_seed: int | None = None
    name: ClassVar[str] = "transport-teacher"
    assumption: ClassVar[str] = (
        "arda2026, Sec. 3.1 and Eq. (9): tokens and query in the unit ball, labels without noise "
        "from the class F_nu (up to the pool's Monte-Carlo error)"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation", activation_of(self.activation))
        for argument in ("T", "d", "anchors", "pool"):
            check_count(argument, getattr(self, argument))
        check_nu(self.nu)
        check_query(self.query, self.d)
        check_choice("weights", self.weights, WEIGHTS)
        check_choice("attention", self.attention, ATTENTIONS)
        check_choice("w_branch", self.w_branch, W_BRANCHES)
        check_choice("anchors_from", self.anchors_from, ANCHOR_SOURCES)
        precision(self.dtype)
        if self.teacher_seed is not None:
            check_count("teacher_seed", self.teacher_seed, least=0)

    @property
    def law(self) -> GaussianTokens:
        """The input law."""
        return GaussianTokens(self.T, self.d)

    def transport(self, seed: int, x: Float[Array, "n T d"] | None = None) -> TransportMap:
        """The transport map behind `sample(n, seed)`; x: its inputs, if anchors come from them."""
        return TransportMap(
            anchors=self._anchors(seed, x),
            weights=self._weights(seed),
            nu=self.nu,
            activation=self.activation,
            query=self.query,
            attention=self.attention,
            w_branch=self.w_branch,
        )

    def labels(
        self, x: Float[Array, "n T d"], transport: TransportMap, seed: int
    ) -> Float[Array, "n"]:
        """y of any inputs: the average over the pool drawn with `seed`."""
        check_shape("x", x, (None, self.T, self.d))
        check_finite("x", x)
        frozen = transport.arrays(self.dtype)
        total = np.zeros(len(x))
        with precision(self.dtype):
            heads = min(_POOL_BLOCK, self.pool)
            chunk = max(1, min(len(x), _CHUNK_NUMBERS // (self.T * heads)))
            samples = jnp.asarray(_padded(np.asarray(x, self.dtype), chunk))
            for U, W in self.heads(seed):
                block = _block_sums(
                    samples,
                    frozen,
                    jnp.asarray(np.asarray(U, self.dtype)),
                    jnp.asarray(np.asarray(W, self.dtype)),
                    spec=transport.spec,
                    query=self.query,
                )
                total += np.asarray(block, np.float64).reshape(-1)[: len(x)]
        return total / self.pool

    def heads(self, seed: int) -> Iterator[tuple[Float[Array, "k d"], Float[Array, "k d d"]]]:
        """The pool's heads (U, W), block by block; a larger pool begins with the smaller one."""
        key = stream(self._teacher_seed(seed), "teacher", "pool")
        for start in range(0, self.pool, _POOL_BLOCK):
            size = min(_POOL_BLOCK, self.pool - start)
            yield _draw_block(key, start // _POOL_BLOCK, size, self.d)

    def operations(self, n: int) -> int:
        """What n labels cost, as so many operations of a matrix product; a guess."""
        per_head = self.d**2 + self.T * self.d + 8 * self.T
        return 60 * self.pool * (n + self.anchors) * per_head

    def sample(self, n: int, seed: int) -> Dataset:
        """n inputs and their labels."""
        return Dataset(self.law.inputs(n, seed), _labels(self, n, seed).copy())

    def sample_split(self, n: int, n_val: int, seed: int) -> tuple[Dataset, Dataset]:
        """Training and validation inputs drawn independently, labelled by the same teacher."""
        check_count("n_val", n_val)
        x = self.law.inputs(n, seed)
        x_val = self.law.inputs(n_val, seed, "validation")
        y = self.labels(np.concatenate([x, x_val]), self.transport(seed, x), seed)
        return Dataset(x, y[:n]), Dataset(x_val, y[n:])

    def measure(self, dataset: Dataset) -> dict[str, Measurement]:
        """Token and query norms against 1, and |y| against the sharp y_max of Lemma 6."""
        check_samples(*dataset)
        with precision("float64"):
            queries = np.asarray(jax.vmap(self.query)(jnp.asarray(dataset.x)))
        nu_c, nu_u, nu_w = self.nu
        sigma0, sigma1 = self.activation.sigma0, self.activation.sigma1
        return {
            "token_norm": token_norms(dataset.x, 1.0),
            "query_norm": Measurement.at_most(
                np.max(np.linalg.norm(queries, axis=-1)), 1.0, "largest query norm |q_X|"
            ),
            "label": Measurement.at_most(
                np.max(np.abs(dataset.y)),
                sigma0 * nu_c + sigma1 * (nu_u + nu_w),
                "largest |y| against sigma0 nu_c + sigma1 (nu_u + nu_w)",
            ),
            "label_sd": Measurement.observed(np.std(dataset.y), "standard deviation of y"),
        }

    def _teacher_seed(self, seed: int) -> int:
        return seed if self.teacher_seed is None else self.teacher_seed

    def _anchors(self, seed: int, x: Float[Array, "n T d"] | None) -> Float[Array, "R T d"]:
        if self.anchors_from == "law":
            return self.law.inputs(self.anchors, self._teacher_seed(seed), "anchors")
        if x is None or len(x) < self.anchors:
            raise BadArgument(
                "x",
                None if x is None else f"{len(x)} inputs",
                f'cannot give {self.anchors} anchors with anchors_from="data"',
                fix=f"pass at least {self.anchors} training inputs",
            )
        key = stream(self._teacher_seed(seed), "teacher", "anchors")
        return np.asarray(x)[np.asarray(jax.random.permutation(key, len(x)))[: self.anchors]]

    def _weights(self, seed: int) -> Float[Array, "R"]:
        if self.weights == "uniform":
            return np.full(self.anchors, 1 / self.anchors)
        key = stream(self._teacher_seed(seed), "teacher", "weights")
        drawn = normal(key, (self.anchors,))
        return drawn / np.sum(np.abs(drawn))


@lru_cache(maxsize=64)
def _labels(teacher: TransportTeacher, n: int, seed: int) -> Float[Array, "n"]:
    """The labels of a sample. A large pool takes seconds, and students of every width ask."""
    x = teacher.law.inputs(n, seed)
    return teacher.labels(x, teacher.transport(seed, x), seed)


def _draw_block(
    key: PRNGKeyArray, index: int, size: int, d: int
) -> tuple[Float[Array, "k d"], Float[Array, "k d d"]]:
    U = normal(substream(key, "U", index), (_POOL_BLOCK, d))
    W = normal(substream(key, "W", index), (_POOL_BLOCK, d, d))
    return U[:size], W[:size]


def _padded(x: Float[Array, "n T d"], chunk: int) -> Float[Array, "k chunk T d"]:
    missing = -len(x) % chunk
    whole = np.concatenate([x, np.zeros((missing, *x.shape[1:]), x.dtype)])
    return whole.reshape(-1, chunk, *x.shape[1:])


@partial(jax.jit, static_argnames=("spec", "query"))
def _block_sums(
    samples: Float[Array, "k b T d"],
    frozen: AnchorArrays,
    U: Float[Array, "m d"],
    W: Float[Array, "m d d"],
    *,
    spec: TransportSpec,
    query: Query,
) -> Float[Array, "k b"]:
    """sum over the block's heads of phi_c v_c + <phi_u, v_u> + <phi_w, v_w>, heads last.

    <phi_w, v_w> = sigma' (M U) . (v_w q), so with p = X (v_w q) it is
    sigma' sum_t alpha_t (v_t - s) p_t, where v = X U and s = alpha . v.
    """
    v = transport_vectors(frozen, U, W, spec)
    m, d = U.shape
    # (q index, row index * heads): both products with q are one matrix multiplication each.
    W_flat = attention_matrix(W, spec.attention).transpose(2, 1, 0).reshape(d, d * m)
    V_flat = v.v_w.transpose(2, 1, 0).reshape(d, d * m)

    def chunk(x: Float[Array, "b T d"]) -> Float[Array, "b"]:
        q = jax.vmap(query)(x)
        z = x @ (q @ W_flat).reshape(-1, d, m)
        p = x @ (q @ V_flat).reshape(-1, d, m)
        values = x @ U.T
        alpha = jax.nn.softmax(z, axis=1)
        s = jnp.sum(alpha * values, axis=1)
        along_u = jnp.sum(alpha * (x @ v.v_u.T), axis=1)
        along_w = jnp.sum(alpha * (values - s[:, None]) * p, axis=1)
        slope = spec.activation.derivative(s)
        return jnp.sum(spec.activation(s) * v.v_c[None] + slope * (along_u + along_w), axis=-1)

    return jax.lax.map(chunk, samples)


data_models.register("transport-teacher", TransportTeacher)
