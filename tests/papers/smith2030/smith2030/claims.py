"""The statements of smith2030: a softmax has norm at most 1, and training converges."""

from fractions import Fraction
from functools import cached_property

import jax
import jax.numpy as jnp

from headcount.theory import Form, Reals, Record, Statements, Table
from headcount.theory.slow import norm, softmax


class Logits(Record):
    """Logits of one softmax."""

    z = Reals("T")

    shapes = ({"T": 3},)


class Trained(Record):
    """A trained run: an audit fills in its loss and its setting."""

    @property
    def symbols(self):
        """The constants are those of the setting."""
        return self.setting


class Constants(Table):
    """The constants of smith2030, from the symbols of a setting."""

    @cached_property
    def rate(self):
        """K^(-1/2) + 1/m [Theorem 1]."""
        return self.symbols.steps**-0.5 + 1 / self.symbols.width


state = Statements("smith2030", Constants)


@state.claim(
    "softmax-norm",
    "Norm of a softmax",
    where="Lemma 1",
    on=Logits,
    says=r"\|{\rm softmax}(z)\|\le1",
    forms={
        "printed": Form("0.9", fails=True),
        "corrected": "1, approached by one dominant logit",
    },
    right={"printed": Fraction(9, 10), "corrected": 1.0},
)
def softmax_norm(z):
    """The norm of a softmax is at most 1."""
    return jnp.sqrt(jnp.sum(jax.nn.softmax(z) ** 2))


@softmax_norm.twin
def _(num, z):
    return norm(num, softmax(num, z))


@state.claim(
    "loss",
    "Loss of the averager",
    where="Theorem 1",
    on=Trained,
    says=r"\min_s L_s\le K^{-1/2}+m^{-1}",
    right=lambda k: k.rate,
    quantity="loss",
)
def loss(run):
    """The smallest loss of a run is at most 1/sqrt(steps) + 1/width."""
    return run.loss
