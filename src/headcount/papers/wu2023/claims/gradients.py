"""Lemmas 12 and 13 of wu2023: the sizes of the loss gradient and of the network's gradient."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from ....theory.slow import flattened, norm
from ....theory.slow_spectrum import operator_norm
from .. import quantities, twins
from ..constants import state
from ..records import Network

on_networks = functools.partial(state.claim, on=Network, proved="App. C.1")
FACTORS = {
    "W_Q": ("2 rho tau0 S lamK lamV lamO", r"2\rho\tau_0S\bar\lambda_K\bar\lambda_V\bar\lambda_O"),
    "W_K": ("2 rho tau0 S lamQ lamV lamO", r"2\rho\tau_0S\bar\lambda_Q\bar\lambda_V\bar\lambda_O"),
    "W_V": ("rho lamO", r"\rho\bar\lambda_O"),
    "w_O": ("rho lamV", r"\rho\bar\lambda_V"),
}


def lemma_12(block):
    """The statement about one block of the weights."""

    def size(network, k):
        slope = jax.grad(lambda t: quantities.loss(network, t))(network.theta)
        residual = jnp.linalg.norm(quantities.outputs(network, network.theta) - network.y)
        return jnp.linalg.norm(jnp.ravel(getattr(slope, block))), k.rho * k.slopes[block] * residual

    def slow_size(num, network, k):
        theta = twins.theta_of(network)
        r = twins.residual(num, network, theta)
        slope = getattr(twins.loss_gradient(num, network, theta, r), block)
        return norm(num, flattened(slope)), k.rho * k.slopes[block] * norm(num, r)

    text, latex = FACTORS[block]
    size.__doc__ = f"The gradient of (1/2)|f - y|^2 in {block} has norm at most {text} |f - y|."
    claim = on_networks(
        f"lemma-12-{block[-1]}",
        f"Size of the loss gradient in {block}",
        where="Lemma 12, (7)-(10)",
        says=rf"\|\nabla_{{{block}}}\ell\|_F\le{latex}\|f-y\|_2",
        forms="with relu' (0 or 1) where the proof prints relu",
        notes=("E3",),
    )(size)
    claim.twin(slow_size)
    return claim


lemmas_12 = [lemma_12(block) for block in twins.BLOCKS]


@on_networks(
    "lemma-13",
    "Size of the network's gradient",
    where="Lemma 13, (11)",
    says=r"\|\nabla_\theta f\|_2\le c_2",
    forms={"printed": ("tight; the proof lacks squares on three norms", "E25")},
    right=lambda k: k.c2,
    bound=None,
)
def lemma_13(network):
    """The N x p Jacobian of f has spectral norm at most c2 = rho sqrt(lamO^2 + lamV^2
    + (2 tau0 S lamK lamV lamO)^2 + (2 tau0 S lamQ lamV lamO)^2)."""
    return quantities.spectral(quantities.jacobian(network, network.theta))


@lemma_13.twin
def _(num, network):
    slopes = twins.jacobian(num, network, twins.theta_of(network))
    return operator_norm(num, [slope.flat() for slope in slopes])
