"""DM2, the planted data of deora2024, App. G."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ...core import (
    Array,
    BadArgument,
    check_choice,
    check_count,
    check_nonnegative,
    check_samples,
    float64,
    normal,
    stream,
)
from ...core._attention import attention_head
from ...data import Dataset, Measurement, data_models
from ...data._base import largest_token_norm

_BATCH = 1024
"""Candidates drawn at a time: fixed, so that a larger n extends the samples of a smaller one."""
_FEWEST_ACCEPTED = 1e-3
READOUTS = ("unit", "plain")
ATTENTIONS = ("gaussian", "scaled", "unit")


class Planted(NamedTuple):
    """The planted head: U* (with Frobenius norm 1, unless it is plain) and W*."""

    U: Float[Array, "T d"]
    W: Float[Array, "d d"]


_head_outputs = jax.jit(jax.vmap(attention_head, in_axes=(0, None, None)))


@dataclass(frozen=True)
class DM2:
    """X_ij iid N(0, 1), y = sign Phi(X; W*, U*), kept if |Phi| > margin [deora2024, App. G].

    W* and U* have N(0, 1) entries, U* divided by its norm, so that `margin` is the margin of a
    unit-norm read-out. planted_seed fixes them for all data seeds; None: new ones with every seed.
    readout="plain" leaves U* as drawn; attention: W* as drawn, "scaled" to N(0, 1/d), or "unit".
    """

    T: int = 10
    d: int = 5
    margin: float = 0.2
    planted_seed: int | None = None
    readout: str = "unit"
    attention: str = "gaussian"
    name: ClassVar[str] = "dm2"
    assumption: ClassVar[str] = (
        "deora2024, App. G: labels of a planted attention head with margin above 0.2; Gaussian "
        "tokens meet Assumption 1 (bounded tokens) only with the realised R"
    )

    def __post_init__(self) -> None:
        check_count("T", self.T)
        check_count("d", self.d)
        check_nonnegative("margin", self.margin)
        if self.planted_seed is not None:
            check_count("planted_seed", self.planted_seed, least=0)
        check_choice("readout", self.readout, READOUTS)
        check_choice("attention", self.attention, ATTENTIONS)

    def planted(self, seed: int) -> Planted:
        """(U*, W*) behind `sample(n, seed)`."""
        own = seed if self.planted_seed is None else self.planted_seed
        U = normal(stream(own, "dm2", "planted", "U"), (self.T, self.d))
        W = normal(stream(own, "dm2", "planted", "W"), (self.d, self.d))
        size = {"gaussian": 1.0, "scaled": np.sqrt(self.d), "unit": np.linalg.norm(W)}
        U = U if self.readout == "plain" else U / np.linalg.norm(U)
        return Planted(U, W / size[self.attention])

    def logits(self, x: Float[Array, "n T d"], seed: int) -> Float[Array, "n"]:
        """Phi(X; W*, U*) in double precision."""
        planted = self.planted(seed)
        with float64():
            return np.asarray(
                _head_outputs(jnp.asarray(x), jnp.asarray(planted.W), jnp.asarray(planted.U))
            )

    def sample(self, n: int, seed: int) -> Dataset:
        """The first n candidates beyond the margin."""
        return self._accepted(n, seed, "train")

    def sample_split(self, n: int, n_val: int, seed: int) -> tuple[Dataset, Dataset]:
        """Independent training and validation samples of the same planted head."""
        check_count("n_val", n_val)
        return self.sample(n, seed), self._accepted(n_val, seed, "validation")

    def measure(self, dataset: Dataset, seed: int | None = None) -> dict[str, Measurement]:
        """Realised R and label balance; with the seed (or planted_seed) also the margin."""
        check_samples(*dataset)
        found = {
            "R": Measurement.observed(largest_token_norm(dataset.x), "largest token norm"),
            "positive": Measurement.observed(np.mean(dataset.y > 0), "share of labels +1"),
        }
        own = self.planted_seed if seed is None else seed
        if own is not None:
            found["margin"] = Measurement.at_least(
                np.min(dataset.y * self.logits(dataset.x, own)),
                self.margin,
                "smallest y Phi(X; W*, U*)",
            )
        return found

    def _accepted(self, n: int, seed: int, part: str) -> Dataset:
        check_count("n", n)
        kept_x: list[Float[Array, "k T d"]] = []
        kept_y: list[Float[Array, "k"]] = []
        found = batches = 0
        while found < n:
            key = stream(seed, "dm2", part, "candidates", batches)
            x = normal(key, (_BATCH, self.T, self.d))
            phi = self.logits(x, seed)
            keep = np.abs(phi) > self.margin
            kept_x.append(x[keep])
            kept_y.append(np.sign(phi[keep]))
            found += int(np.sum(keep))
            batches += 1
            if found < _FEWEST_ACCEPTED * _BATCH * batches and batches >= 10:
                raise BadArgument(
                    "margin",
                    self.margin,
                    f"keeps {found} of {batches * _BATCH} candidates",
                    fix="use a smaller margin",
                )
        return Dataset(np.concatenate(kept_x)[:n], np.concatenate(kept_y)[:n])


data_models.register("dm2", DM2)
